/* The flags of `query` and `pgo`: the time that is asked for, and the type that is meant. */
#include "tests/unit/lib/testing.h"

#include <jansson.h>

#include "base/clock.h"
#include "cli/query/args.h"
#include "cli/query/top.h"
#include "tests/unit/lib/stored.h"

SCOPED_POINTER(tree, tree_free)

#define NOW_NS (INT64_C(1795307400) * NS_PER_S)
#define HOUR_NS (3600 * NS_PER_S)

TEST(times_of_the_question)
{
    static const struct {
        int64_t from_ns, until_ns, since_ms, want_from_ns, want_until_ns;
        const char *problem;
    } cases[] = {
        {QUERY_NO_TIME, QUERY_NO_TIME, 3600 * MS_PER_S, NOW_NS - HOUR_NS, NOW_NS, NULL},
        {QUERY_NO_TIME, NOW_NS - HOUR_NS, 3600 * MS_PER_S, NOW_NS - 2 * HOUR_NS, NOW_NS - HOUR_NS,
         NULL},
        {NOW_NS - 5, QUERY_NO_TIME, 3600 * MS_PER_S, NOW_NS - 5, NOW_NS, NULL},
        {5, 6, 1, 5, 6, NULL},
        {6, 6, 1, 6, 6, NULL},
        {QUERY_NO_TIME, 5 * NS_PER_S, INT64_MAX, 0, 5 * NS_PER_S, NULL},
        {6, 5, 1, 0, 0, "--from is after --until"},
        {NOW_NS + 1, QUERY_NO_TIME, 1, 0, 0, "--from is after now"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct query_ask ask = {.service = NULL};
        struct query_common common = {
            .service = "cart",
            .from_ns = cases[i].from_ns,
            .until_ns = cases[i].until_ns,
            .since_ms = cases[i].since_ms,
        };
        bool ok = query_ask_from(&common, NOW_NS, &ask, &err);
        CHECK_STR(err.msg, cases[i].problem == NULL ? "" : cases[i].problem, "");
        assert_int_equal(ok, cases[i].problem == NULL);
        if (ok) {
            CHECK_INT(ask.from_ns, cases[i].want_from_ns, "");
            CHECK_INT(ask.until_ns, cases[i].want_until_ns, "");
            CHECK_STR(ask.service, "cart", "");
        }
    }
}

TEST(types_by_what_they_are_called)
{
    static const struct {
        const char *type, *id, *problem;
    } cases[] = {
        {"cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", ""},
        {"inuse_space", "memory:inuse_space:bytes:space:bytes", ""},
        {"goroutine", "goroutine:goroutine:count:goroutine:count", ""},
        {"goroutines", "goroutine:goroutine:count:goroutine:count", ""},
        {"mutex", "", "no type is called \"mutex\" in this time, only process_cpu:cpu:"},
        {"memory", "memory:inuse_space:bytes:space:bytes", ""},
        {"heap", "memory:inuse_space:bytes:space:bytes", ""},
        {"alloc", "memory:alloc_space:bytes:space:bytes", ""},
        {"samples", "process_cpu:samples:count:cpu:nanoseconds", ""},
        {"odd", "",
         "several types are called \"odd\": odd:a:bytes:space:bytes, odd:b:bytes:space:bytes"},
        {"", "", "no type is called \"\""},
    };
    json_auto_t *ids = json_pack(
        "[s,s,s,s,s,s,s,i]", "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "process_cpu:samples:count:cpu:nanoseconds", "memory:alloc_space:bytes:space:bytes",
        "memory:inuse_space:bytes:space:bytes", "goroutine:goroutine:count:goroutine:count",
        "odd:a:bytes:space:bytes", "odd:b:bytes:space:bytes", 5);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        SCOPED(buf) id = testing_buf(1024);
        bool ok = query_choose_type(ids, cases[i].type, &id, &err);
        CHECK_STR(id.data, cases[i].id, cases[i].type);
        CHECK_CONTAINS(err.msg, cases[i].problem, cases[i].type);
        CHECK_INT(ok, cases[i].problem[0] == '\0', cases[i].type);
    }
}

/* The table of functions counts cut stacks from their roots, or as they were recorded. */
TEST(cut_stacks_of_a_table)
{
    static const struct {
        bool as_recorded;
        size_t nodes;
    } cases[] = {{false, 85}, {true, 129}};
    SCOPED(buf) b = stored_file_of("cut_stacks", "heap-shapes");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        char unit[TOP_UNIT_MAX];
        SCOPED(tree) *t =
            top_tree((struct sv){b.data, b.len}, "inuse_space", cases[i].as_recorded, unit, &err);
        CHECK_STR(err.msg, "", "top_tree");
        assert_non_null(t);
        CHECK_INT(tree_total(t), 2123, "total");
        CHECK_INT(tree_size(t) - 1, cases[i].nodes, "nodes");
    }
}

/* Sums of one profile: of a sample type, and of the stacks that have a function. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "record/counting.h"
#include "tests/unit/lib/pprof_writer.h"

#define HEAP "alloc_space/bytes inuse_space/bytes"

static struct counting_want want(const char *type, const char *function)
{
    struct counting_want w = {.function = sv_from(function)};
    assert_true(record_type_split(sv_from(type), &w.type));
    return w;
}

static bool run(struct buf *body, struct counting_want *wants, size_t n, struct err *err)
{
    struct scratch *s = scratch_new();
    bool ok = counting_run(s, (struct sv){body->data, body->len}, wants, n, 7, err);
    scratch_free(s);
    return ok;
}

static const struct pprof_row rows[] = {
    {"leaf middle main", "", {10, 1}},
    {"middle main", "", {200, 2}},
    {"other main", "", {3000, 4}},
    /* A recursive stack counts once. */
    {"leaf leaf leaf other", "", {40000, 8}},
    /* A negative value counts as 0, as in a store. */
    {"leaf", "", {-5, 16}},
};

static const struct {
    const char *type;
    const char *function;
    bool found;
    uint64_t sum;
} cases[] = {
    {"memory:alloc_space:bytes::", "", true, 43210},
    {"memory:inuse_space:bytes::", "", true, 31},
    {"memory:alloc_space:bytes::", "main", true, 3210},
    {"memory:alloc_space:bytes::", "leaf", true, 40010},
    {"memory:inuse_space:bytes::", "leaf", true, 25},
    {"memory:inuse_space:bytes::", "other", true, 12},
    {"memory:alloc_space:bytes::", "lea", true, 0},
    {"memory:alloc_space:count::", "", false, 0},
    {"memory:alloc_objects:bytes::", "", false, 0},
    {"memory:alloc_space:bytes:space:bytes", "", false, 0},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

TEST(sums_are_exact)
{
    for (int packed = 0; packed < 2; packed++) {
        const struct pprof_spec spec = {.types = HEAP, .packed = packed == 1, .first_id = 9};
        SCOPED(buf) body = pprof_make(&spec, rows, sizeof(rows) / sizeof(rows[0]));
        struct counting_want wants[CASES];
        struct err err = ERR_INIT;
        for (size_t i = 0; i < CASES; i++) {
            wants[i] = want(cases[i].type, cases[i].function);
        }
        assert_true(run(&body, wants, CASES, &err));
        for (size_t i = 0; i < CASES; i++) {
            CHECK_INT(wants[i].found, cases[i].found, cases[i].type);
            CHECK_INT(wants[i].sum, cases[i].sum, cases[i].function);
        }
    }
}

/* More functions than one pass over the samples looks for. */
TEST(many_functions_are_counted)
{
    enum { N = 150 };
    static char names[N][16];
    static struct pprof_row many[N];
    struct counting_want wants[N];
    struct err err = ERR_INIT;
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "f%zu", i);
        many[i] = (struct pprof_row){names[i], "", {(int64_t)i + 1, 0}};
        wants[i] = want("memory:alloc_space:bytes::", names[i]);
    }
    SCOPED(buf) body = pprof_make(&(struct pprof_spec){.types = HEAP}, many, N);
    assert_true(run(&body, wants, N, &err));
    for (size_t i = 0; i < N; i++) {
        CHECK_INT(wants[i].sum, i + 1, names[i]);
    }
}

/* A sum of several int64_t does not wrap around. */
TEST(sums_have_128_bits)
{
    const struct pprof_row large[] = {
        {"a", "", {INT64_MAX, 1}}, {"b", "", {INT64_MAX, 1}}, {"c", "", {INT64_MAX, 1}}};
    struct counting_want w = want("memory:alloc_space:bytes::", "");
    struct err err = ERR_INIT;
    SCOPED(buf) body = pprof_make(&(struct pprof_spec){.types = HEAP}, large, 3);
    assert_true(run(&body, &w, 1, &err));
    CHECK_INT((uint64_t)(w.sum >> 64), 1, "");
    CHECK_INT((uint64_t)w.sum, (uint64_t)INT64_MAX - 2, "");
}

TEST(damaged_profiles_are_refused)
{
    struct counting_want w = want("memory:alloc_space:bytes::", "leaf");
    SCOPED(buf) body = pprof_make(&(struct pprof_spec){.types = HEAP}, rows, 2);
    for (size_t n = 1; n < body.len; n++) {
        struct err err = ERR_INIT;
        struct buf part = body;
        part.len = n;
        if (!run(&part, &w, 1, &err)) {
            assert_true(err.kind == ERR_INPUT && err.msg[0] != '\0');
        }
    }
}

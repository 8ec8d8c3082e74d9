/* Merged profiles of one sample type, as Pyroscope answers SelectMergeProfile, and those that
 * google/pprof merges. */
#include "tests/unit/lib/testing.h"

#include "pprof/gzip.h"
#include "tests/unit/store/query_rig.h"

#define HEAD "cpu/nanoseconds every 1000000000 cpu/nanoseconds at 1795307460000 for 0, "

static void check_profile(struct query_rig *r, const struct query_profile_options *o,
                          const char *want, const char *row)
{
    struct err err = ERR_INIT;
    char text[QUERY_TEXT_MAX] = "";
    SCOPED(buf) out = testing_buf(1 << 20);
    if (!query_profile(&r->q, &r->range, &r->type, o, &out, &err)) {
        (void)snprintf(text, sizeof(text), "%s", err.msg);
    } else if (out.len > 0) {
        query_text_profile((struct sv){out.data, out.len}, text);
    }
    CHECK_STR(text, want, row);
}

SETUP_OF(query_rig)

TEST_ON(struct query_rig *r, test_one_service)
{
    static const struct query_profile_options all;
    query_rig_range(r, "{service_name=\"vecdemo\"}", QUERY_S, QUERY_E);
    check_profile(r, &all,
                  HEAD "1 mappings\n"
                       "main.hash:31<main.work:22 main.main:7 50000000\n"
                       "main.idle:41 main.main:7 40000000\n"
                       "main.main:7 10000000\n"
                       "runtime.mallocgc:9 main.work:23 main.main:7 10000000\n",
                  "");
    query_rig_range(r, "{service_name=\"none\"}", QUERY_S, QUERY_E);
    check_profile(r, &all, "", "nothing");
}

/* Without lines the address stays, with its mapping; the label that makes a series is left out. */
TEST_ON(struct query_rig *r, test_frames_without_names_keep_their_address)
{
    static const struct query_profile_options all;
    query_rig_range(r, "{service_name=\"vecdemo3\"}", QUERY_S, QUERY_E);
    check_profile(r, &all,
                  HEAD "2 mappings\n"
                       "0x700123 main.main:7 50000000\n"
                       "main.work:24 main.work:24 main.main:7 20000000\n",
                  "");
    query_rig_range(r, "{thread=\"worker\"}", QUERY_S, QUERY_E);
    check_profile(r, &all, HEAD "1 mappings\nmain.work:24 main.work:24 main.main:7 20000000\n",
                  "the samples of a series");
}

TEST_ON(struct query_rig *r, test_another_sample_type)
{
    static const struct query_profile_options all;
    struct err err = ERR_INIT;
    query_rig_range(r, "{pod=\"a\"}", QUERY_S, QUERY_E);
    assert_true(
        profile_type_parse(SV("process_cpu:samples:count:cpu:nanoseconds"), &r->type, &err));
    check_profile(r, &all,
                  "samples/count every 1000000000 cpu/nanoseconds at 1795307460000 for 0, 1 "
                  "mappings\n"
                  "main.hash:31<main.work:22 main.main:7 3\n"
                  "main.main:7 1\n"
                  "runtime.mallocgc:9 main.work:23 main.main:7 1\n",
                  "");
}

TEST_ON(struct query_rig *r, test_pgo)
{
    const struct query_profile_options o = {
        .go_pgo = true, .keep_locations = 2, .aggregate_callees = true};
    query_rig_range(r, "{service_name=\"vecdemo\"}", QUERY_S, QUERY_E);
    /* Only the leaf loses its line. Pyroscope's answer depends on what else came in a profile. */
    check_profile(r, &o,
                  HEAD "1 mappings\n"
                       "main.hash:0<main.work:22 main.main:7 50000000\n"
                       "main.idle:0 main.main:7 40000000\n"
                       "main.main:0 10000000\n"
                       "runtime.mallocgc:0 main.work:23 10000000\n",
                  "");
}

TEST_ON(struct query_rig *r, test_call_site)
{
    const struct sv site[] = {SV("main.main"), SV("main.work"), SV("main.hash")};
    struct query_profile_options o = {.stacks = {.call_site = site, .n_call_site = 2}};
    query_rig_range(r, "{service_name=\"vecdemo\"}", QUERY_S, QUERY_E);
    check_profile(r, &o,
                  HEAD "1 mappings\n"
                       "main.hash:31<main.work:22 main.main:7 50000000\n"
                       "runtime.mallocgc:9 main.work:23 main.main:7 10000000\n",
                  "two");
    o.stacks.n_call_site = 3;
    check_profile(r, &o, HEAD "1 mappings\nmain.hash:31<main.work:22 main.main:7 50000000\n",
                  "three, within a location");
}

TEST_ON(struct query_rig *r, test_small_frames_are_folded)
{
    struct query_profile_options o = {.max_nodes = 2};
    query_rig_range(r, "{service_name=\"vecdemo\"}", QUERY_S, QUERY_E);
    check_profile(r, &o,
                  HEAD "1 mappings\n"
                       "main.hash:31<main.work:22 main.main:7 50000000\n"
                       "main.main:7 10000000\n"
                       "other:0 main.main:7 50000000\n",
                  "2");
    o.max_nodes = 3;
    check_profile(r, &o,
                  HEAD "1 mappings\n"
                       "main.hash:31<main.work:22 main.main:7 50000000\n"
                       "main.idle:41 main.main:7 40000000\n"
                       "main.main:7 10000000\n"
                       "other:0 main.main:7 10000000\n",
                  "3");
    o.max_nodes = 100;
    check_profile(r, &o,
                  HEAD "1 mappings\n"
                       "main.hash:31<main.work:22 main.main:7 50000000\n"
                       "main.idle:41 main.main:7 40000000\n"
                       "main.main:7 10000000\n"
                       "runtime.mallocgc:9 main.work:23 main.main:7 10000000\n",
                  "100");
}

TEST_ON(struct query_rig *r, test_limits)
{
    static const struct query_profile_options all;
    struct err err = ERR_INIT;
    r->q.bytes_max = 1000;
    SCOPED(buf) out = testing_buf(1 << 20);
    assert_false(query_profile(&r->q, &r->range, &r->type, &all, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "to work in");
    CHECK_CONTAINS(err.msg, r->ids[0], "which profile");
    buf_done(&out);
    r->q.bytes_max = (size_t)64 * 1024 * 1024;
    buf_init(&out, 100);
    assert_false(query_profile(&r->q, &r->range, &r->type, &all, &out, &err));
    CHECK_STR(err.msg, "a profile of more than 100 bytes", "");
    CHECK_INT(err.kind, ERR_LIMIT, "the result");
}

/* ---- as google/pprof merges ------------------------------------------------------------------ */

TEST(test_merged_is_google_pprofs)
{
    SCOPED(query_rig) r;
    struct err err = ERR_INIT;
    SCOPED(buf) want = stored_file("merged123");
    SCOPED(scratch) *scratch = scratch_new();
    struct sv plain;
    size_t n;
    query_rig_init(&r);
    SCOPED(buf) out = testing_buf(1 << 20);
    const struct store_range range = {
        .from_ns = QUERY_S * NS_PER_MS, .until_ns = QUERY_E * NS_PER_MS, .selector = NULL};
    assert_true(query_merged(&r.q, &(struct store_scan){.range = range}, &out, &n, &err));
    CHECK_INT(n, 3, "");
    assert_true(gzip_inflate(scratch, (struct sv){out.data, out.len}, 1 << 20, 0, &plain, &err));
    CHECK_INT(plain.n, want.len, "");
    assert_memory_equal(plain.p, want.data, plain.n);

    const struct store_range before = {.from_ns = 0, .until_ns = 1, .selector = NULL};
    buf_clear(&out);
    assert_true(query_merged(&r.q, &(struct store_scan){.range = before}, &out, &n, &err));
    CHECK_INT(n + out.len, 0, "nothing");

    const struct pprof_row row = {"a", NULL, {1}};
    rig_put(&r.store, "__name__=memory,service_name=vecdemo", QUERY_T0 * NS_PER_MS,
            "alloc_space/bytes", &row, 1, NULL);
    assert_false(query_merged(&r.q, &(struct store_scan){.range = range}, &out, &n, &err));
    CHECK_CONTAINS(err.msg, "profile ", "");
    CHECK_INT(err.kind, ERR_INPUT, "of other types");
}

/* Deltas within the engine, without sockets and threads: when a baseline is created, kept and
 * dropped. */
#define WORLD_SUBMITS true
#include "tests/unit/scraper/scraper_world.h"

#include "pprof/check.h"
#include "pprof/gzip.h"
#include "tests/unit/lib/pprof_writer.h"

SCOPED_VALUE(delta_output, delta_output_done)

#define HEAP "alloc_objects/count inuse_objects/count"
#define INTERVAL_MS 15000

static const struct profile *last(const struct world *w)
{
    return w->profiles[w->n_profiles - 1];
}

/* Replaces the targets by one at an address (NULL: by none) whose label is "v", or the uid of its
 * pod if it begins with "uid". */
static void put(struct world *w, const char *label, const char *address)
{
    const char *name = strncmp(label, "uid", 3) == 0 ? "__meta_kubernetes_pod_uid" : "v";
    struct target *t = address == NULL ? NULL : make_target(w, 0, address, name, label);
    assert_true(engine_set_group(w->e, 0, "pod", &t, t != NULL));
}

static void give(struct world *w, struct http_transfer *t, const void *data, size_t n)
{
    answer(w, t, HTTP_DONE, 200, data, n);
}

/* Waits for the next request and answers it with counters and gauges of one stack. */
static void scrape(struct world *w, int64_t allocated, int64_t in_use)
{
    struct pprof_spec spec = {.types = HEAP, .time_nanos = w->now_ns};
    const struct pprof_row row = {"a m", NULL, {allocated, in_use}};
    SCOPED(buf) body = pprof_make(&spec, &row, 1);
    struct http_transfer *t = next_start(w);
    turn(w, 105); /* it is sent after 5 ms */
    give(w, t, body.data, body.len);
}

/* The values of the only sample of the last profile. */
static void check_values(struct world *w, int64_t allocated, int64_t in_use, const char *row)
{
    struct delta_input in = {
        .body = {last(w)->data, last(w)->size}, .any_counter = true, .scratch = scratch_new()};
    SCOPED(delta_output) out;
    struct err err = ERR_INIT;
    assert_int_equal(delta_make(&in, &out, &err), DELTA_FIRST);
    scratch_free(in.scratch);
    CHECK_INT(out.stacks_in, 1, row);
    size_t n = out.next->n;
    CHECK_INT(n, allocated != 0, row);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT((int64_t)delta_state_value(out.next, i, 0), allocated, row);
    }
    CHECK_INT(out.samples_out, in_use != 0, row);
}

/* A scrape whose delta is computed. */
static void cycle(struct world *w, int64_t allocated, int64_t in_use)
{
    scrape(w, allocated, in_use);
    works(w);
}

/* The same; the profile must have this growth. */
static void check_delta(struct world *w, int64_t allocated, int64_t in_use, int64_t growth,
                        const char *row)
{
    cycle(w, allocated, in_use);
    check_values(w, growth, in_use, row);
}

#define RESULT(w, r) metric((w), "profpull_delta_total{result=\"" r "\"}")

#define SCRAPES(w, r)                                                                              \
    metric((w), "profpull_scrapes_total{job=\"one\",type=\"memory\",result=\"" r "\"}")
#define FAILURES(w, r) metric((w), "profpull_scrape_failures_total{job=\"one\",reason=\"" r "\"}")
#define STATE(w, what) metric((w), "profpull_delta_state_" what)

/* ---- the tests ------------------------------------------------------------------------------- */

/* The delta of a job is compressed as it says. */
TEST_ON(struct world *w, compression_of_the_job)
{
    static const struct {
        enum config_compression compression;
        bool is_gzip;
    } cases[] = {{COMPRESSION_FAST, true}, {COMPRESSION_BEST, true}, {COMPRESSION_NONE, false}};
    put(w, "a", "10.0.0.1:80");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        w->jobs[0].delta_compression = cases[i].compression;
        cycle(w, 100 + (int64_t)i, 5);
        CHECK_INT(w->n_profiles, i + 1, "");
        CHECK_INT(gzip_is((struct sv){last(w)->data, last(w)->size}), cases[i].is_gzip, "");
    }
}

TEST_ON(struct world *w, gauges_then_deltas)
{
    put(w, "1", "h:1");
    scrape(w, 10, 5);
    CHECK_INT(w->n_profiles, 0, "not before the work is done");
    CHECK_INT(metric(w, "profpull_scrapes_in_flight"), 1, "busy");
    assert_true(metric(w, "profpull_delta_pending_bytes") > 50);
    works(w);
    CHECK_INT(metric(w, "profpull_scrapes_in_flight"), 0, "done");
    CHECK_INT(metric(w, "profpull_delta_pending_bytes"), 0, "");
    CHECK_INT(w->n_profiles, 1, "");
    check_values(w, 0, 5, "first");
    CHECK_STR(labels_get(last(w)->labels, SV("__delta__")).p, "false", "");
    assert_true(last(w)->is_delta);
    assert_true(last(w)->no_sample_texts);
    CHECK_INT(last(w)->until_ns - last(w)->from_ns, 100 * NS_PER_MS, "its own window");
    int64_t until = last(w)->until_ns;
    check_delta(w, 17, 3, 7, "second");
    CHECK_INT(last(w)->from_ns, until, "from the end of the last one");
    check_delta(w, 2, 1, 0, "restarted");
    CHECK_INT(RESULT(w, "first"), 1, "");
    CHECK_INT(RESULT(w, "delta"), 1, "");
    CHECK_INT(RESULT(w, "rebased"), 1, "");
    CHECK_INT(STATE(w, "stacks"), 1, "");
    CHECK_INT(STATE(w, "bytes"), w->e->deltas.bytes, "");
}

/* A delta that nobody takes is part of the next one: the baseline moves with what was handed on. */
TEST_ON(struct world *w, not_taken)
{
    put(w, "1", "h:1");
    cycle(w, 10, 5);
    int64_t until = last(w)->until_ns;
    w->refuses[0] = true;
    for (int i = 0; i < 3; i++) {
        cycle(w, 17 + 10 * i, 3);
        CHECK_INT(w->was_refusable, true, "may be refused");
    }
    CHECK_INT(w->n_profiles, 1, "three were refused");
    CHECK_INT(RESULT(w, "not_taken"), 3, "");
    w->refuses[0] = false;
    check_delta(w, 50, 4, 40, "all since the one that was taken");
    CHECK_INT(last(w)->from_ns, until, "and its window");
    CHECK_INT(RESULT(w, "delta"), 1, "");
    CHECK_INT(SCRAPES(w, "ok"), 5, "the scrapes went well");
}

/* A profile with gauges only has no growth that could be lost: its counters are the new baseline
 * even if nobody takes it. */
TEST_ON(struct world *w, first_not_taken)
{
    put(w, "1", "h:1");
    w->refuses[0] = true;
    cycle(w, 10, 5);
    CHECK_INT(w->was_refusable, false, "is handed on once");
    w->refuses[0] = false;
    check_delta(w, 17, 3, 7, "after a first one");
    w->refuses[0] = true;
    cycle(w, 2, 1);
    CHECK_INT(w->was_refusable, false, "is handed on once");
    w->refuses[0] = false;
    check_delta(w, 6, 1, 4, "after a restart");
    CHECK_INT(RESULT(w, "first"), 1, "");
    CHECK_INT(RESULT(w, "rebased"), 1, "");
}

#define OLD_HEAP "heap profile: 1: 2 [9: 9] @ heapprofile\n 5: 50 [%d: 100] @ 0x401001\n"

static void scrape_old(struct world *w, int allocated)
{
    SCOPED(buf) body = testing_buf(1000);
    buf_printf(&body, OLD_HEAP, allocated);
    struct http_transfer *t = next_start(w);
    turn(w, 105); /* it is sent after 5 ms */
    give(w, t, body.data, body.len);
}

/* A profile in an older format is converted on a worker, and the delta is computed from the result.
 */
TEST_ON(struct world *w, old_profiles_are_converted)
{
    put(w, "1", "h:1");
    for (int i = 0; i < 2; i++) {
        scrape_old(w, 10 + 7 * i);
        CHECK_INT(w->n_works, 1, "the conversion");
        CHECK_INT(w->n_profiles, i, "");
        works(w);
        CHECK_INT(w->n_works, 1, "the delta");
        CHECK_INT(metric(w, "profpull_scrapes_in_flight"), 1, "busy");
        works(w);
        CHECK_INT(w->n_profiles, i + 1, "");
    }
    CHECK_INT(metric(w, "profpull_conversions_total{result=\"ok\"}"), 2, "");
    CHECK_INT(RESULT(w, "first"), 1, "");
    CHECK_INT(RESULT(w, "delta"), 1, "");
    struct pprof_summary summary;
    struct err err = ERR_INIT;
    struct sv plain;
    SCOPED(scratch) *s = scratch_new();
    struct sv zipped = {last(w)->data, last(w)->size};
    CHECK_INT(gzip_inflate(s, zipped, 10000, 0, &plain, &err), true, "");
    CHECK_INT(pprof_check(plain, &summary, &err), true, err.msg);
    CHECK_INT(summary.n[PROFILE_SAMPLE_TYPE], 4, "");
    CHECK_INT(summary.n[PROFILE_SAMPLE], 1, "");
    CHECK_INT(summary.time_ns, last(w)->until_ns - 100 * NS_PER_MS, "when it was asked for");
}

/* Answers the next request with a gzip. */
static void scrape_gzip(struct world *w, struct sv plain)
{
    SCOPED(scratch) *s = scratch_new();
    struct sv zipped;
    assert_true(gzip_deflate(s, plain, &zipped));
    struct http_transfer *t = next_start(w);
    turn(w, 105);
    give(w, t, zipped.p, zipped.n);
}

/* The kind of a compressed body is recognised on the worker that reads it. The reasons and
 * sentences are those of a body that is not compressed, and no delta is counted as failed. */
TEST_ON(struct world *w, compressed_bodies_that_are_no_profiles)
{
    static const struct {
        const char *plain;
        size_t n;
        const char *reason;
        const char *sentence;
    } rows[] = {
        {"", 0, "empty", "an empty gzip"},
        {"<html>sign in</html>", 20, "not_pprof_html", "inflated: not a profile but an HTML page"},
        {"{\"error\": \"off\"}", 16, "not_pprof_json", "inflated: not a profile but JSON"},
        {"--- text ---", 12, "not_pprof_text", "inflated: not a profile but"},
        {"\x0a", 1, "not_pprof_short", "1 bytes only"},
        {"\x1f\x8b\x08", 3, "bad_gzip", "a gzip within the gzip"},
        {"\x1e\x01\x01\x01", 4, "bad_protobuf", "not a pprof profile"},
    };
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    put(w, "1", "h:1");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        scrape_gzip(w, (struct sv){rows[i].plain, rows[i].n});
        works(w);
        struct scrape_status st = status(w);
        CHECK_STR(reason_name(st.reason), rows[i].reason, rows[i].sentence);
        CHECK_CONTAINS(st.last_error, rows[i].sentence, rows[i].reason);
        scrape_status_done(&st);
    }
    CHECK_INT(RESULT(w, "failed"), TESTING_NO_METRIC, "");
    CHECK_INT(w->n_profiles, 0, "");
}

/* An older format may be compressed as well. */
TEST_ON(struct world *w, compressed_old_profile)
{
    SCOPED(buf) body = testing_buf(1000);
    buf_printf(&body, OLD_HEAP, 10);
    put(w, "1", "h:1");
    scrape_gzip(w, (struct sv){body.data, body.len});
    for (int i = 0; i < 3; i++) {
        CHECK_INT(w->n_works, 1, "the delta that fails, the conversion, the delta");
        works(w);
    }
    CHECK_INT(w->n_profiles, 1, "");
    CHECK_INT(metric(w, "profpull_conversions_total{result=\"ok\"}"), 1, "");
    CHECK_INT(RESULT(w, "first"), 1, "");
    CHECK_INT(RESULT(w, "failed"), TESTING_NO_METRIC, "");
}

/* A failed conversion is a failed scrape; the result of a cancelled one is dropped. */
TEST_ON(struct world *w, old_profiles_that_fail)
{
    put(w, "1", "h:1");
    struct http_transfer *t = next_start(w);
    give(w, t, SV("heap_v2/1\nx\n").p, 12);
    testing_log_expect(w->log, "scrape failed");
    works(w);
    CHECK_INT(metric(w, "profpull_conversions_total{result=\"failed\"}"), 1, "");
    CHECK_INT(FAILURES(w, "bad_legacy"), 1, "");
    w->e->offloads.pending_bytes = OFFLOAD_PENDING_DEFAULT;
    testing_log_expect(w->log, "scrape failed");
    scrape_old(w, 10);
    CHECK_INT(FAILURES(w, "busy"), 1, "");
    w->e->offloads.pending_bytes = 0;
    scrape_old(w, 10);
    put(w, "1", NULL);
    works(w);
    CHECK_INT(w->n_works, 0, "no delta");
    CHECK_INT(w->n_profiles, 0, "");
    CHECK_INT(w->e->offloads.pending_bytes, 0, "");
    put(w, "1", "h:1");
    scrape_old(w, 10); /* teardown frees the engine before the work is done */
    CHECK_INT(w->n_works, 1, "");
}

static void scrape_zipped_old(struct world *w)
{
    SCOPED(buf) body = testing_buf(1000);
    buf_printf(&body, OLD_HEAP, 10);
    scrape_gzip(w, (struct sv){body.data, body.len});
    CHECK_INT(w->n_works, 1, "the delta that fails");
}

/* The same for a compressed one, which may end in each of its steps. */
TEST_ON(struct world *w, compressed_old_profiles_that_fail)
{
    put(w, "1", "h:1");
    scrape_gzip(w, SV("heap_v2/1\nx\n"));
    works(w);
    testing_log_expect(w->log, "scrape failed");
    works(w);
    CHECK_INT(FAILURES(w, "bad_legacy"), 1, "");
    scrape_zipped_old(w);
    w->e->offloads.pending_bytes += OFFLOAD_PENDING_DEFAULT;
    testing_log_expect(w->log, "scrape failed");
    works(w);
    w->e->offloads.pending_bytes -= OFFLOAD_PENDING_DEFAULT;
    CHECK_INT(FAILURES(w, "busy"), 1, "no room for the conversion");
    for (int steps = 0; steps < 3; steps++) {
        scrape_zipped_old(w);
        for (int i = 0; i < steps; i++) {
            works(w);
        }
        CHECK_INT(w->n_works, 1, "");
        put(w, "1", NULL);
        works(w);
        CHECK_INT(w->n_works, 0, "nothing after a cancelled step");
        CHECK_INT(w->e->offloads.pending_bytes, 0, "");
        put(w, "1", "h:1");
    }
    CHECK_INT(RESULT(w, "failed"), TESTING_NO_METRIC, "");
    CHECK_INT(w->n_profiles, 0, "");
    scrape_zipped_old(w);
    works(w); /* teardown frees the engine before the conversion is done */
    CHECK_INT(w->n_works, 1, "");
}

/* The counters of one pod are no baseline for another one at the same address, whether it replaces
 * the first at once or later. */
TEST_ON(struct world *w, another_pod_has_no_baseline)
{
    put(w, "uid-1", "h:1");
    cycle(w, 10, 5);
    put(w, "uid-2", "h:1");
    check_delta(w, 1000, 6, 0, "at once");
    check_delta(w, 1001, 6, 1, "its own baseline");
    put(w, "", NULL);
    put(w, "uid-3", "h:1");
    check_delta(w, 9000, 7, 0, "later");
    put(w, "", NULL);
    put(w, "uid-3", "h:1");
    check_delta(w, 9003, 7, 3, "the same one comes back");
    CHECK_INT(RESULT(w, "first"), 3, "");
}

/* A scrape without anything to pass on is a success. */
TEST_ON(struct world *w, nothing_left)
{
    put(w, "1", "h:1");
    cycle(w, 10, 0);
    CHECK_INT(w->n_profiles, 0, "");
    cycle(w, 10, 0);
    CHECK_INT(w->n_profiles, 0, "");
    cycle(w, 11, 0);
    CHECK_INT(w->n_profiles, 1, "");
    CHECK_INT(SCRAPES(w, "ok"), 3, "");
}

/* A scrape with a pending delta is busy: its tick is skipped. */
TEST_ON(struct world *w, busy)
{
    put(w, "1", "h:1");
    scrape(w, 10, 1);
    turn(w, 2 * INTERVAL_MS);
    CHECK_INT(w->n_transfers, 1, "no second one");
    CHECK_INT(SCRAPES(w, "skipped"), 2, "");
    works(w);
    check_delta(w, 14, 1, 4, "");
}

/* The waiting bodies are bounded; the baseline stays, and the next delta covers both intervals. */
TEST_ON(struct world *w, backlog)
{
    testing_log_expect(w->log, "scrape failed");
    put(w, "1", "h:1");
    cycle(w, 10, 1);
    w->e->offloads.pending_bytes = OFFLOAD_PENDING_DEFAULT - 10;
    scrape(w, 20, 1);
    CHECK_INT(w->n_works, 0, "not taken");
    CHECK_INT(FAILURES(w, "busy"), 1, "");
    w->e->offloads.pending_bytes = 0;
    check_delta(w, 30, 1, 20, "both");
}

TEST_ON(struct world *w, bad_body)
{
    testing_log_expect(w->log, "scrape failed");
    put(w, "1", "h:1");
    cycle(w, 10, 1);
    /* Passes the quick check but is damaged. */
    static const char bad[] = "\x0a\x04\x08\x01\x10\x02\x12\x00\x32\x00";
    give(w, next_start(w), bad, sizeof(bad) - 1);
    works(w);
    CHECK_INT(FAILURES(w, "bad_pprof"), 1, "");
    CHECK_INT(RESULT(w, "failed"), 1, "");
    CHECK_INT(metric(w, "profpull_scrapes_in_flight"), 0, "");
    check_delta(w, 12, 1, 2, "the baseline has stayed");
}

/* A profile without counters passes through unchanged. */
TEST_ON(struct world *w, passed)
{
    struct pprof_spec spec = {.types = "objects/count"};
    const struct pprof_row row = {"a", NULL, {5}};
    SCOPED(buf) body = pprof_make(&spec, &row, 1);
    put(w, "1", "h:1");
    give(w, next_start(w), body.data, body.len);
    works(w);
    CHECK_INT(w->n_profiles, 1, "");
    CHECK_INT(last(w)->size, body.len, "");
    assert_memory_equal(last(w)->data, body.data, body.len);
    assert_false(last(w)->is_delta);
    assert_false(last(w)->no_sample_texts); /* nobody has looked */
    CHECK_INT(RESULT(w, "passed"), 1, "");
}

/* The baseline survives a change of labels and the removal of the target for a while. */
TEST_ON(struct world *w, survives)
{
    put(w, "1", "h:1");
    cycle(w, 10, 1);
    put(w, "2", "h:1");
    check_delta(w, 11, 1, 1, "other labels");
    CHECK_STR(labels_get(last(w)->labels, SV("v")).p, "2", "");
    put(w, "2", NULL);
    turn(w, 100000);
    CHECK_INT(STATE(w, "stacks"), 1, "kept");
    put(w, "2", "h:1");
    check_delta(w, 15, 1, 4, "back again");
    put(w, "2", "h:2");
    check_delta(w, 100, 1, 0, "another target");
    CHECK_INT(STATE(w, "stacks"), 2, "");
}

/* The baseline of a removed target is freed in time, even if nothing else is due. */
TEST_ON(struct world *w, freed)
{
    put(w, "1", "h:1");
    cycle(w, 10, 1);
    put(w, "1", NULL);
    turn(w, DELTAS_KEPT_MIN_MS - 1);
    CHECK_INT(STATE(w, "stacks"), 1, "kept");
    turn(w, 2);
    CHECK_INT(STATE(w, "stacks"), 0, "freed");
    CHECK_INT(STATE(w, "bytes"), 0, "freed");
    put(w, "1", "h:1");
    check_delta(w, 30, 1, 0, "a first one");
}

/* A target removed while its delta is computed loses the result, not the baseline. */
TEST_ON(struct world *w, gone_meanwhile)
{
    put(w, "1", "h:1");
    cycle(w, 10, 1);
    scrape(w, 20, 1);
    put(w, "1", NULL);
    works(w);
    CHECK_INT(w->n_profiles, 1, "dropped");
    CHECK_INT(metric(w, "profpull_delta_pending_bytes"), 0, "");
    put(w, "1", "h:1");
    check_delta(w, 30, 1, 20, "since the first one");
    scrape(w, 31, 1); /* the engine is freed while this one is computed */
}

/* Over the budget: gauges only, never a wrong delta; within it again: deltas again. */
TEST_ON(struct world *w, no_room)
{
    testing_log_expect(w->log, "no memory for the baseline");
    put(w, "1", "h:1");
    w->e->deltas.max_bytes = 100;
    for (int i = 1; i <= 3; i++) {
        check_delta(w, 10 * i, 1, 0, "no room");
        CHECK_INT(STATE(w, "bytes"), 0, "no room");
    }
    CHECK_INT(RESULT(w, "no_room"), 3, "");
    w->e->deltas.max_bytes = 100000;
    check_delta(w, 100, 1, 0, "first");
    check_delta(w, 107, 1, 7, "delta");
    w->e->deltas.max_bytes = 100;
    check_delta(w, 110, 1, 3, "the last delta is still right");
    check_delta(w, 120, 1, 0, "no room again");
}

/* Baselines of removed targets give way to those of existing ones. */
TEST_ON(struct world *w, kept_makes_way)
{
    put(w, "1", "h:1");
    cycle(w, 10, 1);
    w->e->deltas.max_bytes = w->e->deltas.bytes + 10;
    put(w, "1", "h:2");
    cycle(w, 10, 1);
    CHECK_INT(RESULT(w, "no_room"), 999999, "there was room");
    CHECK_INT(STATE(w, "stacks"), 1, "of the new one");
    check_delta(w, 12, 1, 2, "delta");
}

/* Types that are not cumulative pass through unchanged. */
TEST_ON(struct world *w, not_cumulative)
{
    w->types[0].cumulative = false;
    w->types[0].delta = DELTA_OFF;
    struct pprof_spec spec = {.types = "alloc_space/bytes goroutine/count"};
    const struct pprof_row row = {"a", NULL, {5, 6}};
    SCOPED(buf) body = pprof_make(&spec, &row, 1);
    put(w, "1", "h:1");
    for (size_t i = 1; i <= 3; i++) {
        give(w, next_start(w), body.data, body.len);
        CHECK_INT(w->n_works, 0, "at once");
        CHECK_INT(w->n_profiles, i, "also the first one");
        CHECK_INT(last(w)->size, body.len, "");
        assert_memory_equal(last(w)->data, body.data, body.len);
        assert_true(labels_get(last(w)->labels, SV("__delta__")).n == 0);
    }
    CHECK_INT(STATE(w, "bytes"), 0, "");
}

/* After a reload the job may be another one, with other labels: address, path and type identify the
 * baseline. */
TEST_ON(struct world *w, another_job)
{
    struct config_job renamed = w->jobs[0];
    struct target *t;
    struct err err = ERR_INIT;
    renamed.name = "two";
    put(w, "1", "h:1");
    cycle(w, 10, 1);
    put(w, "1", NULL);
    labels_builder_reset(w->b, NULL);
    labels_builder_set_str(w->b, "__address__", "h:1");
    t = target_make(NULL, 1, &renamed, w->b, NULL, &err);
    assert_non_null(t);
    assert_true(engine_set_group(w->e, 1, "elsewhere", &t, 1));
    check_delta(w, 13, 1, 3, "the baseline is the same");
    CHECK_STR(labels_get(last(w)->labels, SV("job")).p, "two", "");
    assert_true(engine_set_group(w->e, 1, "elsewhere", NULL, 0)); /* before the job is freed */
}

#define HOUR_SCRAPES 240 /* at 15 s */
#define HOUR_STACKS 200

/* A profile with one stack that grows and many that are new each time. */
static struct buf restless(int64_t round)
{
    static const struct pprof_spec spec = {.types = HEAP, .time_nanos = 1};
    struct pprof_row rows[HOUR_STACKS + 1] = {{"steady", NULL, {1000000 * (round + 1), 1}}};
    char labels[HOUR_STACKS][32];
    for (size_t i = 0; i < HOUR_STACKS; i++) {
        snprintf(labels[i], sizeof(labels[i]), "n=%lld",
                 (long long)round * HOUR_STACKS + (long long)i);
        rows[i + 1] = (struct pprof_row){"a m", labels[i], {7, 0}};
    }
    return pprof_make(&spec, rows, HOUR_STACKS + 1);
}

/* An hour of stacks that never repeat: the memory levels off, since each stack is forgotten after
 * DELTA_AGE_MAX profiles. Then with a budget below that: it is never exceeded, and the output is
 * still right, or gauges only. */
static void an_hour(struct world *w, size_t max_bytes, size_t *ret_most)
{
    uint64_t deltas = RESULT(w, "delta");
    deltas = deltas == 999999 ? 0 : deltas;
    w->e->deltas.max_bytes = max_bytes;
    put(w, "1", "h:1");
    *ret_most = 0;
    for (int64_t i = 0; i < HOUR_SCRAPES; i++) {
        struct buf body = restless(i);
        size_t before = w->n_profiles;
        w->n_transfers = 0;
        give(w, next_start(w), body.data, body.len);
        works(w);
        buf_done(&body);
        size_t bytes = w->e->deltas.bytes;
        assert_true(bytes <= max_bytes);
        CHECK_INT(STATE(w, "bytes"), bytes, "");
        *ret_most = bytes > *ret_most ? bytes : *ret_most;
        CHECK_INT(w->n_profiles, before + 1, "");
        struct delta_input in = {.body = {last(w)->data, last(w)->size}};
        SCOPED(delta_output) out;
        struct err err = ERR_INIT;
        in.any_counter = true;
        in.scratch = scratch_new();
        assert_int_equal(delta_make(&in, &out, &err), DELTA_FIRST);
        scratch_free(in.scratch);
        uint64_t now = RESULT(w, "delta");
        bool made = now != 999999 && now > deltas;
        deltas = made ? now : deltas;
        /* The growth of the steady stack and all new ones, or (gauges only) no counter. */
        assert_true(out.next->n == HOUR_STACKS + 1 || out.next->n == 0);
        assert_true(!made || out.next->n == HOUR_STACKS + 1);
    }
    assert_true(scratch_pool_bytes(w->e->offloads.scratches) < SCRATCH_POOL_MAX);
}

TEST_ON(struct world *w, restless_stacks)
{
    size_t most;
    testing_log_expect(w->log, "no memory for the baseline");
    an_hour(w, DELTAS_STATE_DEFAULT, &most);
    /* One counter: at most 8 + 8 + 1 bytes for a stack. */
    assert_true(most <= (DELTA_AGE_MAX + 1) * (HOUR_STACKS + 1) * 17 + 1024);
    CHECK_INT(RESULT(w, "delta"), HOUR_SCRAPES - 1, "all but the first");
    CHECK_INT(RESULT(w, "no_room"), 999999, "none");
    put(w, "1", NULL);
    turn(w, 10 * DELTAS_KEPT_MIN_MS);
    CHECK_INT(w->e->deltas.bytes, 0, "gone");
    an_hour(w, most * 4 / 5, &most);
    assert_true(RESULT(w, "no_room") >= 10);
    assert_true(RESULT(w, "delta") > HOUR_SCRAPES + HOUR_SCRAPES / 2);
}

/* Deltas computed by the target pass through unchanged, and may overlap. */
TEST_ON(struct world *w, made_by_the_target)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU] = (struct config_type){.key = "mutex",
                                         .name = "mutex",
                                         .path = "/mutex",
                                         .cumulative = true,
                                         .sampling = true,
                                         .is_delta = true,
                                         .enabled = true,
                                         .delta = DELTA_SERVER,
                                         .seconds = 14,
                                         .interval_ms = INTERVAL_MS,
                                         .timeout_ms = 1000};
    struct pprof_spec spec = {.types = "contentions/count delay/nanoseconds"};
    const struct pprof_row row = {"a", NULL, {5, 6}};
    SCOPED(buf) body = pprof_make(&spec, &row, 1);
    put(w, "1", "h:1");
    struct http_transfer *t = next_start(w);
    CHECK_STR(t->url, "http://h:1/mutex?seconds=14", "");
    CHECK_INT(w->e->gate.processes == NULL ? 0 : map_count(w->e->gate.processes), 0, "no turn");
    give(w, t, body.data, body.len);
    CHECK_INT(w->n_works, 0, "");
    CHECK_INT(w->n_profiles, 1, "");
    CHECK_INT(last(w)->size, body.len, "");
    CHECK_STR(labels_get(last(w)->labels, SV("__delta__")).p, "false", "");
    assert_true(last(w)->is_delta);
}

/* Recordings of Java: their bytes to destinations that read them, the profiles in them to all
 * others, none twice. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "agent/recordings.h"
#include "agent/scraped.h"
#include "base/worker.h"
#include "config/change.h"
#include "tests/unit/lib/failing_malloc.h"
#include "tests/unit/lib/receive_rig.h"
#include "tests/unit/lib/recording.h"

SCOPED_POINTER(profile, profile_unref)

/* Two destinations that cannot read recordings, one that can, and one that could. */
#define WRITE                                                                                      \
    "[{name: push, url: \"http://127.0.0.1:1\"}, {name: other, url: \"http://127.0.0.1:1\"}, "     \
    "{name: raw, url: \"http://127.0.0.1:1\", protocol: ingest}, {name: conv, url: "               \
    "\"http://127.0.0.1:1\", protocol: ingest, jfr: convert}]"
enum { PUSH, OTHER, RAW, CONV };

/* Two profiles: process_cpu and mutex. */
static struct recording make_recording(void)
{
    struct recording r;
    recording_init(&r, 1000000000);
    recording_method(&r, 1, "a/B", "run");
    recording_stack(&r, 1, false, (const uint64_t[]){1, 10}, 1);
    recording_setting(&r, 0, "event", "itimer");
    EVENT(&r, CLASS_EXECUTION_SAMPLE, 1, 1, STATE_RUNNABLE_ID, 0, 0, 0);
    EVENT(&r, CLASS_MONITOR_ENTER, 1, 1, 7, 0, 0, 0);
    recording_end_chunk(&r);
    return r;
}

static struct profile *make_profile(struct intern *intern, struct sv bytes)
{
    char *data = testing_memory(bytes.n);
    memcpy(data, bytes.p, bytes.n);
    struct profile *p = profile_new(
        testing_labels(intern, "__name__", "jfr", "service_name", "shop", "pod", "p-1", NULL), data,
        bytes.n);
    assert_non_null(p);
    p->format = PROFILE_JFR;
    p->from_ns = 5;
    p->until_ns = 9;
    p->scraped_ms = clock_mono_ms();
    return p;
}

/* ---- conversion ------------------------------------------------------------------------------ */

static void check_labels(const struct profile *p, const char *want)
{
    SCOPED(buf) text = testing_buf(4096);
    testing_labels_format(p->labels, &text);
    CHECK_STR(text.data, want, "");
}

TEST(profiles_of_a_recording)
{
    SCOPED(receive_rig) g;
    SCOPED(recording) r = make_recording();
    struct recording_profiles made;
    struct recording_hints hints = {.own_times = true};
    struct err err = ERR_INIT;
    receive_rig_start(&g, "{}", WRITE);
    SCOPED(profile) *base = make_profile(g.intern, SV("not read"));
    assert_true(recordings_convert(g.recordings, base, recording_bytes(&r), &hints, &made, &err));
    CHECK_INT(made.n, 2, "");
    check_labels(made.at[0], "{__delta__=\"false\", __name__=\"process_cpu\", "
                             "jfr_event=\"itimer\", pod=\"p-1\", service_name=\"shop\"}");
    check_labels(made.at[1], "{__delta__=\"false\", __name__=\"mutex\", jfr_event=\"itimer\", "
                             "pod=\"p-1\", service_name=\"shop\"}");
    CHECK_INT(made.at[0]->from_ns, r.start_ns, "");
    CHECK_INT(made.at[0]->until_ns, r.start_ns + r.duration_ns, "");
    CHECK_INT(made.at[0]->format, PROFILE_PPROF, "");
    for (size_t i = 0; i < made.n; i++) {
        profile_unref(made.at[i]);
    }
    hints.own_times = false;
    assert_true(recordings_convert(g.recordings, base, recording_bytes(&r), &hints, &made, &err));
    CHECK_INT(made.at[0]->from_ns, 5, "");
    CHECK_INT(made.at[0]->until_ns, 9, "");
    for (size_t i = 0; i < made.n; i++) {
        profile_unref(made.at[i]);
    }
    CHECK_INT(testing_metric(g.metrics, "profpull_recordings_total{result=\"converted\"}"), 2, "");
    CHECK_INT(testing_metric(g.metrics, "profpull_recordings_profiles_total"), 4, "");
}

TEST(damaged_recordings)
{
    SCOPED(receive_rig) g;
    SCOPED(recording) r = make_recording();
    struct recording_profiles made;
    const struct recording_hints hints = {.sample_rate = 100};
    struct err err = ERR_INIT;
    receive_rig_start(&g, "{}", WRITE);
    testing_log_expect(g.log, "recording cannot be read completely");
    SCOPED(profile) *base = make_profile(g.intern, SV("x"));
    assert_false(recordings_convert(g.recordings, base, SV("FLR"), &hints, &made, &err));
    CHECK_INT(made.n, 0, "");
    CHECK_INT(err.kind, ERR_INPUT, "");
    buf_puts(&r.out, "FLR");
    err_clear(&err);
    assert_true(recordings_convert(g.recordings, base, recording_bytes(&r), &hints, &made, &err));
    CHECK_INT(made.n, 2, "what was good");
    CHECK_CONTAINS(err.msg, "chunk 2 at byte ", "");
    for (size_t i = 0; i < made.n; i++) {
        profile_unref(made.at[i]);
    }
    CHECK_INT(testing_metric(g.metrics, "profpull_recordings_total{result=\"failed\"}"), 1, "");
    CHECK_INT(testing_metric(g.metrics, "profpull_recordings_total{result=\"damaged\"}"), 1, "");
}

static struct receive_rig memory_rig;
static struct recording memory_recording;

static void conversion(bool *ret_complete)
{
    struct err err = ERR_INIT;
    struct recording_profiles made;
    const struct recording_hints hints = {.sample_rate = 100};
    bool armed = failing_malloc_pause();
    SCOPED(profile) *base = make_profile(memory_rig.intern, SV("x"));
    failing_malloc_resume(armed);
    *ret_complete = recordings_convert(memory_rig.recordings, base,
                                       recording_bytes(&memory_recording), &hints, &made, &err);
    assert_true(*ret_complete || err.kind == ERR_MEMORY);
    assert_true(made.n == (*ret_complete ? 2 : 0));
    for (size_t i = 0; i < made.n; i++) {
        profile_unref(made.at[i]);
    }
}

TEST(without_memory)
{
    receive_rig_start(&memory_rig, "{}", WRITE);
    testing_log_expect(memory_rig.log, "recording cannot be read completely");
    memory_recording = make_recording();
    assert_true(failing_malloc_each(FAIL_OURS, conversion) > 20);
    recording_done(&memory_recording);
    receive_rig_done(&memory_rig);
}

/* ---- received -------------------------------------------------------------------------------- */

static enum receive_result receive(struct receive_rig *g, struct sv bytes)
{
    struct receive_item item;
    struct err err = ERR_INIT;
    struct label labels[] = {{SV("__name__"), SV("jfr")}, {SV("service_name"), SV("shop")}};
    const struct receive_facts facts = {.labels = labels, .n_labels = 2, .sample_rate = 100};
    enum receive_result result =
        receive_open(g->receive, RECEIVE_INGEST, PROFILE_JFR, bytes, &item, &err);
    if (result == RECEIVE_ACCEPTED) {
        result = receive_put(g->receive, &item, &facts, &err);
    }
    receive_close(g->receive, &item);
    return result;
}

static uint64_t accepted(struct receive_rig *g, size_t endpoint)
{
    struct write_ledger l = writer_ledger(g->writer, endpoint);
    CHECK_INT(l.accepted, l.queued + l.in_flight, "the ledger balances: nothing is sent here");
    return l.accepted;
}

TEST(received_recordings)
{
    SCOPED(receive_rig) g;
    SCOPED(recording) r = make_recording();
    receive_rig_start(&g, "{max_age: 0s}", WRITE);
    CHECK_INT(receive(&g, recording_bytes(&r)), RECEIVE_ACCEPTED, "");
    CHECK_INT(accepted(&g, PUSH), 2, "profiles");
    CHECK_INT(accepted(&g, OTHER), 2, "profiles");
    CHECK_INT(accepted(&g, RAW), 1, "the recording");
    CHECK_INT(accepted(&g, CONV), 2, "profiles, by configuration");
    CHECK_INT(testing_metric(g.metrics, "profpull_recordings_total{result=\"converted\"}"), 1, "");
    CHECK_INT(testing_metric(g.metrics, "profpull_recordings_profiles_total"), 2, "");
}

/* Who reads recordings gets those that we cannot read, too. */
TEST(received_recordings_that_cannot_be_read)
{
    char head[JFR_HEAD_SIZE] = "FLR\0\0\2";
    struct receive_rig g;
    receive_rig_start(&g, "{max_age: 0s}", WRITE);
    testing_log_expect(g.log, "recording cannot be read completely");
    CHECK_INT(receive(&g, (struct sv){head, sizeof(head)}), RECEIVE_ACCEPTED, "");
    CHECK_INT(accepted(&g, RAW), 1, "");
    CHECK_INT(accepted(&g, PUSH), 0, "");
    receive_rig_done(&g);
    receive_rig_start(&g, "{max_age: 0s, forward_to: [push]}", WRITE);
    testing_log_expect(g.log, "recording cannot be read completely");
    CHECK_INT(receive(&g, (struct sv){head, sizeof(head)}), RECEIVE_BAD_PROFILE, "");
    CHECK_INT(accepted(&g, PUSH), 0, "");
    receive_rig_done(&g);
}

/* ---- scraped --------------------------------------------------------------------------------- */

struct scrapes {
    struct receive_rig g; /* its loop, the writer's, never runs */
    struct loop *loop;    /* the scraper's */
    struct worker_pool *workers;
    struct scraped *scraped;
    bool idle;
    bool waits; /* the loop runs */
};

static void start_scrapes(struct scrapes *s, size_t pending_max)
{
    struct err err = ERR_INIT;
    *s = (struct scrapes){.idle = false};
    receive_rig_start(&s->g, "{}", WRITE);
    s->loop = loop_new(&err);
    assert_non_null(s->loop);
    s->workers = worker_pool_new(1, &err);
    assert_non_null(s->workers);
    const struct scraped_options options = {.intern = s->g.intern,
                                            .log = testing_log(s->g.log),
                                            .metrics = s->g.metrics,
                                            .writer = s->g.writer,
                                            .recordings = s->g.recordings,
                                            .workers = s->workers,
                                            .loop = s->loop,
                                            .pending_max = pending_max};
    s->scraped = scraped_new(&options, s->g.config, &err);
    assert_non_null(s->scraped);
}

static void end_scrapes(struct scrapes *s)
{
    scraped_free(s->scraped);
    worker_pool_free(s->workers);
    loop_free(s->loop);
    receive_rig_done(&s->g);
}

static void on_idle(void *arg)
{
    struct scrapes *s = arg;
    s->idle = true;
    if (s->waits) {
        loop_stop(s->loop);
    }
}

static void wait_idle(struct scrapes *s)
{
    s->idle = false;
    scraped_when_idle(s->scraped, on_idle, s);
    s->waits = !s->idle;
    if (s->waits) {
        loop_run(s->loop);
    }
    s->waits = false;
    assert_true(s->idle);
}

static enum delivery_result scrape(struct scrapes *s, struct sv bytes)
{
    struct profile *p = make_profile(s->g.intern, bytes);
    return scraped_put(s->scraped, p, config_endpoint_bits(s->g.config), clock_mono_ms());
}

TEST(scraped_recordings)
{
    struct scrapes s;
    struct recording r = make_recording();
    start_scrapes(&s, 0);
    wait_idle(&s);
    CHECK_INT(scrape(&s, recording_bytes(&r)), DELIVERY_TAKEN, "");
    CHECK_INT(scrape(&s, recording_bytes(&r)), DELIVERY_TAKEN, "");
    CHECK_INT(accepted(&s.g, RAW), 2, "at once");
    CHECK_INT(accepted(&s.g, PUSH), 0, "not on this thread");
    CHECK_INT(testing_metric(s.g.metrics, "profpull_recordings_pending"), 2, "");
    wait_idle(&s);
    CHECK_INT(accepted(&s.g, PUSH), 4, "");
    CHECK_INT(accepted(&s.g, OTHER), 4, "");
    CHECK_INT(accepted(&s.g, CONV), 4, "");
    CHECK_INT(accepted(&s.g, RAW), 2, "");
    CHECK_INT(testing_metric(s.g.metrics, "profpull_recordings_pending"), 0, "");
    CHECK_INT(testing_metric(s.g.metrics, "profpull_recordings_total{result=\"converted\"}"), 2,
              "");
    recording_done(&r);
    end_scrapes(&s);
}

TEST(too_many_recordings)
{
    struct scrapes s;
    struct recording r = make_recording();
    start_scrapes(&s, r.out.len + r.out.len / 2);
    testing_log_expect(s.g.log, "recording cannot be read completely");
    CHECK_INT(scrape(&s, recording_bytes(&r)), DELIVERY_TAKEN, "");
    CHECK_INT(scrape(&s, recording_bytes(&r)), DELIVERY_TAKEN, "by the one that reads it");
    wait_idle(&s);
    CHECK_INT(accepted(&s.g, PUSH), 2, "of the first one");
    CHECK_INT(accepted(&s.g, RAW), 2, "");
    CHECK_INT(testing_metric(s.g.metrics, "profpull_recordings_total{result=\"refused\"}"), 1, "");
    recording_done(&r);
    end_scrapes(&s);
}

/* Conversions that run or wait when everything ends are freed. */
TEST(ends_while_converting)
{
    struct scrapes s;
    struct recording r = make_recording();
    start_scrapes(&s, 0);
    for (size_t i = 0; i < 5; i++) {
        (void)scrape(&s, recording_bytes(&r));
    }
    recording_done(&r);
    end_scrapes(&s);
}

/* The engine: ticks, gates, slots, groups. */
#include "tests/unit/scraper/scraper_world.h"

/* ---- a scrape -------------------------------------------------------------------------------- */

TEST_ON(struct world *w, from_tick_to_profile)
{
    set(w, 0, "pod", "1", AT("h:1"));
    struct scrape_status st = status(w);
    CHECK_INT(st.health, SCRAPE_UNKNOWN, "before");
    CHECK_INT(st.last_start_ns, 0, "never");
    int64_t due = st.next_due_ns;
    scrape_status_done(&st);
    struct http_transfer *t = next_start(w);
    CHECK_STR(t->url, "http://h:1/mem", "url");
    CHECK_INT(t->timeout_ms, 10000, "timeout");
    CHECK_INT(t->start_ns + WALL_START, due, "at its phase");
    turn(w, 120);
    CHECK_INT(metric(w, "profpull_scrapes_in_flight"), 1, "gauge");
    succeed(w, t);
    CHECK_INT(w->n_profiles, 1, "profiles");
    const struct profile *p = w->profiles[0];
    CHECK_INT(p->size, sizeof(PROFILE) - 1, "size");
    assert_memory_equal(p->data, PROFILE, sizeof(PROFILE) - 1);
    CHECK_STR(label(p, "__name__"), "memory", "name");
    CHECK_STR(label(p, "__profile_path__"), "/mem", "path");
    CHECK_STR(label(p, "__delta__"), "", "cumulative, as it came");
    CHECK_STR(label(p, "v"), "1", "v");
    CHECK_STR(label(p, "job"), "one", "job");
    CHECK_INT(p->from_ns, due + 5 * NS_PER_MS, "from");
    CHECK_INT(p->until_ns, w->now_ns + WALL_START, "until");
    CHECK_INT(p->scraped_ms, w->now_ns / NS_PER_MS, "scraped");
    CHECK_INT(p->is_delta, false, "delta");
    CHECK_INT(w->forward_to, 5, "forward_to");
    st = status(w);
    CHECK_INT(st.health, SCRAPE_UP, "after");
    CHECK_STR(reason_name(st.reason), "", "reason");
    CHECK_STR(st.last_error, "", "error");
    CHECK_STR(st.url, "http://h:1/mem", "url");
    CHECK_STR(st.job, "one", "job");
    CHECK_STR(st.source, "pod", "source");
    CHECK_STR(st.type, "memory", "type");
    CHECK_STR(labels_get(st.labels, SV("__name__")).p, "memory", "labels");
    CHECK_INT(st.last_size, sizeof(PROFILE) - 1, "size");
    CHECK_INT(st.last_start_ns, due, "start");
    CHECK_INT(st.successes, 1, "successes");
    CHECK_INT(st.next_due_ns, due + 15 * NS_PER_S, "next");
    scrape_status_done(&st);
    CHECK_INT(metric(w, "profpull_scrapes_total{job=\"one\",type=\"memory\",result=\"ok\"}"), 1,
              "");
    CHECK_INT(scrapes(w, "up"), 1, "up");
    CHECK_INT(scrapes(w, "unknown"), 0, "unknown");
    t = next_start(w);
    CHECK_INT(t->start_ns + WALL_START, due + 15 * NS_PER_S, "an interval later");
    CHECK_INT(t->on_room(t->arg, 1, UINT64_MAX), sizeof(PROFILE) + 1, "an eighth more, and a byte");
}

TEST_ON(struct world *w, sampling_and_delta_types)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
    w->types[DELTA].enabled = true;
    set(w, 0, "pod", "1", AT("h:1"));
    for (int i = 0; i < 2; i++) {
        struct http_transfer *t = next_start(w);
        turn(w, 10);
        succeed(w, t);
        bool cpu = strcmp(t->url, "http://h:1/cpu?seconds=4") == 0;
        CHECK_INT(t->timeout_ms, cpu ? 14000 : 10000, t->url);
        CHECK_STR(label(w->profiles[i], "__delta__"), cpu ? "" : "false", t->url);
        CHECK_INT(w->profiles[i]->is_delta, !cpu, t->url);
    }
}

static int64_t first_start(struct world *w)
{
    struct http_transfer *t = next_start(w);
    int64_t phase = (t->start_ns + w->wall_offset_ns) / NS_PER_MS % 15000;
    succeed(w, t);
    return phase;
}

/* A restart at another time, with another monotonic clock, keeps the phase. */
TEST_ON(struct world *w, same_phase_after_restart)
{
    set(w, 0, "pod", "1", AT("h:1"));
    int64_t phase = first_start(w);
    for (int i = 1; i < 10; i++) {
        engine_free(w->e);
        w->now_ns = INT64_C(777) * i * NS_PER_MS;
        w->wall_offset_ns = WALL_START + INT64_C(3333) * i * NS_PER_MS;
        make_engine(w, 0);
        set(w, 0, "pod", "other", AT("h:1"));
        CHECK_INT(first_start(w), phase, "phase");
    }
}

/* The wall clock jumps an hour each way: no burst, no pause. */
TEST_ON(struct world *w, wall_clock_jumps)
{
    set(w, 0, "pod", "1", AT("h:1"));
    int64_t last = 0;
    for (int i = 0; i < 6; i++) {
        struct http_transfer *t = next_start(w);
        if (last != 0) {
            CHECK_INT(t->start_ns - last, 15 * NS_PER_S, "period");
        }
        last = t->start_ns;
        w->wall_offset_ns += i % 2 == 0 ? 3600 * NS_PER_S : -7200 * NS_PER_S;
        turn(w, 100);
        succeed(w, t);
        const struct profile *p = w->profiles[w->n_profiles - 1];
        CHECK_INT(p->until_ns - p->from_ns, 95 * NS_PER_MS, "the window is as long as it was");
    }
}

/* The machine slept, or the process was stopped, for five minutes. */
TEST_ON(struct world *w, stall)
{
    const char *addresses[41] = {NULL};
    char names[40][16];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "h%d:1", i);
        addresses[i] = names[i];
    }
    set(w, 0, "pod", "1", addresses);
    w->now_ns += 300 * NS_PER_S; /* the process was stopped for five minutes */
    engine_wake(w->e);
    CHECK_INT(w->n_transfers, 0, "no burst");
    CHECK_INT(metric(w, "profpull_scrapes_total{job=\"one\",type=\"memory\",result=\"skipped\"}"),
              40 * 20, "skipped");
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 40, "each one in its phase");
    for (size_t i = 0; i < w->n_transfers; i++) {
        succeed(w, &w->transfers[i]);
    }
}

TEST_ON(struct world *w, ticks_are_skipped_while_one_runs)
{
    set(w, 0, "pod", "1", AT("h:1"));
    struct http_transfer *t = next_start(w);
    turn(w, 31000);
    CHECK_INT(w->n_transfers, 1, "never twice at once");
    struct scrape_status st = status(w);
    CHECK_INT(st.skipped, 2, "skipped");
    CHECK_INT(st.in_flight, true, "in flight");
    scrape_status_done(&st);
    succeed(w, t);
    CHECK_INT(next_start(w)->start_ns - t->start_ns, 45 * NS_PER_S, "the phase is kept");
}

/* A target that never answers delays no other scrape, and its slot is free after the timeout. */
TEST_ON(struct world *w, a_hung_target_delays_nobody)
{
    w->types[CPU].enabled = true;
    testing_log_expect(w->log, "scrape failed");
    set(w, 0, "s", "1", AT("hung:1", "a:1", "b:1"));
    size_t seen = 0;
    size_t live = 0;
    while (w->n_transfers < 200) {
        turn(w, 1);
        for (; seen < w->n_transfers; seen++) {
            if (strncmp(w->transfers[seen].url, "http://hung:1/", 14) != 0) {
                succeed(w, &w->transfers[seen]);
            } else {
                live++;
            }
        }
    }
    CHECK_INT(live, 2, "of the hung one nothing is asked again");
    CHECK_INT(slots_used(&w->e->slots), 2, "and nothing else is in flight");
    CHECK_INT(metric(w, "profpull_scrape_lateness_seconds_bucket{le=\"0.001\"}"), 200, "in time");
    for (size_t i = 0; i < w->n_transfers; i++) {
        if (w->transfers[i].live) {
            answer(w, &w->transfers[i], HTTP_ERR_TIMEOUT, 0, "", 0);
        }
    }
    CHECK_INT(slots_used(&w->e->slots), 0, "free");
}

/* ---- failures -------------------------------------------------------------------------------- */

TEST_ON(struct world *w, failures)
{
    static const struct {
        enum http_result result;
        bool logged;
        long status;
        const char *body, *reason, *error;
    } rows[] = {
        {HTTP_ERR_CONNECT, true, 0, "", "connect", "the connection was refused"},
        {HTTP_ERR_CONNECT, false, 0, "", "connect", "the connection was refused"},
        {HTTP_DONE, true, 500, "oops\r\n", "http_500", "HTTP 500: oops"},
        {HTTP_DONE, true, 404, "", "http_404", "HTTP 404"},
        {HTTP_DONE, false, 404, "other text", "http_404", "HTTP 404: other text"},
        {HTTP_DONE, true, 302, "", "redirect", "HTTP 302 to nowhere, which is not followed"},
        {HTTP_DONE, true, 200, "", "empty", "empty body"},
        {HTTP_DONE, true, 200, "<html>login</html>", "not_pprof_html",
         "not a profile but an HTML page: \"<html>login</html>\""},
        {HTTP_DONE, true, 500, "Could not enable CPU profiling: cpu profiling already in use",
         "cpu_in_use",
         "HTTP 500: Could not enable CPU profiling: cpu profiling already in use; somebody else "
         "profiles this process (so in 1 of the last 9 attempts)"},
    };
    set(w, 0, "pod", "1", AT("h:1"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_transfer *t = next_start(w);
        size_t logged = strlen(testing_log_text(w->log));
        if (rows[i].logged) {
            testing_log_expect(w->log, "scrape failed");
        }
        answer(w, t, rows[i].result, rows[i].status, rows[i].body, strlen(rows[i].body));
        CHECK_INT(strlen(testing_log_text(w->log)) > logged, rows[i].logged, rows[i].error);
        struct scrape_status st = status(w);
        CHECK_INT(st.health, SCRAPE_DOWN, rows[i].error);
        CHECK_STR(reason_name(st.reason), rows[i].reason, rows[i].error);
        CHECK_STR(st.last_error, rows[i].error, "last error");
        CHECK_INT(st.failures, i + 1, "failures");
        scrape_status_done(&st);
    }
    CHECK_CONTAINS(testing_log_text(w->log),
                   "job=one source=pod service=unspecified type=memory url=http://h:1/mem "
                   "suppressed=0 reason=connect err=\"the connection was refused\" "
                   "hint=\"nothing answers there: check the port",
                   "who fails and what to do");
    CHECK_INT(w->n_profiles, 0, "nothing is passed on");
    CHECK_INT(metric(w, "profpull_scrape_failures_total{job=\"one\",reason=\"http_404\"}"), 2,
              "counted");
    CHECK_INT(scrapes(w, "down"), 1, "down");
    succeed(w, next_start(w));
    CHECK_CONTAINS(testing_log_text(w->log), "scrape works again", "recovered");
    struct scrape_status st = status(w);
    CHECK_INT(st.health, SCRAPE_UP, "up again");
    CHECK_STR(st.last_error, "", "no error");
    scrape_status_done(&st);
}

TEST_ON(struct world *w, no_memory_for_a_transfer)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
    set(w, 0, "pod", "1", AT("h:1"));
    w->refuse_start = true;
    testing_log_expect(w->log, "scrape failed");
    turn(w, 15000);
    struct scrape_status st = status(w);
    CHECK_STR(reason_name(st.reason), "memory", "reason");
    scrape_status_done(&st);
    w->refuse_start = false;
    succeed(w, next_start(w));
}

/* ---- gates and slots ------------------------------------------------------------------------- */

/* Two jobs, two sampling types each, one process: they never overlap, and none starves. */
TEST_ON(struct world *w, sampling_never_overlaps)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
    w->types[FGPROF].enabled = true;
    w->jobs[1].path_prefix = "/two";
    set(w, 0, "pod", "1", AT("10.0.0.1:80"));
    set(w, 1, "pod", "1", AT("[::ffff:10.0.0.1]:80")); /* the same process, spelled differently */
    struct rng rng;
    rng_seed(&rng, 3);
    size_t seen = 0;
    size_t starts[4] = {0};
    static const char *const ends[] = {"80/cpu?seconds=4", "80/fg?seconds=4", "two/cpu?seconds=4",
                                       "two/fg?seconds=4"};
    int64_t free_at = 0;
    for (int i = 0; i < 300; i++) {
        turn(w, 100);
        assert_true(w->n_transfers - seen <= 1);
        if (w->n_transfers == seen) {
            continue;
        }
        struct http_transfer *t = &w->transfers[seen++];
        assert_true(t->start_ns >= free_at);
        for (size_t k = 0; k < 4; k++) {
            starts[k] += sv_ends_with(sv_from(t->url), sv_from(ends[k]));
        }
        turn(w, rng_range(&rng, 100, 9000));
        CHECK_INT(w->n_transfers, seen, "nothing else has started");
        free_at = w->now_ns;
        if (rng_range(&rng, 0, 4) == 0) {
            w->jobs[0].forward_to = 1;
            set(w, 0, "pod", i % 2 == 0 ? "1" : "2",
                AT("10.0.0.1:80")); /* labels change in the meantime */
        }
        succeed(w, t);
    }
    for (size_t k = 0; k < 4; k++) {
        assert_true(starts[k] > 10);
    }
}

/* Scrapes of another process do not wait, nor do other types. */
TEST_ON(struct world *w, only_sampling_of_one_process_waits)
{
    w->types[CPU].enabled = true;
    set(w, 0, "a", "1", AT("h:1"));
    set(w, 0, "b", "1", AT("h:2"));
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 4, "all run");
    for (size_t i = 0; i < 4; i++) {
        succeed(w, &w->transfers[i]);
    }
}

TEST_ON(struct world *w, waiting_scrapes_skip_ticks)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
    w->types[FGPROF].enabled = true;
    set(w, 0, "pod", "1", AT("h:1"));
    struct http_transfer *t = next_start(w);
    turn(w, 46000);
    CHECK_INT(w->n_transfers, 1, "one runs, one waits");
    CHECK_INT(metric(w, "type=\"process_cpu\",result=\"skipped\"}") +
                  metric(w, "type=\"fgprof\",result=\"skipped\"}"),
              3 + 2, "skipped");
    succeed(w, t);
    CHECK_INT(w->n_transfers, 2, "the other one at once");
    succeed(w, &w->transfers[1]);
}

/* A removed scrape leaves the gate and the queue. */
TEST_ON(struct world *w, turns_survive_removal)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
    w->jobs[1].path_prefix = "/two";
    set(w, 0, "x", "1", AT("h:1"));
    struct http_transfer *t = next_start(w);
    set(w, 1, "y", "1", AT("h:1"));
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 1, "y waits");
    set(w, 1, "y", "1", NOTHING); /* leaves the queue */
    set(w, 1, "y", "1", AT("h:1"));
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 1, "y waits again");
    set(w, 0, "x", "1", NOTHING);
    assert_true(t->cancelled);
    CHECK_INT(w->n_transfers, 2, "y's turn");
    CHECK_STR(w->transfers[1].url, "http://h:1/two/cpu?seconds=4", "url");
    succeed(w, &w->transfers[1]);
}

TEST_ON(struct world *w, slots_are_first_come_first_served)
{
    engine_free(w->e);
    make_engine(w, 2);
    set(w, 0, "a", "1", AT("h1:1", "h2:1", "h3:1", "h4:1", "h5:1"));
    char order[5][32];
    struct scrape_status st[5];
    size_t cursor = 0;
    CHECK_INT(engine_snapshot(w->e, &cursor, st, 5), 5, "snapshot");
    for (size_t i = 0; i < 5; i++) { /* the order in which they are due */
        size_t rank = 0;
        for (size_t k = 0; k < 5; k++) {
            rank += st[k].next_due_ns < st[i].next_due_ns;
        }
        snprintf(order[rank], sizeof(order[rank]), "%s", st[i].url);
    }
    for (size_t i = 0; i < 5; i++) {
        scrape_status_done(&st[i]);
    }
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 2, "two at once");
    CHECK_INT(metric(w, "profpull_scrapes_waiting"), 3, "the others wait");
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(w->transfers[i].url, order[i], "in order");
        succeed(w, &w->transfers[i]);
        CHECK_INT(w->n_transfers, i + 3 < 5 ? i + 3 : 5, "the next one");
    }
    CHECK_INT(metric(w, "profpull_scrapes_waiting"), 0, "none waits");
}

/* Many scrapes at one instant do not block the loop. */
TEST_ON(struct world *w, a_wake_up_starts_a_batch)
{
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof(name), "h%d:1", i);
        set(w, 0, name, "1", AT(name));
    }
    w->now_ns += 14999 * NS_PER_MS;
    engine_wake(w->e);
    CHECK_INT(w->n_transfers, ENGINE_BATCH, "one batch");
    assert_true(w->armed_ms <= w->now_ns / NS_PER_MS);
    turn(w, 0);
    CHECK_INT(w->n_transfers, 200, "then the rest");
}

/* ---- groups ---------------------------------------------------------------------------------- */

TEST_ON(struct world *w, groups_change)
{
    set(w, 0, "s", "1", AT("a:1", "b:1"));
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 2, "both");
    struct http_transfer *a = &w->transfers[0];
    struct http_transfer *b = &w->transfers[1];
    if (strcmp(a->url, "http://a:1/mem") != 0) {
        a = &w->transfers[1];
        b = &w->transfers[0];
    }
    set(w, 0, "s", "1", AT("a:1"));
    assert_true(b->cancelled);
    assert_true(a->live);
    set(w, 0, "s", "2", AT("a:1")); /* another label: a request in flight keeps the old one */
    assert_true(a->live);
    succeed(w, a);
    CHECK_STR(label(w->profiles[0], "v"), "1", "old labels");
    struct http_transfer *again = next_start(w);
    CHECK_INT(again->start_ns - a->start_ns, 15 * NS_PER_S, "same phase");
    succeed(w, again);
    CHECK_STR(label(w->profiles[1], "v"), "2", "new labels");
    struct scrape_status st = status(w);
    CHECK_INT(st.successes, 2, "the state was kept");
    scrape_status_done(&st);
    set(w, 0, "s", "1", NOTHING);
    set(w, 0, "s", "1", NOTHING);
    size_t cursor = 0;
    CHECK_INT(engine_snapshot(w->e, &cursor, &st, 1), 0, "all gone");
    CHECK_INT(metric(w, "profpull_targets{state=\"active\"}"), 0, "targets");
    CHECK_INT(scrapes(w, "up"), 0, "scrapes");
    turn(w, 60000);
    CHECK_INT(w->n_transfers, 3, "nothing more");
}

/* The profiles of a scrape share one set of labels until the labels change. */
TEST_ON(struct world *w, labels_are_built_once)
{
    set(w, 0, "s", "1", AT("a:1"));
    succeed(w, next_start(w));
    succeed(w, next_start(w));
    assert_ptr_equal(w->profiles[0]->labels, w->profiles[1]->labels);
    set(w, 0, "s", "2", AT("a:1"));
    succeed(w, next_start(w));
    CHECK_STR(label(w->profiles[1], "v"), "1", "old labels");
    CHECK_STR(label(w->profiles[2], "v"), "2", "new labels");
}

TEST_ON(struct world *w, interval_changes)
{
    set(w, 0, "s", "1", AT("a:1"));
    succeed(w, next_start(w));
    w->types[MEMORY].interval_ms = 15000; /* a configuration with another interval */
    struct config_type other[4];
    memcpy(other, w->types, sizeof(other));
    other[MEMORY].interval_ms = 2000;
    w->jobs[1].types = other;
    struct target *t = make_target(w, 1, "a:1", "v", "1");
    assert_true(engine_set_group(w->e, 0, "s", &t, 1));
    size_t before = w->n_transfers;
    for (int i = 0; i < 5; i++) {
        turn(w, 2000);
        CHECK_INT(w->n_transfers, before + (size_t)i + 1, "every two seconds");
        succeed(w, &w->transfers[before + (size_t)i]);
    }
    engine_set_group(w->e, 0, "s", NULL, 0); /* its types end with this function */
}

TEST_ON(struct world *w, duplicates)
{
    testing_log_expect(w->log, "duplicate scrape set aside");
    set(w, 0, "s", "first", AT("a:1"));
    set(w, 0, "r", "second", AT("a:1"));
    size_t said = strlen(testing_log_text(w->log));
    CHECK_CONTAINS(testing_log_text(w->log),
                   "job=one source=r scraped_by_job=one scraped_by_source=s", "who and for whom");
    set(w, 0, "t", "third", AT("a:1", "a:1"));
    assert_null(strstr(testing_log_text(w->log) + said, "level=warn"));
    CHECK_INT(scrapes(w, "duplicate"), 3, "set aside");
    CHECK_INT(metric(w, "profpull_targets_refused_total{reason=\"duplicate\"}"), 3, "counted");
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 1, "scraped once");
    succeed(w, &w->transfers[0]);
    CHECK_STR(label(w->profiles[0], "v"), "first", "the first one wins");
    struct http_transfer *t = next_start(w);
    set(w, 0, "s", "first", NOTHING);
    assert_true(t->cancelled); /* the answer could not be attributed */
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 3, "the next one takes over in the same phase");
    succeed(w, &w->transfers[2]);
    CHECK_STR(label(w->profiles[1], "v"), "second", "the second one");
    struct scrape_status st = status(w);
    CHECK_INT(st.successes, 2, "the state was kept");
    scrape_status_done(&st);
    set(w, 0, "t", "third", NOTHING);
    CHECK_INT(scrapes(w, "duplicate"), 0, "none left");
    set(w, 0, "r", "second", NOTHING);
    turn(w, 30000);
    CHECK_INT(w->n_transfers, 3, "all gone");
}

/* With equal labels (for example if a reload renumbers the job) nothing is interrupted. */
TEST_ON(struct world *w, duplicates_with_equal_labels)
{
    w->jobs[1].name = "one";
    set(w, 0, "s", "1", AT("a:1"));
    struct http_transfer *t = next_start(w);
    set(w, 1, "s", "1", AT("a:1"));
    set(w, 0, "s", "1", NOTHING);
    assert_true(t->live);
    succeed(w, t);
    CHECK_INT(w->n_profiles, 1, "profile");
}

/* An address moves to another pod between two events. An answer carries the labels as of its
 * request, and is dropped once the pod is known to be another one. */
TEST_ON(struct world *w, address_goes_to_another_pod)
{
    static const struct {
        const char *before, *after;
        bool dropped;
    } rows[] = {
        {"uid-1", "uid-1", false}, {"uid-1", "uid-2", true}, {"", "uid-1", false},
        {"uid-1", "", false},      {"", "", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct target *t = make_target(w, 0, "a:1", "__meta_kubernetes_pod_uid", rows[i].before);
        assert_true(engine_set_group(w->e, 0, "slice", &t, 1));
        struct http_transfer *transfer = next_start(w);
        t = make_target(w, 0, "a:1", "__meta_kubernetes_pod_uid", rows[i].after);
        assert_true(engine_set_group(w->e, 0, "slice", &t, 1));
        CHECK_INT(transfer->cancelled, rows[i].dropped, rows[i].after);
        if (transfer->live) {
            succeed(w, transfer);
        }
        int64_t start_ns = transfer->start_ns;
        transfer = next_start(w);
        CHECK_INT(transfer->start_ns - start_ns, 15 * NS_PER_S, "in its phase");
        succeed(w, transfer);
        assert_true(engine_set_group(w->e, 0, "slice", NULL, 0));
    }
}

TEST_ON(struct world *w, target_limit)
{
    w->jobs[0].target_limit = 3;
    testing_log_expect(w->log, "target_limit reached");
    set(w, 0, "s", "1", AT("a:1", "b:1"));
    set(w, 0, "t", "1", AT("c:1", "d:1", "e:1"));
    CHECK_INT(metric(w, "profpull_targets{state=\"active\"}"), 3, "active");
    CHECK_INT(metric(w, "profpull_targets{state=\"refused\"}"), 2, "refused");
    CHECK_INT(metric(w, "profpull_targets_refused_total{reason=\"limit\"}"), 2, "counted");
    set(w, 0, "t", "1", AT("e:1", "d:1", "c:1")); /* existing ones stay, whatever the order */
    set(w, 1, "u", "1", AT("f:1"));               /* another job has its own limit */
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 4, "scraped");
    bool c = false;
    for (size_t i = 0; i < 4; i++) {
        c = c || strcmp(w->transfers[i].url, "http://c:1/mem") == 0;
        succeed(w, &w->transfers[i]);
    }
    assert_true(c);
    CHECK_INT(metric(w, "profpull_targets_refused_total{reason=\"limit\"}"), 2, "no news");
    set(w, 0, "s", "1", NOTHING); /* below the limit: the others are admitted */
    CHECK_INT(metric(w, "profpull_targets{state=\"active\"}"), 4, "active");
    CHECK_INT(metric(w, "profpull_targets{state=\"refused\"}"), 0, "refused");
    size_t before = w->n_transfers;
    turn(w, 15000);
    CHECK_INT(w->n_transfers - before, 4, "scraped");
}

TEST_ON(struct world *w, stopping)
{
    w->types[CPU].enabled = true;
    w->types[FGPROF].enabled = true;
    set(w, 0, "s", "1", AT("a:1", "b:1"));
    turn(w, 14000);
    assert_true(w->n_transfers > 0);
    engine_stop(w->e);
    engine_stop(w->e);
    size_t n = w->n_transfers;
    for (size_t i = 0; i < n; i++) {
        assert_false(w->transfers[i].live);
    }
    struct target *late = make_target(w, 0, "c:1", "v", "1");
    assert_false(engine_set_group(w->e, 0, "t", &late, 1));
    turn(w, 60000);
    CHECK_INT(w->n_transfers, n, "nothing more");
    CHECK_INT(w->n_profiles, 0, "nothing of what was cancelled");
}

TEST_ON(struct world *w, snapshots_in_pages)
{
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof(name), "h%d:1", i);
        set(w, 0, name, "1", AT(name));
    }
    set(w, 0, "h7:1", "1", NOTHING);
    size_t cursor = 0;
    size_t total = 0;
    size_t n;
    struct scrape_status st[40];
    while ((n = engine_snapshot(w->e, &cursor, st, 40)) > 0) {
        for (size_t i = 0; i < n; i++) {
            assert_true(strcmp(st[i].url, "http://h7:1/mem") != 0);
            scrape_status_done(&st[i]);
        }
        total += n;
    }
    CHECK_INT(total, 99, "each once");
}

/* ---- random operations ----------------------------------------------------------------------- */

static void check_no_overlap(const struct world *w)
{
    size_t sampling[8] = {0};
    for (size_t i = 0; i < w->n_transfers; i++) {
        const struct http_transfer *t = &w->transfers[i];
        if (t->live && strstr(t->url, "seconds=") != NULL) {
            CHECK_INT(++sampling[t->url[7] - 'a'], 1, t->url);
        }
    }
}

static void random_answer(struct world *w, struct rng *rng)
{
    for (size_t i = 0; i < w->n_transfers; i++) {
        if (w->transfers[i].live && rng_range(rng, 0, 3) == 0) {
            if (rng_range(rng, 0, 5) == 0) {
                answer(w, &w->transfers[i], HTTP_ERR_CONNECT, 0, "", 0);
            } else {
                succeed(w, &w->transfers[i]);
            }
            return;
        }
    }
}

static void random_group(struct world *w, struct rng *rng)
{
    static const char *const names[] = {"a:1", "b:1", "c:1", "d:1", "e:1", "f:1"};
    static const char *const sources[] = {"s", "t", "u"};
    static const char *const values[] = {"1", "2"};
    const char *addresses[7] = {NULL};
    size_t n = (size_t)rng_range(rng, 0, 6);
    for (size_t i = 0; i < n; i++) {
        addresses[i] = names[rng_range(rng, 0, 6)];
    }
    set(w, (size_t)rng_range(rng, 0, 2), sources[rng_range(rng, 0, 3)],
        values[rng_range(rng, 0, 2)], addresses);
}

/* Targets are added and removed, some answers never come: sampling scrapes of one process never
 * overlap, and nothing leaks. */
TEST_ON(struct world *w, random_life)
{
    engine_free(w->e);
    make_engine(w, 5);
    w->types[CPU].enabled = true;
    w->types[FGPROF].enabled = true;
    w->jobs[0].target_limit = 4;
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    struct rng rng;
    rng_seed(&rng, 99);
    for (int i = 0; i < 3000 && w->n_transfers + 50 < TRANSFERS_MAX; i++) {
        turn(w, rng_range(&rng, 0, 3000));
        check_no_overlap(w);
        random_answer(w, &rng);
        if (rng_range(&rng, 0, 4) == 0) {
            random_group(w, &rng);
        }
        CHECK_INT(slots_used(&w->e->slots) <= 5, true, "slots");
        if (w->n_profiles > 1000) {
            forget_profiles(w);
        }
    }
    static const char *const sources[] = {"s", "t", "u"};
    for (size_t i = 0; i < 6; i++) {
        set(w, i % 2, sources[i / 2], "1", NOTHING);
    }
    CHECK_INT(w->e->table.n, 0, "scrapes");
    CHECK_INT(w->e->schedule.n, 0, "schedule");
    CHECK_INT(slots_used(&w->e->slots), 0, "in flight");
    CHECK_INT(map_count(w->e->gate.processes), 0, "turns");
    CHECK_INT(map_count(w->e->groups), 0, "groups");
    static const char *const gauges[] = {
        "profpull_targets{state=\"active\"}",
        "profpull_targets{state=\"refused\"}",
        "profpull_scrapes_waiting",
        "profpull_scrapes_in_flight",
    };
    for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
        CHECK_INT(metric(w, gauges[i]), 0, gauges[i]);
    }
    static const char *const states[] = {"unknown", "up", "down", "duplicate", "follows"};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        CHECK_INT(scrapes(w, states[i]), 0, states[i]);
    }
}

/* The address of a name that comes from a Kubernetes object is checked when it has been looked up;
 * not if the job allows all of it, if a proxy looks names up, or if the operator chose the name. */
TEST_ON(struct world *w, names_are_checked)
{
    static const struct {
        const char *row, *pinned, *proxy;
        bool allowed, want;
    } rows[] = {
        {"of an object", "web", NULL, false, true},
        {"allowed", "web", NULL, true, false},
        {"through a proxy", "web", "http://proxy:3128", false, false},
        {"of a list", NULL, NULL, false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        w->jobs[0].allow_special_address = rows[i].allowed;
        w->jobs[0].http.proxy_url = rows[i].proxy;
        labels_builder_reset(w->b, NULL);
        labels_builder_set_str(w->b, "__address__", "web:80");
        struct target *t = target_make(NULL, 0, &w->jobs[0], w->b, rows[i].pinned, &err);
        CHECK_STR(err.msg, "", rows[i].row);
        assert_true(engine_set_group(w->e, 0, "s", &t, 1));
        CHECK_INT(next_start(w)->checks_address, rows[i].want, rows[i].row);
        assert_true(engine_set_group(w->e, 0, "s", NULL, 0));
    }
}

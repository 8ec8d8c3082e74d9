/* The engine over many cycles: continuous sampling, targets that another client profiles too,
 * absent types, servers that cut long profiles off. */
#include "tests/unit/scraper/scraper_world.h"

/* The body of Go's refusal of a second profile. */
#define GO_CPU_IN_USE "Could not enable CPU profiling: cpu profiling already in use\n"

static void only_cpu(struct world *w)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
}

static void continuous_cpu(struct world *w)
{
    only_cpu(w);
    w->types[CPU].continuous = true;
    w->types[CPU].seconds = 15;
}

/* A target like Go: the answer comes when the profile is complete and written. Returns how long the
 * target was being sampled. */
static int64_t let_it_sample(struct world *w, struct http_transfer *t, int64_t seconds)
{
    int64_t begin_ns = t->start_ns + 1 * NS_PER_MS;
    int64_t end_ns = begin_ns + seconds * NS_PER_S;
    turn(w, (end_ns - w->now_ns) / NS_PER_MS + 40);
    succeed(w, t);
    return end_ns - begin_ns;
}

static struct http_transfer *newest(struct world *w)
{
    return &w->transfers[w->n_transfers - 1];
}

/* ---- continuous ------------------------------------------------------------------------------ */

/* At least 99 % of a target's time lies within a profile, and no two profiles overlap. */
TEST_ON(struct world *w, continuous_covers_nearly_all)
{
    continuous_cpu(w);
    w->types[MEMORY].enabled = true;
    set(w, 0, "pod", "1", AT("h:1"));
    struct http_transfer *t = next_start(w);
    while (strcmp(t->url, "http://h:1/cpu?seconds=15") != 0) {
        succeed(w, t);
        t = next_start(w);
    }
    int64_t begin_ns = w->now_ns;
    int64_t sampled_ns = 0;
    const struct profile *last = NULL;
    for (int i = 0; i < 500; i++) {
        sampled_ns += let_it_sample(w, t, 15);
        const struct profile *p = w->profiles[w->n_profiles - 1];
        CHECK_INT(p->until_ns - p->from_ns, 15036 * NS_PER_MS, "the window is as long as it was");
        assert_true(last == NULL || p->from_ns >= last->until_ns);
        assert_true(last == NULL || p->from_ns - last->until_ns <= 10 * NS_PER_MS);
        last = p;
        set(w, 0, "pod", i % 2 == 0 ? "1" : "2", AT("h:1")); /* labels change in the meantime */
        turn(w, 2);
        for (size_t k = 0; k < w->n_transfers; k++) { /* of /mem, which run in parallel */
            if (w->transfers[k].live && strstr(w->transfers[k].url, "/mem") != NULL) {
                succeed(w, &w->transfers[k]);
            }
        }
        t = newest(w);
        assert_true(t->live);
        CHECK_STR(t->url, "http://h:1/cpu?seconds=15", "the next one");
    }
    double coverage = (double)sampled_ns / (double)(w->now_ns - begin_ns);
    assert_true(coverage >= 0.99);
    assert_true(coverage <= 1.0);
    CHECK_INT(metric(w, "profpull_scrapes_total{job=\"one\",type=\"process_cpu\","
                        "result=\"skipped\"}"),
              0, "no tick is missed where there are none");
}

/* Another sampling type gets to run, at the expense of the continuous one. */
TEST_ON(struct world *w, continuous_takes_turns)
{
    continuous_cpu(w);
    w->types[FGPROF].enabled = true;
    w->types[FGPROF].interval_ms = 60000;
    set(w, 0, "pod", "1", AT("h:1"));
    int64_t begin_ns = w->now_ns;
    int64_t cpu_ns = 0;
    size_t fgprof = 0;
    size_t seen = 0;
    while (w->now_ns - begin_ns < 3600 * NS_PER_S) {
        if (w->n_transfers == seen) {
            turn(w, 1);
            continue;
        }
        struct http_transfer *t = &w->transfers[seen++];
        bool is_cpu = strstr(t->url, "/cpu") != NULL;
        turn(w, is_cpu ? 14500 : 3500);
        CHECK_INT(w->n_transfers, seen, "one at a time");
        int64_t sampled = let_it_sample(w, t, is_cpu ? 15 : 4);
        cpu_ns += is_cpu ? sampled : 0;
        fgprof += !is_cpu;
    }
    double coverage = (double)cpu_ns / (double)(w->now_ns - begin_ns);
    assert_true(coverage > 0.99 * 56 / 60);
    assert_true(fgprof >= 59 && fgprof <= 61);
}

/* An unreachable target is tried once an interval, one that answers at once every `seconds`:
 * nothing spins. */
TEST_ON(struct world *w, continuous_never_spins)
{
    continuous_cpu(w);
    testing_log_expect(w->log, "scrape failed");
    set(w, 0, "pod", "1", AT("h:1"));
    for (int row = 0; row < 2; row++) {
        size_t before = w->n_transfers;
        for (int ms = 0; ms < 600000; ms++) {
            turn(w, 1);
            struct http_transfer *t = w->n_transfers == 0 ? NULL : newest(w);
            if (t != NULL && t->live && row == 0) {
                answer(w, t, HTTP_ERR_CONNECT, 0, "", 0);
            } else if (t != NULL && t->live) {
                succeed(w, t);
            }
        }
        size_t n = w->n_transfers - before;
        assert_true(n >= 39 && n <= 41);
    }
}

/* The process was stopped while a scrape ran or waited to start. */
TEST_ON(struct world *w, continuous_after_a_pause)
{
    continuous_cpu(w);
    set(w, 0, "pod", "1", AT("h:1"));
    struct http_transfer *t = next_start(w);
    w->now_ns += 300 * NS_PER_S;
    engine_wake(w->e);
    CHECK_INT(w->n_transfers, 1, "still the same");
    succeed(w, t);
    w->now_ns += 300 * NS_PER_S; /* it was due at once */
    engine_wake(w->e);
    size_t n = w->n_transfers;
    turn(w, 15000);
    CHECK_INT(w->n_transfers, n + 1, "one, not a burst");
    let_it_sample(w, newest(w), 15);
    turn(w, 1);
    CHECK_INT(w->n_transfers, n + 2, "and on");
    succeed(w, newest(w));
}

/* ---- another client profiles the process ----------------------------------------------------- */

/* Another scraper takes ten of every fifteen seconds, exactly at our phase. We look for a gap, find
 * it and stay there. */
TEST_ON(struct world *w, finds_the_gap)
{
    only_cpu(w);
    testing_log_expect(w->log, "scrape failed");
    set(w, 0, "pod", "1", AT("h:1"));
    int64_t other_ns = next_start(w)->start_ns - 1;
    size_t seen = 0;
    size_t good = 0;
    size_t good_late = 0;
    size_t tries_late = 0;
    int64_t begin_ns = w->now_ns;
    while (w->now_ns - begin_ns < 1500 * NS_PER_S) {
        if (w->n_transfers == seen) {
            turn(w, 1);
            continue;
        }
        struct http_transfer *t = &w->transfers[seen++];
        bool late = w->now_ns - begin_ns > 300 * NS_PER_S;
        int64_t phase = (t->start_ns - other_ns) % (15 * NS_PER_S);
        tries_late += late;
        if (phase < 10 * NS_PER_S) {
            answer(w, t, HTTP_DONE, 500, GO_CPU_IN_USE, sizeof(GO_CPU_IN_USE) - 1);
        } else {
            let_it_sample(w, t, 4);
            good++;
            good_late += late;
        }
    }
    assert_true(seen <= 2 * 101);
    assert_true(good > 80);
    CHECK_INT(good_late, tries_late, "in the end it never meets the other one");
    CHECK_INT(metric(w, "profpull_scrape_failures_total{job=\"one\",reason=\"cpu_in_use\"}"),
              seen - good, "");
}

/* At most two attempts in an interval, and the page of targets shows how many conflicted. */
TEST_ON(struct world *w, never_free)
{
    only_cpu(w);
    testing_log_expect(w->log, "scrape failed");
    set(w, 0, "pod", "1", AT("h:1"));
    int64_t begin_ns = w->now_ns;
    while (w->now_ns - begin_ns < 1500 * NS_PER_S) {
        turn(w, 10);
        if (w->n_transfers > 0 && newest(w)->live) {
            answer(w, newest(w), HTTP_DONE, 500, GO_CPU_IN_USE, sizeof(GO_CPU_IN_USE) - 1);
        }
    }
    assert_true(w->n_transfers > 90 && w->n_transfers <= 202);
    struct scrape_status st = status(w);
    CHECK_STR(reason_name(st.reason), "cpu_in_use", "reason");
    CHECK_INT(st.conflicts, 16, "conflicts");
    CHECK_INT(st.attempts, 16, "attempts");
    CHECK_CONTAINS(st.last_error,
                   "cpu profiling already in use; somebody else profiles this process (so in 16 of "
                   "the last 16 attempts)",
                   "");
    scrape_status_done(&st);
    while (!newest(w)->live) {
        turn(w, 10);
    }
    succeed(w, newest(w));
    st = status(w);
    CHECK_STR(st.last_error, "", "it worked");
    CHECK_INT(st.conflicts, 15, "and still one sees it");
    scrape_status_done(&st);
}

/* ---- absent types ---------------------------------------------------------------------------- */

static size_t count_text(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        n++;
    }
    return n;
}

/* Answers all requests of the next intervals with this status. */
static size_t answer_for(struct world *w, int intervals, long status)
{
    size_t n = 0;
    for (int i = 0; i < intervals * 150; i++) {
        turn(w, 100);
        if (w->n_transfers > 0 && newest(w)->live) {
            bool ok = status == 200;
            answer(w, newest(w), HTTP_DONE, status, ok ? PROFILE : "404 page not found\n",
                   ok ? sizeof(PROFILE) - 1 : 19);
            n++;
        }
    }
    return n;
}

TEST_ON(struct world *w, absent_types_are_asked_rarely)
{
    testing_log_expect(w->log, "scrape failed");
    log_set(testing_log(w->log), LOG_INFO, LOG_LOGFMT);
    set(w, 0, "pod", "1", AT("h:1"));
    CHECK_INT(answer_for(w, 2, 404), 2, "at first it is asked as ever");
    CHECK_INT(scrapes(w, "down"), 1, "down");
    answer_for(w, 1, 404);
    CHECK_INT(scrapes(w, "absent"), 1, "absent");
    CHECK_INT(scrapes(w, "down"), 0, "not down");
    struct scrape_status st = status(w);
    CHECK_INT(st.health, SCRAPE_ABSENT, "health");
    CHECK_STR(reason_name(st.reason), "http_404", "reason");
    CHECK_STR(st.last_error, "HTTP 404: 404 page not found", "error");
    assert_true(st.next_due_ns - w->now_ns - w->wall_offset_ns > 145 * NS_PER_S);
    scrape_status_done(&st);
    set(w, 0, "pod", "2", AT("h:1")); /* the state survives another label */
    size_t n = answer_for(w, 100, 404);
    assert_true(n >= 8 && n <= 10);
    CHECK_INT(count_text(testing_log_text(w->log), "scrape failed"), 1, "said once");
    CHECK_INT(count_text(testing_log_text(w->log), "profile type is absent"), 1, "said once");
    while (w->n_profiles == 0) {
        answer_for(w, 1, 200);
    }
    CHECK_INT(answer_for(w, 10, 200), 10, "back in every interval");
    CHECK_INT(count_text(testing_log_text(w->log), "profile type exists again"), 1, "said once");
    CHECK_INT(scrapes(w, "absent"), 0, "absent");
    CHECK_INT(scrapes(w, "up"), 1, "up");
    CHECK_INT(metric(w, "profpull_scrapes_total{job=\"one\",type=\"memory\",result=\"skipped\"}"),
              0, "not asking is not skipping");
    CHECK_STR(label(w->profiles[0], "v"), "2", "new labels");
}

/* The target restarts: absence is forgotten and the type is scraped as usual. */
TEST_ON(struct world *w, absent_until_something_else_comes)
{
    testing_log_expect(w->log, "scrape failed");
    set(w, 0, "pod", "1", AT("h:1"));
    answer_for(w, 3, 404);
    CHECK_INT(scrapes(w, "absent"), 1, "absent");
    struct http_transfer *t = NULL;
    while (t == NULL) {
        turn(w, 1000);
        t = newest(w)->live ? newest(w) : NULL;
    }
    answer(w, t, HTTP_ERR_CONNECT, 0, "", 0);
    CHECK_INT(scrapes(w, "down"), 1, "down");
    CHECK_INT(answer_for(w, 2, 200), 2, "asked in every interval");
}

/* ---- profiles that take too long ------------------------------------------------------------- */

TEST_ON(struct world *w, too_long_for_the_server)
{
    static const char go[] = "profile duration exceeds server's WriteTimeout\n";
    only_cpu(w);
    testing_log_expect(w->log, "scrape failed");
    set(w, 0, "pod", "1", AT("h:1"));
    answer(w, next_start(w), HTTP_DONE, 400, go, sizeof(go) - 1);
    struct scrape_status st = status(w);
    CHECK_STR(reason_name(st.reason), "duration_too_long", "said by Go");
    CHECK_CONTAINS(st.last_error,
                   "HTTP 400: profile duration exceeds server's WriteTimeout: set seconds of the "
                   "profile type process_cpu (now 4s) below that WriteTimeout",
                   "");
    scrape_status_done(&st);
    succeed(w, next_start(w));
    for (int i = 0; i < 2; i++) { /* a proxy that allows three seconds */
        struct http_transfer *t = next_start(w);
        turn(w, 3000);
        answer(w, t, HTTP_ERR_CUT, 0, "", 0);
        st = status(w);
        CHECK_STR(reason_name(st.reason), i == 0 ? "cut" : "duration_too_long", "cut");
        scrape_status_done(&st);
    }
    CHECK_INT(metric(w, "profpull_scrape_failures_total{job=\"one\",reason=\"duration_too_long\"}"),
              2, "");
    CHECK_CONTAINS(testing_log_text(w->log), "to at most 2s", "logged with its remedy");
}

/* Several jobs that scrape the same target: fetched once where their settings agree, and each job
 * gets all of it. */
#include "tests/unit/scraper/scraper_world.h"

#include "pprof/delta.h"
#include "tests/unit/lib/pprof_writer.h"

#define OK(job) "profpull_scrapes_total{job=\"" job "\",type=\"memory\",result=\"ok\"}"

/* Replaces a group by one target with a label besides its address. */
static void set_with(struct world *w, size_t job, const char *source, const char *name,
                     const char *value)
{
    struct target *t = make_target(w, job, "a:1", name, value);
    assert_true(engine_set_group(w->e, job, source, &t, 1));
}

/* Both jobs scrape a:1. */
static void set_both(struct world *w)
{
    w->jobs[1].forward_to = 2;
    set(w, 0, "s", "first", AT("a:1"));
    set(w, 1, "s", "second", AT("a:1"));
}

static size_t count_live(const struct world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_transfers; i++) {
        n += w->transfers[i].live;
    }
    return n;
}

TEST_ON(struct world *w, fetched_once_for_both)
{
    set_both(w);
    testing_log_expect(w->log, "duplicate scrape set aside");
    set(w, 1, "t", "third", AT("a:1"));
    CHECK_INT(scrapes(w, "follows"), 1, "the other job");
    CHECK_INT(scrapes(w, "duplicate"), 1, "its second target");
    for (size_t i = 0; i < 2; i++) {
        turn(w, 15000);
        CHECK_INT(w->n_transfers, i + 1, "one request");
        succeed(w, &w->transfers[i]);
        CHECK_INT(w->n_profiles, 2 * i + 2, "two profiles");
        CHECK_STR(label(w->profiles[2 * i], "v"), "first", "labels of the first job");
        CHECK_STR(label(w->profiles[2 * i], "job"), "one", "labels of the first job");
        CHECK_INT(w->profiles[2 * i]->job, 0, "rules of the first job");
        CHECK_STR(label(w->profiles[2 * i + 1], "v"), "second", "labels of the second job");
        CHECK_STR(label(w->profiles[2 * i + 1], "job"), "two", "labels of the second job");
        CHECK_INT(w->profiles[2 * i + 1]->job, 1, "rules of the second job");
        CHECK_INT(w->forward_to, 2, "destinations of the second job");
        CHECK_INT(w->profiles[2 * i]->size, w->profiles[2 * i + 1]->size, "the same bytes");
        assert_ptr_not_equal(w->profiles[2 * i]->data, w->profiles[2 * i + 1]->data);
    }
    CHECK_INT(metric(w, OK("one")), 2, "counted");
    CHECK_INT(metric(w, OK("two")), 2, "counted");
    CHECK_INT(w->e->table.n, 1, "one scrape");
}

/* A failure counts for each job, and a scrape goes on in the job that takes it over. */
TEST_WITH(counted_by_job, setup, teardown)
{
#define FAILED(job) "profpull_scrape_failures_total{job=\"" job "\",reason=\"http_404\"}"
#define DOWN(job) "profpull_scrapes{job=\"" job "\",state=\"down\"}"
    struct world *w = *state;
    set_both(w);
    struct http_transfer *t = next_start(w);
    testing_log_expect(w->log, "scrape failed");
    answer(w, t, HTTP_DONE, 404, "", 0);
    CHECK_INT(metric(w, FAILED("one")), 1, "the leader");
    CHECK_INT(metric(w, FAILED("two")), 1, "the follower");
    CHECK_INT(metric(w, DOWN("one")), 1, "the leader");
    CHECK_INT(metric(w, DOWN("two")), 0, "the follower");
    CHECK_INT(metric(w, "profpull_scrapes{job=\"two\",state=\"follows\"}"), 1, "the follower");
    set(w, 0, "s", "first", NOTHING);
    CHECK_INT(metric(w, DOWN("one")), 0, "gone");
    CHECK_INT(metric(w, DOWN("two")), 1, "took over");
    CHECK_INT(scrapes(w, "follows"), 0, "nobody follows");
    struct scrape_status st = status(w);
    CHECK_STR(st.job, "two", "its job");
    CHECK_STR(st.source, "s", "its source");
    scrape_status_done(&st);
    set(w, 1, "s", "second", NOTHING);
    CHECK_INT(scrapes(w, "down"), 0, "none left");
}

/* Both are shown, whatever the size of a page. */
TEST_ON(struct world *w, both_are_shown)
{
    set(w, 0, "s", "1", AT("a:1", "b:1"));
    set(w, 1, "s", "1", AT("b:1", "c:1"));
    succeed(w, next_start(w));
    for (size_t page = 1; page <= 5; page++) {
        struct scrape_status st[5];
        size_t cursor = 0;
        size_t n = 0;
        size_t following = 0;
        size_t got;
        while ((got = engine_snapshot(w->e, &cursor, st, page)) > 0) {
            n += got;
            for (size_t i = 0; i < got; i++) {
                if (st[i].follows != NULL) {
                    following++;
                    CHECK_STR(st[i].follows, "one", "the leader");
                    CHECK_STR(st[i].job, "two", "the follower");
                    CHECK_STR(st[i].url, "http://b:1/mem", "its URL");
                    CHECK_STR(labels_get(st[i].labels, SV("job")).p, "two", "its labels");
                }
                scrape_status_done(&st[i]);
            }
        }
        CHECK_INT(n, 4, "each target of each job");
        CHECK_INT(following, 1, "follows");
    }
}

/* Jobs whose settings differ in anything that a request or its answer depends on. */
TEST_ON(struct world *w, settings_that_differ)
{
    static const struct http_header headers[] = {{"X-A", "1"}};
    for (int row = 0; row < 9; row++) {
        struct config_type other[4];
        memcpy(other, w->types, sizeof(other));
        w->jobs[1].types = other;
        struct config_job before = w->jobs[1];
        other[MEMORY].interval_ms = row == 1 ? 5000 : 15000;
        other[MEMORY].timeout_ms = row == 2 ? 9000 : 10000;
        other[MEMORY].delta = row == 3 ? DELTA_AUTO : w->types[MEMORY].delta;
        other[MEMORY].format = row == 4 ? FORMAT_JFR : FORMAT_PPROF;
        w->jobs[1].body_size_limit = row == 5 ? 1000 : before.body_size_limit;
        w->jobs[1].http.headers = headers;
        w->jobs[1].http.n_headers = row == 6;
        other[MEMORY].cumulative = row != 7;
        w->jobs[1].delta_compression = row == 8 ? COMPRESSION_NONE : before.delta_compression;
        set_both(w);
        char name[24];
        snprintf(name, sizeof(name), "row %d", row);
        CHECK_INT(w->e->table.n, row == 0 ? 1 : 2, name);
        CHECK_INT(scrapes(w, "follows"), row == 0, name);
        CHECK_INT(scrapes(w, "duplicate"), 0, name);
        set(w, 0, "s", "", NOTHING);
        set(w, 1, "s", "", NOTHING);
        w->jobs[1] = before;
        w->jobs[1].types = w->types;
    }
}

TEST_ON(struct world *w, sampling_ones_take_turns)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
    w->jobs[1].body_size_limit = 1000;
    set_both(w);
    for (int i = 0; i < 4; i++) {
        struct http_transfer *t =
            count_live(w) > 0 ? &w->transfers[w->n_transfers - 1] : next_start(w);
        turn(w, 4000);
        CHECK_INT(count_live(w), 1, "one at a time");
        succeed(w, t);
    }
    CHECK_INT(w->n_profiles, 4, "profiles");
    unsigned of_two = 0;
    for (size_t i = 0; i < 4; i++) {
        of_two += w->profiles[i]->job;
    }
    CHECK_INT(of_two, 2, "half of them");
}

/* Who leaves while a request is in flight gets nothing of it; the other one gets it. */
TEST_ON(struct world *w, one_of_them_goes)
{
    for (size_t gone = 0; gone < 2; gone++) {
        set_both(w);
        struct http_transfer *t = next_start(w);
        int64_t start_ns = t->start_ns;
        set(w, gone, "s", "", NOTHING);
        assert_true(t->live);
        succeed(w, t);
        CHECK_INT(w->n_profiles, 1, "for the one that stays");
        CHECK_STR(label(w->profiles[0], "v"), gone == 0 ? "second" : "first", "its labels");
        CHECK_INT(scrapes(w, "follows"), 0, "nobody follows");
        struct scrape_status st = status(w);
        CHECK_INT(st.successes, 1, "the state was kept");
        CHECK_STR(st.job, gone == 0 ? "two" : "one", "whose it is");
        assert_null(st.follows);
        scrape_status_done(&st);
        t = next_start(w);
        CHECK_INT(t->start_ns - start_ns, 15 * NS_PER_S, "and so was the phase");
        set(w, 1 - gone, "s", "", NOTHING);
        assert_true(t->cancelled); /* it is for nobody */
        forget_profiles(w);
    }
}

/* Who comes while a request is in flight gets the next one. */
TEST_ON(struct world *w, one_comes_late)
{
    set(w, 0, "s", "first", AT("a:1"));
    struct http_transfer *t = next_start(w);
    set(w, 1, "s", "second", AT("a:1"));
    set(w, 0, "s", "changed", AT("a:1"));
    succeed(w, t);
    CHECK_INT(w->n_profiles, 1, "asked for by one");
    CHECK_STR(label(w->profiles[0], "v"), "first", "labels as of the request");
    t = next_start(w);
    set(w, 1, "s", "changed", AT("a:1"));
    succeed(w, t);
    CHECK_INT(w->n_profiles, 3, "for both");
    CHECK_STR(label(w->profiles[2], "v"), "second", "labels as of the request");
}

/* Within its job, the next target takes the place of a follower and of a leader. */
TEST_ON(struct world *w, heirs_within_a_job)
{
    set_both(w);
    testing_log_expect(w->log, "duplicate scrape set aside");
    set(w, 0, "t", "first again", AT("a:1"));
    set(w, 1, "t", "second again", AT("a:1"));
    CHECK_INT(scrapes(w, "duplicate"), 2, "set aside");
    set(w, 0, "s", "", NOTHING);
    set(w, 1, "s", "", NOTHING);
    CHECK_INT(scrapes(w, "duplicate"), 0, "none is set aside");
    CHECK_INT(scrapes(w, "follows"), 1, "follows");
    succeed(w, next_start(w));
    CHECK_INT(w->n_profiles, 2, "for both");
    CHECK_STR(label(w->profiles[0], "v"), "first again", "leader");
    CHECK_STR(label(w->profiles[1], "v"), "second again", "follower");
}

/* A target that a job may not have (target_limit) takes no part. */
TEST_ON(struct world *w, over_the_limit)
{
    testing_log_expect(w->log, "target_limit reached");
    w->jobs[1].target_limit = 1;
    set(w, 0, "s", "1", AT("a:1", "b:1"));
    set(w, 1, "s", "1", AT("a:1", "b:1"));
    CHECK_INT(scrapes(w, "follows"), 1, "one may");
    set(w, 1, "s", "1", AT("b:1"));
    CHECK_INT(scrapes(w, "follows"), 1, "the other one may now");
    set(w, 0, "s", "1", NOTHING);
    CHECK_INT(w->e->table.n, 1, "it goes on with the other job");
}

/* Settings change for one job after the other: they part, and are one again. */
TEST_ON(struct world *w, settings_change)
{
    for (size_t first = 0; first < 2; first++) {
        set_with(w, 0, "s", "__scrape_interval__", "15s");
        set_with(w, 1, "s", "__scrape_interval__", "15s");
        CHECK_INT(w->e->table.n, 1, "one");
        set_with(w, first, "s", "__scrape_interval__", "20s");
        CHECK_INT(w->e->table.n, 2, "two");
        CHECK_INT(scrapes(w, "follows"), 0, "nobody follows");
        set_with(w, 1 - first, "s", "__scrape_interval__", "20s");
        CHECK_INT(w->e->table.n, 1, "one again");
        CHECK_INT(scrapes(w, "follows"), 1, "follows");
        forget_profiles(w);
        succeed(w, next_start(w));
        CHECK_INT(w->n_profiles, 2, "for both");
    }
}

/* Three jobs: the last one to change settings joins the one that has them already. */
TEST_ON(struct world *w, settings_change_for_three)
{
    for (size_t first = 0; first < 3; first++) {
        for (size_t job = 0; job < 3; job++) {
            set_with(w, job, "s", "__scrape_interval__", "15s");
        }
        CHECK_INT(w->e->table.n, 1, "one");
        CHECK_INT(scrapes(w, "follows"), 2, "two follow");
        for (size_t i = 0; i < 3; i++) {
            set_with(w, (first + i) % 3, "s", "__scrape_interval__", "20s");
            CHECK_INT(w->e->table.n, i == 2 ? 1 : 2, "with the old and the new interval");
            CHECK_INT(scrapes(w, "follows"), i == 2 ? 2 : 1, "the others follow");
        }
        forget_profiles(w);
        succeed(w, next_start(w));
        CHECK_INT(w->n_profiles, 3, "for all");
    }
}

/* An address goes to another pod, which the jobs learn one after the other. */
TEST_ON(struct world *w, another_pod)
{
    for (size_t first = 0; first < 2; first++) {
        set_with(w, 0, "s", "__meta_kubernetes_pod_uid", "x");
        set_with(w, 1, "s", "__meta_kubernetes_pod_uid", "x");
        struct http_transfer *t = next_start(w);
        forget_profiles(w);
        set_with(w, first, "s", "__meta_kubernetes_pod_uid", "y");
        if (t->live) {
            succeed(w, t);
        }
        CHECK_INT(w->n_profiles, first, "not for the one that knows");
        set_with(w, 1 - first, "s", "__meta_kubernetes_pod_uid", "y");
        CHECK_INT(w->e->table.n, 1, "one again");
        succeed(w, next_start(w));
        CHECK_INT(w->n_profiles, first + 2, "for both");
        set(w, 0, "s", "", NOTHING);
        set(w, 1, "s", "", NOTHING);
    }
}

/* ---- deltas ---------------------------------------------------------------------------------- */

static void start_deltas(struct world *w)
{
    engine_free(w->e);
    w->submits = true;
    w->types[MEMORY].delta = DELTA_AUTO;
    make_engine(w, 0);
}

/* Answers with a counter that has grown by one in each millisecond since the start. */
static void answer_count(struct world *w, struct http_transfer *t)
{
    struct pprof_spec spec = {.types = "alloc_objects/count inuse_objects/count",
                              .time_nanos = w->now_ns};
    const struct pprof_row row = {"a m", NULL, {w->now_ns / NS_PER_MS, 1}};
    SCOPED(buf) body = pprof_make(&spec, &row, 1);
    answer(w, t, HTTP_DONE, 200, body.data, body.len);
}

static int64_t count_of(const struct profile *p)
{
    struct delta_input in = {
        .body = {p->data, p->size}, .any_counter = true, .scratch = scratch_new()};
    struct delta_output out;
    struct err err = ERR_INIT;
    int64_t sum = 0;
    assert_int_equal(delta_make(&in, &out, &err), DELTA_FIRST);
    scratch_free(in.scratch);
    for (size_t i = 0; i < out.next->n; i++) {
        sum += (int64_t)delta_state_value(out.next, i, 0);
    }
    delta_output_done(&out);
    return sum;
}

static void scrape_count(struct world *w)
{
    struct http_transfer *t = next_start(w);
    turn(w, 100);
    answer_count(w, t);
    works(w);
}

#define RESULT(r) "profpull_delta_total{result=\"" r "\"}"

TEST_ON(struct world *w, one_delta_for_both)
{
    start_deltas(w);
    set_both(w);
    scrape_count(w);
    forget_profiles(w);
    scrape_count(w);
    CHECK_INT(w->n_profiles, 2, "for both");
    CHECK_INT(count_of(w->profiles[0]), 15000, "growth of an interval");
    CHECK_INT(count_of(w->profiles[1]), 15000, "growth of an interval");
    CHECK_INT(metric(w, RESULT("delta")), 1, "one delta");
    CHECK_INT(metric(w, "profpull_delta_state_stacks"), 1, "one baseline");
    set(w, 0, "s", "", NOTHING);
    forget_profiles(w);
    scrape_count(w);
    CHECK_INT(w->n_profiles, 1, "for the one that stays");
    CHECK_INT(count_of(w->profiles[0]), 15000, "from the same baseline");
}

/* The baseline stays if nobody takes the delta. If one of them does, it moves: what that one is
 * sent is exact, and the other one is asked to take it or lose it. */
TEST_ON(struct world *w, refused_deltas)
{
    start_deltas(w);
    set_both(w);
    scrape_count(w);
    w->refuses[0] = w->refuses[1] = true;
    scrape_count(w);
    assert_true(w->was_refusable);
    CHECK_INT(metric(w, RESULT("not_taken")), 1, "by nobody");
    for (size_t other = 0; other < 2; other++) {
        forget_profiles(w);
        w->refuses[other] = true;
        w->refuses[1 - other] = false;
        scrape_count(w);
        CHECK_INT(w->n_profiles, 1, "by one");
        CHECK_INT(w->profiles[0]->job, 1 - other, "which one");
        CHECK_INT(count_of(w->profiles[0]), other == 0 ? 30000 : 15000, "since the last one");
        assert_false(w->was_refusable);
    }
    CHECK_INT(metric(w, RESULT("not_taken")), 1, "the other ones were taken");
}

/* Jobs that part have the baseline in common; one that comes back has not lost or doubled it. */
TEST_ON(struct world *w, baselines_of_jobs_that_part)
{
    start_deltas(w);
    set_with(w, 0, "s", "__scrape_interval__", "15s");
    set_with(w, 1, "s", "__scrape_interval__", "15s");
    scrape_count(w);
    set_with(w, 0, "s", "__scrape_interval__", "20s");
    forget_profiles(w);
    int64_t last[2] = {0, 0};
    for (int i = 0; i < 6; i++) {
        scrape_count(w);
    }
    set_with(w, 1, "s", "__scrape_interval__", "20s");
    CHECK_INT(w->e->table.n, 2, "their baselines differ");
    for (int i = 0; i < 4; i++) {
        scrape_count(w);
    }
    CHECK_INT(metric(w, RESULT("first")), 1, "none was lost");
    for (size_t i = 0; i < w->n_profiles; i++) {
        const struct profile *p = w->profiles[i];
        CHECK_INT(count_of(p), (p->until_ns - p->from_ns) / NS_PER_MS, "growth");
        CHECK_INT(p->from_ns, last[p->job] == 0 ? p->from_ns : last[p->job], "no gap");
        last[p->job] = p->until_ns;
    }
    set(w, 1, "s", "", NOTHING);
    set_with(w, 1, "s", "__scrape_interval__", "20s");
    CHECK_INT(w->e->table.n, 2, "it was sent more than the other one");
    set(w, 1, "s", "", NOTHING);
    turn(w, 200000);
    set_with(w, 1, "s", "__scrape_interval__", "20s");
    CHECK_INT(w->e->table.n, 1, "what it was sent is forgotten");
}

/* ---- at random ------------------------------------------------------------------------------- */

static void random_change(struct world *w, struct rng *rng)
{
    static const char *const sources[] = {"s", "t"};
    static const char *const intervals[] = {"10s", "15s"};
    size_t job = (size_t)rng_range(rng, 0, 3);
    const char *source = sources[rng_range(rng, 0, 2)];
    if (rng_range(rng, 0, 3) == 0) {
        set(w, job, source, "", NOTHING);
    } else {
        set_with(w, job, source, "__scrape_interval__", intervals[rng_range(rng, 0, 2)]);
    }
}

/* Whatever comes: each job gets growth exactly once, for windows that do not overlap. */
static void check_windows(struct world *w, int64_t last[3])
{
    for (size_t i = 0; i < w->n_profiles; i++) {
        const struct profile *p = w->profiles[i];
        int64_t count = count_of(p);
        if (count != 0) {
            CHECK_INT(count, (p->until_ns - p->from_ns) / NS_PER_MS, "growth");
            assert_true(p->from_ns >= last[p->job]);
        }
        last[p->job] = p->until_ns;
    }
    forget_profiles(w);
}

TEST_ON(struct world *w, random_life)
{
    struct rng rng;
    int64_t last[3] = {0, 0, 0};
    testing_log_expect(w->log, "duplicate scrape set aside");
    start_deltas(w);
    rng_seed(&rng, 7);
    for (int i = 0; i < 20000 && w->n_transfers + 10 < TRANSFERS_MAX; i++) {
        turn(w, rng_range(&rng, 0, 3000));
        for (size_t k = w->n_transfers < 8 ? 0 : w->n_transfers - 8; k < w->n_transfers; k++) {
            if (w->transfers[k].live && rng_range(&rng, 0, 2) == 0) {
                answer_count(w, &w->transfers[k]);
            }
        }
        if (rng_range(&rng, 0, 2) == 0) {
            works(w);
        }
        if (rng_range(&rng, 0, 6) == 0) {
            random_change(w, &rng);
        }
        for (size_t k = 0; k < 3; k++) {
            w->refuses[k] = rng_range(&rng, 0, 4) == 0;
        }
        check_windows(w, last);
        CHECK_INT(w->e->table.n <= 3, true, "one scrape for each job");
    }
    assert_true(metric(w, RESULT("delta")) > 500);
    for (size_t i = 0; i < 6; i++) {
        set(w, i % 3, i < 3 ? "s" : "t", "", NOTHING);
    }
    works(w);
    CHECK_INT(w->e->table.n, 0, "scrapes");
    CHECK_INT(scrapes(w, "follows"), 0, "followers");
    CHECK_INT(scrapes(w, "duplicate"), 0, "set aside");
    turn(w, 600000);
    CHECK_INT(metric(w, "profpull_delta_state_bytes"), 0, "baselines");
}

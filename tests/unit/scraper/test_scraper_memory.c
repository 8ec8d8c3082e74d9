/* Groups of targets while memory is short. Sampling: whichever allocation fails, either the targets
 * of a source change or nothing does. Jobs that share scrapes: nothing leaks, and who can, goes on.
 */
#include "tests/unit/scraper/scraper_world.h"

#include "scraper/sampling.h"
#include "tests/unit/lib/failing_malloc.h"

static size_t count_active(struct world *w)
{
    return (size_t)metric(w, "profpull_targets{state=\"active\"}");
}

/* A source changes while the n-th allocation fails. */
TEST_ON(struct world *w, source_changes)
{
    w->jobs[0].sample_max = 3;
    size_t failed = 0;
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    for (size_t i = 0; i < 60; i++) {
        struct target *targets[12];
        for (size_t k = 0; k < 12; k++) {
            char address[16];
            snprintf(address, sizeof(address), "h%zu:1", k);
            targets[k] = make_target(w, 0, address, "service_name", k < 6 ? "a" : "b");
        }
        failing_malloc(FAIL_ALL, i);
        bool ok = engine_set_group(w->e, 0, "s", targets, 12);
        bool reached = failing_malloc_stop();
        failed += !ok;
        if (ok && !reached) {
            CHECK_INT(count_active(w), 6, "three of each");
        }
        if (count_active(w) != 0) {
            CHECK_INT(count_active(w), 6, "three of each");
        }
        assert_true(engine_set_group(w->e, 0, "s", NULL, 0));
        CHECK_INT(count_active(w), 0, "none");
        CHECK_INT(metric(w, "profpull_targets{state=\"left_out\"}"), 0, "none");
        struct sampled_service list[4];
        CHECK_INT(engine_sampled(w->e, list, 4), 0, "no service stays");
    }
    assert_true(failed > 5);
}

/* A new source while memory is short: existing targets stay. */
TEST_ON(struct world *w, another_source_comes)
{
    w->jobs[0].sample_max = 3;
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    set(w, 0, "s", "1", AT("a:1", "b:1", "c:1", "d:1"));
    size_t failed = 0;
    for (size_t i = 0; i < 30; i++) {
        struct target *t = make_target(w, 0, "e:1", "service_name", "other");
        failing_malloc(FAIL_ALL, i);
        bool ok = engine_set_group(w->e, 0, "t", &t, 1);
        failing_malloc_stop();
        failed += !ok;
        assert_true(count_active(w) >= 3 && count_active(w) <= 4);
        CHECK_INT(metric(w, "profpull_targets{state=\"left_out\"}"), 1, "left out");
        assert_true(engine_set_group(w->e, 0, "t", NULL, 0));
        CHECK_INT(count_active(w), 3, "as before");
    }
    assert_true(failed > 3);
}

/* The job's target with this interval; a failed allocation may leave it out. */
static void set_interval(struct world *w, size_t job, const char *interval, size_t fails_at)
{
    struct target *t = make_target(w, job, "a:1", "__scrape_interval__", interval);
    failing_malloc(FAIL_ALL, fails_at);
    (void)engine_set_group(w->e, job, "s", &t, 1);
    failing_malloc_stop();
}

/* Jobs come to share a scrape, part, share again, and get a profile, while an allocation fails. */
TEST_ON(struct world *w, jobs_share_and_part)
{
    static const char *const intervals[][2] = {{"15s", "15s"}, {"20s", "15s"}, {"20s", "20s"}};
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    for (size_t i = 0; i < 120; i++) {
        for (size_t step = 0; step < 3; step++) {
            for (size_t job = 0; job < 2; job++) {
                bool now = i % 4 == step;
                set_interval(w, job, intervals[step][job], now ? i / 4 : SIZE_MAX);
            }
            assert_true(w->e->table.n <= 2);
        }
        if (w->e->table.n > 0) {
            struct http_transfer *t = next_start(w);
            failing_malloc(FAIL_ALL, i % 4 == 3 ? i / 4 : SIZE_MAX);
            succeed(w, t);
            failing_malloc_stop();
        }
        forget_profiles(w);
        assert_true(engine_set_group(w->e, 0, "s", NULL, 0));
        assert_true(engine_set_group(w->e, 1, "s", NULL, 0));
        CHECK_INT(w->e->table.n, 0, "scrapes");
        CHECK_INT(scrapes(w, "follows"), 0, "followers");
        CHECK_INT(scrapes(w, "duplicate"), 0, "set aside");
        CHECK_INT(slots_used(&w->e->slots), 0, "in flight");
    }
}

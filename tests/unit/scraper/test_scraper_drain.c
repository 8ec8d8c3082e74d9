/* The end of the scrapes in flight when the program is stopped, and the first ones of the next
 * process. */
#include "tests/unit/scraper/scraper_world.h"

/* A job whose CPU profiles take 4 s and come once a minute. */
static void use_cpu_only(struct world *w)
{
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
    w->types[CPU].interval_ms = 60000;
}

static void on_drained(void *arg)
{
    ++*(int *)arg;
}

static int64_t now_ms(const struct world *w)
{
    return w->now_ns / NS_PER_MS;
}

/* A profile that ends before the deadline is passed on; nothing new starts meanwhile. */
TEST_ON(struct world *w, in_flight_ends)
{
    int drained = 0;
    use_cpu_only(w);
    set(w, 0, "s", "1", AT("a:1", "b:1"));
    struct http_transfer *t = next_start(w);
    turn(w, 2000);
    CHECK_INT(w->n_transfers, 1, "one in flight");
    engine_drain(w->e, now_ms(w) + 20000, on_drained, &drained);
    CHECK_INT(drained, 0, "waits for it");
    turn(w, 2500);
    succeed(w, t);
    CHECK_INT(drained, 1, "the last one has ended");
    CHECK_INT(w->n_profiles, 1, "passed on");
    turn(w, 120000);
    CHECK_INT(w->n_transfers, 1, "nothing new");
    CHECK_INT(drained, 1, "called once");
}

/* A profile that would still be sampled at the deadline is cancelled at once, so that what is
 * queued gets the time. */
TEST_ON(struct world *w, too_long_for_the_deadline)
{
    int drained = 0;
    use_cpu_only(w);
    set(w, 0, "s", "1", AT("a:1"));
    struct http_transfer *t = next_start(w);
    turn(w, 1000);
    engine_drain(w->e, now_ms(w) + 3000, on_drained, &drained);
    CHECK_INT(t->cancelled, true, "cancelled");
    CHECK_INT(drained, 1, "at once");
}

TEST_ON(struct world *w, drained_with_nothing_in_flight)
{
    int drained = 0;
    engine_drain(w->e, now_ms(w), on_drained, &drained);
    CHECK_INT(drained, 1, "at once");
}

/* A target that does not answer uses up neither the time of the drain nor its deadline. */
TEST_ON(struct world *w, hanging_targets)
{
    static const struct {
        const char *row;
        int64_t deadline_ms, ends_ms;
    } rows[] = {
        {"5 s after it has sampled", 60000, 4000 + ENGINE_DRAIN_ANSWER_MS},
        {"the deadline", 6000, 6000},
    };
    use_cpu_only(w);
    testing_log_expect(w->log, "scrapes cancelled");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int drained = 0;
        engine_free(w->e);
        make_engine(w, 0);
        set(w, 0, "s", "1", AT("a:1"));
        struct http_transfer *t = next_start(w);
        engine_drain(w->e, now_ms(w) + rows[i].deadline_ms, on_drained, &drained);
        turn(w, rows[i].ends_ms - 1);
        CHECK_INT(drained, 0, rows[i].row);
        turn(w, 1);
        CHECK_INT(drained, 1, rows[i].row);
        CHECK_INT(t->cancelled, true, rows[i].row);
    }
}

/* Scrapes that wait for the process, or for a slot, have not begun and do not begin. */
TEST_ON(struct world *w, waiting_scrapes_are_dropped)
{
    int drained = 0;
    use_cpu_only(w);
    w->types[FGPROF].enabled = true;
    w->types[FGPROF].interval_ms = 60000;
    w->types[FGPROF].seconds = 58; /* always one in flight, and one that waits for it */
    set(w, 0, "s", "1", AT("a:1"));
    turn(w, 60000);
    CHECK_INT(w->n_transfers, 1, "the other one waits");
    engine_drain(w->e, now_ms(w) + 120000, on_drained, &drained);
    succeed(w, &w->transfers[0]);
    CHECK_INT(w->n_transfers, 1, "none follows");
    CHECK_INT(drained, 1, "drained");
}

/* engine_stop() ends a drain without a word; targets that come late are refused. */
TEST_ON(struct world *w, stopped_while_draining)
{
    int drained = 0;
    use_cpu_only(w);
    set(w, 0, "s", "1", AT("a:1"));
    struct http_transfer *t = next_start(w);
    engine_drain(w->e, now_ms(w) + 20000, on_drained, &drained);
    struct target *late = make_target(w, 0, "c:1", "v", "1");
    assert_false(engine_set_group(w->e, 0, "t", &late, 1));
    engine_stop(w->e);
    CHECK_INT(t->cancelled, true, "cancelled");
    CHECK_INT(drained, 0, "not called");
}

/* The CPU profile that the previous process had to cancel is asked again at once, not a minute
 * later: its window is still open. */
TEST_ON(struct world *w, asked_again_after_a_restart)
{
    use_cpu_only(w);
    set(w, 0, "s", "1", AT("a:1"));
    next_start(w);
    turn(w, 1000);
    engine_free(w->e);
    turn(w, 1500); /* the restart */
    make_engine(w, 0);
    set(w, 0, "s", "1", AT("a:1"));
    turn(w, 0);
    CHECK_INT(w->n_transfers, 2, "asked again");
    succeed(w, &w->transfers[1]);
    turn(w, 57500);
    CHECK_INT(w->n_transfers, 3, "in its phase from then on");
    CHECK_INT((w->transfers[2].start_ns - w->transfers[0].start_ns) / NS_PER_MS, 60000, "phase");
}

TEST(windows)
{
    static const struct {
        const char *row;
        int64_t now, first, interval, sampling, want;
    } rows[] = {
        {"the window is open", 102000, 160000, 60000, 4000, 102000},
        {"it has closed", 104000, 160000, 60000, 4000, 160000},
        {"right on the phase", 100000, 100000, 60000, 4000, 100000},
        {"does not sample", 100001, 160000, 60000, 0, 160000},
        {"no whole one fits in", 102000, 115000, 15000, 14000, 115000},
        {"one fits in exactly", 105000, 120000, 20000, 14000, 105000},
        {"one does not, by a little", 105001, 120000, 20000, 14000, 120000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(schedule_resume(rows[i].now, rows[i].first, rows[i].interval, rows[i].sampling),
                  rows[i].want, rows[i].row);
    }
}

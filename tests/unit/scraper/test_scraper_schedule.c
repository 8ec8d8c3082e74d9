/* The schedule, with simulated time. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "scraper/schedule.h"

static int64_t wall_phase(int64_t mono, int64_t offset, int64_t interval)
{
    int64_t r = (mono + offset) % interval;
    return r < 0 ? r + interval : r;
}

/* The phase is the same at every start, on every machine. */
TEST(phase_survives_restarts)
{
    struct rng rng;
    rng_seed(&rng, 1);
    for (int i = 0; i < 2000; i++) {
        int64_t interval = rng_range(&rng, 1, 60000);
        uint64_t hash = rng_next(&rng);
        int64_t now = rng_range(&rng, 0, 1000000);
        int64_t offset = rng_range(&rng, -500000, 1800000000000);
        int64_t first = schedule_first(now, offset, interval, hash);
        assert_true(first >= now && first < now + interval);
        CHECK_INT(wall_phase(first, offset, interval), (int64_t)(hash % (uint64_t)interval),
                  "phase");
    }
}

TEST(first_tick_at_the_phase)
{
    static const struct {
        int64_t now, offset, interval;
        uint64_t hash;
        int64_t want;
    } rows[] = {
        {0, 0, 15000, 7000, 7000},
        {7000, 0, 15000, 7000, 7000}, /* right on it: now, not an interval later */
        {7001, 0, 15000, 7000, 22000},
        {100, 6900, 15000, 7000, 100},
        {100, -200, 15000, 0, 200}, /* before 1970 */
        {5, 0, 1, 99, 5},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t got = schedule_first(rows[i].now, rows[i].offset, rows[i].interval, rows[i].hash);
        char row[16];
        snprintf(row, sizeof(row), "%zu", i);
        CHECK_INT(got, rows[i].want, row);
    }
}

TEST(ticks)
{
    static const struct {
        const char *row;
        int64_t due, now;
        bool run;
        int64_t next;
        uint64_t missed;
    } rows[] = {
        {"on time", 1000, 1000, true, 16000, 0},
        {"a little late", 1000, 1400, true, 16000, 0},
        {"nearly an interval late", 1000, 15999, true, 16000, 0},
        {"an interval late", 1000, 16000, false, 31000, 2},
        {"five minutes of sleep", 1000, 301500, false, 316000, 21},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct schedule_tick t = schedule_tick(rows[i].due, rows[i].now, 15000);
        CHECK_INT(t.run, rows[i].run, rows[i].row);
        CHECK_INT(t.next_ms, rows[i].next, rows[i].row);
        CHECK_INT(t.missed, rows[i].missed, rows[i].row);
        CHECK_INT((t.next_ms - rows[i].due) % 15000, 0, "the phase is kept");
    }
}

#define MANY 1000

struct thing {
    struct schedule_item item;
    int64_t due;
    bool in;
};

static void check_head(struct schedule *s, struct thing *things)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < MANY; i++) {
        if (things[i].in && things[i].due < least) {
            least = things[i].due;
        }
        if (things[i].in) {
            assert_true(schedule_due(s, &things[i].item) == things[i].due);
        }
    }
    int64_t due = INT64_MAX;
    CHECK_INT(schedule_head(s, &due) != NULL, least != INT64_MAX, "head");
    CHECK_INT(due, least, "due");
}

static void change(struct schedule *s, struct thing *t, int64_t due, bool remove)
{
    if (t->in && remove) {
        schedule_remove(s, &t->item);
        schedule_remove(s, &t->item); /* twice is harmless */
        t->in = false;
        return;
    }
    t->due = due;
    if (t->in) {
        schedule_move(s, &t->item, due);
    } else {
        assert_true(schedule_add(s, &t->item, due));
        t->in = true;
    }
}

/* Compared with a linear search, over random additions, moves and removals. */
TEST(heap_is_right)
{
    struct schedule s;
    schedule_init(&s);
    SCOPED_MEMORY struct thing *things = testing_memory(MANY * sizeof(*things));
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        struct thing *t = &things[rng_range(&rng, 0, MANY)];
        change(&s, t, rng_range(&rng, 0, 5000), rng_range(&rng, 0, 3) == 0);
        if (i % 50 == 0) {
            check_head(&s, things);
        }
    }
    int64_t last = -1;
    int64_t due;
    struct schedule_item *item;
    while ((item = schedule_head(&s, &due)) != NULL) {
        assert_true(due >= last);
        last = due;
        schedule_remove(&s, item);
    }
    schedule_done(&s);
}

/* Whatever the wall clock does, after the first tick only the monotonic one counts, and no two
 * ticks are closer than an interval. */
TEST(jumps_of_the_wall_clock)
{
    int64_t due = schedule_first(1000, 1700000000000, 15000, 4242);
    for (int i = 0; i < 100; i++) {
        struct schedule_tick t = schedule_tick(due, due + 3, 15000);
        assert_true(t.run);
        CHECK_INT(t.next_ms - due, 15000, "period");
        due = t.next_ms;
    }
}

/* After a stall all scrapes have missed ticks, but they are not all due at once. */
TEST(no_burst_after_a_stall)
{
    size_t runs = 0;
    for (uint64_t hash = 0; hash < 15000; hash += 10) {
        int64_t due = schedule_first(0, 0, 15000, hash);
        int64_t now = due + 15000 + 60000 - (int64_t)hash; /* all at one instant: 75 s */
        struct schedule_tick t = schedule_tick(due, now, 15000);
        runs += t.run;
        assert_true(t.next_ms > now && t.next_ms <= now + 15000);
        assert_true(t.missed >= 4);
    }
    CHECK_INT(runs, 0, "runs at the end of the stall");
}

#include "scraper/next_scrape.h"

unsigned scrape_history_conflicts(const struct scrape_history *c)
{
    return (unsigned)__builtin_popcount(c->conflicts);
}

static void note(struct scrape_history *c, enum reason_kind end)
{
    c->conflicts = (uint16_t)((unsigned)c->conflicts << 1 | (end == REASON_KIND_CONFLICT));
    c->attempts =
        (uint8_t)(c->attempts < NEXT_SCRAPE_HISTORY ? c->attempts + 1 : NEXT_SCRAPE_HISTORY);
    if (end != REASON_KIND_ABSENT) {
        c->not_found = 0;
    } else if (c->not_found < NEXT_SCRAPE_ABSENT_AFTER) {
        c->not_found++;
    }
    c->absent = c->not_found >= NEXT_SCRAPE_ABSENT_AFTER;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The other one's profile will have ended after as long as ours takes, if there is room for that;
 * chance sees to it that two of a kind do not meet again. */
static int64_t after_conflict(struct scrape_history *c, const struct next_scrape_input *in,
                              struct rng *rng)
{
    int64_t room = in->tick_ms - in->now_ms - in->sampling_ms;
    if (!c->retried && room > 0) {
        int64_t wait = in->sampling_ms < room / 2 ? in->sampling_ms : room / 2;
        c->retried = true;
        return in->now_ms + rng_range(rng, later(wait, 1), room + 1);
    }
    c->retried = false;
    return later(in->tick_ms, in->now_ms) + rng_range(rng, 0, in->interval_ms);
}

int64_t next_scrape_at(struct scrape_history *c, const struct next_scrape_input *in,
                       struct rng *rng)
{
    bool was_absent = c->absent;
    note(c, in->end);
    if (in->end == REASON_KIND_CONFLICT) {
        return after_conflict(c, in, rng);
    }
    c->retried = false;
    if (c->absent) {
        return in->now_ms + NEXT_SCRAPE_ABSENT_INTERVALS * in->interval_ms +
               rng_range(rng, 0, in->interval_ms);
    }
    if (in->continuous && in->end == REASON_KIND_SUCCESS) {
        /* A target that answers at once, whatever it was asked for, is not asked all the time. */
        return later(in->now_ms, in->start_ms + in->sampling_ms);
    }
    return in->continuous || was_absent ? in->phase_ms : later(in->tick_ms, in->now_ms);
}

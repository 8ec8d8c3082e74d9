#include "scraper/next_scrape.h"

unsigned scrape_history_conflicts(const struct scrape_history *h)
{
    return (unsigned)__builtin_popcount(h->conflicts);
}

static void record(struct scrape_history *h, enum reason_kind end)
{
    h->conflicts = (uint16_t)((unsigned)h->conflicts << 1 | (end == REASON_KIND_CONFLICT));
    h->attempts =
        (uint8_t)(h->attempts < NEXT_SCRAPE_HISTORY ? h->attempts + 1 : NEXT_SCRAPE_HISTORY);
    if (end != REASON_KIND_ABSENT) {
        h->not_found = 0;
    } else if (h->not_found < NEXT_SCRAPE_ABSENT_AFTER) {
        h->not_found++;
    }
    h->absent = h->not_found >= NEXT_SCRAPE_ABSENT_AFTER;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns when to try again after a conflict. If there is time in the interval, the scrape waits
 * for as long as its own profile takes, because the profile of the other client has probably ended
 * by then. The random part keeps two agents from colliding again. */
static int64_t after_conflict(struct scrape_history *h, const struct next_scrape_input *in,
                              struct rng *rng)
{
    int64_t slack = in->tick_ms - in->now_ms - in->sampling_ms;
    if (!h->retried && slack > 0) {
        int64_t wait = in->sampling_ms < slack / 2 ? in->sampling_ms : slack / 2;
        h->retried = true;
        return in->now_ms + rng_range(rng, later(wait, 1), slack + 1);
    }
    h->retried = false;
    return later(in->tick_ms, in->now_ms) + rng_range(rng, 0, in->interval_ms);
}

int64_t next_scrape_at(struct scrape_history *h, const struct next_scrape_input *in,
                       struct rng *rng)
{
    bool was_absent = h->absent;
    record(h, in->end);
    if (in->end == REASON_KIND_CONFLICT) {
        return after_conflict(h, in, rng);
    }
    h->retried = false;
    if (h->absent) {
        return in->now_ms + NEXT_SCRAPE_ABSENT_INTERVALS * in->interval_ms +
               rng_range(rng, 0, in->interval_ms);
    }
    if (in->continuous && in->end == REASON_KIND_SUCCESS) {
        /* A target that answers early must not be scraped without a pause. */
        return later(in->now_ms, in->start_ms + in->sampling_ms);
    }
    return in->continuous || was_absent ? in->phase_ms : later(in->tick_ms, in->now_ms);
}

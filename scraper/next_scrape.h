/* The instant at which a scrape is due next when it has ended. Most scrapes follow the schedule,
 * with three exceptions:
 *
 * A continuous scrape starts again at once. A scrape that found another client profiling its
 * process is retried once within the same interval, if there is time, and after that at another
 * random offset; it keeps the offset at which it succeeds. A scrape whose path was not found
 * several times in a row is absent: it is tried rarely until the response changes.
 *
 * Pure logic; randomness is injected.
 */
#ifndef PROFPULL_SCRAPER_NEXT_SCRAPE_H
#define PROFPULL_SCRAPER_NEXT_SCRAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/reason.h"

/* A scrape that was not found this many times in a row is absent. */
#define NEXT_SCRAPE_ABSENT_AFTER 3
/* The number of intervals between two attempts of an absent scrape. A random part of one more
 * interval is added. */
#define NEXT_SCRAPE_ABSENT_INTERVALS 10
/* The number of attempts whose conflicts are remembered. */
#define NEXT_SCRAPE_HISTORY 16

struct scrape_history {
    uint16_t conflicts; /* bit 0: the last attempt was a conflict; bit 1: the one before; ... */
    uint8_t attempts;   /* the number of attempts that the bits cover */
    uint8_t not_found;  /* times in a row, up to NEXT_SCRAPE_ABSENT_AFTER */
    bool absent;
    bool retried; /* the next attempt is the second one in the same interval */
};

/* All instants are on the monotonic clock. */
struct next_scrape_input {
    enum reason_kind end;
    bool continuous;
    int64_t now_ms;
    int64_t start_ms;    /* when the scrape that has ended was started */
    int64_t tick_ms;     /* the next tick of the schedule */
    int64_t phase_ms;    /* the first instant after now in the scrape's own phase */
    int64_t interval_ms; /* > 0 */
    int64_t sampling_ms; /* 0 if it does not sample */
};

/* Records how the scrape ended and returns when the next one is due, never before now. */
int64_t next_scrape_at(struct scrape_history *h, const struct next_scrape_input *in,
                       struct rng *rng);
/* Returns how many of the last h->attempts attempts were conflicts. */
unsigned scrape_history_conflicts(const struct scrape_history *h);

#endif

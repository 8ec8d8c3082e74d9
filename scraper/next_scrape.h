/* When a scrape comes next, now that one has ended. Most follow the schedule; these do not:
 *
 * A continuous one starts the moment the last one has ended. One that found its process being
 * profiled by somebody else tries again, once in the same interval if there is room, else at
 * another offset; where it succeeds it stays. One whose path was not found several times in a row
 * is absent, and asked for rarely until something else comes.
 *
 * Pure logic; randomness is given to it.
 */
#ifndef PROFPULL_SCRAPER_NEXT_SCRAPE_H
#define PROFPULL_SCRAPER_NEXT_SCRAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/reason.h"

/* So many times in a row not found: absent. */
#define NEXT_SCRAPE_ABSENT_AFTER 3
/* What is absent is asked for after so many intervals, and up to one more at random. */
#define NEXT_SCRAPE_ABSENT_INTERVALS 10
/* Attempts of which it is known whether somebody else profiled the process. */
#define NEXT_SCRAPE_HISTORY 16

struct scrape_history {
    uint16_t conflicts; /* bit 0: the last attempt found the process in use; bit 1 the one before */
    uint8_t attempts;   /* that these bits stand for */
    uint8_t not_found;  /* times in a row, as far as that matters */
    bool absent;
    bool retried; /* the next attempt is the second one of its interval */
};

/* All on the monotonic clock. */
struct next_scrape_input {
    enum reason_kind end;
    bool continuous;
    int64_t now_ms;
    int64_t start_ms;    /* when the one that has ended was started */
    int64_t tick_ms;     /* the next one as it stands in the schedule */
    int64_t phase_ms;    /* the first instant after now in the scrape's own phase */
    int64_t interval_ms; /* > 0 */
    int64_t sampling_ms; /* 0 if it does not sample */
};

/* Takes note of the end and returns when the next one is due, never before now. */
int64_t next_scrape_at(struct scrape_history *c, const struct next_scrape_input *in,
                       struct rng *rng);
/* How many of the last attempts (c->attempts of them) found the process in use. */
unsigned scrape_history_conflicts(const struct scrape_history *c);

#endif

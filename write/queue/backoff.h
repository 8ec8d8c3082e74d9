/* Times the attempts to reach something that fails: an endpoint, or one tenant of it.
 *
 * After the k-th failure in a row, it rests for a random time from min * 2^(k-1) to min * 2^k, at
 * most max (jitter applies there as well), or for as long as the server asked. After the rest, one
 * probe is in flight until it is answered; then the number in flight grows from one
 * (BACKOFF_PACE_MS). Attempts that were started before a failure count neither as further failures
 * nor as a recovery: each attempt carries a ticket.
 *
 * Pure logic: the caller passes the time in, and holds the lock. */
#ifndef PROFPULL_WRITE_QUEUE_BACKOFF_H
#define PROFPULL_WRITE_QUEUE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* After an outage, one request is in flight at first. The number doubles after each period of this
 * length, so that the backlog does not overload a server that has just come up. */
#define BACKOFF_PACE_MS 250
/* The shortest rest: an endpoint that refuses connections must not cost a core. */
#define BACKOFF_REST_MIN_MS 10

struct backoff {
    unsigned failures;    /* failures in a row; 0: it works */
    int64_t rest_until;   /* end of the rest; counts while failures > 0 */
    int64_t asked_until;  /* end of the rest that the server asked for; counts while failures > 0 */
    int64_t recovered_ms; /* when the last outage ended; INT64_MIN: there was none */
    uint64_t generation;  /* changes with every failure that counts */
    uint64_t in_flight;
    bool probing;
};

/* The ticket of one attempt. */
struct backoff_ticket {
    uint64_t generation; /* the generation when the attempt was started */
    bool probe;
};

/* The bounds of a rest, in ms. */
struct backoff_times {
    int64_t min_ms;
    int64_t max_ms;
};

void backoff_init(struct backoff *b);
/* Returns true if an attempt may be started now. */
bool backoff_may_start(const struct backoff *b, int64_t now_ms);
/* Returns the time from which backoff_may_start() will be true even if no other attempt ends.
 * INT64_MIN if it is true already, or if only attempts in flight prevent it; INT64_MAX if a probe
 * is in flight. */
int64_t backoff_wake_ms(const struct backoff *b);
/* Returns the remaining rest in ms; 0 if there is none. */
int64_t backoff_wait_ms(const struct backoff *b, int64_t now_ms);

/* Starts an attempt, and sets its ticket. If something has failed before, the attempt is the probe.
 */
void backoff_start(struct backoff *b, struct backoff_ticket *t);
/* Restarts the ticket of an attempt that was delayed because its bytes had to be loaded. */
void backoff_restart(const struct backoff *b, struct backoff_ticket *t);
/* Ends an attempt, successful or not. */
void backoff_land(struct backoff *b, struct backoff_ticket *t);

/* Notes that an attempt succeeded. Returns true if that ends an outage. */
bool backoff_worked(struct backoff *b, const struct backoff_ticket *t, int64_t now_ms);
/* Notes that an attempt failed. asked_ms: the rest that the server asked for; 0: none. */
void backoff_failed(struct backoff *b, const struct backoff_ticket *t,
                    const struct backoff_times *times, int64_t asked_ms, struct rng *rng,
                    int64_t now_ms);

/* Ends the present rest, even if the server asked for it: the configuration has changed. Attempts
 * that were started before do not begin another one. */
void backoff_end_rest(struct backoff *b);
/* Ends the present rest at until_ms at the latest, unless the server asked for more. */
void backoff_shorten(struct backoff *b, int64_t until_ms);

/* Returns the rest after so many failures in a row, in ms. */
int64_t backoff_rest_ms(const struct backoff_times *times, unsigned failures, struct rng *rng);

#endif

/* Clocks and a small random generator. Monotonic time is for durations and schedules, wall time for
 * people and servers. Logic takes "now" as a parameter; only loops and commands read clocks. Any
 * thread may call these functions.
 */
#ifndef PROFPULL_BASE_CLOCK_H
#define PROFPULL_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/str.h"

#define MS_PER_S INT64_C(1000)
#define MS_PER_HOUR (3600 * MS_PER_S)
#define MS_PER_DAY (24 * MS_PER_HOUR)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

int64_t clock_mono_ns(void);
int64_t clock_mono_ms(void);
int64_t clock_wall_ns(void);
/* Sleeps until a monotonic instant, or until a signal handler has run. */
void clock_sleep_until_ns(int64_t mono_ns);

/* Returns a time of `ms`, 0 or more, as a deadline of pthread_cond_timedwait() or a pause of
 * nanosleep(). */
struct timespec clock_timespec(int64_t ms);
/* Makes a condition whose deadlines are monotonic times. */
void clock_cond_init(pthread_cond_t *cond);

/* Returns the current offset in ns from monotonic to wall time: the wall time of a monotonic
 * instant t is t + offset. */
int64_t clock_wall_offset_ns(void);

/* Returns a number of ns that comes from outside, or 0 if it does not fit an int64_t: later than
 * 2262 if it is a time since 1970. */
static inline int64_t clock_ns_or_0(uint64_t ns)
{
    return ns <= INT64_MAX ? (int64_t)ns : 0;
}

/* Writes a time as RFC 3339 in UTC with milliseconds ("2026-11-21T03:23:34.123Z"). size must be at
 * least 25. */
void clock_format_rfc3339(int64_t wall_ns, char *out, size_t size);
/* Takes an RFC 3339 time from the start of *v, in ns since 1970: years 1970 to 9999, "T", "t" or a
 * space before the hour, a fraction of at most fraction_max digits (digits after the ninth are
 * ignored), and "Z", "z", "+01:00" or "+0100". A time that does not fit an int64_t becomes
 * INT64_MAX. */
bool clock_take_rfc3339(struct sv *v, size_t fraction_max, int64_t *ret_ns);

/* A random generator. The caller owns its state, so that tests are repeatable. */
struct rng {
    uint64_t state;
};
void rng_seed(struct rng *r, uint64_t seed);
void rng_seed_random(struct rng *r); /* from getrandom(2) */
uint64_t rng_next(struct rng *r);
/* Returns a number that is uniformly distributed in [lo, hi), or lo if hi <= lo. */
int64_t rng_range(struct rng *r, int64_t lo, int64_t hi);

#endif

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/mix.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec ts = {0};
    (void)clock_gettime(id, &ts); /* cannot fail for the clocks used here */
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
    return clock_mono_ns() / NS_PER_MS;
}

int64_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_wall_offset_ns(void)
{
    return clock_wall_ns() - clock_mono_ns();
}

void clock_format_rfc3339(int64_t wall_ns, char *out, size_t size)
{
    int64_t ms = wall_ns / NS_PER_MS - (wall_ns % NS_PER_MS < 0);
    int64_t seconds = ms / MS_PER_S - (ms % MS_PER_S < 0);
    time_t t = (time_t)seconds;
    struct tm tm = {0};
    char text[64];
    (void)gmtime_r(&t, &tm);
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                   (int)(ms - seconds * MS_PER_S));
    (void)snprintf(out, size, "%s", text);
}

void rng_seed(struct rng *r, uint64_t seed)
{
    r->state = seed;
}

void rng_seed_random(struct rng *r)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        /* Without the system call, two clocks differ enough between processes for jitter. */
        seed = mix64((uint64_t)clock_wall_ns()) ^ (uint64_t)clock_mono_ns();
    }
    rng_seed(r, seed);
}

uint64_t rng_next(struct rng *r)
{
    r->state += MIX_GOLDEN;
    return mix64(r->state);
}

int64_t rng_range(struct rng *r, int64_t lo, int64_t hi)
{
    if (hi <= lo) {
        return lo;
    }
    uint64_t span = (uint64_t)hi - (uint64_t)lo;
    /* Numbers beyond the last whole multiple of the span would favour its start. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % span;
    uint64_t x = rng_next(r);
    while (x >= limit) {
        x = rng_next(r);
    }
    return (int64_t)((uint64_t)lo + x % span);
}

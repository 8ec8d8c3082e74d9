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

void clock_sleep_until_ns(int64_t mono_ns)
{
    const struct timespec ts = {.tv_sec = (time_t)(mono_ns / NS_PER_S),
                                .tv_nsec = (long)(mono_ns % NS_PER_S)};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

struct timespec clock_timespec(int64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / MS_PER_S),
                             .tv_nsec = (long)(ms % MS_PER_S * NS_PER_MS)};
}

void clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
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
    (void)gmtime_r(&t, &tm);
    (void)snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                   (int)(ms - seconds * MS_PER_S));
}

static bool take_one_of(struct sv *v, const char *chars)
{
    if (v->n == 0 || v->p[0] == '\0' || strchr(chars, v->p[0]) == NULL) {
        return false;
    }
    *v = sv_skip(*v, 1);
    return true;
}

/* Takes a number of exactly this many digits. */
static bool take_number(struct sv *v, size_t digits, uint64_t max, int64_t *ret)
{
    uint64_t number;
    if (v->n < digits || !parse_u64((struct sv){v->p, digits}, max, &number)) {
        return false;
    }
    *ret = (int64_t)number;
    *v = sv_skip(*v, digits);
    return true;
}

static bool take_date_time(struct sv *v, int64_t *ret_s)
{
    char text[sizeof("2026-11-21T03:23:34")];
    size_t n = sizeof(text) - 1;
    struct tm tm = {0};
    if (v->n < n || v->p[10] == '\0' || strchr("Tt ", v->p[10]) == NULL) {
        return false;
    }
    memcpy(text, v->p, n);
    text[10] = 'T';
    text[n] = '\0';
    /* strptime() skips spaces before a number. */
    const char *end = strchr(text, ' ') == NULL ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (end != text + n || tm.tm_year < 70) {
        return false;
    }
    *ret_s = timegm(&tm);
    *v = sv_skip(*v, n);
    return true;
}

static bool take_fraction(struct sv *v, size_t digits_max, int64_t *ret_ns)
{
    int64_t digit;
    int64_t unit_ns = NS_PER_S;
    size_t n = 0;
    *ret_ns = 0;
    if (!take_one_of(v, ".")) {
        return true;
    }
    while (n < digits_max && take_number(v, 1, 9, &digit)) {
        unit_ns /= 10;
        *ret_ns += digit * unit_ns;
        n++;
    }
    return n > 0;
}

static bool take_offset(struct sv *v, int64_t *ret_s)
{
    int64_t hours, minutes;
    int sign = v->n > 0 && v->p[0] == '-' ? -1 : 1;
    *ret_s = 0;
    if (take_one_of(v, "Zz")) {
        return true;
    }
    if (!take_one_of(v, "+-") || !take_number(v, 2, 23, &hours)) {
        return false;
    }
    (void)take_one_of(v, ":");
    if (!take_number(v, 2, 59, &minutes)) {
        return false;
    }
    *ret_s = sign * (hours * 60 + minutes) * 60;
    return true;
}

bool clock_take_rfc3339(struct sv *v, size_t fraction_max, int64_t *ret_ns)
{
    int64_t seconds, fraction_ns, offset_s;
    if (!take_date_time(v, &seconds) || !take_fraction(v, fraction_max, &fraction_ns) ||
        !take_offset(v, &offset_s)) {
        return false;
    }
    seconds -= offset_s;
    *ret_ns = seconds < INT64_MAX / NS_PER_S ? seconds * NS_PER_S + fraction_ns : INT64_MAX;
    return true;
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

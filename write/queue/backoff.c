#include "write/queue/backoff.h"

#define FAILURES_MAX 1000000

void backoff_init(struct backoff *b)
{
    *b = (struct backoff){.recovered_ms = INT64_MIN};
}

/* ---- questions ------------------------------------------------------------------------------- */

static int64_t rests_until(const struct backoff *b)
{
    return b->asked_until > b->rest_until ? b->asked_until : b->rest_until;
}

/* Returns true if the pace after an outage forbids one more request in flight. */
static bool is_paced(const struct backoff *b, int64_t now_ms)
{
    if (b->recovered_ms == INT64_MIN) {
        return false;
    }
    int64_t steps = (now_ms - b->recovered_ms) / BACKOFF_PACE_MS;
    return steps < 16 && b->in_flight >= UINT64_C(1) << (steps > 0 ? steps : 0);
}

bool backoff_may_start(const struct backoff *b, int64_t now_ms)
{
    if (b->failures > 0) {
        return !b->probing && now_ms >= rests_until(b);
    }
    return !is_paced(b, now_ms);
}

int64_t backoff_wake_ms(const struct backoff *b)
{
    if (b->failures == 0) {
        return INT64_MIN;
    }
    return b->probing ? INT64_MAX : rests_until(b);
}

int64_t backoff_wait_ms(const struct backoff *b, int64_t now_ms)
{
    return b->failures > 0 && rests_until(b) > now_ms ? rests_until(b) - now_ms : 0;
}

/* ---- attempts -------------------------------------------------------------------------------- */

void backoff_start(struct backoff *b, struct backoff_ticket *t)
{
    b->in_flight++;
    t->probe = b->failures > 0;
    b->probing = b->probing || t->probe;
    t->generation = b->generation;
}

void backoff_restart(const struct backoff *b, struct backoff_ticket *t)
{
    t->generation = b->generation;
}

void backoff_land(struct backoff *b, struct backoff_ticket *t)
{
    b->in_flight--;
    b->probing = b->probing && !t->probe;
    t->probe = false;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

bool backoff_worked(struct backoff *b, const struct backoff_ticket *t, int64_t now_ms)
{
    if (t->generation != b->generation || b->failures == 0) {
        return false;
    }
    b->failures = 0;
    b->rest_until = 0;
    b->asked_until = 0;
    b->recovered_ms = now_ms;
    return true;
}

int64_t backoff_rest_ms(const struct backoff_times *times, unsigned failures, struct rng *rng)
{
    int64_t high = times->min_ms;
    for (unsigned i = 0; i < failures && high < times->max_ms; i++) {
        high = high < INT64_MAX / 2 ? 2 * high : INT64_MAX;
    }
    int64_t low = high / 2;
    /* Jitter at the cap as well: many replicas may wait for one server. */
    if (high > times->max_ms) {
        high = times->max_ms;
        low = low < high / 2 ? low : high / 2;
    }
    int64_t wait = rng_range(rng, low, high);
    return wait > BACKOFF_REST_MIN_MS ? wait : BACKOFF_REST_MIN_MS;
}

void backoff_failed(struct backoff *b, const struct backoff_ticket *t,
                    const struct backoff_times *times, int64_t asked_ms, struct rng *rng,
                    int64_t now_ms)
{
    if (t->generation == b->generation) {
        b->failures += b->failures < FAILURES_MAX;
        b->generation++;
        b->rest_until = now_ms + backoff_rest_ms(times, b->failures, rng);
    }
    /* A rest that a server asked for in an outage that is over does not count. */
    if (b->failures > 0 && asked_ms > 0 && b->asked_until < now_ms + asked_ms) {
        b->asked_until = now_ms + asked_ms;
    }
}

void backoff_end_rest(struct backoff *b)
{
    b->generation++;
    b->rest_until = 0;
    b->asked_until = 0;
}

void backoff_shorten(struct backoff *b, int64_t until_ms)
{
    b->rest_until = b->rest_until < until_ms ? b->rest_until : until_ms;
}

#include "scraper/timeout_hint.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/clock.h"

static bool is_same_time(int64_t a_ms, int64_t b_ms)
{
    int64_t apart = a_ms > b_ms ? a_ms - b_ms : b_ms - a_ms;
    return apart <= TIMEOUT_HINT_SAME_MS || apart <= a_ms / 20;
}

/* Adds the advice for a proxy that cuts every response after limit_ms. */
static void advise(const struct timeout_hint_input *in, int64_t limit_ms, const char *whose,
                   struct err *err)
{
    int64_t fits = limit_ms / MS_PER_S - 1;
    if (fits < 1) {
        fits = 1;
    }
    err_append(
        err,
        "; a server or proxy on the way limits answers to about %.1f s: set seconds of the profile "
        "type %s (now %us) to at most %" PRId64 "s, or raise %s over %us",
        (double)limit_ms / 1000.0, in->type, in->seconds, fits, whose, in->seconds);
}

static enum reason of_cut(const struct timeout_hint_input *in, struct err *err)
{
    int64_t asked_ms = (int64_t)in->seconds * MS_PER_S;
    if (in->lasted_ms >= asked_ms) {
        err_append(err,
                   "; the profile was done and the answer came too late: set seconds of the "
                   "profile type %s (now %us) below the WriteTimeout of the target's server, or "
                   "raise that over %us",
                   in->type, in->seconds, in->seconds);
        return REASON_DURATION_TOO_LONG;
    }
    if (in->lasted_ms >= TIMEOUT_HINT_CUT_MIN_MS && in->last_cut_ms >= 0 &&
        is_same_time(in->lasted_ms, in->last_cut_ms)) {
        advise(in, in->lasted_ms, "the timeout of the server or proxy", err);
        return REASON_DURATION_TOO_LONG;
    }
    return in->reason;
}

enum reason timeout_hint_find(const struct timeout_hint_input *in, struct err *err)
{
    if (in->seconds == 0) {
        return in->reason;
    }
    if (in->reason == REASON_DURATION_TOO_LONG) {
        err_append(err,
                   ": set seconds of the profile type %s (now %us) below that WriteTimeout, or "
                   "raise it over %us",
                   in->type, in->seconds, in->seconds);
    } else if (in->reason == REASON_CUT && in->status == 0) {
        return of_cut(in, err);
    } else if (in->reason == REASON_HTTP_504 && in->lasted_ms >= TIMEOUT_HINT_CUT_MIN_MS) {
        advise(in, in->lasted_ms, "the timeout of the proxy", err);
    }
    return in->reason;
}

/* Recognises failures caused by the time for which a profile samples, and adds advice.
 *
 * If the write timeout of a server is shorter than the profile, the server either refuses the
 * request (older versions of Go: 400 with "profile duration exceeds server's WriteTimeout") or cuts
 * the connection. Go servers cut it when the profile is done, because their write timeout has
 * passed by then; proxies always cut it after the same time. Pure logic.
 */
#ifndef PROFPULL_SCRAPER_TIMEOUT_HINT_H
#define PROFPULL_SCRAPER_TIMEOUT_HINT_H

#include <stdint.h>

#include "base/err.h"
#include "model/reason.h"

/* A connection that was cut sooner than this was not cut because of its duration. */
#define TIMEOUT_HINT_CUT_MIN_MS 1000
/* Two cuts count as equally late if they differ by at most this, or by a twentieth. */
#define TIMEOUT_HINT_SAME_MS 250

struct timeout_hint_input {
    enum reason reason;  /* the reason that is known so far */
    long status;         /* 0: no response */
    const char *type;    /* key of the profile type */
    uint32_t seconds;    /* for how long the type samples; 0: it does not sample */
    int64_t lasted_ms;   /* from the request to the end */
    int64_t last_cut_ms; /* lasted_ms of the previous attempt if that was cut too, else -1 */
};

/* Returns the reason, or a more precise one, and appends advice to the sentence in err. */
enum reason timeout_hint_find(const struct timeout_hint_input *in, struct err *err);

#endif

/* Failures that come from how long a profile samples: recognised, and told with what to do.
 *
 * A server that gives an answer less time than the profile takes says so (older versions of Go: 400
 * with "profile duration exceeds server's WriteTimeout"), or cuts the connection: when the profile
 * is done and it is too late to answer, or, as proxies do, always after the same time. Pure logic.
 */
#ifndef PROFPULL_SCRAPER_TIMEOUT_HINT_H
#define PROFPULL_SCRAPER_TIMEOUT_HINT_H

#include <stdint.h>

#include "base/err.h"
#include "model/reason.h"

/* A connection that was cut sooner than this was not cut for taking long. */
#define TIMEOUT_HINT_CUT_MIN_MS 1000
/* Two cuts at the same time differ by no more than this, or a twentieth of it. */
#define TIMEOUT_HINT_SAME_MS 250

struct timeout_hint_input {
    enum reason reason;  /* as found so far */
    long status;         /* 0: no answer came */
    const char *type;    /* key of the profile type */
    uint32_t seconds;    /* that it was to sample; 0: it does not */
    int64_t lasted_ms;   /* from the request to the end */
    int64_t last_cut_ms; /* the same of the attempt before if that was cut too, else -1 */
};

/* The reason, perhaps a better one; adds to the sentence in err what can be done. */
enum reason timeout_hint_find(const struct timeout_hint_input *in, struct err *err);

#endif

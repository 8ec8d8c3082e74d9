/* Times in the queries of Pyroscope's HTTP APIs: "1795307400", "now-1h", "20261122". Pure; any
 * thread.
 */
#ifndef PROFPULL_API_ATTIME_H
#define PROFPULL_API_ATTIME_H

#include <stdint.h>

#include "base/str.h"

/* The time in ns since 1970. Digits are a date if they are 8 and make one, ms if 13, us if 16, ns
 * if 19, else seconds; "now" may be followed by a sign and a number with a unit: s, m or min, h, d,
 * w, M or mon, y. Everything else, and what does not fit, is now: a server never refuses a time. */
int64_t attime_read(struct sv text, int64_t now_ns);

#endif

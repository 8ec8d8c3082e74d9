/* Times in the queries of Pyroscope's HTTP APIs: "1795307400", "now-1h", "20261122". Pure; any
 * thread.
 */
#ifndef PROFPULL_API_ATTIME_H
#define PROFPULL_API_ATTIME_H

#include <stdint.h>

#include "base/str.h"

/* Reads a time, in ns since 1970. Eight digits that make a date are a date; 13 digits are ms, 16
 * us, 19 ns; any other number of digits are seconds. "now" may be followed by a sign and a number
 * with a unit: s, m or min, h, d, w, M or mon, y. Any other text, and a time that does not fit,
 * means now: Pyroscope's server never refuses a time. */
int64_t attime_read(struct sv text, int64_t now_ns);

#endif

/* Writes values of profiles in a form for people. Pure; any thread. */
#ifndef PROFPULL_PAGES_VALUE_H
#define PROFPULL_PAGES_VALUE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends "1.25 s" or "3.50 MiB". unit is that of the sample type ("nanoseconds", "bytes"); a value
 * with any other unit is written as a count. */
void value_put(struct buf *out, int64_t value, struct sv unit);
/* Appends "12.5 %". If whole is 0, the share is 0 %. */
void value_put_share(struct buf *out, int64_t part, int64_t whole);

#endif

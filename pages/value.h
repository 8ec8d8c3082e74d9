/* Values of profiles in words, as people read them. Pure; any thread. */
#ifndef PROFPULL_PAGES_VALUE_H
#define PROFPULL_PAGES_VALUE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends "1.25 s" or "3.50 MiB"; unit: that of the sample type ("nanoseconds", "bytes"), any other
 * is counted. */
void value_put(struct buf *out, int64_t value, struct sv unit);
/* Appends "12.5 %"; nothing is 0 %. */
void value_put_share(struct buf *out, int64_t part, int64_t whole);

#endif

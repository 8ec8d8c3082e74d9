/* What the two halves of the delta engine share: delta.c counts, delta_write.c writes. */
#ifndef PROFPULL_PPROF_DELTA_PRIVATE_H
#define PROFPULL_PPROF_DELTA_PRIVATE_H

#include "base/buf.h"
#include "pprof/delta.h"
#include "pprof/index.h"

/* All samples of one stack. Their values stand in a table beside, one row a stack. */
struct delta_stack {
    struct pprof_key key;
    struct pprof_span sample; /* the message of the first one */
    uint32_t old_slot;        /* of the baseline, + 1; 0 if it is not there */
};

/* Writes the profile with one sample for each row that is not all zero, and what they need.
 * Returns the number of samples; 0 writes nothing. Marks what is used in x; once for each x.
 * buf_ok(out) afterwards says whether there was enough memory. */
size_t delta_write(struct pprof_index *x, const struct delta_stack *stacks, const int64_t *values,
                   size_t n, int64_t duration_nanos, struct buf *out);

#endif

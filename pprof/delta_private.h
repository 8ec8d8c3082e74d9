/* Shared by the two halves of the delta engine: delta.c counts, delta_write.c writes. */
#ifndef PROFPULL_PPROF_DELTA_PRIVATE_H
#define PROFPULL_PPROF_DELTA_PRIVATE_H

#include "base/buf.h"
#include "pprof/delta.h"
#include "pprof/index.h"

/* All samples of one stack. Their values are in a separate table, one row for each stack. */
struct delta_stack {
    struct pprof_key key;
    struct pprof_span sample; /* the message of the first one */
    uint32_t old_slot;        /* in the baseline, + 1; 0 if it is not there */
};

/* Writes the profile with one sample for each row that is not all zero, and all that they refer to.
 * Returns the number of samples. Marks used entries in x, so it can be called once for each x.
 * buf_ok(out) afterwards says whether there was enough memory. */
size_t delta_write(struct pprof_index *x, const struct delta_stack *stacks, const int64_t *values,
                   size_t n, int64_t duration_nanos, struct buf *out);

#endif

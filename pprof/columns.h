/* What deltas and merges have in common: which columns of a profile count, and how many entries it
 * may have. Pure functions, any thread.
 */
#ifndef PROFPULL_PPROF_COLUMNS_H
#define PROFPULL_PPROF_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "pprof/index.h"

/* A profile with more entries of a kind is refused: the memory to work in grows with them. */
#define PPROF_ENTRIES_MAX 500000
#define PPROF_VALUES_MAX 2000000

/* Says of each of at most SUMMARY_TYPES_MAX columns whether it is a counter (alloc_*, contentions,
 * delay) or a gauge. Without a known counter, and if counters may have any name, all columns except
 * inuse_* are counters. Returns the number of counters. */
size_t pprof_counters(const struct pprof_index *x, bool any_counter,
                      bool ret_is_counter[SUMMARY_TYPES_MAX]);

/* Whether a profile with so many fields (pprof_summary.n) is small enough for what is made of it, a
 * "delta" for example; ERR_LIMIT otherwise. */
bool pprof_small_enough(const size_t *n, const char *what, struct err *err);

#endif

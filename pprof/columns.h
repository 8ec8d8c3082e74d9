/* Rules that deltas and merges share: which columns of a profile are counters, and how many entries
 * a profile may have. The functions are pure; any thread may call them.
 */
#ifndef PROFPULL_PPROF_COLUMNS_H
#define PROFPULL_PPROF_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "pprof/index.h"

/* The most entries of a kind. A profile with more is refused, because the working memory grows with
 * them. */
#define PPROF_ENTRIES_MAX 500000
#define PPROF_VALUES_MAX 2000000

/* Divides the columns, at most SUMMARY_TYPES_MAX, into counters (alloc_*, contentions, delay) and
 * gauges. If no column is a known counter and any_counter is set, all columns except inuse_* are
 * counters. Returns the number of counters. */
size_t pprof_counters(const struct pprof_index *x, bool any_counter,
                      bool ret_is_counter[SUMMARY_TYPES_MAX]);

/* Checks the numbers of entries of a profile (pprof_summary.n). Returns false with ERR_LIMIT if
 * there are too many; what: the name of the result in the message, such as "delta". */
bool pprof_small_enough(const size_t *n, const char *what, struct err *err);

#endif

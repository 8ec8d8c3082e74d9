/* Merges profiles of one series into one, byte for byte as google/pprof's profile.Merge().
 *
 * All profiles must have the same sample types in the same order and the same period type. Samples
 * with equal stacks and labels become one sample with the sums of their values. Samples whose
 * values are all zero are left out, with the entries that only they refer to. Two entries are
 * equal if these members are:
 * - mapping: size in pages, offset, and build id or, if that is empty, file name
 * - function: name, system name, file name and first line
 * - location: mapping, address relative to the start of the mapping (address space randomization
 *   moves the start), folded or not, and function, line and column of all lines
 *
 * The head of the result: sample types, period type, and the frames to drop and keep are those of
 * the first profile; the period is the greatest, durations add up, comments are united, the default
 * sample type and the URL of documentation are the first ones that are not empty.
 *
 * The result differs from google/pprof's in two points: its time is the earliest that is not 0,
 * even if the first profile has none, and a sum beyond int64_t stays at the limit of int64_t.
 *
 * This describes MERGE_SUM; the comment of MERGE_WINDOW says how that differs.
 *
 * Profiles are added one by one. The time to add one is in proportion to its own size. Memory is
 * bounded by bytes_max, plus the working memory for one profile (see PPROF_ENTRIES_MAX), plus the
 * plain result in merge_write(). One thread at a time may use a merge.
 */
#ifndef PROFPULL_PPROF_MERGE_H
#define PROFPULL_PPROF_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"

enum merge_mode {
    MERGE_SUM, /* as google/pprof: every column adds up */
    /* Deltas of one series in the order of time: what pprof/delta.h would have made of the whole
     * window. Counters add up; gauges (inuse_*) are those of the profile added last, in earlier
     * ones they count as 0; the time is the last one that is not 0. */
    MERGE_WINDOW,
};

struct merge_options {
    /* limit of all that is kept, and of one inflated profile; at most 4 GiB */
    size_t bytes_max;
    enum merge_mode mode;
    bool any_counter;        /* of MERGE_WINDOW: see pprof_counters() */
    struct scratch *scratch; /* working memory, reset by each call. NULL: one of its own */
};

struct merge;

/* Makes an empty merge. Returns NULL if out of memory. */
struct merge *merge_new(const struct merge_options *o, struct err *err);
struct merge *merge_free(struct merge *m); /* accepts NULL, returns NULL */

/* Adds a profile, gzip or plain. On failure returns false and the merge stays as it was: ERR_INPUT
 * if the profile is damaged or has other types (the error says which), ERR_LIMIT, or ERR_MEMORY. */
bool merge_add(struct merge *m, struct sv body, struct err *err);

/* Appends the result of all profiles so far, as gzip; more can be added afterwards. Appends nothing
 * for a window in which no sample is left. Returns false if no profile was added (ERR_INPUT), at
 * the ceiling of the buffer (ERR_LIMIT), or if out of memory. */
bool merge_write(struct merge *m, struct buf *out, struct err *err);

/* Returns the bytes that the merge holds, without the scratch. */
size_t merge_bytes(const struct merge *m);

#endif

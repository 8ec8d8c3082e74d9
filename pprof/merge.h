/* Merges profiles of one series into one, as google/pprof's profile.Merge() does, to the sample.
 *
 * Profiles must have the same sample types in the same order and the same period type. Samples with
 * equal stacks and labels become one, whose values are the sums; samples that are all zero are left
 * out, with everything that only they referred to. Frames are equal by their content: addresses are
 * relative to the start of their mapping (which address space randomization moves), mappings are
 * equal by size, offset and build id (or file name), functions by name, system name, file and first
 * line. Sample types, period type and the frames to drop and keep are those of the first profile;
 * the period is the greatest, durations add up, comments are united, the default sample type and
 * the URL of documentation are the first that are not empty. The result is byte for byte what
 * google/pprof writes, before compression, with two exceptions: the time is the earliest that is
 * not 0, wherever profiles without a time stand, and a sum beyond int64_t stays at its limit.
 *
 * That is MERGE_SUM; MERGE_WINDOW differs as it says below.
 *
 * Profiles are added one by one; each takes time in proportion to its own size, whatever is there
 * already. Memory is bounded by bytes_max, plus what working on one profile takes (see
 * PPROF_ENTRIES_MAX), plus the plain result in merge_write(). One thread at a time.
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
    size_t bytes_max; /* of all that is kept, and of one profile when inflated; at most 4 GiB */
    enum merge_mode mode;
    bool any_counter;        /* of MERGE_WINDOW: see pprof_counters() */
    struct scratch *scratch; /* to work in; it is reset by each call. NULL: one of its own */
};

struct merge;

/* NULL if out of memory. */
struct merge *merge_new(const struct merge_options *o, struct err *err);
struct merge *merge_free(struct merge *m); /* accepts NULL, returns NULL */

/* Adds a profile, gzip or plain. False, and the merge stays as it was, with ERR_INPUT for one that
 * is damaged or of other types (the error says which), ERR_LIMIT, or ERR_MEMORY. */
bool merge_add(struct merge *m, struct sv body, struct err *err);

/* Appends the result of all profiles so far, as gzip; further ones can be added afterwards. Of a
 * window without a sample that is left it appends nothing. False without a profile (ERR_INPUT), at
 * the ceiling of the buffer (ERR_LIMIT), or out of memory. */
bool merge_write(struct merge *m, struct buf *out, struct err *err);

/* Bytes that it holds, without the scratch. */
size_t merge_bytes(const struct merge *m);

#endif

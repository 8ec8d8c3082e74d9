/* Merging of queued deltas: when the queue of a destination runs full, or profiles near their
 * max_age, the deltas of a series become one that covers the windows of all of them. Its counters
 * are their sums, so nothing of them is lost; its gauges are those of the last one.
 *
 * With a spool, deltas are also merged before its disk is full, or before its index takes too much
 * memory. Parts that are only on disk are read back first.
 *
 * A thread of its own (merger.h) makes a plan, and for each group in it takes a job, runs it
 * without any lock, and gives it back. The parts of a job are counted as queued meanwhile.
 *
 * A merged profile has the age of its youngest part and the place in the queue of its oldest one.
 * A part that a server has doubted, or that cannot be merged, stays as it is: it must not spoil the
 * others.
 */
#ifndef PROFPULL_WRITE_QUEUE_MERGING_H
#define PROFPULL_WRITE_QUEUE_MERGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pprof/scratch.h"
#include "write/queue/send_queue.h"

/* Shares of max_bytes, in percent. Merging begins when more bytes than this share cannot be freed
 * without a loss, and ends below the lower share. */
#define MERGE_BEGIN_PERCENT 75
#define MERGE_END_PERCENT 55
/* From this share of max_age on, in percent, profiles are merged into younger ones. */
#define MERGE_AGE_PERCENT 87
/* Above this share, in percent, the thread works without rests. */
#define MERGE_HURRY_PERCENT 90
/* The fewest profiles on disk that are merged, unless there is no time to wait for more. */
#define MERGE_DISK_MIN 8
/* The most profiles of one job. */
#define MERGE_PARTS_MAX 64
/* The most memory in which a job may work; half of max_bytes if that is less. Parts that would need
 * more are not merged.
 */
#define MERGE_BYTES_MAX (UINT64_C(64) * 1024 * 1024)
/* Default limit of the profiles that are kept and of the memory to work in together. */
#define MERGE_MEMORY_DEFAULT ((size_t)256 * 1024 * 1024)
#define MERGE_BYTES_MIN (UINT64_C(1) * 1024 * 1024)

/* A group that is worth merging. */
struct merge_candidate {
    uint64_t key;
    uint64_t bytes; /* the bytes of its parts */
    uint64_t spare; /* bytes of all but the largest one: about what merging frees */
    int64_t oldest_ms;
    bool aged; /* its parts are near max_age */
    bool disk; /* the reason is a disk that is nearly full */
};

/* Returns true if there may be something to merge. Any thread. */
bool merging_is_due(struct send_queue *q, int64_t now_ms);

/* Lists the groups that are worth merging, in the order in which they should be merged, and returns
 * their number: 0 if there are none, or if out of memory. free(*ret) afterwards. */
size_t merging_plan(struct send_queue *q, int64_t now_ms, struct merge_candidate **ret);
/* Returns true if c still has to be merged: after other jobs of a plan, this may not be needed any
 * more. */
bool merging_is_needed(struct send_queue *q, const struct merge_candidate *c);

/* Returns true if the queue may be full soon, so that there is no time to rest. */
bool merging_is_urgent(struct send_queue *q);

struct merge_job;

/* Takes the parts of a group out of the queue and returns a job. Returns NULL if there are too few
 * parts, if out of memory, or if parts have to be read from the disk first (see merging_loaded()).
 */
struct merge_job *merging_take(struct send_queue *q, const struct merge_candidate *c);
/* Returns true while the parts of a job are read from the disk; there is one such job at a time. */
bool merging_is_loading(struct send_queue *q);
/* Returns the job whose parts have been read from the disk; NULL if there is none. */
struct merge_job *merging_loaded(struct send_queue *q);
/* Merges the parts of a job, on the calling thread. scratch as in struct merge_options. most: the
 * limit of the bytes that are kept of the parts, usually MERGE_BYTES_MAX. */
void merging_run(struct merge_job *job, struct scratch *scratch, uint64_t most);
/* Puts the result back, or the parts if there is none, and frees the job. */
void merging_done(struct merge_job *job, int64_t now_ms);

#endif

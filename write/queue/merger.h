/* The thread that merges queued deltas (merging.h), for all destinations of a writer. The thread
 * uses half of a core at most, unless a queue is nearly full. */
#ifndef PROFPULL_WRITE_QUEUE_MERGER_H
#define PROFPULL_WRITE_QUEUE_MERGER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "write/queue/send_queue.h"

/* The shortest time between two plans. */
#define MERGER_PAUSE_MS INT64_C(200)
/* The shortest time between two returns of free memory to the system (malloc_trim()), which take
 * some 5 ms for a queue of 128 MiB. */
#define MERGER_TRIM_MS INT64_C(3000)

struct merger;

/* The longest wait for profiles that are being read from a disk, in ms. After that, other queues
 * have their turn. */
#define MERGER_LOAD_MS INT64_C(1000)

/* Starts the thread, without a queue. The thread uses at most memory_max bytes (0:
 * MERGE_MEMORY_DEFAULT), a third of them for the parts of profiles that a merge keeps. merged is
 * called on the thread after each job. */
struct merger *merger_new(size_t memory_max, void (*merged)(void *arg), void *arg, struct err *err);
/* Adds a queue, which must exist until it is removed, or until merger_stop(). Any thread. */
bool merger_add(struct merger *m, struct send_queue *q, struct err *err);
/* Removes a queue. If a job of this queue runs, waits for its end. Does nothing if q is NULL or was
 * not added. */
void merger_remove(struct merger *m, struct send_queue *q);
/* Ends the thread after its current job. Accepts NULL. */
void merger_stop(struct merger *m);
/* Frees the merger. Call it after merger_stop() and the last merger_poke(). Accepts NULL, returns
 * NULL. */
struct merger *merger_free(struct merger *m);
/* Wakes the thread up, because there may be something to merge (merging_is_due()). Any thread,
 * never blocks for long. Accepts NULL. */
void merger_poke(struct merger *m);

#endif

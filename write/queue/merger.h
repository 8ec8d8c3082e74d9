/* The thread that merges queued deltas (merging.h), for all destinations of a writer. It uses half
 * of a core at most, unless a queue is nearly full.
 */
#ifndef PROFPULL_WRITE_QUEUE_MERGER_H
#define PROFPULL_WRITE_QUEUE_MERGER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "write/queue/send_queue.h"

/* The shortest time between two plans. */
#define MERGER_PAUSE_MS INT64_C(200)

struct merger;

/* How long it waits for profiles that are read from a disk; others have their turn then. */
#define MERGER_LOAD_MS INT64_C(1000)

/* Starts the thread, without a queue. It takes at most so many bytes of memory (0:
 * MERGE_MEMORY_DEFAULT), a third of them for what is kept of profiles. merged is called on the
 * thread after each job. */
struct merger *merger_new(size_t memory_max, void (*merged)(void *arg), void *arg, struct err *err);
/* Queues come and go; any thread. A queue is there until it is removed, or merger_stop(). */
bool merger_add(struct merger *m, struct send_queue *q, struct err *err);
/* Waits for the merging of this queue that runs. Nothing happens if the queue is not there,
 * or NULL. */
void merger_remove(struct merger *m, struct send_queue *q);
/* Ends the thread after the job that it is at. Accepts NULL. */
void merger_stop(struct merger *m);
/* After merger_stop(), and after the last poke. Accepts NULL, returns NULL. */
struct merger *merger_free(struct merger *m);
/* There may be something to merge (merging_is_due()). Any thread, never blocks for long. Accepts
 * NULL. */
void merger_poke(struct merger *m);

#endif

/* The thread that merges queued deltas (merging.h), for all destinations of a writer. It uses half
 * of a core at most, unless a queue is nearly full.
 */
#ifndef PROFPULL_WRITE_QUEUE_MERGER_H
#define PROFPULL_WRITE_QUEUE_MERGER_H

#include <stddef.h>

#include "base/err.h"
#include "write/queue/send_queue.h"

/* The shortest time between two plans. */
#define MERGER_PAUSE_MS INT64_C(200)

struct merger;

/* How long it waits for profiles that are read from a disk; others have their turn then. */
#define MERGER_LOAD_MS INT64_C(1000)

/* Starts the thread. The queues, n of them (CONFIG_ENDPOINTS_MAX at most), outlive it; the array
 * does not have to. It takes at most so many bytes of memory (0: MERGE_MEMORY_DEFAULT), a third of
 * them for what is kept of profiles. merged is called on the thread after each job. */
struct merger *merger_new(struct send_queue *const *queues, size_t n, size_t memory_max,
                          void (*merged)(void *arg), void *arg, struct err *err);
/* Ends the thread after the job that it is at. Accepts NULL. */
void merger_stop(struct merger *m);
/* After merger_stop(), and after the last poke. Accepts NULL, returns NULL. */
struct merger *merger_free(struct merger *m);
/* There may be something to merge (merging_is_due()). Any thread, never blocks for long. Accepts
 * NULL. */
void merger_poke(struct merger *m);

#endif

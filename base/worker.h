/* A fixed pool of threads for work that takes CPU time, or one thread for work that blocks. A disk
 * may hang for ever, so each kind of blocking work needs a thread of its own.
 *
 * Items run in order of submission, each once, on any worker. Afterwards done() runs on the item's
 * home loop, so that results need no lock. The queue has no limit: the submitter limits the number
 * of its items.
 */
#ifndef PROFPULL_BASE_WORKER_H
#define PROFPULL_BASE_WORKER_H

#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"

/* Embedded in an object of the submitter, like struct loop_task. */
struct work {
    struct loop_task task;        /* private */
    struct work *next;            /* private */
    struct loop *home;            /* where done() runs */
    void (*run)(struct work *w);  /* on a worker thread */
    void (*done)(struct work *w); /* on the home loop; owns the object from then on */
};

struct worker_pool;

/* Makes a pool of n threads; 0 means one for each online CPU. */
struct worker_pool *worker_pool_new(unsigned n, struct err *err);
/* Makes a pool whose threads give way to those of normal priority (thread_lower()). */
struct worker_pool *worker_pool_new_low(unsigned n, struct err *err);
/* Makes a pool of one thread with a name (at most 15 characters). */
struct worker_pool *worker_thread_new(const char *name, struct err *err);
/* Finishes all submitted items, then joins the threads. Home loops must still exist. Accepts NULL.
 */
struct worker_pool *worker_pool_free(struct worker_pool *p);
void worker_submit(struct worker_pool *p, struct work *w); /* any thread */
/* Returns the longest time in ms that a worker has been running its current item, or 0 if no worker
 * runs one. Any thread may call it. */
int64_t worker_pool_busy_ms(const struct worker_pool *p, int64_t now_ms);

#endif

/* A fixed pool of threads for work that takes CPU time or blocks on the disk.
 *
 * Items run in order of submission, each once, on any worker. Afterwards done() runs on the item's
 * home loop, so that results need no lock. The queue has no limit: the submitter limits the number
 * of its items.
 */
#ifndef PROFPULL_BASE_WORKER_H
#define PROFPULL_BASE_WORKER_H

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

/* n threads; 0 means one for each online CPU. */
struct worker_pool *worker_pool_new(unsigned n, struct err *err);
/* Finishes all submitted items, then joins the threads. Home loops must still exist. Accepts NULL.
 */
struct worker_pool *worker_pool_free(struct worker_pool *p);
void worker_submit(struct worker_pool *p, struct work *w); /* any thread */

#endif

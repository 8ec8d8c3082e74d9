/* A fixed pool of threads for work that burns CPU or blocks on the disk.
 *
 * Items run in order of submission, each once, on any worker. When an item has run, its done()
 * runs on the loop that was named: this is how a result comes home without a lock. The queue is not
 * bounded here; whoever submits bounds what is in flight.
 */
#ifndef PROFPULL_BASE_WORKER_H
#define PROFPULL_BASE_WORKER_H

#include "base/err.h"
#include "base/loop.h"

/* Embedded in the submitter's object, like struct loop_task. */
struct work {
    struct loop_task task;        /* private */
    struct work *next;            /* private */
    struct loop *home;            /* where done() runs */
    void (*run)(struct work *w);  /* on a worker thread */
    void (*done)(struct work *w); /* on the home loop; owns the object from here on */
};

struct worker_pool;

/* n threads; 0 means one for each online CPU. */
struct worker_pool *worker_pool_new(unsigned n, struct err *err);
/* Finishes what was submitted, then joins. Home loops must still exist. Accepts NULL. */
struct worker_pool *worker_pool_free(struct worker_pool *p);
void worker_submit(struct worker_pool *p, struct work *w); /* any thread */

#endif

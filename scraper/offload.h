/* Work on the bodies of profiles that runs on the worker pool: deltas and conversions.
 *
 * A queue bounds the bytes that wait. All calls on the engine's thread; only run() of a kind is
 * called elsewhere. Work that still runs when its queue is closed frees itself when it ends.
 */
#ifndef PROFPULL_SCRAPER_OFFLOAD_H
#define PROFPULL_SCRAPER_OFFLOAD_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/metrics.h"
#include "base/worker.h"
#include "model/reason.h"
#include "pprof/scratch.h"

/* Bodies that wait for a worker or are being worked on, in bytes for each queue. Further ones fail
 * with REASON_BUSY. */
#define OFFLOAD_PENDING_MAX ((size_t)64 * 1024 * 1024)

struct engine;
struct offload;

TAILQ_HEAD(offload_line, offload);

struct offload_queue {
    struct offload_line pending;
    size_t pending_bytes;
    struct metric_cell *pending_cell; /* may be NULL */
    struct scratch_pool *scratches;   /* borrowed */
};

struct offload_kind {
    size_t size; /* of the object that starts with a struct offload */
    /* On a worker. */
    void (*run)(struct offload *o, struct scratch *scratch);
    /* The end of every object, after done() or in its place: releases what the object holds besides
     * the body. o->queue is NULL if the queue was closed. */
    void (*release)(struct offload *o);
};

struct offload {
    struct work work; /* first */
    TAILQ_ENTRY(offload) link;
    const struct offload_kind *kind;
    struct offload_queue *queue;
    void (*done)(void *arg, struct offload *o);
    void *arg;  /* NULL: cancelled */
    char *body; /* done() may take it: set it to NULL then */
    size_t size;
    struct scratch_pool *scratches; /* a reference */
    struct err err;
};

void offload_open(struct offload_queue *q, struct scratch_pool *scratches,
                  struct metric_cell *pending_cell);
void offload_close(struct offload_queue *q);

/* A zeroed object of this kind for a body; takes the body over if it succeeds. NULL with a reason
 * (busy, memory). Submit it next. */
void *offload_new(struct offload_queue *q, const struct offload_kind *kind, char *body, size_t size,
                  enum reason *ret_reason);
/* done(arg, o) is called later on this thread, never from within this call. */
void offload_submit(struct engine *e, struct offload *o, void (*done)(void *arg, struct offload *o),
                    void *arg);
/* done() will not be called. */
void offload_cancel(struct offload *o);

#endif

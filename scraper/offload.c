#include "scraper/offload.h"

#include <stdlib.h>

#include "scraper/engine.h"

void offload_open(struct offload_queue *q, struct scratch_pool *scratches,
                  struct metric_cell *pending_cell)
{
    *q = (struct offload_queue){.scratches = scratches, .pending_cell = pending_cell};
    TAILQ_INIT(&q->pending);
}

void offload_close(struct offload_queue *q)
{
    struct offload *o;
    while ((o = TAILQ_FIRST(&q->pending)) != NULL) {
        TAILQ_REMOVE(&q->pending, o, link);
        o->queue = NULL;
        o->arg = NULL;
    }
}

/* On a worker. */
static void offload_run(struct work *work)
{
    struct offload *o = (struct offload *)work;
    struct scratch *scratch = scratch_pool_take(o->scratches);
    o->kind->run(o, scratch);
    scratch_pool_give(o->scratches, scratch);
}

static void offload_end(struct work *work)
{
    struct offload *o = (struct offload *)work;
    struct offload_queue *q = o->queue;
    if (q != NULL) {
        TAILQ_REMOVE(&q->pending, o, link);
        q->pending_bytes -= o->size;
        metric_set(q->pending_cell, (int64_t)q->pending_bytes);
    }
    if (o->arg != NULL) {
        o->done(o->arg, o);
    }
    o->kind->release(o);
    scratch_pool_unref(o->scratches);
    free(o->body);
    free(o);
}

void *offload_new(struct offload_queue *q, const struct offload_kind *kind, char *body, size_t size,
                  enum reason *ret_reason)
{
    if (size > OFFLOAD_PENDING_MAX - q->pending_bytes) {
        *ret_reason = REASON_BUSY;
        return NULL;
    }
    struct offload *o = calloc(1, kind->size);
    if (o == NULL) {
        *ret_reason = REASON_MEMORY;
        return NULL;
    }
    *o = (struct offload){
        .work = {.run = offload_run, .done = offload_end},
        .kind = kind,
        .queue = q,
        .body = body,
        .size = size,
        .scratches = scratch_pool_ref(q->scratches),
        .err = ERR_INIT,
    };
    return o;
}

void offload_submit(struct engine *e, struct offload *o, void (*done)(void *arg, struct offload *o),
                    void *arg)
{
    struct offload_queue *q = o->queue;
    o->done = done;
    o->arg = arg;
    TAILQ_INSERT_TAIL(&q->pending, o, link);
    q->pending_bytes += o->size;
    metric_set(q->pending_cell, (int64_t)q->pending_bytes);
    e->io.submit(e->io.arg, &o->work);
}

void offload_cancel(struct offload *o)
{
    o->arg = NULL;
}

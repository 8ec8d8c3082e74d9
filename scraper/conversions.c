#include "scraper/conversions.h"

#include <stdlib.h>

#include "scraper/engine.h"

static const struct metric_desc RESULTS = {
    .name = "profpull_conversions_total",
    .help = "Profiles in an older format of pprof (gperftools, jemalloc) by how their conversion "
            "went.",
    .type = METRIC_COUNTER,
    .labels = {"result"},
};

void conversions_init(struct conversions *c, struct metrics *metrics)
{
    *c = (struct conversions){.results = metrics_register(metrics, &RESULTS)};
    TAILQ_INIT(&c->pending);
}

void conversions_done(struct conversions *c)
{
    struct conversion *v;
    while ((v = TAILQ_FIRST(&c->pending)) != NULL) {
        TAILQ_REMOVE(&c->pending, v, link);
        v->conversions = NULL;
        v->arg = NULL;
    }
}

/* On a worker. */
static void run(struct work *work)
{
    struct conversion *v = (struct conversion *)work;
    v->in.scratch = scratch_pool_take(v->scratches);
    v->result = legacy_convert(&v->in, &v->out, &v->err);
    scratch_pool_give(v->scratches, v->in.scratch);
}

static void end(struct work *work)
{
    struct conversion *v = (struct conversion *)work;
    struct conversions *c = v->conversions;
    if (c != NULL) {
        TAILQ_REMOVE(&c->pending, v, link);
        c->pending_bytes -= v->in.body.n;
        const char *result = v->result == LEGACY_MADE ? "ok" : "failed";
        metric_inc(metric_cell(c->results, (const char *[]){result}));
    }
    if (v->arg != NULL) {
        v->done(v->arg, v);
    }
    free(v->out.data);
    scratch_pool_unref(v->scratches);
    free((char *)(uintptr_t)v->in.body.p);
    free(v);
}

struct conversion *conversions_start(struct engine *e, struct sv body, int64_t time_ns,
                                     int64_t duration_ns,
                                     void (*done)(void *arg, struct conversion *c), void *arg,
                                     enum reason *ret_reason)
{
    struct conversions *c = &e->conversions;
    if (body.n > CONVERSIONS_PENDING_MAX - c->pending_bytes) {
        *ret_reason = REASON_BUSY;
        return NULL;
    }
    struct conversion *v = malloc(sizeof(*v));
    if (v == NULL) {
        *ret_reason = REASON_MEMORY;
        return NULL;
    }
    *v = (struct conversion){
        .work = {.run = run, .done = end},
        .conversions = c,
        .done = done,
        .arg = arg,
        .in = {.body = body,
               .time_ns = time_ns,
               .duration_ns = duration_ns,
               .seed = e->deltas.seed},
        .scratches = scratch_pool_ref(e->deltas.scratches),
        .err = ERR_INIT,
    };
    TAILQ_INSERT_TAIL(&c->pending, v, link);
    c->pending_bytes += body.n;
    e->io.submit(e->io.arg, &v->work);
    return v;
}

void conversions_cancel(struct conversion *c)
{
    c->arg = NULL;
}

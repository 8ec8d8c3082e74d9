#include "scraper/conversions.h"

#include <stdlib.h>

#include "scraper/engine.h"
#include "scraper/names.h"

void conversions_init(struct conversions *c, struct metrics *metrics)
{
    c->results = metrics_family(metrics, METRIC_COUNTER, "profpull_conversions_total",
                                "Profiles in an older format of pprof (gperftools, jemalloc) by "
                                "the result of their conversion.",
                                "result", NULL);
}

static void conversion_run(struct offload *o, struct scratch *scratch)
{
    struct conversion *c = (struct conversion *)o;
    const struct legacy_input in = {
        .body = {o->body, o->size},
        .time_ns = c->time_ns,
        .duration_ns = c->duration_ns,
        .seed = c->seed,
        .scratch = scratch,
        .rewrite = names_rewrite(c->names),
    };
    c->result = legacy_convert(&in, &c->out, &o->err);
    if (names_need_more(o, c->names, scratch)) {
        free(c->out.data);
        c->out = (struct legacy_output){.data = NULL};
    }
}

static void conversion_release(struct offload *o)
{
    struct conversion *c = (struct conversion *)o;
    if (o->queue != NULL) {
        const char *result = c->result == LEGACY_MADE ? "ok" : "failed";
        metric_inc(metric_cell_of(o->engine->conversions.results, result));
    }
    free(c->out.data);
    names_of_free(c->names);
}

struct offload *conversions_start(struct engine *e, struct names_of *names, char *body, size_t size,
                                  int64_t time_ns, int64_t duration_ns,
                                  void (*done)(void *arg, struct offload *o), void *arg,
                                  enum reason *ret_reason, struct err *err)
{
    static const struct offload_kind kind = {
        .size = sizeof(struct conversion),
        .run = conversion_run,
        .release = conversion_release,
    };
    struct conversion *c = offload_new(e, &kind, body, size, false, ret_reason, err);
    if (c == NULL) {
        return NULL;
    }
    c->names = names;
    offload_reserve_more(&c->offload, names != NULL ? NAMES_ROOM : 0);
    c->time_ns = time_ns;
    c->duration_ns = duration_ns;
    c->seed = e->deltas.seed;
    offload_submit(&c->offload, done, arg);
    return &c->offload;
}

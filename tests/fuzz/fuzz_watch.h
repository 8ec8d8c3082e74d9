/* The state machine of a list and its watch, which answers pass through, for the fuzz targets of
 * both encodings. */
#ifndef PROFPULL_FUZZ_WATCH_H
#define PROFPULL_FUZZ_WATCH_H

#include <stdint.h>
#include <stdlib.h>

#include "discovery/kubernetes/roles.h"
#include "discovery/kubernetes/watch.h"

struct machine {
    struct watch *watch;
    struct rng rng;
    int64_t now_ms;
    size_t lists;
    size_t ends;
};

static void machine_on_list_begin(void *arg)
{
    ((struct machine *)arg)->lists++;
}

static void machine_on_list_end(void *arg)
{
    struct machine *m = arg;
    if (m->lists == 0) {
        abort();
    }
    m->ends++;
}

static bool machine_on_object(void *arg, enum discovery_event event,
                              const struct kube_object *object)
{
    (void)arg;
    if ((event > EVENT_DELETED && event != EVENT_LISTED) || object == NULL) {
        abort();
    }
    return true;
}

static void machine_on_other(void *arg, enum discovery_event event, struct sv type)
{
    (void)arg;
    if (event < EVENT_BOOKMARK || event > EVENT_UNKNOWN || type.p == NULL) {
        abort();
    }
}

static void machine_on_skipped(void *arg, enum discovery_skip why)
{
    (void)arg;
    (void)why;
}

static void machine_on_relisted(void *arg, enum watch_relist reason)
{
    (void)arg;
    if (watch_relist_name(reason) == NULL) {
        abort();
    }
}

/* Makes a machine that watches pods. */
static void machine_init(struct machine *m, size_t object_max, unsigned depth_max,
                         size_t list_bytes_max)
{
    *m = (struct machine){.now_ms = 0};
    rng_seed(&m->rng, 7);
    m->watch = watch_new(&(struct watch_options){
        .handler = {.list_begin = machine_on_list_begin,
                    .list_end = machine_on_list_end,
                    .object = machine_on_object,
                    .other = machine_on_other,
                    .skipped = machine_on_skipped,
                    .relist = machine_on_relisted,
                    .arg = m},
        .rng = &m->rng,
        .selectors = "",
        .object_max = object_max,
        .depth_max = depth_max,
        .kind = "Pod",
        .rows = kube_pods.resource.rows,
        .list_bytes_max = list_bytes_max,
    });
}

static void machine_done(struct machine *m)
{
    if (m->ends > m->lists) {
        abort();
    }
    watch_free(m->watch);
}

/* The next request, answered in pieces of so many bytes. */
static void machine_answer(struct machine *m, long status, const char *type, struct sv body,
                           size_t piece)
{
    struct watch_request r;
    int64_t at = watch_next_at(m->watch);
    m->now_ms = at > m->now_ms ? at : m->now_ms;
    if (!watch_begin(m->watch, m->now_ms, &r)) {
        return;
    }
    watch_head(m->watch, status, type);
    bool ok = true;
    for (size_t i = 0; i < body.n && ok; i += piece) {
        size_t n = body.n - i < piece ? body.n - i : piece;
        ok = watch_data(m->watch, m->now_ms, body.p + i, n);
    }
    struct err err = ERR_INIT;
    m->now_ms += 5000;
    const struct watch_outcome outcome = {.result = ok ? HTTP_DONE : HTTP_ERR_ABORTED,
                                          .status = status,
                                          .retry_after_ms = -1,
                                          .error = "stopped"};
    enum watch_result result = watch_end(m->watch, &outcome, m->now_ms, &err);
    if ((result == WATCH_DONE) != (err.kind == ERR_NONE) ||
        watch_next_at(m->watch) > m->now_ms + WATCH_RETRY_AFTER_MAX_MS) {
        abort();
    }
}

#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "write/destination.h"
#include "write/export.h"
#include "write/queue/send_queue.h"
#include "write/write.h"

/* Connections that are kept for all endpoints. */
#define IDLE_CONNECTIONS_MAX 1024
/* How long the spools may write behind the deadline of a drain. */
#define FLUSH_MS 3000

/* Posted to the loop, at most once at a time. Stands apart from the writer because a task that
 * waits in the loop may outlive it. */
struct wake {
    struct loop_task task;
    struct writer *writer; /* NULL: gone */
    atomic_bool posted;
};

struct drain {
    bool requested;
    int64_t deadline_ms;
    void (*done)(void *arg);
    void *arg;
};

struct writer {
    struct loop *loop;
    struct http_client *http; /* NULL if no endpoint speaks HTTP */
    struct lane *lanes;
    size_t n_lanes;
    struct wake *wake;

    pthread_mutex_t lock; /* guards drain */
    struct drain drain;

    /* Only on the loop's thread. */
    bool draining;
    bool flushing; /* the deadline has passed, what is left is being written */
    bool drained;
    struct loop_timer *deadline;
};

const char *write_drop_name(enum write_drop d)
{
    static const char *const names[WRITE_DROPS] = {
        [DROP_QUEUE_FULL] = "queue_full", [DROP_EXPIRED] = "expired",
        [DROP_REJECTED] = "rejected",     [DROP_RETRIES] = "retries",
        [DROP_LABELS] = "labels",         [DROP_SHUTDOWN] = "shutdown",
        [DROP_MEMORY] = "memory",         [DROP_SPOOL_FULL] = "spool_full",
        [DROP_DAMAGED] = "damaged",       [DROP_FORMAT] = "format",
        [DROP_EMPTY] = "empty",           [DROP_TOO_LARGE] = "too_large",
        [DROP_TOO_OLD] = "too_old",       [DROP_BURST] = "over_burst",
    };
    return names[d];
}

/* ---- the loop's side ------------------------------------------------------------------------- */

static bool is_empty(struct writer *w)
{
    for (size_t i = 0; i < w->n_lanes; i++) {
        struct write_ledger l = endpoint_status(w->lanes[i].queue).ledger;
        if (l.queued > 0 || l.in_flight > 0) {
            return false;
        }
    }
    return true;
}

/* Everything that can be saved is. */
static bool is_flushed(struct writer *w)
{
    for (size_t i = 0; i < w->n_lanes; i++) {
        struct lane *l = &w->lanes[i];
        if (l->spool != NULL &&
            (!atomic_load(&l->flushed) || endpoint_status(l->queue).ledger.in_flight > 0)) {
            return false;
        }
    }
    return true;
}

static void finish_drain(struct writer *w)
{
    w->drained = true;
    loop_timer_cancel(w->deadline);
    w->drain.done(w->drain.arg);
}

/* Starts what may be sent, and sets the timer for what may be sent or has expired later. */
static void pump(struct lane *l)
{
    int64_t now = clock_mono_ms();
    struct endpoint_item *it;
    while ((it = endpoint_take(l->queue, now)) != NULL) {
        attempt_start(l, it, now);
    }
    struct endpoint_status status = endpoint_status(l->queue);
    report_lost(&l->report, &status, now);
    int64_t wake = endpoint_wake_ms(l->queue);
    if (wake == INT64_MAX) {
        loop_timer_cancel(l->timer);
    } else {
        loop_timer_at(l->timer, wake);
    }
}

static void give_up_the_rest(struct writer *w)
{
    for (size_t i = 0; i < w->n_lanes; i++) {
        endpoint_drop_unsafe(w->lanes[i].queue, DROP_SHUTDOWN);
    }
    finish_drain(w);
}

/* The drain is over when nothing is left, or when what is left is safe on disk. */
static void check_drain(struct writer *w)
{
    if (!w->draining || w->drained) {
        return;
    }
    if (is_empty(w)) {
        finish_drain(w);
    } else if (w->flushing && is_flushed(w)) {
        give_up_the_rest(w);
    }
}

static void pump_and_check(struct writer *w, struct lane *l)
{
    pump(l);
    check_drain(w);
}

static void on_change(void *arg, struct lane *l)
{
    pump_and_check(arg, l);
}

static void on_timer(void *arg)
{
    struct lane *l = arg;
    pump_and_check(l->arg, l);
}

static void on_deadline(void *arg)
{
    struct writer *w = arg;
    if (w->flushing) {
        give_up_the_rest(w);
        return;
    }
    for (size_t i = 0; i < w->n_lanes; i++) {
        struct lane *l = &w->lanes[i];
        endpoint_stop(l->queue);
        attempt_abandon_all(l);
        if (l->spool != NULL) {
            spool_flush(l->spool);
        }
    }
    w->flushing = true;
    loop_timer_after(w->deadline, FLUSH_MS);
    check_drain(w);
}

static void begin_drain(struct writer *w)
{
    int64_t now = clock_mono_ms();
    w->draining = true;
    for (size_t i = 0; i < w->n_lanes; i++) {
        endpoint_drain(w->lanes[i].queue, now);
    }
    loop_timer_at(w->deadline, w->drain.deadline_ms);
}

static void on_wake(struct loop_task *task)
{
    struct wake *wake = (struct wake *)(void *)task; /* its first member */
    struct writer *w = wake->writer;
    if (w == NULL) {
        free(wake);
        return;
    }
    /* Before looking: who puts something behind our look must post again. */
    atomic_store(&wake->posted, false);
    pthread_mutex_lock(&w->lock);
    bool drain = w->drain.requested && !w->draining;
    pthread_mutex_unlock(&w->lock);
    if (drain) {
        begin_drain(w);
    }
    for (size_t i = 0; i < w->n_lanes; i++) {
        pump(&w->lanes[i]);
    }
    check_drain(w);
}

/* ---- any thread ------------------------------------------------------------------------------ */

static void wake(struct writer *w)
{
    if (!atomic_exchange(&w->wake->posted, true)) {
        loop_post(w->loop, &w->wake->task);
    }
}

void writer_put(struct writer *w, struct profile *p, uint64_t endpoints)
{
    int64_t now = clock_mono_ms();
    bool any = false;
    for (size_t i = 0; i < w->n_lanes; i++) {
        if (!(endpoints >> i & 1)) {
            continue;
        }
        endpoint_put(w->lanes[i].queue, profile_ref(p), now);
        any = true;
    }
    profile_unref(p);
    if (any) {
        wake(w);
    }
}

void writer_drain(struct writer *w, int64_t deadline_ms, void (*done)(void *arg), void *arg)
{
    for (size_t i = 0; i < w->n_lanes; i++) {
        endpoint_close(w->lanes[i].queue);
    }
    pthread_mutex_lock(&w->lock);
    if (!w->drain.requested) {
        w->drain =
            (struct drain){.requested = true, .deadline_ms = deadline_ms, .done = done, .arg = arg};
    }
    pthread_mutex_unlock(&w->lock);
    wake(w);
}

struct write_ledger writer_ledger(struct writer *w, size_t endpoint)
{
    if (endpoint >= w->n_lanes) {
        return (struct write_ledger){.accepted = 0};
    }
    return endpoint_status(w->lanes[endpoint].queue).ledger;
}

static void collect(struct metrics_out *out, void *arg)
{
    struct writer *w = arg;
    struct export_row rows[CONFIG_ENDPOINTS_MAX];
    for (size_t i = 0; i < w->n_lanes; i++) {
        rows[i] = (struct export_row){.endpoint = w->lanes[i].config->name,
                                      .limit_bytes = w->lanes[i].config->queue_max_bytes,
                                      .status = endpoint_status(w->lanes[i].queue),
                                      .has_spool = w->lanes[i].spool != NULL};
        if (rows[i].has_spool) {
            rows[i].spool = spool_status(w->lanes[i].spool);
        }
    }
    export_ledgers(out, rows, w->n_lanes, clock_mono_ms());
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static bool make_http(struct writer *w, const struct writer_options *o, struct err *err)
{
    unsigned connections = 0;
    for (size_t i = 0; i < w->n_lanes; i++) {
        const struct config_endpoint *endpoint = &o->config->endpoints[i];
        if (protocol_of(endpoint)->build != NULL) {
            connections += endpoint->concurrency > 0 ? endpoint->concurrency : 1;
        }
    }
    if (connections == 0) {
        return true;
    }
    struct http_client_options options = {.loop = o->loop,
                                          .log = o->log,
                                          .metrics = o->metrics,
                                          .name = "write",
                                          .user_agent = o->user_agent,
                                          .max_idle_connections = connections < IDLE_CONNECTIONS_MAX
                                                                      ? connections
                                                                      : IDLE_CONNECTIONS_MAX};
    w->http = http_client_new(&options, err);
    return w->http != NULL;
}

static bool make_queue(struct lane *l, struct err *err)
{
    const struct config_endpoint *c = l->config;
    struct endpoint_options options = {.max_bytes = c->queue_max_bytes,
                                       .concurrency = c->concurrency,
                                       .min_backoff_ms = c->min_backoff_ms,
                                       .max_backoff_ms = c->max_backoff_ms,
                                       .max_age_ms = c->max_age_ms,
                                       .seed = rng_next(&l->rng)};
    l->queue = endpoint_new(&options);
    l->timer = loop_timer_new(l->loop, on_timer, l);
    return (l->queue != NULL && l->timer != NULL) || err_memory(err);
}

static void on_spool_changed(void *arg)
{
    struct lane *l = arg;
    wake(l->arg);
}

static void on_spool_flushed(void *arg)
{
    struct lane *l = arg;
    atomic_store(&l->flushed, true);
}

static bool make_spool(struct lane *l, const struct writer_options *o, struct err *err)
{
    const struct config_endpoint *c = l->config;
    struct spool_options options = {.directory = c->spool_directory,
                                    .endpoint = c->name,
                                    .max_bytes = c->spool_max_bytes,
                                    .fsync_ms = c->spool_fsync_ms,
                                    .hurry_bytes = c->queue_max_bytes / 4 < SPOOL_HURRY_BYTES
                                                       ? c->queue_max_bytes / 4
                                                       : SPOOL_HURRY_BYTES,
                                    .intern = o->intern,
                                    .log = o->log,
                                    .events = endpoint_spool_events(l->queue),
                                    .seed = rng_next(&l->rng)};
    options.events.wake_arg = l;
    options.events.changed = on_spool_changed;
    options.events.flushed = on_spool_flushed;
    l->spool = spool_open(&options, err);
    if (l->spool == NULL) {
        return false;
    }
    endpoint_attach(l->queue, l->spool);
    return true;
}

static bool make_lane(struct writer *w, size_t i, const struct writer_options *o, struct err *err)
{
    struct lane *l = &w->lanes[i];
    l->config = &o->config->endpoints[i];
    l->protocol = protocol_of(l->config);
    l->http = w->http;
    l->workers = o->workers;
    l->loop = o->loop;
    l->on_change = on_change;
    l->arg = w;
    l->index = i;
    l->on_attempt = o->on_attempt;
    l->attempt_arg = o->attempt_arg;
    rng_seed_random(&l->rng);
    boundary_new(&l->boundary, &l->rng);
    report_init(&l->report, o->log, o->metrics, l->config->name);
    atomic_init(&l->flushed, false);
    if (!make_queue(l, err) || (l->config->spool_directory != NULL && !make_spool(l, o, err))) {
        return false;
    }
    if (l->protocol->open != NULL) {
        l->sink = l->protocol->open(l->config->url, err);
    }
    return l->protocol->open == NULL || l->sink != NULL;
}

static bool make_lanes(struct writer *w, const struct writer_options *o, struct err *err)
{
    w->lanes = calloc(o->config->n_endpoints + 1, sizeof(w->lanes[0]));
    if (w->lanes == NULL) {
        return err_memory(err);
    }
    w->n_lanes = o->config->n_endpoints;
    for (size_t i = 0; i < w->n_lanes; i++) {
        TAILQ_INIT(&w->lanes[i].attempts);
    }
    if (!make_http(w, o, err)) {
        return false;
    }
    for (size_t i = 0; i < w->n_lanes; i++) {
        if (!make_lane(w, i, o, err)) {
            return err_wrap(err, "endpoint \"%s\"", o->config->endpoints[i].name);
        }
    }
    return true;
}

static bool init(struct writer *w, const struct writer_options *o, struct err *err)
{
    w->wake = calloc(1, sizeof(*w->wake));
    w->deadline = loop_timer_new(o->loop, on_deadline, w);
    if (w->wake == NULL || w->deadline == NULL) {
        return err_memory(err);
    }
    w->wake->task.run = on_wake;
    w->wake->writer = w;
    atomic_init(&w->wake->posted, false);
    if (!make_lanes(w, o, err)) {
        return false;
    }
    for (size_t i = 0; i < w->n_lanes; i++) {
        if (w->lanes[i].spool != NULL && !spool_start(w->lanes[i].spool, err)) {
            return false;
        }
    }
    /* Last: it must not outlive a writer that failed. */
    if (o->metrics != NULL && !metrics_collector(o->metrics, collect, w)) {
        return err_memory(err);
    }
    return true;
}

struct writer *writer_new(const struct writer_options *options, struct err *err)
{
    if (options->config->n_endpoints > CONFIG_ENDPOINTS_MAX) {
        err_set(err, ERR_INPUT, "expected at most %d endpoints, got %zu", CONFIG_ENDPOINTS_MAX,
                options->config->n_endpoints);
        return NULL;
    }
    struct writer *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        err_set(err, ERR_MEMORY, "out of memory for the writer");
        return NULL;
    }
    w->loop = options->loop;
    pthread_mutex_init(&w->lock, NULL);
    return init(w, options, err) ? w : writer_free(w);
}

static void free_lane(struct lane *l)
{
    if (l->queue != NULL) {
        endpoint_stop(l->queue);
    }
    attempt_abandon_all(l);
    /* Writes what waits; from here on the spool calls nobody. */
    spool_stop(l->spool);
    endpoint_free(l->queue);
    spool_free(l->spool);
    loop_timer_free(l->timer);
    sink_unref(l->sink);
}

struct writer *writer_free(struct writer *w)
{
    if (w == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < w->n_lanes; i++) {
        free_lane(&w->lanes[i]);
    }
    free(w->lanes);
    http_client_free(w->http);
    loop_timer_free(w->deadline);
    /* A task that is still posted frees itself when the loop gets to it. */
    if (w->wake != NULL && atomic_load(&w->wake->posted)) {
        w->wake->writer = NULL;
    } else {
        free(w->wake);
    }
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "write/destination.h"
#include "write/export.h"
#include "write/queue/merger.h"
#include "write/queue/merging.h"
#include "write/queue/send_queue.h"
#include "write/write.h"

/* Connections that are kept for all endpoints. */
#define IDLE_CONNECTIONS_MAX 1024
/* How long the spools may write after the deadline of a drain. */
#define FLUSH_MS 3000

/* The task that wakes the loop; posted only if it is not posted already. Allocated apart from the
 * writer, because a task that waits in the loop may outlive it. */
struct wake {
    struct loop_task task;
    struct writer *writer; /* NULL: freed */
    atomic_bool posted;
};

struct drain {
    int64_t deadline_ms;
    void (*done)(void *arg); /* NULL: not requested */
    void *arg;
};

struct writer {
    struct writer_options options;
    struct http_client *http; /* NULL if no endpoint speaks HTTP */
    struct destination *destinations;
    size_t n_destinations;
    struct merger *merger;
    struct wake *wake;

    pthread_mutex_t lock; /* guards drain */
    struct drain drain;

    /* Only on the loop's thread. */
    enum {
        RUNNING,
        DRAINING,
        FLUSHING, /* the deadline has passed, the rest is being written to disk */
        DRAINED,
    } phase;
    struct loop_timer *deadline;
};

const char *write_drop_name(unsigned d)
{
    static const char *const names[WRITE_DROPS] = {
        [DROP_QUEUE_FULL] = "queue_full", [DROP_EXPIRED] = "expired",
        [DROP_REJECTED] = "rejected",     [DROP_RETRIES] = "retries",
        [DROP_LABELS] = "labels",         [DROP_SHUTDOWN] = "shutdown",
        [DROP_MEMORY] = "memory",         [DROP_SPOOL_FULL] = "spool_full",
        [DROP_DAMAGED] = "damaged",       [DROP_FORMAT] = "format",
        [DROP_EMPTY] = "empty",           [DROP_TOO_LARGE] = "too_large",
        [DROP_THINNED] = "thinned",       [DROP_TOO_OLD] = "too_old",
        [DROP_BURST] = "over_burst",
    };
    return names[d];
}

/* ---- the loop's side ------------------------------------------------------------------------- */

static bool is_empty(struct writer *w)
{
    for (size_t i = 0; i < w->n_destinations; i++) {
        struct write_ledger l = send_queue_status(w->destinations[i].queue).ledger;
        if (l.queued > 0 || l.in_flight > 0) {
            return false;
        }
    }
    return true;
}

/* Whether all profiles that can be saved to disk are. */
static bool is_flushed(struct writer *w)
{
    for (size_t i = 0; i < w->n_destinations; i++) {
        struct destination *d = &w->destinations[i];
        if (d->spool != NULL &&
            (!atomic_load(&d->flushed) || send_queue_status(d->queue).ledger.in_flight > 0)) {
            return false;
        }
    }
    return true;
}

static void finish_drain(struct writer *w)
{
    w->phase = DRAINED;
    loop_timer_cancel(w->deadline);
    w->drain.done(w->drain.arg);
}

/* Sends all that may be sent now, and sets the timer for the next change. */
static void pump(struct destination *d)
{
    int64_t now = clock_mono_ms();
    struct send_item *it;
    while ((it = send_queue_take(d->queue, now)) != NULL) {
        attempt_start(d, it, now);
    }
    struct send_queue_status status = send_queue_status(d->queue);
    report_state(&d->report, &status, now);
    int64_t wake = send_queue_wake_ms(d->queue);
    if (wake == INT64_MAX) {
        loop_timer_cancel(d->timer);
        return;
    }
    /* What may be sent now has been: something else than time is in the way of the rest. */
    loop_timer_at(d->timer, wake > now ? wake : now + BACKOFF_REST_MIN_MS);
}

static void give_up_the_rest(struct writer *w)
{
    for (size_t i = 0; i < w->n_destinations; i++) {
        send_queue_drop_unsafe(w->destinations[i].queue, DROP_SHUTDOWN);
    }
    finish_drain(w);
}

static void writer_on_deadline(void *arg);

/* Whether nothing can be sent before the deadline: the servers have asked for longer rests. */
static bool rests_until_deadline(struct writer *w)
{
    for (size_t i = 0; i < w->n_destinations; i++) {
        if (!send_queue_rests_until(w->destinations[i].queue, w->drain.deadline_ms)) {
            return false;
        }
    }
    return true;
}

/* The drain is over when the queues are empty, or when the rest is safe on disk. */
static void check_drain(struct writer *w)
{
    bool draining = w->phase == DRAINING || w->phase == FLUSHING;
    if (draining && is_empty(w)) {
        finish_drain(w);
    } else if (w->phase == DRAINING && rests_until_deadline(w)) {
        writer_on_deadline(w);
    } else if (w->phase == FLUSHING && is_flushed(w)) {
        give_up_the_rest(w);
    }
}

void destination_pump(struct destination *d)
{
    pump(d);
    check_drain(d->writer);
}

static void writer_on_timer(void *arg)
{
    destination_pump(arg);
}

static void writer_on_deadline(void *arg)
{
    struct writer *w = arg;
    if (w->phase == FLUSHING) {
        give_up_the_rest(w);
        return;
    }
    for (size_t i = 0; i < w->n_destinations; i++) {
        struct destination *d = &w->destinations[i];
        send_queue_stop(d->queue);
        attempt_abandon_all(d);
        if (d->spool != NULL) {
            spool_flush(d->spool);
        }
    }
    w->phase = FLUSHING;
    loop_timer_after(w->deadline, FLUSH_MS);
    check_drain(w);
}

static void begin_drain(struct writer *w)
{
    int64_t now = clock_mono_ms();
    w->phase = DRAINING;
    for (size_t i = 0; i < w->n_destinations; i++) {
        send_queue_drain(w->destinations[i].queue, now);
    }
    loop_timer_at(w->deadline, w->drain.deadline_ms);
}

static void writer_on_wake(struct loop_task *task)
{
    struct wake *wake = (struct wake *)(void *)task; /* its first member */
    struct writer *w = wake->writer;
    if (w == NULL) {
        free(wake);
        return;
    }
    /* Before reading the queues: whoever puts a profile after that must post again. */
    atomic_store(&wake->posted, false);
    pthread_mutex_lock(&w->lock);
    bool drain = w->drain.done != NULL && w->phase == RUNNING;
    pthread_mutex_unlock(&w->lock);
    if (drain) {
        begin_drain(w);
    }
    for (size_t i = 0; i < w->n_destinations; i++) {
        pump(&w->destinations[i]);
    }
    check_drain(w);
}

/* ---- any thread ------------------------------------------------------------------------------ */

static void wake(struct writer *w)
{
    if (!atomic_exchange(&w->wake->posted, true)) {
        loop_post(w->options.loop, &w->wake->task);
    }
}

static void merge_if_due(struct writer *w, uint64_t endpoints, int64_t now_ms)
{
    for (size_t i = 0; i < w->n_destinations; i++) {
        if ((endpoints >> i & 1) && merging_is_due(w->destinations[i].queue, now_ms)) {
            merger_poke(w->merger);
            return;
        }
    }
}

bool writer_put(struct writer *w, struct profile *p, uint64_t endpoints)
{
    int64_t now = clock_mono_ms();
    bool any = false;
    bool taken = false;
    uint64_t refused = 0;
    for (size_t i = 0; i < w->n_destinations; i++) {
        if (!(endpoints >> i & 1)) {
            continue;
        }
        enum send_put put = send_queue_put(w->destinations[i].queue, profile_ref(p), now);
        any = true;
        taken = taken || put == SEND_TAKEN;
        refused |= (uint64_t)(put == SEND_REFUSED) << i;
    }
    profile_unref(p);
    for (size_t i = 0; refused != 0 && i < w->n_destinations; i++) {
        if (refused >> i & 1) {
            send_queue_refused(w->destinations[i].queue, taken);
        }
    }
    if (any) {
        wake(w);
    }
    merge_if_due(w, endpoints, now);
    return taken || !any;
}

void writer_drain(struct writer *w, int64_t deadline_ms, void (*done)(void *arg), void *arg)
{
    for (size_t i = 0; i < w->n_destinations; i++) {
        send_queue_close(w->destinations[i].queue);
    }
    pthread_mutex_lock(&w->lock);
    if (w->drain.done == NULL) {
        w->drain = (struct drain){.deadline_ms = deadline_ms, .done = done, .arg = arg};
    }
    pthread_mutex_unlock(&w->lock);
    wake(w);
}

struct write_ledger writer_ledger(struct writer *w, size_t endpoint)
{
    if (endpoint >= w->n_destinations) {
        return (struct write_ledger){.accepted = 0};
    }
    return send_queue_status(w->destinations[endpoint].queue).ledger;
}

static int64_t sink_hung_ms(const struct destination *d, int64_t now_ms)
{
    return d->sink_thread != NULL ? sink_thread_hung_ms(d->sink_thread, now_ms) : 0;
}

/* Of its directory or its spool. */
static int64_t hung_ms(const struct destination *d, int64_t now_ms)
{
    int64_t sink_ms = sink_hung_ms(d, now_ms);
    int64_t spool_ms = d->spool != NULL ? spool_hung_ms(d->spool, now_ms) : 0;
    return sink_ms > spool_ms ? sink_ms : spool_ms;
}

bool writer_hangs(const struct writer *w, struct err *err)
{
    int64_t now = clock_mono_ms();
    for (size_t i = 0; i < w->n_destinations; i++) {
        const struct destination *d = &w->destinations[i];
        int64_t ms = hung_ms(d, now);
        if (ms > 0) {
            err_set(err, ERR_SYSTEM, "endpoint \"%s\": its disk has not answered for %.1f s",
                    d->config->name, (double)ms / (double)MS_PER_S);
            return true;
        }
    }
    return false;
}

/* An endpoint is up if it works for at least one tenant. */
static void set_breaker(struct export_row *r, bool hangs)
{
    const struct send_queue_status *s = &r->status;
    bool tenants_fail = s->lanes.failing > 0 && s->lanes.failing == s->lanes.tenants;
    bool probing = s->failures > 0 ? s->probing : s->lanes.probing > 0;
    bool works = s->failures == 0 && !tenants_fail;
    r->up = works && !hangs;
    r->breaker = works ? 0 : probing ? 1 : 2;
    r->tenants = s->lanes.tenants;
    r->resting = s->lanes.failing;
}

static void writer_collect(struct metrics_out *out, void *arg)
{
    struct writer *w = arg;
    struct export_row rows[CONFIG_ENDPOINTS_MAX];
    int64_t now = clock_mono_ms();
    for (size_t i = 0; i < w->n_destinations; i++) {
        const struct destination *d = &w->destinations[i];
        struct export_row *r = &rows[i];
        *r = (struct export_row){.endpoint = d->config->name,
                                 .limit_bytes = d->config->queue_max_bytes,
                                 .status = send_queue_status(d->queue),
                                 .has_spool = d->spool != NULL};
        r->hung_ms = (uint64_t)hung_ms(d, now);
        set_breaker(r, sink_hung_ms(d, now) > 0);
        r->age_ms = r->status.oldest_ms < now ? (uint64_t)(now - r->status.oldest_ms) : 0;
        if (r->has_spool) {
            r->spool = spool_status(d->spool);
            r->spool_up = r->spool.up && spool_hung_ms(d->spool, now) == 0;
            r->spool_reading = r->spool.reading;
        }
    }
    export_ledgers(out, rows, w->n_destinations);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static bool make_http(struct writer *w, struct err *err)
{
    const struct writer_options *o = &w->options;
    unsigned connections = 0;
    for (size_t i = 0; i < w->n_destinations; i++) {
        const struct config_endpoint *endpoint = &o->config->endpoints[i];
        if (protocol_of(endpoint)->build != NULL) {
            connections += endpoint->concurrency;
        }
    }
    if (connections == 0) {
        return true;
    }
    struct http_client_options options = {.loop = o->loop,
                                          .log = o->log,
                                          .metrics = o->metrics,
                                          .name = "write",
                                          .contents = o->contents,
                                          .max_idle_connections = connections < IDLE_CONNECTIONS_MAX
                                                                      ? connections
                                                                      : IDLE_CONNECTIONS_MAX};
    w->http = http_client_new(&options, err);
    return w->http != NULL;
}

static void writer_on_merged(void *arg)
{
    struct writer *w = arg;
    wake(w);
}

static void writer_on_spool_changed(void *arg)
{
    struct destination *d = arg;
    wake(d->writer);
    if (merging_is_due(d->queue, clock_mono_ms())) {
        merger_poke(d->writer->merger);
    }
}

static void writer_on_spool_flushed(void *arg)
{
    struct destination *d = arg;
    atomic_store(&d->flushed, true);
}

static bool make_spool(struct destination *d, struct err *err)
{
    uint64_t threshold = d->config->queue_max_bytes / 4;
    struct spool_options options = {
        .config = d->config,
        .flush_threshold = threshold < SPOOL_FLUSH_THRESHOLD ? threshold : SPOOL_FLUSH_THRESHOLD,
        .intern = d->options->intern,
        .log = d->options->log,
        .events = send_queue_spool_events(d->queue),
        .seed = rng_next(&d->rng)};
    options.events.wake_arg = d;
    options.events.changed = writer_on_spool_changed;
    options.events.flushed = writer_on_spool_flushed;
    d->spool = spool_open(&options, err);
    if (d->spool == NULL) {
        return false;
    }
    send_queue_attach(d->queue, d->spool);
    return true;
}

static bool open_sink(struct destination *d, struct err *err)
{
    const struct writer_options *o = d->options;
    if (d->protocol->open != NULL) {
        d->sink = d->protocol->open(d->config, err);
    } else if (o->open_sink != NULL) {
        d->sink = o->open_sink(o->open_arg, d->config, err);
    } else {
        err_set(err, ERR_INPUT, "this command cannot write to %s://", d->config->protocol->scheme);
    }
    if (d->sink != NULL) {
        d->sink_thread = sink_thread_new(o->loop, o->log, d->config->name, err);
    }
    return d->sink_thread != NULL;
}

static bool make_destination(struct writer *w, size_t i, struct err *err)
{
    struct destination *d = &w->destinations[i];
    d->writer = w;
    d->options = &w->options;
    d->config = &w->options.config->endpoints[i];
    d->index = i;
    d->protocol = protocol_of(d->config);
    d->http = w->http;
    TAILQ_INIT(&d->attempts);
    rng_seed_random(&d->rng);
    boundary_new(&d->boundary, &d->rng);
    report_init(&d->report, w->options.log, w->options.metrics, d->config->name);
    atomic_init(&d->flushed, false);
    d->queue = send_queue_new(d->config, rng_next(&d->rng));
    d->timer = loop_timer_new(w->options.loop, writer_on_timer, d);
    if (d->queue == NULL || d->timer == NULL) {
        return err_memory(err);
    }
    if (d->config->spool_directory != NULL && !make_spool(d, err)) {
        return false;
    }
    return d->protocol->build != NULL || open_sink(d, err);
}

static bool make_destinations(struct writer *w, struct err *err)
{
    const struct config *config = w->options.config;
    w->destinations = calloc(config->n_endpoints + 1, sizeof(w->destinations[0]));
    if (w->destinations == NULL) {
        return err_memory(err);
    }
    w->n_destinations = config->n_endpoints;
    if (!make_http(w, err)) {
        return false;
    }
    for (size_t i = 0; i < w->n_destinations; i++) {
        if (!make_destination(w, i, err)) {
            return err_wrap(err, "endpoint \"%s\"", config->endpoints[i].name);
        }
    }
    return true;
}

static bool init(struct writer *w, struct err *err)
{
    const struct writer_options *o = &w->options;
    w->wake = calloc(1, sizeof(*w->wake));
    w->deadline = loop_timer_new(o->loop, writer_on_deadline, w);
    if (w->wake == NULL || w->deadline == NULL) {
        return err_memory(err);
    }
    w->wake->task.run = writer_on_wake;
    w->wake->writer = w;
    atomic_init(&w->wake->posted, false);
    if (!make_destinations(w, err)) {
        return false;
    }
    struct send_queue *queues[CONFIG_ENDPOINTS_MAX];
    for (size_t i = 0; i < w->n_destinations; i++) {
        queues[i] = w->destinations[i].queue;
    }
    w->merger = merger_new(queues, w->n_destinations, (size_t)o->config->memory.merging,
                           writer_on_merged, w, err);
    if (w->merger == NULL) {
        return false;
    }
    for (size_t i = 0; i < w->n_destinations; i++) {
        if (w->destinations[i].spool != NULL && !spool_start(w->destinations[i].spool, err)) {
            return false;
        }
    }
    /* Last: it must not outlive a writer that failed. */
    return o->metrics == NULL || metrics_collector(o->metrics, writer_collect, w) ||
           err_memory(err);
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
    w->options = *options;
    pthread_mutex_init(&w->lock, NULL);
    return init(w, err) ? w : writer_free(w);
}

void writer_stop(struct writer *w)
{
    merger_stop(w->merger);
    for (size_t i = 0; i < w->n_destinations; i++) {
        struct destination *d = &w->destinations[i];
        if (d->queue == NULL) {
            continue; /* half built */
        }
        send_queue_stop(d->queue);
        attempt_abandon_all(d);
        if (d->spool == NULL) {
            send_queue_drop_unsafe(d->queue, DROP_SHUTDOWN);
        }
    }
}

static void free_destination(struct destination *d)
{
    /* Writes what waits; no events after it. */
    spool_stop(d->spool, clock_mono_ms());
    send_queue_free(d->queue);
    spool_free(d->spool);
    loop_timer_free(d->timer);
    sink_thread_free(d->sink_thread);
    sink_unref(d->sink);
}

struct writer *writer_free(struct writer *w)
{
    if (w == NULL) {
        return NULL;
    }
    writer_stop(w);
    for (size_t i = 0; i < w->n_destinations; i++) {
        free_destination(&w->destinations[i]);
    }
    w->merger = merger_free(w->merger);
    free(w->destinations);
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

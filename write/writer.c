#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "write/batch.h"
#include "write/export.h"
#include "write/queue/merging.h"
#include "write/writer_private.h"

/* Connections that are kept for all endpoints. */
#define IDLE_CONNECTIONS_MAX 1024

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
        [DROP_BURST] = "over_burst",      [DROP_REMOVED] = "removed",
    };
    return names[d];
}

/* ---- the loop's side ------------------------------------------------------------------------- */

/* Returns the first of the destinations with which the loop works. */
static struct destination *first(const struct writer *w)
{
    return TAILQ_FIRST(&w->destinations[ACTIVE]);
}

static bool is_empty(struct writer *w)
{
    for (struct destination *d = first(w); d != NULL; d = TAILQ_NEXT(d, link)) {
        struct write_ledger l = send_queue_status(d->queue).ledger;
        if (l.queued > 0 || l.in_flight > 0) {
            return false;
        }
    }
    return true;
}

/* Returns true if all profiles that can be saved to disk are. */
static bool is_flushed(struct writer *w)
{
    for (struct destination *d = first(w); d != NULL; d = TAILQ_NEXT(d, link)) {
        if (!destination_is_flushed(d)) {
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

/* Arms the timer after all profiles that may be sent now have been. */
static void arm_timer(struct destination *d, int64_t now_ms)
{
    int64_t wake = send_queue_wake_ms(d->queue);
    int64_t end = d->flushing ? d->flush_end_ms : atomic_load(&d->leave_ms);
    wake = wake < end ? wake : end;
    if (wake == INT64_MAX) {
        loop_timer_cancel(d->timer);
        return;
    }
    loop_timer_at(d->timer, wake > now_ms ? wake : now_ms + BACKOFF_REST_MIN_MS);
}

/* Sends all that may be sent now, and sets the timer for the next change. */
static void pump(struct destination *d)
{
    int64_t now = clock_mono_ms();
    struct send_item *it;
    while ((it = send_queue_take(d->queue, now)) != NULL) {
        attempt_start(d, it, now);
    }
    batcher_flush(d->batcher);
    struct send_queue_status status = send_queue_status(d->queue);
    destination_hurry(d, send_queue_is_crowded(d->queue, now));
    /* Another destination may have the name of one that is being removed. */
    bool leaves = atomic_load(&d->leave_ms) != INT64_MAX;
    d->report.conditions = leaves ? NULL : d->options->conditions;
    report_state(&d->report, &status, now);
    if (!writer_check_leaving(d, now)) {
        arm_timer(d, now);
    }
}

static void give_up_the_rest(struct writer *w)
{
    for (struct destination *d = first(w); d != NULL; d = TAILQ_NEXT(d, link)) {
        send_queue_drop_unsafe(d->queue, DROP_SHUTDOWN);
    }
    finish_drain(w);
}

static void writer_on_deadline(void *arg);

/* Returns true if nothing can be sent before the deadline, because the servers have asked for
 * longer rests. */
static bool rests_until_deadline(struct writer *w)
{
    for (struct destination *d = first(w); d != NULL; d = TAILQ_NEXT(d, link)) {
        if (!send_queue_rests_until(d->queue, w->drain.deadline_ms)) {
            return false;
        }
    }
    return true;
}

/* Ends the drain when the queues are empty, or when the remaining profiles are safe on disk. */
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

static void writer_on_deadline(void *arg)
{
    struct writer *w = arg;
    if (w->phase == FLUSHING) {
        give_up_the_rest(w);
        return;
    }
    for (struct destination *d = first(w); d != NULL; d = TAILQ_NEXT(d, link)) {
        destination_stop(d);
    }
    w->phase = FLUSHING;
    loop_timer_after(w->deadline, FLUSH_MS);
    check_drain(w);
}

static void begin_drain(struct writer *w)
{
    int64_t now = clock_mono_ms();
    w->phase = DRAINING;
    for (struct destination *d = first(w); d != NULL; d = TAILQ_NEXT(d, link)) {
        send_queue_drain(d->queue, now);
    }
    loop_timer_at(w->deadline, w->drain.deadline_ms);
    loop_hurry(w->options.loop, 1); /* never taken back: the process is about to end */
}

static void writer_on_wake(struct loop_task *task)
{
    struct wake *wake = (struct wake *)(void *)task; /* its first member */
    struct writer *w = wake->writer;
    if (w == NULL) {
        free(wake);
        return;
    }
    /* Cleared before the queues are read: a thread that puts a profile after that must post again.
     */
    atomic_store(&wake->posted, false);
    pthread_mutex_lock(&w->lock);
    bool drain = w->drain.done != NULL && w->phase == RUNNING;
    pthread_mutex_unlock(&w->lock);
    writer_adopt(w);
    if (drain) {
        begin_drain(w);
    }
    struct destination *next;
    for (struct destination *d = first(w); d != NULL; d = next) {
        next = TAILQ_NEXT(d, link); /* this destination may be removed from the list */
        pump(d);
    }
    check_drain(w);
}

/* ---- any thread ------------------------------------------------------------------------------ */

void writer_wake(struct writer *w)
{
    if (!atomic_exchange(&w->wake->posted, true)) {
        loop_post(w->options.loop, &w->wake->task);
    }
}

/* Returns the slot of the first destination in a set, which must not be empty. */
static size_t first_of(uint64_t endpoints)
{
    return (size_t)__builtin_ctzll(endpoints);
}

static void merge_if_due(struct writer *w, uint64_t endpoints, int64_t now_ms)
{
    for (uint64_t rest = endpoints; rest != 0; rest &= rest - 1) {
        struct destination *d = w->routes[first_of(rest)];
        if (d != NULL && merging_is_due(d->queue, now_ms)) {
            merger_poke(w->merger);
            return;
        }
    }
}

/* Puts a profile to the destinations in the set. Called under the table lock. */
static bool put(struct writer *w, struct profile *p, uint64_t endpoints)
{
    int64_t now = clock_mono_ms();
    bool taken = false;
    uint64_t refused = 0;
    for (uint64_t rest = endpoints; rest != 0; rest &= rest - 1) {
        struct destination *d = w->routes[first_of(rest)];
        if (d == NULL) {
            continue;
        }
        enum send_put result = send_queue_put(d->queue, profile_ref(p), now);
        taken = taken || result == SEND_TAKEN;
        refused |= (uint64_t)(result == SEND_REFUSED) << d->slot;
    }
    for (uint64_t rest = refused; rest != 0; rest &= rest - 1) {
        send_queue_refused(w->routes[first_of(rest)]->queue, taken);
    }
    merge_if_due(w, endpoints, now);
    return taken;
}

bool writer_put(struct writer *w, struct profile *p, uint64_t endpoints)
{
    pthread_rwlock_rdlock(&w->table);
    bool taken = put(w, p, endpoints);
    pthread_rwlock_unlock(&w->table);
    profile_unref(p);
    if (endpoints != 0) {
        writer_wake(w);
    }
    return taken || endpoints == 0;
}

void writer_drain(struct writer *w, int64_t deadline_ms, void (*done)(void *arg), void *arg)
{
    pthread_rwlock_rdlock(&w->table);
    for (size_t i = 0; i < CONFIG_ENDPOINTS_MAX; i++) {
        if (w->routes[i] != NULL) {
            send_queue_close(w->routes[i]->queue);
        }
    }
    pthread_rwlock_unlock(&w->table);
    pthread_mutex_lock(&w->lock);
    if (w->drain.done == NULL) {
        w->drain = (struct drain){.deadline_ms = deadline_ms, .done = done, .arg = arg};
    }
    pthread_mutex_unlock(&w->lock);
    writer_wake(w);
}

/* ---- what others see ------------------------------------------------------------------------- */

void write_ledger_add(struct write_ledger *to, const struct write_ledger *l)
{
    to->accepted += l->accepted;
    to->replayed += l->replayed;
    to->sent += l->sent;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        to->dropped[i] += l->dropped[i];
    }
    to->merged += l->merged;
    to->queued += l->queued;
    to->in_flight += l->in_flight;
    to->queued_bytes += l->queued_bytes;
    to->refused += l->refused;
    to->merge_failures += l->merge_failures;
}

struct write_ledger writer_ledger(struct writer *w, size_t endpoint)
{
    struct write_ledger sum = {.accepted = 0};
    pthread_rwlock_rdlock(&w->table);
    const struct destination *at = endpoint < CONFIG_ENDPOINTS_MAX ? w->routes[endpoint] : NULL;
    for (size_t k = 0; at != NULL && k < WRITER_LISTS; k++) {
        struct destination *d = NULL;
        TAILQ_FOREACH(d, &w->destinations[k], link)
        {
            if (strcmp(d->name, at->name) == 0) {
                struct write_ledger l = send_queue_status(d->queue).ledger;
                write_ledger_add(&sum, &l);
                write_ledger_add(&sum, &d->former);
            }
        }
    }
    pthread_rwlock_unlock(&w->table);
    return sum;
}

static int64_t sink_hung_ms(const struct destination *d, int64_t now_ms)
{
    return d->sink_thread != NULL ? sink_thread_hung_ms(d->sink_thread, now_ms) : 0;
}

/* Returns for how long the directory or the spool of a destination has been hanging, in ms; 0 if
 * neither hangs. */
static int64_t hung_ms(const struct destination *d, int64_t now_ms)
{
    int64_t sink_ms = sink_hung_ms(d, now_ms);
    int64_t spool_ms = d->spool != NULL ? spool_hung_ms(d->spool, now_ms) : 0;
    return sink_ms > spool_ms ? sink_ms : spool_ms;
}

static bool disk_fails(const struct destination *d, int64_t now_ms, struct err *err)
{
    int64_t ms = hung_ms(d, now_ms);
    if (ms > 0) {
        err_set(err, ERR_SYSTEM, "endpoint \"%s\": its disk has not answered for %.1f s", d->name,
                (double)ms / (double)MS_PER_S);
        return true;
    }
    if (d->spool != NULL && spool_status(d->spool).forbidden) {
        err_set(
            err, ERR_SYSTEM,
            "endpoint \"%s\": its spool directory was removed, and cannot be used again before a "
            "restart",
            d->name);
        return true;
    }
    return false;
}

bool writer_disk_fails(struct writer *w, struct err *err)
{
    int64_t now = clock_mono_ms();
    bool fails = false;
    pthread_rwlock_rdlock(&w->table);
    for (size_t k = 0; k < WRITER_LISTS && !fails; k++) {
        const struct destination *d;
        for (d = TAILQ_FIRST(&w->destinations[k]); d != NULL && !fails; d = TAILQ_NEXT(d, link)) {
            fails = disk_fails(d, now, err);
        }
    }
    pthread_rwlock_unlock(&w->table);
    return fails;
}

/* Sets `up` and `breaker`. An endpoint is up if it works for at least one tenant. */
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

static void fill_row(struct export_row *r, struct destination *d, int64_t now)
{
    *r = (struct export_row){.endpoint = d->name,
                             .limit_bytes = d->wanted->queue_max_bytes,
                             .status = send_queue_status(d->queue),
                             .has_spool = d->spool != NULL};
    r->hung_ms = (uint64_t)hung_ms(d, now);
    set_breaker(r, sink_hung_ms(d, now) > 0);
    r->age_ms = r->status.oldest_ms < now ? (uint64_t)(now - r->status.oldest_ms) : 0;
    write_ledger_add(&r->status.ledger, &d->former);
    if (r->has_spool) {
        r->spool = spool_status(d->spool);
        r->spool_up = r->spool.up && spool_hung_ms(d->spool, now) == 0;
        r->spool_needs_restart = r->spool.forbidden;
        r->spool_reading = r->spool.reading;
        r->spool_full = r->spool.full;
    }
}

/* Adds the row of a destination. If a destination is being removed while another one has its name,
 * its counts are added to the row of that one. */
static void add_row(struct export_row *rows, size_t *n, struct destination *d, int64_t now)
{
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(rows[i].endpoint, d->name) == 0) {
            struct write_ledger l = send_queue_status(d->queue).ledger;
            write_ledger_add(&rows[i].status.ledger, &l);
            write_ledger_add(&rows[i].status.ledger, &d->former);
            return;
        }
    }
    fill_row(&rows[(*n)++], d, now);
}

/* Fills the rows. Destinations that stay come first. */
static size_t fill_rows(struct writer *w, struct export_row *rows, size_t max)
{
    int64_t now = clock_mono_ms();
    size_t n = 0;
    for (int leaving = 0; leaving < 2; leaving++) {
        for (size_t k = 0; k < WRITER_LISTS; k++) {
            struct destination *d = NULL;
            TAILQ_FOREACH(d, &w->destinations[k], link)
            {
                if ((atomic_load(&d->leave_ms) != INT64_MAX) == (leaving == 1) && n < max) {
                    add_row(rows, &n, d, now);
                }
            }
        }
    }
    return n;
}

static void writer_collect(struct metrics_out *out, void *arg)
{
    struct writer *w = arg;
    struct export_row *rows = calloc(CONFIG_ENDPOINTS_MAX, sizeof(rows[0]));
    if (rows == NULL) {
        return;
    }
    pthread_rwlock_rdlock(&w->table);
    export_ledgers(out, rows, fill_rows(w, rows, CONFIG_ENDPOINTS_MAX));
    pthread_rwlock_unlock(&w->table);
    free(rows);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

/* Makes the HTTP client, even if no endpoint uses HTTP now: a later configuration may have one. */
static bool make_http(struct writer *w, struct err *err)
{
    const struct writer_options *o = &w->options;
    struct http_client_options options = {.loop = o->loop,
                                          .log = o->log,
                                          .metrics = o->metrics,
                                          .name = "write",
                                          .contents = o->contents,
                                          .max_idle_connections = IDLE_CONNECTIONS_MAX};
    w->http = http_client_new(&options, err);
    return w->http != NULL;
}

static void writer_on_merged(void *arg)
{
    struct writer *w = arg;
    writer_wake(w);
}

/* Makes the destinations of the first configuration, in which the slots are the indices. */
static bool make_destinations(struct writer *w, struct err *err)
{
    const struct config *config = w->options.config;
    for (size_t i = 0; i < config->n_endpoints; i++) {
        struct destination *d = destination_new(w, NULL, &config->endpoints[i], i, err);
        if (d == NULL) {
            return err_wrap(err, "endpoint \"%s\"", config->endpoints[i].name);
        }
        TAILQ_INSERT_TAIL(&w->destinations[ACTIVE], d, link);
        w->routes[i] = d;
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
    w->merger = merger_new((size_t)o->config->memory.merging, writer_on_merged, w, err);
    if (w->merger == NULL || !make_http(w, err) || !make_destinations(w, err)) {
        return false;
    }
    /* The collector is registered last, because it must not outlive a writer that could not be
     * made. */
    return o->metrics == NULL || metrics_collector(o->metrics, writer_collect, w) ||
           err_memory(err);
}

/* Makes the table lock. Changes of the table are rare, and must not wait until no thread puts
 * profiles. */
static void init_table(struct writer *w)
{
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&w->table, &attr);
    pthread_rwlockattr_destroy(&attr);
    for (size_t k = 0; k < WRITER_LISTS; k++) {
        TAILQ_INIT(&w->destinations[k]);
    }
    atomic_init(&w->changed, false);
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
    init_table(w);
    return init(w, err) ? w : writer_free(w);
}

void writer_stop(struct writer *w)
{
    merger_stop(w->merger);
    writer_adopt(w);
    for (struct destination *d = first(w); d != NULL; d = TAILQ_NEXT(d, link)) {
        send_queue_stop(d->queue);
        attempt_abandon_all(d);
        if (d->spool == NULL) {
            send_queue_drop_unsafe(d->queue, DROP_SHUTDOWN);
        }
    }
}

struct writer *writer_free(struct writer *w)
{
    if (w == NULL) {
        return NULL;
    }
    writer_stop(w);
    worker_pool_free(w->closer);
    struct destination *d;
    while ((d = first(w)) != NULL) {
        TAILQ_REMOVE(&w->destinations[ACTIVE], d, link);
        destination_end(d);
        destination_free(d);
    }
    w->merger = merger_free(w->merger);
    http_client_free(w->http);
    loop_timer_free(w->deadline);
    /* A task that is still posted frees itself when the loop gets to it. */
    if (w->wake != NULL && atomic_load(&w->wake->posted)) {
        w->wake->writer = NULL;
    } else {
        free(w->wake);
    }
    pthread_rwlock_destroy(&w->table);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

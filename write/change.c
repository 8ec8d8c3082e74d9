/* Another configuration at run time; see write.h and writer_private.h. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "config/change.h"
#include "write/writer_private.h"

/* The time that an endpoint that comes back waits until the spool of the removed one is closed. */
#define MAKE_WAY_MS (FLUSH_MS + INT64_C(2000))
#define POLL_NS (5 * NS_PER_MS)

/* The change of one endpoint. */
struct step {
    const struct config_endpoint *endpoint;
    struct destination *changed; /* NULL: it has not changed, or is new */
    struct destination *made;    /* the destination of a new endpoint */
    struct sink *sink;           /* the sink of a changed endpoint; NULL: it keeps its sink */
};

struct writer_change {
    struct writer *writer;
    const struct config *config; /* a reference */
    struct step steps[CONFIG_ENDPOINTS_MAX];
    size_t n;
};

/* ---- preparing ------------------------------------------------------------------------------- */

static bool stays(const struct destination *d)
{
    return atomic_load(&d->leave_ms) == INT64_MAX;
}

static struct destination *at_slot(struct writer *w, size_t slot)
{
    pthread_rwlock_rdlock(&w->table);
    struct destination *d = w->routes[slot];
    pthread_rwlock_unlock(&w->table);
    return d;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Returns true if a destination and an endpoint both need the same spool, or the same directory of
 * another room, for themselves. */
static bool is_rival(const struct destination *d, const struct config_endpoint *e)
{
    bool sink = d->protocol == protocol_of(e) && d->protocol->build == NULL &&
                d->protocol->open == NULL && same_text(d->wanted->url, e->url);
    return sink || (d->spool != NULL && strcmp(d->name, e->name) == 0 &&
                    same_text(d->wanted->spool_directory, e->spool_directory));
}

/* Finds the destination that has the spool or directory that an endpoint needs. If it is being
 * removed and has a spool, it has to end now: its profiles are safe on disk. */
enum holder { HELD_BY_NONE, HELD_BY_LEAVING, HELD };
static enum holder find_holder(struct writer *w, const struct config_endpoint *e)
{
    enum holder found = HELD_BY_NONE;
    pthread_rwlock_rdlock(&w->table);
    for (size_t k = 0; k < WRITER_LISTS; k++) {
        struct destination *d = NULL;
        TAILQ_FOREACH(d, &w->destinations[k], link)
        {
            if (!is_rival(d, e)) {
                continue;
            }
            found = stays(d) ? HELD : HELD_BY_LEAVING;
            if (found == HELD_BY_LEAVING && d->spool != NULL) {
                atomic_store(&d->leave_ms, clock_mono_ms());
            }
        }
    }
    pthread_rwlock_unlock(&w->table);
    return found;
}

/* Makes the spool or the directory that an endpoint needs available: if the endpoint comes back
 * soon, the destination that is being removed still has it. */
static bool make_way(struct writer *w, const struct config_endpoint *e, struct err *err)
{
    int64_t until_ms = clock_mono_ms() + MAKE_WAY_MS;
    enum holder holder = HELD_BY_NONE;
    while ((holder = find_holder(w, e)) == HELD_BY_LEAVING && clock_mono_ms() < until_ms) {
        writer_wake(w);
        (void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    if (holder == HELD) {
        return err_set(err, ERR_INPUT,
                       "its spool, or its store, belongs to an endpoint of the former "
                       "configuration: choose another directory, or restart");
    }
    return holder == HELD_BY_NONE ||
           err_set(err, ERR_SYSTEM,
                   "its spool, or its store, is still in use by an endpoint that was removed; try "
                   "again");
}

/* Opens the directory of a destination again if its limits have changed, unless another room keeps
 * it. */
static bool prepare_changed(struct writer *w, struct step *s, struct err *err)
{
    if (protocol_of(s->endpoint)->open == NULL) {
        return true;
    }
    return destination_open_sink(&w->options, s->endpoint, &s->sink, err);
}

static bool prepare_step(struct writer_change *c, struct step *s, struct err *err)
{
    struct writer *w = c->writer;
    const struct config_endpoint *e = s->endpoint;
    struct destination *d = at_slot(w, e->slot);
    if (d == NULL) {
        s->made = make_way(w, e, err) ? destination_new(w, c->config, e, e->slot, err) : NULL;
        return s->made != NULL;
    }
    const struct config *former = d->wanted_owner != NULL ? d->wanted_owner : w->options.config;
    if (config_same_endpoint(former, d->wanted, c->config, e)) {
        return true;
    }
    s->changed = d;
    return prepare_changed(w, s, err);
}

struct writer_change *writer_prepare(struct writer *w, const struct config *next, struct err *err)
{
    struct writer_change *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    c->writer = w;
    c->config = config_ref(next);
    if (w->closer == NULL) {
        w->closer = worker_thread_new("closer", err);
    }
    if (w->closer == NULL) {
        return writer_cancel(c);
    }
    for (size_t i = 0; i < next->n_endpoints; i++) {
        struct step *s = &c->steps[c->n++];
        s->endpoint = &next->endpoints[i];
        if (!prepare_step(c, s, err)) {
            err_wrap(err, "endpoint \"%s\"", s->endpoint->name);
            return writer_cancel(c);
        }
    }
    return c;
}

struct writer_change *writer_cancel(struct writer_change *c)
{
    for (size_t i = 0; c != NULL && i < c->n; i++) {
        struct destination *d = c->steps[i].made;
        sink_unref(c->steps[i].sink);
        if (d != NULL) {
            destination_end(d);
            destination_free(d);
        }
    }
    if (c != NULL) {
        config_unref(c->config);
    }
    free(c);
    return NULL;
}

/* ---- committing ------------------------------------------------------------------------------ */

/* Changes the configuration that a destination is to adopt. *s and *c get the former one, to be
 * released. */
static void want(struct writer_change *c, struct step *s, const struct config **ret_former)
{
    struct destination *d = s->changed;
    struct sink *sink = d->wanted_sink;
    *ret_former = d->wanted_owner;
    d->wanted_owner = config_ref(c->config);
    d->wanted = s->endpoint;
    if (s->sink != NULL) {
        d->wanted_sink = s->sink;
        s->sink = sink;
    }
}

static void add(struct writer *w, struct destination *d)
{
    TAILQ_INSERT_TAIL(&w->destinations[ADDED], d, link);
    w->routes[d->slot] = d;
}

/* Gives the queue and the spool their configuration at once. Only after that, the former one may be
 * released. */
static void configure(struct step *s, const struct config *former)
{
    struct destination *d = s->changed;
    send_queue_configure(d->queue, s->endpoint);
    if (d->spool != NULL) {
        spool_configure(d->spool, s->endpoint->spool_max_bytes, s->endpoint->spool_fsync_ms);
    }
    config_unref(former);
    s->sink = sink_unref(s->sink);
}

void writer_commit(struct writer_change *c)
{
    struct writer *w = c->writer;
    const struct config *former[CONFIG_ENDPOINTS_MAX] = {NULL};
    pthread_rwlock_wrlock(&w->table);
    for (size_t i = 0; i < c->n; i++) {
        struct step *s = &c->steps[i];
        if (s->changed != NULL) {
            want(c, s, &former[i]);
        } else if (s->made != NULL) {
            add(w, s->made);
        }
    }
    pthread_rwlock_unlock(&w->table);
    for (size_t i = 0; i < c->n; i++) {
        if (c->steps[i].changed != NULL) {
            configure(&c->steps[i], former[i]);
        }
        c->steps[i].made = NULL;
    }
    atomic_store(&w->changed, true);
    writer_wake(w);
}

/* Begins to remove a destination whose slot the new configuration does not have. */
static void dismiss(struct destination *d, int64_t now_ms, int64_t deadline_ms)
{
    send_queue_remove(d->queue, now_ms);
    atomic_store(&d->leave_ms, deadline_ms);
    log_info(d->options->log, "endpoint removed: its queued profiles are sent first",
             LOG_STR("endpoint", d->name),
             LOG_INT("queued", send_queue_status(d->queue).ledger.queued),
             LOG_FLOAT("seconds", (double)(deadline_ms - now_ms) / (double)MS_PER_S));
}

void writer_retire(struct writer_change *c, int64_t deadline_ms)
{
    struct writer *w = c->writer;
    uint64_t bits = config_endpoint_bits(c->config);
    int64_t now = clock_mono_ms();
    pthread_rwlock_rdlock(&w->table);
    for (size_t i = 0; i < CONFIG_ENDPOINTS_MAX; i++) {
        struct destination *d = w->routes[i];
        if (d != NULL && (bits >> i & 1) == 0 && stays(d)) {
            dismiss(d, now, deadline_ms);
        }
    }
    pthread_rwlock_unlock(&w->table);
    writer_wake(w);
    config_unref(c->config);
    free(c);
}

uint64_t writer_slots(struct writer *w)
{
    uint64_t bits = 0;
    pthread_rwlock_rdlock(&w->table);
    for (size_t k = 0; k < WRITER_LISTS; k++) {
        const struct destination *d = NULL;
        TAILQ_FOREACH(d, &w->destinations[k], link)
        {
            bits |= UINT64_C(1) << d->slot;
        }
    }
    pthread_rwlock_unlock(&w->table);
    return bits;
}

/* ---- the loop's side ------------------------------------------------------------------------- */

/* Attempts in flight have references of their own. */
static void adopt_wanted(struct destination *d)
{
    config_unref(d->owner);
    d->owner = d->wanted_owner != NULL ? config_ref(d->wanted_owner) : NULL;
    d->config = d->wanted;
    d->rules_version++;
    d->protocol = protocol_of(d->config);
    (void)destination_use_credentials(d, NULL);
    if (d->wanted_sink != NULL) {
        sink_unref(d->sink);
        d->sink = d->wanted_sink;
        d->wanted_sink = NULL;
    }
    send_queue_end_rests(d->queue);
}

void writer_adopt(struct writer *w)
{
    struct destination *d;
    if (!atomic_exchange(&w->changed, false)) {
        return;
    }
    pthread_rwlock_wrlock(&w->table);
    while ((d = TAILQ_FIRST(&w->destinations[ADDED])) != NULL) {
        TAILQ_REMOVE(&w->destinations[ADDED], d, link);
        TAILQ_INSERT_TAIL(&w->destinations[ACTIVE], d, link);
    }
    TAILQ_FOREACH(d, &w->destinations[ACTIVE], link)
    {
        if (d->config != d->wanted) {
            adopt_wanted(d);
        }
    }
    pthread_rwlock_unlock(&w->table);
}

static struct destination *of_work(struct work *work)
{
    return (struct destination *)(void *)((char *)work - offsetof(struct destination, closing));
}

/* Removes a destination from the metrics. Its counts are added to those of the destination that has
 * its name now, if there is one. */
static void take_off(struct destination *d, const struct write_ledger *final)
{
    struct writer *w = d->writer;
    struct destination *heir = NULL;
    pthread_rwlock_wrlock(&w->table);
    TAILQ_REMOVE(&w->destinations[CLOSING], d, link);
    for (size_t k = 0; k < WRITER_LISTS && heir == NULL; k++) {
        TAILQ_FOREACH(heir, &w->destinations[k], link)
        {
            if (strcmp(heir->name, d->name) == 0) {
                break;
            }
        }
    }
    if (heir != NULL) {
        write_ledger_add(&heir->former, final);
    }
    pthread_rwlock_unlock(&w->table);
}

/* Ends a removed destination, on the closer's thread. */
static void writer_on_closing(struct work *work)
{
    struct destination *d = of_work(work);
    destination_end(d);
    uint64_t on_disk = send_queue_status(d->queue).ledger.queued;
    struct write_ledger final = send_queue_final(d->queue, DROP_REMOVED);
    write_ledger_add(&final, &d->former);
    log_info(d->options->log, "endpoint is gone", LOG_STR("endpoint", d->name),
             LOG_INT("accepted", final.accepted), LOG_INT("sent", final.sent),
             LOG_INT("dropped_removed", final.dropped[DROP_REMOVED]),
             LOG_INT("left_on_disk", on_disk),
             LOG_STR("spool_directory", d->spool != NULL ? d->config->spool_directory : ""));
    take_off(d, &final);
    destination_empty(d);
}

static void writer_on_closed(struct work *work)
{
    destination_free(of_work(work));
}

static void close_destination(struct destination *d)
{
    struct writer *w = d->writer;
    send_queue_drop_unsafe(d->queue, DROP_REMOVED);
    loop_timer_cancel(d->timer);
    sink_thread_unwatch(d->sink_thread);
    pthread_rwlock_wrlock(&w->table);
    w->routes[d->slot] = NULL;
    TAILQ_REMOVE(&w->destinations[ACTIVE], d, link);
    TAILQ_INSERT_TAIL(&w->destinations[CLOSING], d, link);
    pthread_rwlock_unlock(&w->table);
    d->closing =
        (struct work){.home = w->options.loop, .run = writer_on_closing, .done = writer_on_closed};
    worker_submit(w->closer, &d->closing);
}

bool writer_check_leaving(struct destination *d, int64_t now_ms)
{
    int64_t leave_ms = atomic_load(&d->leave_ms);
    if (leave_ms == INT64_MAX) {
        return false;
    }
    if (!d->flushing && (now_ms >= leave_ms || send_queue_rests_until(d->queue, leave_ms))) {
        d->flushing = true;
        d->flush_end_ms = now_ms + FLUSH_MS;
        destination_stop(d);
    }
    if (!d->flushing || (!destination_is_flushed(d) && now_ms < d->flush_end_ms)) {
        return false;
    }
    close_destination(d);
    return true;
}

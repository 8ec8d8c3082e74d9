#include "write/batch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/worker.h"
#include "write/attempt.h"

/* The interval at which requests of which a server leaves out a part are logged. */
#define LOG_PERIOD_MS INT64_C(60000)

TAILQ_HEAD(batch_list, batch);

/* One request, from its making to its answer. */
struct batch {
    TAILQ_ENTRY(batch) link;
    struct batcher *owner; /* NULL: abandoned while it was being made */
    const struct config_endpoint *endpoint;
    struct work work;
    struct request_memory *memory; /* of the batcher, for the thread that makes the request */
    struct exchange exchange;
    enum request_status status;
    size_t n;
    struct attempt *at[BATCH_PROFILES_MAX];
    struct request_part parts[BATCH_PROFILES_MAX];
};

struct batcher {
    struct destination *destination;
    struct worker_pool *thread;
    struct request_memory memory; /* only the thread uses it */
    struct attempt_list waiting;
    struct batch_list batches;
    size_t n_batches;
    struct metric_cell *requests;
    struct metric_cell *halved;
    struct metric_cell *refused;
    struct log_limit refused_limit;
};

static void send_batch(struct batcher *b, struct attempt *const *all, size_t n);

/* ---- the object ------------------------------------------------------------------------------ */

static struct metric_cell *counter(struct batcher *b, const char *name, const char *help)
{
    struct destination *d = b->destination;
    struct metric *m =
        metrics_family(d->options->metrics, METRIC_COUNTER, name, help, "endpoint", NULL);
    return metric_cell_of(m, d->name);
}

struct batcher *batcher_new(struct destination *d, struct err *err)
{
    struct batcher *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        err_memory(err);
        return NULL;
    }
    b->destination = d;
    TAILQ_INIT(&b->waiting);
    TAILQ_INIT(&b->batches);
    b->requests = counter(b, "profpull_write_batches_total",
                          "Requests of protocols that allow several profiles in one request.");
    b->halved = counter(b, "profpull_write_halved_batches_total",
                        "Refused requests whose halves were sent.");
    b->refused =
        counter(b, "profpull_write_partly_refused_total",
                "Profiles that a server refused when it accepted the rest of the request.");
    b->thread = worker_thread_new("batch", err);
    return b->thread != NULL ? b : batcher_free(b);
}

struct batcher *batcher_free(struct batcher *b)
{
    if (b != NULL) {
        worker_pool_free(b->thread);
        request_memory_done(&b->memory);
        free(b);
    }
    return NULL;
}

/* ---- one request ----------------------------------------------------------------------------- */

static void batch_free(struct batch *t)
{
    if (t->owner != NULL) {
        TAILQ_REMOVE(&t->owner->batches, t, link);
        t->owner->n_batches--;
    }
    exchange_done(&t->exchange);
    free(t);
}

static void free_attempts(struct batch *t)
{
    /* The exchange ends first: it refers to the configuration. */
    exchange_done(&t->exchange);
    for (size_t i = 0; i < t->n; i++) {
        attempt_free(t->at[i]);
    }
    batch_free(t);
}

/* The server says how many messages it has left out, not which: if not all, the profiles count as
 * sent. */
static void note_refused(struct batcher *b, const struct batch *t, struct answer *a)
{
    const struct destination *d = b->destination;
    int64_t now_ms = clock_mono_ms();
    uint32_t more;
    if (a->class != ANSWER_SENT || a->text[0] == '\0') {
        return;
    }
    metric_add(b->refused, a->refused);
    if (a->refused >= t->exchange.request.n_messages && a->refused > 0) {
        a->class = ANSWER_REJECTED;
    } else if (log_limit_allow(&b->refused_limit, now_ms, LOG_PERIOD_MS, 1, &more)) {
        log_warn(d->options->log, "a server accepted a request in part",
                 LOG_STR("endpoint", d->name), LOG_STR("err", a->text),
                 LOG_INT("refused", a->refused), LOG_INT("of", t->exchange.request.n_messages),
                 LOG_INT("more", more));
    }
}

static void batch_on_answer(void *arg, const struct answer *answer)
{
    struct batch *t = arg;
    struct batcher *b = t->owner;
    struct destination *d = b->destination;
    struct answer a = *answer;
    const char *result = answer_result_name(t->exchange.result, t->exchange.status);
    if (t->n > 1 && answer_is_about_content(&a)) {
        size_t half = t->n / 2;
        metric_add(b->halved, 1);
        send_batch(b, t->at, half);
        send_batch(b, t->at + half, t->n - half);
    } else {
        note_refused(b, t, &a);
        for (size_t i = 0; i < t->n; i++) {
            t->at[i]->answer = a;
            attempt_settle(t->at[i], result, &t->exchange);
        }
    }
    batch_free(t);
    destination_pump(d);
}

static struct batch *of_work(struct work *w)
{
    return (struct batch *)(void *)((char *)w - offsetof(struct batch, work));
}

/* Makes the request, on the thread of the destination. */
static void batch_make(struct work *w)
{
    struct batch *t = of_work(w);
    t->status = request_build_many(&t->exchange.request, t->endpoint, t->parts, t->n, t->memory);
}

/* Drops the profiles that are not in the request. */
static void drop_parts(struct batch *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->n; i++) {
        enum request_status status = t->status != REQUEST_OK && t->parts[i].status == REQUEST_OK
                                         ? t->status
                                         : t->parts[i].status;
        if (status == REQUEST_OK) {
            t->at[kept++] = t->at[i];
        } else {
            attempt_drop(t->at[i], status);
        }
    }
    t->n = kept;
}

static void batch_made(struct work *w)
{
    struct batch *t = of_work(w);
    struct batcher *b = t->owner;
    if (b == NULL) {
        free_attempts(t);
        return;
    }
    struct destination *d = b->destination;
    drop_parts(t);
    if (t->n > 0 && exchange_start(&t->exchange, t->at[0], batch_on_answer, t)) {
        metric_add(b->requests, 1);
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        attempt_drop(t->at[i], REQUEST_MEMORY);
    }
    batch_free(t);
    destination_pump(d);
}

static void send_batch(struct batcher *b, struct attempt *const *all, size_t n)
{
    struct batch *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        for (size_t i = 0; i < n; i++) {
            attempt_drop(all[i], REQUEST_MEMORY);
        }
        return;
    }
    t->owner = b;
    t->memory = &b->memory;
    exchange_init(&t->exchange);
    t->work =
        (struct work){.home = b->destination->options->loop, .run = batch_make, .done = batch_made};
    t->n = n;
    for (size_t i = 0; i < n; i++) {
        t->at[i] = all[i];
        t->endpoint = all[i]->config; /* the same for all */
        t->parts[i] = (struct request_part){.series = &all[i]->series, .profile = all[i]->outgoing};
    }
    TAILQ_INSERT_TAIL(&b->batches, t, link);
    b->n_batches++;
    worker_submit(b->thread, &t->work);
}

/* ---- which ones go --------------------------------------------------------------------------- */

void batcher_add(struct batcher *b, struct attempt *a)
{
    TAILQ_INSERT_TAIL(&b->waiting, a, waits);
}

/* Collects the profiles that may share a request with the first one. *ret_full: the request has no
 * room for another one. */
static size_t collect(struct attempt *first, struct attempt **ret, bool *ret_full)
{
    const struct protocol *protocol = first->protocol;
    size_t max = protocol->weight_max(first->config);
    size_t weight = 0;
    size_t n = 0;
    *ret_full = false;
    for (struct attempt *a = first; a != NULL && !*ret_full; a = TAILQ_NEXT(a, waits)) {
        /* After a change of the configuration, attempts of the former one keep that configuration.
         */
        if (a->config != first->config || !sv_eq(a->series.tenant, first->series.tenant)) {
            continue;
        }
        size_t more = protocol->weigh(first->config, a->outgoing);
        *ret_full = n == BATCH_PROFILES_MAX || (n > 0 && more > max - weight);
        if (!*ret_full) {
            ret[n++] = a;
            weight += more < max - weight ? more : max - weight;
        }
    }
    return n;
}

static bool is_under_way(const struct batcher *b, struct sv tenant)
{
    const struct batch *t = NULL;
    TAILQ_FOREACH(t, &b->batches, link)
    {
        if (sv_eq(t->at[0]->series.tenant, tenant)) {
            return true;
        }
    }
    return false;
}

/* Sends the first profile and those that may share its request, unless it waits for more of them.
 */
static bool send_first(struct batcher *b, struct attempt *first)
{
    struct attempt *all[BATCH_PROFILES_MAX];
    bool full;
    size_t n = collect(first, all, &full);
    if (!full && is_under_way(b, first->series.tenant)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        TAILQ_REMOVE(&b->waiting, all[i], waits);
    }
    send_batch(b, all, n);
    return true;
}

void batcher_flush(struct batcher *b)
{
    struct attempt *a = b != NULL ? TAILQ_FIRST(&b->waiting) : NULL;
    while (a != NULL && b->n_batches < BATCH_REQUESTS_MAX) {
        a = send_first(b, a) ? TAILQ_FIRST(&b->waiting) : TAILQ_NEXT(a, waits);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

static void abandon_batches(struct batcher *b)
{
    struct batch *t = TAILQ_FIRST(&b->batches);
    TAILQ_INIT(&b->batches);
    b->n_batches = 0;
    while (t != NULL) {
        struct batch *next = TAILQ_NEXT(t, link);
        t->owner = NULL;
        /* If the thread of the destination has a batch, batch_made() frees it. */
        if (t->exchange.transfer != NULL) {
            free_attempts(t);
        }
        t = next;
    }
}

void batcher_abandon(struct batcher *b)
{
    if (b == NULL) {
        return;
    }
    struct attempt *a = TAILQ_FIRST(&b->waiting);
    TAILQ_INIT(&b->waiting);
    while (a != NULL) {
        struct attempt *next = TAILQ_NEXT(a, waits);
        attempt_free(a);
        a = next;
    }
    abandon_batches(b);
}

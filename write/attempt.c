/* One profile on its way out of an endpoint: an HTTP request, or a file. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "write/advice.h"
#include "write/destination.h"
#include "write/request.h"

/* Of a longer response the rest is not waited for: the connection is closed instead. */
#define DRAIN_MAX ((size_t)64 * 1024)

struct attempt {
    struct destination *destination; /* NULL: abandoned, only the sink's thread still knows it */
    const struct config *owner;      /* of config: a reference, or NULL */
    const struct config_endpoint *config; /* when it began: it ends with that */
    const struct protocol *protocol;
    TAILQ_ENTRY(attempt) link;
    struct send_item *item;
    struct profile *profile; /* a reference of its own, for a file may outlive the item */
    struct series series;
    int64_t start_ms;
    struct answer answer;
    /* HTTP */
    struct request request;
    struct http_transfer *transfer;
    enum http_result result;
    long status;
    struct buf reply; /* the first ANSWER_BODY_MAX bytes */
    size_t reply_bytes;
    /* not HTTP */
    struct work work;
    struct sink *sink;
    struct delivery delivery;
    atomic_bool abandoned; /* what has not begun need not begin */
};

static void attempt_free(struct attempt *a)
{
    if (a->destination != NULL) {
        TAILQ_REMOVE(&a->destination->attempts, a, link);
    }
    request_done(&a->request);
    buf_done(&a->reply);
    series_done(&a->series);
    profile_unref(a->profile);
    sink_unref(a->sink);
    config_unref(a->owner);
    free(a);
}

static void notify(const struct destination *d, struct write_attempt event)
{
    event.endpoint = d->slot;
    if (d->options->on_attempt != NULL) {
        d->options->on_attempt(d->options->attempt_arg, &event);
    }
}

/* Drops a profile that never got as far as an attempt. */
static void drop_unsendable(struct destination *d, struct send_item *it, enum request_status status,
                            int64_t now_ms)
{
    static const struct {
        enum write_drop reason;
        const char *text;
        const char *log; /* NULL: nothing is logged */
    } causes[] = {
        [REQUEST_BAD_LABELS] = {DROP_LABELS, "it has no labels that the protocol can carry",
                                "the label __name__ is missing"},
        [REQUEST_BAD_FORMAT] = {DROP_FORMAT, "the protocol has no place for its format",
                                "the protocol cannot carry JFR"},
        [REQUEST_BAD_TYPES] = {DROP_FORMAT, "it holds no sample type that the server would store",
                               "no sample type that the server would store"},
        [REQUEST_TOO_LARGE] = {DROP_REJECTED, "it is larger than the protocol can carry",
                               "too large for the protocol"},
        /* A quiet process has empty lock profiles all the time. */
        [REQUEST_EMPTY] = {DROP_EMPTY,
                           "it has no samples, and the server takes no profile without any", NULL},
        [REQUEST_MEMORY] = {DROP_MEMORY, "out of memory", "out of memory"},
    };
    struct profile *p = send_item_profile(it);
    enum write_drop reason = causes[status].reason;
    if (causes[status].log != NULL) {
        report_dropped(&d->report, p->labels, reason, causes[status].log, now_ms);
    }
    notify(d, (struct write_attempt){.profile = p,
                                     .outcome = WRITE_DROPPED,
                                     .reason = reason,
                                     .text = causes[status].text});
    send_queue_drop(d->queue, it, reason);
}

/* Takes the item along: the attempt is freed. */
static void finish(struct attempt *a, const char *result)
{
    struct destination *d = a->destination;
    struct report_attempt done = {.profile = a->profile,
                                  .answer = &a->answer,
                                  .result = result,
                                  .hint = advice_for(d->config, a->result, a->status),
                                  .attempt = send_item_attempt(a->item),
                                  .start_ms = a->start_ms,
                                  .now_ms = clock_mono_ms()};
    struct send_result outcome = send_queue_done(d->queue, a->item, &a->answer, done.now_ms);
    done.outcome = &outcome;
    report_done(&d->report, &done);
    notify(d, (struct write_attempt){.profile = a->profile,
                                     .outcome = outcome.outcome,
                                     .reason = outcome.reason,
                                     .result = a->result,
                                     .status = a->status,
                                     .text = a->answer.text});
    attempt_free(a);
    destination_pump(d);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static bool attempt_on_data(void *arg, const char *data, size_t len)
{
    struct attempt *a = arg;
    size_t room = ANSWER_BODY_MAX - a->reply.len;
    buf_append(&a->reply, data, len < room ? len : room);
    a->reply_bytes += len;
    return a->reply_bytes <= DRAIN_MAX;
}

static void attempt_on_done(void *arg, const struct http_response *r)
{
    struct attempt *a = arg;
    struct answer_input in = {.protocol = a->protocol,
                              .retry_on_429 = a->config->retry_on_429,
                              .result = r->result,
                              .status = r->status,
                              .error = r->error,
                              .content_type = r->content_type,
                              .location = r->location,
                              .retry_after_ms = r->retry_after_ms,
                              .body = {.p = a->reply.data, .n = a->reply.len},
                              .wall_ns = clock_wall_ns()};
    a->result = r->result;
    a->status = r->status;
    answer_classify(&in, &a->answer);
    finish(a, answer_result_name(r->result, r->status));
}

static enum request_status start_http(struct attempt *a)
{
    struct destination *d = a->destination;
    struct request_input in = {.endpoint = a->config,
                               .series = &a->series,
                               .profile = a->profile,
                               .boundary = &d->boundary,
                               .rng = &d->rng};
    enum request_status status = request_build(&a->request, &in);
    if (status != REQUEST_OK) {
        return status;
    }
    struct http_request request = {.method = "POST",
                                   .url = a->request.url.data,
                                   .settings = &a->config->http,
                                   .headers = a->request.headers,
                                   .n_headers = a->request.n_headers,
                                   .body = a->request.body,
                                   .n_body = 3,
                                   .timeout_ms = a->config->remote_timeout_ms,
                                   .max_body = ANSWER_BODY_MAX,
                                   .on_data = attempt_on_data,
                                   .on_done = attempt_on_done,
                                   .arg = a};
    a->transfer = http_start(d->http, &request);
    return a->transfer != NULL ? REQUEST_OK : REQUEST_MEMORY;
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct attempt *of_work(struct work *w)
{
    return (struct attempt *)(void *)((char *)w - offsetof(struct attempt, work));
}

static struct attempt *of_delivery(struct delivery *d)
{
    return (struct attempt *)(void *)((char *)d - offsetof(struct attempt, delivery));
}

static void add_waiting(struct sink *s, struct delivery *d)
{
    pthread_mutex_lock(&s->lock);
    *s->end = d;
    s->end = &d->next;
    pthread_mutex_unlock(&s->lock);
}

/* Takes those that wait, without those that were abandoned. Their own work finds nothing to do
 * then, and until it runs they live. */
static size_t take_waiting(struct sink *s, struct delivery *ret[SINK_BATCH_MAX])
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    while (s->first != NULL && n < SINK_BATCH_MAX) {
        struct delivery *d = s->first;
        s->first = d->next;
        d->taken = true;
        if (!atomic_load(&of_delivery(d)->abandoned)) {
            ret[n++] = d;
        }
    }
    if (s->first == NULL) {
        s->end = &s->first;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void attempt_deliver(struct work *w)
{
    struct attempt *a = of_work(w);
    struct delivery *all[SINK_BATCH_MAX];
    if (a->sink->deliver_all == NULL) {
        if (!atomic_load(&a->abandoned)) {
            a->protocol->deliver(a->sink, &a->series, a->profile, &a->answer);
        }
        return;
    }
    size_t n = a->delivery.taken ? 0 : take_waiting(a->sink, all);
    if (n > 0) {
        a->sink->deliver_all(a->sink, all, n);
    }
}

static void attempt_delivered(struct work *w)
{
    struct attempt *a = of_work(w);
    if (a->destination == NULL) {
        attempt_free(a);
        return;
    }
    finish(a, a->answer.class == ANSWER_SENT ? "written" : "failed");
}

static enum request_status start_delivery(struct attempt *a)
{
    a->sink = sink_ref(a->destination->sink);
    a->work = (struct work){
        .home = a->destination->options->loop, .run = attempt_deliver, .done = attempt_delivered};
    atomic_init(&a->abandoned, false);
    a->delivery =
        (struct delivery){.series = &a->series, .profile = a->profile, .answer = &a->answer};
    if (a->sink->deliver_all != NULL) {
        add_waiting(a->sink, &a->delivery);
    }
    sink_thread_submit(a->destination->sink_thread, &a->work);
    return REQUEST_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static struct attempt *attempt_new(struct destination *d, struct send_item *it, int64_t now_ms)
{
    struct attempt *a = calloc(1, sizeof(*a));
    struct profile *p = send_item_profile(it);
    if (a == NULL) {
        return NULL;
    }
    buf_init(&a->reply, ANSWER_BODY_MAX);
    struct series_rules rules = d->protocol->labels;
    rules.keeps_private = rules.keeps_private && p->is_pushed;
    if (!series_build(&a->series, p->labels, &d->config->external_labels, &d->config->label_limits,
                      &rules)) {
        free(a);
        return NULL;
    }
    a->destination = d;
    a->owner = d->owner != NULL ? config_ref(d->owner) : NULL;
    a->config = d->config;
    a->protocol = d->protocol;
    a->item = it;
    a->profile = profile_ref(p);
    a->start_ms = now_ms;
    TAILQ_INSERT_TAIL(&d->attempts, a, link);
    return a;
}

void attempt_start(struct destination *d, struct send_item *it, int64_t now_ms)
{
    struct attempt *a = attempt_new(d, it, now_ms);
    enum request_status status = REQUEST_MEMORY;
    bool first = send_item_attempt(it) == 1;
    if (a != NULL) {
        status = d->protocol->build == NULL ? start_delivery(a) : start_http(a);
    }
    /* A file may be on its way already, but only this thread takes it off the list. */
    if (a != NULL && first) {
        report_changes(&d->report, &a->series, send_item_profile(it)->labels);
    }
    if (status == REQUEST_OK) {
        return;
    }
    if (a != NULL) {
        attempt_free(a);
    }
    drop_unsendable(d, it, status, now_ms);
}

void attempt_abandon_all(struct destination *d)
{
    struct attempt *a = TAILQ_FIRST(&d->attempts);
    TAILQ_INIT(&d->attempts);
    while (a != NULL) {
        struct attempt *next = TAILQ_NEXT(a, link);
        struct send_item *it = a->item;
        a->destination = NULL;
        /* A file attempt is still in the hands of its thread, and freed when it comes back. */
        atomic_store(&a->abandoned, true);
        if (a->transfer != NULL) {
            http_cancel(a->transfer);
            attempt_free(a);
        }
        send_queue_abandon(d->queue, it);
        a = next;
    }
}

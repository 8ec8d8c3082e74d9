/* One profile on its way out of an endpoint: an HTTP request, or a file. */
#include "write/attempt.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bucket/answers.h"
#include "write/advice.h"
#include "write/batch.h"
#include "write/sample_labels.h"

/* A longer response is not read to its end: the connection is closed instead. */
#define DRAIN_MAX ((size_t)64 * 1024)

void attempt_free(struct attempt *a)
{
    if (a->destination != NULL) {
        TAILQ_REMOVE(&a->destination->attempts, a, link);
    }
    exchange_done(&a->exchange);
    series_done(&a->series);
    profile_unref(a->profile);
    profile_unref(a->outgoing);
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
        [REQUEST_BAD_FORMAT] = {DROP_FORMAT, "the protocol cannot carry its format",
                                "the protocol cannot carry JFR"},
        [REQUEST_BAD_TYPES] = {DROP_FORMAT, "it holds no sample type that the server would store",
                               "no sample type that the server would store"},
        [REQUEST_DAMAGED] = {DROP_FORMAT, "it is damaged, and the protocol carries its contents",
                             "a damaged profile"},
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
                                     .text = causes[status].text,
                                     .advice = ""});
    send_queue_drop(d->queue, it, reason);
}

void attempt_drop(struct attempt *a, enum request_status status)
{
    struct destination *d = a->destination;
    struct send_item *it = a->item;
    attempt_free(a);
    drop_unsendable(d, it, status, clock_mono_ms());
}

void attempt_settle(struct attempt *a, const char *result, const struct exchange *x)
{
    struct destination *d = a->destination;
    const char *advice = a->answer.advice;
    bool final = advice != NULL || advice_is_final(x->result, x->status);
    if (advice == NULL) {
        advice = advice_for(a->config, x->result, x->status);
    }
    struct report_attempt done = {.profile = a->profile,
                                  .answer = &a->answer,
                                  .result = result,
                                  .hint = advice,
                                  .attempt = send_item_attempt(a->item),
                                  .start_ms = a->start_ms,
                                  .now_ms = clock_mono_ms()};
    struct send_result outcome = send_queue_done(d->queue, a->item, &a->answer, done.now_ms);
    done.outcome = &outcome;
    report_done(&d->report, &done);
    notify(d, (struct write_attempt){.profile = a->profile,
                                     .outcome = outcome.outcome,
                                     .reason = outcome.reason,
                                     .result = x->result,
                                     .status = x->status,
                                     .text = a->answer.text,
                                     .advice = advice,
                                     .final = final});
    attempt_free(a);
}

/* Ends an attempt with the result of its request, and frees it. Its item must not be used
 * afterwards. */
static void finish(struct attempt *a, const char *result)
{
    struct destination *d = a->destination;
    attempt_settle(a, result, &a->exchange);
    destination_pump(d);
}

/* ---- labels of samples ----------------------------------------------------------------------- */

/* Returns the note for a profile whose labels were examined by the present rules. */
static unsigned note_of(const struct destination *d, bool changed)
{
    return 2 * d->rules_version + changed;
}

/* Makes the profile that is sent. If the rules change nothing in it, the item notes that, so that
 * another attempt does not read it again. Returns the profile inflated, for the request. */
static struct sv make_outgoing(struct attempt *a, bool must_look)
{
    struct destination *d = a->destination;
    unsigned note = send_item_note(a->item);
    struct sample_labels_look look;
    struct sample_labels_wish wish = {.must_look = must_look, .counts = note % 2 == 0};
    a->unlooked = false;
    if (note == note_of(d, false)) {
        a->outgoing = profile_ref(a->profile);
        return SV("");
    }
    a->outgoing = sample_labels_apply(d->sample_labels, a->config, a->profile, wish, &look);
    a->unlooked = look.skipped;
    bool changed = a->outgoing != a->profile;
    if ((look.clean || changed) && a->config == d->config) {
        send_item_set_note(a->item, note_of(d, changed));
    }
    return look.plain;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

void exchange_init(struct exchange *x)
{
    *x = (struct exchange){.transfer = NULL};
    buf_init(&x->reply, ANSWER_BODY_MAX);
    grpc_end_init(&x->end);
}

bool exchange_is_running(const struct exchange *x)
{
    return x->transfer != NULL || x->use.waiting;
}

void exchange_done(struct exchange *x)
{
    credentials_cancel(&x->use);
    x->keys = credentials_keys_unref(x->keys);
    if (x->transfer != NULL) {
        http_cancel(x->transfer);
        x->transfer = NULL;
    }
    request_done(&x->request);
    buf_done(&x->reply);
    grpc_end_done(&x->end);
}

static bool exchange_on_data(void *arg, const char *data, size_t len)
{
    struct exchange *x = arg;
    size_t room = ANSWER_BODY_MAX - x->reply.len;
    buf_append(&x->reply, data, len < room ? len : room);
    x->reply_bytes += len;
    return x->reply_bytes <= DRAIN_MAX;
}

static void exchange_on_field(void *arg, struct sv name, struct sv value)
{
    struct exchange *x = arg;
    grpc_end_take(&x->end, name, value);
}

/* Returns true if the server has refused the credentials as expired or unknown, and another attempt
 * gets others. */
static bool gets_others(const struct exchange *x)
{
    struct bucket_refusal refusal;
    return x->keys != NULL &&
           bucket_read_refusal((struct sv){x->reply.data, x->reply.len}, &refusal) &&
           bucket_code_is_about_keys(refusal.code) && credentials_refused(x->credentials, x->keys);
}

static void exchange_on_done(void *arg, const struct http_response *r)
{
    struct exchange *x = arg;
    struct answer_input in = {.protocol = x->protocol,
                              .retry_on_429 = x->config->retry_on_429,
                              .result = r->result,
                              .stream_ended = r->stream_ended,
                              .early = r->early,
                              .status = r->status,
                              .error = r->error,
                              .content_type = r->content_type,
                              .location = r->location,
                              .retry_after_ms = r->retry_after_ms,
                              .body = {.p = x->reply.data, .n = x->reply.len},
                              .grpc_status = sv_from(x->end.status),
                              .grpc_message = {.p = x->end.message.data, .n = x->end.message.len},
                              .wall_ns = clock_wall_ns()};
    struct answer answer;
    x->transfer = NULL;
    answer_classify(&in, &answer);
    if (gets_others(x)) {
        answer.delay_ms = 0;
    }
    x->result = r->result;
    x->status = answer.status;
    x->on_answer(x->arg, &answer);
}

/* Sends the request. Returns false if out of memory. */
static bool exchange_send(struct exchange *x, const struct http_settings *settings)
{
    const char *method = x->request.method;
    struct http_request request = {.method = method != NULL ? method : "POST",
                                   .url = x->request.url.data,
                                   .settings = settings,
                                   .headers = x->request.headers,
                                   .n_headers = x->request.n_headers,
                                   .body = x->request.body,
                                   .n_body = 3,
                                   .timeout_ms = x->config->remote_timeout_ms,
                                   .max_body = ANSWER_BODY_MAX,
                                   .http2_only = x->protocol->config.needs_http2,
                                   .on_field = exchange_on_field,
                                   .on_data = exchange_on_data,
                                   .on_done = exchange_on_done,
                                   .arg = x};
    x->transfer = http_start(x->http, &request);
    return x->transfer != NULL;
}

static bool send_with_keys(struct exchange *x, struct credentials_keys *keys)
{
    x->keys = keys;
    x->settings = x->config->http;
    credentials_apply(keys, &x->settings);
    return exchange_send(x, &x->settings);
}

/* Ends an exchange that could not be sent. */
static void exchange_fail(struct exchange *x, enum http_result result, const char *error)
{
    struct answer_input in = {.protocol = x->protocol,
                              .result = result,
                              .error = error,
                              .content_type = "",
                              .location = "",
                              .retry_after_ms = -1,
                              .body = SV(""),
                              .wall_ns = clock_wall_ns()};
    struct answer answer;
    answer_classify(&in, &answer);
    x->result = result;
    x->status = 0;
    x->on_answer(x->arg, &answer);
}

static void exchange_on_keys(void *arg, struct credentials_keys *keys, const struct err *why)
{
    struct exchange *x = arg;
    char text[ERR_MSG_MAX];
    if (keys == NULL) {
        (void)snprintf(text, sizeof(text), "%s", why->msg);
        exchange_fail(x, HTTP_ERR_CONFIG, text);
    } else if (!send_with_keys(x, keys)) {
        exchange_fail(x, HTTP_ERR_MEMORY, "out of memory");
    }
}

bool exchange_start(struct exchange *x, const struct attempt *a,
                    void (*on_answer)(void *arg, const struct answer *answer), void *arg)
{
    x->config = a->config;
    x->protocol = a->protocol;
    x->on_answer = on_answer;
    x->arg = arg;
    x->http = a->destination->http;
    x->credentials = a->destination->credentials;
    if (a->config->bucket.credentials == CREDENTIALS_CONFIGURED) {
        return exchange_send(x, &a->config->http);
    }
    if (x->credentials == NULL) {
        return false;
    }
    x->use = (struct credentials_use){.on_ready = exchange_on_keys, .arg = x};
    struct credentials_keys *keys = credentials_get(x->credentials, &x->use);
    return keys == NULL || send_with_keys(x, keys);
}

static void attempt_on_answer(void *arg, const struct answer *answer);

static enum request_status start_http(struct attempt *a, struct sv plain)
{
    struct destination *d = a->destination;
    struct request_input in = {.endpoint = a->config,
                               .series = &a->series,
                               .profile = a->outgoing,
                               .plain = plain,
                               .boundary = &d->boundary,
                               .rng = &d->rng};
    enum request_status status = request_build(&a->exchange.request, &in);
    if (status != REQUEST_OK) {
        return status;
    }
    return exchange_start(&a->exchange, a, attempt_on_answer, a) ? REQUEST_OK : REQUEST_MEMORY;
}

/* Examines the sample labels of a profile that the server has refused unexamined. If there is
 * something to repair, sends the repaired profile at once and returns true. */
static bool send_repaired(struct attempt *a, const char *result)
{
    struct destination *d = a->destination;
    profile_unref(a->outgoing);
    struct sv plain = make_outgoing(a, true);
    if (a->outgoing == a->profile) {
        return false;
    }
    int64_t now_ms = clock_mono_ms();
    report_repeated(&d->report, result, now_ms - a->start_ms);
    a->start_ms = now_ms;
    exchange_done(&a->exchange);
    exchange_init(&a->exchange);
    enum request_status status = start_http(a, plain);
    if (status != REQUEST_OK) {
        attempt_drop(a, status);
        destination_pump(d);
    }
    return true;
}

static void attempt_on_answer(void *arg, const struct answer *answer)
{
    struct attempt *a = arg;
    const char *result = answer_result_name(a->exchange.result, a->exchange.status);
    a->answer = *answer;
    bool again = a->unlooked && answer_is_about_content(answer) && send_repaired(a, result);
    if (!again) {
        finish(a, result);
    }
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

/* Takes the deliveries that wait, and returns those that were not abandoned. The work of a taken
 * delivery finds nothing to do when it runs; until then the delivery exists. */
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
            a->protocol->deliver(a->sink, &a->series, a->outgoing, &a->answer);
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
        (struct delivery){.series = &a->series, .profile = a->outgoing, .answer = &a->answer};
    if (a->sink->deliver_all != NULL) {
        add_waiting(a->sink, &a->delivery);
    }
    sink_thread_submit(a->destination->sink_thread, &a->work);
    return REQUEST_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static struct attempt *attempt_new(struct destination *d, struct send_item *it, int64_t now_ms,
                                   struct sv *ret_plain)
{
    struct attempt *a = calloc(1, sizeof(*a));
    struct profile *p = send_item_profile(it);
    if (a == NULL) {
        return NULL;
    }
    exchange_init(&a->exchange);
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
    /* Whatever the earlier failure was, labels can be its reason. */
    *ret_plain = make_outgoing(a, send_item_attempt(it) > 1);
    a->start_ms = now_ms;
    TAILQ_INSERT_TAIL(&d->attempts, a, link);
    return a;
}

static enum request_status start(struct attempt *a, struct sv plain)
{
    struct destination *d = a->destination;
    if (d->batcher != NULL) {
        batcher_add(d->batcher, a);
        return REQUEST_OK;
    }
    return d->protocol->build != NULL ? start_http(a, plain) : start_delivery(a);
}

void attempt_start(struct destination *d, struct send_item *it, int64_t now_ms)
{
    struct sv plain = SV("");
    struct attempt *a = attempt_new(d, it, now_ms, &plain);
    enum request_status status = REQUEST_MEMORY;
    bool first = send_item_attempt(it) == 1;
    if (a != NULL) {
        status = start(a, plain);
    }
    /* A file may be being written already, but only this thread removes the attempt from the list.
     */
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
        /* The thread of the destination still has an attempt to write a file, which is freed when
         * its work is done. The batcher frees the attempts that share requests. */
        atomic_store(&a->abandoned, true);
        if (exchange_is_running(&a->exchange)) {
            attempt_free(a);
        }
        send_queue_abandon(d->queue, it);
        a = next;
    }
    batcher_abandon(d->batcher);
}

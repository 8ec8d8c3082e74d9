/* One profile on its way out of an endpoint: an HTTP request, or a file written by a worker. */
#include <stdlib.h>

#include "base/clock.h"
#include "write/destination.h"
#include "write/request.h"

/* Of a longer response the rest is not waited for: the connection is closed instead. */
#define DRAIN_MAX ((size_t)64 * 1024)

struct attempt {
    struct lane *lane; /* NULL: abandoned, only the worker still knows it */
    TAILQ_ENTRY(attempt) link;
    struct endpoint_item *item;
    struct profile *profile; /* a reference of its own, for a worker may outlive the item */
    struct series series;
    int64_t start_ms;
    /* HTTP */
    struct request request;
    struct http_transfer *transfer;
    enum http_result result;
    long status;
    struct buf reply; /* the first ANSWER_BODY_MAX bytes */
    size_t reply_bytes;
    /* not HTTP */
    const struct protocol *protocol;
    struct work work;
    struct sink *sink;
    struct answer answer;
};

static void attempt_free(struct attempt *a)
{
    if (a->lane != NULL) {
        TAILQ_REMOVE(&a->lane->attempts, a, link);
    }
    request_done(&a->request);
    buf_done(&a->reply);
    series_done(&a->series);
    profile_unref(a->profile);
    sink_unref(a->sink);
    free(a);
}

static void tell(struct attempt *a, const struct answer *answer,
                 const struct endpoint_result *outcome)
{
    struct lane *l = a->lane;
    if (l->on_attempt == NULL) {
        return;
    }
    struct write_attempt told = {.profile = a->profile,
                                 .endpoint = l->index,
                                 .outcome = outcome->fate == FATE_SENT      ? WRITE_SENT
                                            : outcome->fate == FATE_DROPPED ? WRITE_DROPPED
                                                                            : WRITE_RETRIED,
                                 .reason = outcome->reason,
                                 .result = a->result,
                                 .status = a->status,
                                 .text = answer->text};
    l->on_attempt(l->attempt_arg, &told);
}

static const char *unsendable_text(enum write_drop reason)
{
    switch (reason) {
    case DROP_LABELS:
        return "it has no labels that the protocol can carry";
    case DROP_FORMAT:
        return "the protocol has no place for its format";
    case DROP_REJECTED:
        return "it is larger than the protocol can carry";
    case DROP_EMPTY:
        return "it has no samples, and the server takes no profile without any";
    case DROP_MEMORY:
        return "out of memory";
    default:
        return write_drop_name(reason);
    }
}

/* The same for a profile that never got as far as an attempt. */
static void tell_unsendable(const struct lane *l, const struct endpoint_item *it,
                            enum write_drop reason)
{
    if (l->on_attempt == NULL) {
        return;
    }
    struct write_attempt told = {.profile = endpoint_item_profile(it),
                                 .endpoint = l->index,
                                 .outcome = WRITE_DROPPED,
                                 .reason = reason,
                                 .text = unsendable_text(reason)};
    l->on_attempt(l->attempt_arg, &told);
}

/* Takes the item along: the attempt is freed. */
static void finish(struct attempt *a, const struct answer *answer, const char *result)
{
    struct lane *l = a->lane;
    struct report_attempt done = {.profile = a->profile,
                                  .answer = answer,
                                  .result = result,
                                  .attempt = endpoint_item_attempt(a->item),
                                  .start_ms = a->start_ms,
                                  .now_ms = clock_mono_ms()};
    struct endpoint_result outcome = endpoint_done(l->queue, a->item, answer, done.now_ms);
    done.outcome = &outcome;
    report_done(&l->report, &done);
    tell(a, answer, &outcome);
    attempt_free(a);
    l->on_change(l->arg, l);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static bool on_data(void *arg, const char *data, size_t len)
{
    struct attempt *a = arg;
    size_t room = ANSWER_BODY_MAX - a->reply.len;
    buf_append(&a->reply, data, len < room ? len : room);
    a->reply_bytes += len;
    return a->reply_bytes <= DRAIN_MAX;
}

static void on_done(void *arg, const struct http_response *r)
{
    struct attempt *a = arg;
    const struct config_endpoint *config = a->lane->config;
    struct answer_input in = {.protocol = a->lane->protocol,
                              .retry_on_429 = config->retry_on_429,
                              .result = r->result,
                              .status = r->status,
                              .error = r->error,
                              .content_type = r->content_type,
                              .location = r->location,
                              .retry_after_ms = r->retry_after_ms,
                              .body = {.p = a->reply.data, .n = a->reply.len},
                              .wall_ns = clock_wall_ns()};
    struct answer answer;
    a->result = r->result;
    a->status = r->status;
    answer_classify(&in, &answer);
    finish(a, &answer, answer_result_name(r->result, r->status));
}

static enum request_status start_http(struct attempt *a)
{
    struct lane *l = a->lane;
    struct request_input in = {.endpoint = l->config,
                               .series = &a->series,
                               .profile = a->profile,
                               .boundary = &l->boundary,
                               .rng = &l->rng};
    enum request_status status = request_build(&a->request, &in);
    if (status != REQUEST_OK) {
        return status;
    }
    struct http_request request = {.method = "POST",
                                   .url = a->request.url.data,
                                   .settings = &l->config->http,
                                   .headers = a->request.headers,
                                   .n_headers = a->request.n_headers,
                                   .body = a->request.body,
                                   .n_body = 3,
                                   .timeout_ms = l->config->remote_timeout_ms,
                                   .max_body = ANSWER_BODY_MAX,
                                   .on_data = on_data,
                                   .on_done = on_done,
                                   .arg = a};
    a->transfer = http_start(l->http, &request);
    return a->transfer != NULL ? REQUEST_OK : REQUEST_MEMORY;
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct attempt *of_work(struct work *w)
{
    return (struct attempt *)(void *)((char *)w - offsetof(struct attempt, work));
}

static void run_file(struct work *w)
{
    struct attempt *a = of_work(w);
    a->protocol->deliver(a->sink, &a->series, a->profile, &a->answer);
}

static void file_written(struct work *w)
{
    struct attempt *a = of_work(w);
    if (a->lane == NULL) {
        attempt_free(a);
        return;
    }
    struct answer answer = a->answer;
    finish(a, &answer, answer.class == ANSWER_SENT ? "written" : "failed");
}

static enum request_status start_file(struct attempt *a)
{
    a->protocol = a->lane->protocol;
    a->sink = sink_ref(a->lane->sink);
    a->work = (struct work){.home = a->lane->loop, .run = run_file, .done = file_written};
    worker_submit(a->lane->workers, &a->work);
    return REQUEST_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static struct attempt *attempt_new(struct lane *l, struct endpoint_item *it, int64_t now_ms)
{
    struct attempt *a = calloc(1, sizeof(*a));
    struct profile *p = endpoint_item_profile(it);
    if (a == NULL) {
        return NULL;
    }
    buf_init(&a->reply, ANSWER_BODY_MAX);
    if (!series_build(&a->series, p->labels, &l->config->external_labels, &l->config->label_limits,
                      &l->protocol->labels)) {
        free(a);
        return NULL;
    }
    a->lane = l;
    a->item = it;
    a->profile = profile_ref(p);
    a->start_ms = now_ms;
    TAILQ_INSERT_TAIL(&l->attempts, a, link);
    return a;
}

static enum write_drop drop_reason(enum request_status status)
{
    switch (status) {
    case REQUEST_BAD_LABELS:
        return DROP_LABELS;
    case REQUEST_BAD_FORMAT:
        return DROP_FORMAT;
    case REQUEST_TOO_LARGE:
        return DROP_REJECTED;
    case REQUEST_EMPTY:
        return DROP_EMPTY;
    case REQUEST_OK:
    case REQUEST_MEMORY:
    default:
        return DROP_MEMORY;
    }
}

void attempt_start(struct lane *l, struct endpoint_item *it, int64_t now_ms)
{
    struct attempt *a = attempt_new(l, it, now_ms);
    enum request_status status = REQUEST_MEMORY;
    bool first = endpoint_item_attempt(it) == 1;
    if (a != NULL) {
        status = l->protocol->build == NULL ? start_file(a) : start_http(a);
    }
    /* A file may be on its way already, but only this thread takes it off the list. */
    if (a != NULL && first) {
        report_changes(&l->report, &a->series, endpoint_item_profile(it)->labels);
    }
    if (status == REQUEST_OK) {
        return;
    }
    enum write_drop reason = drop_reason(status);
    report_unsendable(&l->report, endpoint_item_profile(it)->labels, reason, now_ms);
    tell_unsendable(l, it, reason);
    if (a != NULL) {
        attempt_free(a);
    }
    endpoint_drop(l->queue, it, reason);
}

void attempt_abandon_all(struct lane *l)
{
    struct attempt *a = TAILQ_FIRST(&l->attempts);
    TAILQ_INIT(&l->attempts);
    while (a != NULL) {
        struct attempt *next = TAILQ_NEXT(a, link);
        struct endpoint_item *it = a->item;
        a->lane = NULL;
        /* A file attempt is still in a worker's hands, and freed when it comes back. */
        if (a->transfer != NULL) {
            http_cancel(a->transfer);
            attempt_free(a);
        }
        endpoint_abandon(l->queue, it);
        a = next;
    }
}

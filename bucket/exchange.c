#include <curl/curl.h>
#include <string.h>

#include "bucket/private.h"

static struct bucket_call *of_task(struct loop_task *task)
{
    return (struct bucket_call *)(void *)((char *)task - offsetof(struct bucket_call, task));
}

/* ---- the end --------------------------------------------------------------------------------- */

static void count(const struct bucket_call *c)
{
    struct bucket *b = c->bucket;
    const char *op = bucket_operation_name(c->op);
    const char *result = bucket_result_name(c->reply.result);
    double seconds = (double)(clock_mono_ns() - c->start_ns) / (double)NS_PER_S;
    metric_inc(metric_cell(b->requests, (const char *const[]){b->name, op, result}));
    metric_observe(metric_cell(b->seconds, (const char *const[]){b->name, op}), seconds);
    metric_add(b->bytes_in, c->reply.got + c->reply.body.len);
    metric_add(b->bytes_out, c->reply.http == HTTP_DONE ? c->len : 0);
}

/* Gives the call back to its thread. */
static void finish(struct bucket_call *c)
{
    struct bucket *b = c->bucket;
    count(c);
    c->timer = loop_timer_free(c->timer);
    c->keys = credentials_keys_unref(c->keys);
    TAILQ_REMOVE(&b->calls, c, link);
    pthread_mutex_lock(&b->lock);
    c->done = true;
    pthread_cond_signal(&c->finished);
    pthread_mutex_unlock(&b->lock);
}

static void fail(struct bucket_call *c, enum bucket_result result, const char *text)
{
    c->reply.result = bucket_fail(c->bucket, c->key, result, &c->reply.err, "%s", text);
    finish(c);
}

void bucket_exchange_stop(struct loop_task *task)
{
    struct bucket *b = (struct bucket *)(void *)((char *)task - offsetof(struct bucket, stop_task));
    b->ending = true;
    while (!TAILQ_EMPTY(&b->calls)) {
        struct bucket_call *c = TAILQ_FIRST(&b->calls);
        credentials_cancel(&c->use);
        if (c->transfer != NULL) {
            http_cancel(c->transfer);
            c->transfer = NULL;
        }
        fail(c, BUCKET_STOPPED, "stopped");
    }
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool is_good(const struct bucket_call *c, long status)
{
    return status >= 200 && status < 300 && !(c->into != NULL && status != 206);
}

static bool exchange_on_head(void *arg, long status, const char *content_type)
{
    struct bucket_call *c = arg;
    (void)content_type;
    c->reply.status = status;
    c->ignored = c->into != NULL && status >= 200 && status < 300 && status != 206;
    return !c->ignored;
}

/* Reads "bytes 0-99/1000". */
static void take_range(struct bucket_reply *r, struct sv v)
{
    struct sv unit;
    struct sv first;
    struct sv last;
    if (!sv_cut(v, ' ', &unit, &v) || !sv_eq_nocase(unit, "bytes") || !sv_cut(v, '-', &first, &v) ||
        !sv_cut(v, '/', &last, &v)) {
        return;
    }
    r->ranged = parse_u64(first, INT64_MAX, &r->first) && parse_u64(last, INT64_MAX, &r->last) &&
                parse_u64(v, INT64_MAX, &r->total);
}

static void copy(struct sv v, char *out, size_t size)
{
    if (v.n < size) {
        memcpy(out, v.p, v.n);
        out[v.n] = '\0';
    }
}

static void exchange_on_field(void *arg, struct sv name, struct sv value)
{
    struct bucket_call *c = arg;
    struct bucket_reply *r = &c->reply;
    char date[64] = "";
    if (sv_eq_nocase(name, "ETag")) {
        copy(value, r->etag, sizeof(r->etag));
    } else if (sv_eq_nocase(name, "Content-Length")) {
        if (!parse_u64(value, INT64_MAX, &r->length)) {
            r->length = UINT64_MAX;
        }
    } else if (sv_eq_nocase(name, "Content-Range")) {
        take_range(r, value);
    } else if (sv_eq_nocase(name, "Last-Modified")) {
        copy(value, date, sizeof(date));
        time_t at = curl_getdate(date, NULL);
        r->modified_ns = at > 0 ? (int64_t)at * NS_PER_S : 0;
    } else if (sv_eq_nocase(name, BUCKET_MARK_AMAZON) || sv_eq_nocase(name, BUCKET_MARK_GOOGLE)) {
        copy(value, r->mark, sizeof(r->mark));
    }
}

static bool exchange_on_data(void *arg, const char *data, size_t len)
{
    struct bucket_call *c = arg;
    struct bucket_reply *r = &c->reply;
    if (!is_good(c, r->status)) {
        size_t room = BUCKET_ERROR_MAX - r->body.len;
        return buf_append(&r->body, data, len < room ? len : room) && len <= room;
    }
    if (c->into == NULL) {
        return buf_append(&r->body, data, len);
    }
    c->overflow = len > c->into_len - r->got;
    if (!c->overflow) {
        memcpy((char *)c->into + r->got, data, len);
        r->got += len;
    }
    return !c->overflow;
}

/* The results of transfers that have ended without a whole answer. */
static enum bucket_result of_transfer(enum http_result r)
{
    switch (r) {
    case HTTP_ERR_TIMEOUT:
        return BUCKET_TIMEOUT;
    case HTTP_ERR_TOO_LARGE:
    case HTTP_ERR_REDIRECT:
    case HTTP_ERR_PROTOCOL:
        return BUCKET_BAD_ANSWER;
    case HTTP_ERR_CONFIG:
        return BUCKET_CREDENTIALS;
    case HTTP_ERR_MEMORY:
    case HTTP_ERR_NO_ROOM:
        return BUCKET_MEMORY;
    case HTTP_ERR_ABORTED:
        return BUCKET_STOPPED;
    default:
        return BUCKET_NETWORK;
    }
}

static void refuse(struct bucket_call *c)
{
    struct bucket_reply *r = &c->reply;
    struct bucket_refusal refusal;
    bool explained = bucket_read_refusal((struct sv){r->body.data, r->body.len}, &refusal);
    struct bucket_meaning m = bucket_meaning_of(refusal.code, r->status, c->bucket->google);
    /* A bucket that is missing and an object that is missing both have the status 404. */
    if (m.result == BUCKET_NOT_FOUND && c->key == NULL && !explained) {
        m = bucket_meaning_of("NoSuchBucket", 404, c->bucket->google);
    }
    memcpy(r->code, refusal.code, sizeof(r->code));
    (void)bucket_fail(c->bucket, c->key, m.result, &r->err, "%s answered HTTP %ld%s%s%s%s%s%s%s",
                      c->method, r->status, explained ? " " : "", refusal.code,
                      refusal.message[0] != '\0' ? ": " : "", refusal.message,
                      refusal.place[0] != '\0' ? " (" : "", refusal.place,
                      refusal.place[0] != '\0' ? ")" : "");
    if (m.advice != NULL) {
        err_append(&r->err, ": %s", m.advice);
    }
    r->result = m.result;
    if (bucket_code_is_about_keys(refusal.code) || r->status == 401) {
        /* Files with keys are read again, too. */
        r->renewable = credentials_refused(c->bucket->credentials, c->keys) ||
                       c->keys->http->password_file != NULL;
    }
}

static void bad(struct bucket_call *c, const char *text)
{
    c->reply.result = bucket_fail(c->bucket, c->key, BUCKET_BAD_ANSWER, &c->reply.err, "%s", text);
}

static void classify(struct bucket_call *c, const struct http_response *h)
{
    struct bucket_reply *r = &c->reply;
    if (c->ignored) {
        r->final = true;
        bad(c, "the server ignores ranges and sends the whole object: a proxy that changes "
               "requests, or no object store");
    } else if (c->overflow) {
        bad(c, "the server sends more bytes than were asked for");
    } else if (h->status >= 300 && (h->result == HTTP_DONE || h->result == HTTP_ERR_ABORTED)) {
        /* A refusal whose rest was not read is one. */
        refuse(c);
    } else if (h->result == HTTP_ERR_ABORTED) {
        bad(c, "an answer that is longer than any of an object store");
    } else if (h->result != HTTP_DONE) {
        enum bucket_result result = of_transfer(h->result);
        r->result = bucket_fail(c->bucket, c->key, result, &r->err, "%s", h->error);
    } else if (h->early) {
        bad(c, "the server answered before it had the request");
    } else {
        r->result = BUCKET_OK;
    }
}

static void exchange_on_done(void *arg, const struct http_response *h)
{
    struct bucket_call *c = arg;
    c->transfer = NULL;
    c->reply.http = h->result;
    c->reply.status = h->status;
    c->reply.retry_after_ms = h->retry_after_ms;
    classify(c, h);
    finish(c);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* Returns the time for this try: that of the options and of its bytes, but not beyond the deadline.
 */
static int64_t limit_ms(const struct bucket_call *c)
{
    int64_t bytes = (int64_t)(c->len + c->into_len);
    int64_t ms = c->bucket->options.request_timeout_ms + bytes * MS_PER_S / BUCKET_SLOWEST;
    int64_t left = c->deadline_ms - clock_mono_ms();
    if (c->deadline_ms != 0 && left < ms) {
        ms = left > 1 ? left : 1;
    }
    return ms;
}

static void send_request(struct bucket_call *c)
{
    struct bucket *b = c->bucket;
    struct http_part part = {.data = c->data, .len = c->len};
    bool has_body = strcmp(c->method, "PUT") == 0 || strcmp(c->method, "POST") == 0;
    struct http_request request = {.method = c->method,
                                   .url = c->url.data,
                                   .settings = c->keys->http,
                                   .headers = c->headers,
                                   .n_headers = c->n_headers,
                                   .body = &part,
                                   .n_body = has_body ? 1 : 0,
                                   .timeout_ms = limit_ms(c),
                                   .progress_timeout_ms = b->options.progress_timeout_ms,
                                   .max_body = BUCKET_ANSWER_MAX,
                                   .receive_buffer = c->into != NULL ? 64 * 1024 : 0,
                                   .on_head = exchange_on_head,
                                   .on_field = exchange_on_field,
                                   .on_data = exchange_on_data,
                                   .on_done = exchange_on_done,
                                   .arg = c};
    c->transfer = http_start(b->http, &request);
    if (c->transfer == NULL) {
        fail(c, BUCKET_MEMORY, "out of memory");
    }
}

static void exchange_on_timer(void *arg)
{
    struct bucket_call *c = arg;
    credentials_cancel(&c->use);
    fail(c, BUCKET_TIMEOUT, "no credentials before the deadline");
}

/* Waits for credentials, but not longer than for an answer. */
static void wait_for_keys(struct bucket_call *c)
{
    c->timer = loop_timer_new(c->bucket->loop, exchange_on_timer, c);
    if (c->timer != NULL) {
        loop_timer_after(c->timer, limit_ms(c));
    }
}

static void exchange_on_keys(void *arg, struct credentials_keys *keys, const struct err *why)
{
    struct bucket_call *c = arg;
    c->keys = keys;
    c->timer = loop_timer_free(c->timer);
    if (keys == NULL) {
        fail(c, why->kind == ERR_MEMORY ? BUCKET_MEMORY : BUCKET_CREDENTIALS, why->msg);
    } else {
        send_request(c);
    }
}

void bucket_exchange_run(struct loop_task *task)
{
    struct bucket_call *c = of_task(task);
    TAILQ_INSERT_TAIL(&c->bucket->calls, c, link);
    c->use = (struct credentials_use){.on_ready = exchange_on_keys, .arg = c};
    if (c->bucket->ending) {
        fail(c, BUCKET_STOPPED, "stopped");
        return;
    }
    c->keys = credentials_get(c->bucket->credentials, &c->use);
    if (c->keys != NULL) {
        send_request(c);
    } else {
        wait_for_keys(c);
    }
}

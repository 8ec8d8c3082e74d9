#include "bucket/private.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "http/url.h"

#define REQUEST_TIMEOUT_MS 30000
#define PROGRESS_TIMEOUT_MS 10000
#define TRIES 5
#define PAUSE_MIN_MS 200
#define PAUSE_MAX_MS 10000
#define REQUESTS_MAX 16
#define PART_BYTES ((uint64_t)8 * 1024 * 1024)
#define LIST_MAX 1000000
/* A server may ask for a longer pause, but not for more than this. */
#define RETRY_AFTER_MAX_MS 60000

/* ---- names ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool passes;
    bool retried; /* by the client itself */
} results[BUCKET_RESULTS] = {
    [BUCKET_OK] = {"ok", false, false},
    [BUCKET_NOT_FOUND] = {"not_found", false, false},
    [BUCKET_NO_BUCKET] = {"no_bucket", false, false},
    [BUCKET_DENIED] = {"denied", false, false},
    [BUCKET_CREDENTIALS] = {"credentials", true, false},
    [BUCKET_CHANGED] = {"changed", false, false},
    [BUCKET_SLOW_DOWN] = {"slow_down", true, true},
    [BUCKET_TIMEOUT] = {"timeout", true, true},
    [BUCKET_FULL] = {"full", true, false},
    [BUCKET_CLOCK] = {"clock", false, false},
    [BUCKET_NETWORK] = {"network", true, true},
    [BUCKET_BAD_ANSWER] = {"bad_answer", true, false},
    [BUCKET_REFUSED] = {"refused", false, false},
    [BUCKET_LIMIT] = {"limit", false, false},
    [BUCKET_FILE] = {"file", false, false},
    [BUCKET_STOPPED] = {"stopped", false, false},
    [BUCKET_MEMORY] = {"memory", true, true},
};

const char *bucket_result_name(enum bucket_result r)
{
    return results[r].name;
}

bool bucket_result_passes(enum bucket_result r)
{
    return results[r].passes;
}

const char *bucket_operation_name(enum bucket_operation op)
{
    static const char *const names[BUCKET_OPERATIONS] = {
        [BUCKET_LIST] = "list",
        [BUCKET_HEAD] = "head",
        [BUCKET_GET] = "get",
        [BUCKET_PUT] = "put",
        [BUCKET_DELETE] = "delete",
        [BUCKET_UPLOAD_BEGIN] = "upload_begin",
        [BUCKET_UPLOAD_PART] = "upload_part",
        [BUCKET_UPLOAD_COMPLETE] = "upload_complete",
        [BUCKET_UPLOAD_ABORT] = "upload_abort",
        [BUCKET_UPLOAD_LIST] = "upload_list",
    };
    return names[op];
}

const char *bucket_url(const struct bucket *b)
{
    return b->options.settings->url;
}

static enum err_kind kind_of(enum bucket_result r)
{
    switch (r) {
    case BUCKET_TIMEOUT:
    case BUCKET_STOPPED:
        return ERR_TIMEOUT;
    case BUCKET_NETWORK:
    case BUCKET_BAD_ANSWER:
        return ERR_NETWORK;
    case BUCKET_LIMIT:
        return ERR_LIMIT;
    case BUCKET_FILE:
        return ERR_SYSTEM;
    case BUCKET_MEMORY:
        return ERR_MEMORY;
    default:
        return ERR_REFUSED;
    }
}

enum bucket_result bucket_fail(const struct bucket *b, const char *key, enum bucket_result result,
                               struct err *err, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    struct sv url = sv_from(bucket_url(b));
    while (url.n > 0 && url.p[url.n - 1] == '/') {
        url.n--;
    }
    err_set(err, kind_of(result), "%.*s%s%s: %s", SV_ARG(url), key != NULL ? "/" : "",
            key != NULL ? key : "", text);
    return result;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool is_segment(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if ((unsigned char)v.p[i] < ' ' || v.p[i] == 0x7f) {
            return false;
        }
    }
    return v.n > 0 && !sv_eq_str(v, ".") && !sv_eq_str(v, "..");
}

bool bucket_key_valid(const struct bucket *b, struct sv key)
{
    struct sv segment;
    if (strlen(b->prefix) + key.n > BUCKET_KEY_MAX || !utf8_valid(key)) {
        return false;
    }
    while (sv_cut(key, '/', &segment, &key)) {
        if (!is_segment(segment)) {
            return false;
        }
    }
    return is_segment(key);
}

bool bucket_own_key(const struct bucket *b, const char *asked, struct sv listed, struct sv *ret)
{
    struct sv prefix = sv_from(b->prefix);
    if (!sv_starts_with(listed, prefix)) {
        return false;
    }
    *ret = sv_skip(listed, prefix.n);
    return asked == NULL || sv_starts_with(*ret, sv_from(asked));
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum bucket_result bucket_call_init(struct bucket_call *c, struct bucket *b,
                                    enum bucket_operation op, const char *key, struct err *err)
{
    *c = (struct bucket_call){.op = op, .key = key, .method = "GET", .bucket = b};
    if (key != NULL && !bucket_key_valid(b, sv_from(key))) {
        return bucket_fail(b, key, BUCKET_LIMIT, err,
                           "expected a key of UTF-8 without control characters, with at most %d "
                           "bytes and no empty segment, \".\" or \"..\"",
                           BUCKET_KEY_MAX);
    }
    buf_init(&c->url, BUCKET_REQUEST_URL_MAX);
    buf_init(&c->reply.body, BUCKET_ANSWER_MAX);
    buf_printf(&c->url, "%s/", b->root);
    if (key != NULL) {
        bucket_put_key(sv_from(b->prefix), &c->url);
        bucket_put_key(sv_from(key), &c->url);
    }
    pthread_cond_init(&c->finished, NULL);
    return BUCKET_OK;
}

void bucket_call_done(struct bucket_call *c)
{
    buf_done(&c->url);
    buf_done(&c->reply.body);
    pthread_cond_destroy(&c->finished);
}

void bucket_call_param(struct bucket_call *c, const char *name, struct sv value)
{
    bool first = c->url.len == 0 || memchr(c->url.data, '?', c->url.len) == NULL;
    buf_putc(&c->url, first ? '?' : '&');
    url_encode_pair(sv_from(name), value, &c->url);
}

void bucket_call_header(struct bucket_call *c, const char *name, const char *value)
{
    if (c->n_headers < BUCKET_HEADERS_MAX) {
        c->headers[c->n_headers++] = (struct http_header){name, value};
    }
}

static bool put_digests(struct bucket_call *c)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct buf text;
    const void *data = c->data != NULL ? c->data : "";
    if (EVP_Digest(data, c->len, sum, &n, EVP_sha256(), NULL) != 1) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(c->digest + 2 * i, 3, "%02x", sum[i]);
    }
    /* Some buckets demand it (object lock). A system that forbids MD5 sends none. */
    buf_init(&text, sizeof(c->md5));
    if (c->len > 0 && EVP_Digest(data, c->len, sum, &n, EVP_md5(), NULL) == 1 &&
        base64_encode((struct sv){(const char *)sum, n}, &text)) {
        memcpy(c->md5, text.data, text.len + 1);
    }
    buf_done(&text);
    return true;
}

static bool complete_headers(struct bucket_call *c)
{
    if (!put_digests(c)) {
        return false;
    }
    if (!c->bucket->google) {
        bucket_call_header(c, "x-amz-content-sha256", c->digest);
    }
    if (c->md5[0] != '\0') {
        bucket_call_header(c, "Content-MD5", c->md5);
    }
    return true;
}

/* ---- turns and pauses ------------------------------------------------------------------------ */

/* Waits for `changed`. Returns false if the instant (0: none) has passed. The lock is held. */
static bool wait_changed(struct bucket *b, int64_t until_ms)
{
    struct timespec at = clock_timespec(until_ms);
    return until_ms == 0 ? pthread_cond_wait(&b->changed, &b->lock) == 0
                         : pthread_cond_timedwait(&b->changed, &b->lock, &at) != ETIMEDOUT;
}

bool bucket_pause(struct bucket *b, int64_t ms, int64_t deadline_ms)
{
    int64_t end_ms = clock_mono_ms() + ms;
    if (deadline_ms != 0 && end_ms >= deadline_ms) {
        return false;
    }
    pthread_mutex_lock(&b->lock);
    while (!b->stopped && wait_changed(b, end_ms)) {
    }
    bool stopped = b->stopped;
    pthread_mutex_unlock(&b->lock);
    return !stopped;
}

/* Waits for a turn. The reply has the reason if there is none. */
static bool take_turn(struct bucket_call *c)
{
    struct bucket *b = c->bucket;
    bool in_time = c->deadline_ms == 0 || clock_mono_ms() < c->deadline_ms;
    pthread_mutex_lock(&b->lock);
    while (in_time && !b->stopped && b->turns >= b->options.max_requests) {
        in_time = wait_changed(b, c->deadline_ms);
    }
    bool stopped = b->stopped;
    bool ok = in_time && !stopped;
    b->turns += ok;
    pthread_mutex_unlock(&b->lock);
    if (!ok) {
        c->reply.result =
            bucket_fail(b, c->key, stopped ? BUCKET_STOPPED : BUCKET_TIMEOUT, &c->reply.err, "%s",
                        stopped ? "stopped" : "the deadline has passed before the request");
    }
    return ok;
}

static void run_once(struct bucket_call *c)
{
    struct bucket *b = c->bucket;
    c->done = false;
    c->start_ns = clock_mono_ns();
    c->task = (struct loop_task){.run = bucket_exchange_run};
    loop_post(b->loop, &c->task);
    pthread_mutex_lock(&b->lock);
    while (!c->done) {
        pthread_cond_wait(&c->finished, &b->lock);
    }
    b->turns--;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void reset_reply(struct bucket_call *c)
{
    struct buf body = c->reply.body;
    buf_clear(&body);
    c->reply = (struct bucket_reply){.body = body, .length = UINT64_MAX, .retry_after_ms = -1};
    c->ignored = false;
    c->overflow = false;
}

/* ---- tries ----------------------------------------------------------------------------------- */

/* Returns true if another try may help. */
static bool may_repeat(const struct bucket_call *c, unsigned tries)
{
    const struct bucket_reply *r = &c->reply;
    /* The server may have sent these because of what is on the way, or know other keys by now. */
    bool once = (r->result == BUCKET_BAD_ANSWER && !r->final) || r->renewable;
    return (results[r->result].retried && tries < c->bucket->options.tries) || (once && tries == 1);
}

static int64_t pause_ms(struct bucket_call *c, unsigned tries)
{
    struct bucket *b = c->bucket;
    int64_t ms = b->options.pause_min_ms;
    for (unsigned i = 1; i < tries && ms < b->options.pause_max_ms; i++) {
        ms *= 2;
    }
    ms = ms < b->options.pause_max_ms ? ms : b->options.pause_max_ms;
    pthread_mutex_lock(&b->lock);
    /* Clients that were refused together must not come back together. */
    ms = ms / 2 + rng_range(&b->rng, 0, ms / 2 + 1);
    pthread_mutex_unlock(&b->lock);
    int64_t asked = c->reply.retry_after_ms;
    asked = asked < RETRY_AFTER_MAX_MS ? asked : RETRY_AFTER_MAX_MS;
    return ms > asked ? ms : asked;
}

enum bucket_result bucket_call_run(struct bucket_call *c, int64_t deadline_ms, struct err *err)
{
    unsigned tries = 0;
    c->deadline_ms = deadline_ms;
    if (!buf_ok(&c->url) || !complete_headers(c)) {
        return bucket_fail(c->bucket, c->key, BUCKET_MEMORY, err, "out of memory");
    }
    for (;;) {
        reset_reply(c);
        if (!take_turn(c)) {
            break;
        }
        run_once(c);
        tries++;
        if (!may_repeat(c, tries) || !bucket_pause(c->bucket, pause_ms(c, tries), deadline_ms)) {
            break;
        }
        metric_inc(c->bucket->retries);
    }
    if (c->reply.result != BUCKET_OK && err != NULL) {
        *err = c->reply.err;
        if (tries > 1) {
            err_append(err, " (after %u tries)", tries);
        }
    }
    return c->reply.result;
}

/* ---- the client ------------------------------------------------------------------------------ */

static void register_metrics(struct bucket *b, struct metrics *m)
{
    static const double buckets[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
    static const struct metric_desc requests = {
        .name = "profpull_bucket_requests_total",
        .help = "Requests to buckets that ended, by how they ended.",
        .type = METRIC_COUNTER,
        .labels = {"bucket", "operation", "result"}};
    static const struct metric_desc seconds = {
        .name = "profpull_bucket_request_seconds",
        .help = "Time of a request to a bucket, the wait for credentials included.",
        .type = METRIC_HISTOGRAM,
        .labels = {"bucket", "operation"},
        .buckets = buckets,
        .n_buckets = sizeof(buckets) / sizeof(buckets[0])};
    struct metric *bytes = metrics_family(m, METRIC_COUNTER, "profpull_bucket_bytes_total",
                                          "Bytes of bodies sent to buckets and received from them.",
                                          "bucket", "direction");
    b->requests = metrics_register(m, &requests);
    b->seconds = metrics_register(m, &seconds);
    b->bytes_in = metric_cell(bytes, (const char *const[]){b->name, "in"});
    b->bytes_out = metric_cell(bytes, (const char *const[]){b->name, "out"});
    b->retries =
        metric_cell_of(metrics_family(m, METRIC_COUNTER, "profpull_bucket_retries_total",
                                      "Requests to buckets that were sent again.", "bucket", NULL),
                       b->name);
    b->foreign = metric_cell_of(
        metrics_family(m, METRIC_COUNTER, "profpull_bucket_foreign_keys_total",
                       "Listed objects that were skipped for their names.", "bucket", NULL),
        b->name);
}

static void fill_defaults(struct bucket_options *o)
{
    o->request_timeout_ms = o->request_timeout_ms > 0 ? o->request_timeout_ms : REQUEST_TIMEOUT_MS;
    o->progress_timeout_ms =
        o->progress_timeout_ms > 0 ? o->progress_timeout_ms : PROGRESS_TIMEOUT_MS;
    o->tries = o->tries > 0 ? o->tries : TRIES;
    o->pause_min_ms = o->pause_min_ms > 0 ? o->pause_min_ms : PAUSE_MIN_MS;
    o->pause_max_ms = o->pause_max_ms > 0 ? o->pause_max_ms : PAUSE_MAX_MS;
    o->max_requests = o->max_requests > 0 ? o->max_requests : REQUESTS_MAX;
    o->part_bytes = o->part_bytes > 0 ? o->part_bytes : PART_BYTES;
    o->list_max = o->list_max > 0 ? o->list_max : LIST_MAX;
}

/* Makes the texts of the bucket: name, root and prefix. */
static bool make_texts(struct bucket *b, struct err *err)
{
    const struct bucket_settings *s = b->options.settings;
    struct sv url = sv_from(s->url);
    struct bucket_url parts = bucket_url_split(url);
    struct buf root;
    b->google = bucket_url_is_google(url);
    if (!bucket_url_valid(url, b->google ? BUCKET_SCHEME_GS : BUCKET_SCHEME_S3)) {
        return err_set(err, ERR_INPUT, "expected s3://bucket/prefix or gs://bucket/prefix, got %s",
                       s->url);
    }
    buf_init(&root, BUCKET_BASE_MAX);
    b->root = bucket_put_root(s, &root) ? buf_take(&root, NULL) : NULL;
    buf_done(&root);
    b->name =
        b->options.name != NULL ? strdup(b->options.name) : strndup(parts.name.p, parts.name.n);
    if (asprintf(&b->prefix, "%.*s%s", SV_ARG(parts.prefix), parts.prefix.n > 0 ? "/" : "") < 0) {
        b->prefix = NULL;
    }
    return (b->root != NULL && b->name != NULL && b->prefix != NULL) || err_memory(err);
}

static bool make_parts(struct bucket *b, struct err *err)
{
    const struct bucket_options *o = &b->options;
    b->loop = loop_new(err);
    if (b->loop == NULL) {
        return false;
    }
    b->http = http_client_new(&(struct http_client_options){.loop = b->loop,
                                                            .log = o->log,
                                                            .metrics = o->metrics,
                                                            .name = "bucket",
                                                            .max_idle_connections = o->max_requests,
                                                            .contents = o->contents},
                              err);
    if (b->http == NULL) {
        return false;
    }
    b->credentials = credentials_new(&(struct credentials_options){.settings = o->settings,
                                                                   .loop = b->loop,
                                                                   .http = b->http,
                                                                   .log = o->log,
                                                                   .metrics = o->metrics,
                                                                   .name = b->name,
                                                                   .world = o->world},
                                     err);
    return b->credentials != NULL;
}

struct bucket *bucket_new(const struct bucket_options *o, struct err *err)
{
    struct bucket *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        err_memory(err);
        return NULL;
    }
    b->options = *o;
    fill_defaults(&b->options);
    TAILQ_INIT(&b->calls);
    rng_seed_random(&b->rng);
    pthread_mutex_init(&b->lock, NULL);
    clock_cond_init(&b->changed);
    if (!make_texts(b, err)) {
        return bucket_free(b);
    }
    register_metrics(b, o->metrics);
    if (!make_parts(b, err) || (b->thread = loop_thread_start(b->loop, "bucket", err)) == NULL) {
        return bucket_free(b);
    }
    return b;
}

void bucket_stop(struct bucket *b)
{
    pthread_mutex_lock(&b->lock);
    bool first = !b->stopped;
    b->stopped = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    if (first && b->thread != NULL) {
        b->stop_task = (struct loop_task){.run = bucket_exchange_stop};
        loop_post(b->loop, &b->stop_task);
    }
}

struct bucket *bucket_free(struct bucket *b)
{
    if (b == NULL) {
        return NULL;
    }
    bucket_stop(b);
    loop_thread_join(b->thread);
    credentials_free(b->credentials);
    http_client_free(b->http);
    loop_free(b->loop);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b->root);
    free(b->prefix);
    free(b->name);
    free(b);
    return NULL;
}

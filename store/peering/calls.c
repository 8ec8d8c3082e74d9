/* Requests to peers: the callers wait, and the thread of the peering runs them. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/peering/private.h"

/* Requests of one scan at the same time. */
#define CALLS_MAX 16
#define CONNECT_MS 2000
/* A peer that could not be reached is not asked for this long. */
#define DOWN_MS 5000

void peering_call_init(struct peering_call *c, struct peer *peer, size_t answer_max)
{
    *c = (struct peering_call){.peer = peer, .answer_max = answer_max};
    buf_init(&c->question, PEERING_QUESTION_MAX);
    buf_init(&c->answer, answer_max);
}

void peering_call_done(struct peering_call *c)
{
    buf_done(&c->question);
    buf_done(&c->answer);
}

/* ---- on the loop's thread -------------------------------------------------------------------- */

/* Gives the exchange back to its thread. */
static void finish(struct peering_exchange *x, const char *result)
{
    struct peering *p = x->peering;
    metric_inc(metric_cell_of(p->requests, result));
    metric_add(p->bytes, x->call->answer.len);
    metric_observe(p->seconds, (double)(clock_mono_ms() - x->began_ms) / 1000.0);
    TAILQ_REMOVE(&p->exchanges, x, link);
    pthread_mutex_lock(&p->lock);
    x->done = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void fail(struct peering_exchange *x, enum err_kind kind, const char *why)
{
    err_set(&x->call->err, kind, "peer %s: %s", peer_name(x->call->peer), why);
}

/* Says what to do about a refusal. */
static const char *remedy(long status)
{
    switch (status) {
    case 401:
    case 403:
        return "set the credentials of its section `query` under query.peers of this process";
    case 404:
    case 405:
        return "expected the port of its section `query`, and a version of profpull that answers "
               "peers";
    case 429:
        return "it is busy: raise its query.concurrency or query.max_waiting";
    default:
        return "see its log";
    }
}

static void refuse(struct peering_exchange *x, const struct http_response *h)
{
    char why[ERR_MSG_MAX];
    /* The texts of the endpoint itself are one line. */
    size_t n = h->body->len < 300 ? h->body->len : 300;
    const char *end = memchr(h->body->data, '\n', n);
    n = end != NULL ? (size_t)(end - h->body->data) : n;
    (void)snprintf(why, sizeof(why), "it answered HTTP %ld%s%.*s: %s", h->status, n > 0 ? ": " : "",
                   (int)n, h->body->data, remedy(h->status));
    fail(x, ERR_REFUSED, why);
}

static const char *classify(struct peering_exchange *x, const struct http_response *h)
{
    struct peering_call *c = x->call;
    if (h->result == HTTP_ERR_TOO_LARGE) {
        fail(x, ERR_LIMIT,
             "its answer is larger than this query may use: raise query.max_bytes, or ask for a "
             "shorter time or fewer services");
        return "too_large";
    }
    if (h->result != HTTP_DONE) {
        fail(x, ERR_NETWORK, h->error);
        return http_result_name(h->result);
    }
    if (h->status != 200) {
        refuse(x, h);
        return h->status == 401 || h->status == 403 ? "denied" : "refused";
    }
    size_t len;
    char *data = buf_take(h->body, &len);
    c->ok = data != NULL && buf_append(&c->answer, data, len);
    free(data);
    if (!c->ok) {
        fail(x, ERR_MEMORY, "out of memory");
    }
    return c->ok ? "ok" : "memory";
}

static void peering_on_done(void *arg, const struct http_response *h)
{
    struct peering_exchange *x = arg;
    struct peering *p = x->peering;
    struct peer *peer = x->call->peer;
    x->transfer = NULL;
    const char *result = classify(x, h);
    pthread_mutex_lock(&p->lock);
    peer->failed = !x->call->ok;
    if (!x->call->ok) {
        peer->why = x->call->err;
    }
    peer->down_until_ms =
        !x->call->ok && x->call->err.kind == ERR_NETWORK ? clock_mono_ms() + DOWN_MS : 0;
    pthread_mutex_unlock(&p->lock);
    finish(x, result);
}

void peering_exchange_run(struct loop_task *task)
{
    struct peering_exchange *x =
        (struct peering_exchange *)(void *)((char *)task - offsetof(struct peering_exchange, task));
    struct peering *p = x->peering;
    struct peering_call *c = x->call;
    TAILQ_INSERT_TAIL(&p->exchanges, x, link);
    x->began_ms = clock_mono_ms();
    if (p->ending) {
        fail(x, ERR_TIMEOUT, "this process stops");
        finish(x, "aborted");
        return;
    }
    static const struct http_header type = {"Content-Type", PEERING_TYPE};
    x->part = (struct http_part){c->question.data, c->question.len};
    struct http_request request = {.method = "POST",
                                   .url = x->url,
                                   .settings = c->peer->setup->settings.http,
                                   .headers = &type,
                                   .n_headers = 1,
                                   .body = &x->part,
                                   .n_body = 1,
                                   .timeout_ms = x->timeout_ms,
                                   .connect_timeout_ms = CONNECT_MS,
                                   .max_body = c->answer_max,
                                   .receive_buffer = 64 * 1024,
                                   .on_done = peering_on_done,
                                   .arg = x};
    x->transfer = http_start(p->http, &request);
    if (x->transfer == NULL) {
        fail(x, ERR_MEMORY, "out of memory");
        finish(x, "memory");
    }
}

void peering_exchange_stop(struct loop_task *task)
{
    struct peering *p =
        (struct peering *)(void *)((char *)task - offsetof(struct peering, stop_task));
    p->ending = true;
    while (!TAILQ_EMPTY(&p->exchanges)) {
        struct peering_exchange *x = TAILQ_FIRST(&p->exchanges);
        if (x->transfer != NULL) {
            http_cancel(x->transfer);
        }
        fail(x, ERR_TIMEOUT, "this process stops");
        finish(x, "aborted");
    }
}

/* ---- on the thread of a scan ----------------------------------------------------------------- */

/* Returns false, with the reason of its last failure, while a peer is not asked. */
static bool is_up(struct peering *p, struct peering_call *c)
{
    pthread_mutex_lock(&p->lock);
    bool up = clock_mono_ms() >= c->peer->down_until_ms;
    if (!up) {
        c->err = c->peer->why;
    }
    pthread_mutex_unlock(&p->lock);
    return up;
}

static int64_t limit_ms(const struct peering_call *c, int64_t deadline_ms)
{
    int64_t ms = c->peer->setup->settings.timeout_ms;
    int64_t left = deadline_ms - clock_mono_ms();
    if (deadline_ms != 0 && left < ms) {
        ms = left > 1 ? left : 1;
    }
    return ms;
}

static bool begin(struct peering *p, struct peering_exchange *x, struct peering_call *c,
                  int64_t deadline_ms)
{
    *x = (struct peering_exchange){.call = c, .peering = p, .done = true};
    if (!is_up(p, c)) {
        return false;
    }
    if (!buf_ok(&c->question) || asprintf(&x->url, "%s" PEERING_PATH, c->peer->url) < 0) {
        x->url = NULL;
        err_memory(&c->err);
        return false;
    }
    x->done = false;
    x->timeout_ms = limit_ms(c, deadline_ms);
    x->task = (struct loop_task){.run = peering_exchange_run};
    loop_post(p->loop, &x->task);
    return true;
}

/* Waits until fewer than `most` of the first n exchanges run. */
static void await(struct peering *p, const struct peering_exchange *all, size_t n, size_t most)
{
    pthread_mutex_lock(&p->lock);
    for (;;) {
        size_t running = 0;
        for (size_t i = 0; i < n; i++) {
            running += !all[i].done;
        }
        if (running < most) {
            break;
        }
        pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

void peering_run(struct peering *p, struct peering_call *calls, size_t n, int64_t deadline_ms)
{
    struct peering_exchange *all = calloc(n + 1, sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        if (all == NULL) {
            err_memory(&calls[i].err);
            continue;
        }
        await(p, all, i, CALLS_MAX);
        (void)begin(p, &all[i], &calls[i], deadline_ms);
    }
    if (all != NULL) {
        await(p, all, n, 1);
        for (size_t i = 0; i < n; i++) {
            free(all[i].url);
        }
    }
    free(all);
}

#include "http/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "http/private.h"

#define IDLE_CONNECTIONS 64
#define SHARDS_MAX 1024
#define SHUT_DOWN "the client is being shut down"

/* ---- lists ----------------------------------------------------------------------------------- */

void http_list_move(struct http_transfer *t, struct http_list *to)
{
    if (t->list != NULL) {
        TAILQ_REMOVE(t->list, t, link);
    }
    t->list = to;
    if (to != NULL) {
        TAILQ_INSERT_TAIL(to, t, link);
    }
}

/* ---- easy handles ---------------------------------------------------------------------------- */

/* Takes a handle that was used before. Returns NULL if there is none. */
static CURL *easy_pop(struct http_client *c)
{
    CURL *easy = c->idle;
    if (easy != NULL) {
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c->idle);
        c->n_idle--;
    }
    return easy;
}

CURL *http_client_take_easy(struct http_client *c)
{
    CURL *easy = easy_pop(c);
    return easy != NULL ? easy : curl_easy_init();
}

/* Keeps one handle for each transfer in flight and a few more; after a peak, two are freed for each
 * one that comes back. */
static void easy_put(struct http_client *c, CURL *easy)
{
    size_t keep = c->in_flight + HTTP_EASY_SPARE;
    /* The handle is reset first, because its options point into the transfer. */
    curl_easy_reset(easy);
    /* A transfer that failed before it had a connection (out of memory, for example) can leave its
     * receive buffer in the handle. After the reset libcurl takes that buffer for one of its
     * default size, which is larger: the next transfer would write beyond its end. Such a handle
     * refuses another size, which is how it is recognised. */
    bool clean = curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)HTTP_RECEIVE_BUFFER) == CURLE_OK;
    if (clean && c->n_idle < keep) {
        curl_easy_setopt(easy, CURLOPT_PRIVATE, c->idle);
        c->idle = easy;
        c->n_idle++;
    } else {
        curl_easy_cleanup(easy);
    }
    if (c->n_idle > keep) {
        curl_easy_cleanup(easy_pop(c));
    }
}

/* ---- a transfer's life ----------------------------------------------------------------------- */

static void free_headers(struct curl_slist *list)
{
    for (struct curl_slist *l = list; l != NULL; l = l->next) {
        explicit_bzero(l->data, strlen(l->data)); /* it may be a credential */
    }
    curl_slist_free_all(list);
}

struct http_transfer *http_transfer_free(struct http_transfer *t)
{
    if (t == NULL) {
        return NULL;
    }
    http_transfer_starve(t, false);
    t->client->in_flight--;
    metric_gauge_add(t->client->in_flight_gauge, -1);
    t->client->body_bytes -= t->body_counted;
    metric_gauge_add(t->client->body_bytes_gauge, -(int64_t)t->body_counted);
    http_deadline_done(t);
    if (t->easy != NULL) {
        easy_put(t->client, t->easy);
    }
    free_headers(t->headers);
    free_headers(t->proxy_headers);
    curl_slist_free_all(t->connect_to);
    curl_slist_free_all(t->resolve);
    free(t->lookup_host);
    url_done(&t->url);
    http_file_unref(t->ca);
    http_file_unref(t->cert);
    http_file_unref(t->key);
    buf_done(&t->body);
    free(t->location);
    free(t->error);
    free(t);
    return NULL;
}

static struct http_transfer *transfer_new(struct http_client *c, const struct http_request *r)
{
    struct http_transfer *t = calloc(1, sizeof(*t) + r->n_body * sizeof(t->parts[0]));
    if (t == NULL) {
        return NULL;
    }
    t->client = c;
    c->in_flight++;
    metric_gauge_add(c->in_flight_gauge, 1);
    t->start_ns = clock_mono_ns();
    buf_init(&t->body, r->on_data != NULL ? 0 : r->max_body);
    http_transfer_reset_response(t);
    t->request = *r;
    t->request.method = NULL;
    t->request.url = NULL;
    t->request.headers = NULL;
    t->request.n_headers = 0;
    t->request.body = NULL;
    t->request.n_body = 0;
    t->fd = CURL_SOCKET_BAD;
    t->wire_start = -1;
    t->n_parts = r->n_body;
    for (size_t i = 0; i < r->n_body; i++) {
        t->parts[i] = r->body[i];
        t->body_size += r->body[i].len;
    }
    return http_deadline_init(t) ? t : http_transfer_free(t);
}

static bool set_url(struct http_transfer *t, const struct http_request *r, struct err *err)
{
    char shown[URL_REDACTED_MAX];
    if (url_parse(r->url, &t->url, err)) {
        uint64_t i = http_is_plain_http2(t) ? t->client->n_shards - 1
                                            : url_origin_hash(&t->url) % t->client->n_used;
        t->shard = &t->client->shards[i];
        return true;
    }
    /* The redacted URL is only for the error message. */
    url_redact(r->url, shown, sizeof(shown));
    t->url.text = strdup(shown);
    return false;
}

/* Ends a transfer that could not be prepared. */
static void reject(struct http_transfer *t, const struct err *reason)
{
    /* If fetching a token failed, the result is set already. */
    http_transfer_fail(t, t->result != HTTP_DONE ? t->result : http_result_of(reason), reason->msg);
}

/* Continues with the addresses of the host, or the host itself if it is an address: on a direct
 * connection if possible. */
static void connect_to(struct http_transfer *t, const char *addresses)
{
    struct err err = ERR_INIT;
    if (t->direct && t->easy == NULL && direct_takes(addresses)) {
        direct_add(t, addresses);
    } else if ((t->easy == NULL && !http_options_use_libcurl(t, &err)) ||
               (t->lookup_host != NULL && !http_options_resolve(t, addresses, &err))) {
        reject(t, &err);
    } else {
        http_shard_add(t);
    }
}

/* Continues with a transfer whose lookup has ended. addresses: Returns NULL if there are none. */
static void client_on_addresses(void *transfer, const char *addresses, const char *reason)
{
    struct http_transfer *t = transfer;
    if (addresses == NULL) {
        http_transfer_fail(t, t->client->closing ? HTTP_ERR_ABORTED : HTTP_ERR_RESOLVE, reason);
    } else {
        connect_to(t, addresses);
    }
}

static void look_up(struct http_transfer *t)
{
    const char *addresses = NULL;
    struct err err = ERR_INIT;
    switch (resolver_get(t->client->resolver, t->lookup_host, clock_mono_ms(), &t->lookup,
                         &addresses, &err)) {
    case RESOLVER_FOUND:
    case RESOLVER_FAILED:
        client_on_addresses(t, addresses, err.msg);
        break;
    case RESOLVER_WAIT:
        break;
    }
}

/* Starts the next step of a transfer: lookup, connection, request. */
static void launch(struct http_transfer *t)
{
    http_deadline_arm(t);
    if (t->lookup_host != NULL) {
        look_up(t);
    } else {
        connect_to(t, t->url.host);
    }
}

static bool is_offender(const struct http_transfer *t, struct err *err)
{
    char left[32];
    int64_t left_ms =
        offenders_left_ms(t->client->offenders, url_origin_hash(&t->url), clock_mono_ms());
    format_duration_ms(left_ms, left, sizeof(left));
    if (left_ms > 0) {
        err_set(err, ERR_LIMIT,
                "no request for another %s: its last response blocked all other requests", left);
    }
    return left_ms > 0;
}

struct http_transfer *http_start(struct http_client *c, const struct http_request *request)
{
    static const struct http_settings no_settings = {.auth = HTTP_AUTH_NONE};
    struct http_request r = *request;
    struct err err = ERR_INIT;
    if (r.settings == NULL) {
        r.settings = &no_settings;
    }
    struct http_transfer *t = c->closing ? NULL : transfer_new(c, &r);
    if (t == NULL) {
        return NULL;
    }
    if (!set_url(t, &r, &err) || !http_options_apply(t, &r, &err)) {
        reject(t, &err);
    } else if (is_offender(t, &err)) {
        http_transfer_fail(t, HTTP_ERR_PROTOCOL, err.msg);
    } else if (t->needs_token) {
        http_deadline_arm(t);
        http_tokens_wait(&t->token);
    } else {
        launch(t);
    }
    return t;
}

/* Continues with a transfer that has waited for its token. */
static void client_on_token(void *transfer, enum http_result result, const char *authorization,
                            const char *reason)
{
    struct http_transfer *t = transfer;
    struct err err = ERR_INIT;
    if (result != HTTP_DONE) {
        http_transfer_fail(t, result, reason);
    } else if (!http_options_authorize(t, authorization, &err)) {
        reject(t, &err);
    } else {
        launch(t);
    }
}

void http_transfer_detach(struct http_transfer *t)
{
    http_tokens_cancel(&t->token);
    resolver_cancel(&t->lookup);
    if (t->conn != NULL) {
        direct_remove(t);
    } else {
        http_shard_remove(t);
    }
}

void http_cancel(struct http_transfer *t)
{
    if (t->in_multi && t->shard->busy) {
        /* libcurl is on the stack: its callbacks stop the transfer, which is freed later. */
        t->cancelled = true;
        http_list_move(t, &t->shard->cancelled);
        return;
    }
    http_transfer_detach(t);
    http_transfer_free(t);
}

void http_grant(struct http_transfer *t, size_t bytes)
{
    if (!t->starved) {
        return;
    }
    t->granted = bytes;
    buf_reserve(&t->body, bytes);
    http_transfer_starve(t, false);
    if (t->request.timeout_ms > 0) {
        t->request.timeout_ms += (clock_mono_ns() - t->starved_ns) / NS_PER_MS;
        http_deadline_arm(t);
    }
    if (t->conn != NULL) {
        direct_resume(t);
    } else {
        http_shard_resume(t);
    }
}

/* ---- the end of a transfer ------------------------------------------------------------------- */

static void end(struct http_transfer *t)
{
    if (t->end_ns == 0) {
        t->end_ns = clock_mono_ns();
    }
    http_transfer_starve(t, false);
    loop_timer_cancel(t->deadline);
    http_list_move(t, &t->client->ended);
    t->round = t->client->round;
    if (!t->client->driving) {
        loop_timer_after(t->client->ended_timer, 0);
    }
}

void http_transfer_fail(struct http_transfer *t, enum http_result result, const char *reason)
{
    t->result = result;
    http_result_explain(t, reason);
    end(t);
}

/* Starts the transfer again, with the same easy handle if it has one. */
static void start_again(struct http_transfer *t)
{
    struct err err = ERR_INIT;
    t->end_ns = 0;
    t->sent_ns = 0;
    t->fd = CURL_SOCKET_BAD;
    t->opened = false;
    http_transfer_reset_response(t);
    if (http_options_apply_hop(t, &err)) {
        launch(t);
    } else {
        reject(t, &err);
    }
}

/* Requests the target of the redirect, which is on the same host. */
static void follow(struct http_transfer *t)
{
    bool same;
    char *target = url_resolve(t->url.text, t->location, &same);
    if (target == NULL) {
        http_transfer_fail(t, HTTP_ERR_MEMORY, "out of memory");
        return;
    }
    free(t->url.text);
    t->url.text = target;
    t->redirects++;
    start_again(t);
}

/* Returns true if the response did not begin like one of HTTP. libcurl takes it for HTTP 0.9. */
static bool is_garbled(const struct http_transfer *t)
{
    return !t->stopped && !t->head_done &&
           (t->code == CURLE_WEIRD_SERVER_REPLY || t->code == CURLE_UNSUPPORTED_PROTOCOL);
}

/* Returns true if the server closed a kept connection while the request was being sent on it, or
 * sent bytes on it that may not belong to the request. libcurl repeats the request itself if
 * receiving fails, but not if sending a body fails. */
static bool must_repeat(const struct http_transfer *t)
{
    bool is_late = t->end_ns - t->sent_ns >= HTTP_REPEAT_MAX_MS * NS_PER_MS;
    if (t->in_doubt) {
        return !t->repeated;
    }
    if (is_garbled(t) && http_transfer_may_doubt(t)) {
        stray_count(&t->client->strays, STRAY_DOUBTFUL);
        return true;
    }
    /* CURLE_HTTP2: the server has ended the connection with a GOAWAY. */
    bool unanswered =
        t->header_lines == 0 && !t->stopped && !is_late &&
        (t->code == CURLE_HTTP2 ||
         (t->easy == NULL && (t->code == CURLE_RECV_ERROR || t->code == CURLE_GOT_NOTHING)));
    return (t->code == CURLE_SEND_ERROR || unanswered) && t->reused && !t->repeated &&
           !t->head_done;
}

/* Returns true if the request must make a connection, because none was kept for it or none works.
 * As in on_ready() of transfer.c, a request that the server has had for long is not sent again. */
static bool must_connect(struct http_transfer *t)
{
    if (!t->none_kept || t->stopped) {
        return false;
    }
    if (t->sent_ns != 0 && t->end_ns - t->sent_ns >= HTTP_REPEAT_MAX_MS * NS_PER_MS) {
        t->stopped = true;
        t->result = HTTP_ERR_CUT;
        return false;
    }
    return true;
}

/* Copies the status, the error of the system and the connection that libcurl has recorded for the
 * transfer. */
static void ask_libcurl(struct http_transfer *t)
{
    long status = 0, made = 0, os_error = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    /* libcurl does not know the status of a response that was taken late. */
    if (status >= 200) {
        t->status = status;
    }
    curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_error);
    t->os_error = (int)os_error;
    curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &made);
    t->reused = made == 0;
    if (made > 0) {
        metric_add(t->client->connections_new, (uint64_t)made);
    }
}

/* Makes the client read its credentials again after a refusal, because they may have been renewed
 * on disk a moment ago. */
static void forget_credentials(struct http_transfer *t)
{
    const struct http_settings *s = t->request.settings;
    switch (s->auth) {
    case HTTP_AUTH_S3:
        http_files_forget(t->client->files, s->session_token_file);
        __attribute__((fallthrough));
    case HTTP_AUTH_BASIC:
        http_files_forget(t->client->files, s->username_file);
        http_files_forget(t->client->files, s->password_file);
        break;
    case HTTP_AUTH_HEADER:
        http_files_forget(t->client->files, s->credentials_file);
        break;
    case HTTP_AUTH_OAUTH2:
        if (t->status == 401) {
            http_tokens_refused(&t->token);
        }
        break;
    case HTTP_AUTH_NONE:
        break;
    }
}

/* Sends the request once more, on a new connection. */
static void repeat(struct http_transfer *t)
{
    t->repeated = true;
    if (t->in_doubt) {
        t->in_doubt = false;
        t->stopped = false;
        t->result = HTTP_DONE;
    }
    if (t->easy != NULL) {
        curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L);
    }
    start_again(t);
}

void http_transfer_complete(struct http_transfer *t, CURLcode code)
{
    t->code = code;
    t->end_ns = clock_mono_ns();
    if (must_connect(t)) {
        http_options_connect(t);
        start_again(t);
        return;
    }
    if (t->easy != NULL) {
        ask_libcurl(t);
    }
    if (t->status < 200 && !t->head_done) {
        t->status = 0;
    }
    t->reused &= t->sent_ns != 0;
    if (t->reused) {
        metric_inc(t->client->connections_reused);
    }
    if (code == CURLE_OK && t->following && !t->stopped) {
        follow(t);
        return;
    }
    if (must_repeat(t)) {
        repeat(t);
        return;
    }
    if (t->status == 401 || t->status == 403) {
        forget_credentials(t);
    }
    http_result_classify(t);
    if (t->lookup_host != NULL && t->result != HTTP_DONE && t->sent_ns == 0) {
        resolver_suspect(t->client->resolver, t->lookup_host);
    }
    end(t);
}

static void call_done(struct http_transfer *t)
{
    char location[URL_REDACTED_MAX];
    (void)http_result_show_location(t, location, sizeof(location));
    struct http_response response = {
        .result = t->result,
        .status = t->status,
        .error = t->result == HTTP_DONE ? ""
                 : t->error != NULL     ? t->error->msg
                                        : "out of memory",
        .content_type = t->content_type,
        .location = location,
        .retry_after_ms = t->retry_after_ms,
        .body = &t->body,
        .start_ns = t->start_ns,
        .sent_ns = t->sent_ns,
        .end_ns = t->end_ns,
        .connection_reused = t->reused,
        .stream_ended = t->code == CURLE_HTTP2_STREAM && !t->stopped,
        .early = t->early,
    };
    metric_inc(t->client->requests[t->result]);
    t->request.on_done(t->request.arg, &response);
}

void http_client_run_ended(struct http_client *c)
{
    unsigned round = ++c->round;
    c->driving = true;
    /* Transfers are ended one by one, because a callback may start and cancel others. A transfer
     * that it starts and that fails at once waits for the next turn of the loop; otherwise a caller
     * that retries for ever would block the loop. */
    while (!TAILQ_EMPTY(&c->ended) && TAILQ_FIRST(&c->ended)->round != round) {
        struct http_transfer *t = TAILQ_FIRST(&c->ended);
        http_list_move(t, NULL);
        call_done(t);
        http_transfer_free(t);
    }
    c->driving = false;
    if (!TAILQ_EMPTY(&c->ended)) {
        loop_timer_after(c->ended_timer, 0);
    }
}

static void client_on_ended_timer(void *arg)
{
    http_client_run_ended(arg);
}

/* ---- the client ------------------------------------------------------------------------------ */

/* Returns the cell of a metric whose only label is the client. */
static struct metric_cell *client_cell(struct http_client *c, struct metrics *m,
                                       enum metric_type type, const char *name, const char *help)
{
    return metric_cell_of(metrics_family(m, type, name, help, "client", NULL), c->name);
}

static void register_metrics(struct http_client *c, struct metrics *m)
{
    struct metric *requests =
        metrics_family(m, METRIC_COUNTER, "profpull_http_requests_total",
                       "HTTP requests that ended, by result.", "client", "result");
    for (enum http_result i = 0; i < HTTP_RESULTS; i++) {
        c->requests[i] = metric_cell(requests, (const char *const[]){c->name, http_result_name(i)});
    }
    c->in_flight_gauge =
        client_cell(c, m, METRIC_GAUGE, "profpull_http_in_flight", "HTTP requests in flight.");
    c->body_bytes_gauge = client_cell(c, m, METRIC_GAUGE, "profpull_http_body_bytes",
                                      "Memory of the bodies of responses that are being read.");
    struct metric *connections =
        metrics_family(m, METRIC_COUNTER, "profpull_http_connections_total",
                       "Connections made and requests on kept connections.", "client", "kind");
    c->connections_new = metric_cell(connections, (const char *const[]){c->name, "new"});
    c->connections_reused = metric_cell(connections, (const char *const[]){c->name, "reused"});
    c->overdue = client_cell(c, m, METRIC_COUNTER, "profpull_http_overdue_total",
                             "Requests that were ended more than a second past their deadline.");
    c->slow_calls = client_cell(c, m, METRIC_COUNTER, "profpull_http_slow_calls_total",
                                "Calls of libcurl that held the loop for more than 250 ms.");
    c->cut_calls =
        client_cell(c, m, METRIC_COUNTER, "profpull_http_cut_calls_total",
                    "Calls of libcurl that were ended by cutting the connection that they read.");
    stray_register(&c->strays, m, c->name);
    c->rebuilds = client_cell(c, m, METRIC_COUNTER, "profpull_http_rebuilds_total",
                              "Multi handles rebuilt after a libcurl error.");
    c->file_failures = client_cell(c, m, METRIC_COUNTER, "profpull_http_file_failures_total",
                                   "Files with credentials or certificates that were read again "
                                   "and rejected; the old content stays in use.");
}

/* Makes the parts of the client besides its shards. Returns false if one of them could not be
 * made. */
static bool make_parts(struct http_client *c, const struct http_client_options *options,
                       struct err *err)
{
    c->ended_timer = loop_timer_new(c->loop, client_on_ended_timer, c);
    c->watchdog = loop_timer_new(c->loop, http_watchdog_on_timer, c);
    c->files = http_files_new(c->log, c->file_failures, options->contents);
    c->tokens = c->files != NULL ? http_tokens_new(c, c->files, client_on_token) : NULL;
    c->resolver = resolver_new(&(struct resolver_options){.loop = c->loop,
                                                          .metrics = options->metrics,
                                                          .client = c->name,
                                                          .lookup = options->lookup,
                                                          .resume = client_on_addresses});
    c->offenders = offenders_new();
    c->direct = options->only_libcurl ? NULL : direct_new(c);
    bool ok = c->ended_timer != NULL && c->watchdog != NULL && c->tokens != NULL &&
              c->resolver != NULL && c->offenders != NULL &&
              (c->direct != NULL || options->only_libcurl);
    if (ok && options->guarded) {
        c->guard = guard_new(err);
        ok = c->guard != NULL;
    }
    return ok;
}

struct http_client *http_client_new(const struct http_client_options *options, struct err *err)
{
    unsigned used = options->shards > 0 ? options->shards : 1;
    unsigned n = options->max_shards > used ? options->max_shards : used;
    unsigned idle =
        options->max_idle_connections > 0 ? options->max_idle_connections : IDLE_CONNECTIONS;
    if (n > SHARDS_MAX) {
        n = SHARDS_MAX;
    }
    struct http_client *c = calloc(1, sizeof(*c) + (n + 1) * sizeof(c->shards[0]));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        err_set(err, ERR_SYSTEM, "cannot initialise libcurl for an HTTP client");
        free(c);
        return NULL;
    }
    c->loop = options->loop;
    c->log = options->log;
    c->name = options->name != NULL ? options->name : "";
    c->n_shards = n + 1;
    c->n_used = used < n ? used : n;
    c->max_idle = idle;
    c->max_connections = options->max_connections;
    c->bodies_max_bytes = options->bodies_max_bytes;
    TAILQ_INIT(&c->all);
    TAILQ_INIT(&c->ended);
    register_metrics(c, options->metrics);
    bool ok = make_parts(c, options, err);
    for (unsigned i = 0; ok && i < c->n_shards; i++) {
        ok = http_shard_init(&c->shards[i], c);
    }
    if (!ok) {
        err_set(err, ERR_MEMORY, "out of memory for an HTTP client");
        return http_client_free(c);
    }
    return c;
}

void http_client_expect(struct http_client *c, size_t connections)
{
    while (c->n_used <= (c->n_shards - 1) / 2 &&
           connections > (size_t)c->n_used * HTTP_SHARD_CONNECTIONS) {
        c->n_used *= 2;
    }
}

static void abort_list(struct http_list *list)
{
    while (!TAILQ_EMPTY(list)) {
        struct http_transfer *t = TAILQ_FIRST(list);
        http_shard_remove(t);
        http_transfer_fail(t, HTTP_ERR_ABORTED, SHUT_DOWN);
    }
}

struct http_client *http_client_free(struct http_client *c)
{
    if (c == NULL) {
        return NULL;
    }
    c->closing = true;
    if (c->tokens != NULL) {
        http_tokens_abort(c->tokens, SHUT_DOWN);
    }
    if (c->resolver != NULL) {
        resolver_abort(c->resolver, SHUT_DOWN);
    }
    if (c->direct != NULL) {
        direct_abort(c->direct, SHUT_DOWN);
    }
    for (unsigned i = 0; i < c->n_shards; i++) {
        abort_list(&c->shards[i].running);
        abort_list(&c->shards[i].pending);
    }
    http_client_run_ended(c);
    for (unsigned i = 0; i < c->n_shards; i++) {
        http_shard_done(&c->shards[i]);
    }
    while (c->n_idle > 0) {
        curl_easy_cleanup(easy_pop(c));
    }
    direct_free(c->direct);
    loop_timer_free(c->ended_timer);
    loop_timer_free(c->watchdog);
    http_tokens_free(c->tokens);
    resolver_free(c->resolver);
    offenders_free(c->offenders);
    guard_free(c->guard);
    http_files_free(c->files);
    curl_global_cleanup();
    free(c);
    return NULL;
}

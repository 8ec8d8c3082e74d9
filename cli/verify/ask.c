/* Reads the profile back: asks the server, or searches the files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/file_walk.h"
#include "cli/verify/private.h"

/* The time range of queries begins this long before the profile and ends this long after it,
 * because clocks differ. */
#define WINDOW_NS (INT64_C(60) * NS_PER_S)
/* The longest delay between two queries. */
#define RETRY_MAX_MS 2000
#define QUERY_TIMEOUT_MS INT64_C(10000)
#define FILE_MAX ((size_t)1024 * 1024)

static void report_found(struct probe *probe)
{
    verify_finish(probe, true, "", "accepted, and found after %.1f s",
                  (double)(clock_mono_ms() - probe->sent_ms) / (double)MS_PER_S);
}

static void retry_later(struct probe *probe)
{
    if (probe->done) {
        return;
    }
    loop_timer_after(probe->retry_timer, probe->wait_ms);
    probe->wait_ms = probe->wait_ms * 3 / 2 < RETRY_MAX_MS ? probe->wait_ms * 3 / 2 : RETRY_MAX_MS;
}

/* ---- a server -------------------------------------------------------------------------------- */

static bool send_query(struct probe *probe);

static void no_memory(struct probe *probe)
{
    verify_finish(probe, false, "", "out of memory");
}

/* Asks once whether the tenant is empty; the answer of the server lags by minutes. */
static void ask_whether_empty(struct probe *probe)
{
    probe->asked_empty = true;
    probe->asks_empty = true;
    buf_clear(&probe->url);
    buf_clear(&probe->body);
    if (!readback_empty_request(probe->how, probe->to.endpoint.url, &probe->url, &probe->body) ||
        !send_query(probe)) {
        no_memory(probe);
    }
}

static void not_yet(struct probe *probe, const struct http_response *r)
{
    probe->last[0] = '\0';
    if (r->status == 429 || r->status >= 500) {
        snprintf(probe->last, sizeof(probe->last), "HTTP %ld", r->status);
    }
    if (r->status == 200 && probe->how->ask_empty != NULL && !probe->asked_empty) {
        ask_whether_empty(probe);
    } else {
        retry_later(probe);
    }
}

static void on_emptiness(struct probe *probe, const struct http_response *r)
{
    probe->asks_empty = false;
    if (r->result == HTTP_DONE) {
        struct sv body = {.p = r->body->data, .n = r->body->len};
        probe->empty = readback_says_empty(probe->how, r->status, body);
    }
    retry_later(probe);
}

static void verify_on_response(void *arg, const struct http_response *r)
{
    struct probe *probe = arg;
    struct err err = ERR_INIT;
    if (probe->done) {
        return;
    }
    if (probe->asks_empty) {
        on_emptiness(probe, r);
        return;
    }
    if (r->result != HTTP_DONE) {
        snprintf(probe->last, sizeof(probe->last), "%s", r->error);
        retry_later(probe);
        return;
    }
    struct sv body = {.p = r->body->data, .n = r->body->len};
    switch (readback_check(probe->how, r->status, body, &err)) {
    case READBACK_FOUND:
        report_found(probe);
        break;
    case READBACK_NOT_YET:
        not_yet(probe, r);
        break;
    case READBACK_IMPOSSIBLE:
    default:
        verify_finish(probe, true, "", "accepted; not read back: %s", err.msg);
        break;
    }
}

static size_t fill_headers(const struct config_endpoint *e, bool own, bool post,
                           struct http_header *headers)
{
    size_t n = 0;
    if (post) {
        headers[n++] = (struct http_header){.name = "Content-Type", .value = "application/json"};
    }
    if (own && e->tenant_id != NULL && e->tenant_id[0] != '\0') {
        headers[n++] = (struct http_header){.name = "X-Scope-OrgID", .value = e->tenant_id};
    }
    for (size_t i = 0; own && i < e->headers.n; i++) {
        headers[n++] =
            (struct http_header){.name = e->headers.at[i].name, .value = e->headers.at[i].value};
    }
    return n;
}

/* Sends the query in probe->url and probe->body. */
static bool send_query(struct probe *probe)
{
    /* The DeepFlow server is not the agent, and must not get the agent's credentials. */
    static const struct http_settings plain = {.enable_http2 = true};
    const struct config_endpoint *e = &probe->to.endpoint;
    bool own = !probe->how->elsewhere;
    bool post = probe->body.len > 0;
    struct http_header *headers = calloc(2 + e->headers.n, sizeof(*headers));
    if (headers == NULL) {
        return false;
    }
    struct http_part part = {.data = probe->body.data, .len = probe->body.len};
    struct http_request request = {
        .method = post ? "POST" : "GET",
        .url = probe->url.data,
        .settings = own ? &e->http : &plain,
        .headers = headers,
        .n_headers = fill_headers(e, own, post, headers),
        .body = &part,
        .n_body = post ? 1 : 0,
        .timeout_ms = QUERY_TIMEOUT_MS,
        .max_body = READBACK_BODY_MAX,
        .on_done = verify_on_response,
        .arg = probe,
    };
    bool ok = http_start(probe->verify->http, &request) != NULL;
    free(headers);
    return ok;
}

static void query_server(struct probe *probe)
{
    struct verify *v = probe->verify;
    struct readback_query q = {
        .base_url = probe->how->elsewhere ? v->options->deepflow_querier : probe->to.endpoint.url,
        .service = probe->service,
        .id = v->id,
        .from_ns = v->time_ns - WINDOW_NS,
        .until_ns = v->time_ns + WINDOW_NS,
    };
    if (q.base_url == NULL) {
        verify_finish(probe, true,
                      "a DeepFlow agent accepts everything: --deepflow-querier "
                      "http://SERVER:20416 asks the server",
                      "accepted; not read back");
        return;
    }
    buf_clear(&probe->url);
    buf_clear(&probe->body);
    if (!readback_request(probe->how, &q, &probe->url, &probe->body) || !send_query(probe)) {
        no_memory(probe);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_same(const struct file_found *f, const struct verify *v)
{
    struct buf data;
    int64_t mtime_ns;
    buf_init(&data, FILE_MAX);
    bool same = file_walk_read(f, &data, &mtime_ns, NULL) && data.len == v->size &&
                memcmp(data.data, v->data, v->size) == 0;
    buf_done(&data);
    return same;
}

static void verify_search(struct work *work)
{
    struct probe *probe = (struct probe *)(void *)work; /* its first member */
    struct buf directory;
    buf_init(&directory, (size_t)64 * 1024);
    if (probe->how->directory(probe->to.endpoint.url, sv_from(probe->service), SV(READBACK_TYPE),
                              &directory)) {
        char *paths[] = {directory.data};
        struct file_walk *w = file_walk_new(paths, 1);
        struct file_found f;
        while (w != NULL && !probe->found && file_walk_next(w, &f, NULL) == WALK_FILE) {
            probe->found = is_same(&f, probe->verify);
        }
        file_walk_free(w);
    }
    buf_done(&directory);
}

static void verify_on_searched(struct work *work)
{
    struct probe *probe = (struct probe *)(void *)work;
    probe->verify->searches--;
    if (probe->found) {
        report_found(probe);
    } else {
        retry_later(probe);
    }
    verify_print(probe->verify);
}

static void search_files(struct probe *probe)
{
    struct verify *v = probe->verify;
    probe->search =
        (struct work){.home = v->loop, .run = verify_search, .done = verify_on_searched};
    v->searches++;
    worker_submit(v->workers, &probe->search);
}

void verify_ask(void *arg)
{
    struct probe *probe = arg;
    if (probe->how == NULL) {
        verify_finish(probe, true, "", "accepted; not read back");
    } else if (probe->how->directory != NULL) {
        search_files(probe);
    } else {
        query_server(probe);
    }
}

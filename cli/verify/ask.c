/* Is the profile there? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/file_walk.h"
#include "cli/verify/private.h"

/* What is asked for reaches so far before and behind the profile: clocks differ. */
#define WINDOW_NS (INT64_C(60) * NS_PER_S)
/* Between two questions at most. */
#define ASK_MOST_MS 2000
#define ASK_TIMEOUT_MS INT64_C(10000)
#define FILE_MAX ((size_t)1024 * 1024)

static void finish_found(struct trial *t)
{
    verify_finish(t, true, "", "accepted, and found after %.1f s",
                  (double)(clock_mono_ms() - t->sent_ms) / (double)MS_PER_S);
}

static void ask_again(struct trial *t)
{
    if (t->done) {
        return;
    }
    loop_timer_after(t->again, t->wait_ms);
    t->wait_ms = t->wait_ms * 3 / 2 < ASK_MOST_MS ? t->wait_ms * 3 / 2 : ASK_MOST_MS;
}

/* ---- a server -------------------------------------------------------------------------------- */

static void judge(struct trial *t, const struct http_response *r)
{
    struct err err = ERR_INIT;
    struct sv body = {.p = r->body->data, .n = r->body->len};
    switch (readback_judge(t->how, r->status, body, &err)) {
    case READBACK_FOUND:
        finish_found(t);
        break;
    case READBACK_NOT_YET:
        t->last[0] = '\0';
        if (r->status == 429 || r->status >= 500) {
            snprintf(t->last, sizeof(t->last), "HTTP %ld", r->status);
        }
        ask_again(t);
        break;
    case READBACK_IMPOSSIBLE:
    default:
        verify_finish(t, true, "", "accepted; not read back: %s", err.msg);
        break;
    }
}

static void on_answer(void *arg, const struct http_response *r)
{
    struct trial *t = arg;
    t->transfer = NULL;
    if (t->done) {
        return;
    }
    if (r->result == HTTP_DONE) {
        judge(t, r);
    } else {
        snprintf(t->last, sizeof(t->last), "%s", r->error);
        ask_again(t);
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

/* The question lies in t->url and t->body. */
static bool start_question(struct trial *t)
{
    /* The DeepFlow server is another one than the agent: it is told no secrets of the agent's. */
    static const struct http_settings plain = {.enable_http2 = true};
    const struct config_endpoint *e = &t->to.endpoint;
    bool own = !t->how->elsewhere;
    bool post = t->body.len > 0;
    struct http_header *headers = calloc(2 + e->headers.n, sizeof(*headers));
    if (headers == NULL) {
        return false;
    }
    struct http_part part = {.data = t->body.data, .len = t->body.len};
    struct http_request request = {
        .method = post ? "POST" : "GET",
        .url = t->url.data,
        .settings = own ? &e->http : &plain,
        .headers = headers,
        .n_headers = fill_headers(e, own, post, headers),
        .body = &part,
        .n_body = post ? 1 : 0,
        .timeout_ms = ASK_TIMEOUT_MS,
        .max_body = READBACK_BODY_MAX,
        .on_done = on_answer,
        .arg = t,
    };
    t->transfer = http_start(t->verify->http, &request);
    free(headers);
    return t->transfer != NULL;
}

static void ask_server(struct trial *t)
{
    struct verify *v = t->verify;
    struct readback_query q = {
        .base_url = t->how->elsewhere ? v->options->deepflow_querier : t->to.endpoint.url,
        .service = t->service,
        .id = v->id,
        .from_ns = v->time_ns - WINDOW_NS,
        .until_ns = v->time_ns + WINDOW_NS,
    };
    if (q.base_url == NULL) {
        verify_finish(t, true,
                      "a DeepFlow agent says so to everything: --deepflow-querier "
                      "http://SERVER:20416 asks the server",
                      "accepted; not read back");
        return;
    }
    buf_clear(&t->url);
    buf_clear(&t->body);
    if (!readback_request(t->how, &q, &t->url, &t->body) || !start_question(t)) {
        verify_finish(t, false, "", "out of memory");
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A look into the directory of a file endpoint. */
struct look {
    struct work work;
    struct trial *trial;
    bool found;
};

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

static void run_look(struct work *work)
{
    struct look *l = (struct look *)(void *)work; /* its first member */
    struct buf directory;
    const struct trial *t = l->trial;
    buf_init(&directory, (size_t)64 * 1024);
    if (t->how->directory(t->to.endpoint.url, sv_from(t->service), SV(READBACK_TYPE), &directory)) {
        char *paths[] = {directory.data};
        struct file_walk *w = file_walk_new(paths, 1);
        struct file_found found;
        while (w != NULL && !l->found && file_walk_next(w, &found, NULL) == WALK_FILE) {
            l->found = is_same(&found, t->verify);
        }
        file_walk_free(w);
    }
    buf_done(&directory);
}

static void on_look(struct work *work)
{
    struct look *l = (struct look *)(void *)work;
    struct trial *t = l->trial;
    t->verify->looks--;
    if (l->found) {
        finish_found(t);
    } else {
        ask_again(t);
    }
    free(l);
    verify_print(t->verify);
}

static void look_for_file(struct trial *t)
{
    struct look *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        verify_finish(t, false, "", "out of memory");
        return;
    }
    l->work = (struct work){.home = t->verify->loop, .run = run_look, .done = on_look};
    l->trial = t;
    t->verify->looks++;
    worker_submit(t->verify->workers, &l->work);
}

void verify_ask(struct trial *t)
{
    if (t->how == NULL) {
        verify_finish(t, true, "", "accepted; not read back");
    } else if (t->how->directory != NULL) {
        look_for_file(t);
    } else {
        ask_server(t);
    }
}

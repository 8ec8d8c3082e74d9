#include "cli/query/remote.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "cli/one_endpoint.h"
#include "http/http.h"
#include "http/url.h"
#include "server/exchange.h"

#define URL_MAX ((size_t)64 * 1024)
/* Bytes of a response that an error quotes. */
#define QUOTE_MAX 300
/* Bytes of the header of a response that is not complete. */
#define PARTIAL_MAX 1024
/* Follows the error of a server that cannot be reached. */
#define ADVICE "; does the server run? --url or PROFPULL_URL names another"
#define STATUS_OK 200
#define STATUS_NO_CONTENT 204
#define STATUS_NOT_FOUND 404

struct remote {
    struct one_endpoint to;
    struct loop *loop;
    struct http_client *http;
    int64_t timeout_ms;
    /* State of the request in flight. */
    const struct remote_request *request;
    struct buf *answer;
    struct err *err;
    bool ok;
    char partial[PARTIAL_MAX]; /* what the last response lacks that was not complete; "": none */
};

struct remote *remote_new(const struct config_endpoint_flags *flags, int64_t timeout_ms,
                          struct err *err)
{
    struct remote *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        err_memory(err);
        return NULL;
    }
    r->timeout_ms = timeout_ms;
    if (!one_endpoint_from_flags(&r->to, flags, err)) {
        free(r);
        return NULL;
    }
    r->loop = loop_new(err);
    struct http_client_options options = {.loop = r->loop, .name = "query"};
    if (r->loop == NULL || (r->http = http_client_new(&options, err)) == NULL) {
        return remote_free(r);
    }
    return r;
}

struct remote *remote_free(struct remote *r)
{
    if (r != NULL) {
        http_client_free(r->http);
        loop_free(r->loop);
        one_endpoint_done(&r->to);
        free(r);
    }
    return NULL;
}

const char *remote_url(const struct remote *r)
{
    return r->to.endpoint.url;
}

/* Appends the error text of a response: Connect's message, profefe's error, DeepFlow's description,
 * or else the beginning of the body. */
static void quote(struct sv body, struct buf *out)
{
    static const char *const members[] = {"message", "error", "DESCRIPTION"};
    json_t *root = json_loadb(body.p, body.n, 0, NULL);
    const char *text = NULL;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && text == NULL; i++) {
        text = json_string_value(json_object_get(root, members[i]));
    }
    struct sv said = text != NULL ? sv_from(text) : sv_trim(body);
    said.n = said.n < QUOTE_MAX ? said.n : QUOTE_MAX;
    buf_puts(out, said.n > 0 ? ": " : "");
    json_escape(said, out);
    json_decref(root);
}

static bool refuse(struct remote *r, const char *url, const struct http_response *response)
{
    char shown[URL_REDACTED_MAX];
    struct buf text;
    buf_init(&text, (size_t)8 * 1024);
    url_redact(url, shown, sizeof(shown));
    quote((struct sv){response->body->data, response->body->len}, &text);
    bool post = r->request->content_type != NULL;
    (void)err_set(r->err, ERR_REFUSED, "%s %s: HTTP %ld%s", post ? "POST" : "GET", shown,
                  response->status, buf_ok(&text) ? text.data : "");
    buf_done(&text);
    return false;
}

struct call {
    struct remote *remote;
    const char *url;
};

static void remote_on_done(void *arg, const struct http_response *response)
{
    const struct call *call = arg;
    struct remote *r = call->remote;
    bool nothing = r->request->nothing_is_404 &&
                   (response->status == STATUS_NOT_FOUND || response->status == STATUS_NO_CONTENT);
    if (response->result != HTTP_DONE) {
        bool away = response->result == HTTP_ERR_CONNECT || response->result == HTTP_ERR_RESOLVE;
        r->ok = err_set(r->err, ERR_NETWORK, "%s%s", response->error, away ? ADVICE : "");
    } else if (nothing) {
        r->ok = true;
    } else if (response->status != STATUS_OK && r->request->ret_status == NULL) {
        r->ok = refuse(r, call->url, response);
    } else {
        if (r->request->ret_status != NULL) {
            *r->request->ret_status = response->status;
        }
        *r->answer = *response->body;
        buf_init(response->body, 0);
        r->ok = true;
    }
    loop_stop(r->loop);
}

/* Reports a response that is not complete, once for each reason: `--watch` repeats requests. */
static void remote_on_field(void *arg, struct sv name, struct sv value)
{
    struct remote *r = ((const struct call *)arg)->remote;
    char text[PARTIAL_MAX];
    if (!sv_eq_nocase(name, EXCHANGE_PARTIAL)) {
        return;
    }
    (void)snprintf(text, sizeof(text), "%.*s", SV_ARG(value));
    for (char *c = text; *c != '\0'; c++) {
        *c = *c >= ' ' && *c <= '~' ? *c : ' ';
    }
    if (strcmp(text, r->partial) != 0) {
        memcpy(r->partial, text, sizeof(text));
        fprintf(stderr,
                "profpull: the answer is not complete; number of parts that cannot be read: %s\n",
                text);
    }
}

const char *remote_partial(const struct remote *r)
{
    return r != NULL && r->partial[0] != '\0' ? r->partial : NULL;
}

static size_t fill_headers(const struct remote *r,
                           struct http_header headers[2 + REMOTE_HEADERS_MAX])
{
    size_t n = 0;
    const char *tenant = r->to.endpoint.tenant_id;
    if (r->request->content_type != NULL) {
        headers[n++] = (struct http_header){"Content-Type", r->request->content_type};
    }
    if (tenant != NULL && tenant[0] != '\0') {
        headers[n++] = (struct http_header){"X-Scope-OrgID", tenant};
    }
    for (size_t i = 0; i < r->request->n_headers && i < REMOTE_HEADERS_MAX; i++) {
        headers[n++] = r->request->headers[i];
    }
    return n;
}

static bool run_request(struct remote *r, const char *url)
{
    const struct remote_request *q = r->request;
    bool post = q->content_type != NULL;
    struct call call = {.remote = r, .url = url};
    struct http_header headers[2 + REMOTE_HEADERS_MAX];
    struct http_part part = {.data = q->body.p, .len = q->body.n};
    struct http_request request = {
        .method = post ? "POST" : "GET",
        .url = url,
        .settings = &r->to.endpoint.http,
        .headers = headers,
        .n_headers = fill_headers(r, headers),
        .body = &part,
        .n_body = post ? 1 : 0,
        .timeout_ms = r->timeout_ms,
        .max_body = REMOTE_BODY_MAX,
        .accept_gzip = true,
        .on_field = remote_on_field,
        .on_done = remote_on_done,
        .arg = &call,
    };
    if (http_start(r->http, &request) == NULL) {
        return err_memory(r->err);
    }
    loop_run(r->loop);
    return r->ok;
}

bool remote_fetch(struct remote *r, const struct remote_request *q, struct buf *ret,
                  struct err *err)
{
    struct buf url;
    buf_init(&url, URL_MAX);
    buf_init(ret, REMOTE_BODY_MAX);
    r->request = q;
    r->answer = ret;
    r->err = err;
    r->ok = false;
    bool ok = url_join(sv_from(r->to.endpoint.url), sv_from(q->path), q->query, &url);
    ok = ok ? run_request(r, url.data) : err_memory(err);
    buf_done(&url);
    if (!ok) {
        buf_done(ret);
    }
    return ok;
}

json_t *remote_fetch_json(struct remote *r, const struct remote_request *q, struct err *err)
{
    struct buf body;
    json_error_t problem;
    json_t *root = NULL;
    if (!remote_fetch(r, q, &body, err)) {
        return NULL;
    }
    if (body.len > 0) {
        root = json_loadb(body.data, body.len, 0, &problem);
        if (root == NULL) {
            err_set(err, ERR_REFUSED, "%s%s: expected JSON, got something else: %s",
                    r->to.endpoint.url, q->path, problem.text);
        }
    }
    buf_done(&body);
    return root;
}

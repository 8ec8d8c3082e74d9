#include "cli/cluster/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/url.h"
#include "server/exchange.h"
#include "server/routes.h"

#define TEXT_MAX ((size_t)64 * 1024)
#define CONNECTIONS_MAX 64
#define REQUEST_MS (10 * MS_PER_S)
#define ANSWER_MS (60 * MS_PER_S)
#define BODIES_MAX (UINT64_C(64) * 1024 * 1024)
#define STATUS_BAD_GATEWAY 502
#define STATUS_MISDIRECTED 421

struct relay {
    struct server *server;
    struct metrics *metrics;
    struct agents *agents;
    const json_t *pod;
};

/* Returns true if the browser has asked for this machine. A page of another site whose name leads
 * here must not read what the person may read. */
static bool is_local(const struct request *r)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    struct sv host = request_header(r, "Host");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = strlen(names[i]);
        if (host.n >= n && memcmp(host.p, names[i], n) == 0 && (host.n == n || host.p[n] == ':')) {
            return true;
        }
    }
    return false;
}

static void encode_path(struct sv path, struct buf *out)
{
    for (size_t i = 0; i < path.n; i++) {
        if (path.p[i] == '/' || url_is_unreserved(path.p[i])) {
            buf_putc(out, path.p[i]);
        } else {
            buf_printf(out, "%%%02X", (unsigned char)path.p[i]);
        }
    }
}

/* Fetches the page from the pod. One thread runs it, so the client has one user at a time. */
static void relay_work(struct exchange *x)
{
    struct relay *relay = x->options->owner;
    struct cluster_answer a = {.status = 0};
    struct err err = ERR_INIT;
    struct buf path;
    if (!is_local(x->request)) {
        exchange_text(x, STATUS_MISDIRECTED, "text/plain", SV("expected the host 127.0.0.1\n"));
        return;
    }
    buf_init(&path, TEXT_MAX);
    encode_path(x->request->path, &path);
    bool ok = buf_ok(&path) ? agents_get(relay->agents->cluster, relay->pod, path.data,
                                         x->request->query, &a, &err)
                            : err_memory(&err);
    buf_done(&path);
    if (!ok) {
        err_append(&err, "\n");
        exchange_text(x, STATUS_BAD_GATEWAY, "text/plain", sv_from(err.msg));
        return;
    }
    x->status = (int)a.status;
    if (a.content_type[0] != '\0') {
        buf_printf(&x->headers, "Content-Type: %s\r\n", a.content_type);
    }
    buf_append(&x->reply, a.body.data, a.body.len);
    cluster_answer_done(&a);
}

static const struct route routes[] = {
    {"/", .is_prefix = true, .set = ROUTE_ADMIN, .work = relay_work},
    {.path = NULL},
};
static const struct route *const tables[] = {routes, NULL};

struct relay *relay_start(struct agents *agents, const json_t *pod, struct err *err)
{
    struct relay *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        err_memory(err);
        return NULL;
    }
    r->agents = agents;
    r->pod = pod;
    r->metrics = metrics_new();
    struct server_options options = {
        .name = "admin",
        .listen = "127.0.0.1:0",
        .sets = ROUTE_ADMIN,
        .max_connections = CONNECTIONS_MAX,
        .max_connections_per_address = CONNECTIONS_MAX,
        .request_timeout_ms = REQUEST_MS,
        .answer_timeout_ms = ANSWER_MS,
        .idle_timeout_ms = ANSWER_MS,
        .bodies_max_bytes = BODIES_MAX,
        .query = {.threads = 1,
                  .waiting_max = CONNECTIONS_MAX,
                  .timeout_ms = ANSWER_MS,
                  .bytes_max = CLUSTER_BODY_MAX,
                  .body_max = TEXT_MAX},
        .routes = tables,
        .metrics = r->metrics,
        .owner = r,
    };
    r->server = r->metrics == NULL ? NULL : server_start(&options, err);
    if (r->server == NULL) {
        return relay_stop(r);
    }
    return r;
}

unsigned relay_port(const struct relay *r)
{
    return server_port(r->server);
}

struct relay *relay_stop(struct relay *r)
{
    if (r != NULL) {
        server_stop(r->server);
        metrics_free(r->metrics);
        free(r);
    }
    return NULL;
}

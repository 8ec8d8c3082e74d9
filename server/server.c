#include "server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "server/targets_json.h"

/* How soon a full server looks whether somebody has left. */
#define CROWD_CHECK_MS 100
/* A metrics page of 64 MiB would be a defect, not a page. */
#define METRICS_PAGE_MAX (64 * 1024 * 1024)

struct server {
    struct server_options options;
    char *version;
    struct loop *loop;
    struct loop_thread *thread;
    struct evhttp *http;
    struct evconnlistener *listener;
    struct loop_timer *crowd_timer;
    int own_events; /* that the loop waits for without any connection */
    uint16_t port;
    struct metric_cell *requests;
};

static void reply_text(struct evhttp_request *req, int code, const char *type, const char *text,
                       size_t len)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    struct evbuffer *out = evbuffer_new();
    if (out == NULL || evbuffer_add(out, text, len) != 0) {
        if (out != NULL) {
            evbuffer_free(out);
        }
        evhttp_send_error(req, HTTP_INTERNAL, NULL);
        return;
    }
    evhttp_add_header(headers, "Content-Type", type);
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_send_reply(req, code, NULL, out);
    evbuffer_free(out);
}

static void reply_plain(struct evhttp_request *req, int code, const char *text)
{
    reply_text(req, code, "text/plain; charset=utf-8", text, strlen(text));
}

static void handle_probe(struct evhttp_request *req, bool (*probe)(void *, struct err *), void *arg)
{
    struct err err = ERR_INIT;
    if (probe == NULL || probe(arg, &err)) {
        reply_plain(req, HTTP_OK, "ok\n");
        return;
    }
    char text[ERR_MSG_MAX + 2];
    snprintf(text, sizeof(text), "%s\n", err.msg);
    reply_plain(req, HTTP_SERVUNAVAIL, text);
}

static void on_healthy(struct evhttp_request *req, void *arg)
{
    struct server *s = arg;
    metric_inc(s->requests);
    handle_probe(req, s->options.healthy, s->options.arg);
}

static void on_ready(struct evhttp_request *req, void *arg)
{
    struct server *s = arg;
    metric_inc(s->requests);
    handle_probe(req, s->options.ready, s->options.arg);
}

static void on_metrics(struct evhttp_request *req, void *arg)
{
    struct server *s = arg;
    metric_inc(s->requests);
    struct buf page;
    buf_init(&page, METRICS_PAGE_MAX);
    if (metrics_render(s->options.metrics, &page) && buf_ok(&page)) {
        reply_text(req, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", page.data, page.len);
    } else {
        reply_plain(req, HTTP_INTERNAL, "out of memory while rendering the metrics\n");
    }
    buf_done(&page);
}

static void on_targets(struct evhttp_request *req, void *arg)
{
    struct server *s = arg;
    metric_inc(s->requests);
    targets_json_reply(req, s->options.scraper);
}

static void on_root(struct evhttp_request *req, void *arg)
{
    struct server *s = arg;
    metric_inc(s->requests);
    static const char page[] =
        "<!doctype html><title>profpull</title><h1>profpull %s</h1><ul>"
        "<li><a href=\"/metrics\">/metrics</a> counters, gauges and histograms"
        "<li><a href=\"/api/v1/targets\">/api/v1/targets</a> every scrape and its state; "
        "<a href=\"/api/v1/targets?health=down\">?health=down</a> the failing ones"
        "<li><a href=\"/-/healthy\">/-/healthy</a> whether the process works"
        "<li><a href=\"/-/ready\">/-/ready</a> whether discovery has been read</ul>\n";
    char text[sizeof(page) + 64];
    snprintf(text, sizeof(text), page, s->version);
    reply_text(req, HTTP_OK, "text/html; charset=utf-8", text, strlen(text));
}

static void on_other(struct evhttp_request *req, void *arg)
{
    struct server *s = arg;
    metric_inc(s->requests);
    reply_plain(req, HTTP_NOTFOUND, "not found\n");
}

/* ---- connections ------------------------------------------------------------------------------
 * evhttp 2.1 has no limit on connections and does not say when one ends. The loop knows how many
 * events it waits for, though, and each connection waits for one: while there are too many we do
 * not accept, and look again a little later. The kernel's backlog holds whoever comes meanwhile. */

static bool crowded(struct server *s)
{
    int events = event_base_get_num_events(loop_event_base(s->loop), EVENT_BASE_COUNT_ADDED);
    return events - s->own_events >= SERVER_CONNECTIONS_MAX;
}

static void look_again(void *arg)
{
    struct server *s = arg;
    if (!crowded(s)) {
        evconnlistener_enable(s->listener);
    }
    loop_timer_after(s->crowd_timer, CROWD_CHECK_MS);
}

/* accept() failed, for want of descriptors most likely. The listener stays readable: to try again
 * at once would take a core, so that look_again() does. (The argument is evhttp's.) */
static void accept_failed(struct evconnlistener *listener, void *arg)
{
    (void)arg;
    evconnlistener_disable(listener);
}

static struct bufferevent *connection_new(struct event_base *base, void *arg)
{
    struct server *s = arg;
    /* The one that is being made does not wait for anything yet. */
    if (crowded(s)) {
        evconnlistener_disable(s->listener);
    }
    return bufferevent_socket_new(base, -1, 0);
}

/* ---- start and stop -------------------------------------------------------------------------- */

/* Fills in the address; only literal addresses, for a name would need a lookup. */
static bool parse_listen(const char *listen, struct sockaddr_storage *ret, socklen_t *ret_len,
                         struct err *err)
{
    /* Port 0 asks the kernel for a free one; split_host_port() refuses it, rightly, elsewhere. */
    struct sv text = sv_from(listen);
    bool any_port = sv_ends_with(text, SV(":0"));
    if (any_port) {
        text.n -= 2;
    }
    struct sv host;
    uint16_t port;
    if (!split_host_port(text, &host, &port, err)) {
        return false;
    }
    if (port == 0 && !any_port) {
        return err_set(err, ERR_INPUT, "expected host:port");
    }
    char name[INET6_ADDRSTRLEN];
    if (host.n == 0) {
        host = SV("0.0.0.0");
    } else if (sv_eq(host, SV("localhost"))) {
        host = SV("127.0.0.1");
    }
    if (host.n >= sizeof(name)) {
        return err_set(err, ERR_INPUT, "expected an IP address and a port");
    }
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    memset(ret, 0, sizeof(*ret));
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
    if (inet_pton(AF_INET, name, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        *ret_len = sizeof(*v4);
        return true;
    }
    if (inet_pton(AF_INET6, name, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        *ret_len = sizeof(*v6);
        return true;
    }
    return err_set(err, ERR_INPUT, "expected an IP address and a port");
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof(v6));
        return ntohs(v6.sin6_port);
    }
    struct sockaddr_in v4;
    memcpy(&v4, address, sizeof(v4));
    return ntohs(v4.sin_port);
}

static bool server_bind(struct server *s, struct err *err)
{
    struct sockaddr_storage address = {0};
    socklen_t len = 0;
    if (!parse_listen(s->options.listen, &address, &len, err)) {
        return false;
    }
    s->listener =
        evconnlistener_new_bind(loop_event_base(s->loop), NULL, NULL,
                                LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
                                SERVER_CONNECTIONS_MAX, (struct sockaddr *)&address, (int)len);
    if (s->listener == NULL) {
        return err_sys(err, "cannot listen");
    }
    len = sizeof(address);
    if (getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&address, &len) != 0) {
        return err_sys(err, "getsockname");
    }
    s->port = port_of(&address);
    /* From here on evhttp owns the listener. */
    struct evconnlistener *listener = s->listener;
    if (evhttp_bind_listener(s->http, listener) == NULL) {
        evconnlistener_free(listener);
        s->listener = NULL;
        return err_memory(err);
    }
    return true;
}

static bool server_setup(struct server *s, struct err *err)
{
    s->loop = loop_new(err);
    if (s->loop == NULL) {
        return false;
    }
    s->http = evhttp_new(loop_event_base(s->loop));
    if (s->http == NULL) {
        return err_memory(err);
    }
    evhttp_set_max_headers_size(s->http, SERVER_HEADERS_MAX);
    evhttp_set_max_body_size(s->http, SERVER_BODY_MAX);
    evhttp_set_timeout(s->http, SERVER_TIMEOUT_S);
    evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_bevcb(s->http, connection_new, s);
    evhttp_set_gencb(s->http, on_other, s);
    if (evhttp_set_cb(s->http, "/", on_root, s) != 0 ||
        evhttp_set_cb(s->http, "/metrics", on_metrics, s) != 0 ||
        evhttp_set_cb(s->http, "/-/healthy", on_healthy, s) != 0 ||
        evhttp_set_cb(s->http, "/-/ready", on_ready, s) != 0 ||
        evhttp_set_cb(s->http, "/api/v1/targets", on_targets, s) != 0) {
        return err_memory(err);
    }
    if (!server_bind(s, err)) {
        return false;
    }
    s->crowd_timer = loop_timer_new(s->loop, look_again, s);
    if (s->crowd_timer == NULL) {
        return err_memory(err);
    }
    loop_timer_after(s->crowd_timer, CROWD_CHECK_MS);
    evconnlistener_set_error_cb(s->listener, accept_failed);
    s->own_events = event_base_get_num_events(loop_event_base(s->loop), EVENT_BASE_COUNT_ADDED);
    s->thread = loop_thread_start(s->loop, "admin", err);
    return s->thread != NULL;
}

struct server *server_start(const struct server_options *options, struct err *err)
{
    struct server *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    s->options = *options;
    s->version = strdup(options->version);
    static const struct metric_desc requests = {
        .name = "profpull_admin_requests_total",
        .help = "Requests to the admin server.",
        .type = METRIC_COUNTER,
    };
    s->requests = metric_only(metrics_register(options->metrics, &requests));
    if (s->version == NULL || !server_setup(s, err)) {
        err_wrap(err, "admin server on %s", options->listen);
        return server_stop(s);
    }
    return s;
}

uint16_t server_port(const struct server *s)
{
    return s->port;
}

struct server *server_stop(struct server *s)
{
    if (s == NULL) {
        return NULL;
    }
    loop_thread_join(s->thread);
    if (s->http != NULL) {
        evhttp_free(s->http);
    }
    loop_timer_free(s->crowd_timer);
    loop_free(s->loop);
    free(s->version);
    free(s);
    return NULL;
}

#include "server/server.h"

#include <arpa/inet.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "server/routes.h"

/* How often a full server looks whether a connection has ended. */
#define CROWD_CHECK_MS 100

struct server {
    struct server_options options;
    struct loop *loop;
    struct loop_thread *thread;
    struct evhttp *http;
    struct evconnlistener *listener;
    struct loop_timer *crowd_timer;
    int own_events; /* events that the loop waits for without any connection */
    uint16_t port;
    struct metric_cell *requests;
};

static void on_request(struct evhttp_request *req, void *arg)
{
    struct server *s = arg;
    metric_inc(s->requests);
    routes_dispatch(req, &s->options);
}

/* ---- connections ------------------------------------------------------------------------------
 * evhttp 2.1 has no limit on connections and does not report when one ends. But the loop knows how
 * many events it waits for, and each connection waits for one: while there are too many we do not
 * accept, and look again a little later. The kernel's backlog holds new connections meanwhile. */

static bool crowded(struct server *s)
{
    int events = event_base_get_num_events(loop_event_base(s->loop), EVENT_BASE_COUNT_ADDED);
    return events - s->own_events >= SERVER_CONNECTIONS_MAX;
}

static void on_crowd_timer(void *arg)
{
    struct server *s = arg;
    if (!crowded(s)) {
        evconnlistener_enable(s->listener);
    }
    loop_timer_after(s->crowd_timer, CROWD_CHECK_MS);
}

/* accept() failed, most likely for lack of descriptors. The listener stays readable, and trying
 * again at once would take a core: on_crowd_timer() does it. (The argument is evhttp's.) */
static void on_accept_failed(struct evconnlistener *listener, void *arg)
{
    (void)arg;
    evconnlistener_disable(listener);
}

static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
    struct server *s = arg;
    /* The new connection is not waiting for an event yet. */
    if (crowded(s)) {
        evconnlistener_disable(s->listener);
    }
    return bufferevent_socket_new(base, -1, 0);
}

/* ---- start and stop -------------------------------------------------------------------------- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* In the byte order of the network. */
static in_port_t *port_of(union address *a)
{
    return a->any.sa_family == AF_INET6 ? &a->v6.sin6_port : &a->v4.sin_port;
}

/* Only literal addresses: a name would need a lookup. */
static bool parse_listen(const char *listen, union address *ret, int *ret_len, struct err *err)
{
    /* Port 0 asks the kernel for a free one; split_host_port() refuses it. */
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
    if (host.n == 0) {
        host = SV("0.0.0.0");
    } else if (sv_eq(host, SV("localhost"))) {
        host = SV("127.0.0.1");
    }
    char name[INET6_ADDRSTRLEN];
    int n = snprintf(name, sizeof(name), "%.*s", SV_ARG(host));
    *ret_len = sizeof(*ret);
    if (n >= (int)sizeof(name) || evutil_parse_sockaddr_port(name, &ret->any, ret_len) != 0) {
        return err_set(err, ERR_INPUT, "expected an IP address and a port");
    }
    *port_of(ret) = htons(port);
    return true;
}

static bool server_bind(struct server *s, struct err *err)
{
    union address address = {0};
    int bound_len = 0;
    if (!parse_listen(s->options.listen, &address, &bound_len, err)) {
        return false;
    }
    s->listener =
        evconnlistener_new_bind(loop_event_base(s->loop), NULL, NULL,
                                LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
                                SERVER_CONNECTIONS_MAX, &address.any, bound_len);
    if (s->listener == NULL) {
        return err_sys(err, "cannot listen");
    }
    socklen_t len = sizeof(address);
    if (getsockname(evconnlistener_get_fd(s->listener), &address.any, &len) != 0) {
        return err_sys(err, "getsockname");
    }
    s->port = ntohs(*port_of(&address));
    /* evhttp_bind_listener() takes over the listener. */
    struct evconnlistener *listener = s->listener;
    if (evhttp_bind_listener(s->http, listener) == NULL) {
        evconnlistener_free(listener);
        s->listener = NULL;
        return err_memory(err);
    }
    return true;
}

static ev_uint16_t allowed_methods(void)
{
    unsigned methods = EVHTTP_REQ_HEAD;
    for (size_t i = 0; route_at(i) != NULL; i++) {
        methods |= route_at(i)->method;
    }
    return (ev_uint16_t)methods;
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
    evhttp_set_allowed_methods(s->http, allowed_methods());
    evhttp_set_bevcb(s->http, on_connection, s);
    evhttp_set_gencb(s->http, on_request, s);
    if (!server_bind(s, err)) {
        return false;
    }
    s->crowd_timer = loop_timer_new(s->loop, on_crowd_timer, s);
    if (s->crowd_timer == NULL) {
        return err_memory(err);
    }
    loop_timer_after(s->crowd_timer, CROWD_CHECK_MS);
    evconnlistener_set_error_cb(s->listener, on_accept_failed);
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
    static const struct metric_desc requests = {
        .name = "profpull_admin_requests_total",
        .help = "Requests to the admin server.",
        .type = METRIC_COUNTER,
    };
    s->requests = metric_only(metrics_register(options->metrics, &requests));
    if (!server_setup(s, err)) {
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
    free(s);
    return NULL;
}

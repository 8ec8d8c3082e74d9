#include "server/server.h"

#include <arpa/inet.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/thread.h"
#include "server/access.h"
#include "server/connection.h"
#include "server/exchange_pool.h"
#include "server/passwords.h"
#include "server/places.h"
#include "server/routes.h"
#include "server/setup.h"
#include "server/tls.h"

/* Interval, in ms, at which the time limits of connections are checked and accept() is tried again.
 */
#define CHECK_MS 100
/* Connections that the kernel queues until the server accepts them. */
#define BACKLOG 1024
/* Limit of one header that the server adds. */
#define HEADER_MAX ((size_t)4096)

struct server {
    struct server_options first; /* options at the start, for the settings that never change */
    struct server_setup *setup;  /* a reference to the current setup; only the loop uses it */
    struct connection_options connections;
    struct loop *loop;
    struct loop_thread *thread;
    struct loop_task started; /* runs first on the thread */
    struct evconnlistener *listener;
    struct loop_timer *timer; /* runs while there is a connection, or after accept() has failed */
    struct places *places;
    uint16_t port;
    struct connection_bodies bodies;
    struct connection_streams streams;
    struct passwords *passwords; /* NULL without a web configuration file */
    struct exchange_pool *query; /* NULL if no set of routes needs it; `receive` likewise */
    struct exchange_pool *receive;
    struct exchange_pool *peers; /* NULL before the first request of a peer */
    struct metric_cell *requests;
    struct metric_cell *open;
    struct metric_cell *file_failures;
    struct metric_cell *ended[CONNECTION_ENDS];
    struct metric_cell *refused[CONNECTION_REFUSALS];
    struct metric_cell *streams_ended[STREAM_ENDS];
};

/* ---- connections ----------------------------------------------------------------------------- */

static void refuse_method(struct connection *c, const struct route_match *match)
{
    struct buf headers;
    buf_init(&headers, HEADER_MAX);
    for (enum request_method m = REQUEST_GET; m < REQUEST_OTHER; m++) {
        if ((match->methods >> m & 1) != 0) {
            buf_printf(&headers, "%s%s", headers.len == 0 ? "Allow: " : ", ",
                       request_method_name(m));
        }
    }
    buf_puts(&headers, "\r\n");
    reply_error(c, match->other->errors, STATUS_METHOD,
                (struct sv){.p = headers.data, .n = headers.len}, "method not allowed");
    buf_done(&headers);
}

static const struct server_work *work_of(const struct server *s, const struct route *route)
{
    return route->set == ROUTE_RECEIVE ? &s->setup->options.receive : &s->setup->options.query;
}

/* Returns the credentials that a route asks for. */
static const struct http_settings *access_of(const struct server *s, const struct route *route)
{
    const struct http_settings *own = NULL;
    if (route->is_open) {
        return NULL;
    }
    if (route->set != ROUTE_ADMIN) {
        own = work_of(s, route)->access;
    }
    return own != NULL && own->auth != HTTP_AUTH_NONE ? own : s->setup->options.access;
}

/* Answers 401. */
static void refuse_credentials(struct server *s, struct connection *c, const struct route *route,
                               const char *scheme)
{
    struct buf header;
    buf_init(&header, HEADER_MAX);
    buf_printf(&header, "WWW-Authenticate: %s realm=\"profpull\"\r\n", scheme);
    metric_inc(s->refused[REFUSED_AUTH]);
    reply_error(c, route->errors, STATUS_UNAUTHORIZED,
                (struct sv){.p = header.data, .n = header.len},
                "expected the credentials of this server");
    buf_done(&header);
}

/* Returns true if the client has the credentials of the configuration; otherwise answers the
 * request. */
static bool has_credentials(struct server *s, struct connection *c, const struct request *r,
                            const struct route *route)
{
    const struct http_settings *access = access_of(s, route);
    struct err err = ERR_INIT;
    enum access result = access_check(access, s->setup->files, r, &err);
    if (result == ACCESS_UNKNOWN) {
        log_error(s->setup->options.log,
                  "a client was refused: the credentials to compare with cannot be read",
                  LOG_STR("error", err.msg));
        metric_inc(s->refused[REFUSED_AUTH]);
        reply_error(c, route->errors, STATUS_UNAVAILABLE, SV(""),
                    "the server cannot read its credentials");
    } else if (result == ACCESS_DENIED) {
        refuse_credentials(s, c, route, access_scheme(access));
    }
    return result == ACCESS_GRANTED;
}

/* A request whose password is being checked. */
struct login {
    struct server *server;
    struct connection *connection;
    struct request *request;
    struct route_match match;
};

static void serve(struct server *s, struct connection *c, struct request *r,
                  const struct route_match *match);

static const struct route *route_of(const struct route_match *match)
{
    return match->route != NULL ? match->route : match->other;
}

static void server_on_password(void *arg, bool right)
{
    struct login *l = arg;
    if (!connection_resume(l->connection)) {
        free(l);
        return;
    }
    if (right) {
        serve(l->server, l->connection, l->request, &l->match);
    } else {
        refuse_credentials(l->server, l->connection, route_of(&l->match), "Basic");
    }
    free(l);
}

/* Holds the connection until the password has been checked. False if too many wait. */
static bool start_login(const struct login *login, const char *hash, struct sv password)
{
    struct login *l = malloc(sizeof(*l));
    if (l == NULL) {
        return false;
    }
    *l = *login;
    if (!passwords_check(l->server->passwords, hash, password, server_on_password, l)) {
        free(l);
        return false;
    }
    connection_hold(l->connection);
    return true;
}

static void server_on_refusal(void *arg, struct connection *c, const struct request *r,
                              enum connection_refusal why, int status);

/* Returns true if the client is a user of the web configuration file whose password is remembered.
 * Otherwise the request is answered now, or after the password has been checked. */
static bool is_user(const struct login *l)
{
    struct server *s = l->server;
    const char *hash = NULL;
    struct buf password;
    buf_init(&password, HEADER_MAX);
    enum web_user who = web_user(web_settings(s->setup->web), l->request, &hash, &password);
    struct sv given = {.p = password.data, .n = password.len};
    bool known =
        who == WEB_USER_ANY || (who == WEB_USER_KNOWN && passwords_know(s->passwords, hash, given));
    if (who == WEB_USER_NONE) {
        refuse_credentials(s, l->connection, route_of(&l->match), "Basic");
    } else if (!known && !start_login(l, hash, given)) {
        server_on_refusal(s, l->connection, l->request, REFUSED_BUSY, STATUS_BUSY);
    }
    buf_wipe(&password);
    return known;
}

/* Returns true if the client may ask for the route. Otherwise the request is answered, now or
 * later. */
static bool let_in(const struct login *l)
{
    struct server *s = l->server;
    const struct route *route = route_of(&l->match);
    if (route == NULL || route->is_open) {
        return true;
    }
    if (!tls_lets_in(connection_tls(l->connection), &s->setup->options.tls)) {
        metric_inc(s->refused[REFUSED_AUTH]);
        reply_error(l->connection, route->errors, STATUS_UNAUTHORIZED, SV(""),
                    "expected a client certificate");
        return false;
    }
    const struct http_settings *access = access_of(s, route);
    bool by_file = s->setup->web != NULL && (access == NULL || access->auth == HTTP_AUTH_NONE);
    return by_file ? is_user(l) : has_credentials(s, l->connection, l->request, route);
}

/* Serves a request that is allowed. */
static void serve(struct server *s, struct connection *c, struct request *r,
                  const struct route_match *match)
{
    if (route_of(match) != NULL && !routes_check_params(c, r, match->route)) {
        return;
    }
    if (route_of(match) == NULL) {
        reply_plain(c, STATUS_NOT_FOUND, "404 page not found\n");
    } else if (match->route == NULL) {
        refuse_method(c, match);
    } else if (match->route->handle != NULL) {
        match->route->handle(c, r, &s->setup->options);
    } else {
        connection_set_data(c, match->route);
        connection_read_body(c, (size_t)work_of(s, match->route)->body_max);
    }
}

/* Takes over the present content of the web configuration file. */
static void renew_web(struct server *s)
{
    setup_renew(s->setup);
    s->connections.headers = s->setup->web != NULL ? web_headers(s->setup->web) : SV("");
}

static void server_on_request(void *arg, struct connection *c, struct request *r)
{
    struct server *s = arg;
    metric_inc(s->requests);
    places_use(s->places, connection_place(c));
    renew_web(s);
    const struct login login = {
        .server = s, .connection = c, .request = r, .match = routes_find(&s->setup->options, r)};
    if (let_in(&login)) {
        serve(s, c, r, &login.match);
    }
}

static void server_on_refusal(void *arg, struct connection *c, const struct request *r,
                              enum connection_refusal why, int status)
{
    static const char *const messages[CONNECTION_REFUSALS] = {
        [REFUSED_LARGE_BODY] = "the request body is too large",
        [REFUSED_SLOW_BODY] = "the request body came too slowly",
        [REFUSED_NO_ROOM] = "too many request bodies at the same time: try again later",
        [REFUSED_BUSY] = "too many requests at the same time: try again later",
    };
    struct server *s = arg;
    const struct route *route = connection_data(c);
    (void)r;
    metric_inc(s->refused[why]);
    reply_error(c, route == NULL ? NULL : route->errors, status,
                why == REFUSED_NO_ROOM || why == REFUSED_BUSY ? SV("Retry-After: 1\r\n") : SV(""),
                messages[why] != NULL ? messages[why] : connection_status_text(status));
}

static bool start_pool(struct server *s, const char *name, const struct server_work *work,
                       struct exchange_pool **ret, struct err *err)
{
    struct exchange_pool_options options = {
        .name = name, .loop = s->loop, .metrics = s->first.metrics, .threads = work->threads};
    *ret = exchange_pool_new(&options, err);
    return *ret != NULL;
}

/* Returns the pool for a route; NULL if it cannot be made. Few processes have peers, so their pool
 * is made when the first of them asks. */
static struct exchange_pool *pool_of(struct server *s, const struct route *route)
{
    if (route->set == ROUTE_PEERS && s->peers == NULL) {
        (void)start_pool(s, "peers", &s->setup->options.query, &s->peers, NULL);
    }
    return route->set == ROUTE_RECEIVE ? s->receive
           : route->set == ROUTE_PEERS ? s->peers
                                       : s->query;
}

static void server_on_body(void *arg, struct connection *c, const struct request *r)
{
    struct server *s = arg;
    const struct route *route = connection_data(c);
    struct exchange_pool *pool = pool_of(s, route);
    const struct exchange_client client = {.address = *place_address(connection_place(c)),
                                           .has_neighbours = places_addresses(s->places) > 1};
    if (pool == NULL || !exchange_pool_submit(pool, c, route, r, s->setup, &client)) {
        server_on_refusal(s, c, r, REFUSED_BUSY, STATUS_BUSY);
    }
}

static void server_on_end(void *arg, struct connection *c, enum connection_end why)
{
    struct server *s = arg;
    places_remove(s->places, connection_place(c));
    metric_inc(s->ended[why]);
    metric_set(s->open, (int64_t)places_count(s->places));
}

static void server_on_stream_end(void *arg, enum connection_stream_end how)
{
    const struct server *s = arg;
    metric_inc(s->streams_ended[how]);
}

static struct in6_addr address_of(const struct sockaddr *from)
{
    struct in6_addr address = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (from->sa_family == AF_INET6) {
        address = ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    } else if (from->sa_family == AF_INET) {
        struct in_addr v4 = ((const struct sockaddr_in *)(const void *)from)->sin_addr;
        memcpy(&address.s6_addr[12], &v4, sizeof(v4));
    }
    return address;
}

/* Makes room for one more connection of an address. */
static void make_room(struct server *s, const struct in6_addr *address)
{
    struct connection *own = places_own_victim(s->places, address);
    if (own != NULL) {
        connection_end(own, CONNECTION_SAME_ADDRESS);
    } else if (places_are_full(s->places)) {
        connection_end(places_victim(s->places), CONNECTION_CROWDED);
    }
}

static void server_on_accept(struct evconnlistener *listener, evutil_socket_t fd,
                             struct sockaddr *from, int from_len, void *arg)
{
    struct server *s = arg;
    struct in6_addr address = address_of(from);
    (void)listener;
    (void)from_len;
    make_room(s, &address);
    renew_web(s);
    struct tls *tls = s->setup->tls;
    SSL *session = tls != NULL ? tls_session(tls, &s->setup->options.tls) : NULL;
    if (tls != NULL && session == NULL) {
        evutil_closesocket(fd);
        return;
    }
    struct connection *c = connection_new(&s->connections, fd, session);
    if (c == NULL) {
        return;
    }
    struct place *place = places_add(s->places, &address, c);
    if (place == NULL) {
        connection_free(c);
        return;
    }
    connection_set_place(c, place);
    metric_set(s->open, (int64_t)places_count(s->places));
    if (places_count(s->places) == 1) {
        loop_timer_after(s->timer, CHECK_MS);
    }
}

/* Called when accept() has failed, most likely for lack of descriptors: ending a connection frees
 * one. If no client waits, no connection ends, because without a free descriptor accept() fails
 * even then. The listener is disabled until the timer runs, because its socket stays readable, and
 * trying again at once would take a core. */
static void server_on_accept_failed(struct evconnlistener *listener, void *arg)
{
    struct server *s = arg;
    struct pollfd waiting = {.fd = evconnlistener_get_fd(listener), .events = POLLIN};
    if (poll(&waiting, 1, 0) != 0 && places_count(s->places) > 0) {
        connection_end(places_victim(s->places), CONNECTION_CROWDED);
    }
    evconnlistener_disable(listener);
    loop_timer_after(s->timer, CHECK_MS);
}

static void server_on_timer(void *arg)
{
    struct server *s = arg;
    int64_t now_ms = clock_mono_ms();
    /* Goes from the last place to the first: the place of a connection that ends is filled with one
     * that was checked already. */
    for (size_t i = places_count(s->places); i > 0; i--) {
        connection_check_time(places_at(s->places, i - 1), now_ms);
    }
    evconnlistener_enable(s->listener);
    if (places_count(s->places) > 0) {
        loop_timer_after(s->timer, CHECK_MS);
    }
}

/* ---- start and stop -------------------------------------------------------------------------- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Returns the port of an address, in network byte order. */
static in_port_t *port_of(union address *a)
{
    return a->any.sa_family == AF_INET6 ? &a->v6.sin6_port : &a->v4.sin_port;
}

/* Parses an address to listen on. Only literal addresses (and localhost) are accepted, because a
 * name would need a lookup. */
static bool parse_listen(const char *listen, union address *ret, int *ret_len, struct err *err)
{
    /* Port 0 asks the kernel for a free one; split_host_port() refuses it. */
    struct sv text = sv_from(listen);
    bool any_port = sv_ends_with(text, SV(":0"));
    if (any_port) {
        text.n -= 2;
    }
    struct sv host = SV("");
    uint16_t port = 0;
    uint64_t number;
    /* ":4041" means every address of this machine. */
    if (!any_port && text.n > 1 && text.p[0] == ':' &&
        parse_u64(sv_skip(text, 1), UINT16_MAX, &number)) {
        port = (uint16_t)number;
    } else if (!(any_port && text.n == 0) && !split_host_port(text, &host, &port, err)) {
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

/* Returns the words that explain why an address cannot be bound, before the advice to choose
 * another one. NULL: another address would not help. */
static const char *why_not_bound(int code)
{
    switch (code) {
    case EADDRINUSE:
        return "";
    case EADDRNOTAVAIL:
        return "this machine does not have the address; ";
    case EACCES:
        return "a port below 1024 needs root or the capability CAP_NET_BIND_SERVICE; ";
    default:
        return NULL;
    }
}

static bool server_bind(struct server *s, struct err *err)
{
    union address address = {0};
    int bound_len = 0;
    if (!parse_listen(s->setup->options.listen, &address, &bound_len, err)) {
        return false;
    }
    s->listener =
        evconnlistener_new_bind(loop_event_base(s->loop), server_on_accept, s,
                                LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
                                BACKLOG, &address.any, bound_len);
    if (s->listener == NULL) {
        const char *why = why_not_bound(errno);
        const char *option = s->setup->options.listen_option;
        err_sys(err, "cannot listen");
        return why != NULL && option != NULL
                   ? err_append(err, ": %schoose another one with %s", why, option)
                   : false;
    }
    evconnlistener_set_error_cb(s->listener, server_on_accept_failed);
    socklen_t len = sizeof(address);
    if (getsockname(evconnlistener_get_fd(s->listener), &address.any, &len) != 0) {
        return err_sys(err, "getsockname");
    }
    s->port = ntohs(*port_of(&address));
    return true;
}

static bool start_pools(struct server *s, struct err *err)
{
    unsigned sets = s->setup->options.sets;
    return ((sets & (ROUTE_ADMIN | ROUTE_QUERY)) == 0 ||
            start_pool(s, "query", &s->setup->options.query, &s->query, err)) &&
           ((sets & ROUTE_RECEIVE) == 0 ||
            start_pool(s, "receive", &s->setup->options.receive, &s->receive, err));
}

/* Sets the limits of the connections and of all their bodies. */
static void take_limits(struct server *s)
{
    const struct server_options *o = &s->setup->options;
    s->bodies.max = o->bodies_max_bytes;
    s->streams.max = o->max_streams;
    s->streams.max_of_one = o->max_streams_per_connection;
    s->connections.request_ms = o->request_timeout_ms;
    s->connections.answer_ms = o->answer_timeout_ms;
    s->connections.idle_ms = o->idle_timeout_ms;
}

static void server_on_start(struct loop_task *task)
{
    (void)task;
    thread_lower();
}

/* Returns true if the thread of the server gives way to those that scrape, however many requests it
 * gets. The admin server does not: kubelet restarts a process whose probes it answers late. */
static bool gives_way(const struct server *s)
{
    return (s->setup->options.sets & ROUTE_ADMIN) == 0;
}

static bool set_up(struct server *s, struct err *err)
{
    s->loop = loop_new(err);
    if (s->loop == NULL) {
        return false;
    }
    s->connections = (struct connection_options){
        .base = loop_event_base(s->loop),
        .bodies = &s->bodies,
        .streams = &s->streams,
        .on_request = server_on_request,
        .on_body = server_on_body,
        .on_refusal = server_on_refusal,
        .on_end = server_on_end,
        .on_stream_end = server_on_stream_end,
        .arg = s,
    };
    take_limits(s);
    s->places = places_new(s->setup->options.max_connections,
                           s->setup->options.max_connections_per_address);
    s->timer = loop_timer_new(s->loop, server_on_timer, s);
    if (s->places == NULL || s->timer == NULL) {
        return err_memory(err);
    }
    if (s->setup->web != NULL) {
        s->passwords = passwords_new(s->loop, err);
        if (s->passwords == NULL) {
            return false;
        }
    }
    if (!server_bind(s, err) || !start_pools(s, err)) {
        return false;
    }
    if (gives_way(s)) {
        s->started = (struct loop_task){.run = server_on_start};
        loop_post(s->loop, &s->started);
    }
    s->thread = loop_thread_start(s->loop, s->setup->options.name, err);
    return s->thread != NULL;
}

/* Each server has metrics of its own, so that the counts of one server do not hide those of
 * another. */
#define FAMILIES(who, what)                                                                        \
    {                                                                                              \
        {.name = "profpull_" who "_requests_total",                                                \
         .help = "Requests to " what ".",                                                          \
         .type = METRIC_COUNTER},                                                                  \
            {.name = "profpull_" who "_connections",                                               \
             .help = "Open connections of " what ".",                                              \
             .type = METRIC_GAUGE},                                                                \
            {.name = "profpull_" who "_connections_ended_total",                                   \
             .help = "Connections of " what " that ended, by reason.",                             \
             .type = METRIC_COUNTER,                                                               \
             .labels = {"reason"}},                                                                \
            {.name = "profpull_" who "_requests_refused_total",                                    \
             .help = "Requests that " what " refused before any handler saw them, by reason.",     \
             .type = METRIC_COUNTER,                                                               \
             .labels = {"reason"}},                                                                \
            {.name = "profpull_" who "_file_failures_total",                                       \
             .help = "Files with credentials or certificates that " what                           \
                     " has read again and rejected.",                                              \
             .type = METRIC_COUNTER},                                                              \
            {.name = "profpull_" who "_http2_streams_total",                                       \
             .help = "Requests over HTTP/2 to " what " that ended, by result.",                    \
             .type = METRIC_COUNTER,                                                               \
             .labels = {"result"}},                                                                \
    }
enum { REQUESTS, CONNECTIONS, ENDED, REFUSED, FILE_FAILURES, STREAMS, N_FAMILIES };

static const struct metric_desc *families_of(const char *name)
{
    static const struct metric_desc admin[N_FAMILIES] = FAMILIES("admin", "the admin server");
    static const struct metric_desc query[N_FAMILIES] = FAMILIES("query", "the query server");
    static const struct metric_desc receive[N_FAMILIES] = FAMILIES("receive", "the receive server");
    return strcmp(name, "query") == 0 ? query : strcmp(name, "receive") == 0 ? receive : admin;
}

static void make_metrics(struct server *s, const struct server_options *options)
{
    static const char *const reasons[CONNECTION_ENDS] = {
        [CONNECTION_DONE] = "done",
        [CONNECTION_TLS] = "tls",
        [CONNECTION_IDLE] = "idle",
        [CONNECTION_SLOW_REQUEST] = "slow_request",
        [CONNECTION_SLOW_ANSWER] = "slow_answer",
        [CONNECTION_CROWDED] = "crowded",
        [CONNECTION_SAME_ADDRESS] = "same_address",
        [CONNECTION_PROTOCOL] = "protocol",
        [CONNECTION_FLOOD] = "flood",
        [CONNECTION_RESETS] = "resets",
    };
    static const char *const refusals[CONNECTION_REFUSALS] = {
        [REFUSED_MALFORMED] = "malformed", [REFUSED_LARGE_BODY] = "large_body",
        [REFUSED_SLOW_BODY] = "slow_body", [REFUSED_NO_ROOM] = "no_room",
        [REFUSED_BUSY] = "busy",           [REFUSED_AUTH] = "credentials",
    };
    static const char *const results[STREAM_ENDS] = {
        [STREAM_DONE] = "done",           [STREAM_RESET] = "reset",
        [STREAM_REFUSED] = "refused",     [STREAM_SLOW_ANSWER] = "slow_answer",
        [STREAM_MALFORMED] = "malformed", [STREAM_CUT] = "cut",
    };
    struct metrics *m = options->metrics;
    const struct metric_desc *families = families_of(options->name);
    s->requests = metric_only(metrics_register(m, &families[REQUESTS]));
    s->open = metric_only(metrics_register(m, &families[CONNECTIONS]));
    s->file_failures = metric_only(metrics_register(m, &families[FILE_FAILURES]));
    struct metric *family = metrics_register(m, &families[ENDED]);
    for (size_t i = 0; i < CONNECTION_ENDS; i++) {
        s->ended[i] = metric_cell_of(family, reasons[i]);
    }
    family = metrics_register(m, &families[REFUSED]);
    for (size_t i = 0; i < CONNECTION_REFUSALS; i++) {
        s->refused[i] = metric_cell_of(family, refusals[i]);
    }
    family = metrics_register(m, &families[STREAMS]);
    for (size_t i = 0; i < STREAM_ENDS; i++) {
        s->streams_ended[i] = metric_cell_of(family, results[i]);
    }
}

struct server *server_start(const struct server_options *options, struct err *err)
{
    struct server *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        setup_release(options);
        return NULL;
    }
    s->first = *options;
    make_metrics(s, options);
    s->setup = setup_new(options, s->file_failures, err);
    if (s->setup == NULL || !set_up(s, err)) {
        err_wrap(err, "%s server on %s", options->name, options->listen);
        return server_stop(s);
    }
    return s;
}

/* ---- other options ----------------------------------------------------------------------------
 */

/* Refuses a change of a setting that is fixed when the server starts. */
static bool check_fixed(const struct server_options *now, const struct server_options *next,
                        struct err *err)
{
    const struct {
        const char *what;
        bool same;
    } rows[] = {
        {"listen", strcmp(now->listen, next->listen) == 0 && now->sets == next->sets},
        {"max_connections", now->max_connections == next->max_connections},
        {"max_connections_per_address",
         now->max_connections_per_address == next->max_connections_per_address},
        {"web_config_file", (now->web_config_file == NULL) == (next->web_config_file == NULL)},
        {"concurrency", now->query.threads == next->query.threads &&
                            now->receive.threads == next->receive.threads},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!rows[i].same) {
            return err_set(err, ERR_INPUT, "%s: cannot change while the program runs: restart it",
                           rows[i].what);
        }
    }
    return true;
}

struct server_setup *server_prepare(struct server *s, const struct server_options *next,
                                    struct err *err)
{
    struct server_setup *setup = NULL;
    if (check_fixed(&s->first, next, err)) {
        setup = setup_new(next, s->file_failures, err);
    } else {
        setup_release(next);
    }
    if (setup == NULL) {
        err_wrap(err, "%s server", next->name);
    }
    return setup;
}

static void server_on_setup(struct loop_task *task)
{
    struct server_setup *next = (struct server_setup *)(void *)task; /* its first member */
    struct server *s = next->server;
    struct server_setup *former = s->setup;
    s->setup = next;
    take_limits(s);
    setup_unref(former);
}

void server_commit(struct server *s, struct server_setup *setup)
{
    setup->server = s;
    setup->task.run = server_on_setup;
    loop_post(s->loop, &setup->task);
}

void server_discard(struct server_setup *setup)
{
    setup_unref(setup);
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
    for (size_t i = 0; s->places != NULL && i < places_count(s->places); i++) {
        connection_free(places_at(s->places, i));
    }
    if (s->listener != NULL) {
        evconnlistener_free(s->listener);
    }
    exchange_pool_stop(s->query);
    exchange_pool_stop(s->receive);
    exchange_pool_stop(s->peers);
    passwords_stop(s->passwords);
    loop_timer_free(s->timer);
    places_free(s->places);
    loop_free(s->loop);
    exchange_pool_free(s->query);
    exchange_pool_free(s->receive);
    exchange_pool_free(s->peers);
    passwords_free(s->passwords);
    setup_unref(s->setup);
    free(s);
    return NULL;
}

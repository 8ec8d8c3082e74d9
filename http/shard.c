#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/private.h"
#include "http/wire.h"

/* The TCP keepalive times, after which a peer that has gone silently is noticed: idle time, time
 * between probes, and total time. */
#define PEER_IDLE_S 15
#define PEER_INTERVAL_S 5
#define PEER_TIMEOUT_MS 30000

/* A socket that libcurl asks to watch. */
struct http_socket {
    LIST_ENTRY(http_socket) link;
    struct http_shard *shard;
    struct event *event;
    short wanted;      /* EV_READ, EV_WRITE */
    uint64_t arrivals; /* how often it was readable since it was watched for the request */
};

static void drive(struct http_shard *s, curl_socket_t fd, int mask);

/* ---- sockets and timer, on libcurl's request ------------------------------------------------- */

/* Returns true if the bytes of the connection are those of this transfer. With HTTP/2, a connection
 * carries the responses of several transfers. */
static bool is_metered(const struct http_transfer *t)
{
    return !t->request.http2_only && (!t->url.https || !t->request.settings->enable_http2);
}

static enum http_limit check_pieces(const struct http_transfer *t, curl_socket_t fd,
                                    uint64_t arrivals)
{
    int64_t total = t->wire_start < 0 ? -1 : wire_received(fd);
    /* If there are fewer bytes than at the start, libcurl has sent the request again, over a new
     * connection whose socket has the same number. */
    int64_t start = total < t->wire_start ? 0 : t->wire_start;
    if (total >= 0 && (uint64_t)(total - start) > 2 * t->received + HTTP_WIRE_SLACK) {
        return HTTP_LIMIT_WIRE;
    }
    return http_transfer_is_in_pieces(t, arrivals) ? HTTP_LIMIT_PIECES : HTTP_LIMIT_NONE;
}

/* Ends a transfer whose peer sends too many bytes that never become a header or a body, or sends
 * them one by one: libcurl has no limit for them. Returns true if a transfer was ended. */
static bool end_busy_one(struct http_socket *socket, curl_socket_t fd)
{
    struct http_transfer *t = TAILQ_FIRST(&socket->shard->running);
    while (t != NULL && t->fd != fd) {
        t = TAILQ_NEXT(t, link);
    }
    if (t == NULL || !is_metered(t)) {
        return false;
    }
    enum http_limit limit = check_pieces(t, fd, socket->arrivals);
    if (limit == HTTP_LIMIT_NONE) {
        return false;
    }
    http_shard_end(t, limit, HTTP_ERR_PROTOCOL);
    return true;
}

static void on_socket_event(evutil_socket_t fd, short what, void *arg)
{
    struct http_socket *socket = arg;
    /* Most responses arrive in one piece, for which nothing is checked. */
    if (what & EV_READ && ++socket->arrivals > 1 && end_busy_one(socket, fd)) {
        return; /* the socket may have been freed */
    }
    drive(socket->shard, fd,
          (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void socket_free(struct http_socket *socket)
{
    LIST_REMOVE(socket, link);
    if (socket->event != NULL) {
        event_free(socket->event);
    }
    free(socket);
}

static struct http_socket *socket_new(struct http_shard *s)
{
    struct http_socket *socket = calloc(1, sizeof(*socket));
    if (socket == NULL) {
        return NULL;
    }
    socket->shard = s;
    LIST_INSERT_HEAD(&s->sockets, socket, link);
    return socket;
}

static bool socket_watch(struct http_socket *socket, curl_socket_t fd, short wanted)
{
    if (socket->event != NULL && socket->wanted == wanted) {
        return true;
    }
    if (socket->event != NULL) {
        event_free(socket->event);
    }
    socket->wanted = wanted;
    socket->event = event_new(loop_event_base(socket->shard->client->loop), fd,
                              (short)(wanted | EV_PERSIST), on_socket_event, socket);
    return socket->event != NULL && event_add(socket->event, NULL) == 0;
}

static void set_option(curl_socket_t fd, int level, int option, int value)
{
    /* A socket that does not accept an option works without it. */
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

/* Sets keepalive. It is called when the socket is first watched for a request and not when the
 * socket is made, because the connection may be an older request's. */
static void watch_peer(curl_socket_t fd)
{
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, PEER_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, PEER_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, PEER_TIMEOUT_MS);
}

/* Watches a socket for the first time. Returns NULL on failure. */
static struct http_socket *adopt_socket(struct http_shard *s, curl_socket_t fd,
                                        const struct http_transfer *t)
{
    struct http_socket *socket = socket_new(s);
    if (socket == NULL || curl_multi_assign(s->multi, fd, socket) != CURLM_OK) {
        return NULL;
    }
    if (t != NULL && t->request.detect_dead_peer) {
        watch_peer(fd);
    }
    return socket;
}

/* Called by libcurl when a socket is to be watched or not. A failure makes the multi handle
 * unusable, and the shard is rebuilt. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *shard_arg, void *socket_arg)
{
    struct http_shard *s = shard_arg;
    struct http_socket *socket = socket_arg;
    struct http_transfer *t = NULL;
    if (what == CURL_POLL_REMOVE) {
        /* Another socket may get the number at once, so nothing of the old one may remain. */
        if (socket != NULL) {
            socket_free(socket);
        }
        return 0;
    }
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
    /* A connection that is not watched yet may have the number of the one that broke before it. */
    if (t != NULL && (t->fd != fd || socket == NULL)) {
        t->fd = fd;
        t->wire_start = wire_received(fd);
    }
    if (socket == NULL) {
        socket = adopt_socket(s, fd, t);
    }
    short wanted =
        (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
    return socket != NULL && socket_watch(socket, fd, wanted) ? 0 : -1;
}

/* Finds the transfer whose upload has just failed on this socket. Returns NULL if there is none. */
static struct http_transfer *find_upload(struct http_shard *s, curl_socket_t fd)
{
    struct http_transfer *t = TAILQ_FIRST(&s->running);
    while (t != NULL &&
           (t->fd != fd || t->body_size == 0 || t->head_done || t->stopped || t->url.https)) {
        t = TAILQ_NEXT(t, link);
    }
    return t;
}

void http_shard_opened(struct http_transfer *t, int fd)
{
    struct http_shard *s = t->shard;
    if (s->n_open == s->cap_open) {
        size_t cap = s->cap_open == 0 ? 16 : 2 * s->cap_open;
        struct guard_socket *open = reallocarray(s->open, cap, sizeof(*open));
        if (open == NULL) {
            return; /* the guard does not watch this socket */
        }
        s->open = open;
        s->cap_open = cap;
    }
    s->client->n_open++;
    s->open[s->n_open++] = (struct guard_socket){.fd = fd, .origin = url_origin_hash(&t->url)};
}

/* Notes that a socket is closed. Within a call, the guard may have cut it, so it is remembered
 * until the end of the call. */
static void note_closed(struct http_shard *s, int fd)
{
    size_t i = 0;
    guard_forget(s->client->guard, fd);
    while (i < s->n_open && (s->open[i].fd != fd || s->open[i].closed)) {
        i++;
    }
    if (i < s->n_open && s->busy) {
        s->open[i].closed = true;
        s->any_closed = true;
    } else if (i < s->n_open) {
        s->open[i] = s->open[--s->n_open];
        s->client->n_open--;
    }
}

/* A server that refuses a body answers, closes and resets the connection. If libcurl sends on the
 * reset connection before it has seen the answer, it gives up without reading the answer, so this
 * function reads it. */
int http_shard_close_socket(void *shard, curl_socket_t fd)
{
    struct http_shard *s = shard;
    char bytes[HTTP_LATE_MAX];
    struct http_transfer *t = s->busy ? find_upload(s, fd) : NULL;
    if (t != NULL) {
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        t->fd = CURL_SOCKET_BAD;
        if (n > 0) {
            http_transfer_take_late(t, (struct sv){bytes, (size_t)n});
        }
        if (t->head_done) {
            stray_count(&s->client->strays, STRAY_EARLY);
        }
    }
    note_closed(s, fd);
    return close(fd);
}

static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
    (void)multi;
    struct http_shard *s = arg;
    if (timeout_ms < 0) {
        loop_timer_cancel(s->timer);
    } else {
        loop_timer_after(s->timer, timeout_ms);
    }
    return 0;
}

static void shard_on_timer(void *arg)
{
    drive(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- the multi handle ------------------------------------------------------------------------ */

/* Sets the limit of kept connections. When a transfer ends, libcurl compares the connections of the
 * handle, also those in use, with this limit, and closes the one that was idle longest if there are
 * more. A handle may keep more as long as the client has room, so that the distribution of hosts
 * does not matter. */
static void set_kept(struct http_shard *s)
{
    const struct http_client *c = s->client;
    size_t max = http_client_max_open(c);
    size_t kept = s->n_open + max > c->n_open ? s->n_open + max - c->n_open : 1;
    if (s->multi != NULL) {
        curl_multi_setopt(s->multi, CURLMOPT_MAXCONNECTS, (long)kept);
    }
}

static bool make_multi(struct http_shard *s)
{
    s->multi = curl_multi_init();
    if (s->multi == NULL) {
        return false;
    }
    curl_multi_setopt(s->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(s->multi, CURLMOPT_SOCKETDATA, s);
    curl_multi_setopt(s->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(s->multi, CURLMOPT_TIMERDATA, s);
    set_kept(s);
    return true;
}

static void drop_multi(struct http_shard *s)
{
    if (s->multi != NULL) {
        curl_multi_cleanup(s->multi);
    }
    s->multi = NULL;
    struct http_socket *next;
    for (struct http_socket *socket = LIST_FIRST(&s->sockets); socket != NULL; socket = next) {
        next = LIST_NEXT(socket, link);
        socket_free(socket);
    }
    loop_timer_cancel(s->timer);
}

bool http_shard_init(struct http_shard *s, struct http_client *c)
{
    s->client = c;
    LIST_INIT(&s->sockets);
    TAILQ_INIT(&s->running);
    TAILQ_INIT(&s->pending);
    TAILQ_INIT(&s->cancelled);
    s->timer = loop_timer_new(c->loop, shard_on_timer, s);
    return s->timer != NULL; /* the multi handle is made for the first transfer */
}

void http_shard_done(struct http_shard *s)
{
    if (s->timer == NULL) {
        return;
    }
    drop_multi(s);
    free(s->open);
    s->timer = loop_timer_free(s->timer);
}

/* ---- transfers in and out -------------------------------------------------------------------- */

static void fail_to_add(struct http_transfer *t, CURLMcode code)
{
    struct err reason;
    err_set(&reason, ERR_MEMORY, "cannot start the transfer: %s", curl_multi_strerror(code));
    http_transfer_fail(t, HTTP_ERR_MEMORY, reason.msg);
}

static void add_now(struct http_shard *s, struct http_transfer *t)
{
    if (s->multi == NULL && !make_multi(s)) {
        fail_to_add(t, CURLM_OUT_OF_MEMORY);
        return;
    }
    http_list_move(t, &s->running);
    set_kept(s);
    CURLMcode code = curl_multi_add_handle(s->multi, t->easy);
    t->in_multi = code == CURLM_OK;
    if (!t->in_multi) {
        fail_to_add(t, code);
    }
}

void http_shard_add(struct http_transfer *t)
{
    struct http_shard *s = t->shard;
    if (!s->busy) {
        add_now(s, t);
        return;
    }
    http_list_move(t, &s->pending);
}

void http_shard_remove(struct http_transfer *t)
{
    struct http_shard *s = t->shard;
    if (t->in_multi) {
        if (s->multi != NULL) {
            curl_multi_remove_handle(s->multi, t->easy);
        }
        t->in_multi = false;
    }
    http_list_move(t, NULL);
}

static int own_port(int fd)
{
    struct sockaddr_in6 own = {.sin6_port = 0}; /* at the same place as the port of IPv4 */
    socklen_t size = sizeof(own);
    return getsockname(fd, (struct sockaddr *)&own, &size) == 0 ? ntohs(own.sin6_port) : 0;
}

int http_shard_socket(const struct http_transfer *t, int port)
{
    const struct http_shard *s = t->shard;
    for (size_t i = 0; i < s->n_open; i++) {
        if (!s->open[i].closed && own_port(s->open[i].fd) == port) {
            return s->open[i].fd;
        }
    }
    return -1;
}

/* Shuts down the connection of a request that was given up, if it is silent. With HTTP/2 a
 * connection outlives such a request, and if no bytes arrive on it any more, the next requests
 * would wait there as well. Requests that share the connection end as if the server had gone away.
 * A connection on which other responses arrive is kept. Bytes that arrived soon after the request,
 * such as the settings of the server, do not show that it still works. */
static void leave_silent_connection(const struct http_transfer *t)
{
    int64_t waited_ms = (clock_mono_ns() - t->progress_ns) / NS_PER_MS;
    int fd = http_shard_socket(t, t->own_port);
    if (!t->is_http2 || t->sent_ns == 0 || fd < 0 ||
        (t->head_done && waited_ms < HTTP_REPEAT_MAX_MS)) {
        return;
    }
    int64_t silent_ms = wire_silent_ms(fd);
    if (silent_ms < 0 || silent_ms >= waited_ms / 2) {
        (void)shutdown(fd, SHUT_RDWR);
    }
}

void http_shard_end(struct http_transfer *t, enum http_limit limit, enum http_result result)
{
    http_transfer_detach(t);
    leave_silent_connection(t);
    t->stopped = true;
    t->limit = limit;
    t->result = result;
    http_transfer_complete(t, CURLE_OPERATION_TIMEDOUT);
}

/* ---- driving --------------------------------------------------------------------------------- */

static void free_cancelled(struct http_shard *s)
{
    while (!TAILQ_EMPTY(&s->cancelled)) {
        struct http_transfer *t = TAILQ_FIRST(&s->cancelled);
        http_shard_remove(t);
        http_transfer_free(t);
    }
}

/* Notes that the peer of this transfer has blocked the loop. */
static void blame(struct http_transfer *t)
{
    t->stopped = true;
    t->limit = HTTP_LIMIT_HELD;
    t->result = HTTP_ERR_PROTOCOL;
}

/* Collects the transfers that libcurl has ended. cut: a socket that the guard has shut down, or
 * -1. */
static void collect(struct http_shard *s, int cut)
{
    int left;
    CURLMsg *msg;
    while (s->multi != NULL && (msg = curl_multi_info_read(s->multi, &left)) != NULL) {
        struct http_transfer *t = NULL;
        /* read now: it is freed when the handle is removed */
        CURLcode code = msg->data.result;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
        http_shard_remove(t);
        /* A transfer on a kept connection may not have waited for a socket yet. */
        if (cut >= 0 && (t->fd == cut || (t->fd == CURL_SOCKET_BAD && code != CURLE_OK))) {
            blame(t);
        }
        http_transfer_complete(t, code);
    }
}

/* Begins a call. The guard watches the connection that has an event, or, after a timeout, all of
 * them, because libcurl may read from any. */
static void enter(struct http_shard *s, curl_socket_t fd)
{
    const struct guard_socket one = {.fd = fd};
    bool any = fd == CURL_SOCKET_TIMEOUT;
    guard_enter(s->client->guard, any ? s->open : &one, any ? s->n_open : 1);
}

/* Ends a call. If the guard has cut a connection, its server is remembered as an offender. */
static void leave(struct http_shard *s, int cut)
{
    struct http_client *c = s->client;
    size_t kept = 0;
    if (cut < 0 && !s->any_closed) {
        return;
    }
    if (cut >= 0) {
        metric_inc(c->cut_calls);
    }
    for (size_t i = 0; i < s->n_open; i++) {
        if (cut >= 0 && s->open[i].fd == cut) {
            offenders_add(c->offenders, s->open[i].origin, clock_mono_ms());
        }
        if (!s->open[i].closed) {
            s->open[kept++] = s->open[i];
        }
    }
    c->n_open -= s->n_open - kept;
    s->n_open = kept;
    s->any_closed = false;
}

/* Lets libcurl handle one event, and handles the results. */
static void drive(struct http_shard *s, curl_socket_t fd, int mask)
{
    int running;
    struct http_client *c = s->client;
    if (s->multi == NULL) {
        return;
    }
    c->driving = true;
    s->busy = true;
    int64_t start_ns = clock_mono_ns();
    enter(s, fd);
    CURLMcode code = curl_multi_socket_action(s->multi, fd, mask, &running);
    int cut = guard_leave(c->guard);
    leave(s, cut);
    if (clock_mono_ns() - start_ns > HTTP_SLOW_CALL_MS * NS_PER_MS) {
        metric_inc(c->slow_calls);
    }
    s->busy = false;
    free_cancelled(s);
    collect(s, cut);
    if (code != CURLM_OK) {
        http_shard_rebuild(s, code);
    }
    while (!TAILQ_EMPTY(&s->pending)) {
        add_now(s, TAILQ_FIRST(&s->pending));
    }
    http_client_run_ended(c);
}

void http_shard_resume(struct http_transfer *t)
{
    struct http_shard *s = t->shard;
    s->busy = true;
    CURLcode code = curl_easy_pause(t->easy, CURLPAUSE_CONT);
    s->busy = false;
    if (code != CURLE_OK) {
        http_shard_remove(t);
        http_transfer_complete(t, code);
    }
}

void http_shard_rebuild(struct http_shard *s, CURLMcode code)
{
    struct err reason = ERR_INIT;
    err_set(&reason, ERR_SYSTEM, "the transfer was lost: libcurl: %s", curl_multi_strerror(code));
    log_error(s->client->log, "an HTTP client was rebuilt after an error of libcurl",
              LOG_STR("client", s->client->name), LOG_STR("err", reason.msg));
    metric_inc(s->client->rebuilds);
    free_cancelled(s);
    while (!TAILQ_EMPTY(&s->running)) {
        struct http_transfer *t = TAILQ_FIRST(&s->running);
        http_shard_remove(t);
        http_transfer_fail(t, HTTP_ERR_CUT, reason.msg);
    }
    drop_multi(s);
    if (!make_multi(s)) {
        log_error(s->client->log, "out of memory for an HTTP client, trying again later",
                  LOG_STR("client", s->client->name));
    }
}

#include "http/direct.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/private.h"
#include "http/proxy.h"
#include "http/request_head.h"
#include "http/response_reader.h"
#include "http/wire.h"

/* The number of lists in which idle connections are found by their origin. */
#define BUCKETS 1024
/* The most bytes that are read at once, so that one connection does not delay the others. All
 * connections share the buffer. */
#define RECEIVE_SIZE ((size_t)64 * 1024)
/* The most bytes that are read at once until the head is complete, while any body waits for memory.
 * The body will have to wait too, so little of it should be read. */
#define HEAD_SIZE ((size_t)4 * 1024)
/* The most parts and bytes of a request that are sent at once. A large body is sent in many calls,
 * so that a response that begins early is noticed between two of them. */
#define SEND_PARTS 16
#define SEND_MAX ((size_t)256 * 1024)
#define HEAD_MAX ((size_t)1024 * 1024)

LIST_HEAD(direct_bucket, direct_conn);
TAILQ_HEAD(direct_conns, direct_conn);

struct http_direct {
    struct http_client *client;
    struct http_list running;
    struct direct_conns idle; /* the oldest one first */
    struct direct_bucket buckets[BUCKETS];
    char received[RECEIVE_SIZE];
};

struct direct_conn {
    LIST_ENTRY(direct_conn) same;  /* in the list of its bucket while idle, */
    TAILQ_ENTRY(direct_conn) link; /* and in the list of all idle ones */
    struct http_direct *direct;
    struct http_transfer *transfer; /* NULL: idle */
    struct event event;
    short watched; /* EV_READ, EV_WRITE */
    int fd;
    uint16_t port;
    bool connecting;
    bool reused;
    bool sending;
    int64_t idle_ns;
    struct buf head; /* the head of the request, until it is sent */
    size_t head_sent;
    struct response_reader reader;
    uint64_t wire;     /* bytes of this response, with all framing */
    uint64_t arrivals; /* reads of it */
    char host[];
};

/* ---- connections ----------------------------------------------------------------------------- */

static struct direct_bucket *bucket_of(struct http_direct *d, const struct url *url)
{
    return &d->buckets[url_origin_hash(url) % BUCKETS];
}

static void leave_idle(struct direct_conn *conn)
{
    LIST_REMOVE(conn, same);
    TAILQ_REMOVE(&conn->direct->idle, conn, link);
}

/* Closes and frees a connection that is not among the idle ones. */
static void conn_close(struct direct_conn *conn)
{
    if (conn->watched != 0) {
        event_del(&conn->event);
    }
    if (conn->fd >= 0) {
        close(conn->fd);
        conn->direct->client->n_open--;
    }
    response_reader_done(&conn->reader);
    buf_wipe(&conn->head);
    free(conn);
}

static void close_idle(struct direct_conn *conn)
{
    leave_idle(conn);
    conn_close(conn);
}

void direct_prune(struct http_direct *d, int64_t now_ns)
{
    const struct http_client *c = d->client;
    struct direct_conn *conn;
    while ((conn = TAILQ_FIRST(&d->idle)) != NULL) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): close_idle() takes it from the list */
        bool is_old = now_ns - conn->idle_ns > DIRECT_IDLE_MAX_NS;
        if (!is_old && c->n_open <= http_client_max_open(c)) {
            return;
        }
        close_idle(conn);
    }
}

/* Returns the connection to an origin that was used last, so that the others can become too old. */
static struct direct_conn *find_idle(struct http_direct *d, const struct url *url)
{
    struct direct_conn *conn = NULL;
    LIST_FOREACH(conn, bucket_of(d, url), same)
    {
        if (conn->port == url->port && strcmp(conn->host, url->host) == 0) {
            return conn;
        }
    }
    return NULL;
}

/* Returns true if no bytes have arrived on an idle connection, which may then carry another
 * request. */
static bool is_quiet(const struct direct_conn *conn)
{
    enum wire_input input = wire_peek(conn->fd);
    if (input == WIRE_BYTES) {
        stray_count(&conn->direct->client->strays, STRAY_IDLE);
    }
    return input == WIRE_QUIET;
}

/* Takes an idle connection. Bytes may have arrived on it that the loop has not seen yet, so this is
 * checked here. */
static struct direct_conn *take_idle(struct http_direct *d, const struct url *url)
{
    struct direct_conn *conn;
    direct_prune(d, clock_mono_ns());
    while ((conn = find_idle(d, url)) != NULL) {
        if (is_quiet(conn)) {
            leave_idle(conn);
            return conn;
        }
        close_idle(conn);
    }
    return NULL;
}

static void on_event(evutil_socket_t fd, short what, void *arg);

/* Returns false if out of memory. */
static bool watch(struct direct_conn *conn, short what)
{
    if (conn->watched == what) {
        return true;
    }
    if (conn->watched != 0) {
        event_del(&conn->event);
    }
    conn->watched = 0;
    if (what == 0) {
        return true;
    }
    if (event_assign(&conn->event, loop_event_base(conn->direct->client->loop), conn->fd,
                     (short)(what | EV_PERSIST), on_event, conn) != 0 ||
        event_add(&conn->event, NULL) != 0) {
        return false;
    }
    conn->watched = what;
    return true;
}

/* ---- the end of a transfer ------------------------------------------------------------------- */

/* Separates the connection from its transfer, and keeps or closes it. */
static void release(struct direct_conn *conn, bool keep)
{
    struct http_direct *d = conn->direct;
    struct http_transfer *t = conn->transfer;
    conn->transfer = NULL;
    t->conn = NULL;
    if (!keep || !watch(conn, EV_READ)) {
        conn_close(conn);
        return;
    }
    response_reader_done(&conn->reader);
    conn->idle_ns = clock_mono_ns();
    LIST_INSERT_HEAD(bucket_of(d, &t->url), conn, same);
    TAILQ_INSERT_TAIL(&d->idle, conn, link);
    direct_prune(d, conn->idle_ns);
}

static void complete(struct direct_conn *conn, CURLcode code, bool keep)
{
    struct http_transfer *t = conn->transfer;
    release(conn, keep);
    http_list_move(t, NULL);
    http_transfer_complete(t, code);
}

/* Ends the transfer with libcurl's code and words for what happened. */
static void fail(struct direct_conn *conn, CURLcode code, const char *what, int os_error)
{
    struct http_transfer *t = conn->transfer;
    char text[128];
    t->os_error = os_error;
    (void)snprintf(t->curl_error, sizeof(t->curl_error), "%s%s%s", what, os_error != 0 ? ": " : "",
                   os_error != 0 ? strerror_r(os_error, text, sizeof(text)) : "");
    complete(conn, code, false);
}

/* Ends the transfer at a limit of our own. */
static void stop(struct direct_conn *conn, enum http_limit limit, enum http_result result)
{
    struct http_transfer *t = conn->transfer;
    t->stopped = true;
    t->limit = limit;
    t->result = result;
    complete(conn, CURLE_WRITE_ERROR, false);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Ends the transfer after a whole response. surplus: more bytes arrived with it. An early response
 * is a refusal (http_transfer_take_line()). */
static void finish(struct direct_conn *conn, bool surplus)
{
    if (surplus) {
        stray_count(&conn->direct->client->strays, STRAY_SURPLUS);
    }
    complete(conn, CURLE_OK,
             !surplus && !conn->sending && !conn->transfer->early &&
                 response_reader_keeps(&conn->reader));
}

/* Returns false, and ends the transfer, if the peer sends too many bytes that never become a header
 * or a body, or sends them one by one. */
static bool is_within_limits(struct direct_conn *conn)
{
    const struct http_transfer *t = conn->transfer;
    if (conn->wire > 2 * t->received + HTTP_WIRE_SLACK) {
        stop(conn, HTTP_LIMIT_WIRE, HTTP_ERR_PROTOCOL);
        return false;
    }
    if (http_transfer_is_in_pieces(t, conn->arrivals)) {
        stop(conn, HTTP_LIMIT_PIECES, HTTP_ERR_PROTOCOL);
        return false;
    }
    return true;
}

/* Returns true if the transfer goes on. */
static bool feed(struct direct_conn *conn, struct sv in)
{
    struct http_transfer *t = conn->transfer;
    struct sv piece;
    bool is_early = conn->sending || wire_is_unacknowledged(conn->fd);
    conn->wire += in.n;
    conn->arrivals++;
    for (;;) {
        bool ok = true;
        if (response_reader_is_between(&conn->reader)) {
            t->begins_early = is_early;
        }
        switch (response_reader_next(&conn->reader, &in, &piece)) {
        case RESPONSE_MORE:
            return is_within_limits(conn);
        case RESPONSE_LINE:
            ok = http_transfer_take_line(t, piece, piece.n + strlen("\r\n"));
            break;
        case RESPONSE_BODY:
            ok = http_transfer_take_body(t, piece);
            break;
        case RESPONSE_END:
            finish(conn, in.n > 0);
            return false;
        case RESPONSE_BAD:
            /* libcurl has another code for a bad body. */
            fail(conn, t->head_done ? CURLE_RECV_ERROR : CURLE_WEIRD_SERVER_REPLY,
                 conn->reader.error, 0);
            return false;
        case RESPONSE_LONG_LINE:
            complete(conn, (CURLcode)HTTP_CODE_TOO_LARGE, false);
            return false;
        case RESPONSE_NO_MEMORY:
            stop(conn, HTTP_LIMIT_NONE, HTTP_ERR_MEMORY);
            return false;
        }
        if (!ok) { /* the function that failed has set the reason */
            complete(conn, CURLE_WRITE_ERROR, false);
            return false;
        }
    }
}

static void on_end(struct direct_conn *conn)
{
    char left[64];
    const struct http_transfer *t = conn->transfer;
    const struct response_reader *r = &conn->reader;
    if (response_reader_may_end(r) || (r->any && !t->head_done)) {
        complete(conn, CURLE_OK, false);
    } else if (!r->any) {
        fail(conn, CURLE_GOT_NOTHING, "empty reply", 0);
    } else {
        (void)snprintf(left, sizeof(left), "%llu bytes of it were missing",
                       (unsigned long long)r->left);
        fail(conn, CURLE_PARTIAL_FILE, r->has_length ? left : "its last chunk is missing", 0);
    }
}

/* Watches the socket for the events that the transfer needs now. Nothing is read while it waits for
 * memory. */
static void rest(struct direct_conn *conn)
{
    bool reads = !conn->transfer->starved;
    short what = (short)((conn->sending ? EV_WRITE : 0) | (reads ? EV_READ : 0));
    if (!watch(conn, what)) {
        stop(conn, HTTP_LIMIT_NONE, HTTP_ERR_MEMORY);
    }
}

void direct_resume(struct http_transfer *t)
{
    rest(t->conn);
}

static void receive(struct direct_conn *conn)
{
    char *received = conn->direct->received;
    bool careful = conn->direct->client->n_starved > 0 && !conn->transfer->head_done;
    ssize_t n = recv(conn->fd, received, careful ? HEAD_SIZE : RECEIVE_SIZE, 0);
    if (n > 0) {
        if (feed(conn, (struct sv){received, (size_t)n}) && conn->transfer->starved) {
            rest(conn);
        }
    } else if (n == 0) {
        on_end(conn);
    } else if (errno != EAGAIN && errno != EINTR) {
        fail(conn, CURLE_RECV_ERROR, "Recv failure", errno);
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Lists the pieces that are sent next, at most SEND_MAX bytes. Returns the number of pieces. */
static size_t list_parts(const struct direct_conn *conn, struct iovec *out)
{
    const struct http_transfer *t = conn->transfer;
    size_t n = 0, offset = t->part_offset;
    if (conn->head_sent < conn->head.len) {
        out[n++] =
            (struct iovec){conn->head.data + conn->head_sent, conn->head.len - conn->head_sent};
    }
    for (size_t i = t->part; i < t->n_parts && n < SEND_PARTS; i++) {
        const char *data = t->parts[i].data;
        /* The bytes are only read; the type has no const. */
        out[n++] = (struct iovec){(void *)(uintptr_t)(data + offset), t->parts[i].len - offset};
        offset = 0;
    }
    size_t room = SEND_MAX;
    for (size_t i = 0; i < n; i++) {
        out[i].iov_len = out[i].iov_len < room ? out[i].iov_len : room;
        room -= out[i].iov_len;
    }
    return n;
}

/* Notes that further bytes have been sent. Returns true if the request is sent completely. */
static bool note_sent(struct direct_conn *conn, size_t sent)
{
    struct http_transfer *t = conn->transfer;
    size_t head = conn->head.len - conn->head_sent;
    head = head < sent ? head : sent;
    conn->head_sent += head;
    http_transfer_skip(t, sent - head);
    return conn->head_sent == conn->head.len && t->part == t->n_parts;
}

/* Handles an error of sending. A server that refuses a body answers, closes and resets the
 * connection, so the answer may be readable. */
static void on_send_error(struct direct_conn *conn, int os_error)
{
    char *received = conn->direct->received;
    size_t total = 0;
    ssize_t n;
    while (total < HTTP_LATE_MAX &&
           (n = recv(conn->fd, received, HTTP_LATE_MAX, MSG_DONTWAIT)) > 0) {
        total += (size_t)n;
        if (!feed(conn, (struct sv){received, (size_t)n})) {
            return;
        }
    }
    fail(conn, CURLE_SEND_ERROR, "Send failure", os_error);
}

/* Sends until the kernel takes no more, or until bytes have arrived. Returns -1 with errno on
 * failure. */
static int send_parts(struct direct_conn *conn)
{
    struct iovec parts[SEND_PARTS];
    ssize_t n;
    do {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = list_parts(conn, parts)};
        n = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return -1;
        }
        if (n > 0) {
            conn->transfer->progress_ns = clock_mono_ns();
        }
        conn->sending = !note_sent(conn, n > 0 ? (size_t)n : 0);
    } while (conn->sending && n > 0 && wire_peek(conn->fd) == WIRE_QUIET);
    return 0;
}

static void send_more(struct direct_conn *conn)
{
    if (send_parts(conn) != 0) {
        on_send_error(conn, errno);
        return;
    }
    if (!conn->sending) {
        buf_wipe(&conn->head);
        conn->head_sent = 0;
    }
    rest(conn);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Writes the address of the server, or "". */
static void get_peer(int fd, char *out, size_t size)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } peer = {.any.sa_family = AF_UNSPEC};
    socklen_t n = sizeof(peer);
    out[0] = '\0';
    if (getpeername(fd, &peer.any, &n) == 0) {
        const void *bytes = peer.any.sa_family == AF_INET6 ? (const void *)&peer.v6.sin6_addr
                                                           : (const void *)&peer.v4.sin_addr;
        (void)inet_ntop(peer.any.sa_family, bytes, out, (socklen_t)size);
    }
}

/* Begins the request on a connection that is ready. */
static void begin(struct direct_conn *conn)
{
    struct http_transfer *t = conn->transfer;
    char peer[INET6_ADDRSTRLEN] = "";
    if (t->request.refuses_address != NULL) {
        get_peer(conn->fd, peer, sizeof(peer));
    }
    if (!http_transfer_ready(t, peer)) {
        complete(conn, CURLE_ABORTED_BY_CALLBACK, false);
        return;
    }
    response_reader_init(&conn->reader, HTTP_HEADER_BYTES_MAX, t->method == HTTP_HEAD);
    conn->wire = 0;
    conn->arrivals = 0;
    conn->sending = true;
    if (!t->reused && wire_peek(conn->fd) == WIRE_BYTES) {
        stray_count(&t->client->strays, STRAY_FIRST);
        stop(conn, HTTP_LIMIT_STRAY, HTTP_ERR_PROTOCOL);
        return;
    }
    if (!request_head_write(t, &conn->head)) {
        stop(conn, HTTP_LIMIT_NONE, HTTP_ERR_MEMORY);
        return;
    }
    send_more(conn);
}

static void on_connected(struct direct_conn *conn)
{
    int os_error = 0;
    socklen_t n = sizeof(os_error);
    (void)getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &os_error, &n);
    if (os_error != 0) {
        fail(conn, CURLE_COULDNT_CONNECT, "cannot connect", os_error);
        return;
    }
    conn->connecting = false;
    begin(conn);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct direct_conn *conn = arg;
    struct http_client *c = conn->direct->client;
    c->driving = true;
    if (conn->transfer == NULL) {
        (void)is_quiet(conn); /* counts stray bytes */
        close_idle(conn);
    } else if (conn->connecting) {
        on_connected(conn);
    } else if (what & EV_READ) {
        receive(conn); /* first, because a response may be why no more can be sent */
    } else {
        send_more(conn);
    }
    http_client_run_ended(c);
}

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
    socklen_t size;
};

/* Parses "192.0.2.1", "2001:db8::1" or "[::1]". Returns false for anything else. */
static bool parse_address(const char *text, uint16_t port, struct address *ret)
{
    char host[INET6_ADDRSTRLEN + 2];
    struct sv v = sv_from(text);
    if (v.n > 2 && v.p[0] == '[' && v.p[v.n - 1] == ']') {
        v = (struct sv){v.p + 1, v.n - 2};
    }
    *ret = (struct address){.size = sizeof(ret->v4)};
    if (v.n == 0 || v.n >= sizeof(host)) {
        return false;
    }
    memcpy(host, v.p, v.n);
    host[v.n] = '\0';
    if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons(port);
        return true;
    }
    ret->size = sizeof(ret->v6);
    ret->v6.sin6_family = AF_INET6;
    ret->v6.sin6_port = htons(port);
    /* A link-local address needs its interface, which only the URL's text has. */
    return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1 &&
           !IN6_IS_ADDR_LINKLOCAL(&ret->v6.sin6_addr);
}

/* Opens a socket that does not block. Returns -1 with errno on failure. */
static int open_socket(const struct address *a)
{
    int one = 1;
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    return fd;
}

/* Makes the object of a connection that is neither connected nor idle. Returns NULL if out of
 * memory. */
static struct direct_conn *conn_new(struct http_direct *d, const struct url *url)
{
    size_t n = strlen(url->host) + 1;
    struct direct_conn *conn = calloc(1, sizeof(*conn) + n);
    if (conn == NULL) {
        return NULL;
    }
    conn->direct = d;
    conn->fd = -1;
    conn->port = url->port;
    buf_init(&conn->head, HEAD_MAX);
    memcpy(conn->host, url->host, n);
    return conn;
}

static void make_connection(struct direct_conn *conn, const char *text)
{
    struct http_transfer *t = conn->transfer;
    struct http_client *c = conn->direct->client;
    struct address a;
    (void)parse_address(text, conn->port, &a); /* direct_takes() it */
    conn->fd = open_socket(&a);
    if (conn->fd < 0) {
        t->no_descriptor = errno == EMFILE || errno == ENFILE;
        fail(conn, CURLE_COULDNT_CONNECT, "cannot make a socket", errno);
        return;
    }
    c->n_open++;
    metric_inc(c->connections_new);
    if (connect(conn->fd, &a.any, a.size) == 0) {
        begin(conn);
        return;
    }
    if (errno != EINPROGRESS) {
        fail(conn, CURLE_COULDNT_CONNECT, "cannot connect", errno);
        return;
    }
    conn->connecting = true;
    if (!watch(conn, EV_WRITE)) {
        stop(conn, HTTP_LIMIT_NONE, HTTP_ERR_MEMORY);
    }
}

void direct_add(struct http_transfer *t, const char *address)
{
    struct http_direct *d = t->client->direct;
    /* A request that broke on a kept connection is repeated on a new one. */
    struct direct_conn *conn = t->repeated ? NULL : take_idle(d, &t->url);
    bool kept = conn != NULL;
    if (!kept) {
        conn = conn_new(d, &t->url);
    }
    if (conn == NULL) {
        http_transfer_fail(t, HTTP_ERR_MEMORY, "out of memory");
        return;
    }
    http_list_move(t, &d->running);
    t->conn = conn;
    t->reused = kept;
    conn->transfer = t;
    if (kept) {
        begin(conn);
    } else {
        make_connection(conn, address);
    }
}

void direct_remove(struct http_transfer *t)
{
    if (t->conn != NULL) {
        release(t->conn, false);
    }
    http_list_move(t, NULL);
}

/* ---- which requests -------------------------------------------------------------------------- */

/* Returns true for headers that say how a message is framed, or what is done with the
 * connection. */
static bool is_about_framing(const char *name)
{
    static const char *const names[] = {"connection",        "content-length", "expect", "host",
                                        "transfer-encoding", "upgrade",        "te"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sv_eq_nocase(sv_from(name), names[i])) {
            return true;
        }
    }
    return false;
}

static bool has_framing(const struct http_header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_about_framing(headers[i].name)) {
            return true;
        }
    }
    return false;
}

bool direct_serves(const struct http_transfer *t, const struct http_request *r)
{
    const struct http_settings *s = r->settings;
    return t->client->direct != NULL && !t->url.https && !t->proxied && !r->http2_only &&
           !r->accept_gzip && !r->detect_dead_peer && s->auth != HTTP_AUTH_S3 &&
           !has_framing(r->headers, r->n_headers) && !has_framing(s->headers, s->n_headers);
}

bool direct_takes(const char *addresses)
{
    struct address a;
    return parse_address(addresses, 0, &a);
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct http_direct *direct_new(struct http_client *client)
{
    struct http_direct *d = malloc(sizeof(*d));
    if (d == NULL) {
        return NULL;
    }
    d->client = client;
    TAILQ_INIT(&d->running);
    TAILQ_INIT(&d->idle);
    for (size_t i = 0; i < BUCKETS; i++) {
        LIST_INIT(&d->buckets[i]);
    }
    return d;
}

void direct_abort(struct http_direct *d, const char *reason)
{
    struct http_transfer *t;
    while ((t = TAILQ_FIRST(&d->running)) != NULL) {
        direct_remove(t);
        http_transfer_fail(t, HTTP_ERR_ABORTED, reason);
    }
}

struct http_direct *direct_free(struct http_direct *d)
{
    struct direct_conn *conn;
    while (d != NULL && (conn = TAILQ_FIRST(&d->idle)) != NULL) {
        close_idle(conn); /* NOLINT(clang-analyzer-unix.Malloc): as above */
    }
    free(d);
    return NULL;
}

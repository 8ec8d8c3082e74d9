#include "server/connection.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "server/body.h"

/* After the last response, the connection still reads for this long what the client sends. Closing
 * a socket with unread bytes would reset the connection, and the client could lose the end of the
 * response. */
#define LINGER_MS 2000
/* Limit of one page of a source. */
#define PAGE_MAX ((size_t)64 * 1024 * 1024)

enum state {
    IDLE,      /* waits for the next request */
    HEAD,      /* reads the head */
    BODY,      /* reads the body */
    HELD,      /* waits until another thread has made the response */
    ANSWERING, /* sends the response */
    LINGERING, /* has sent the last response, and reads what the client still sends */
};

struct connection {
    const struct connection_options *o;
    struct bufferevent *bev; /* NULL: the connection has ended while it was held */
    enum state state;
    int64_t deadline_ms;
    size_t looked_at; /* bytes of an incomplete head that were searched for its end */
    char *head;       /* the head of the request, followed by its decoded texts */
    struct request request;
    const void *data;    /* data of the caller for this request */
    struct place *place; /* the server's place for this connection */
    struct body body;
    uint64_t counted;                /* bytes of this body that are counted in o->bodies */
    int64_t body_ms;                 /* the time at which the body began */
    bool reads_on;                   /* another request may follow this one */
    bool eof;                        /* the client has closed its side */
    SSL *session;                    /* the TLS session of bev; NULL without TLS */
    bool shaking;                    /* the TLS handshake is not finished */
    atomic_bool hung_up;             /* the client has hung up while the connection was held */
    struct connection_source source; /* next is NULL if there is no further page */
};

const char *connection_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "OK"},
        {202, "Accepted"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Request Entity Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Entity"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == status) {
            return rows[i].text;
        }
    }
    return "Unknown";
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Writes the head of a response. A length below 0 is unknown: the body follows in chunks. */
static void put_head(struct connection *c, const struct connection_answer *a, int64_t length)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    evbuffer_add_printf(out,
                        "HTTP/1.1 %d %s\r\nX-Content-Type-Options: nosniff\r\n"
                        "Cache-Control: no-store\r\n",
                        a->status, connection_status_text(a->status));
    if (a->type != NULL) {
        evbuffer_add_printf(out, "Content-Type: %s\r\n", a->type);
    }
    evbuffer_add(out, c->o->headers.p, c->o->headers.n);
    evbuffer_add(out, a->headers.p, a->headers.n);
    if (!c->reads_on) {
        evbuffer_add_printf(out, "Connection: close\r\n");
    }
    if (length >= 0) {
        evbuffer_add_printf(out, "Content-Length: %lld\r\n", (long long)length);
    } else if (!c->request.is_http_10) {
        evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n");
    }
    evbuffer_add_printf(out, "\r\n");
    c->state = ANSWERING;
    c->deadline_ms = clock_mono_ms() + c->o->answer_ms;
}

static void connection_on_sent(const void *data, size_t n, void *arg)
{
    (void)data;
    (void)n;
    free(arg);
}

static bool has_body(const struct connection *c, int status)
{
    return c->request.method != REQUEST_HEAD && status != 204 && status != 304;
}

void connection_answer(struct connection *c, const struct connection_answer *a)
{
    size_t n = 0;
    char *body = a->body != NULL ? buf_take(a->body, &n) : NULL;
    put_head(c, a, (int64_t)n);
    if (!has_body(c, a->status) || n == 0) {
        free(body);
    } else if (evbuffer_add_reference(bufferevent_get_output(c->bev), body, n, connection_on_sent,
                                      body) != 0) {
        free(body);
        /* ending the connection shows the client that the body is incomplete */
        c->reads_on = false;
    }
}

void connection_reply(struct connection *c, int status, const char *type, struct sv body)
{
    put_head(c, &(struct connection_answer){.status = status, .type = type}, (int64_t)body.n);
    if (has_body(c, status)) {
        evbuffer_add(bufferevent_get_output(c->bev), body.p, body.n);
    }
}

static void end_source(struct connection *c)
{
    if (c->source.next != NULL) {
        c->source.done(c->source.arg);
        c->source.next = NULL;
    }
}

/* Sends the next page. Returns false if memory ran out: the response cannot be completed. */
static bool put_page(struct connection *c)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    bool chunked = !c->request.is_http_10;
    struct buf page;
    buf_init(&page, PAGE_MAX);
    bool more = c->source.next(c->source.arg, &page);
    bool ok = buf_ok(&page);
    if (ok && page.len > 0) {
        ok = (!chunked || evbuffer_add_printf(out, "%zx\r\n", page.len) > 0) &&
             evbuffer_add(out, page.data, page.len) == 0 &&
             (!chunked || evbuffer_add(out, "\r\n", 2) == 0);
    }
    buf_done(&page);
    if (ok && !more) {
        ok = !chunked || evbuffer_add(out, "0\r\n\r\n", 5) == 0;
        end_source(c);
    }
    return ok;
}

void connection_stream(struct connection *c, const char *type, struct connection_source source)
{
    c->source = source;
    put_head(c, &(struct connection_answer){.status = 200, .type = type}, -1);
    if (c->request.method == REQUEST_HEAD) {
        end_source(c);
    }
}

/* Answers that the request is refused. The rest of the request is not read. */
static void refuse(struct connection *c, enum connection_refusal why, int status)
{
    c->reads_on = false;
    c->o->on_refusal(c->o->arg, c, c->head == NULL ? NULL : &c->request, why, status);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void forget_body(struct connection *c)
{
    c->o->bodies->now -= c->counted;
    c->counted = 0;
    body_done(&c->body);
}

static void forget_request(struct connection *c)
{
    forget_body(c);
    free(c->head);
    c->head = NULL;
    c->request = (struct request){.method = REQUEST_GET};
    c->data = NULL;
    c->looked_at = 0;
}

struct sv connection_body(const struct connection *c)
{
    return (struct sv){.p = c->body.content.data, .n = c->body.content.len};
}

void connection_set_data(struct connection *c, const void *data)
{
    c->data = data;
}

const SSL *connection_tls(const struct connection *c)
{
    return c->session;
}

const void *connection_data(const struct connection *c)
{
    return c->data;
}

/* Counts the bytes of the body that have arrived. Returns false if all bodies together have reached
 * their limit. */
static bool count_body(struct connection *c)
{
    uint64_t n = c->body.content.len;
    c->o->bodies->now += n - c->counted;
    c->counted = n;
    c->deadline_ms = c->body_ms + c->o->request_ms + (int64_t)(n * MS_PER_S / CONNECTION_BODY_RATE);
    return c->o->bodies->now <= c->o->bodies->max;
}

static void finish_body(struct connection *c, enum body_state state)
{
    static const struct {
        enum connection_refusal why;
        int status;
    } rows[] = {
        [BODY_BAD] = {REFUSED_MALFORMED, 400},
        [BODY_LARGE] = {REFUSED_LARGE_BODY, 413},
        [BODY_NO_MEMORY] = {REFUSED_NO_ROOM, 503},
    };
    if (state == BODY_WHOLE) {
        c->reads_on = c->request.keeps_alive && !c->eof;
        c->o->on_body(c->o->arg, c, &c->request);
    } else {
        forget_body(c);
        refuse(c, rows[state].why, rows[state].status);
    }
}

static void read_body(struct connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    enum body_state state = BODY_MORE;
    while (state == BODY_MORE && evbuffer_get_length(in) > 0) {
        size_t n = evbuffer_get_length(in);
        const char *data = (const char *)evbuffer_pullup(in, -1);
        size_t used = 0;
        state = data == NULL ? BODY_NO_MEMORY
                             : body_take(&c->body, (struct sv){.p = data, .n = n}, &used);
        evbuffer_drain(in, used);
    }
    if (!count_body(c)) {
        state = BODY_NO_MEMORY;
    }
    if (state != BODY_MORE) {
        finish_body(c, state);
    }
}

void connection_read_body(struct connection *c, size_t max)
{
    const struct request *r = &c->request;
    if (!r->is_chunked && r->body_length > max) {
        refuse(c, REFUSED_LARGE_BODY, 413);
        return;
    }
    c->state = BODY;
    c->body_ms = clock_mono_ms();
    c->deadline_ms = c->body_ms + c->o->request_ms;
    body_init(&c->body, r, max);
    if (!r->is_chunked && r->body_length == 0) {
        finish_body(c, BODY_WHOLE);
        return;
    }
    if (r->awaits_continue && evbuffer_get_length(bufferevent_get_input(c->bev)) == 0) {
        evbuffer_add_printf(bufferevent_get_output(c->bev), "HTTP/1.1 100 Continue\r\n\r\n");
    }
    read_body(c);
}

void connection_hold(struct connection *c)
{
    c->state = HELD;
    c->deadline_ms = INT64_MAX;
}

bool connection_resume(struct connection *c)
{
    if (c->bev == NULL) {
        forget_request(c);
        free(c);
        return false;
    }
    return true;
}

const atomic_bool *connection_cancelled(const struct connection *c)
{
    return &c->hung_up;
}

/* Takes a complete head from the input. */
static void take_head(struct connection *c, size_t length)
{
    /* The allocation holds the head, and as many bytes for the texts decoded from it. */
    c->head = malloc(2 * length);
    c->reads_on = false;
    if (c->head == NULL) {
        refuse(c, REFUSED_NO_ROOM, 503);
        return;
    }
    evbuffer_remove(bufferevent_get_input(c->bev), c->head, length);
    int status =
        request_parse((struct sv){.p = c->head, .n = length}, c->head + length, &c->request);
    if (status != 0) {
        refuse(c, REFUSED_MALFORMED, status);
        return;
    }
    /* The bytes of a body that is not read would be taken for the next request. */
    c->reads_on =
        c->request.keeps_alive && !c->eof && !c->request.is_chunked && c->request.body_length == 0;
    c->o->on_request(c->o->arg, c, &c->request);
}

static void read_head(struct connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n = evbuffer_get_length(in);
    if (c->state == IDLE && n > 0) {
        c->state = HEAD;
        c->deadline_ms = clock_mono_ms() + c->o->request_ms;
    }
    const char *data = (const char *)evbuffer_pullup(in, -1);
    size_t length =
        data == NULL ? 0 : request_head_length((struct sv){.p = data, .n = n}, c->looked_at);
    c->looked_at = n;
    if (length > REQUEST_HEAD_MAX || (length == 0 && n >= REQUEST_HEAD_MAX)) {
        refuse(c, REFUSED_MALFORMED, 431);
    } else if (length > 0) {
        take_head(c, length);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static void linger(struct connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    c->state = LINGERING;
    c->deadline_ms = clock_mono_ms() + LINGER_MS;
    evbuffer_drain(in, evbuffer_get_length(in));
    if (c->session != NULL) {
        SSL_shutdown(c->session);
        ERR_clear_error();
    }
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
}

/* Bytes that arrive after a request (pipelining) stay in the input buffer until its response is
 * sent, as far as there is room; bytes after the last request are discarded. */
static void connection_on_read(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    if (c->state == IDLE || c->state == HEAD) {
        read_head(c);
    } else if (c->state == BODY) {
        read_body(c);
    }
    if (c->state == LINGERING || (c->state == ANSWERING && !c->reads_on)) {
        evbuffer_drain(in, evbuffer_get_length(in));
    }
}

/* Continues after a response was sent: waits for the next request, or reads it if it has arrived
 * already. */
static void go_on(struct connection *c)
{
    if (!c->reads_on) {
        linger(c);
        return;
    }
    forget_request(c);
    c->state = IDLE;
    c->deadline_ms = clock_mono_ms() + c->o->idle_ms;
    connection_on_read(c->bev, c);
    if (c->eof && (c->state == IDLE || c->state == HEAD || c->state == BODY)) {
        connection_end(c, CONNECTION_DONE);
    }
}

/* Called when all output has been sent. */
static void connection_on_write(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    struct evbuffer *out = bufferevent_get_output(bev);
    bool ok = true;
    if (c->state != ANSWERING) {
        return;
    }
    while (ok && c->source.next != NULL && evbuffer_get_length(out) == 0) {
        ok = put_page(c);
    }
    if (!ok || (c->eof && !c->reads_on && evbuffer_get_length(out) == 0)) {
        connection_end(c, CONNECTION_DONE);
    } else if (evbuffer_get_length(out) == 0) {
        go_on(c);
    }
}

/* Called when the client has closed its side of the connection, or the connection is broken. A
 * client may close its side after its request, and then only writing to it shows whether it still
 * reads. While a request is being worked on, a client that closes its side counts as one that has
 * hung up. */
static void connection_on_event(struct bufferevent *bev, short what, void *arg)
{
    struct connection *c = arg;
    bool waits = c->state == ANSWERING || c->state == HELD;
    if ((what & BEV_EVENT_CONNECTED) != 0) {
        c->shaking = false;
        return;
    }
    ERR_clear_error();
    if ((what & BEV_EVENT_EOF) != 0 && waits) {
        c->eof = true;
        bufferevent_disable(bev, EV_READ);
        atomic_store(&c->hung_up, c->state == HELD);
    } else {
        connection_end(c, c->shaking ? CONNECTION_TLS : CONNECTION_DONE);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Makes the bufferevent of a connection. Returns NULL if out of memory; then the socket and the
 * session are freed. */
static struct bufferevent *open_events(const struct connection_options *o, int fd, SSL *session)
{
    struct bufferevent *bev =
        session == NULL
            ? bufferevent_socket_new(o->base, fd, BEV_OPT_CLOSE_ON_FREE)
            : bufferevent_openssl_socket_new(o->base, fd, session, BUFFEREVENT_SSL_ACCEPTING,
                                             BEV_OPT_CLOSE_ON_FREE);
    if (bev == NULL) {
        SSL_free(session);
        evutil_closesocket(fd);
    } else if (session != NULL) {
        /* HTTP frames its messages itself, so a TLS connection may end without close_notify. */
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    }
    return bev;
}

struct connection *connection_new(const struct connection_options *o, int fd, SSL *session)
{
    struct bufferevent *bev = open_events(o, fd, session);
    struct connection *c = bev == NULL ? NULL : calloc(1, sizeof(*c));
    if (c == NULL) {
        if (bev != NULL) {
            bufferevent_free(bev);
        }
        return NULL;
    }
    c->session = session;
    c->shaking = session != NULL;
    /* Each response is written at once, and its last packet must not wait for the client's
     * acknowledgement (Nagle's algorithm). */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    c->o = o;
    c->bev = bev;
    c->state = HEAD;
    c->deadline_ms = clock_mono_ms() + o->request_ms;
    buf_init(&c->body.content, 0);
    atomic_init(&c->hung_up, false);
    bufferevent_setcb(bev, connection_on_read, connection_on_write, connection_on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, 2 * REQUEST_HEAD_MAX);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    return c;
}

struct connection *connection_free(struct connection *c)
{
    if (c == NULL) {
        return NULL;
    }
    end_source(c);
    bufferevent_free(c->bev);
    c->bev = NULL;
    if (c->state == HELD) {
        atomic_store(&c->hung_up, true);
    } else {
        forget_request(c);
        free(c);
    }
    return NULL;
}

void connection_set_place(struct connection *c, struct place *place)
{
    c->place = place;
}

struct place *connection_place(const struct connection *c)
{
    return c->place;
}

void connection_end(struct connection *c, enum connection_end why)
{
    c->o->on_end(c->o->arg, c, why);
    connection_free(c);
}

void connection_check_time(struct connection *c, int64_t now_ms)
{
    static const enum connection_end ends[] = {
        [IDLE] = CONNECTION_IDLE,        [HEAD] = CONNECTION_SLOW_REQUEST,
        [HELD] = CONNECTION_SLOW_ANSWER, [ANSWERING] = CONNECTION_SLOW_ANSWER,
        [LINGERING] = CONNECTION_DONE,
    };
    if (now_ms < c->deadline_ms) {
        return;
    }
    if (c->state == BODY) {
        forget_body(c);
        refuse(c, REFUSED_SLOW_BODY, 408);
    } else {
        connection_end(c, ends[c->state]);
    }
}

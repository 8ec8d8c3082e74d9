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
#include "server/connection_private.h"
#include "server/http2.h"
#include "server/http2_stream.h"
#include "server/tls.h"

/* After the last response, the connection still reads for this long what the client sends. Closing
 * a socket with unread bytes would reset the connection, and the client could lose the end of the
 * response. */
#define LINGER_MS 2000
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

/* Writes the header that announces trailers: the names of their lines. */
static void put_trailer_names(struct evbuffer *out, struct sv lines)
{
    const char *before = "Trailer: ";
    struct sv line;
    struct sv name;
    struct sv value;
    while (sv_cut(lines, '\n', &line, &lines)) {
        if (sv_cut(line, ':', &name, &value)) {
            evbuffer_add_printf(out, "%s%.*s", before, SV_ARG(name));
            before = ", ";
        }
    }
    evbuffer_add(out, "\r\n", 2);
}

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
        if (a->trailers.n > 0) {
            put_trailer_names(out, a->trailers);
        }
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

bool connection_has_body(const struct connection *c, int status)
{
    return c->request.method != REQUEST_HEAD && status != 204 && status != 304;
}

/* Writes a body, which is freed after it is sent. Returns false if out of memory. */
static bool put_body(struct evbuffer *out, char *body, size_t n)
{
    if (n > 0 && evbuffer_add_reference(out, body, n, connection_on_sent, body) == 0) {
        return true;
    }
    free(body);
    return n == 0;
}

/* Writes a body as one chunk, with the trailers after the last chunk (RFC 9112, 7.1). Takes the
 * body as put_body() does. */
static bool put_chunks(struct evbuffer *out, char *body, size_t n, struct sv trailers)
{
    if (n > 0 && evbuffer_add_printf(out, "%zx\r\n", n) < 0) {
        free(body);
        return false;
    }
    return put_body(out, body, n) &&
           evbuffer_add_printf(out, "%s0\r\n%.*s\r\n", n > 0 ? "\r\n" : "", SV_ARG(trailers)) > 0;
}

void connection_answer(struct connection *c, const struct connection_answer *a)
{
    if (c->stream != NULL) {
        http2_stream_answer(c->stream, a);
        return;
    }
    size_t n = 0;
    char *body = a->body != NULL ? buf_take(a->body, &n) : NULL;
    struct evbuffer *out = bufferevent_get_output(c->bev);
    bool has_body = connection_has_body(c, a->status);
    bool chunked = has_body && a->trailers.n > 0 && !c->request.is_http_10;
    put_head(c, a, chunked ? -1 : (int64_t)n);
    if (!has_body) {
        free(body);
    } else if (!(chunked ? put_chunks(out, body, n, a->trailers) : put_body(out, body, n))) {
        /* ending the connection shows the client that the body is incomplete */
        c->reads_on = false;
    }
}

void connection_reply(struct connection *c, int status, const char *type, struct sv body)
{
    if (c->stream != NULL) {
        http2_stream_reply(c->stream, status, type, body);
        return;
    }
    put_head(c, &(struct connection_answer){.status = status, .type = type}, (int64_t)body.n);
    if (connection_has_body(c, status)) {
        evbuffer_add(bufferevent_get_output(c->bev), body.p, body.n);
    }
}

void connection_end_source(struct connection *c)
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
    buf_init(&page, CONNECTION_PAGE_MAX);
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
        connection_end_source(c);
    }
    return ok;
}

void connection_stream(struct connection *c, const char *type, struct connection_source source)
{
    if (c->stream != NULL) {
        http2_stream_pages(c->stream, type, source);
        return;
    }
    c->source = source;
    put_head(c, &(struct connection_answer){.status = 200, .type = type}, -1);
    if (c->request.method == REQUEST_HEAD) {
        connection_end_source(c);
    }
}

/* Answers that the request is refused. The rest of the request is not read. */
void connection_refuse(struct connection *c, enum connection_refusal why, int status)
{
    c->reads_on = false;
    c->o->on_refusal(c->o->arg, c, c->head == NULL ? NULL : &c->request, why, status);
}

/* ---- requests -------------------------------------------------------------------------------- */

void connection_forget_body(struct connection *c)
{
    c->o->bodies->now -= c->counted;
    c->counted = 0;
    body_done(&c->body);
}

void connection_forget_request(struct connection *c)
{
    connection_forget_body(c);
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

const struct request *connection_request(const struct connection *c)
{
    return c->head == NULL ? NULL : &c->request;
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
bool connection_count_body(struct connection *c)
{
    uint64_t n = c->body.content.len;
    c->o->bodies->now += n - c->counted;
    c->counted = n;
    c->deadline_ms = c->body_ms + c->o->request_ms + (int64_t)(n * MS_PER_S / CONNECTION_BODY_RATE);
    return c->o->bodies->now <= c->o->bodies->max;
}

void connection_finish_body(struct connection *c, enum body_state state)
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
        connection_forget_body(c);
        connection_refuse(c, rows[state].why, rows[state].status);
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
    if (!connection_count_body(c)) {
        state = BODY_NO_MEMORY;
    }
    if (state != BODY_MORE) {
        connection_finish_body(c, state);
    }
}

void connection_read_body(struct connection *c, size_t max)
{
    const struct request *r = &c->request;
    if (c->stream != NULL) {
        http2_stream_read_body(c->stream, max);
        return;
    }
    if (!r->is_chunked && r->body_length > max) {
        connection_refuse(c, REFUSED_LARGE_BODY, 413);
        return;
    }
    c->state = BODY;
    c->body_ms = clock_mono_ms();
    c->deadline_ms = c->body_ms + c->o->request_ms;
    body_init(&c->body, r, max);
    if (!r->is_chunked && r->body_length == 0) {
        connection_finish_body(c, BODY_WHOLE);
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
    if (c->stream != NULL) {
        return http2_stream_resume(c->stream);
    }
    if (c->bev == NULL) {
        connection_forget_request(c);
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
    c->begun = true;
    if (c->head == NULL) {
        connection_refuse(c, REFUSED_NO_ROOM, 503);
        return;
    }
    evbuffer_remove(bufferevent_get_input(c->bev), c->head, length);
    int status =
        request_parse((struct sv){.p = c->head, .n = length}, c->head + length, &c->request);
    if (status != 0) {
        connection_refuse(c, REFUSED_MALFORMED, status);
        return;
    }
    /* The bytes of a body that is not read would be taken for the next request. */
    c->reads_on =
        c->request.keeps_alive && !c->eof && !c->request.is_chunked && c->request.body_length == 0;
    c->o->on_request(c->o->arg, c, &c->request);
}

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

/* ---- HTTP/2 ---------------------------------------------------------------------------------- */

/* Moves what is to be sent to the output of the socket. The end of the connection is noticed when
 * that has been sent, or by the timer. */
static void connection_on_frames(void *arg)
{
    struct connection *c = arg;
    http2_write(c->http2, bufferevent_get_output(c->bev));
}

/* Ends a connection of HTTP/2 when nothing is left to be read or sent. */
static void end_streams(struct connection *c)
{
    if (http2_is_done(c->http2) && evbuffer_get_length(bufferevent_get_output(c->bev)) == 0) {
        c->why = http2_why(c->http2);
        linger(c);
    }
}

static void read_frames(struct connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n = evbuffer_get_length(in);
    const char *data = n == 0 ? NULL : (const char *)evbuffer_pullup(in, -1);
    if (data != NULL) {
        http2_read(c->http2, (struct sv){.p = data, .n = n});
    }
    evbuffer_drain(in, n);
    http2_write(c->http2, bufferevent_get_output(c->bev));
    end_streams(c);
}

/* Begins HTTP/2. Returns false if memory is short. */
static bool begin_streams(struct connection *c)
{
    c->http2 = http2_new(c, connection_on_frames, c);
    if (c->http2 == NULL) {
        return false;
    }
    c->state = STREAMING;
    c->begun = true;
    /* Output is made while the client reads, so that much of a response does not wait here. */
    bufferevent_setwatermark(c->bev, EV_WRITE, HTTP2_OUTPUT_MAX / 2, 0);
    return true;
}

enum preface { PREFACE_NONE, PREFACE_PART, PREFACE_WHOLE };

/* Looks for the preface of HTTP/2 (RFC 9113, 3.4) at the start of a connection. With TLS, ALPN
 * alone decides. */
static enum preface preface_of(const struct connection *c, struct sv data)
{
    struct sv magic = http2_preface();
    if (c->begun || c->session != NULL || data.n == 0) {
        return PREFACE_NONE;
    }
    if (data.n < magic.n) {
        magic.n = data.n;
        return sv_starts_with(data, magic) ? PREFACE_PART : PREFACE_NONE;
    }
    return sv_starts_with(data, magic) ? PREFACE_WHOLE : PREFACE_NONE;
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
    enum preface preface =
        data == NULL ? PREFACE_NONE : preface_of(c, (struct sv){.p = data, .n = n});
    if (preface == PREFACE_WHOLE && begin_streams(c)) {
        read_frames(c);
    }
    if (preface != PREFACE_NONE) {
        return;
    }
    size_t length =
        data == NULL ? 0 : request_head_length((struct sv){.p = data, .n = n}, c->looked_at);
    c->looked_at = n;
    if (length > REQUEST_HEAD_MAX || (length == 0 && n >= REQUEST_HEAD_MAX)) {
        connection_refuse(c, REFUSED_MALFORMED, 431);
    } else if (length > 0) {
        take_head(c, length);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

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
    } else if (c->state == STREAMING) {
        read_frames(c);
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
    connection_forget_request(c);
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
    if (c->state == STREAMING) {
        http2_write(c->http2, out);
        end_streams(c);
    }
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
        if (tls_chose_http2(c->session) && !begin_streams(c)) {
            connection_end(c, CONNECTION_DONE);
        }
        return;
    }
    ERR_clear_error();
    if ((what & BEV_EVENT_EOF) != 0 && waits) {
        c->eof = true;
        bufferevent_disable(bev, EV_READ);
        atomic_store(&c->hung_up, c->state == HELD);
    } else {
        connection_end(c, c->shaking ? CONNECTION_TLS : c->why);
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

void connection_init(struct connection *c, const struct connection_options *o)
{
    c->o = o;
    c->state = HEAD;
    c->deadline_ms = clock_mono_ms() + o->request_ms;
    c->why = CONNECTION_DONE;
    buf_init(&c->body.content, 0);
    atomic_init(&c->hung_up, false);
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
    connection_init(c, o);
    c->bev = bev;
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
    connection_end_source(c);
    c->http2 = http2_free(c->http2);
    bufferevent_free(c->bev);
    c->bev = NULL;
    if (c->state == HELD) {
        atomic_store(&c->hung_up, true);
    } else {
        connection_forget_request(c);
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

/* Checks the time limits of the streams, and ends the connection when all is said. */
static void check_streams(struct connection *c, int64_t now_ms)
{
    http2_check_time(c->http2, now_ms);
    http2_write(c->http2, bufferevent_get_output(c->bev));
    if (http2_is_stuck(c->http2, now_ms)) {
        connection_end(c, http2_why(c->http2));
    } else {
        end_streams(c);
    }
}

void connection_check_time(struct connection *c, int64_t now_ms)
{
    static const enum connection_end ends[] = {
        [IDLE] = CONNECTION_IDLE,
        [HEAD] = CONNECTION_SLOW_REQUEST,
        [HELD] = CONNECTION_SLOW_ANSWER,
        [ANSWERING] = CONNECTION_SLOW_ANSWER,
    };
    if (c->state == STREAMING) {
        check_streams(c, now_ms);
    } else if (now_ms < c->deadline_ms) {
        return;
    } else if (c->state == BODY) {
        connection_forget_body(c);
        connection_refuse(c, REFUSED_SLOW_BODY, 408);
    } else {
        connection_end(c, c->state == LINGERING ? c->why : ends[c->state]);
    }
}

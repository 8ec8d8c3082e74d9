#include "server/connection.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"

/* After the answer: how long to read what the client still sends. Closing with unread bytes would
 * reset the connection, and the client could lose the end of the answer. */
#define LINGER_MS 2000
/* A page of a source, at most. */
#define PAGE_MAX ((size_t)64 * 1024 * 1024)

enum state { READING, ANSWERING, LINGERING };

struct connection {
    const struct connection_options *o;
    struct bufferevent *bev;
    enum state state;
    int64_t deadline_ms;
    size_t looked_at; /* bytes of an unfinished head */
    enum request_method method;
    bool chunked;
    bool eof;                        /* the client has closed its side */
    struct connection_source source; /* next is NULL if there is no further page */
};

static const char *status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {404, "Not Found"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == status) {
            return rows[i].text;
        }
    }
    return "Unknown";
}

/* ---- answers --------------------------------------------------------------------------------- */

/* length < 0: unknown, in chunks. */
static void put_head(struct connection *c, int status, const char *type, int64_t length)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    evbuffer_add_printf(out,
                        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nX-Content-Type-Options: nosniff\r\n"
                        "Cache-Control: no-store\r\nConnection: close\r\n",
                        status, status_text(status), type);
    if (length >= 0) {
        evbuffer_add_printf(out, "Content-Length: %lld\r\n", (long long)length);
    } else if (c->chunked) {
        evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n");
    }
    evbuffer_add_printf(out, "\r\n");
    c->state = ANSWERING;
    c->deadline_ms = clock_mono_ms() + c->o->answer_ms;
}

void connection_reply(struct connection *c, int status, const char *type, struct sv body)
{
    put_head(c, status, type, (int64_t)body.n);
    if (c->method != REQUEST_HEAD) {
        evbuffer_add(bufferevent_get_output(c->bev), body.p, body.n);
    }
}

static void reply_line(struct connection *c, int status)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%s\n", status_text(status));
    connection_reply(c, status, "text/plain; charset=utf-8", (struct sv){text, (size_t)n});
}

static void end_source(struct connection *c)
{
    if (c->source.next != NULL) {
        c->source.done(c->source.arg);
        c->source.next = NULL;
    }
}

/* Sends the next page. False if out of memory: the answer cannot be finished. */
static bool put_page(struct connection *c)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    struct buf page;
    buf_init(&page, PAGE_MAX);
    bool more = c->source.next(c->source.arg, &page);
    bool ok = buf_ok(&page);
    if (ok && page.len > 0) {
        ok = (!c->chunked || evbuffer_add_printf(out, "%zx\r\n", page.len) > 0) &&
             evbuffer_add(out, page.data, page.len) == 0 &&
             (!c->chunked || evbuffer_add(out, "\r\n", 2) == 0);
    }
    buf_done(&page);
    if (ok && !more) {
        ok = !c->chunked || evbuffer_add(out, "0\r\n\r\n", 5) == 0;
        end_source(c);
    }
    return ok;
}

void connection_stream(struct connection *c, const char *type, struct connection_source source)
{
    c->source = source;
    put_head(c, 200, type, -1);
    if (c->method == REQUEST_HEAD) {
        end_source(c);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static void linger(struct connection *c)
{
    c->state = LINGERING;
    c->deadline_ms = clock_mono_ms() + LINGER_MS;
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
}

/* All that was put has been sent. */
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
    if (!ok || (c->eof && evbuffer_get_length(out) == 0)) {
        connection_end(c, CONNECTION_DONE);
    } else if (evbuffer_get_length(out) == 0) {
        linger(c);
    }
}

static void answer(struct connection *c, size_t length)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct request r;
    char *head = (char *)evbuffer_pullup(in, (ev_ssize_t)length);
    if (head == NULL || !request_parse(head, length, &r)) {
        reply_line(c, 400);
        return;
    }
    c->method = r.method;
    c->chunked = !r.is_http_10;
    if (r.method == REQUEST_OTHER) {
        reply_line(c, 501);
    } else {
        c->o->on_request(c->o->arg, c, &r);
    }
}

static void read_head(struct connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n = evbuffer_get_length(in);
    const char *data = (const char *)evbuffer_pullup(in, -1);
    size_t length =
        data == NULL ? 0 : request_head_length((struct sv){.p = data, .n = n}, c->looked_at);
    c->looked_at = n;
    if (length > REQUEST_HEAD_MAX || (length == 0 && n >= REQUEST_HEAD_MAX)) {
        reply_line(c, 431);
    } else if (length > 0) {
        answer(c, length);
    }
}

/* What comes after the head is thrown away. */
static void connection_on_read(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    if (c->state == READING) {
        read_head(c);
    }
    if (c->state != READING) {
        evbuffer_drain(in, evbuffer_get_length(in));
    }
}

/* The client has closed its side, or the connection is broken. A client may close its side once it
 * has asked, so that only writing shows whether it is there. */
static void connection_on_event(struct bufferevent *bev, short what, void *arg)
{
    struct connection *c = arg;
    if ((what & BEV_EVENT_EOF) != 0 && c->state == ANSWERING) {
        c->eof = true;
        bufferevent_disable(bev, EV_READ);
    } else {
        connection_end(c, CONNECTION_DONE);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct connection *connection_new(const struct connection_options *o, int fd)
{
    struct connection *c = calloc(1, sizeof(*c));
    struct bufferevent *bev = bufferevent_socket_new(o->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (c == NULL || bev == NULL) {
        if (bev != NULL) {
            bufferevent_free(bev);
        } else {
            evutil_closesocket(fd);
        }
        free(c);
        return NULL;
    }
    c->o = o;
    c->bev = bev;
    c->state = READING;
    c->deadline_ms = clock_mono_ms() + o->request_ms;
    bufferevent_setcb(bev, connection_on_read, connection_on_write, connection_on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, 2 * REQUEST_HEAD_MAX);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    return c;
}

struct connection *connection_free(struct connection *c)
{
    if (c != NULL) {
        end_source(c);
        bufferevent_free(c->bev);
        free(c);
    }
    return NULL;
}

void connection_end(struct connection *c, enum connection_end why)
{
    c->o->on_end(c->o->arg, c, why);
    connection_free(c);
}

void connection_check_time(struct connection *c, int64_t now_ms)
{
    static const enum connection_end ends[] = {
        [READING] = CONNECTION_SLOW_REQUEST,
        [ANSWERING] = CONNECTION_SLOW_ANSWER,
        [LINGERING] = CONNECTION_DONE,
    };
    if (now_ms >= c->deadline_ms) {
        connection_end(c, ends[c->state]);
    }
}

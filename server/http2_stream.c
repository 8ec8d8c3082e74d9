#include "server/http2_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "server/http2.h"

/* Headers that a response can have. */
#define HEADERS_MAX 64
/* Limit of the headers of a response, in bytes. */
#define LINES_MAX ((size_t)64 * 1024)
/* Each header counts as this much more than its bytes (RFC 9113, 6.5.2). */
#define HEADER_OVERHEAD 32
/* After its time, a stream is reset. If the client does not even read that within this time, the
 * connection ends. */
#define RESET_MS 2000

static void limit(struct http2_stream *s, int64_t deadline_ms)
{
    s->connection.deadline_ms = deadline_ms;
    if (s->link != NULL && deadline_ms < s->link->check_ms) {
        s->link->check_ms = deadline_ms;
    }
}

/* Has the frames sent that a function of connection.h has made. */
static void push_output(const struct http2_stream *s)
{
    if (!s->link->busy) {
        s->link->on_output(s->link->arg);
    }
}

static void reset(struct http2_stream *s, uint32_t code)
{
    nghttp2_submit_rst_stream(s->link->session, NGHTTP2_FLAG_NONE, s->id, code);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct http2_stream *http2_stream_new(struct http2_link *link, int32_t id)
{
    const struct connection *owner = link->owner;
    struct http2_stream *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    connection_init(&s->connection, owner->o);
    s->connection.stream = s;
    s->connection.place = owner->place;
    s->connection.session = owner->session;
    s->link = link;
    s->id = id;
    buf_init(&s->method, REQUEST_HEAD_MAX);
    buf_init(&s->path, REQUEST_HEAD_MAX);
    buf_init(&s->lines, 2 * REQUEST_HEAD_MAX);
    buf_init(&s->early, (size_t)HTTP2_STREAM_WINDOW);
    buf_init(&s->trailers, LINES_MAX);
    limit(s, s->connection.deadline_ms);
    TAILQ_INSERT_TAIL(&link->streams, s, next);
    link->n++;
    link->open++;
    owner->o->streams->now++;
    return s;
}

static void forget_head(struct http2_stream *s)
{
    buf_done(&s->method);
    buf_done(&s->path);
    buf_done(&s->lines);
}

static void forget_answer(struct http2_stream *s)
{
    if (s->link != NULL) {
        s->link->unread -= s->answer_bytes - s->answer_sent;
    }
    free(s->answer);
    s->answer = NULL;
    s->answer_bytes = 0;
    s->answer_sent = 0;
}

/* Forgets content that came before its request was let in, and opens the window of the connection
 * for others. */
static void forget_early(struct http2_stream *s)
{
    if (s->link != NULL && s->early.len > 0) {
        nghttp2_session_consume_connection(s->link->session, s->early.len);
    }
    buf_done(&s->early);
}

static void leave_link(struct http2_stream *s)
{
    TAILQ_REMOVE(&s->link->streams, s, next);
    s->link->n--;
    s->link = NULL;
}

static void free_stream(struct http2_stream *s)
{
    connection_end_source(&s->connection);
    connection_forget_request(&s->connection);
    forget_head(s);
    forget_answer(s);
    forget_early(s);
    buf_done(&s->trailers);
    s->connection.o->streams->now--;
    if (s->link != NULL) {
        leave_link(s);
    }
    free(s);
}

void http2_stream_close(struct http2_stream *s, enum connection_stream_end how)
{
    const struct connection_options *o = s->connection.o;
    o->on_stream_end(o->arg, how);
    s->link->open--;
    s->closed = true;
    if (s->connection.state == HELD) {
        atomic_store(&s->connection.hung_up, true);
    } else {
        free_stream(s);
    }
}

void http2_stream_cut(struct http2_stream *s)
{
    const struct connection_options *o = s->connection.o;
    if (!s->closed) {
        o->on_stream_end(o->arg, s->sent ? STREAM_DONE : STREAM_CUT);
        s->link->open--;
    }
    if (s->connection.state == HELD) {
        atomic_store(&s->connection.hung_up, true);
        leave_link(s);
    } else {
        free_stream(s);
    }
}

bool http2_stream_resume(struct http2_stream *s)
{
    if (s->link != NULL && !s->closed) {
        return true;
    }
    free_stream(s);
    return false;
}

/* ---- the request ----------------------------------------------------------------------------- */

void http2_stream_header(struct http2_stream *s, struct sv name, struct sv value)
{
    s->head_bytes += name.n + value.n + HEADER_OVERHEAD;
    if (s->head_bytes > REQUEST_HEAD_MAX) {
        forget_head(s);
    } else if (sv_eq(name, SV(":method"))) {
        buf_append(&s->method, value.p, value.n);
    } else if (sv_eq(name, SV(":path"))) {
        buf_append(&s->path, value.p, value.n);
    } else if (sv_eq(name, SV(":authority"))) {
        buf_printf(&s->lines, "host: %.*s\r\n", SV_ARG(value));
    } else if (name.p[0] != ':') {
        buf_printf(&s->lines, "%.*s: %.*s\r\n", SV_ARG(name), SV_ARG(value));
    }
}

/* Writes the head as HTTP/1 has it, so that one parser decides what a request means. */
static bool write_head(struct http2_stream *s)
{
    struct buf head;
    buf_init(&head, 4 * REQUEST_HEAD_MAX);
    buf_printf(&head, "%s %s HTTP/1.1\r\n%s\r\n", s->method.data, s->path.data, s->lines.data);
    bool ok = buf_ok(&head) && buf_ok(&s->method) && buf_ok(&s->path) && buf_ok(&s->lines);
    size_t n = head.len;
    /* The second half is for the texts decoded from the head. */
    char *text = ok ? malloc(2 * n) : NULL;
    if (text != NULL) {
        memcpy(text, head.data, n);
        s->connection.head = text;
        s->connection.request.headers = (struct sv){.p = text, .n = n};
    }
    buf_done(&head);
    forget_head(s);
    return text != NULL;
}

bool http2_stream_request(struct http2_stream *s)
{
    struct connection *c = &s->connection;
    if (s->head_bytes > REQUEST_HEAD_MAX) {
        connection_refuse(c, REFUSED_MALFORMED, 431);
        return false;
    }
    if (!write_head(s)) {
        connection_refuse(c, REFUSED_NO_ROOM, 503);
        return true;
    }
    struct sv head = c->request.headers;
    int status = request_parse(head, c->head + head.n, &c->request);
    if (status != 0) {
        connection_refuse(c, REFUSED_MALFORMED, status);
        return false;
    }
    c->o->on_request(c->o->arg, c, &c->request);
    return true;
}

/* Takes bytes of the body, and lets the client send as many more. */
static void take_body(struct http2_stream *s, struct sv data)
{
    struct connection *c = &s->connection;
    size_t used = 0;
    enum body_state state = data.n == 0 ? BODY_MORE : body_take(&c->body, data, &used);
    nghttp2_session_consume(s->link->session, s->id, data.n);
    if (!connection_count_body(c)) {
        state = BODY_NO_MEMORY;
    }
    limit(s, c->deadline_ms);
    if (state == BODY_MORE && s->request_ends) {
        state = BODY_WHOLE;
    }
    if (state != BODY_MORE) {
        connection_finish_body(c, state);
    }
}

void http2_stream_data(struct http2_stream *s, struct sv data)
{
    switch (s->connection.state) {
    case BODY:
        take_body(s, data);
        break;
    case HEAD:
    case HELD:
        /* The window bounds it: the client may send more when the body is read. */
        buf_append(&s->early, data.p, data.n);
        break;
    default:
        nghttp2_session_consume_connection(s->link->session, data.n);
        break;
    }
}

void http2_stream_end(struct http2_stream *s)
{
    s->request_ends = true;
    if (s->connection.state == BODY) {
        take_body(s, SV(""));
    }
}

void http2_stream_read_body(struct http2_stream *s, size_t max)
{
    struct connection *c = &s->connection;
    const struct request *r = &c->request;
    struct http2_link *link = s->link;
    if (r->body_length > max) {
        connection_refuse(c, REFUSED_LARGE_BODY, 413);
        return;
    }
    if (!buf_ok(&s->early)) {
        connection_refuse(c, REFUSED_NO_ROOM, 503);
        return;
    }
    struct buf early = s->early;
    buf_init(&s->early, (size_t)HTTP2_STREAM_WINDOW);
    c->state = BODY;
    c->body_ms = clock_mono_ms();
    body_init_open(&c->body, max);
    if (r->awaits_continue && early.len == 0 && !s->request_ends) {
        static uint8_t name[] = ":status";
        static uint8_t value[] = "100";
        nghttp2_nv interim = {.name = name, .value = value, .namelen = 7, .valuelen = 3};
        nghttp2_submit_headers(s->link->session, NGHTTP2_FLAG_NONE, s->id, NULL, &interim, 1, NULL);
    }
    take_body(s, (struct sv){.p = early.data, .n = early.len});
    buf_done(&early);
    /* The client may wait for room in the windows. The stream may be gone by now. */
    if (!link->busy) {
        link->on_output(link->arg);
    }
}

/* ---- the response ---------------------------------------------------------------------------- */

/* Appends "Name: value\r\n" lines with their names in lower case, as HTTP/2 requires. */
static void add_lines(struct buf *out, struct sv lines)
{
    struct sv name;
    struct sv value;
    while (request_next_header(&lines, &name, &value)) {
        for (size_t i = 0; i < name.n; i++) {
            buf_putc(out, ascii_lower(name.p[i]));
        }
        buf_printf(out, ": %.*s\r\n", SV_ARG(value));
    }
}

static nghttp2_nv pair(struct sv name, struct sv value)
{
    /* libnghttp2 copies both. */
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
                        .value = (uint8_t *)(uintptr_t)value.p,
                        .namelen = name.n,
                        .valuelen = value.n};
}

/* Fills in headers from lines. Returns how many there are. */
static size_t list_headers(struct sv lines, nghttp2_nv *list, size_t n)
{
    struct sv name;
    struct sv value;
    while (n < HEADERS_MAX && request_next_header(&lines, &name, &value)) {
        list[n++] = pair(name, value);
    }
    return n;
}

/* Reads the next page of a source. Returns false if memory is short. */
static bool next_page(struct http2_stream *s)
{
    struct connection *c = &s->connection;
    struct buf page;
    size_t n = 0;
    buf_init(&page, CONNECTION_PAGE_MAX);
    bool more = c->source.next(c->source.arg, &page);
    bool ok = buf_ok(&page);
    forget_answer(s);
    s->answer = buf_take(&page, &n);
    s->answer_bytes = s->answer != NULL ? n : 0;
    s->link->unread += s->answer_bytes;
    if (!more) {
        connection_end_source(c);
    }
    return ok;
}

static ssize_t http2_stream_on_read(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                                    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct http2_stream *s = source->ptr;
    (void)arg;
    while (s->answer_sent == s->answer_bytes && s->connection.source.next != NULL) {
        if (!next_page(s)) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    size_t left = s->answer_bytes - s->answer_sent;
    size_t n = left < room ? left : room;
    if (n > 0) {
        memcpy(out, s->answer + s->answer_sent, n);
    }
    s->answer_sent += n;
    s->link->unread -= n;
    if (n == left && s->connection.source.next == NULL) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (s->trailers.len > 0) {
            nghttp2_nv list[HEADERS_MAX];
            size_t count = list_headers((struct sv){s->trailers.data, s->trailers.len}, list, 0);
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (nghttp2_submit_trailer(session, id, list, count) != 0) {
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
            }
        }
    }
    return (ssize_t)n;
}

/* Begins the response. A length below 0 is unknown. */
static void respond(struct http2_stream *s, const struct connection_answer *a, int64_t length,
                    bool has_data)
{
    struct connection *c = &s->connection;
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = http2_stream_on_read};
    nghttp2_nv list[HEADERS_MAX];
    char status[8];
    struct buf lines;
    buf_init(&lines, LINES_MAX);
    (void)snprintf(status, sizeof(status), "%d", a->status);
    add_lines(&lines, SV("X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"));
    if (a->type != NULL) {
        buf_printf(&lines, "content-type: %s\r\n", a->type);
    }
    add_lines(&lines, c->o->headers);
    add_lines(&lines, a->headers);
    add_lines(&s->trailers, a->trailers);
    if (length >= 0 && s->trailers.len == 0) {
        buf_printf(&lines, "content-length: %lld\r\n", (long long)length);
    }
    list[0] = pair(SV(":status"), sv_from(status));
    size_t n = list_headers((struct sv){.p = lines.data, .n = lines.len}, list, 1);
    c->state = ANSWERING;
    limit(s, clock_mono_ms() + c->o->answer_ms);
    if (!buf_ok(&lines) || !buf_ok(&s->trailers) ||
        nghttp2_submit_response(s->link->session, s->id, list, n, has_data ? &provider : NULL) !=
            0) {
        reset(s, NGHTTP2_INTERNAL_ERROR);
    }
    buf_done(&lines);
    connection_forget_body(c);
    forget_early(s);
    push_output(s);
}

/* Answers with a body that the stream then owns. */
static void respond_whole(struct http2_stream *s, const struct connection_answer *a, char *body,
                          size_t n)
{
    bool has_data = connection_has_body(&s->connection, a->status) && n > 0;
    if (has_data) {
        s->answer = body;
        s->answer_bytes = n;
        s->link->unread += n;
    } else {
        free(body);
    }
    respond(s, a, (int64_t)n, has_data);
}

void http2_stream_answer(struct http2_stream *s, const struct connection_answer *a)
{
    size_t n = 0;
    char *body = a->body != NULL ? buf_take(a->body, &n) : NULL;
    respond_whole(s, a, body, body == NULL ? 0 : n);
}

void http2_stream_reply(struct http2_stream *s, int status, const char *type, struct sv body)
{
    const struct connection_answer a = {.status = status, .type = type};
    char *copy = body.n == 0 ? NULL : malloc(body.n);
    if (copy != NULL) {
        memcpy(copy, body.p, body.n);
    }
    respond_whole(s, &a, copy, copy == NULL ? 0 : body.n);
}

void http2_stream_pages(struct http2_stream *s, const char *type, struct connection_source source)
{
    bool has_data = connection_has_body(&s->connection, 200);
    s->connection.source = source;
    if (!has_data) {
        connection_end_source(&s->connection);
    }
    respond(s, &(struct connection_answer){.status = 200, .type = type}, -1, has_data);
}

int64_t http2_stream_check_time(struct http2_stream *s, int64_t now_ms)
{
    struct connection *c = &s->connection;
    if (s->closed || c->state == HELD) {
        return INT64_MAX;
    }
    if (now_ms < c->deadline_ms) {
        return c->deadline_ms;
    }
    if (c->state == BODY) {
        connection_forget_body(c);
        connection_refuse(c, REFUSED_SLOW_BODY, 408);
    } else if (!s->slow) {
        s->slow = true;
        reset(s, NGHTTP2_CANCEL);
        c->deadline_ms = now_ms + RESET_MS;
    }
    return c->deadline_ms;
}

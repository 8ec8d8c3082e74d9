/* A client of HTTP/2 for tests of our servers that writes its frames byte by byte, so that it can
 * break every rule. Only the headers of responses are read by a library, because they are packed.
 */
#ifndef PROFPULL_TESTS_HTTP2_CLIENT_H
#define PROFPULL_TESTS_HTTP2_CLIENT_H

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "tests/unit/lib/server_client.h"

#define H2_END_STREAM 1
#define H2_END_HEADERS 4
#define H2_PADDED 8
#define H2_ACK 1

struct h2_client {
    int fd;
    nghttp2_hd_inflater *inflater;
};

struct h2_frame {
    uint8_t type; /* 0xff: the connection has ended */
    uint8_t flags;
    uint32_t id;
    struct buf payload;
};

/* A response, or the way in which a stream ended without one. */
struct h2_answer {
    int status;          /* 0: none */
    uint32_t reset;      /* the code of RST_STREAM; UINT32_MAX: none came before the end */
    uint32_t goaway;     /* the code of GOAWAY; UINT32_MAX: none came */
    bool closed;         /* the connection has ended */
    bool continued;      /* 100 came first */
    struct buf headers;  /* "name: value\n" each */
    struct buf trailers; /* likewise */
    struct buf body;
};

/* Returns false if the server no longer reads, as after an attack. */
static inline bool h2_put(struct h2_client *c, const void *data, size_t n)
{
    const char *at = data;
    while (n > 0) {
        ssize_t sent = send(c->fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

static inline bool h2_frame(struct h2_client *c, uint8_t type, uint8_t flags, uint32_t id,
                            struct sv payload)
{
    const uint8_t head[9] = {(uint8_t)(payload.n >> 16),
                             (uint8_t)(payload.n >> 8),
                             (uint8_t)payload.n,
                             type,
                             flags,
                             (uint8_t)(id >> 24),
                             (uint8_t)(id >> 16),
                             (uint8_t)(id >> 8),
                             (uint8_t)id};
    struct buf frame = testing_buf(1 << 25);
    buf_append(&frame, head, sizeof(head));
    buf_append(&frame, payload.p, payload.n);
    bool ok = h2_put(c, frame.data, frame.len);
    buf_done(&frame);
    return ok;
}

/* Appends one header, neither packed nor kept in a table (RFC 7541, 6.2.2). Each part is shorter
 * than 127 + 128 * 128 bytes. */
static inline void h2_header(struct buf *block, const char *name, struct sv value)
{
    const struct sv parts[] = {sv_from(name), value};
    buf_putc(block, 0);
    for (size_t i = 0; i < 2; i++) {
        size_t n = parts[i].n;
        if (n < 127) {
            buf_putc(block, (char)n);
        } else {
            buf_putc(block, 127);
            for (n -= 127; n >= 128; n >>= 7) {
                buf_putc(block, (char)(0x80 | (n & 0x7f)));
            }
            buf_putc(block, (char)n);
        }
        buf_append(block, parts[i].p, parts[i].n);
    }
}

static inline void h2_head(struct buf *block, const char *method, const char *path)
{
    h2_header(block, ":method", sv_from(method));
    h2_header(block, ":scheme", SV("http"));
    h2_header(block, ":path", sv_from(path));
    h2_header(block, ":authority", SV("test"));
}

/* Sends the head of a request with one more header, unless its name is NULL. */
static inline bool h2_request(struct h2_client *c, uint32_t id, const char *method,
                              const char *path, const char *name, const char *value, uint8_t flags)
{
    struct buf block = testing_buf(1 << 20);
    h2_head(&block, method, path);
    if (name != NULL) {
        h2_header(&block, name, sv_from(value));
    }
    bool ok = h2_frame(c, NGHTTP2_HEADERS, (uint8_t)(flags | H2_END_HEADERS), id,
                       (struct sv){block.data, block.len});
    buf_done(&block);
    return ok;
}

static inline bool h2_get(struct h2_client *c, uint32_t id, const char *path)
{
    return h2_request(c, id, "GET", path, NULL, NULL, H2_END_STREAM);
}

/* Begins HTTP/2 with settings, which may be empty. */
static inline struct h2_client h2_dial(const struct server *server, struct sv settings)
{
    struct h2_client c = {.fd = client_dial(server)};
    assert_int_equal(nghttp2_hd_inflate_new(&c.inflater), 0);
    assert_true(h2_put(&c, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN));
    assert_true(h2_frame(&c, NGHTTP2_SETTINGS, 0, 0, settings));
    return c;
}

static inline void h2_close(struct h2_client *c)
{
    close(c->fd);
    nghttp2_hd_inflate_del(c->inflater);
}

static inline bool h2_read(struct h2_client *c, void *out, size_t n)
{
    char *at = out;
    while (n > 0) {
        ssize_t got = read(c->fd, at, n);
        if (got <= 0) {
            assert_true(got == 0 || errno == ECONNRESET); /* not EAGAIN */
            return false;
        }
        at += got;
        n -= (size_t)got;
    }
    return true;
}

/* Reads a frame; the caller frees its payload. */
static inline struct h2_frame h2_next(struct h2_client *c)
{
    uint8_t head[9];
    struct h2_frame f = {.type = 0xff};
    buf_init(&f.payload, 1 << 25);
    if (h2_read(c, head, sizeof(head))) {
        size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        SCOPED_MEMORY char *bytes = testing_memory(n + 1);
        if (h2_read(c, bytes, n)) {
            buf_append(&f.payload, bytes, n);
            f.type = head[3];
            f.flags = head[4];
            f.id = (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 |
                   head[8];
        }
    }
    return f;
}

static inline uint32_t h2_u32(const struct buf *payload, size_t at)
{
    const uint8_t *p = (const uint8_t *)payload->data + at;
    assert_true(at + 4 <= payload->len);
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void h2_unpack(struct h2_client *c, const struct buf *block, struct buf *out)
{
    const uint8_t *at = (const uint8_t *)block->data;
    size_t left = block->len;
    int flags = 0;
    while ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) {
        nghttp2_nv nv;
        ssize_t used = nghttp2_hd_inflate_hd2(c->inflater, &nv, &flags, at, left, 1);
        assert_true(used >= 0);
        at += used;
        left -= (size_t)used;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
            buf_printf(out, "%.*s: %.*s\n", (int)nv.namelen, (const char *)nv.name,
                       (int)nv.valuelen, (const char *)nv.value);
        }
    }
    nghttp2_hd_inflate_end_headers(c->inflater);
}

static inline void h2_take_headers(struct h2_client *c, const struct h2_frame *f,
                                   struct h2_answer *a, bool mine)
{
    static const char field[] = ":status: ";
    SCOPED(buf) text = testing_buf(1 << 20);
    h2_unpack(c, &f->payload, &text);
    int status =
        strncmp(text.data, field, strlen(field)) == 0 ? atoi(text.data + strlen(field)) : 0;
    if (mine && status == 100) {
        a->continued = true;
    } else if (mine && status != 0) {
        a->status = status;
        buf_append(&a->headers, text.data, text.len);
    } else if (mine) {
        buf_append(&a->trailers, text.data, text.len);
    }
}

/* Takes a frame for the answer of a stream. Returns true at the end of the stream or connection. */
static inline bool h2_take(struct h2_client *c, const struct h2_frame *f, uint32_t id,
                           struct h2_answer *a)
{
    bool mine = f->id == id;
    bool ends = mine && (f->flags & H2_END_STREAM) != 0;
    switch (f->type) {
    case NGHTTP2_HEADERS:
        h2_take_headers(c, f, a, mine);
        return ends;
    case NGHTTP2_DATA:
        if (mine) {
            buf_append(&a->body, f->payload.data, f->payload.len);
        }
        return ends;
    case NGHTTP2_RST_STREAM:
        a->reset = mine ? h2_u32(&f->payload, 0) : a->reset;
        return mine;
    case NGHTTP2_GOAWAY:
        a->goaway = h2_u32(&f->payload, 4);
        return false;
    case 0xff:
        a->closed = true;
        return true;
    default:
        return false;
    }
}

/* Reads until a stream or the connection ends. The caller calls h2_done(). */
static inline struct h2_answer h2_wait(struct h2_client *c, uint32_t id)
{
    struct h2_answer a = {.reset = UINT32_MAX, .goaway = UINT32_MAX};
    bool ends = false;
    buf_init(&a.headers, 1 << 20);
    buf_init(&a.trailers, 1 << 20);
    buf_init(&a.body, 1 << 28);
    while (!ends) {
        struct h2_frame f = h2_next(c);
        ends = h2_take(c, &f, id, &a);
        buf_done(&f.payload);
    }
    return a;
}

static inline void h2_done(struct h2_answer *a)
{
    buf_done(&a->headers);
    buf_done(&a->trailers);
    buf_done(&a->body);
}

#endif

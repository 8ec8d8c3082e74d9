#include "api/rpc.h"

#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "pprof/gzip.h"

/* Bytes in front of a message: a byte of flags, and its length in four bytes, big endian. */
#define FRAME_HEAD ((size_t)5)
#define FLAG_PACKED 0x01
#define FLAG_TRAILERS 0x80
/* A smaller message is not compressed. */
#define DEFLATE_MIN 1024
/* Limit of the trailers of gRPC-web, in bytes. */
#define TRAILERS_MAX ((size_t)16 * 1024)

/* ---- content types --------------------------------------------------------------------------- */

/* Returns the charset of a content type if that is its only parameter; "" if it has none. False if
 * there are other parameters. */
static bool charset_of(struct sv params, struct sv *ret)
{
    struct sv name;
    struct sv value;
    *ret = (struct sv){"", 0};
    params = sv_trim(params);
    if (params.n == 0) {
        return true;
    }
    if (!sv_cut(params, '=', &name, &value) || !sv_eq_nocase(sv_trim(name), "charset")) {
        return false;
    }
    value = sv_trim(value);
    if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"') {
        value = (struct sv){value.p + 1, value.n - 2};
    }
    *ret = value;
    return true;
}

const struct rpc_type *rpc_type_of(const struct request *r, const char **ret_echo)
{
    static const struct rpc_type types[] = {
        {"application/proto", RPC_CONNECT, false, "application/proto"},
        {"application/json", RPC_CONNECT, true, "application/json; charset=utf-8"},
        {"application/grpc", RPC_GRPC, false, "application/grpc"},
        {"application/grpc+proto", RPC_GRPC, false, "application/grpc+proto"},
        {"application/grpc+json", RPC_GRPC, true, "application/grpc+json"},
        {"application/grpc-web", RPC_GRPC_WEB, false, "application/grpc-web"},
        {"application/grpc-web+proto", RPC_GRPC_WEB, false, "application/grpc-web+proto"},
        {"application/grpc-web+json", RPC_GRPC_WEB, true, "application/grpc-web+json"},
        {"application/grpc-web-text", RPC_GRPC_WEB_TEXT, false, "application/grpc-web-text"},
        {"application/grpc-web-text+proto", RPC_GRPC_WEB_TEXT, false,
         "application/grpc-web-text+proto"},
    };
    struct sv type = request_header(r, "content-type");
    struct sv params = {NULL, 0};
    struct sv charset;
    if (!sv_cut(type, ';', &type, &params)) {
        params = (struct sv){"", 0};
    }
    type = sv_trim(type);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sv_eq_nocase(type, types[i].media) && charset_of(params, &charset) &&
            (charset.n == 0 || sv_eq_nocase(charset, "utf-8")) &&
            (types[i].protocol != RPC_GRPC || !r->is_http_10)) {
            *ret_echo = charset.n == 0 ? types[i].media : types[i].with_charset;
            return &types[i];
        }
    }
    return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static uint32_t length_of(struct sv frame)
{
    const unsigned char *p = (const unsigned char *)frame.p;
    return (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
}

enum rpc_frame rpc_unframe(struct sv body, size_t max, struct sv *ret_message, bool *ret_packed,
                           struct err *err)
{
    if (body.n == 0) {
        err_set(err, ERR_INPUT, "expected one message, got none");
        return RPC_FRAME_COUNT;
    }
    if (body.n < FRAME_HEAD) {
        err_set(err, ERR_INPUT, "the frame of a message has %zu bytes, got %zu", FRAME_HEAD,
                body.n);
        return RPC_FRAME_BROKEN;
    }
    unsigned flags = (unsigned char)body.p[0];
    uint32_t n = length_of(body);
    size_t left = body.n - FRAME_HEAD;
    if ((flags & ~(unsigned)FLAG_PACKED) != 0) {
        err_set(err, ERR_INPUT, "the frame of a message begins with 0 or 1, got %u", flags);
        return RPC_FRAME_BROKEN;
    }
    if (n > max) {
        err_set(err, ERR_LIMIT, "the message has %u bytes, the limit is %zu", n, max);
        return RPC_FRAME_LARGE;
    }
    if (n > left) {
        err_set(err, ERR_INPUT, "the message has %u bytes, got %zu", n, left);
        return RPC_FRAME_BROKEN;
    }
    if (n < left) {
        err_set(err, ERR_INPUT, "expected one message, got more");
        return RPC_FRAME_COUNT;
    }
    *ret_message = (struct sv){.p = body.p + FRAME_HEAD, .n = n};
    *ret_packed = flags != 0;
    return RPC_FRAME_OK;
}

bool rpc_decode_text(struct sv text, struct buf *out)
{
    while (text.n > 0) {
        /* A piece ends with the padding of its last four characters. */
        size_t n = 4;
        while (n < text.n && text.p[n - 1] != '=') {
            n += 4;
        }
        if (n > text.n || !base64_decode((struct sv){text.p, n}, out)) {
            return false;
        }
        text = sv_skip(text, n);
    }
    return true;
}

bool rpc_timeout(struct sv value, int64_t *ret_ms)
{
    static const struct {
        char unit;
        int64_t each_ns;
    } units[] = {{'H', 3600 * NS_PER_S}, {'M', 60 * NS_PER_S}, {'S', NS_PER_S},
                 {'m', NS_PER_MS},       {'u', 1000},          {'n', 1}};
    uint64_t n = 0;
    if (value.n < 2 || value.n > 9 || !parse_u64((struct sv){value.p, value.n - 1}, 99999999, &n)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].unit == value.p[value.n - 1]) {
            int64_t each_ns = units[i].each_ns;
            *ret_ms = each_ns >= NS_PER_MS ? (int64_t)n * (each_ns / NS_PER_MS)
                                           : ((int64_t)n * each_ns + NS_PER_MS - 1) / NS_PER_MS;
            return true;
        }
    }
    return false;
}

/* ---- responses ------------------------------------------------------------------------------- */

void rpc_put_message(struct buf *out, struct sv text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c < 0x20 || c > 0x7e || c == '%') {
            buf_printf(out, "%%%02X", c);
        } else {
            buf_putc(out, (char)c);
        }
    }
}

static void put_frame_head(struct buf *out, unsigned flags, size_t n)
{
    const char head[FRAME_HEAD] = {(char)flags, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8),
                                   (char)n};
    buf_append(out, head, sizeof(head));
}

/* Appends the status as lines of headers. */
static void put_status(struct buf *out, unsigned code, struct sv message)
{
    buf_printf(out, "grpc-status: %u\r\n", code);
    if (code != 0) {
        buf_puts(out, "grpc-message: ");
        rpc_put_message(out, message);
        buf_puts(out, "\r\n");
    }
}

/* Appends the last frame of gRPC-web. */
static void put_web_status(struct buf *out, unsigned code, struct sv message)
{
    struct buf lines;
    buf_init(&lines, TRAILERS_MAX);
    put_status(&lines, code, message);
    put_frame_head(out, FLAG_TRAILERS, lines.len);
    buf_append(out, lines.data, lines.len);
    buf_done(&lines);
}

/* Encodes the bytes of a buffer from an offset on in base64, in place. */
static void encode_text(struct buf *body, size_t from)
{
    struct buf plain;
    buf_init(&plain, body->len + 1);
    buf_append(&plain, body->data + from, body->len - from);
    buf_clear(body);
    base64_encode((struct sv){plain.data, plain.len}, body);
    buf_done(&plain);
}

/* Frames the message, compressed if the client takes that and it helps. */
static void put_message(struct exchange *x, struct sv message, struct buf *out)
{
    struct sv packed;
    struct scratch *s =
        message.n >= DEFLATE_MIN && request_header_lists(x->request, "grpc-accept-encoding", "gzip")
            ? scratch_new()
            : NULL;
    if (s != NULL && gzip_deflate(s, message, &packed) && packed.n < message.n) {
        put_frame_head(out, FLAG_PACKED, packed.n);
        buf_append(out, packed.p, packed.n);
        buf_puts(&x->headers, "grpc-encoding: gzip\r\n");
    } else {
        put_frame_head(out, 0, message.n);
        buf_append(out, message.p, message.n);
    }
    scratch_free(s);
}

void rpc_succeed(struct exchange *x, const struct rpc_type *type)
{
    struct buf body;
    struct buf plain = x->reply;
    buf_init(&body, plain.max + FRAME_HEAD + TRAILERS_MAX);
    buf_reserve(&body, plain.len + 2 * FRAME_HEAD + 64);
    put_message(x, (struct sv){plain.data, plain.len}, &body);
    if (type->protocol == RPC_GRPC) {
        put_status(&x->trailers, 0, SV(""));
    } else {
        put_web_status(&body, 0, SV(""));
    }
    buf_done(&plain);
    x->reply = body;
    if (type->protocol == RPC_GRPC_WEB_TEXT) {
        encode_text(&x->reply, 0);
    }
}

void rpc_fail(const struct rpc_type *type, unsigned code, struct sv message, struct buf *headers,
              struct buf *body)
{
    if (type->protocol == RPC_GRPC) {
        put_status(headers, code, message);
        return;
    }
    put_web_status(body, code, message);
    if (type->protocol == RPC_GRPC_WEB_TEXT) {
        encode_text(body, 0);
    }
}

#include "api/connect.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/ask.h"
#include "api/protojson.h"
#include "base/clock.h"

#define STATUS_OK 200
#define STATUS_NOT_FOUND 404
#define STATUS_METHOD_NOT_ALLOWED 405
#define STATUS_UNSUPPORTED_MEDIA_TYPE 415
/* The largest timeout in ms: Connect-Timeout-Ms has at most ten digits. */
#define TIMEOUT_MAX UINT64_C(9999999999)
#define ACCEPTED_TYPES "application/json, application/json; charset=utf-8, application/proto"

/* ---- codecs ---------------------------------------------------------------------------------- */

enum codec { CODEC_NONE, CODEC_PROTO, CODEC_JSON };

struct content_type {
    enum codec codec;
    const char *echo; /* content type of the response */
};

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

static struct content_type content_type_of(const struct request *r)
{
    static const struct {
        const char *media;
        enum codec codec;
        const char *with_charset;
    } types[] = {
        {"application/proto", CODEC_PROTO, "application/proto"},
        {"application/json", CODEC_JSON, "application/json; charset=utf-8"},
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
            (charset.n == 0 || sv_eq_nocase(charset, "utf-8"))) {
            return (struct content_type){types[i].codec,
                                         charset.n == 0 ? types[i].media : types[i].with_charset};
        }
    }
    return (struct content_type){CODEC_NONE, NULL};
}

/* ---- errors ---------------------------------------------------------------------------------- */

struct code {
    const char *name;
    int status;
};

static struct code code_of(enum connect_code code, enum err_kind kind)
{
    static const enum connect_code by_kind[] = {
        [ERR_NONE] = CONNECT_INTERNAL,
        [ERR_INPUT] = CONNECT_INVALID_ARGUMENT,
        [ERR_LIMIT] = CONNECT_RESOURCE_EXHAUSTED,
        [ERR_SYSTEM] = CONNECT_INTERNAL,
        [ERR_NETWORK] = CONNECT_UNAVAILABLE,
        [ERR_REFUSED] = CONNECT_UNAVAILABLE,
        [ERR_MEMORY] = CONNECT_RESOURCE_EXHAUSTED,
        [ERR_TIMEOUT] = CONNECT_DEADLINE_EXCEEDED,
    };
    static const struct code codes[] = {
        [CONNECT_CANCELED] = {"canceled", 499},
        [CONNECT_UNKNOWN] = {"unknown", 500},
        [CONNECT_INVALID_ARGUMENT] = {"invalid_argument", 400},
        [CONNECT_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
        [CONNECT_NOT_FOUND] = {"not_found", 404},
        [CONNECT_ALREADY_EXISTS] = {"already_exists", 409},
        [CONNECT_PERMISSION_DENIED] = {"permission_denied", 403},
        [CONNECT_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
        [CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 400},
        [CONNECT_UNIMPLEMENTED] = {"unimplemented", 501},
        [CONNECT_INTERNAL] = {"internal", 500},
        [CONNECT_UNAVAILABLE] = {"unavailable", 503},
        [CONNECT_UNAUTHENTICATED] = {"unauthenticated", 401},
    };
    return codes[code == CONNECT_BY_KIND ? by_kind[kind] : code];
}

void connect_reply_error(struct exchange *x, enum connect_code code, const struct err *err)
{
    struct code c = code_of(code, err->kind);
    x->status = c.status;
    x->content_type = "application/json";
    buf_clear(&x->reply);
    buf_printf(&x->reply, "{\"code\":\"%s\",\"message\":", c.name);
    json_quote(sv_from(err->msg), &x->reply);
    buf_puts(&x->reply, "}");
}

bool connect_fail(struct connect_call *call, enum connect_code code, struct err *err,
                  const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    call->code = code;
    return err_set(err, ERR_REFUSED, "%s", text);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool read_version(const struct request *r, struct err *err)
{
    struct sv version = request_header(r, "connect-protocol-version");
    return version.p == NULL || sv_eq_str(version, "1") ||
           err_set(err, ERR_INPUT, "Connect-Protocol-Version must be \"1\": got \"%.*s\"",
                   SV_ARG(version));
}

static bool read_timeout(struct connect_call *call, struct err *err)
{
    uint64_t ms = 0;
    struct sv timeout = request_header(call->exchange->request, "connect-timeout-ms");
    call->deadline_ms = call->exchange->deadline_ms;
    if (timeout.p == NULL) {
        return true;
    }
    if (!parse_u64(timeout, TIMEOUT_MAX, &ms)) {
        return err_set(err, ERR_INPUT,
                       "Connect-Timeout-Ms must be a number of at most 10 digits: got \"%.*s\"",
                       SV_ARG(timeout));
    }
    if (ms == 0) {
        return err_set(err, ERR_TIMEOUT, "context deadline exceeded");
    }
    int64_t deadline_ms = clock_mono_ms() + (int64_t)ms;
    if (call->deadline_ms == 0 || deadline_ms < call->deadline_ms) {
        call->deadline_ms = deadline_ms;
    }
    return true;
}

/* Returns the body without its compression: a view of the body, or of plain. */
static bool read_body(struct connect_call *call, struct buf *plain, struct sv *ret, struct err *err)
{
    struct err problem = ERR_INIT;
    if (exchange_inflate(call->exchange, plain, ret, &problem)) {
        return true;
    }
    if (problem.kind == ERR_REFUSED) {
        return connect_fail(call, CONNECT_UNIMPLEMENTED, err, "%s", problem.msg);
    }
    return err_set(err, problem.kind, "%s", problem.msg);
}

static ProtobufCMessage *read_message(struct connect_call *call, enum codec codec,
                                      const ProtobufCMessageDescriptor *d, struct sv body,
                                      struct err *err)
{
    ProtobufCMessage *m = codec == CODEC_JSON ? protojson_read(body, d, call->arena, err)
                                              : protojson_read_bytes(body, d, call->arena, err);
    if (m == NULL) {
        err_wrap(err, "unmarshal message");
    }
    return m;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool write_reply(struct connect_call *call, const struct connect_method *method,
                        enum codec codec, struct buf *out, struct err *err)
{
    struct sv bytes = {call->reply_bytes.data, call->reply_bytes.len};
    const ProtobufCMessage *reply = call->reply;
    if (!buf_ok(&call->reply_bytes)) {
        return err_set(err, ERR_LIMIT, "answer too large for the memory limit of a query");
    }
    if (reply == NULL && codec == CODEC_PROTO) {
        buf_append(out, bytes.p, bytes.n);
    } else {
        if (reply == NULL) {
            reply = protojson_read_bytes(bytes, method->output, call->arena, err);
            if (reply == NULL) {
                return false;
            }
        }
        (void)(codec == CODEC_JSON ? protojson_write(reply, out)
                                   : protojson_write_bytes(reply, out));
    }
    return buf_ok(out) ||
           err_set(err, ERR_LIMIT, "answer too large for the memory limit of a query");
}

static bool answer(struct connect_call *call, const struct connect_method *method, enum codec codec,
                   struct buf *plain, struct buf *out, struct err *err)
{
    struct sv body;
    if (!read_version(call->exchange->request, err) || !read_timeout(call, err) ||
        !read_body(call, plain, &body, err)) {
        return false;
    }
    const ProtobufCMessage *request = read_message(call, codec, method->input, body, err);
    return request != NULL && method->call(call, request, err) &&
           write_reply(call, method, codec, out, err);
}

static void count(const struct exchange *x, const struct connect_method *method, const char *code)
{
    const char *const values[] = {method->path + 1, code};
    metric_inc(metric_cell(
        metrics_family(
            x->options->metrics, METRIC_COUNTER, "profpull_connect_calls_total",
            "Calls of Connect's methods by the code of their answer, \"ok\" for a success.",
            "method", "code"),
        values));
}

/* Sends the response of a call: its message, or its error if it has failed. */
static void finish(struct exchange *x, const struct connect_method *method, bool ok,
                   const char *content_type, enum connect_code code, const struct err *err)
{
    if (ok) {
        x->status = STATUS_OK;
        x->content_type = content_type;
        exchange_deflate(x);
    } else {
        connect_reply_error(x, code, err);
    }
    count(x, method, ok ? "ok" : code_of(code, err->kind).name);
}

static void serve_method(struct exchange *x, const struct connect_method *method, size_t body_max)
{
    struct content_type type = content_type_of(x->request);
    struct err err = ERR_INIT;
    struct buf plain;
    if (type.codec == CODEC_NONE) {
        x->status = STATUS_UNSUPPORTED_MEDIA_TYPE;
        buf_puts(&x->headers, "Accept-Post: " ACCEPTED_TYPES "\r\n");
        return;
    }
    struct connect_call call = {.exchange = x, .arena = arena_new(x->bytes_max / 2)};
    buf_init(&plain, body_max);
    buf_init(&call.reply_bytes, x->bytes_max);
    buf_puts(&x->headers, "Accept-Encoding: gzip\r\n");
    bool ok = call.arena != NULL ? answer(&call, method, type.codec, &plain, &x->reply, &err)
                                 : err_memory(&err);
    finish(x, method, ok, type.echo, call.code, &err);
    ask_count_damaged(x, &call.damaged);
    buf_done(&call.reply_bytes);
    buf_done(&plain);
    arena_free(call.arena);
}

void connect_serve(struct exchange *x, const struct connect_method *methods, size_t n,
                   size_t body_max)
{
    size_t i = 0;
    while (i < n && !sv_eq_str(x->request->path, methods[i].path)) {
        i++;
    }
    if (i == n) {
        exchange_text(x, STATUS_NOT_FOUND, "text/plain; charset=utf-8", SV("404 page not found\n"));
    } else if (x->request->method != REQUEST_POST) {
        x->status = STATUS_METHOD_NOT_ALLOWED;
        buf_puts(&x->headers, "Allow: POST\r\n");
    } else {
        serve_method(x, &methods[i], body_max);
    }
}

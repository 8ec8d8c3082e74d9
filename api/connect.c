#include "api/connect.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/ask.h"
#include "api/protojson.h"
#include "api/rpc.h"
#include "base/clock.h"

#define STATUS_OK 200
#define STATUS_NOT_FOUND 404
#define STATUS_METHOD_NOT_ALLOWED 405
#define STATUS_UNSUPPORTED_MEDIA_TYPE 415
/* The largest timeout in ms: Connect-Timeout-Ms has at most ten digits. */
#define TIMEOUT_MAX UINT64_C(9999999999)

/* ---- errors ---------------------------------------------------------------------------------- */

struct code {
    const char *name;
    int status;
    unsigned number; /* of gRPC */
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
        [CONNECT_CANCELED] = {"canceled", 499, 1},
        [CONNECT_UNKNOWN] = {"unknown", 500, 2},
        [CONNECT_INVALID_ARGUMENT] = {"invalid_argument", 400, 3},
        [CONNECT_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504, 4},
        [CONNECT_NOT_FOUND] = {"not_found", 404, 5},
        [CONNECT_ALREADY_EXISTS] = {"already_exists", 409, 6},
        [CONNECT_PERMISSION_DENIED] = {"permission_denied", 403, 7},
        [CONNECT_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429, 8},
        [CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 400, 9},
        [CONNECT_UNIMPLEMENTED] = {"unimplemented", 501, 12},
        [CONNECT_INTERNAL] = {"internal", 500, 13},
        [CONNECT_UNAVAILABLE] = {"unavailable", 503, 14},
        [CONNECT_UNAUTHENTICATED] = {"unauthenticated", 401, 16},
    };
    return codes[code == CONNECT_BY_KIND ? by_kind[kind] : code];
}

void connect_reply_error(struct exchange *x, enum connect_code code, const struct err *err)
{
    struct code c = code_of(code, err->kind);
    const char *echo = NULL;
    const struct rpc_type *type = rpc_type_of(x->request, &echo);
    x->fails = true;
    if (type != NULL && type->protocol != RPC_CONNECT) {
        x->status = STATUS_OK;
        x->content_type = echo;
        buf_clear(&x->reply);
        rpc_fail(type, c.number, sv_from(err->msg), &x->headers, &x->reply);
        return;
    }
    x->status = c.status;
    x->content_type = "application/json";
    buf_clear(&x->reply);
    buf_printf(&x->reply, "{\"code\":\"%s\",\"message\":", c.name);
    json_quote(sv_from(err->msg), &x->reply);
    buf_puts(&x->reply, "}");
}

unsigned connect_code_number(enum connect_code code)
{
    return code_of(code, ERR_NONE).number;
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

/* Reads the time that the client gives the call, in ms; -1: it gives no limit. */
static bool read_ms(const struct request *r, const struct rpc_type *type, int64_t *ret,
                    struct err *err)
{
    bool connect = type->protocol == RPC_CONNECT;
    struct sv timeout = request_header(r, connect ? "connect-timeout-ms" : "grpc-timeout");
    uint64_t ms = 0;
    *ret = -1;
    if (timeout.p == NULL) {
        return true;
    }
    if (!connect) {
        return rpc_timeout(timeout, ret) ||
               err_set(err, ERR_INPUT,
                       "grpc-timeout must be up to 8 digits and one of H, M, S, m, u, n: got "
                       "\"%.*s\"",
                       SV_ARG(timeout));
    }
    if (!parse_u64(timeout, TIMEOUT_MAX, &ms)) {
        return err_set(err, ERR_INPUT,
                       "Connect-Timeout-Ms must be a number of at most 10 digits: got \"%.*s\"",
                       SV_ARG(timeout));
    }
    *ret = (int64_t)ms;
    return true;
}

static bool read_timeout(struct connect_call *call, const struct rpc_type *type, struct err *err)
{
    int64_t ms;
    call->deadline_ms = call->exchange->deadline_ms;
    if (!read_ms(call->exchange->request, type, &ms, err)) {
        return false;
    }
    if (ms < 0) {
        return true;
    }
    if (ms == 0) {
        return err_set(err, ERR_TIMEOUT, "context deadline exceeded");
    }
    int64_t deadline_ms = clock_mono_ms() + ms;
    if (call->deadline_ms == 0 || deadline_ms < call->deadline_ms) {
        call->deadline_ms = deadline_ms;
    }
    return true;
}

/* Takes the message out of its frame. *ret_coding is its compression; "" if there is none. */
static bool unframe(struct connect_call *call, struct sv body, size_t max, struct sv *ret_coding,
                    struct sv *ret, struct err *err)
{
    static const enum connect_code codes[] = {
        [RPC_FRAME_BROKEN] = CONNECT_INVALID_ARGUMENT,
        [RPC_FRAME_COUNT] = CONNECT_UNIMPLEMENTED,
        [RPC_FRAME_LARGE] = CONNECT_RESOURCE_EXHAUSTED,
    };
    bool packed = false;
    struct sv coding = request_header(call->exchange->request, "grpc-encoding");
    enum rpc_frame result = rpc_unframe(body, max, ret, &packed, err);
    if (result != RPC_FRAME_OK) {
        call->code = codes[result];
        return false;
    }
    *ret_coding = packed ? coding : SV("");
    if (packed && (coding.n == 0 || sv_eq_nocase(coding, "identity"))) {
        return connect_fail(call, CONNECT_INTERNAL, err,
                            "the message is compressed, but grpc-encoding does not say how");
    }
    return true;
}

/* Returns the message without its frame and compression: a view of the body, or of plain, whose
 * limit is that of the message. text holds the body of gRPC-web-text without its base64. */
static bool read_body(struct connect_call *call, const struct rpc_type *type, struct buf *text,
                      struct buf *plain, struct sv *ret, struct err *err)
{
    const struct exchange *x = call->exchange;
    bool connect = type->protocol == RPC_CONNECT;
    const char *header = connect ? "Content-Encoding" : "grpc-encoding";
    struct sv coding = request_header(x->request, header);
    struct err problem = ERR_INIT;
    *ret = x->body;
    if (type->protocol == RPC_GRPC_WEB_TEXT) {
        if (!rpc_decode_text(x->body, text)) {
            return err_set(err, ERR_INPUT, "the body is not base64");
        }
        *ret = (struct sv){text->data, text->len};
    }
    if (!connect && !unframe(call, *ret, plain->max, &coding, ret, err)) {
        return false;
    }
    if (exchange_decode(header, coding, *ret, plain, ret, &problem)) {
        return true;
    }
    if (problem.kind == ERR_REFUSED) {
        return connect_fail(call, CONNECT_UNIMPLEMENTED, err, "%s", problem.msg);
    }
    return err_set(err, problem.kind, "%s", problem.msg);
}

static ProtobufCMessage *read_message(struct connect_call *call, const struct rpc_type *type,
                                      const ProtobufCMessageDescriptor *d, struct sv body,
                                      struct err *err)
{
    ProtobufCMessage *m = type->json ? protojson_read(body, d, call->arena, err)
                                     : protojson_read_bytes(body, d, call->arena, err);
    if (m == NULL) {
        err_wrap(err, "unmarshal message");
    }
    return m;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool write_reply(struct connect_call *call, const struct connect_method *method,
                        const struct rpc_type *type, struct buf *out, struct err *err)
{
    struct sv bytes = {call->reply_bytes.data, call->reply_bytes.len};
    const ProtobufCMessage *reply = call->reply;
    if (!buf_ok(&call->reply_bytes)) {
        return err_set(err, ERR_LIMIT, "answer too large for the memory limit of a query");
    }
    if (reply == NULL && !type->json) {
        buf_append(out, bytes.p, bytes.n);
    } else {
        if (reply == NULL) {
            reply = protojson_read_bytes(bytes, method->output, call->arena, err);
            if (reply == NULL) {
                return false;
            }
        }
        (void)(type->json ? protojson_write(reply, out) : protojson_write_bytes(reply, out));
    }
    return buf_ok(out) ||
           err_set(err, ERR_LIMIT, "answer too large for the memory limit of a query");
}

/* Calls the method with a message. */
static bool call_method(struct connect_call *call, const struct connect_method *method,
                        const struct rpc_type *type, struct sv message, struct err *err)
{
    if (method->input != NULL) {
        const ProtobufCMessage *request = read_message(call, type, method->input, message, err);
        return request != NULL && method->call(call, request, err);
    }
    if (type->json) {
        return connect_fail(call, CONNECT_UNIMPLEMENTED, err, "expected a message in protobuf");
    }
    return method->call(call, &message, err);
}

static bool answer(struct connect_call *call, const struct connect_method *method,
                   const struct rpc_type *type, struct buf *plain, struct buf *out, struct err *err)
{
    struct sv message;
    struct buf text;
    buf_init(&text, call->exchange->body.n + 1);
    bool ok = (type->protocol != RPC_CONNECT || read_version(call->exchange->request, err)) &&
              read_timeout(call, type, err) && read_body(call, type, &text, plain, &message, err) &&
              call_method(call, method, type, message, err) &&
              write_reply(call, method, type, out, err);
    buf_done(&text);
    return ok;
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

/* Makes the response to a call that has succeeded, from its message. */
static void finish(struct exchange *x, const struct connect_method *method,
                   const struct rpc_type *type, const char *echo)
{
    x->status = STATUS_OK;
    x->content_type = echo;
    if (type->protocol == RPC_CONNECT) {
        exchange_deflate(x);
    } else {
        rpc_succeed(x, type);
    }
    count(x, method, "ok");
}

/* Answers 415. */
static void refuse_type(struct exchange *x)
{
    x->status = STATUS_UNSUPPORTED_MEDIA_TYPE;
    buf_printf(&x->headers, "Accept-Post: %s%s\r\n", RPC_ACCEPTED_TYPES,
               x->request->is_http_10 ? "" : ", " RPC_GRPC_TYPES);
}

static void serve_method(struct exchange *x, const struct connect_method *method,
                         const struct rpc_type *type, const char *echo, size_t body_max)
{
    struct err err = ERR_INIT;
    struct buf plain;
    struct connect_call call = {.exchange = x, .arena = arena_new(x->bytes_max / 2)};
    buf_init(&plain, body_max);
    buf_init(&call.reply_bytes, x->bytes_max);
    buf_puts(&x->headers, type->protocol == RPC_CONNECT ? "Accept-Encoding: gzip\r\n"
                                                        : "grpc-accept-encoding: gzip\r\n");
    bool ok = call.arena != NULL ? answer(&call, method, type, &plain, &x->reply, &err)
                                 : err_memory(&err);
    if (ok) {
        finish(x, method, type, echo);
    } else {
        connect_reply_error(x, call.code, &err);
        count(x, method, code_of(call.code, err.kind).name);
    }
    ask_count_damaged(x, &call.damaged);
    buf_done(&call.reply_bytes);
    buf_done(&plain);
    arena_free(call.arena);
}

/* Answers a call of a method that is not there. */
static void refuse_method(struct exchange *x, const struct rpc_type *type)
{
    struct err err = ERR_INIT;
    if (type == NULL || type->protocol == RPC_CONNECT) {
        exchange_text(x, STATUS_NOT_FOUND, "text/plain; charset=utf-8", SV("404 page not found\n"));
        return;
    }
    err_set(&err, ERR_INPUT, "there is no method %.*s", SV_ARG(x->request->path));
    connect_reply_error(x, CONNECT_UNIMPLEMENTED, &err);
}

void connect_serve(struct exchange *x, const struct connect_method *methods, size_t n,
                   size_t body_max)
{
    size_t i = 0;
    const char *echo = NULL;
    const struct rpc_type *type = rpc_type_of(x->request, &echo);
    while (i < n && !sv_eq_str(x->request->path, methods[i].path)) {
        i++;
    }
    if (i == n) {
        refuse_method(x, type);
    } else if (x->request->method != REQUEST_POST) {
        x->status = STATUS_METHOD_NOT_ALLOWED;
        buf_puts(&x->headers, "Allow: POST\r\n");
    } else if (type == NULL) {
        refuse_type(x);
    } else {
        serve_method(x, &methods[i], type, echo, body_max);
    }
}

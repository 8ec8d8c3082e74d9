#include "api/receive/otlp_http.h"

#include <stdio.h>
#include <string.h>

#include "api/protojson.h"
#include "api/receive/otlp.h"
#include "api/receive/reply.h"
#include "api/served.h"
#include "pprof/proto/otlp.pb-c.h"
#include "pprof/proto/otlp_fields.h"
#include "pprof/put.h"

#define TYPE_PROTO "application/x-protobuf"
#define TYPE_JSON "application/json"

/* ---- codes ----------------------------------------------------------------------------------- */

/* A code of google.rpc.Status, and the status of HTTP for it: 429, 502, 503 and 504 ask the sender
 * to try again, and after every other one it drops the request. */
struct code {
    unsigned number;
    int status;
};

static struct code code_of(enum connect_code code)
{
    switch (code) {
    case CONNECT_UNAVAILABLE:
        return (struct code){14, STATUS_UNAVAILABLE};
    case CONNECT_DEADLINE_EXCEEDED:
        return (struct code){4, 504};
    case CONNECT_RESOURCE_EXHAUSTED:
        return (struct code){8, STATUS_TOO_LARGE};
    default:
        return (struct code){3, STATUS_BAD_REQUEST};
    }
}

/* ---- responses ------------------------------------------------------------------------------- */

static bool is_json(const struct exchange *x)
{
    return x->content_type != NULL && strcmp(x->content_type, TYPE_JSON) == 0;
}

static void put_status_json(unsigned code, const char *message, struct buf *out)
{
    buf_printf(out, "{\"code\":%u", code);
    json_member("message", sv_from(message), out);
    buf_puts(out, "}");
}

/* Answers with a message Status, in the codec of the request. */
static void reply_status(struct exchange *x, struct code code, const char *message)
{
    buf_clear(&x->reply);
    x->status = code.status;
    if (is_json(x)) {
        put_status_json(code.number, message, &x->reply);
    } else {
        wire_put_number(&x->reply, OTLP_STATUS_CODE, code.number);
        wire_put_bytes(&x->reply, OTLP_STATUS_MESSAGE, message, strlen(message));
    }
    if (code.status == STATUS_UNAVAILABLE) {
        buf_puts(&x->headers, "Retry-After: 1\r\n");
    }
}

static void reply_success(struct exchange *x, const struct otlp_export *e)
{
    if (!is_json(x)) {
        (void)otlp_put_response(e, &x->reply);
        return;
    }
    buf_puts(&x->reply, "{");
    if (e->rejected > 0) {
        buf_printf(&x->reply, "\"partialSuccess\":{\"rejectedProfiles\":\"%zu\"", e->rejected);
        json_member("errorMessage", sv_from(e->err.msg), &x->reply);
        buf_puts(&x->reply, "}");
    }
    buf_puts(&x->reply, "}");
}

void otlp_route_error(struct route_error *e)
{
    static const struct {
        int status;
        unsigned code;
    } rows[] = {
        {STATUS_BAD_REQUEST, 3}, {STATUS_UNAUTHORIZED, 16}, {408, 4},
        {STATUS_TOO_LARGE, 8},   {STATUS_BUSY, 8},          {STATUS_UNAVAILABLE, 14},
    };
    unsigned code = 2;
    if (e->status == STATUS_METHOD) {
        return;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        code = rows[i].status == e->status ? rows[i].code : code;
    }
    e->type = TYPE_JSON;
    put_status_json(code, e->message, &e->body);
}

static void settle(struct exchange *x, enum exchange_wait result)
{
    const char *message;
    if (receive_end_wait(x, result, &message)) {
        reply_status(x, code_of(CONNECT_UNAVAILABLE), message);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Says how JSON has a field of bytes. Texts are bytes in our messages, and OTLP writes the ids of
 * traces and spans in hexadecimal. */
static enum protojson_bytes bytes_of(const ProtobufCFieldDescriptor *f)
{
    static const struct {
        const char *name;
        enum protojson_bytes form;
    } rows[] = {
        {"trace_id", PROTOJSON_HEX},
        {"span_id", PROTOJSON_HEX},
        {"profile_id", PROTOJSON_BASE64},
        {"bytes_value", PROTOJSON_BASE64},
        {"original_payload", PROTOJSON_BASE64},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(f->name, rows[i].name) == 0) {
            return rows[i].form;
        }
    }
    return PROTOJSON_TEXT;
}

bool otlp_json_to_message(struct sv json, struct arena *arena, struct sv *ret, struct err *err)
{
    const ProtobufCMessage *m =
        protojson_read_as(json, &otlp__export_request__descriptor, arena, bytes_of, err);
    if (m == NULL) {
        return false;
    }
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = arena_array(arena, n + 1, 1);
    if (bytes == NULL) {
        return err_set(err, ERR_LIMIT, "message too large for the memory limit of a request");
    }
    *ret = (struct sv){(const char *)bytes, protobuf_c_message_pack(m, bytes)};
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Returns the content type of the response; NULL if that of the request is unknown. Parameters such
 * as a charset do not matter. */
static const char *type_of(struct sv type)
{
    static const struct {
        const char *request;
        const char *response;
    } types[] = {
        {TYPE_PROTO, TYPE_PROTO},
        {"application/protobuf", TYPE_PROTO},
        {TYPE_JSON, TYPE_JSON},
    };
    struct sv params = SV("");
    (void)sv_cut(type, ';', &type, &params);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sv_eq_nocase(sv_trim(type), types[i].request)) {
            return types[i].response;
        }
    }
    return NULL;
}

static void reply_unknown_type(struct exchange *x, struct sv type)
{
    char text[256];
    int n = snprintf(text, sizeof(text), "Unsupported Content-Type: %.*s\n",
                     type.n < 128 ? (int)type.n : 128, type.p);
    exchange_text(x, STATUS_UNSUPPORTED_TYPE, "text/plain; charset=utf-8",
                  (struct sv){text, (size_t)n});
}

/* Refuses a request that cannot be decoded. */
static void refuse(struct exchange *x, const char *where, struct err *err)
{
    bool memory = err->kind == ERR_MEMORY;
    bool large = err->kind == ERR_LIMIT;
    receive_count(x->options->served->receiver, RECEIVE_OTLP,
                  memory  ? RECEIVE_NO_MEMORY
                  : large ? RECEIVE_TOO_LARGE
                          : RECEIVE_BAD_REQUEST,
                  0, err);
    struct code code = code_of(memory  ? CONNECT_UNAVAILABLE
                               : large ? CONNECT_RESOURCE_EXHAUSTED
                                       : CONNECT_INVALID_ARGUMENT);
    if (err->kind == ERR_REFUSED) { /* a Content-Encoding that we do not know */
        code.status = STATUS_UNSUPPORTED_TYPE;
    }
    err_wrap(err, "%s", where);
    reply_status(x, code, err->msg);
}

static void take(struct exchange *x, struct sv message)
{
    struct otlp_export e;
    if (otlp_export(x, x->deadline_ms, message, &e)) {
        reply_success(x, &e);
        return;
    }
    if (e.rejected == 0 && e.code == CONNECT_INVALID_ARGUMENT) {
        err_wrap(&e.err, "Failed to parse protobuf request");
    }
    reply_status(x, code_of(e.code), e.err.msg);
}

static void take_json(struct exchange *x, struct sv body)
{
    struct err err = ERR_INIT;
    struct sv message = SV("");
    struct arena *arena = arena_new(x->bytes_max);
    if (arena == NULL) {
        err_memory(&err);
        refuse(x, "JSON", &err);
    } else if (otlp_json_to_message(body, arena, &message, &err)) {
        take(x, message);
    } else {
        refuse(x, "Failed to parse JSON request", &err);
    }
    arena_free(arena);
}

void otlp_http_work(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct buf inflated;
    struct sv body = SV("");
    struct sv type = request_header(x->request, "Content-Type");
    x->content_type = type_of(type);
    if (x->content_type == NULL) {
        reply_unknown_type(x, type);
        return;
    }
    buf_init(&inflated, receive_body_max(x));
    if (!receive_begin_wait(x, settle)) {
        err_memory(&err);
        refuse(x, "acknowledge", &err);
    } else if (!exchange_inflate(x, &inflated, &body, &err)) {
        refuse(x, "Failed to decode the request", &err);
    } else if (is_json(x)) {
        take_json(x, body);
    } else {
        take(x, body);
    }
    buf_done(&inflated);
}

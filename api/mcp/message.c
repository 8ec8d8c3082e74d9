#include "api/mcp/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"

#define STATUS_OK 200
#define STATUS_BAD 400
#define STATUS_NOT_FOUND 404
#define BASE64_BEGIN "=?base64?"
#define BASE64_END "?="

static const char *const legacy[] = {MCP_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"};
#define LEGACY_COUNT (sizeof(legacy) / sizeof(legacy[0]))

bool mcp_fail(struct mcp_message *m, enum mcp_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(m->problem, sizeof(m->problem), fmt, ap);
    va_end(ap);
    m->code = code;
    return false;
}

const char *mcp_agree(const char *version)
{
    for (size_t i = 0; version != NULL && i < LEGACY_COUNT; i++) {
        if (strcmp(version, legacy[i]) == 0) {
            return legacy[i];
        }
    }
    return MCP_LEGACY;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_version(struct sv v)
{
    return sv_eq_str(v, MCP_MODERN) || sv_in(v, legacy, LEGACY_COUNT);
}

static bool unsupported(struct mcp_message *m, struct sv version)
{
    struct buf shown;
    buf_init(&shown, sizeof(m->requested));
    version.n = version.n < sizeof(m->requested) / 8 * 4 ? version.n : sizeof(m->requested) / 8 * 4;
    (void)snprintf(m->requested, sizeof(m->requested), "%.*s", SV_ARG(version));
    buf_done(&shown);
    return mcp_fail(m, MCP_UNSUPPORTED_VERSION,
                    "the protocol version is not supported: " MCP_MODERN
                    " is, and those from 2024-11-05 to " MCP_LEGACY);
}

/* Decodes the value of Mcp-Name, which may be "=?base64?...?=". Returns false if it is damaged. */
static bool decode_name(struct sv value, struct buf *out)
{
    struct sv end = SV(BASE64_END);
    size_t frame = sizeof(BASE64_BEGIN) - 1 + end.n;
    if (!sv_starts_with(value, SV(BASE64_BEGIN)) || value.n < frame ||
        memcmp(value.p + value.n - end.n, end.p, end.n) != 0) {
        return buf_append(out, value.p, value.n);
    }
    value = (struct sv){value.p + sizeof(BASE64_BEGIN) - 1, value.n - frame};
    return base64_decode(value, out) && buf_ok(out);
}

static bool same_name(struct sv header, const char *name)
{
    struct buf decoded;
    buf_init(&decoded, MCP_BODY_MAX);
    bool same = name != NULL && decode_name(header, &decoded) &&
                sv_eq_str((struct sv){decoded.data, decoded.len}, name);
    buf_done(&decoded);
    return same;
}

/* Compares the headers with the body. Proxies route by the headers, so they must not differ. */
static bool check_headers(struct mcp_message *m, const struct mcp_headers *h, const char *version)
{
    if (h->version.p == NULL || !sv_eq_str(h->version, version)) {
        return mcp_fail(m, MCP_HEADER_MISMATCH,
                        "the header MCP-Protocol-Version must be that of the body, %s", version);
    }
    if (h->method.p == NULL || !sv_eq_str(h->method, m->method)) {
        return mcp_fail(m, MCP_HEADER_MISMATCH, "the header Mcp-Method must be that of the body");
    }
    bool calls = strcmp(m->method, "tools/call") == 0;
    const char *name = json_string_value(json_object_get(m->params, "name"));
    if (calls && name != NULL && (h->name.p == NULL || !same_name(h->name, name))) {
        return mcp_fail(m, MCP_HEADER_MISMATCH, "the header Mcp-Name must be the tool of the body");
    }
    return true;
}

static bool check_modern(struct mcp_message *m, const struct mcp_headers *h, const json_t *meta,
                         const char *version)
{
    m->modern = true;
    if (version == NULL) {
        return mcp_fail(m, MCP_INVALID_PARAMS,
                        "_meta needs " MCP_META "protocolVersion, such as " MCP_MODERN);
    }
    if (!is_version(sv_from(version))) {
        return unsupported(m, sv_from(version));
    }
    if (!check_headers(m, h, version)) {
        return false;
    }
    return json_is_object(json_object_get(meta, MCP_META "clientCapabilities")) ||
           mcp_fail(m, MCP_INVALID_PARAMS, "_meta needs the object " MCP_META "clientCapabilities");
}

/* Decides which generation a request is of. */
static bool check_version(struct mcp_message *m, const struct mcp_headers *h)
{
    const json_t *meta = json_object_get(m->params, "_meta");
    const json_t *version = json_object_get(meta, MCP_META "protocolVersion");
    bool modern_header = h->version.p != NULL && sv_eq_str(h->version, MCP_MODERN);
    if (version != NULL || modern_header || strcmp(m->method, "server/discover") == 0) {
        return check_modern(m, h, meta, json_string_value(version));
    }
    return h->version.p == NULL || is_version(h->version) || unsupported(m, h->version);
}

static bool check_message(struct mcp_message *m)
{
    const json_t *version = json_object_get(m->root, "jsonrpc");
    const json_t *id = json_object_get(m->root, "id");
    const json_t *method = json_object_get(m->root, "method");
    m->params = json_object_get(m->root, "params");
    if (!json_is_object(m->root)) {
        return mcp_fail(m, MCP_INVALID_REQUEST, "expected one JSON-RPC message, an object");
    }
    if (id != NULL && !json_is_string(id) && !json_is_integer(id)) {
        return mcp_fail(m, MCP_INVALID_REQUEST, "id must be a string or a whole number");
    }
    if (json_string_value(version) == NULL || strcmp(json_string_value(version), "2.0") != 0) {
        return mcp_fail(m, MCP_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
    }
    bool response = method == NULL && (json_object_get(m->root, "result") != NULL ||
                                       json_object_get(m->root, "error") != NULL);
    m->id = response ? NULL : id;
    m->method = json_string_value(method);
    if (m->method == NULL && !response) {
        return mcp_fail(m, MCP_INVALID_REQUEST, "method must be a string");
    }
    return m->params == NULL || json_is_object(m->params) ||
           mcp_fail(m, MCP_INVALID_PARAMS, "params must be an object");
}

void mcp_read(struct sv body, const struct mcp_headers *headers, struct mcp_message *ret)
{
    json_error_t problem;
    *ret = (struct mcp_message){.code = MCP_OK};
    if (body.n > MCP_BODY_MAX) {
        (void)mcp_fail(ret, MCP_INVALID_REQUEST, "a message of more than %zu bytes", MCP_BODY_MAX);
        return;
    }
    ret->root = json_loadb(body.n > 0 ? body.p : "", body.n, JSON_REJECT_DUPLICATES, &problem);
    if (ret->root == NULL) {
        (void)mcp_fail(ret, MCP_PARSE_ERROR, "the body is not JSON");
        return;
    }
    if (check_message(ret) && ret->method != NULL && ret->id != NULL) {
        (void)check_version(ret, headers);
    }
}

void mcp_done(struct mcp_message *m)
{
    json_decref(m->root);
    m->root = NULL;
}

/* ---- responses ------------------------------------------------------------------------------- */

int mcp_status(const struct mcp_message *m)
{
    switch (m->code) {
    case MCP_OK:
    case MCP_INTERNAL:
        return STATUS_OK;
    case MCP_NO_METHOD:
        return m->modern ? STATUS_NOT_FOUND : STATUS_OK;
    case MCP_INVALID_PARAMS:
        return m->modern ? STATUS_BAD : STATUS_OK;
    default:
        return STATUS_BAD;
    }
}

static void put_begin(const struct mcp_message *m, struct buf *out)
{
    char *id = m->id != NULL ? json_dumps(m->id, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s", id != NULL ? id : "null");
    free(id);
}

bool mcp_put_result(const struct mcp_message *m, struct sv result, struct buf *out)
{
    put_begin(m, out);
    buf_puts(out, ",\"result\":");
    buf_append(out, result.p, result.n);
    return buf_puts(out, "}");
}

bool mcp_put_error(const struct mcp_message *m, struct buf *out)
{
    put_begin(m, out);
    buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", (int)m->code);
    json_quote(sv_from(m->problem), out);
    if (m->code == MCP_UNSUPPORTED_VERSION) {
        buf_puts(out, ",\"data\":{\"supported\":[\"" MCP_MODERN "\"");
        for (size_t i = 0; i < LEGACY_COUNT; i++) {
            buf_printf(out, ",\"%s\"", legacy[i]);
        }
        buf_puts(out, "],\"requested\":");
        json_quote(sv_from(m->requested), out);
        buf_puts(out, "}");
    }
    return buf_puts(out, "}}");
}

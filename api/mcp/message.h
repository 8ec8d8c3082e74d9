/* Messages of the Model Context Protocol: JSON-RPC 2.0 over "streamable HTTP", one message a body.
 *
 * Two generations of clients are served. Those of revision 2026-07-28 send their version with each
 * request, in the member `_meta` of the parameters, and repeat parts of the request in headers.
 * Those of earlier revisions agree on a version by `initialize` first; nothing of that is kept
 * here.
 *
 * mcp_read() reads bytes from outside and trusts none of them. The functions are pure; any thread.
 */
#ifndef PROFPULL_API_MCP_MESSAGE_H
#define PROFPULL_API_MCP_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* The newest revision with a version in each request, and the newest one without. */
#define MCP_MODERN "2026-07-28"
#define MCP_LEGACY "2025-11-25"
#define MCP_META "io.modelcontextprotocol/"

/* Error codes of JSON-RPC and of the protocol. */
enum mcp_code {
    MCP_OK = 0,
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_UNSUPPORTED_VERSION = -32022,
};

/* Limit of a message, and of the text of an error. */
#define MCP_BODY_MAX ((size_t)256 * 1024)
#define MCP_MESSAGE_MAX 512

/* Headers of a request; p is NULL for one that is absent. */
struct mcp_headers {
    struct sv version; /* MCP-Protocol-Version */
    struct sv method;  /* Mcp-Method */
    struct sv name;    /* Mcp-Name */
};

struct mcp_message {
    json_t *root;         /* owned; NULL if the body is no JSON */
    const json_t *id;     /* NULL: a notification, or a response */
    const char *method;   /* NULL: a response, which is ignored */
    const json_t *params; /* an object; may be NULL */
    bool modern;          /* of MCP_MODERN */
    /* The first thing that is wrong with the message; MCP_OK if nothing is. */
    enum mcp_code code;
    char problem[MCP_MESSAGE_MAX];
    char requested[64]; /* of MCP_UNSUPPORTED_VERSION: the version that the client asked for */
};

/* Reads a message and checks everything but the method and its parameters. mcp_done() must be
 * called whatever the result. */
void mcp_read(struct sv body, const struct mcp_headers *headers, struct mcp_message *ret);
void mcp_done(struct mcp_message *m);

/* Returns the version to agree on in `initialize`: the client's if it is known, else MCP_LEGACY. */
const char *mcp_agree(const char *version);

/* Sets the error of a message; returns false. */
bool mcp_fail(struct mcp_message *m, enum mcp_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the HTTP status of the response to a message with its code. */
int mcp_status(const struct mcp_message *m);

/* Append a response with a result (the text of an object), or with the error of the message. */
bool mcp_put_result(const struct mcp_message *m, struct sv result, struct buf *out);
bool mcp_put_error(const struct mcp_message *m, struct buf *out);

#endif

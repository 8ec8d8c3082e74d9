/* The protocols in which calls of the APIs arrive: Connect, gRPC and gRPC-web. They differ in the
 * content type, in the frame around a message, in the names of headers, and in where the status of
 * a call stands; methods know nothing of it (connect.h).
 *
 * gRPC needs trailers, which have the status: HTTP/2, or chunks of HTTP/1.1 as connect-go's clients
 * use them. gRPC-web, also over HTTP/1.0, has the trailers in a last frame of the body, in base64
 * if the client asks for text. One message goes each way. Sources: https://github.com/grpc/grpc,
 * doc/PROTOCOL-HTTP2.md and doc/PROTOCOL-WEB.md. Pure; any thread.
 */
#ifndef PROFPULL_API_RPC_H
#define PROFPULL_API_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "server/exchange.h"
#include "server/request.h"

enum rpc_protocol { RPC_CONNECT, RPC_GRPC, RPC_GRPC_WEB, RPC_GRPC_WEB_TEXT };

/* A content type of requests. */
struct rpc_type {
    const char *media; /* also the content type of the response */
    enum rpc_protocol protocol;
    bool json;                /* the messages are JSON, not protobuf */
    const char *with_charset; /* content type of the response to a request with a charset */
};

/* The content types that are served, for the header Accept-Post; those of gRPC not over HTTP/1.0.
 */
#define RPC_ACCEPTED_TYPES                                                                         \
    "application/json, application/json; charset=utf-8, application/proto, "                       \
    "application/grpc-web, application/grpc-web+json, application/grpc-web+proto, "                \
    "application/grpc-web-text, application/grpc-web-text+proto"
#define RPC_GRPC_TYPES "application/grpc, application/grpc+json, application/grpc+proto"

/* Finds the type of a request; NULL if it is not served. *ret_echo is the content type of the
 * response. */
const struct rpc_type *rpc_type_of(const struct request *r, const char **ret_echo);

/* The result of reading a frame. */
enum rpc_frame {
    RPC_FRAME_OK,
    RPC_FRAME_BROKEN, /* the body ends within the frame, or its first byte is wrong */
    RPC_FRAME_COUNT,  /* there is not exactly one message */
    RPC_FRAME_LARGE,  /* the message is larger than the limit */
};

/* Takes the message out of a body of gRPC or gRPC-web. *ret_packed: it is compressed. max: limit of
 * the message as it was sent, in bytes. */
enum rpc_frame rpc_unframe(struct sv body, size_t max, struct sv *ret_message, bool *ret_packed,
                           struct err *err);
/* Decodes the base64 of gRPC-web-text: any number of padded pieces. False if it is none. */
bool rpc_decode_text(struct sv text, struct buf *out);

/* Reads the value of grpc-timeout: up to eight digits and one of H, M, S, m, u, n. Less than a
 * millisecond counts as one, unless it is nothing. False for any other text. */
bool rpc_timeout(struct sv value, int64_t *ret_ms);

/* Appends a status message as grpc-message has it: bytes outside of 0x20 to 0x7e, and "%", become
 * %XX. */
void rpc_put_message(struct buf *out, struct sv text);

/* Turns the message in the reply of an exchange into the response of gRPC or gRPC-web: status 0. */
void rpc_succeed(struct exchange *x, const struct rpc_type *type);
/* Appends the response to a call that failed: headers for gRPC, a body for gRPC-web. The status of
 * HTTP is 200. code: the number of gRPC. */
void rpc_fail(const struct rpc_type *type, unsigned code, struct sv message, struct buf *headers,
              struct buf *body);

#endif

/* Unary calls of the services of the APIs, in the protocols Connect (connectrpc.com), gRPC and
 * gRPC-web: one message as protobuf or JSON in a POST, another one in the response.
 *
 * A service is a table of methods. A method is called on the thread of its exchange, with a request
 * that was read and checked against its message type, and makes its response in the arena of the
 * call. It does not see the protocol: api/rpc.h has the differences. Other content types get 415.
 */
#ifndef PROFPULL_API_CONNECT_H
#define PROFPULL_API_CONNECT_H

#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "server/exchange.h"

/* The code of an error, from which clients know why a call has failed. */
enum connect_code {
    CONNECT_BY_KIND, /* the code that belongs to the kind of the error */
    CONNECT_CANCELED,
    CONNECT_UNKNOWN,
    CONNECT_INVALID_ARGUMENT,
    CONNECT_DEADLINE_EXCEEDED,
    CONNECT_NOT_FOUND,
    CONNECT_ALREADY_EXISTS,
    CONNECT_PERMISSION_DENIED,
    CONNECT_RESOURCE_EXHAUSTED,
    CONNECT_FAILED_PRECONDITION,
    CONNECT_UNIMPLEMENTED,
    CONNECT_INTERNAL,
    CONNECT_UNAVAILABLE,
    CONNECT_UNAUTHENTICATED,
};

struct connect_call {
    const struct exchange *exchange;
    /* monotonic: the deadline of the exchange, or that of the client if it is earlier */
    int64_t deadline_ms;
    struct arena *arena; /* memory for the call, including its response */
    /* The response: a message, or the bytes of one. */
    const ProtobufCMessage *reply;
    struct buf reply_bytes;
    enum connect_code code; /* the code, if the call fails */
    /* damaged profiles that the response leaves out; the metric counts them */
    atomic_size_t damaged;
};

struct connect_method {
    const char *path; /* "/querier.v1.QuerierService/LabelNames" */
    /* NULL: the method takes the bytes of a message in protobuf: its request is a struct sv */
    const ProtobufCMessageDescriptor *input;
    /* type of a response in bytes; may be NULL for other methods */
    const ProtobufCMessageDescriptor *output;
    /* Answers a request. Returns false with err, whose message is sent to the client. */
    bool (*call)(struct connect_call *call, const void *request, struct err *err);
};

/* Answers a request by a table of n methods. body_max: limit of a request, compressed or not. */
void connect_serve(struct exchange *x, const struct connect_method *methods, size_t n,
                   size_t body_max);

/* Fails a call with a code; returns false. */
bool connect_fail(struct connect_call *call, enum connect_code code, struct err *err,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Answers with an error in the protocol of the request: for Connect, and for requests of other
 * APIs, the status of the code and JSON; otherwise the status of gRPC. */
void connect_reply_error(struct exchange *x, enum connect_code code, const struct err *err);
/* Returns the number that gRPC has for a code. */
unsigned connect_code_number(enum connect_code code);

#endif

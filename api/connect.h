/* The Connect protocol (connectrpc.com), unary calls over HTTP/1.1: one message as protobuf or JSON
 * in a POST, one as the answer, errors as JSON with the status of their code.
 *
 * A service is a table of methods. A method is called on the thread of its exchange, with its
 * request read and checked against its message, and answers with a message that it makes in the
 * arena of the call. gRPC is not spoken: its content types get 415, as every unknown one.
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

/* The code of an error, by which clients know why a call has failed. */
enum connect_code {
    CONNECT_BY_KIND, /* what the kind of the error says */
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
    int64_t deadline_ms; /* monotonic: that of the exchange, or of the client if it is sooner */
    struct arena *arena; /* what the call makes, the answer included */
    /* The answer: a message, or the bytes of one. */
    const ProtobufCMessage *reply;
    struct buf reply_bytes;
    enum connect_code code; /* of a failure */
    atomic_size_t damaged;  /* profiles that the answer is without; they are counted */
};

struct connect_method {
    const char *path; /* "/querier.v1.QuerierService/LabelNames" */
    const ProtobufCMessageDescriptor *input;
    const ProtobufCMessageDescriptor *output; /* of an answer in bytes; else it may be NULL */
    /* Answers a request. False with err, whose message is the client's. */
    bool (*call)(struct connect_call *call, const void *request, struct err *err);
};

/* Answers by a table of n methods. body_max: of a request, also without its compression. */
void connect_serve(struct exchange *x, const struct connect_method *methods, size_t n,
                   size_t body_max);

/* Fails a call with a code; returns false. */
bool connect_fail(struct connect_call *call, enum connect_code code, struct err *err,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Answers with an error of Connect: its status and JSON. */
void connect_reply_error(struct exchange *x, enum connect_code code, const struct err *err);

#endif

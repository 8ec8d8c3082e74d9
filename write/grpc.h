/* gRPC as far as a request with one message needs it: the frame around the message, and the status
 * that ends the answer, which comes as a trailer after a 200, or in the head if there is nothing
 * else.
 *
 * Each code stands for a status of HTTP, so that all else (retries, advice, metrics) knows
 * one kind of status. Values with one owner and pure functions; any thread.
 */
#ifndef PROFPULL_WRITE_GRPC_H
#define PROFPULL_WRITE_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "write/answer.h"

#define GRPC_CONTENT_TYPE "application/grpc"
/* Bytes before a message: whether it is compressed, and its length. */
#define GRPC_FRAME 5

/* Appends the head of a frame with n bytes that are not compressed. */
void grpc_put_frame(struct buf *out, uint32_t n);
/* The value of the header grpc-timeout: eight digits and a unit at most. An empty text if there is
 * no limit, or one that is too long for eight digits. */
void grpc_timeout(int64_t ms, char out[16]);

/* How an answer ended. */
struct grpc_end {
    char status[12];    /* the number as it came; "" if none did */
    struct buf message; /* decoded; at most ANSWER_BODY_MAX bytes */
};

void grpc_end_init(struct grpc_end *e);
void grpc_end_done(struct grpc_end *e);
/* Looks at a field of an answer. */
void grpc_end_take(struct grpc_end *e, struct sv name, struct sv value);

/* For rows of protocols. An answer that broke off before its status counts as
 * none at all. */
void grpc_translate(struct answer_input *in);
void grpc_read_refusal(const struct answer_input *in, struct reply *r);
/* A 200 is one only if gRPC says so, too. */
bool grpc_accepts(const struct answer_input *in, const struct reply *r);
void grpc_classify(const struct answer_input *in, const struct reply *r, struct answer *a);

#endif

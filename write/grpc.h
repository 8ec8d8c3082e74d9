/* The parts of gRPC that a request with one message needs: the frame around the message, and the
 * status that ends the response. The status is a trailer after a 200, or a header if the response
 * has no message.
 *
 * Each code of gRPC is translated to a status of HTTP, so that everything else (retries, advice,
 * metrics) handles one kind of status. Values with one owner and pure functions; any thread.
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
/* Writes the value of the header grpc-timeout: at most eight digits, and a unit. The text is empty
 * if there is no limit, or if the limit is too long for eight digits. */
void grpc_timeout(int64_t ms, char out[16]);

/* The end of a response: the status of gRPC and its message. */
struct grpc_end {
    char status[12];    /* the number as it arrived; "" if none did */
    struct buf message; /* decoded; at most ANSWER_BODY_MAX bytes */
};

void grpc_end_init(struct grpc_end *e);
void grpc_end_done(struct grpc_end *e);
/* Takes the status, or its message, from a header or trailer; ignores all others. */
void grpc_end_take(struct grpc_end *e, struct sv name, struct sv value);

/* The member `translate` of protocols. A response that broke off before its gRPC status counts as
 * no response at all. */
void grpc_translate(struct answer_input *in);
void grpc_read_refusal(const struct answer_input *in, struct reply *r);
/* The member `accepts` of protocols: a 200 counts as success only if the gRPC status is 0. */
bool grpc_accepts(const struct answer_input *in, const struct reply *r);
void grpc_classify(const struct answer_input *in, const struct reply *r, struct answer *a);

#endif

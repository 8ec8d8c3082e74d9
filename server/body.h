/* Reads the body of a request as its bytes arrive: as many as Content-Length says, or chunks.
 *
 * The body comes from outside and is not trusted: the bytes that frame the chunks are limited by
 * the content of the chunks. Pure; one owner.
 */
#ifndef PROFPULL_SERVER_BODY_H
#define PROFPULL_SERVER_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/request.h"

enum body_state {
    BODY_MORE, /* the body is not complete yet */
    BODY_WHOLE,
    BODY_BAD,   /* the chunks are not framed as HTTP requires */
    BODY_LARGE, /* the body has more bytes than max */
    BODY_NO_MEMORY,
};

struct body {
    struct buf content; /* read it when the body is complete; body_done() frees it */
    /* Private. */
    uint64_t left; /* bytes that are still to come of the body, or of the current chunk */
    uint64_t framing;
    int at; /* the position within the framing of chunks */
    unsigned digits;
    bool too_large;
};

/* Begins to read the body of a request. max: the most bytes of content. */
void body_init(struct body *b, const struct request *r, size_t max);
/* Begins to read a body that ends when its sender says so, as a stream of HTTP/2 does: body_take()
 * never returns BODY_WHOLE. */
void body_init_open(struct body *b, size_t max);
void body_done(struct body *b);
/* Takes the bytes that belong to the body from the front of the data, and sets *ret_used to their
 * number. Do not call it again after a result other than BODY_MORE. */
enum body_state body_take(struct body *b, struct sv data, size_t *ret_used);

#endif

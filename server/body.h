/* The body of a request as it comes: so many bytes, or chunks.
 *
 * It comes from outside and is not trusted: what frames the chunks is bounded by what they bring.
 * Pure; one owner.
 */
#ifndef PROFPULL_SERVER_BODY_H
#define PROFPULL_SERVER_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/request.h"

enum body_state {
    BODY_MORE, /* it is not whole yet */
    BODY_WHOLE,
    BODY_BAD,   /* no chunks as HTTP has them */
    BODY_LARGE, /* more than the buffer may hold */
    BODY_NO_MEMORY,
};

struct body {
    struct buf content; /* read it once it is whole; body_done() frees it */
    /* Private. */
    uint64_t left; /* bytes of the body, or of the chunk */
    uint64_t framing;
    int at; /* within chunks */
    unsigned digits;
    bool too_large;
};

/* max: bytes of content. */
void body_init(struct body *b, const struct request *r, size_t max);
void body_done(struct body *b);
/* Takes what belongs to the body from the front of the data; *ret_used: how much that was. Not to
 * be called again after anything but BODY_MORE. */
enum body_state body_take(struct body *b, struct sv data, size_t *ret_used);

#endif

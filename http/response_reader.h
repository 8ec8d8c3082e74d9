/* The framing of HTTP/1 responses (RFC 9112): bytes in, lines and pieces of the body out.
 *
 * Pure; no IO. Strict where two readers could disagree on where a response ends: a length that is
 * no number, two different ones, a coding other than chunked. Any thread.
 */
#ifndef PROFPULL_HTTP_RESPONSE_READER_H
#define PROFPULL_HTTP_RESPONSE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum response_event {
    RESPONSE_MORE, /* the bytes are used up */
    RESPONSE_LINE, /* of the head or of the trailers, without its end; an empty one ends them */
    RESPONSE_BODY, /* some of the body */
    RESPONSE_END,  /* the response is whole */
    RESPONSE_BAD,  /* not HTTP: error says why */
    RESPONSE_LONG_LINE, /* over line_max */
    RESPONSE_NO_MEMORY,
};

enum response_state {
    RESPONSE_AT_STATUS,
    RESPONSE_AT_FIELD,
    RESPONSE_AT_LENGTH_BODY,
    RESPONSE_AT_OPEN_BODY, /* until the connection ends */
    RESPONSE_AT_CHUNK_SIZE,
    RESPONSE_AT_CHUNK_EXTENSION,
    RESPONSE_AT_CHUNK,
    RESPONSE_AT_CHUNK_END,
    RESPONSE_AT_TRAILER,
    RESPONSE_AT_END,
};

struct response_reader {
    enum response_state state;
    struct buf line; /* the beginning of a line that came in pieces */
    bool line_given; /* it is whole and was returned */
    bool to_head;    /* the request was HEAD */
    bool any;        /* a byte of this response has come */
    bool has_length; /* of this head: Content-Length, */
    bool chunked;    /* Transfer-Encoding, */
    bool closes;     /* and that the connection ends after it */
    bool has_digit;  /* of a chunk's size */
    unsigned status;
    uint64_t left;     /* of the body, or of the chunk */
    const char *error; /* static, for RESPONSE_BAD */
};

/* line_max: the longest line in bytes. to_head: a response to HEAD has no body, whatever it says.
 */
void response_reader_init(struct response_reader *r, size_t line_max, bool to_head);
void response_reader_done(struct response_reader *r);
/* Takes what comes next from the beginning of *in. For RESPONSE_LINE and RESPONSE_BODY, *ret is
 * valid until the next call, and as long as the bytes of *in. After any other result but
 * RESPONSE_MORE there is nothing more to be had. */
enum response_event response_reader_next(struct response_reader *r, struct sv *in, struct sv *ret);
/* Returns true if the next byte is the first one of a response, final or interim. */
bool response_reader_is_between(const struct response_reader *r);
/* Returns true if the response is whole when the connection ends here. */
bool response_reader_may_end(const struct response_reader *r);
/* After RESPONSE_END: returns true if the connection may carry another request. */
bool response_reader_keeps(const struct response_reader *r);

#endif

/* The framing of HTTP/1 responses (RFC 9112): bytes in, lines and pieces of the body out.
 *
 * The reader is pure and does no IO. It is strict where two readers could disagree on the end of a
 * response: it refuses a length that is no number, two different lengths, and a coding other than
 * chunked. Any thread may use a reader of its own.
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
    /* a line of the head or of the trailers, without its line end; an empty one ends them */
    RESPONSE_LINE,
    RESPONSE_BODY,      /* bytes of the body */
    RESPONSE_END,       /* the response is whole */
    RESPONSE_BAD,       /* not HTTP: error says why */
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
    struct buf line; /* the beginning of a line that arrives in pieces */
    bool line_given; /* the line is whole and was returned */
    bool to_head;    /* the request was HEAD */
    bool any;        /* a byte of this response has arrived */
    bool has_length; /* the head has Content-Length, */
    bool chunked;    /* the head has Transfer-Encoding: chunked, */
    bool closes;     /* the connection ends after this response */
    bool has_digit;  /* the size of the chunk has a digit */
    unsigned status;
    uint64_t left;     /* bytes left of the body, or of the chunk */
    const char *error; /* static, for RESPONSE_BAD */
};

/* Prepares a reader. line_max: the longest line in bytes. to_head: the response is to HEAD, and has
 * no body whatever its head says. */
void response_reader_init(struct response_reader *r, size_t line_max, bool to_head);
void response_reader_done(struct response_reader *r);
/* Takes the next event from the beginning of *in. For RESPONSE_LINE and RESPONSE_BODY, *ret is
 * valid until the next call, and as long as the bytes of *in. After any other result but
 * RESPONSE_MORE, no further event follows. */
enum response_event response_reader_next(struct response_reader *r, struct sv *in, struct sv *ret);
/* Returns true if the next byte is the first one of a response, final or interim. */
bool response_reader_is_between(const struct response_reader *r);
/* Returns true if the response is whole when the connection ends here. */
bool response_reader_may_end(const struct response_reader *r);
/* Returns true, after RESPONSE_END, if the connection may carry another request. */
bool response_reader_keeps(const struct response_reader *r);

#endif

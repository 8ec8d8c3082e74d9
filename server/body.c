#include "server/body.h"

#include <string.h>

#include "base/ascii.h"

/* The framing of chunks (sizes, extensions, trailers) may be this many times their content, and
 * FRAMING_FREE more. A chunk of one byte needs five bytes of framing. */
#define FRAMING_FACTOR 8
#define FRAMING_FREE ((uint64_t)16 * 1024)
/* Digits that a chunk size may have: a larger size would not fit into 64 bits. */
#define DIGITS_MAX 15

enum at {
    AT_LENGTH,     /* in a body with Content-Length */
    AT_SIZE,       /* in the digits of the size of a chunk */
    AT_EXTENSION,  /* after them, up to the end of the line */
    AT_DATA,       /* in the content of a chunk */
    AT_DATA_CR,    /* at the CR of the CR LF after the content */
    AT_DATA_LF,    /* at the LF after that CR */
    AT_TRAILER,    /* at the start of a line of the trailer; an empty line is the end of the body */
    AT_TRAILER_CR, /* at the LF of an empty line */
    AT_TRAILER_LINE /* in a line of the trailer */
};

void body_init(struct body *b, const struct request *r, size_t max)
{
    *b = (struct body){
        .left = r->is_chunked ? 0 : r->body_length,
        .at = r->is_chunked ? AT_SIZE : AT_LENGTH,
    };
    buf_init(&b->content, max);
}

void body_init_open(struct body *b, size_t max)
{
    *b = (struct body){.left = UINT64_MAX, .at = AT_LENGTH};
    buf_init(&b->content, max);
}

void body_done(struct body *b)
{
    buf_done(&b->content);
}

/* ---- framing --------------------------------------------------------------------------------- */

static bool take_size(struct body *b, char c)
{
    int digit = ascii_hex_value(c);
    if (digit >= 0) {
        b->left = b->left << 4 | (uint64_t)digit;
        return ++b->digits <= DIGITS_MAX;
    }
    if (b->digits == 0 || strchr("\r\n; \t", c) == NULL || c == '\0') {
        return false;
    }
    b->at = AT_EXTENSION;
    return true;
}

/* Begins a chunk, at the end of the line with its size. */
static void begin_chunk(struct body *b)
{
    b->at = b->left > 0 ? AT_DATA : AT_TRAILER;
    b->digits = 0;
    b->too_large = b->left > b->content.max - b->content.len;
}

static bool take_trailer(struct body *b, char c, bool *ret_end)
{
    if (c == '\n') {
        *ret_end = b->at != AT_TRAILER_LINE;
        b->at = AT_TRAILER;
    } else if (b->at == AT_TRAILER_CR) {
        return false;
    } else if (b->at == AT_TRAILER) {
        b->at = c == '\r' ? AT_TRAILER_CR : AT_TRAILER_LINE;
    }
    return true;
}

/* Takes one byte that is not content. Returns false if this byte may not stand here. */
static bool take_frame(struct body *b, char c, bool *ret_end)
{
    switch ((enum at)b->at) {
    case AT_SIZE:
        if (!take_size(b, c)) {
            return false;
        }
        if (c == '\n') {
            begin_chunk(b);
        }
        return true;
    case AT_EXTENSION:
        if (c == '\n') {
            begin_chunk(b);
        }
        return true;
    case AT_DATA_CR:
        b->at = c == '\n' ? AT_SIZE : AT_DATA_LF;
        return c == '\n' || c == '\r';
    case AT_DATA_LF:
        b->at = AT_SIZE;
        return c == '\n';
    default:
        return take_trailer(b, c, ret_end);
    }
}

/* ---- content --------------------------------------------------------------------------------- */

/* Takes bytes of content from the front of the data. Returns how many. */
static size_t take_content(struct body *b, struct sv data)
{
    size_t n = b->left < data.n ? (size_t)b->left : data.n;
    buf_append(&b->content, data.p, n);
    b->left -= n;
    if (b->left == 0 && b->at == AT_DATA) {
        b->at = AT_DATA_CR;
    }
    return n;
}

static enum body_state failure(const struct body *b)
{
    if (b->too_large || buf_too_big(&b->content)) {
        return BODY_LARGE;
    }
    if (!buf_ok(&b->content)) {
        return BODY_NO_MEMORY;
    }
    return b->framing > FRAMING_FREE + FRAMING_FACTOR * b->content.len ? BODY_BAD : BODY_MORE;
}

static enum body_state take_chunks(struct body *b, struct sv data, size_t *ret_used)
{
    size_t i = 0;
    while (i < data.n) {
        bool end = false;
        if (b->at == AT_DATA) {
            i += take_content(b, sv_skip(data, i));
        } else if (!take_frame(b, data.p[i++], &end)) {
            return BODY_BAD;
        } else {
            b->framing++;
        }
        enum body_state state = failure(b);
        if (end || state != BODY_MORE) {
            *ret_used = i;
            return end && state == BODY_MORE ? BODY_WHOLE : state;
        }
    }
    *ret_used = i;
    return BODY_MORE;
}

enum body_state body_take(struct body *b, struct sv data, size_t *ret_used)
{
    *ret_used = 0;
    if (b->at != AT_LENGTH) {
        return take_chunks(b, data, ret_used);
    }
    *ret_used = take_content(b, data);
    enum body_state state = failure(b);
    return state == BODY_MORE && b->left == 0 ? BODY_WHOLE : state;
}

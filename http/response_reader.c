#include "http/response_reader.h"

#include <string.h>

#include "base/ascii.h"

void response_reader_init(struct response_reader *r, size_t line_max, bool to_head)
{
    *r = (struct response_reader){.to_head = to_head};
    buf_init(&r->line, line_max + 1); /* the end of a line has a CR */
}

void response_reader_done(struct response_reader *r)
{
    buf_done(&r->line);
}

static enum response_event bad(struct response_reader *r, const char *error)
{
    r->error = error;
    return RESPONSE_BAD;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static enum response_event give_line(const struct response_reader *r, struct sv line,
                                     struct sv *ret)
{
    line.n -= line.n > 0 && line.p[line.n - 1] == '\r';
    *ret = line;
    return line.n < r->line.max ? RESPONSE_LINE : RESPONSE_LONG_LINE;
}

/* Takes a line up to its LF. A line that is whole in *in is not copied. */
static enum response_event take_line(struct response_reader *r, struct sv *in, struct sv *ret)
{
    const char *end = memchr(in->p, '\n', in->n);
    struct sv part = {in->p, end != NULL ? (size_t)(end - in->p) : in->n};
    *in = sv_skip(*in, end != NULL ? part.n + 1 : part.n);
    if (end != NULL && r->line.len == 0) {
        return give_line(r, part, ret);
    }
    if (!buf_append(&r->line, part.p, part.n)) {
        return buf_too_big(&r->line) ? RESPONSE_LONG_LINE : RESPONSE_NO_MEMORY;
    }
    r->line_given = end != NULL;
    return end != NULL ? give_line(r, (struct sv){r->line.data, r->line.len}, ret) : RESPONSE_MORE;
}

static bool is_digit_at(struct sv line, size_t i)
{
    return i < line.n && ascii_is_digit(line.p[i]);
}

/* Takes a status line, "HTTP/1.1 200 OK". The reason, and the space before it, may be absent. */
static enum response_event take_status(struct response_reader *r, struct sv line)
{
    if (!sv_starts_with(line, SV("HTTP/1.")) || !is_digit_at(line, 7) || line.n < 12 ||
        line.p[8] != ' ') {
        return bad(r, sv_starts_with(line, SV("HTTP/")) ? "a version other than HTTP/1"
                                                        : "a line that is not a status line");
    }
    r->status = 0;
    for (size_t i = 9; i < 12; i++) {
        if (!is_digit_at(line, i)) {
            return bad(r, "a status that is not a number of three digits");
        }
        r->status = r->status * 10 + (unsigned)(line.p[i] - '0');
    }
    if (r->status < 100 || (line.n > 12 && line.p[12] != ' ')) {
        return bad(r, "a status that is not a number of three digits");
    }
    if (r->status == 101) {
        return bad(r, "a change of protocol that was not requested");
    }
    r->has_length = false;
    r->chunked = false;
    r->closes = line.p[7] == '0';
    r->left = 0;
    r->state = RESPONSE_AT_FIELD;
    return RESPONSE_LINE;
}

static enum response_event take_length(struct response_reader *r, struct sv value)
{
    uint64_t length;
    size_t digits = 0;
    while (is_digit_at(value, digits)) {
        digits++;
    }
    if (digits == 0 || digits < value.n) {
        return bad(r, "a Content-Length that is not a number");
    }
    /* A length above INT64_MAX only says that a very long body follows, which is read until the
     * connection ends. */
    if (!parse_u64(value, INT64_MAX, &length)) {
        r->closes = true;
        return RESPONSE_LINE;
    }
    if (r->has_length && length != r->left) {
        return bad(r, "two different lengths");
    }
    r->has_length = true;
    r->left = length;
    return RESPONSE_LINE;
}

/* Takes "close" and "keep-alive" from a list such as "keep-alive, Upgrade". */
static void take_connection(struct response_reader *r, struct sv value)
{
    struct sv option;
    while (value.n > 0) {
        if (!sv_cut(value, ',', &option, &value)) {
            option = value;
            value.n = 0;
        }
        if (sv_eq_nocase(sv_trim(option), "close")) {
            r->closes = true;
        } else if (sv_eq_nocase(sv_trim(option), "keep-alive")) {
            r->closes = false;
        }
    }
}

static bool is_name(struct sv name)
{
    for (size_t i = 0; i < name.n; i++) {
        if ((unsigned char)name.p[i] <= ' ') {
            return false;
        }
    }
    return name.n > 0;
}

static enum response_event take_field(struct response_reader *r, struct sv line)
{
    struct sv name, value;
    if (!sv_cut(line, ':', &name, &value) || !is_name(name)) {
        return bad(r, "a header line without a name");
    }
    if (memchr(value.p, '\0', value.n) != NULL) {
        return bad(r, "a header with a zero byte");
    }
    value = sv_trim(value);
    if (sv_eq_nocase(name, "content-length")) {
        return take_length(r, value);
    }
    if (sv_eq_nocase(name, "transfer-encoding")) {
        r->chunked = sv_eq_nocase(value, "chunked");
        return r->chunked ? RESPONSE_LINE : bad(r, "a transfer coding other than chunked");
    }
    if (sv_eq_nocase(name, "connection")) {
        take_connection(r, value);
    }
    return RESPONSE_LINE;
}

/* Ends a head: finds the framing of the body (RFC 9112, section 6.3). After a response with both
 * ways of framing, the connection ends. */
static void finish_head(struct response_reader *r)
{
    bool empty = r->to_head || r->status == 204 || r->status == 304;
    if (r->status < 200) {
        r->state = RESPONSE_AT_STATUS;
    } else if (empty || (!r->chunked && r->has_length && r->left == 0)) {
        r->state = RESPONSE_AT_END;
    } else if (r->chunked) {
        r->closes |= r->has_length;
        r->left = 0;
        r->has_digit = false;
        r->state = RESPONSE_AT_CHUNK_SIZE;
    } else {
        r->closes |= !r->has_length;
        r->state = r->has_length ? RESPONSE_AT_LENGTH_BODY : RESPONSE_AT_OPEN_BODY;
    }
}

static enum response_event next_line(struct response_reader *r, struct sv *in, struct sv *ret)
{
    enum response_event event = take_line(r, in, ret);
    if (event != RESPONSE_LINE) {
        return event;
    }
    if (r->state == RESPONSE_AT_STATUS) {
        return take_status(r, *ret);
    }
    if (r->state == RESPONSE_AT_TRAILER) {
        r->state = ret->n == 0 ? RESPONSE_AT_END : r->state;
    } else if (ret->n == 0) {
        finish_head(r);
    } else {
        return take_field(r, *ret);
    }
    return RESPONSE_LINE;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static enum response_event next_body(struct response_reader *r, struct sv *in, struct sv *ret)
{
    *ret = *in;
    if (r->state != RESPONSE_AT_OPEN_BODY) {
        ret->n = ret->n < r->left ? ret->n : (size_t)r->left;
        r->left -= ret->n;
        if (r->left == 0) {
            r->state = r->state == RESPONSE_AT_CHUNK ? RESPONSE_AT_CHUNK_END : RESPONSE_AT_END;
        }
    }
    *in = sv_skip(*in, ret->n);
    return RESPONSE_BODY;
}

static void begin_chunk(struct response_reader *r)
{
    r->state = r->left > 0 ? RESPONSE_AT_CHUNK : RESPONSE_AT_TRAILER;
    r->has_digit = false;
}

/* Takes one byte of "1a3f;extension" CR LF. Returns false if it does not belong there. */
static bool take_size_byte(struct response_reader *r, char c)
{
    int digit = ascii_hex_value(c);
    if (digit >= 0 && r->state == RESPONSE_AT_CHUNK_SIZE) {
        if (r->left > (UINT64_C(1) << 56)) {
            return false;
        }
        r->left = r->left * 16 + (uint64_t)digit;
        r->has_digit = true;
        return true;
    }
    if (!r->has_digit) {
        return false;
    }
    r->state = RESPONSE_AT_CHUNK_EXTENSION;
    if (c == '\n') {
        begin_chunk(r);
    }
    return true;
}

/* Skips the bytes between chunks. */
static enum response_event skip_framing(struct response_reader *r, struct sv *in)
{
    while (in->n > 0) {
        char c = in->p[0];
        bool ok = true;
        if (r->state == RESPONSE_AT_CHUNK_END) {
            ok = c == '\r' || c == '\n';
            if (c == '\n') {
                r->state = RESPONSE_AT_CHUNK_SIZE;
                r->left = 0;
            }
        } else if (r->state == RESPONSE_AT_CHUNK_SIZE || r->state == RESPONSE_AT_CHUNK_EXTENSION) {
            ok = take_size_byte(r, c);
        } else {
            break;
        }
        if (!ok) {
            return bad(r, "a chunk without its size");
        }
        *in = sv_skip(*in, 1);
    }
    return RESPONSE_MORE;
}

enum response_event response_reader_next(struct response_reader *r, struct sv *in, struct sv *ret)
{
    *ret = SV("");
    if (r->line_given) {
        buf_clear(&r->line);
        r->line_given = false;
    }
    r->any |= in->n > 0;
    enum response_event event = skip_framing(r, in);
    if (event != RESPONSE_MORE) {
        return event;
    }
    if (r->state == RESPONSE_AT_END) {
        return RESPONSE_END;
    }
    if (in->n == 0) {
        return RESPONSE_MORE;
    }
    switch (r->state) {
    case RESPONSE_AT_STATUS:
    case RESPONSE_AT_FIELD:
    case RESPONSE_AT_TRAILER:
        return next_line(r, in, ret);
    default:
        return next_body(r, in, ret);
    }
}

bool response_reader_is_between(const struct response_reader *r)
{
    return r->state == RESPONSE_AT_STATUS && (r->line.len == 0 || r->line_given);
}

bool response_reader_may_end(const struct response_reader *r)
{
    return r->state == RESPONSE_AT_OPEN_BODY || r->state == RESPONSE_AT_END;
}

bool response_reader_keeps(const struct response_reader *r)
{
    return r->state == RESPONSE_AT_END && !r->closes;
}

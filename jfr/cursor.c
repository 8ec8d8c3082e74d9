#include "jfr/cursor.h"

#include <string.h>

#include "base/unicode.h"
#include "base/utf8.h"

void jfr_fail(struct jfr_cursor *c, const char *problem)
{
    if (c->problem == NULL) {
        c->problem = problem;
    }
    c->p = c->end;
}

/* The bytes of the longest number. The ninth byte has eight bits. */
#define VARINT_MAX 9

uint64_t jfr_varint_slow(struct jfr_cursor *c)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_MAX; i++) {
        if (c->p == c->end) {
            jfr_fail(c, "a number without end");
            return 0;
        }
        uint64_t byte = *c->p++;
        if (i == VARINT_MAX - 1) {
            return value | byte << 7 * i;
        }
        value |= (byte & 0x7f) << 7 * i;
        if (byte < 0x80) {
            break;
        }
    }
    return value;
}

uint64_t jfr_raw(struct jfr_cursor *c, size_t bytes)
{
    uint64_t value = 0;
    if (jfr_left(c) < bytes) {
        jfr_fail(c, "a value that runs past the end");
        return 0;
    }
    for (size_t i = 0; i < bytes; i++) {
        value = value << 8 | *c->p++;
    }
    return value;
}

void jfr_skip(struct jfr_cursor *c, uint64_t n)
{
    if (n > jfr_left(c)) {
        jfr_fail(c, "a value that runs past the end");
    } else {
        c->p += n;
    }
}

void jfr_skip_numbers(struct jfr_cursor *c, uint64_t n, enum jfr_width width)
{
    if (c->fixed) {
        jfr_skip(c, n > UINT64_MAX / 8 ? UINT64_MAX : n * (uint64_t)width);
        return;
    }
    if (n > jfr_left(c)) {
        jfr_fail(c, "more values than bytes");
        return;
    }
    /* Read eight bytes at a time, from the start of a number. Each byte below 0x80 ends a
     * number. */
    while (n >= sizeof(uint64_t) && jfr_left(c) >= sizeof(uint64_t)) {
        uint64_t ends = ~wire_eight((const char *)c->p) & WIRE_TOP_BITS;
        if (ends == 0) {
            jfr_varint_slow(c);
            n--;
        } else {
            c->p += 8 - __builtin_clzll(ends) / 8;
            /* minus the number of such bytes */
            n -= (ends >> 7) * UINT64_C(0x0101010101010101) >> 56;
        }
    }
    for (; n > 0 && c->problem == NULL; n--) {
        (void)jfr_number(c, width);
    }
}

void jfr_string(struct jfr_cursor *c, struct jfr_string *ret)
{
    *ret = (struct jfr_string){.encoding = jfr_byte(c), .fixed = c->fixed, .content = {"", 0}};
    if (ret->encoding == JFR_STRING_NULL || ret->encoding == JFR_STRING_EMPTY) {
        return;
    }
    if (ret->encoding == JFR_STRING_POOL) {
        ret->index = jfr_number(c, JFR_LONG);
        return;
    }
    uint64_t n = jfr_number(c, JFR_INT);
    const unsigned char *start = c->p;
    if (ret->encoding == JFR_STRING_UTF16) {
        jfr_skip_numbers(c, n, JFR_SHORT);
    } else if (ret->encoding == JFR_STRING_UTF8 || ret->encoding == JFR_STRING_LATIN1) {
        jfr_skip(c, n);
    } else {
        jfr_fail(c, "a string of an encoding that does not exist");
    }
    if (c->problem == NULL) {
        ret->content = (struct sv){(const char *)start, (size_t)(c->p - start)};
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_surrogate(uint32_t unit, uint32_t from)
{
    return unit >= from && unit < from + 0x400;
}

#define LOW_SURROGATE_MIN UINT32_C(0xdc00)

/* Appends UTF-16; a surrogate without its other half becomes U+FFFD. */
static void put_utf16(const struct jfr_string *s, struct buf *out)
{
    struct jfr_cursor c = {.p = (const unsigned char *)s->content.p, .fixed = s->fixed};
    c.end = c.p + s->content.n;
    while (c.p < c.end) {
        char bytes[UTF8_BYTES_MAX];
        uint32_t rune = (uint32_t)jfr_number(&c, JFR_SHORT) & 0xffff;
        if (is_surrogate(rune, SURROGATE_MIN)) {
            struct jfr_cursor ahead = c;
            uint32_t low = c.p < c.end ? (uint32_t)jfr_number(&ahead, JFR_SHORT) & 0xffff : 0;
            if (is_surrogate(low, LOW_SURROGATE_MIN)) {
                rune = 0x10000 + ((rune - SURROGATE_MIN) << 10) + (low - LOW_SURROGATE_MIN);
                c = ahead;
            }
        }
        bool half = rune >= SURROGATE_MIN && rune <= SURROGATE_MAX;
        buf_append(out, bytes, utf8_encode(half ? UTF8_REPLACEMENT_RUNE : rune, bytes));
    }
}

static void put_latin1(struct sv v, struct buf *out)
{
    for (size_t i = 0; i < v.n; i++) {
        char bytes[UTF8_BYTES_MAX];
        buf_append(out, bytes, utf8_encode((unsigned char)v.p[i], bytes));
    }
}

void jfr_string_put(const struct jfr_string *s, struct buf *out)
{
    if (s->encoding == JFR_STRING_UTF16) {
        put_utf16(s, out);
    } else if (s->encoding == JFR_STRING_LATIN1) {
        put_latin1(s->content, out);
    } else if (s->encoding == JFR_STRING_UTF8) {
        if (utf8_valid(s->content)) {
            buf_append(out, s->content.p, s->content.n);
        } else {
            utf8_repair(s->content, out);
        }
    }
}

size_t jfr_string_ascii(const struct jfr_string *s, char *room, size_t size)
{
    struct jfr_cursor c = {.p = (const unsigned char *)s->content.p, .fixed = s->fixed};
    size_t n = 0;
    c.end = c.p + s->content.n;
    for (; n < size && c.p < c.end; n++) {
        uint64_t unit = s->encoding == JFR_STRING_UTF16 ? jfr_number(&c, JFR_SHORT) : *c.p++;
        room[n] = unit < 0x80 ? (char)unit : '\0';
    }
    return n;
}

bool jfr_string_is(const struct jfr_string *s, struct sv text)
{
    if (s->encoding == JFR_STRING_UTF8 || s->encoding == JFR_STRING_LATIN1) {
        return sv_eq(s->content, text);
    }
    if (s->encoding != JFR_STRING_UTF16 || s->content.n < text.n) {
        return false;
    }
    struct jfr_cursor c = {.p = (const unsigned char *)s->content.p, .fixed = s->fixed};
    c.end = c.p + s->content.n;
    for (size_t i = 0; i < text.n; i++) {
        if (c.p == c.end || jfr_number(&c, JFR_SHORT) != (unsigned char)text.p[i]) {
            return false;
        }
    }
    return c.p == c.end;
}

/* UTF-8, and the escaping of text for URLs and JSON: see str.h. */
#include "base/utf8.h"

#include <string.h>

/* Length by the first byte and the range of the second (RFC 3629, section 4); the second's range is
 * what excludes overlong forms, surrogates and all above U+10FFFF. 0 for no valid first byte. */
static size_t sequence(unsigned char first, unsigned char *ret_low, unsigned char *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xbf;
    if (first >= 0xc2 && first <= 0xdf) {
        return 2;
    }
    if (first >= 0xe0 && first <= 0xef) {
        *ret_low = first == 0xe0 ? 0xa0 : 0x80;
        *ret_high = first == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        *ret_low = first == 0xf0 ? 0x90 : 0x80;
        *ret_high = first == 0xf4 ? 0x8f : 0xbf;
        return 4;
    }
    return 0;
}

size_t utf8_decode(struct sv v, uint32_t *ret_rune)
{
    const unsigned char *p = (const unsigned char *)v.p;
    if (p[0] < 0x80) {
        *ret_rune = p[0];
        return 1;
    }
    *ret_rune = UTF8_REPLACEMENT_RUNE;
    unsigned char low;
    unsigned char high;
    size_t len = sequence(p[0], &low, &high);
    if (len == 0 || v.n < len || p[1] < low || p[1] > high) {
        return 0;
    }
    /* Of the first byte the bits behind its length count: 5, 4 or 3. */
    uint32_t rune = p[0] & (0xffU >> (len + 1));
    rune = (rune << 6) | (p[1] & 0x3fU);
    for (size_t i = 2; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        rune = (rune << 6) | (p[i] & 0x3fU);
    }
    *ret_rune = rune;
    return len;
}

/* v without its first n bytes; a view of nothing may be NULL, to which nothing may be added. */
static struct sv skip(struct sv v, size_t n)
{
    return n == 0 ? v : (struct sv){.p = v.p + n, .n = v.n - n};
}

/* How many bytes at the start of v are valid. */
static size_t valid_prefix(struct sv v)
{
    size_t done = 0;
    while (done < v.n) {
        uint32_t rune;
        size_t len = utf8_decode(skip(v, done), &rune);
        if (len == 0) {
            break;
        }
        done += len;
    }
    return done;
}

bool utf8_valid(struct sv v)
{
    return valid_prefix(v) == v.n;
}

bool utf8_repair(struct sv v, struct buf *out)
{
    for (;;) {
        size_t good = valid_prefix(v);
        buf_append(out, v.p, good);
        if (good == v.n) {
            return buf_ok(out);
        }
        buf_puts(out, UTF8_REPLACEMENT);
        v = skip(v, good + 1);
    }
}

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

bool percent_encode(struct sv v, struct buf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if (is_unreserved(c)) {
            buf_putc(out, (char)c);
        } else {
            buf_append(out, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
        }
    }
    return buf_ok(out);
}

static bool json_escape_byte(unsigned char c, struct buf *out)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char escaped[] = "\"\\bfnrt";
    const char *at = c == '\0' ? NULL : strchr(plain, c);
    if (at != NULL) {
        return buf_append(out, (const char[]){'\\', escaped[at - plain]}, 2);
    }
    return buf_printf(out, "\\u%04x", (unsigned)c);
}

bool json_escape(struct sv v, struct buf *out)
{
    size_t start = 0; /* of the run that needs no change */
    size_t i = 0;
    while (i < v.n) {
        unsigned char c = (unsigned char)v.p[i];
        uint32_t rune;
        size_t len = utf8_decode(skip(v, i), &rune);
        if (len > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += len;
            continue;
        }
        buf_append(out, v.p + start, i - start);
        if (len == 0) {
            buf_puts(out, UTF8_REPLACEMENT);
        } else {
            json_escape_byte(c, out);
        }
        i++;
        start = i;
    }
    return i == start ? buf_ok(out) : buf_append(out, v.p + start, i - start);
}

size_t utf8_prefix(struct sv v, size_t max)
{
    if (v.n <= max) {
        return v.n;
    }
    size_t n = max;
    while (n > 0 && ((unsigned char)v.p[n] & 0xc0) == 0x80) {
        n--;
    }
    return n;
}

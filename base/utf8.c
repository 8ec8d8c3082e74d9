#include "base/utf8.h"

#include <string.h>

#define TOP_BITS UINT64_C(0x8080808080808080)

/* Returns the length of a character, given its first byte, and the range of its second byte (RFC
 * 3629, section 4). The range excludes overlong forms, surrogates and everything above U+10FFFF.
 * Returns 0 if no character begins with this byte. */
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
    /* The bits after the length prefix: 5, 4 or 3 of them. */
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

size_t utf8_encode(uint32_t rune, char out[UTF8_BYTES_MAX])
{
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    size_t len = rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (rune & 0x3f));
        rune >>= 6;
    }
    out[0] = (char)((0xf00U >> len & 0xff) | rune);
    return len;
}

/* Returns the number of valid bytes at the start of v. Eight ASCII characters are one step, because
 * nearly all texts consist of them. */
static size_t valid_prefix(struct sv v)
{
    size_t done = 0;
    while (done < v.n) {
        uint64_t eight = UINT64_MAX;
        if (v.n - done >= sizeof(eight)) {
            memcpy(&eight, v.p + done, sizeof(eight));
        }
        if ((eight & TOP_BITS) == 0) {
            done += sizeof(eight);
            continue;
        }
        uint32_t rune;
        size_t len = utf8_decode(sv_skip(v, done), &rune);
        if (len == 0) {
            break;
        }
        done += len;
    }
    return done;
}

static bool is_ascii(struct sv v)
{
    uint64_t all = 0;
    uint64_t eight;
    size_t i = 0;
    for (; v.n - i >= sizeof(eight); i += sizeof(eight)) {
        memcpy(&eight, v.p + i, sizeof(eight));
        all |= eight;
    }
    if (i > 0) { /* the rest, and some of what was seen */
        memcpy(&eight, v.p + v.n - sizeof(eight), sizeof(eight));
        return ((all | eight) & TOP_BITS) == 0;
    }
    for (; i < v.n; i++) {
        all |= (unsigned char)v.p[i];
    }
    return (all & TOP_BITS) == 0;
}

bool utf8_valid(struct sv v)
{
    return is_ascii(v) || valid_prefix(v) == v.n;
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
        v = sv_skip(v, good + 1);
    }
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

struct sv utf8_without_mark(struct sv v)
{
    const struct sv mark = SV("\xef\xbb\xbf");
    return sv_starts_with(v, mark) ? (struct sv){v.p + mark.n, v.n - mark.n} : v;
}

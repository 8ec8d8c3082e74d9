#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Returns the six bits of a character, or -1. */
static int six_bits(char c)
{
    const char *at = c == '\0' ? NULL : strchr(alphabet, c);
    return at == NULL ? -1 : (int)(at - alphabet);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Checks the number of digits and "=", and that the unused bits before the padding are 0. */
static bool ends_well(size_t digits, size_t padding, unsigned bits)
{
    size_t rest = digits % 4;
    if (rest == 0) {
        return padding == 0;
    }
    return rest != 1 && rest + padding == 4 && (bits & (rest == 2 ? 0xfU : 0x3U)) == 0;
}

bool base64_decode(struct sv text, struct buf *out)
{
    unsigned bits = 0;
    size_t digits = 0;
    size_t padding = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        int value = six_bits(c);
        if (is_space(c)) {
            continue;
        }
        if (c == '=') {
            padding++;
            continue;
        }
        if (value < 0 || padding > 0) {
            return false;
        }
        bits = (bits << 6 | (unsigned)value) & 0xffffffU;
        digits++;
        if (digits % 4 != 1) {
            unsigned shift = 6 - 2 * (unsigned)((digits - 1) % 4);
            buf_putc(out, (char)(bits >> shift & 0xffU));
        }
    }
    return ends_well(digits, padding, bits) && buf_ok(out);
}

bool base64_encode(struct sv v, struct buf *out)
{
    for (size_t i = 0; i < v.n; i += 3) {
        size_t n = v.n - i < 3 ? v.n - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++) {
            bits = bits << 8 | (k < n ? (unsigned char)v.p[i + k] : 0U);
        }
        for (size_t k = 0; k < 4; k++) {
            buf_putc(out, k <= n ? alphabet[bits >> (18 - 6 * k) & 63] : '=');
        }
    }
    return buf_ok(out);
}

#include <string.h>

#include "config/base64.h"

/* The six bits of a character, or -1. */
static int value_of(char c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c == '\0' ? NULL : strchr(alphabet, c);
    return at == NULL ? -1 : (int)(at - alphabet);
}

bool base64_decode(struct sv text, struct buf *out)
{
    unsigned bits = 0;
    size_t digits = 0;
    size_t padding = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
            continue;
        }
        if (c == '=') {
            padding++;
            continue;
        }
        int value = value_of(c);
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
    /* The bits that padding leaves over must be none. */
    size_t rest = digits % 4;
    bool whole = rest == 0 ? padding == 0 : rest != 1 && rest + padding == 4;
    unsigned spare = rest == 2 ? 0xfU : rest == 3 ? 0x3U : 0;
    return whole && (bits & spare) == 0 && buf_ok(out);
}

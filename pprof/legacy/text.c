#include "pprof/legacy/text.h"

#include <string.h>

#include "base/ascii.h"

#define HEX_MAX 16 /* digits */

bool text_take(struct sv *in, struct sv text)
{
    bool is = sv_starts_with(*in, text);
    *in = is ? sv_skip(*in, text.n) : *in;
    return is;
}

bool text_take_any(struct sv *in, const char *set)
{
    size_t n = 0;
    while (n < in->n && in->p[n] != '\0' && strchr(set, in->p[n]) != NULL) {
        n++;
    }
    *in = sv_skip(*in, n);
    return n > 0;
}

struct sv text_take_digits(struct sv *in)
{
    struct sv digits = {.p = in->p, .n = 0};
    while (digits.n < in->n && ascii_is_digit(in->p[digits.n])) {
        digits.n++;
    }
    *in = sv_skip(*in, digits.n);
    return digits;
}

bool text_take_hex(struct sv *in, bool upper_case, uint64_t *ret)
{
    size_t n = 0;
    *ret = 0;
    while (n < in->n && n < HEX_MAX && ascii_hex_value(in->p[n]) >= 0 &&
           (upper_case || !ascii_is_upper(in->p[n]))) {
        *ret = *ret << 4 | (uint64_t)ascii_hex_value(in->p[n]);
        n++;
    }
    *in = sv_skip(*in, n);
    return n > 0;
}

bool text_take_line(struct sv *in, struct sv *ret_line)
{
    if (in->n == 0) {
        return false;
    }
    if (!sv_cut(*in, '\n', ret_line, in)) {
        *ret_line = *in;
        *in = SV("");
    }
    return true;
}

size_t text_count(struct sv text, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == c;
    }
    return n;
}

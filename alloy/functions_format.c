/* string.format() with those verbs of Go's fmt that make sense here. Go writes a mistake into the
 * result ("%!d(string=x)"); here it is an error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloy/functions.h"
#include "base/utf8.h"

/* The widest field. */
#define WIDTH_MAX 10000

struct verb {
    bool minus;
    bool plus;
    bool sharp;
    bool space;
    bool zero;
    bool has_precision;
    int width;
    int precision;
    char letter;
};

struct format {
    const struct alloy_call *call;
    struct sv rest;
    size_t next;  /* index of the next argument */
    bool indexed; /* %[n] was used, so that unused arguments are no error */
    struct buf *out;
};

/* ---- what a verb prints ---------------------------------------------------------------------- */

/* Appends the shortest digits, as Go's %v does: with an exponent below 1e-4 and from 1e21 on. */
static void put_shortest(double value, struct buf *out)
{
    char digits[32];
    double size = fabs(value);
    if (size > 0 && (size < 1e-4 || size >= 1e21)) {
        int precision = 0;
        do {
            snprintf(digits, sizeof(digits), "%.*e", precision, value);
        } while (precision++ < 17 && strtod(digits, NULL) - value != 0);
        buf_puts(out, digits);
        return;
    }
    alloy_number_put((struct alloy_number){.kind = NUMBER_FLOAT, .f = value}, out);
}

static bool put_plain(const struct alloy_value *v, struct buf *out);

static bool put_members(const struct alloy_value *v, struct buf *out)
{
    bool ok = !v->open;
    buf_puts(out, v->kind == VALUE_ARRAY ? "[" : "map[");
    for (size_t i = 0; ok && i < v->n_members; i++) {
        buf_puts(out, i > 0 ? " " : "");
        if (v->kind == VALUE_OBJECT) {
            buf_printf(out, "%.*s:", SV_ARG(v->members[i].key));
        }
        ok = put_plain(v->members[i].value, out);
    }
    buf_putc(out, ']');
    return ok;
}

static bool put_plain_number(struct alloy_number n, struct buf *out)
{
    if (n.kind == NUMBER_FLOAT) {
        put_shortest(n.f, out);
        return true;
    }
    return alloy_number_put(n, out);
}

/* Appends a value as %v does. False for values without a plain text: secrets, strings that may be
 * secret, lists that are not known yet, functions and handles. */
static bool put_plain(const struct alloy_value *v, struct buf *out)
{
    switch (v->kind) {
    case VALUE_NULL:
        return buf_puts(out, "<nil>");
    case VALUE_BOOL:
        return buf_puts(out, v->truth ? "true" : "false");
    case VALUE_STRING:
        return !v->maybe_secret && buf_append(out, v->text.p, v->text.n);
    case VALUE_NUMBER:
        return put_plain_number(v->number, out);
    case VALUE_ARRAY:
    case VALUE_OBJECT:
        return put_members(v, out);
    default:
        return false;
    }
}

/* Appends a text as a Go string literal. */
static void put_quoted(struct sv v, struct buf *out)
{
    static const char named[] = "\a\b\f\n\r\t\v\\\"";
    static const char letters[] = "abfnrtv\\\"";
    buf_putc(out, '"');
    while (v.n > 0) {
        uint32_t rune;
        size_t n = utf8_decode(v, &rune);
        const char *at = rune != 0 && rune < 0x80 ? strchr(named, (int)rune) : NULL;
        if (n == 0) {
            buf_printf(out, "\\x%02x", (unsigned char)v.p[0]);
            n = 1;
        } else if (at != NULL) {
            buf_printf(out, "\\%c", letters[at - named]);
        } else if (rune < 0x20 || rune == 0x7f) {
            buf_printf(out, "\\x%02x", (unsigned)rune);
        } else {
            buf_append(out, v.p, n);
        }
        v = sv_skip(v, n);
    }
    buf_putc(out, '"');
}

static void put_hex(const struct verb *verb, struct sv v, struct buf *out)
{
    for (size_t i = 0; i < v.n; i++) {
        buf_printf(out, verb->letter == 'x' ? "%02x" : "%02X", (unsigned char)v.p[i]);
    }
}

static bool put_string(const struct verb *verb, const struct alloy_value *v, struct buf *out)
{
    struct sv text = v->text;
    if (v->kind != VALUE_STRING || v->maybe_secret) {
        return false;
    }
    if (verb->has_precision) {
        struct sv rest = text;
        for (int i = 0; i < verb->precision && rest.n > 0; i++) {
            uint32_t rune;
            size_t n = utf8_decode(rest, &rune);
            rest = sv_skip(rest, n == 0 ? 1 : n);
        }
        text.n -= rest.n;
    }
    switch (verb->letter) {
    case 's':
        buf_append(out, text.p, text.n);
        return true;
    case 'q':
        put_quoted(text, out);
        return true;
    default:
        put_hex(verb, text, out);
        return true;
    }
}

static void put_digits(uint64_t value, unsigned base, bool upper, struct buf *out)
{
    char digits[64];
    size_t n = 0;
    do {
        digits[n++] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
        value /= base;
    } while (value > 0);
    while (n > 0) {
        buf_putc(out, digits[--n]);
    }
}

static bool put_character(bool negative, uint64_t value, struct buf *out)
{
    char bytes[UTF8_BYTES_MAX];
    bool character = !negative && value <= 0x10ffff && !(value >= 0xd800 && value <= 0xdfff);
    return character && buf_append(out, bytes, utf8_encode((uint32_t)value, bytes));
}

static const char *sign_of(const struct verb *verb, bool negative)
{
    return negative ? "-" : verb->plus ? "+" : verb->space ? " " : "";
}

static bool put_integer(const struct verb *verb, const struct alloy_value *v, struct buf *out)
{
    static const struct {
        char letter;
        unsigned base;
        const char *prefix; /* written before the digits if the verb has "#" */
    } bases[] = {{'d', 10, ""}, {'x', 16, "0x"}, {'X', 16, "0X"}, {'o', 8, "0"}, {'b', 2, "0b"}};
    if (v->kind != VALUE_NUMBER || v->number.kind == NUMBER_FLOAT) {
        return false;
    }
    bool negative = v->number.kind == NUMBER_INT && v->number.i < 0;
    uint64_t value = negative ? 0 - v->number.u : v->number.u;
    if (verb->letter == 'c') {
        return put_character(negative, value, out);
    }
    buf_puts(out, sign_of(verb, negative));
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        if (bases[i].letter == verb->letter) {
            buf_puts(out, verb->sharp ? bases[i].prefix : "");
            put_digits(value, bases[i].base, verb->letter == 'X', out);
        }
    }
    return true;
}

static bool put_float(const struct verb *verb, const struct alloy_value *v, struct buf *out)
{
    if (v->kind != VALUE_NUMBER || v->number.kind != NUMBER_FLOAT) {
        return false;
    }
    const char *sign = v->number.f >= 0 ? verb->plus ? "+" : verb->space ? " " : "" : "";
    buf_puts(out, sign);
    if (verb->letter == 'g' && !verb->has_precision) {
        put_shortest(v->number.f, out);
        return true;
    }
    int precision = verb->has_precision ? verb->precision : 6;
    if (verb->letter == 'f') {
        buf_printf(out, "%.*f", precision, v->number.f);
    } else if (verb->letter == 'e') {
        buf_printf(out, "%.*e", precision, v->number.f);
    } else {
        buf_printf(out, "%.*g", precision, v->number.f);
    }
    return true;
}

static bool put_bool(const struct verb *verb, const struct alloy_value *v, struct buf *out)
{
    (void)verb;
    return v->kind == VALUE_BOOL && buf_puts(out, v->truth ? "true" : "false");
}

static bool put_any(const struct verb *verb, const struct alloy_value *v, struct buf *out)
{
    if (v->kind == VALUE_NUMBER && (verb->plus || verb->space)) {
        struct verb number = *verb;
        number.letter = v->number.kind == NUMBER_FLOAT ? 'g' : 'd';
        return v->number.kind == NUMBER_FLOAT ? put_float(&number, v, out)
                                              : put_integer(&number, v, out);
    }
    return put_plain(v, out);
}

static bool put_hex_of(const struct verb *verb, const struct alloy_value *v, struct buf *out)
{
    return v->kind == VALUE_STRING ? put_string(verb, v, out) : put_integer(verb, v, out);
}

static const struct {
    char letter;
    bool (*put)(const struct verb *verb, const struct alloy_value *v, struct buf *out);
    const char *what;
} verbs[] = {
    {'s', put_string, "a string"},
    {'q', put_string, "a string"},
    {'v', put_any, "a plain value"},
    {'d', put_integer, "an integer"},
    {'t', put_bool, "a bool"},
    {'f', put_float, "a number with a fraction"},
    {'e', put_float, "a number with a fraction"},
    {'g', put_float, "a number with a fraction"},
    {'x', put_hex_of, "an integer or a string"},
    {'X', put_hex_of, "an integer or a string"},
    {'o', put_integer, "an integer"},
    {'b', put_integer, "an integer"},
    {'c', put_integer, "an integer"},
};

/* ---- the format ------------------------------------------------------------------------------ */

static char peek(const struct format *f)
{
    return f->rest.n > 0 ? f->rest.p[0] : '\0';
}

static bool parse_int(struct format *f, int *ret_value)
{
    int value = 0;
    while (peek(f) >= '0' && peek(f) <= '9') {
        value = value * 10 + (peek(f) - '0');
        f->rest = sv_skip(f->rest, 1);
        if (value > WIDTH_MAX) {
            (void)alloy_call_fail(f->call, 0, "a width or precision over %d", WIDTH_MAX);
            return false;
        }
    }
    *ret_value = value;
    return true;
}

static void parse_flags(struct format *f, struct verb *verb)
{
    for (;; f->rest = sv_skip(f->rest, 1)) {
        switch (peek(f)) {
        case '-':
            verb->minus = true;
            break;
        case '+':
            verb->plus = true;
            break;
        case '#':
            verb->sharp = true;
            break;
        case ' ':
            verb->space = true;
            break;
        case '0':
            verb->zero = true;
            break;
        default:
            return;
        }
    }
}

/* Parses %[n], which selects the next argument. */
static bool parse_argument(struct format *f)
{
    int n = 0;
    if (peek(f) != '[') {
        return true;
    }
    f->rest = sv_skip(f->rest, 1);
    if (!parse_int(f, &n)) {
        return false;
    }
    if (peek(f) != ']' || n < 1) {
        (void)alloy_call_fail(f->call, 0, "expected the number of an argument in \"[...]\"");
        return false;
    }
    f->rest = sv_skip(f->rest, 1);
    f->next = (size_t)n;
    f->indexed = true;
    return true;
}

static bool parse_verb(struct format *f, struct verb *verb)
{
    *verb = (struct verb){0};
    parse_flags(f, verb);
    if (!parse_argument(f) || !parse_int(f, &verb->width)) {
        return false;
    }
    if (peek(f) == '.') {
        f->rest = sv_skip(f->rest, 1);
        verb->has_precision = true;
        if (!parse_int(f, &verb->precision)) {
            return false;
        }
    }
    if (!parse_argument(f)) {
        return false;
    }
    verb->letter = peek(f);
    f->rest = sv_skip(f->rest, f->rest.n > 0 ? 1 : 0);
    return true;
}

static size_t count_runes(struct sv v)
{
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) {
        n += ((unsigned char)v.p[i] & 0xc0) != 0x80;
    }
    return n;
}

/* Appends the text of a verb, padded to its width. */
static void put_padded(const struct verb *verb, struct sv text, struct buf *out)
{
    size_t n = count_runes(text);
    size_t pad = (size_t)verb->width > n ? (size_t)verb->width - n : 0;
    bool zeros = verb->zero && !verb->minus;
    bool sign = text.n > 0 && strchr("+- ", text.p[0]) != NULL && verb->letter != 's';
    if (zeros && sign) {
        buf_putc(out, text.p[0]);
        text = sv_skip(text, 1);
    }
    for (size_t i = 0; !verb->minus && i < pad; i++) {
        buf_putc(out, zeros ? '0' : ' ');
    }
    buf_append(out, text.p, text.n);
    for (size_t i = 0; verb->minus && i < pad; i++) {
        buf_putc(out, ' ');
    }
}

/* Formats the verb after a "%". False after a report. */
static bool put_verb(struct format *f)
{
    struct verb verb;
    struct buf text;
    size_t i = 0;
    if (!parse_verb(f, &verb)) {
        return false;
    }
    if (verb.letter == '%') {
        return buf_putc(f->out, '%');
    }
    while (i < sizeof(verbs) / sizeof(verbs[0]) && verbs[i].letter != verb.letter) {
        i++;
    }
    if (i == sizeof(verbs) / sizeof(verbs[0])) {
        (void)alloy_call_fail(f->call, 0,
                              "expected one of the verbs s q v d t f e g x X o b c after "
                              "\"%%\"");
        return false;
    }
    if (f->next >= f->call->n) {
        (void)alloy_call_fail(f->call, 0, "no argument for \"%%%c\"", verb.letter);
        return false;
    }
    size_t arg = f->next++;
    buf_init(&text, ALLOY_STRING_MAX);
    bool ok = verbs[i].put(&verb, f->call->args[arg].value, &text);
    if (ok) {
        put_padded(&verb, (struct sv){text.data, text.len}, f->out);
    } else {
        (void)alloy_call_fail(f->call, arg, "expected %s for \"%%%c\", got %s", verbs[i].what,
                              verb.letter, alloy_what(f->call->args[arg].value));
    }
    buf_done(&text);
    return ok;
}

const struct alloy_value *alloy_format(const struct alloy_call *call)
{
    struct buf out;
    struct format f = {.call = call, .next = 1, .out = &out};
    if (!alloy_arg_text(call, 0, &f.rest)) {
        return &alloy_unknown;
    }
    buf_init(&out, ALLOY_STRING_MAX);
    while (f.rest.n > 0) {
        const char *percent = memchr(f.rest.p, '%', f.rest.n);
        size_t n = percent != NULL ? (size_t)(percent - f.rest.p) : f.rest.n;
        buf_append(&out, f.rest.p, n);
        f.rest = sv_skip(f.rest, percent != NULL ? n + 1 : n);
        if (percent != NULL && !put_verb(&f)) {
            buf_done(&out);
            return &alloy_unknown;
        }
    }
    if (f.next < call->n && !f.indexed) {
        buf_done(&out);
        return alloy_call_fail(call, f.next, "an argument too many for the format");
    }
    return alloy_text_result(call, &out);
}

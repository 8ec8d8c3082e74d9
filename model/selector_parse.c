#include <string.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "model/selector.h"

struct parser {
    struct sv in;
    size_t at;
    struct selector *to;
    struct buf text; /* content of the quoted string that was read last */
    struct err *err;
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* Puts line and column of a byte in front of the error. */
static bool place(const struct parser *p, size_t at)
{
    size_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < at; i++) {
        if (p->in.p[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    return err_wrap(p->err, "%zu:%zu: parse error", line, at - start + 1);
}

static size_t word_length(struct sv v, bool with_colons)
{
    size_t n = 0;
    while (n < v.n && (ascii_is_word(v.p[n]) || (with_colons && v.p[n] == ':')) &&
           (n > 0 || !ascii_is_digit(v.p[n]))) {
        n++;
    }
    return n;
}

/* Sets an error about the text at the current place. `expected` ends the message. */
static bool unexpected(struct parser *p, const char *expected)
{
    struct sv rest = sv_skip(p->in, p->at);
    size_t word = word_length(rest, true);
    if (rest.n == 0) {
        err_set(p->err, ERR_INPUT, "unexpected end of input%s", expected);
    } else if (word > 0) {
        err_set(p->err, ERR_INPUT, "unexpected identifier \"%.*s\"%s",
                SV_ARG(((struct sv){rest.p, word})), expected);
    } else {
        uint32_t rune;
        size_t n = utf8_decode(rest, &rune);
        err_set(p->err, ERR_INPUT, "unexpected \"%.*s\"%s", n == 0 ? 1 : (int)n,
                n == 0 ? "?" : rest.p, expected);
    }
    return place(p, p->at);
}

/* Sets the error of unexpected() within braces, where the end of the text has a message of its own.
 */
static bool unexpected_inside(struct parser *p, const char *expected)
{
    return unexpected(p, p->at == p->in.n ? " inside braces" : expected);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void skip_blanks(struct parser *p)
{
    while (p->at < p->in.n && strchr(" \t\r\n", p->in.p[p->at]) != NULL && p->in.p[p->at] != '\0') {
        p->at++;
    }
}

static bool take(struct parser *p, const char *text)
{
    if (!sv_starts_with(sv_skip(p->in, p->at), sv_from(text))) {
        return false;
    }
    p->at += strlen(text);
    return true;
}

static bool put_rune(struct buf *out, uint32_t rune)
{
    char bytes[UTF8_BYTES_MAX];
    if (rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff)) {
        return false;
    }
    return buf_append(out, bytes, utf8_encode(rune, bytes));
}

/* Reads the digits of an escape. */
static bool number(struct parser *p, size_t digits, unsigned base, uint32_t *ret)
{
    uint32_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = p->at < p->in.n ? ascii_hex_value(p->in.p[p->at]) : -1;
        if (digit < 0 || (unsigned)digit >= base) {
            return false;
        }
        value = value * base + (uint32_t)digit;
        p->at++;
    }
    *ret = value;
    return true;
}

/* Reads an escape after its backslash. */
static bool escape(struct parser *p)
{
    static const char plain[] = "abfnrtv\\\"'";
    static const char means[] = "\a\b\f\n\r\t\v\\\"'";
    static const struct {
        char letter;
        uint8_t digits;
        bool is_rune;
    } numbers[] = {{'x', 2, false}, {'u', 4, true}, {'U', 8, true}};
    if (p->at == p->in.n) {
        return false;
    }
    char c = p->in.p[p->at];
    const char *known = c == '\0' ? NULL : strchr(plain, c);
    uint32_t value = 0;
    if (known != NULL) {
        p->at++;
        return buf_putc(&p->text, means[known - plain]);
    }
    if (c >= '0' && c <= '7') {
        return number(p, 3, 8, &value) && value <= 0xff && buf_putc(&p->text, (char)value);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (c == numbers[i].letter) {
            p->at++;
            return number(p, numbers[i].digits, 16, &value) &&
                   (numbers[i].is_rune ? put_rune(&p->text, value)
                                       : buf_putc(&p->text, (char)value));
        }
    }
    return false;
}

static bool is_quote(const struct parser *p)
{
    return p->at < p->in.n && strchr("\"'`", p->in.p[p->at]) != NULL && p->in.p[p->at] != '\0';
}

static bool unterminated(struct parser *p, size_t start)
{
    err_set(p->err, ERR_INPUT, "unterminated quoted string");
    return place(p, start);
}

/* Reads the quoted string that begins at the current place into p->text. Text between backquotes
 * has no escapes. */
static bool quoted(struct parser *p)
{
    size_t start = p->at;
    char quote = p->in.p[p->at++];
    buf_clear(&p->text);
    while (p->at < p->in.n && p->in.p[p->at] != quote) {
        char c = p->in.p[p->at];
        if (c == '\n' && quote != '`') {
            return unterminated(p, start);
        }
        p->at++;
        if (c != '\\' || quote == '`') {
            buf_putc(&p->text, c);
        } else if (!escape(p)) {
            err_set(p->err, ERR_INPUT, "unknown escape sequence");
            return place(p, p->at < p->in.n ? p->at : start);
        }
    }
    if (p->at == p->in.n) {
        return unterminated(p, start);
    }
    p->at++;
    return buf_ok(&p->text) || err_memory(p->err);
}

static struct sv text_of(const struct parser *p)
{
    return (struct sv){p->text.data, p->text.len};
}

/* ---- the grammar ----------------------------------------------------------------------------- */

static bool add(struct parser *p, size_t start, struct sv name, enum matcher_op op)
{
    return selector_add(p->to, name, op, text_of(p), p->err) || place(p, start);
}

static bool operator(struct parser *p, enum matcher_op *ret)
{
    /* "=" is last, because "=~" begins with it. */
    static const struct {
        const char *text;
        enum matcher_op op;
    } ops[] = {
        {"=~", MATCH_REGEX}, {"!~", MATCH_NOT_REGEX}, {"!=", MATCH_NOT_EQUAL}, {"=", MATCH_EQUAL}};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (take(p, ops[i].text)) {
            *ret = ops[i].op;
            return true;
        }
    }
    return false;
}

/* Reads a matcher: name op "value", or "value" alone. `name` is memory for a quoted name. */
static bool matcher(struct parser *p, struct buf *name)
{
    size_t start = p->at;
    size_t word = word_length(sv_skip(p->in, p->at), false);
    bool is_quoted = is_quote(p);
    enum matcher_op op = MATCH_EQUAL;
    if (word == 0 && !is_quoted) {
        return unexpected_inside(p, " in label matching, expected a label or \"}\"");
    }
    buf_clear(name);
    if (is_quoted && !quoted(p)) {
        return false;
    }
    buf_append(name, is_quoted ? p->text.data : p->in.p + p->at, is_quoted ? p->text.len : word);
    p->at += word;
    if (!buf_ok(name)) {
        return err_memory(p->err);
    }
    skip_blanks(p);
    if (!operator(p, &op)) {
        bool ends = p->at < p->in.n && (p->in.p[p->at] == ',' || p->in.p[p->at] == '}');
        return is_quoted && ends
                   ? add(p, start, SV(LABEL_NAME), MATCH_EQUAL)
                   : unexpected_inside(p, " in label matching, expected label matching operator");
    }
    skip_blanks(p);
    if (!is_quote(p)) {
        return unexpected_inside(p, " in label matching, expected string");
    }
    return quoted(p) && add(p, start, (struct sv){name->data, name->len}, op);
}

/* Reads the matchers between braces, and the closing brace. */
static bool matchers(struct parser *p, struct buf *name)
{
    for (;;) {
        skip_blanks(p);
        if (take(p, "}")) {
            return true;
        }
        if (!matcher(p, name)) {
            return false;
        }
        skip_blanks(p);
        if (take(p, "}")) {
            return true;
        }
        if (!take(p, ",")) {
            return unexpected_inside(p, " in label matching, expected \",\" or \"}\"");
        }
    }
}

static bool parse(struct parser *p, struct buf *name)
{
    skip_blanks(p);
    size_t start = p->at;
    size_t word = word_length(sv_skip(p->in, p->at), true);
    if (word > 0) {
        buf_clear(&p->text);
        if (!buf_append(&p->text, p->in.p + p->at, word)) {
            return err_memory(p->err);
        }
        p->at += word;
        if (!add(p, start, SV(LABEL_NAME), MATCH_EQUAL)) {
            return false;
        }
        skip_blanks(p);
    }
    bool braces = take(p, "{");
    if (braces && !matchers(p, name)) {
        return false;
    }
    skip_blanks(p);
    if (p->at < p->in.n || (word == 0 && !braces)) {
        return unexpected(p, "");
    }
    return true;
}

bool selector_add_parsed(struct selector *s, struct sv text, struct err *err)
{
    if (sv_trim(text).n == 0) {
        return err_set(err, ERR_INPUT, "unknown position: parse error: unexpected end of input");
    }
    if (text.n > SELECTOR_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "a selector of %zu bytes, at most %zu are allowed", text.n,
                       SELECTOR_BYTES_MAX);
    }
    struct parser p = {.in = text, .to = s, .err = err};
    struct buf name;
    buf_init(&p.text, SELECTOR_BYTES_MAX);
    buf_init(&name, SELECTOR_BYTES_MAX);
    bool ok = parse(&p, &name);
    buf_done(&p.text);
    buf_done(&name);
    return ok;
}

struct selector *selector_parse(struct sv text, struct err *err)
{
    struct selector *s = selector_new(err);
    if (s != NULL && !selector_add_parsed(s, text, err)) {
        return selector_free(s);
    }
    return s;
}

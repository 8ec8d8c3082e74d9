#include "alloy/scan.h"

#include <string.h>

#include "base/utf8.h"

/* The longest part of a token that a message shows. */
#define SHOWN_MAX 40
#define RUNE_MAX UINT32_C(0x10ffff)

void alloy_scanner_init(struct alloy_scanner *s, const char *file, struct sv source,
                        struct arena *arena)
{
    *s = (struct alloy_scanner){.source = source, .arena = arena, .place = {1, 1, file}};
    s->at = source.n - utf8_without_mark(source).n;
}

/* ---- characters ------------------------------------------------------------------------------ */

/* Returns the byte at this distance; 0 after the end of the text. A NUL in the text is illegal, so
 * both end a token. */
static char peek(const struct alloy_scanner *s, size_t ahead)
{
    return s->source.n - s->at > ahead ? s->source.p[s->at + ahead] : '\0';
}

static bool at_end(const struct alloy_scanner *s)
{
    return s->at >= s->source.n;
}

/* Returns the length in bytes of the character at the current place, and the character in
 * *ret_rune. */
static size_t rune_at(const struct alloy_scanner *s, uint32_t *ret_rune)
{
    size_t n = utf8_decode(sv_skip(s->source, s->at), ret_rune);
    return n == 0 ? 1 : n;
}

/* Advances by one character. */
static void step(struct alloy_scanner *s)
{
    uint32_t rune;
    size_t n = rune_at(s, &rune);
    s->at += n;
    if (rune == '\n') {
        s->place.line++;
        s->place.column = 1;
    } else {
        s->place.column++;
    }
}

static void steps(struct alloy_scanner *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        step(s);
    }
}

static bool is_digit(uint32_t rune)
{
    return rune >= '0' && rune <= '9';
}

/* Returns true for a letter. In Alloy, these are Unicode's category L. Beyond Latin-1 this function
 * accepts whole blocks of letters, with the marks and digits in them: an exact table would only
 * refuse names that Alloy refuses anyway. */
static bool is_letter(uint32_t rune)
{
    static const struct {
        uint32_t low;
        uint32_t high;
    } letters[] = {
        {'A', 'Z'},       {'_', '_'},         {'a', 'z'},         {0xaa, 0xaa},
        {0xb5, 0xb5},     {0xba, 0xba},       {0xc0, 0xd6},       {0xd8, 0xf6},
        {0xf8, 0x1fff},   {0x2c00, 0x2dff},   {0x3005, 0x3007},   {0x3021, 0xd7ff},
        {0xf900, 0xfdff}, {0x10000, 0x1cfff}, {0x1d400, 0x1efff}, {0x20000, 0x3ffff},
    };
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (rune >= letters[i].low && rune <= letters[i].high) {
            return true;
        }
    }
    return false;
}

bool alloy_is_identifier(struct sv text)
{
    for (size_t at = 0; at < text.n;) {
        uint32_t rune;
        size_t n = utf8_decode(sv_skip(text, at), &rune);
        if (n == 0 || !(is_letter(rune) || (at > 0 && is_digit(rune)))) {
            return false;
        }
        at += n;
    }
    return text.n > 0;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static struct alloy_token begin(const struct alloy_scanner *s, enum alloy_token_kind kind)
{
    return (struct alloy_token){.kind = kind, .place = s->place, .start = s->at};
}

/* Ends a token at the current place. */
static struct alloy_token finish(const struct alloy_scanner *s, struct alloy_token t)
{
    t.text = (struct sv){s->source.p + t.start, s->at - t.start};
    return t;
}

static void refuse(struct alloy_scanner *s, struct alloy_token *t, struct config_place place,
                   const char *problem)
{
    if (t->kind == TOKEN_ILLEGAL) {
        return; /* the first problem is the one to report */
    }
    t->kind = TOKEN_ILLEGAL;
    s->problem = problem != NULL ? problem : "out of memory";
    s->problem_place = place;
}

/* ---- white space and comments ---------------------------------------------------------------- */

static void pass_space(struct alloy_scanner *s)
{
    while (peek(s, 0) == ' ' || peek(s, 0) == '\t' || peek(s, 0) == '\r' ||
           (peek(s, 0) == '\n' && !s->may_end)) {
        step(s);
    }
}

static bool starts(const struct alloy_scanner *s, const char two[3])
{
    return peek(s, 0) == two[0] && peek(s, 1) == two[1];
}

static void pass_line(struct alloy_scanner *s)
{
    while (!at_end(s) && peek(s, 0) != '\n') {
        step(s);
    }
}

/* Skips a block comment; false if it is not closed. */
static bool pass_block_comment(struct alloy_scanner *s)
{
    steps(s, 2);
    while (!at_end(s) && !starts(s, "*/")) {
        step(s);
    }
    if (at_end(s)) {
        return false;
    }
    steps(s, 2);
    return true;
}

/* Skips white space and comments. Returns true if they end the line of the previous token: by a
 * line end, the end of the text, or a comment of several lines. Otherwise the next token begins
 * here, or *t is an error. */
static bool pass_to_line_end(struct alloy_scanner *s, struct alloy_token *t)
{
    for (;;) {
        pass_space(s);
        *t = begin(s, TOKEN_TERMINATOR);
        if (starts(s, "//")) {
            pass_line(s);
        } else if (starts(s, "/*")) {
            if (!pass_block_comment(s)) {
                refuse(s, t, t->place, "a comment that begins with \"/*\" is not closed by \"*/\"");
                return false;
            }
        } else {
            return s->may_end && (at_end(s) || peek(s, 0) == '\n');
        }
        if (s->may_end && (at_end(s) || peek(s, 0) == '\n' || s->place.line > t->place.line)) {
            return true;
        }
    }
}

/* ---- identifiers and numbers ----------------------------------------------------------------- */

static struct alloy_token scan_identifier(struct alloy_scanner *s)
{
    static const struct {
        struct sv text;
        enum alloy_token_kind kind;
    } keywords[] = {
        {{"true", 4}, TOKEN_TRUE}, {{"false", 5}, TOKEN_FALSE}, {{"null", 4}, TOKEN_NULL}};
    struct alloy_token t = begin(s, TOKEN_IDENT);
    uint32_t rune;
    while (!at_end(s) && rune_at(s, &rune) > 0 && (is_letter(rune) || is_digit(rune))) {
        step(s);
    }
    t = finish(s, t);
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
        if (sv_eq(t.text, keywords[i].text)) {
            t.kind = keywords[i].kind;
        }
    }
    return t;
}

static void pass_digits(struct alloy_scanner *s)
{
    while (is_digit((unsigned char)peek(s, 0))) {
        step(s);
    }
}

static struct alloy_token scan_number(struct alloy_scanner *s)
{
    struct alloy_token t = begin(s, TOKEN_NUMBER);
    pass_digits(s);
    if (peek(s, 0) == '.') {
        t.kind = TOKEN_FLOAT;
        step(s);
        pass_digits(s);
    }
    if (peek(s, 0) == 'e' || peek(s, 0) == 'E') {
        t.kind = TOKEN_FLOAT;
        step(s);
        if (peek(s, 0) == '+' || peek(s, 0) == '-') {
            step(s);
        }
        if (!is_digit((unsigned char)peek(s, 0))) {
            refuse(s, &t, t.place, "expected digits in the exponent of a number");
        }
        pass_digits(s);
    }
    return finish(s, t);
}

/* ---- strings --------------------------------------------------------------------------------- */

/* The value of a string as it grows: never longer than its text. */
struct text {
    char *p;
    size_t n;
};

static void put(struct text *v, const char *p, size_t n)
{
    if (v->p != NULL) {
        memcpy(v->p + v->n, p, n);
        v->n += n;
    }
}

static int digit_value(char c, int base)
{
    int v = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : base;
    return v < base ? v : -1;
}

/* Reads exactly n digits at the current place; -1 if there are fewer. */
static int64_t scan_digits(struct alloy_scanner *s, int n, int base)
{
    int64_t value = 0;
    for (int i = 0; i < n; i++) {
        int digit = digit_value(peek(s, 0), base);
        if (digit < 0) {
            return -1;
        }
        value = value * base + digit;
        step(s);
    }
    return value;
}

/* Resolves escapes such as \a and \n: c is the character after the backslash. False if there is no
 * such escape. */
static bool simple_escape(char c, char *ret_byte)
{
    static const char from[] = "abfnrtv\\\"";
    static const char to[] = "\a\b\f\n\r\t\v\\\"";
    const char *at = c == '\0' ? NULL : strchr(from, c);
    if (at != NULL) {
        *ret_byte = to[at - from];
    }
    return at != NULL;
}

static void unknown_escape(struct alloy_scanner *s, struct alloy_token *t)
{
    uint32_t rune;
    size_t n = rune_at(s, &rune);
    const char *c = s->source.p + s->at;
    refuse(s, t, s->place,
           arena_printf(s->arena,
                        "unknown escape \"\\%.*s\" in a string; did you mean \"\\\\%.*s\"?", (int)n,
                        c, (int)n, c));
}

/* Reads an escape made of digits; the current place is after the backslash. */
static void scan_code(struct alloy_scanner *s, struct alloy_token *t, struct text *out)
{
    static const struct {
        char c;
        int digits;
    } codes[] = {{'x', 2}, {'u', 4}, {'U', 8}};
    struct config_place place = s->place;
    int64_t code = -1;
    bool is_byte = true;
    char bytes[UTF8_BYTES_MAX];
    if (digit_value(peek(s, 0), 8) >= 0) {
        code = scan_digits(s, 3, 8);
    }
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (peek(s, 0) == codes[i].c && s->place.column == place.column) {
            step(s);
            code = scan_digits(s, codes[i].digits, 16);
            is_byte = codes[i].c == 'x';
        }
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < 0 || code > (is_byte ? 0xff : RUNE_MAX) || surrogate) {
        refuse(s, t, place,
               "a wrong escape in a string: expected \\ooo, \\xhh, \\uhhhh or \\Uhhhhhhhh with the "
               "number of a character");
        return;
    }
    bytes[0] = (char)code;
    put(out, bytes, is_byte ? 1 : utf8_encode((uint32_t)code, bytes));
}

/* Reads an escape; the current place is after the backslash. */
static void scan_escape(struct alloy_scanner *s, struct alloy_token *t, struct text *out)
{
    char byte;
    char c = peek(s, 0);
    if (simple_escape(c, &byte)) {
        put(out, &byte, 1);
        step(s);
    } else if (c == 'x' || c == 'u' || c == 'U' || digit_value(c, 8) >= 0) {
        scan_code(s, t, out);
    } else if (!at_end(s) && c != '\n') {
        unknown_escape(s, t);
        step(s);
    }
}

/* Returns the length of the string's text, which is an upper bound for the length of its value. */
static size_t string_size(const struct alloy_scanner *s)
{
    size_t n = 1;
    while (s->source.n - s->at > n && peek(s, n) != '"' && peek(s, n) != '\n') {
        n += peek(s, n) == '\\' && peek(s, n + 1) != '\n' ? 2 : 1;
    }
    return n;
}

static struct alloy_token scan_string(struct alloy_scanner *s)
{
    struct alloy_token t = begin(s, TOKEN_STRING);
    struct text value = {.p = arena_alloc(s->arena, string_size(s))};
    if (value.p == NULL) {
        refuse(s, &t, t.place, NULL);
    }
    step(s);
    while (!at_end(s) && peek(s, 0) != '"' && peek(s, 0) != '\n') {
        if (peek(s, 0) == '\\') {
            step(s);
            scan_escape(s, &t, &value);
        } else {
            size_t from = s->at;
            step(s);
            put(&value, s->source.p + from, s->at - from);
        }
    }
    if (peek(s, 0) != '"') {
        refuse(s, &t, t.place, "the string is not closed: expected '\"' on the same line");
        return finish(s, t);
    }
    step(s);
    t.value = (struct sv){value.p, value.n};
    return finish(s, t);
}

/* Reads a string in backticks: any text of several lines, without escapes; carriage returns are
 * removed. */
static struct alloy_token scan_raw_string(struct alloy_scanner *s)
{
    struct alloy_token t = begin(s, TOKEN_RAW_STRING);
    struct text value = {0};
    step(s);
    const char *end = memchr(s->source.p + s->at, '`', s->source.n - s->at);
    if (end == NULL) {
        refuse(s, &t, t.place, "the string is not closed: expected \"`\"");
        s->at = s->source.n;
        return finish(s, t);
    }
    value.p = arena_alloc(s->arena, (size_t)(end - (s->source.p + s->at)) + 1);
    if (value.p == NULL) {
        refuse(s, &t, t.place, NULL);
    }
    while (peek(s, 0) != '`') {
        size_t from = s->at;
        step(s);
        if (s->source.p[from] != '\r') {
            put(&value, s->source.p + from, s->at - from);
        }
    }
    step(s);
    t.value = (struct sv){value.p, value.n};
    return finish(s, t);
}

/* ---- operators, and what is none ------------------------------------------------------------- */

static struct alloy_token scan_quoted_wrongly(struct alloy_scanner *s)
{
    struct alloy_token t = begin(s, TOKEN_TERMINATOR);
    refuse(s, &t, t.place, "a string in single quotes; use double quotes");
    do {
        step(s);
    } while (!at_end(s) && peek(s, 0) != '\n' && peek(s, 0) != '\'');
    if (peek(s, 0) == '\'') {
        step(s);
    }
    return finish(s, t);
}

static struct alloy_token scan_illegal(struct alloy_scanner *s)
{
    struct alloy_token t = begin(s, TOKEN_TERMINATOR);
    uint32_t rune;
    size_t n = rune_at(s, &rune);
    char c = peek(s, 0);
    if (c == '#') {
        refuse(s, &t, t.place, "unexpected \"#\"; comments begin with \"//\"");
        pass_line(s);
        return finish(s, t);
    }
    if (c == '&' || c == '|') {
        refuse(s, &t, t.place,
               c == '&' ? "expected \"&&\", got \"&\"" : "expected \"||\", got \"|\"");
    } else if (rune < 0x20 || (rune >= 0x7f && rune < 0xa1) || rune == 0xfeff) {
        refuse(s, &t, t.place,
               arena_printf(s->arena, "unexpected character U+%04X", (unsigned)rune));
    } else {
        refuse(s, &t, t.place,
               arena_printf(s->arena, "unexpected \"%.*s\" (U+%04X)", (int)n, s->source.p + s->at,
                            (unsigned)rune));
    }
    step(s);
    return finish(s, t);
}

static struct alloy_token scan_operator(struct alloy_scanner *s)
{
    /* If one operator is the beginning of another, the longer one comes first. */
    static const struct {
        const char *text;
        enum alloy_token_kind kind;
    } operators[] = {
        {"||", TOKEN_OR},    {"&&", TOKEN_AND},   {"==", TOKEN_EQ},    {"!=", TOKEN_NE},
        {"<=", TOKEN_LE},    {">=", TOKEN_GE},    {"=", TOKEN_ASSIGN}, {"!", TOKEN_NOT},
        {"<", TOKEN_LT},     {">", TOKEN_GT},     {"+", TOKEN_ADD},    {"-", TOKEN_SUB},
        {"*", TOKEN_MUL},    {"/", TOKEN_DIV},    {"%", TOKEN_MOD},    {"^", TOKEN_POW},
        {"{", TOKEN_LCURLY}, {"}", TOKEN_RCURLY}, {"(", TOKEN_LPAREN}, {")", TOKEN_RPAREN},
        {"[", TOKEN_LBRACK}, {"]", TOKEN_RBRACK}, {",", TOKEN_COMMA},  {".", TOKEN_DOT},
    };
    struct sv rest = sv_skip(s->source, s->at);
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (sv_starts_with(rest, sv_from(operators[i].text))) {
            struct alloy_token t = begin(s, operators[i].kind);
            steps(s, strlen(operators[i].text));
            return finish(s, t);
        }
    }
    return scan_illegal(s);
}

static struct alloy_token scan_token(struct alloy_scanner *s)
{
    uint32_t rune;
    char c = peek(s, 0);
    (void)rune_at(s, &rune);
    if (is_letter(rune)) {
        return scan_identifier(s);
    }
    if (is_digit(rune) || (c == '.' && is_digit((unsigned char)peek(s, 1)))) {
        return scan_number(s);
    }
    switch (c) {
    case '"':
        return scan_string(s);
    case '`':
        return scan_raw_string(s);
    case '\'':
        return scan_quoted_wrongly(s);
    default:
        return scan_operator(s);
    }
}

/* Returns true if a line end after this token ends a statement. */
static bool may_end(enum alloy_token_kind kind)
{
    return (kind >= TOKEN_ILLEGAL && kind <= TOKEN_NULL) || kind == TOKEN_RPAREN ||
           kind == TOKEN_RBRACK || kind == TOKEN_RCURLY;
}

struct alloy_token alloy_scan(struct alloy_scanner *s)
{
    struct alloy_token t;
    if (pass_to_line_end(s, &t)) {
        s->may_end = false;
        return finish(s, t);
    }
    if (t.kind == TOKEN_ILLEGAL) {
        s->may_end = true;
        return finish(s, t);
    }
    if (at_end(s)) {
        return finish(s, begin(s, TOKEN_END));
    }
    t = scan_token(s);
    s->may_end = may_end(t.kind);
    return t;
}

const char *alloy_token_show(const struct alloy_token *t, struct arena *arena)
{
    if (t->kind == TOKEN_END) {
        return "the end of the file";
    }
    if (t->kind == TOKEN_TERMINATOR) {
        return "the end of the line";
    }
    if (t->kind == TOKEN_STRING || t->kind == TOKEN_RAW_STRING) {
        return "a string"; /* its text may be a password */
    }
    size_t n = utf8_prefix(t->text, SHOWN_MAX);
    const char *shown =
        arena_printf(arena, "\"%.*s%s\"", (int)n, t->text.p, n < t->text.n ? "..." : "");
    return shown != NULL ? shown : "this";
}

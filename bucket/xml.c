#include "bucket/xml.h"

#include <stdint.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

static const struct {
    struct sv name;
    char c;
} entities[] = {{{"&amp;", 5}, '&'},
                {{"&lt;", 4}, '<'},
                {{"&gt;", 4}, '>'},
                {{"&quot;", 6}, '"'},
                {{"&apos;", 6}, '\''}};
#define ENTITIES (sizeof(entities) / sizeof(entities[0]))

void xml_init(struct xml *x, struct sv text)
{
    *x = (struct xml){.rest = sv_trim(utf8_without_mark(text)), .bad = !utf8_valid(text)};
}

static bool fail(struct xml *x)
{
    x->bad = true;
    return false;
}

/* Skips a part that ends with a text. Returns false if it does not end. */
static bool skip_past(struct xml *x, const char *end)
{
    size_t n = strlen(end);
    const char *at = x->rest.n >= n ? memmem(x->rest.p, x->rest.n, end, n) : NULL;
    if (at == NULL) {
        return fail(x);
    }
    x->rest = sv_skip(x->rest, (size_t)(at - x->rest.p) + n);
    return true;
}

static bool is_name_char(char c)
{
    return ascii_is_word(c) || c == '-' || c == '.' || c == ':' || (unsigned char)c >= 0x80;
}

/* Takes a name, and returns it without its prefix; empty if there is none. */
static struct sv take_name(struct xml *x)
{
    struct sv prefix;
    struct sv local;
    size_t n = 0;
    while (n < x->rest.n && is_name_char(x->rest.p[n])) {
        n++;
    }
    struct sv name = {x->rest.p, n};
    x->rest = sv_skip(x->rest, n);
    return sv_cut(name, ':', &prefix, &local) ? local : name;
}

/* Skips the attributes of a start tag up to its ">" or "/". Values may contain ">". */
static bool skip_attributes(struct xml *x)
{
    size_t i = 0;
    while (i < x->rest.n && x->rest.p[i] != '>' && x->rest.p[i] != '/') {
        char c = x->rest.p[i++];
        if (c == '<') {
            return fail(x);
        }
        if (c == '"' || c == '\'') {
            const char *end = memchr(x->rest.p + i, c, x->rest.n - i);
            if (end == NULL) {
                return fail(x);
            }
            i = (size_t)(end - x->rest.p) + 1;
        }
    }
    x->rest = sv_skip(x->rest, i);
    return x->rest.n > 0 || fail(x);
}

static bool take(struct xml *x, char c)
{
    if (x->rest.n == 0 || x->rest.p[0] != c) {
        return fail(x);
    }
    x->rest = sv_skip(x->rest, 1);
    return true;
}

static void close_element(struct xml *x, struct xml_element *ret)
{
    unsigned depth = x->depth--;
    *ret = (struct xml_element){.name = x->names[depth - 1],
                                .parent = depth > 1 ? x->names[depth - 2] : SV(""),
                                .depth = depth,
                                .text = x->leaf ? x->text : SV("")};
    x->leaf = false;
    x->text = SV("");
}

/* Reads a start tag, whose "<" has been taken. Sets *ret_closed if it is a whole element. */
static bool start_tag(struct xml *x, struct xml_element *ret, bool *ret_closed)
{
    struct sv name = take_name(x);
    bool second_root = x->depth == 0 && x->started;
    if (name.n == 0 || second_root || x->depth == XML_DEPTH_MAX || !skip_attributes(x)) {
        return fail(x);
    }
    x->started = true;
    x->names[x->depth++] = name;
    x->leaf = true;
    x->text = SV("");
    *ret_closed = x->rest.n > 0 && x->rest.p[0] == '/';
    if (*ret_closed) {
        x->rest = sv_skip(x->rest, 1);
        close_element(x, ret);
    }
    return take(x, '>');
}

/* Reads an end tag, whose "</" has been taken. */
static bool end_tag(struct xml *x, struct xml_element *ret)
{
    struct sv name = take_name(x);
    if (x->depth == 0 || !sv_eq(name, x->names[x->depth - 1])) {
        return fail(x);
    }
    while (x->rest.n > 0 && strchr(" \t\r\n", x->rest.p[0]) != NULL && x->rest.p[0] != '\0') {
        x->rest = sv_skip(x->rest, 1);
    }
    close_element(x, ret);
    return take(x, '>');
}

/* Takes the text up to the next "<". Outside of the root it may only be white space. */
static bool take_text(struct xml *x)
{
    const char *end = memchr(x->rest.p, '<', x->rest.n);
    struct sv text = {x->rest.p, end != NULL ? (size_t)(end - x->rest.p) : x->rest.n};
    for (size_t i = 0; i < text.n; i++) {
        bool control = (unsigned char)text.p[i] < ' ' && strchr("\t\r\n", text.p[i]) == NULL;
        if (control || text.p[i] == '\0') {
            return fail(x);
        }
    }
    x->rest = sv_skip(x->rest, text.n);
    if (x->depth == 0) {
        return sv_trim(text).n == 0 || fail(x);
    }
    /* Text on both sides of a comment: the last part counts, and it is in no answer. */
    x->text = text;
    return true;
}

/* Reads one piece of markup at a "<". Sets *ret_closed if an element has ended. */
static bool take_markup(struct xml *x, struct xml_element *ret, bool *ret_closed)
{
    if (sv_starts_with(x->rest, SV("<!--"))) {
        x->rest = sv_skip(x->rest, strlen("<!--"));
        return skip_past(x, "-->");
    }
    if (sv_starts_with(x->rest, SV("<?"))) {
        return !x->started && x->depth == 0 ? skip_past(x, "?>") : fail(x);
    }
    if (sv_starts_with(x->rest, SV("</"))) {
        x->rest = sv_skip(x->rest, 2);
        *ret_closed = true;
        return end_tag(x, ret);
    }
    x->rest = sv_skip(x->rest, 1);
    return start_tag(x, ret, ret_closed);
}

bool xml_next(struct xml *x, struct xml_element *ret)
{
    bool closed = false;
    while (!x->bad && !closed && x->rest.n > 0) {
        bool ok = x->rest.p[0] == '<' ? take_markup(x, ret, &closed) : take_text(x);
        if (!ok) {
            return false;
        }
    }
    return closed && !x->bad;
}

bool xml_ok(const struct xml *x)
{
    return !x->bad && x->started && x->depth == 0 && x->rest.n == 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Reads "&#38;" or "&#x26;". Returns its length, or 0. */
static size_t take_number(struct sv v, uint32_t *ret_rune)
{
    bool hex = v.n > 2 && (v.p[2] == 'x' || v.p[2] == 'X');
    size_t start = hex ? 3 : 2;
    size_t i = start;
    uint32_t rune = 0;
    for (; i < v.n && i < start + 7 && v.p[i] != ';'; i++) {
        int digit = ascii_hex_value(v.p[i]);
        if (digit < 0 || (!hex && digit > 9)) {
            return 0;
        }
        rune = rune * (hex ? 16U : 10U) + (uint32_t)digit;
    }
    *ret_rune = rune;
    bool scalar = rune > 0 && rune <= 0x10ffff && (rune < 0xd800 || rune > 0xdfff);
    return i > start && i < v.n && v.p[i] == ';' && scalar ? i + 1 : 0;
}

/* Appends the character of the entity at the start of v. Returns its length, or 0. */
static size_t put_entity(struct sv v, struct buf *out)
{
    char bytes[UTF8_BYTES_MAX];
    uint32_t rune;
    if (sv_starts_with(v, SV("&#"))) {
        size_t n = take_number(v, &rune);
        size_t len = n > 0 ? utf8_encode(rune, bytes) : 0;
        return len > 0 && buf_append(out, bytes, len) ? n : 0;
    }
    for (size_t i = 0; i < ENTITIES; i++) {
        if (sv_starts_with(v, entities[i].name)) {
            return buf_putc(out, entities[i].c) ? entities[i].name.n : 0;
        }
    }
    return 0;
}

/* Appends a text with its entities replaced; unknown ones are an error, or stay. */
static bool unescape(struct sv text, bool strict, struct buf *out)
{
    while (text.n > 0) {
        const char *amp = memchr(text.p, '&', text.n);
        size_t plain = amp != NULL ? (size_t)(amp - text.p) : text.n;
        if (!buf_append(out, text.p, plain)) {
            return false;
        }
        text = sv_skip(text, plain);
        if (text.n > 0) {
            size_t n = put_entity(text, out);
            if (n == 0 && (strict || !buf_putc(out, '&'))) {
                return false;
            }
            text = sv_skip(text, n > 0 ? n : 1);
        }
    }
    return true;
}

bool xml_unescape(struct sv text, struct buf *out)
{
    return unescape(text, true, out);
}

bool xml_show(struct sv text, struct buf *out)
{
    return unescape(text, false, out);
}

bool xml_escape(struct sv text, struct buf *out)
{
    for (size_t i = 0; i < text.n; i++) {
        size_t e = 0;
        while (e < ENTITIES && entities[e].c != text.p[i]) {
            e++;
        }
        if (e < ENTITIES) {
            buf_append(out, entities[e].name.p, entities[e].name.n);
        } else {
            buf_putc(out, text.p[i]);
        }
    }
    return buf_ok(out);
}

#include "discovery/kubernetes/json_cut.h"

#include <string.h>

enum { AT_START, BETWEEN, IN_STRING, IN_ESCAPE, IN_WORD, AT_END };

/* Bytes with a meaning outside of strings. */
static const bool structural[256] = {
    ['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true, [','] = true,
};

/* Bytes with a meaning within a value that is dropped. */
static const bool nesting[256] = {
    ['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true,
};

/* Bytes with a meaning in a string. */
static const bool in_string[256] = {['"'] = true, ['\\'] = true, ['\n'] = true};

/* Bytes that end a number or a word. */
static const bool delimiter[256] = {
    [','] = true, [']'] = true, ['}'] = true,  [':'] = true,  ['"'] = true,  ['{'] = true,
    ['['] = true, [' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true,
};

void json_cut_init(struct json_cut *c, size_t max, unsigned depth_max)
{
    *c = (struct json_cut){.max = max, .depth_max = depth_max, .state = AT_END};
    buf_init(&c->text, max);
}

void json_cut_begin(struct json_cut *c, bool keep)
{
    buf_clear(&c->text);
    *c = (struct json_cut){
        .text = c->text,
        .skip = SKIP_NONE,
        .max = c->max,
        .depth_max = c->depth_max,
        .newline_ends = c->newline_ends,
        .members = c->members,
        .members_at[0] = c->members,
        .keep = keep,
        .state = AT_START,
    };
}

/* Stops keeping: from here on only the end of the value matters. */
static void give_up(struct json_cut *c, enum discovery_skip why)
{
    c->skip = why;
    c->keep = false;
    c->omit_depth = 0;
    buf_clear(&c->text);
}

static void keep_bytes(struct json_cut *c, const char *p, size_t n)
{
    if (c->keep && c->omit_depth == 0 && n > 0 && !buf_append(&c->text, p, n)) {
        give_up(c, buf_too_big(&c->text) ? SKIP_TOO_LARGE : SKIP_MEMORY);
    }
}

/* Keeps the pending bytes of data before `to`. */
static void flush(struct json_cut *c, const char *data, size_t *run, size_t to)
{
    keep_bytes(c, data + *run, to - *run);
    *run = to;
}

static bool in_object(const struct json_cut *c)
{
    return c->depth > 0 && c->depth <= JSON_CUT_NAMES_DEPTH &&
           (c->objects >> (c->depth - 1) & 1) != 0;
}

/* Returns true if members of the current object may be dropped. */
static bool choosing(const struct json_cut *c)
{
    return c->keep && c->omit_depth == 0 && in_object(c) && c->members_at[c->depth] != NULL;
}

/* Returns true if the member of this name (without its quotes) is kept, and sets next_members then.
 */
static bool is_kept(struct json_cut *c, struct sv name)
{
    for (const struct schema_row *k = c->members_at[c->depth]; k->name != NULL; k++) {
        if (name.n > 0 && name.p[0] == k->name[0] && sv_eq_str(name, k->name)) {
            c->next_members = k->members;
            return true;
        }
    }
    return memchr(name.p, '\\', name.n) != NULL;
}

/* A comma is held back until a kept member follows it. Within a dropped member, the comma before
 * that member stays held back. */
static void keep_comma(struct json_cut *c)
{
    if (c->comma && c->omit_depth == 0) {
        c->comma = false;
        keep_bytes(c, ",", 1);
    }
}

static void open_container(struct json_cut *c, const char *data, size_t *run, size_t at,
                           bool object)
{
    if (c->comma) {
        flush(c, data, run, at);
        keep_comma(c);
    }
    c->depth++;
    c->name_next = object;
    if (c->depth > c->depth_max) {
        give_up(c, SKIP_TOO_DEEP);
        return;
    }
    if (c->depth > JSON_CUT_NAMES_DEPTH) {
        return;
    }
    bool in_array = c->depth == 1 || (c->objects >> (c->depth - 2) & 1) == 0;
    const struct schema_row *outer = c->members_at[c->depth - 1];
    c->members_at[c->depth] = in_array || outer == NULL ? outer : c->next_members;
    c->next_members = NULL;
    uint64_t bit = UINT64_C(1) << (c->depth - 1);
    c->objects = object ? c->objects | bit : c->objects & ~bit;
}

/* Ends the dropping of a member: its object continues or ends here. */
static bool end_omission(struct json_cut *c)
{
    if (c->omit_depth == 0 || c->omit_depth != c->depth) {
        return false;
    }
    c->omit_depth = 0;
    return true;
}

static void on_comma(struct json_cut *c, const char *data, size_t *run, size_t at)
{
    c->name_next = in_object(c);
    c->next_members = NULL;
    if (end_omission(c)) {
        /* The comma before the member, if there was one, is held back for the next. */
        *run = at + 1;
    } else if (choosing(c)) {
        flush(c, data, run, at);
        keep_comma(c);
        c->comma = true;
        *run = at + 1;
    }
}

/* Ends an object or array. The parser checks that the bracket is the right one. */
static void close_container(struct json_cut *c, const char *data, size_t *run, size_t at)
{
    if (end_omission(c)) {
        c->comma = false;
        *run = at;
    } else if (c->comma) {
        /* A superfluous comma is kept, so that the parser reports it. */
        flush(c, data, run, at);
        keep_comma(c);
    }
    c->name_next = false;
    c->depth--;
    if (c->depth == 0) {
        c->state = AT_END;
    }
}

static void open_string(struct json_cut *c, const char *data, size_t *run, size_t at)
{
    c->state = IN_STRING;
    c->in_name = c->name_next && choosing(c);
    c->name_next = false;
    if (c->in_name) {
        flush(c, data, run, at);
        c->name_len = 0;
    }
}

/* Keeps the name, and the comma before it. */
static void keep_name(struct json_cut *c)
{
    c->in_name = false;
    keep_comma(c);
    keep_bytes(c, c->name, c->name_len);
}

/* Collects the name, which is kept or dropped when it is complete. One that is too long is kept. */
static void add_to_name(struct json_cut *c, const char *data, size_t *run, size_t to)
{
    size_t n = to - *run;
    if (n <= sizeof(c->name) - c->name_len) {
        memcpy(c->name + c->name_len, data + *run, n);
        c->name_len += n;
        *run = to;
    } else {
        keep_name(c);
    }
}

static void close_string(struct json_cut *c, const char *data, size_t *run, size_t at)
{
    c->state = c->depth == 0 ? AT_END : BETWEEN;
    if (!c->in_name) {
        return;
    }
    add_to_name(c, data, run, at + 1);
    if (!c->in_name) {
        return;
    }
    if (is_kept(c, (struct sv){.p = c->name + 1, .n = c->name_len - 2})) {
        keep_name(c);
    } else {
        c->in_name = false;
        c->omit_depth = c->depth;
    }
}

/* Processes one structural byte outside of strings. */
static void step(struct json_cut *c, const char *data, size_t *run, size_t at)
{
    switch (data[at]) {
    case '"':
        open_string(c, data, run, at);
        break;
    case '{':
    case '[':
        open_container(c, data, run, at, data[at] == '{');
        break;
    case ',':
        on_comma(c, data, run, at);
        break;
    default:
        close_container(c, data, run, at);
        break;
    }
}

static void start(struct json_cut *c, char first)
{
    c->state = first == '{' || first == '[' || first == '"' ? BETWEEN : IN_WORD;
}

/* Returns the index of the next byte with a meaning in a string, or len. */
static size_t skip_text(const char *data, size_t i, size_t len)
{
    while (i < len && !in_string[(unsigned char)data[i]]) {
        i++;
    }
    return i;
}

/* Scans within a string; returns the index after the byte that changed the state, or len. */
static size_t scan_string(struct json_cut *c, const char *data, size_t i, size_t len, size_t *run)
{
    i = skip_text(data, i, len);
    if (i == len) {
        return len;
    }
    if (data[i] == '"') {
        close_string(c, data, run, i);
    } else if (data[i] == '\\') {
        c->state = IN_ESCAPE;
    } else if (c->newline_ends) {
        /* SKIP_SYNTAX replaces SKIP_TOO_LARGE, so that the result does not depend on how the stream
         * is chunked. */
        give_up(c, SKIP_SYNTAX);
        c->state = AT_END;
    }
    return i + 1;
}

/* Scans deep within a dropped member, which is most of a pod: only strings and the nesting are
 * followed. Returns the index at which scan() takes over. */
static size_t scan_omitted(struct json_cut *c, const char *data, size_t i, size_t len)
{
    while (i < len && c->depth > c->omit_depth) {
        unsigned char byte = (unsigned char)data[i];
        if (!nesting[byte]) {
            i++;
        } else if (byte == '"') {
            size_t end = skip_text(data, i + 1, len);
            if (end == len || data[end] != '"') {
                c->state = IN_STRING;
                return end;
            }
            i = end + 1;
        } else if (byte == '}' || byte == ']') {
            c->depth--;
            i++;
        } else if (c->depth == c->depth_max) {
            return i;
        } else {
            c->depth++;
            i++;
        }
    }
    c->name_next = false;
    return i;
}

static size_t scan(struct json_cut *c, const char *data, size_t i, size_t len, size_t *run)
{
    switch (c->state) {
    case AT_START:
        start(c, data[i]);
        return i;
    case IN_STRING:
        return scan_string(c, data, i, len, run);
    case IN_ESCAPE:
        c->state = IN_STRING;
        return i + 1;
    case IN_WORD:
        while (i < len && !delimiter[(unsigned char)data[i]]) {
            i++;
        }
        if (i < len) {
            c->state = AT_END;
        }
        return i;
    default:
        if (c->omit_depth != 0 && c->depth > c->omit_depth && c->depth < c->depth_max) {
            return scan_omitted(c, data, i, len);
        }
        while (i < len && !structural[(unsigned char)data[i]]) {
            i++;
        }
        if (i == len) {
            return len;
        }
        step(c, data, run, i);
        return i + 1;
    }
}

size_t json_cut_feed(struct json_cut *c, const char *data, size_t len, bool *ret_ended)
{
    size_t run = 0;
    size_t i = 0;
    while (i < len && c->state != AT_END) {
        i = scan(c, data, i, len, &run);
    }
    if (c->in_name) {
        add_to_name(c, data, &run, i);
    }
    flush(c, data, &run, i);
    c->size += i;
    if (c->size > c->max && c->skip != SKIP_SYNTAX) {
        give_up(c, SKIP_TOO_LARGE);
    }
    *ret_ended = c->state == AT_END;
    return i;
}

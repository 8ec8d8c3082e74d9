#include "discovery/kubernetes/json_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

/* The number of levels by which an object is nested deeper in an event of a watch. */
#define EVENT_DEPTH 1

enum stream_state {
    /* a watch */
    BETWEEN_OBJECTS,
    IN_GARBAGE, /* until the end of the line */
    /* a list */
    LIST_START,
    LIST_FIRST_NAME,
    LIST_NAME,
    LIST_COLON,
    LIST_VALUE,
    LIST_AFTER_VALUE,
    LIST_FIRST_ITEM,
    LIST_ITEM,
    LIST_AFTER_ITEM,
    LIST_END,
    BROKEN,
    /* in a value, or in the name of a member */
    IN_EVENT,
    IN_NAME,
    IN_ITEM,
    IN_METADATA,
    IN_KIND,
    IN_OTHER,
};

struct json_stream {
    struct json_stream_options options;
    struct json_cut cut;
    struct schema_row event[3]; /* the members of an event */
    enum stream_state state;
    bool items_seen;
};

struct json_stream *json_stream_new(const struct json_stream_options *options)
{
    struct json_stream *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->options = *options;
    json_cut_init(&s->cut, options->object_max, options->depth_max);
    s->event[0].name = "type";
    s->event[1] = (struct schema_row){.name = "object", .members = options->members};
    json_stream_begin(s, JSON_STREAM_OBJECTS);
    return s;
}

struct json_stream *json_stream_free(struct json_stream *s)
{
    if (s != NULL) {
        buf_done(&s->cut.text);
        free(s);
    }
    return NULL;
}

void json_stream_begin(struct json_stream *s, enum json_stream_form form)
{
    bool list = form == JSON_STREAM_LIST;
    s->state = list ? LIST_START : BETWEEN_OBJECTS;
    s->items_seen = false;
    /* A watch writes one event per line, so after a line break in a string the next event follows;
     * in a list nothing would. An event holds the object one level deeper. */
    s->cut.newline_ends = !list;
    s->cut.depth_max = s->options.depth_max + (list ? 0 : EVENT_DEPTH);
    /* Frees the memory of the last stream's largest object. */
    buf_done(&s->cut.text);
}

/* ---- one object ------------------------------------------------------------------------------ */

/* The code unit of an escape \uXXXX at p, or -1. */
static int code_unit(const char *p, size_t n)
{
    if (n < 6 || p[0] != '\\' || p[1] != 'u') {
        return -1;
    }
    int unit = 0;
    for (size_t i = 2; i < 6; i++) {
        int digit = ascii_hex_value(p[i]);
        if (digit < 0) {
            return -1;
        }
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Returns the length of the escape at p; *ret_lone says whether it is a lone half of a surrogate
 * pair. */
static size_t escape_length(const char *p, size_t n, bool *ret_lone)
{
    int unit = code_unit(p, n);
    *ret_lone = unit >= 0xd800 && unit <= 0xdfff;
    if (unit < 0) {
        return n < 2 ? n : 2;
    }
    if (unit >= 0xd800 && unit <= 0xdbff) {
        int low = code_unit(p + 6, n - 6);
        if (low >= 0xdc00 && low <= 0xdfff) {
            *ret_lone = false;
            return 12;
        }
    }
    return 6;
}

static bool repair_surrogates(struct sv in, struct buf *out)
{
    size_t run = 0;
    size_t i = 0;
    while (i < in.n) {
        if (in.p[i] != '\\') {
            i++;
            continue;
        }
        bool lone;
        size_t n = escape_length(in.p + i, in.n - i, &lone);
        if (lone) {
            buf_append(out, in.p + run, i - run);
            buf_puts(out, "\\ufffd");
            run = i + n;
        }
        i += n;
    }
    return buf_append(out, in.p + run, in.n - run);
}

/* Parses a text. SKIP_NONE with the tree in *ret; otherwise *ret is NULL. */
static enum discovery_skip parse(struct sv text, json_t **ret)
{
    /* If memory runs out, jansson mostly reports nothing (and leaves the error code unchanged). For
     * the text of a string it reports "invalid token", which looks like bad syntax; then the text
     * is parsed once more, which must suffice. */
    json_error_t error = {0};
    *ret = json_loadb(text.p, text.n, JSON_ALLOW_NUL, &error);
    if (*ret != NULL) {
        return SKIP_NONE;
    }
    bool no_memory = error.text[0] == '\0' || json_error_code(&error) == json_error_out_of_memory;
    return no_memory ? SKIP_MEMORY : SKIP_SYNTAX;
}

/* Repairs a text and parses it again: jansson rejects bytes that Go's decoder replaces by U+FFFD.
 * Such texts are rare, so the second pass costs little. */
static enum discovery_skip parse_repaired(struct sv text, json_t **ret)
{
    /* One byte becomes at most three. */
    struct buf utf8;
    struct buf repaired;
    buf_init(&utf8, 3 * text.n);
    buf_init(&repaired, 3 * text.n);
    enum discovery_skip result = SKIP_MEMORY;
    if (utf8_repair(text, &utf8) &&
        repair_surrogates((struct sv){.p = utf8.data, .n = utf8.len}, &repaired)) {
        result = parse((struct sv){.p = repaired.data, .n = repaired.len}, ret);
    }
    buf_done(&utf8);
    buf_done(&repaired);
    return result;
}

static void skip(struct json_stream *s, enum discovery_skip why)
{
    s->options.on_skip(s->options.arg, why);
}

/* Passes a complete value to fn, as a tree. */
static void deliver(struct json_stream *s, void (*fn)(void *arg, const json_t *json))
{
    if (s->cut.skip != SKIP_NONE) {
        skip(s, s->cut.skip);
        return;
    }
    struct sv text = {.p = s->cut.text.data, .n = s->cut.text.len};
    json_t *json;
    enum discovery_skip result = parse(text, &json);
    if (result == SKIP_SYNTAX) {
        result = parse_repaired(text, &json);
    }
    if (json_is_object(json)) {
        fn(s->options.arg, json);
    } else {
        skip(s, result == SKIP_NONE ? SKIP_SYNTAX : result);
    }
    json_decref(json);
}

/* Passes the complete kind of a list to on_kind. */
static void deliver_kind(struct json_stream *s)
{
    if (s->cut.skip == SKIP_MEMORY) {
        skip(s, SKIP_MEMORY);
    } else if (s->options.on_kind != NULL) {
        bool kept = s->cut.skip == SKIP_NONE;
        s->options.on_kind(s->options.arg,
                           kept ? (struct sv){s->cut.text.data, s->cut.text.len} : SV(""));
    }
}

/* ---- the stream around them ------------------------------------------------------------------ */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void begin_cut(struct json_stream *s, enum stream_state state)
{
    s->cut.members = NULL;
    if (s->options.members != NULL && state == IN_EVENT) {
        s->cut.members = s->event;
    } else if (state == IN_ITEM) {
        s->cut.members = s->options.members;
    }
    json_cut_begin(&s->cut, state != IN_OTHER);
    s->state = state;
}

/* Feeds the current value; returns the bytes it took. */
static size_t feed_cut(struct json_stream *s, const char *data, size_t len, struct err *err)
{
    static const enum stream_state after[] = {
        [IN_EVENT] = BETWEEN_OBJECTS, [IN_NAME] = LIST_COLON,
        [IN_ITEM] = LIST_AFTER_ITEM,  [IN_METADATA] = LIST_AFTER_VALUE,
        [IN_KIND] = LIST_AFTER_VALUE, [IN_OTHER] = LIST_AFTER_VALUE,
    };
    bool ended;
    enum stream_state state = s->state;
    size_t used = json_cut_feed(&s->cut, data, len, &ended);
    if (state == IN_EVENT && s->cut.size / JSON_STREAM_RUNAWAY > s->options.object_max) {
        err_set(err, ERR_LIMIT, "an event of the watch has no end after %zu bytes", s->cut.size);
        s->state = BROKEN;
        return used;
    }
    if (!ended) {
        return used;
    }
    s->state = after[state];
    if (state == IN_METADATA) {
        deliver(s, s->options.on_metadata);
    } else if (state == IN_KIND) {
        deliver_kind(s);
    } else if (state == IN_EVENT || state == IN_ITEM) {
        deliver(s, s->options.on_object);
    } else if (s->cut.skip == SKIP_MEMORY) {
        skip(s, SKIP_MEMORY); /* the name of the member is not known */
    }
    return used;
}

/* Returns the number of bytes taken. Garbage extends to the end of its line, after which the next
 * event may begin. */
static size_t between_objects(struct json_stream *s, const char *data, size_t len)
{
    if (s->state == IN_GARBAGE) {
        const char *end = memchr(data, '\n', len);
        if (end == NULL) {
            return len;
        }
        s->state = BETWEEN_OBJECTS;
        return (size_t)(end - data) + 1;
    }
    if (data[0] == '{') {
        begin_cut(s, IN_EVENT);
        return 0;
    }
    if (!is_space(data[0])) {
        skip(s, SKIP_SYNTAX);
        s->state = IN_GARBAGE;
        return 0;
    }
    return 1;
}

/* Compares the name of the current member; both names include their quotes. */
static bool name_is(const struct json_stream *s, const char *name)
{
    return sv_eq_str((struct sv){s->cut.text.data, s->cut.text.len}, name);
}

/* Begins a member's value. Its first byte is not taken, except for the bracket of the items. */
static size_t list_value(struct json_stream *s, char c)
{
    bool items = name_is(s, "\"items\"");
    s->items_seen = s->items_seen || items;
    if (items && c == '[') {
        s->state = LIST_FIRST_ITEM;
        return 1;
    }
    begin_cut(s, name_is(s, "\"metadata\"") && c == '{' ? IN_METADATA
                 : name_is(s, "\"kind\"")               ? IN_KIND
                                                        : IN_OTHER);
    return 0;
}

/* Takes one byte of a list outside of its values and names; returns 0 if the byte was not taken. */
static size_t list_byte(struct json_stream *s, char c, struct err *err)
{
    static const struct {
        const char *bytes;    /* the expected byte is one of these */
        const char *expected; /* the same in words */
        enum stream_state next[2];
    } steps[] = {
        [LIST_START] = {"{", "{", {LIST_FIRST_NAME}},
        [LIST_FIRST_NAME] = {"\"}", "a comma or a closing bracket", {IN_NAME, LIST_END}},
        [LIST_NAME] = {"\"", "\"", {IN_NAME}},
        [LIST_COLON] = {":", ":", {LIST_VALUE}},
        [LIST_VALUE] = {"", "a value", {0}},
        [LIST_AFTER_VALUE] = {",}", "a comma or a closing bracket", {LIST_NAME, LIST_END}},
        [LIST_FIRST_ITEM] = {"]", "an object", {LIST_AFTER_VALUE}},
        [LIST_ITEM] = {"", "an object", {0}},
        [LIST_AFTER_ITEM] = {",]", "a comma or a closing bracket", {LIST_ITEM, LIST_AFTER_VALUE}},
        [LIST_END] = {"", "the end", {0}},
    };
    if (is_space(c)) {
        return 1;
    }
    bool begins_value = c != ',' && c != ']' && c != '}' && c != ':';
    if (s->state == LIST_VALUE && begins_value) {
        return list_value(s, c);
    }
    if ((s->state == LIST_FIRST_ITEM || s->state == LIST_ITEM) && begins_value) {
        begin_cut(s, IN_ITEM);
        return 0;
    }
    const char *bytes = steps[s->state].bytes;
    const char *found = c == '\0' || bytes == NULL ? NULL : strchr(bytes, c);
    if (found == NULL) {
        err_set(err, ERR_INPUT, "the answer is not a list in JSON: expected %s, got byte 0x%02x",
                steps[s->state].expected, (unsigned)(unsigned char)c);
        s->state = BROKEN;
        return 1;
    }
    s->state = steps[s->state].next[found - bytes];
    if (s->state == IN_NAME) {
        begin_cut(s, IN_NAME);
        return 0;
    }
    return 1;
}

bool json_stream_feed(struct json_stream *s, const char *data, size_t len, struct err *err)
{
    size_t i = 0;
    while (i < len && s->state != BROKEN) {
        size_t used = 1;
        if (s->state >= IN_EVENT) {
            used = feed_cut(s, data + i, len - i, err);
        } else if (s->state == BETWEEN_OBJECTS || s->state == IN_GARBAGE) {
            used = between_objects(s, data + i, len - i);
        } else {
            used = list_byte(s, data[i], err);
        }
        i += used;
    }
    return s->state != BROKEN;
}

bool json_stream_complete(const struct json_stream *s)
{
    return s->state == BETWEEN_OBJECTS || (s->state == LIST_END && s->items_seen);
}

#include "discovery/kubernetes/json_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"

#include "base/utf8.h"

/* Longer than any member name of a list that matters. */
#define NAME_MAX_LEN 16
/* How much deeper an object is nested in an event of a watch. */
#define EVENT_DEPTH 1

enum stream_state {
    /* a watch */
    BETWEEN_OBJECTS,
    IN_GARBAGE, /* until the end of the line */
    /* a list */
    LIST_START,
    LIST_FIRST_NAME,
    LIST_NAME,
    IN_NAME,
    IN_NAME_ESCAPE,
    LIST_COLON,
    LIST_VALUE,
    LIST_AFTER_VALUE,
    LIST_FIRST_ITEM,
    LIST_ITEM,
    LIST_AFTER_ITEM,
    LIST_END,
    BROKEN,
    /* in a value */
    IN_EVENT,
    IN_ITEM,
    IN_METADATA,
    IN_OTHER,
};

struct json_stream {
    struct json_stream_options options;
    struct json_cut cut;
    struct json_keep event[3]; /* the members of an event */
    enum stream_state state;
    char name[NAME_MAX_LEN];
    size_t name_len; /* NAME_MAX_LEN: too long to matter */
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
    s->event[1] = (struct json_keep){.name = "object", .members = options->members};
    json_stream_begin(s, JSON_STREAM_OBJECTS);
    return s;
}

struct json_stream *json_stream_free(struct json_stream *s)
{
    if (s != NULL) {
        json_cut_done(&s->cut);
        free(s);
    }
    return NULL;
}

void json_stream_begin(struct json_stream *s, enum json_stream_form form)
{
    bool list = form == JSON_STREAM_LIST;
    s->state = list ? LIST_START : BETWEEN_OBJECTS;
    s->items_seen = false;
    s->name_len = 0;
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

/* The length of the escape at p, and whether it is a lone half of a surrogate pair. */
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

static json_t *parse(struct sv text, bool *ret_no_memory)
{
    /* Out of memory, jansson mostly reports nothing at all (and leaves the code as it was). For the
     * text of a string it reports "invalid token", which looks like bad syntax; then the text is
     * parsed once more, which must suffice. */
    json_error_t error = {0};
    json_t *json = json_loadb(text.p, text.n, JSON_ALLOW_NUL, &error);
    *ret_no_memory = json == NULL &&
                     (error.text[0] == '\0' || json_error_code(&error) == json_error_out_of_memory);
    return json;
}

/* jansson rejects what Go's decoder replaces by U+FFFD. That is rare, so the text is simply parsed
 * again. */
static json_t *parse_repaired(struct sv text, bool *ret_no_memory)
{
    /* One byte becomes three at most. */
    struct buf utf8;
    struct buf repaired;
    buf_init(&utf8, 3 * text.n);
    buf_init(&repaired, 3 * text.n);
    json_t *json = NULL;
    if (utf8_repair(text, &utf8) &&
        repair_surrogates((struct sv){.p = utf8.data, .n = utf8.len}, &repaired)) {
        json = parse((struct sv){.p = repaired.data, .n = repaired.len}, ret_no_memory);
    } else {
        *ret_no_memory = true;
    }
    buf_done(&utf8);
    buf_done(&repaired);
    return json;
}

static void skip(struct json_stream *s, enum json_skip why)
{
    s->options.on_skip(s->options.arg, why);
}

/* The value is complete: hands it out as a tree. */
static void deliver(struct json_stream *s, void (*fn)(void *arg, const json_t *json))
{
    switch (json_cut_verdict(&s->cut)) {
    case JSON_CUT_TOO_LARGE:
        skip(s, JSON_SKIP_TOO_LARGE);
        return;
    case JSON_CUT_TOO_DEEP:
        skip(s, JSON_SKIP_TOO_DEEP);
        return;
    case JSON_CUT_BROKEN:
        skip(s, JSON_SKIP_SYNTAX);
        return;
    case JSON_CUT_NO_MEMORY:
        skip(s, JSON_SKIP_MEMORY);
        return;
    case JSON_CUT_KEPT:
        break;
    }
    struct sv text = {.p = s->cut.text.data, .n = s->cut.text.len};
    bool no_memory;
    json_t *json = parse(text, &no_memory);
    if (json == NULL && !no_memory) {
        json = parse_repaired(text, &no_memory);
    }
    if (json == NULL) {
        skip(s, no_memory ? JSON_SKIP_MEMORY : JSON_SKIP_SYNTAX);
        return;
    }
    if (json_is_object(json)) {
        fn(s->options.arg, json);
    } else {
        skip(s, JSON_SKIP_SYNTAX);
    }
    json_decref(json);
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

static bool runs_away(const struct json_stream *s)
{
    return json_cut_size(&s->cut) / JSON_STREAM_RUNAWAY > s->options.object_max;
}

/* Feeds the current value; returns the bytes it took. */
static size_t feed_cut(struct json_stream *s, const char *data, size_t len, struct err *err)
{
    bool ended;
    size_t used = json_cut_feed(&s->cut, data, len, &ended);
    if (s->state == IN_EVENT && runs_away(s)) {
        err_set(err, ERR_LIMIT, "an event of the watch has no end after %zu bytes",
                json_cut_size(&s->cut));
        s->state = BROKEN;
        return used;
    }
    if (!ended) {
        return used;
    }
    switch (s->state) {
    case IN_EVENT:
        s->state = BETWEEN_OBJECTS;
        deliver(s, s->options.on_object);
        break;
    case IN_ITEM:
        s->state = LIST_AFTER_ITEM;
        deliver(s, s->options.on_object);
        break;
    case IN_METADATA:
        s->state = LIST_AFTER_VALUE;
        deliver(s, s->options.on_metadata);
        break;
    default:
        s->state = LIST_AFTER_VALUE;
        break;
    }
    return used;
}

static bool broken(struct json_stream *s, char got, const char *expected, struct err *err)
{
    s->state = BROKEN;
    return err_set(err, ERR_INPUT, "the answer is not a list in JSON: expected %s, got byte 0x%02x",
                   expected, (unsigned)(unsigned char)got);
}

/* Returns the bytes taken: garbage extends to the end of its line, where the next event may begin.
 */
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
        skip(s, JSON_SKIP_SYNTAX);
        s->state = IN_GARBAGE;
        return 0;
    }
    return 1;
}

static void name_byte(struct json_stream *s, char c)
{
    if (s->state == IN_NAME_ESCAPE) {
        s->state = IN_NAME;
        s->name_len = NAME_MAX_LEN;
    } else if (c == '\\') {
        s->state = IN_NAME_ESCAPE;
    } else if (c == '"') {
        s->state = LIST_COLON;
    } else if (s->name_len < NAME_MAX_LEN) {
        s->name[s->name_len++] = c;
    }
}

static bool name_is(const struct json_stream *s, const char *name)
{
    return s->name_len < NAME_MAX_LEN && sv_eq_str((struct sv){s->name, s->name_len}, name);
}

static bool begins_value(char c)
{
    return c != ',' && c != ']' && c != '}' && c != ':';
}

/* The first byte of a member's value, which is not taken, except for the bracket of the items. */
static bool list_value(struct json_stream *s, char c, size_t *used, struct err *err)
{
    *used = 0;
    if (!begins_value(c)) {
        return broken(s, c, "a value", err);
    }
    if (name_is(s, "items")) {
        s->items_seen = true;
        if (c == '[') {
            s->state = LIST_FIRST_ITEM;
            *used = 1;
            return true;
        }
    }
    begin_cut(s, name_is(s, "metadata") && c == '{' ? IN_METADATA : IN_OTHER);
    return true;
}

static bool list_item(struct json_stream *s, char c, size_t *used, struct err *err)
{
    if (c == ']' && s->state == LIST_FIRST_ITEM) {
        s->state = LIST_AFTER_VALUE;
        return true;
    }
    if (!begins_value(c)) {
        return broken(s, c, "an object", err);
    }
    begin_cut(s, IN_ITEM);
    *used = 0;
    return true;
}

/* Changes to one of two states, depending on the byte. */
static bool either(struct json_stream *s, char c, const char *bytes, const enum stream_state *next,
                   struct err *err)
{
    for (size_t i = 0; bytes[i] != '\0'; i++) {
        if (bytes[i] == c) {
            s->state = next[i];
            return true;
        }
    }
    return broken(s, c, bytes[1] == '\0' ? bytes : "a comma or a closing bracket", err);
}

/* One byte of a list outside of its values; *used is 0 if it was not taken. */
static bool list_byte(struct json_stream *s, char c, size_t *used, struct err *err)
{
    *used = 1;
    if (s->state == IN_NAME || s->state == IN_NAME_ESCAPE) {
        name_byte(s, c);
        return true;
    }
    if (is_space(c)) {
        return true;
    }
    switch (s->state) {
    case LIST_START:
        return either(s, c, "{", (const enum stream_state[]){LIST_FIRST_NAME}, err);
    case LIST_FIRST_NAME:
    case LIST_NAME:
        s->name_len = 0;
        return either(s, c, s->state == LIST_NAME ? "\"" : "\"}",
                      (const enum stream_state[]){IN_NAME, LIST_END}, err);
    case LIST_COLON:
        return either(s, c, ":", (const enum stream_state[]){LIST_VALUE}, err);
    case LIST_VALUE:
        return list_value(s, c, used, err);
    case LIST_AFTER_VALUE:
        return either(s, c, ",}", (const enum stream_state[]){LIST_NAME, LIST_END}, err);
    case LIST_FIRST_ITEM:
    case LIST_ITEM:
        return list_item(s, c, used, err);
    case LIST_AFTER_ITEM:
        return either(s, c, ",]", (const enum stream_state[]){LIST_ITEM, LIST_AFTER_VALUE}, err);
    default:
        return broken(s, c, "the end", err);
    }
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
            list_byte(s, data[i], &used, err);
        }
        i += used;
    }
    return s->state != BROKEN;
}

bool json_stream_complete(const struct json_stream *s)
{
    return s->state == BETWEEN_OBJECTS || (s->state == LIST_END && s->items_seen);
}

/* Converts JSON to values and values to JSON, and searches JSON by paths. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "alloy/functions.h"

/* The deepest nesting of values. */
#define JSON_LEVELS_MAX 64
/* The most steps of a path. */
#define PATH_STEPS_MAX 64

/* ---- JSON -> value --------------------------------------------------------------------------- */

struct import {
    const struct alloy_call *call;
    bool integers; /* if true, numbers without a fraction become integers rather than floats */
};

static const struct alloy_value *import_value(const struct import *im, const json_t *j, int level);

static struct sv copy_text(const struct alloy_call *call, const char *text, size_t n)
{
    char *copy = arena_strndup(call->ev->arena, text, n);
    return (struct sv){copy, copy != NULL ? n : 0};
}

static const struct alloy_value *import_members(const struct import *im, const json_t *j, int level)
{
    struct arena *arena = im->call->ev->arena;
    bool object = json_is_object(j);
    size_t size = object ? json_object_size(j) : json_array_size(j);
    struct alloy_member *members = arena_array(arena, size + 1, sizeof(*members));
    size_t n = 0;
    if (members == NULL) {
        return alloy_result(im->call, NULL);
    }
    if (object) {
        const char *key;
        json_t *value;
        /* jansson iterates without changing the object. */
        json_object_foreach((json_t *)(uintptr_t)j, key, value)
        {
            members[n].key = copy_text(im->call, key, strlen(key));
            members[n++].value = import_value(im, value, level + 1);
        }
    }
    for (size_t i = 0; !object && i < size; i++) {
        members[n++].value = import_value(im, json_array_get(j, i), level + 1);
    }
    return alloy_result(im->call,
                        object ? alloy_object(arena, members, n) : alloy_array(arena, members, n));
}

static const struct alloy_value *import_number(const struct import *im, const json_t *j)
{
    struct alloy_number n = {.kind = NUMBER_FLOAT, .f = json_number_value(j)};
    if (im->integers && json_is_integer(j)) {
        n = (struct alloy_number){.kind = NUMBER_INT, .i = json_integer_value(j)};
    }
    return alloy_result(im->call, alloy_number(im->call->ev->arena, n));
}

static const struct alloy_value *import_value(const struct import *im, const json_t *j, int level)
{
    struct arena *arena = im->call->ev->arena;
    if (level > JSON_LEVELS_MAX) {
        return alloy_call_fail(im->call, 0, "JSON nested more than %d deep", JSON_LEVELS_MAX);
    }
    switch (json_typeof(j)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return import_members(im, j, level);
    case JSON_STRING:
        return alloy_result(im->call, alloy_string(arena, copy_text(im->call, json_string_value(j),
                                                                    json_string_length(j))));
    case JSON_INTEGER:
    case JSON_REAL:
        return import_number(im, j);
    case JSON_TRUE:
    case JSON_FALSE:
        return alloy_result(im->call, alloy_bool(arena, json_is_true(j)));
    case JSON_NULL:
    default:
        return &alloy_null;
    }
}

/* Parses JSON; NULL after a report. The report does not show the text, which may hold secrets. */
static json_t *load(const struct alloy_call *call, struct sv text)
{
    json_error_t error;
    json_t *j = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (j == NULL) {
        if (text.n == 0) {
            (void)alloy_call_fail(call, 0, "expected JSON, got an empty string");
        } else {
            (void)alloy_call_fail(call, 0, "expected JSON, got a mistake at %d:%d of the text",
                                  error.line, error.column);
        }
    }
    return j;
}

/* Decodes JSON. All numbers become floats, as in Go. */
const struct alloy_value *alloy_from_json(const struct alloy_call *call)
{
    struct import im = {.call = call};
    struct sv text;
    if (!alloy_arg_text(call, 0, &text)) {
        return &alloy_unknown;
    }
    json_t *j = load(call, text);
    if (j == NULL) {
        return &alloy_unknown;
    }
    const struct alloy_value *v = import_value(&im, j, 0);
    json_decref(j);
    return v;
}

/* ---- value -> JSON --------------------------------------------------------------------------- */

/* Appends a JSON string. The characters <, > and & are escaped, as Go does to make JSON safe in
 * HTML. */
static void put_json_string(struct sv v, struct buf *out)
{
    struct buf quoted;
    buf_init(&quoted, ALLOY_STRING_MAX * 8);
    json_quote(v, &quoted);
    for (size_t i = 0; i < quoted.len; i++) {
        char c = quoted.data[i];
        if (c == '<' || c == '>' || c == '&') {
            buf_printf(out, "\\u%04x", (unsigned)c);
        } else {
            buf_putc(out, c);
        }
    }
    buf_done(&quoted);
}

/* Appends a value as JSON. False after a report. */
static bool put_json(const struct alloy_call *call, const struct alloy_value *v, struct buf *out);

static bool put_members(const struct alloy_call *call, const struct alloy_value *v, struct buf *out)
{
    bool array = v->kind == VALUE_ARRAY;
    bool ok = true;
    buf_putc(out, array ? '[' : '{');
    for (size_t i = 0; ok && i < v->n_members; i++) {
        buf_puts(out, i > 0 ? "," : "");
        if (!array) {
            put_json_string(v->members[i].key, out);
            buf_putc(out, ':');
        }
        ok = put_json(call, v->members[i].value, out);
    }
    buf_putc(out, array ? ']' : '}');
    return ok;
}

static bool put_json(const struct alloy_call *call, const struct alloy_value *v, struct buf *out)
{
    switch (v->kind) {
    case VALUE_NULL:
        buf_puts(out, "null");
        return true;
    case VALUE_BOOL:
        buf_puts(out, v->truth ? "true" : "false");
        return true;
    case VALUE_NUMBER:
        alloy_number_put(v->number, out);
        return true;
    case VALUE_STRING:
        put_json_string(v->text, out);
        return true;
    case VALUE_ARRAY:
    case VALUE_OBJECT:
        if (!v->open) {
            return put_members(call, v, out);
        }
        break;
    case VALUE_UNKNOWN:
        return false; /* an unknown value was reported before */
    default:
        break;
    }
    (void)alloy_call_fail(call, 0, "%s cannot be written as JSON", alloy_what(v));
    return false;
}

const struct alloy_value *alloy_to_json(const struct alloy_call *call)
{
    struct buf out;
    const struct alloy_value *v = call->args[0].value;
    if (v->kind != VALUE_OBJECT) {
        return alloy_call_fail(call, 0, "expected an object, got %s", alloy_what(v));
    }
    buf_init(&out, ALLOY_STRING_MAX);
    if (!put_json(call, v, &out)) {
        buf_done(&out);
        return &alloy_unknown;
    }
    return alloy_text_result(call, &out);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* One step of a path. */
enum step_kind {
    STEP_NAMES,   /* .name, ['name'], ['a','b'] */
    STEP_INDICES, /* [1], [-1], [1,2] */
    STEP_SLICE,   /* [a:b] */
    STEP_ALL,     /* [*], .* */
    STEP_DEEP,    /* "..": the next step is applied at every level */
};

#define STEP_PARTS_MAX 16

struct path_step {
    enum step_kind kind;
    struct sv names[STEP_PARTS_MAX];
    long indices[STEP_PARTS_MAX];
    size_t n;
    bool open_end; /* a slice without an end: [a:] */
};

struct path {
    struct path_step steps[PATH_STEPS_MAX];
    size_t n;
};

struct path_text {
    struct sv rest;
    const char *problem;
};

static bool problem(struct path_text *t, const char *what)
{
    t->problem = what;
    return false;
}

static char next(const struct path_text *t)
{
    return t->rest.n > 0 ? t->rest.p[0] : '\0';
}

static bool pass(struct path_text *t, char c)
{
    if (next(t) != c) {
        return false;
    }
    t->rest = sv_skip(t->rest, 1);
    return true;
}

static bool name_char(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

static struct sv pass_name(struct path_text *t)
{
    size_t n = 0;
    while (n < t->rest.n && name_char(t->rest.p[n])) {
        n++;
    }
    struct sv name = {t->rest.p, n};
    t->rest = sv_skip(t->rest, n);
    return name;
}

static bool parse_index(struct path_text *t, long *ret_index)
{
    uint64_t value;
    bool negative = pass(t, '-');
    size_t n = 0;
    while (n < t->rest.n && t->rest.p[n] >= '0' && t->rest.p[n] <= '9') {
        n++;
    }
    if (!parse_u64((struct sv){t->rest.p, n}, 1000000000, &value)) {
        return problem(t, "expected a number, a name in quotes, \"*\" or a range in \"[...]\"");
    }
    t->rest = sv_skip(t->rest, n);
    *ret_index = negative ? -(long)value : (long)value;
    return true;
}

static bool parse_quoted(struct path_text *t, struct sv *ret_name)
{
    char quote = next(t);
    t->rest = sv_skip(t->rest, 1);
    const char *end = t->rest.n > 0 ? memchr(t->rest.p, quote, t->rest.n) : NULL;
    if (end == NULL) {
        return problem(t, "a name in quotes is not closed");
    }
    *ret_name = (struct sv){t->rest.p, (size_t)(end - t->rest.p)};
    t->rest = sv_skip(t->rest, ret_name->n + 1);
    return true;
}

/* Parses the rest of a slice [a:b], after "[" and the optional a. */
static bool parse_slice(struct path_text *t, struct path_step *step)
{
    step->kind = STEP_SLICE;
    step->open_end = next(t) == ']';
    step->indices[1] = 0;
    return step->open_end || parse_index(t, &step->indices[1]);
}

static bool parse_part(struct path_text *t, struct path_step *step)
{
    if (step->n == STEP_PARTS_MAX) {
        return problem(t, "more than 16 parts in one \"[...]\"");
    }
    if (next(t) == '\'' || next(t) == '"') {
        step->kind = STEP_NAMES;
        return parse_quoted(t, &step->names[step->n++]);
    }
    step->kind = STEP_INDICES;
    if (next(t) != ':' && !parse_index(t, &step->indices[step->n])) {
        return false;
    }
    step->n++;
    return !pass(t, ':') || parse_slice(t, step);
}

static bool parse_bracket(struct path_text *t, struct path_step *step)
{
    if (next(t) == '?' || next(t) == '(') {
        return problem(t, "filters and scripts are not supported");
    }
    if (pass(t, '*')) {
        step->kind = STEP_ALL;
    } else {
        do {
            if (!parse_part(t, step)) {
                return false;
            }
        } while (step->kind != STEP_SLICE && pass(t, ','));
    }
    return pass(t, ']') || problem(t, "expected \"]\"");
}

static bool parse_step(struct path_text *t, struct path_step *step)
{
    if (pass(t, '[')) {
        return parse_bracket(t, step);
    }
    if (!pass(t, '.')) {
        return problem(t, "expected \".\" or \"[\"; a name with \"-\" stands in brackets: "
                          "['a-b']");
    }
    if (next(t) == '.') {
        step->kind = STEP_DEEP; /* its second dot is the first one of the next step */
        return true;
    }
    if (next(t) == '[') {
        return pass(t, '[') && parse_bracket(t, step);
    }
    if (pass(t, '*')) {
        step->kind = STEP_ALL;
        return true;
    }
    step->kind = STEP_NAMES;
    step->names[0] = pass_name(t);
    step->n = 1;
    return step->names[0].n > 0 || problem(t, "expected a name after \".\"");
}

static bool parse_path(struct path_text *t, struct path *path)
{
    if (!pass(t, '$')) {
        pass(t, '@');
    }
    if (name_char(next(t))) {
        path->steps[path->n++] =
            (struct path_step){.kind = STEP_NAMES, .names = {pass_name(t)}, .n = 1};
    }
    while (t->rest.n > 0) {
        if (path->n == PATH_STEPS_MAX) {
            return problem(t, "more than 64 steps");
        }
        if (!parse_step(t, &path->steps[path->n++])) {
            return false;
        }
    }
    return true;
}

/* The matches so far: nodes of the JSON that is being searched. */
struct matches {
    const json_t **at;
    size_t n;
    size_t size;
    bool full; /* too many matches, or out of memory */
};

static void add(struct matches *m, const json_t *j)
{
    if (j == NULL || m->full) {
        return;
    }
    if (m->n == m->size) {
        size_t size = m->size == 0 ? 16 : 2 * m->size;
        const json_t **at =
            m->n < ALLOY_VALUES_MAX ? reallocarray(m->at, size, sizeof(void *)) : NULL;
        m->full = at == NULL;
        if (m->full) {
            return;
        }
        m->at = at;
        m->size = size;
    }
    m->at[m->n++] = j;
}

static void add_all(struct matches *m, const json_t *j)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)j, key, value)
    {
        add(m, value);
    }
    for (size_t i = 0; i < json_array_size(j); i++) {
        add(m, json_array_get(j, i));
    }
}

static void add_deep(struct matches *m, const json_t *j, int level)
{
    const char *key;
    json_t *value;
    if (level > JSON_LEVELS_MAX) {
        m->full = true;
        return;
    }
    add(m, j);
    json_object_foreach((json_t *)(uintptr_t)j, key, value)
    {
        add_deep(m, value, level + 1);
    }
    for (size_t i = 0; i < json_array_size(j); i++) {
        add_deep(m, json_array_get(j, i), level + 1);
    }
}

static void add_slice(struct matches *m, const json_t *j, const struct path_step *step)
{
    long n = (long)json_array_size(j);
    long from = step->indices[0] < 0 ? n + step->indices[0] : step->indices[0];
    long to = step->open_end ? n : step->indices[1] < 0 ? n + step->indices[1] : step->indices[1];
    for (long i = from < 0 ? 0 : from; i < to && i < n; i++) {
        add(m, json_array_get(j, (size_t)i));
    }
}

static void take_step(const struct path_step *step, const json_t *j, struct matches *out)
{
    switch (step->kind) {
    case STEP_ALL:
        add_all(out, j);
        break;
    case STEP_DEEP:
        add_deep(out, j, 0);
        break;
    case STEP_SLICE:
        add_slice(out, j, step);
        break;
    case STEP_NAMES:
        for (size_t i = 0; i < step->n; i++) {
            add(out, json_object_getn(j, step->names[i].p, step->names[i].n));
        }
        break;
    case STEP_INDICES:
        for (size_t i = 0; i < step->n; i++) {
            long at = step->indices[i] < 0 ? (long)json_array_size(j) + step->indices[i]
                                           : step->indices[i];
            add(out, at < 0 ? NULL : json_array_get(j, (size_t)at));
        }
        break;
    }
}

/* Collects the matches of the path in *m. */
static void search(const json_t *root, const struct path *path, struct matches *m)
{
    struct matches found = {0};
    add(m, root);
    for (size_t i = 0; i < path->n; i++) {
        found.n = 0;
        for (size_t k = 0; k < m->n; k++) {
            take_step(&path->steps[i], m->at[k], &found);
        }
        struct matches swap = *m;
        *m = found;
        found = swap;
    }
    m->full = m->full || found.full;
    free(found.at);
}

static const struct alloy_value *path_result(const struct alloy_call *call, const struct matches *m)
{
    struct import im = {.call = call, .integers = true};
    struct alloy_member *members = arena_array(call->ev->arena, m->n + 1, sizeof(*members));
    if (m->full || members == NULL) {
        return alloy_call_fail(call, 0, "more than %d matches", ALLOY_VALUES_MAX);
    }
    for (size_t i = 0; i < m->n; i++) {
        members[i].value = import_value(&im, m->at[i], 0);
    }
    return alloy_result(call, alloy_array(call->ev->arena, members, m->n));
}

const struct alloy_value *alloy_json_path(const struct alloy_call *call)
{
    struct sv text;
    struct sv path_text;
    if (!alloy_arg_text(call, 0, &text) || !alloy_arg_text(call, 1, &path_text)) {
        return &alloy_unknown;
    }
    struct path *path = arena_alloc(call->ev->arena, sizeof(*path));
    struct path_text t = {.rest = path_text};
    if (path == NULL) {
        return alloy_result(call, NULL);
    }
    if (!parse_path(&t, path)) {
        return alloy_call_fail(call, 1, "in the path \"%.*s\" at character %zu: %s",
                               SV_ARG(path_text), path_text.n - t.rest.n + 1, t.problem);
    }
    if (text.n == 0) {
        return alloy_result(call, alloy_array(call->ev->arena, NULL, 0));
    }
    json_t *j = load(call, text);
    if (j == NULL) {
        return &alloy_unknown;
    }
    struct matches m = {0};
    search(j, path, &m);
    const struct alloy_value *v = path_result(call, &m);
    free(m.at);
    json_decref(j);
    return v;
}

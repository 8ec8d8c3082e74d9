#include "alloy/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unicode.h"
#include "base/utf8.h"

#define HOSTNAME_SIZE 256
#define NAME_MAX_BYTES 256

/* ---- the environment ------------------------------------------------------------------------- */

static const struct alloy_value *sys_env(const struct alloy_call *call)
{
    struct alloy_eval *ev = call->ev;
    struct sv name;
    if (!alloy_arg_text(call, 0, &name)) {
        return &alloy_unknown;
    }
    const char *key = arena_strndup(ev->arena, name.p, name.n);
    const char *form = arena_printf(ev->arena, "${%.*s:-}", SV_ARG(name));
    struct alloy_value *v = alloy_value_new(ev->arena, VALUE_STRING);
    if (key == NULL || form == NULL || v == NULL) {
        return alloy_result(call, NULL);
    }
    const char *value = ev->env != NULL ? ev->env(ev->env_arg, key) : NULL;
    char *copy = arena_strdup(ev->arena, value != NULL ? value : "");
    v->text = sv_from(copy);
    v->form = sv_from(form);
    return alloy_result(call, copy != NULL ? v : NULL);
}

static bool is_empty(const struct alloy_value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        return true;
    case VALUE_BOOL:
        return !v->truth;
    case VALUE_NUMBER:
        return !(alloy_number_float(v->number) > 0 || alloy_number_float(v->number) < 0);
    case VALUE_STRING:
    case VALUE_SECRET:
    case VALUE_BYTES:
        return v->text.n == 0;
    case VALUE_ARRAY:
    case VALUE_OBJECT:
        return v->n_members == 0;
    default:
        return false;
    }
}

/* Gives coalesce(sys.env("A"), "text") the form "${A:-text}". */
static const struct alloy_value *with_default(const struct alloy_call *call,
                                              const struct alloy_value *v)
{
    const struct alloy_value *first = call->args[0].value;
    const struct alloy_value *second = call->n == 2 ? call->args[1].value : &alloy_null;
    struct sv form = first->form;
    bool plain = second->kind == VALUE_STRING && second->form.p == NULL &&
                 memchr(second->text.p, '}', second->text.n) == NULL &&
                 memchr(second->text.p, '$', second->text.n) == NULL;
    if (first->kind != VALUE_STRING || form.p == NULL || !plain ||
        !sv_starts_with(form, SV("${")) || !sv_ends_with(form, SV(":-}")) ||
        memchr(form.p + 1, '$', form.n - 1) != NULL) {
        return v;
    }
    struct alloy_value *both = alloy_value_new(call->ev->arena, VALUE_STRING);
    const char *text =
        arena_printf(call->ev->arena, "%.*s%.*s}", (int)form.n - 1, form.p, SV_ARG(second->text));
    if (both == NULL || text == NULL) {
        return alloy_result(call, NULL);
    }
    both->text = v->text;
    both->form = sv_from(text);
    return alloy_result(call, both);
}

/* Returns the first argument that is not empty, or else the last one. */
static const struct alloy_value *coalesce(const struct alloy_call *call)
{
    const struct alloy_value *v = &alloy_null;
    for (size_t i = 0; i < call->n; i++) {
        v = call->args[i].value;
        if (v->kind == VALUE_ARRAY && v->open) {
            return alloy_call_fail(
                call, i,
                "discovered targets are not supported here: they change while profpull runs");
        }
        if (!is_empty(v)) {
            break;
        }
    }
    return call->n > 0 ? with_default(call, v) : v;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Concatenates arrays. Lists of discovered targets are allowed as well: their splices are
 * copied. */
static const struct alloy_value *concat(const struct alloy_call *call)
{
    struct alloy_list list;
    size_t n = 0;
    for (size_t i = 0; i < call->n; i++) {
        if (call->args[i].value->kind != VALUE_ARRAY) {
            (void)alloy_arg_mismatch(call, i, "an array");
            return &alloy_unknown;
        }
        n += call->args[i].value->n_members;
    }
    if (n > ALLOY_VALUES_MAX) {
        return alloy_too_many_values(call->ev, call->expr->place);
    }
    if (!alloy_start_list(call, n, &list)) {
        return alloy_result(call, NULL);
    }
    for (size_t i = 0; i < call->n; i++) {
        const struct alloy_value *v = call->args[i].value;
        for (size_t k = 0; k < v->n_members; k++) {
            list.at[list.n++] = v->members[k];
        }
    }
    return alloy_list_result(call, &list);
}

/* Merges two objects; members of r replace those of l. */
static const struct alloy_value *overlay(const struct alloy_call *call, const struct alloy_value *l,
                                         const struct alloy_value *r)
{
    struct alloy_list list;
    if (!alloy_start_list(call, l->n_members + r->n_members, &list)) {
        return alloy_result(call, NULL);
    }
    for (size_t i = 0; i < l->n_members; i++) {
        if (alloy_member(r, l->members[i].key) == NULL) {
            list.at[list.n++] = l->members[i];
        }
    }
    for (size_t i = 0; i < r->n_members; i++) {
        list.at[list.n++] = r->members[i];
    }
    return alloy_result(call, alloy_object(call->ev->arena, list.at, list.n));
}

static bool matches(const struct alloy_value *l, const struct alloy_value *r,
                    const struct alloy_value *keys)
{
    bool same = true;
    for (size_t i = 0; same && i < keys->n_members; i++) {
        const struct alloy_value *a = alloy_member(l, keys->members[i].value->text);
        const struct alloy_value *b = alloy_member(r, keys->members[i].value->text);
        same = a != NULL && b != NULL && alloy_equal(a, b);
    }
    return same;
}

static bool all_of(const struct alloy_call *call, size_t arg, const struct alloy_value *array,
                   enum alloy_value_kind kind, const char *what)
{
    for (size_t i = 0; i < array->n_members; i++) {
        if (array->members[i].value->kind != kind) {
            (void)alloy_call_fail(call, arg, "expected an array of %s, got %s in it", what,
                                  alloy_what(array->members[i].value));
            return false;
        }
    }
    return true;
}

/* Merges each pair of objects from the two lists whose keys are equal. If the fourth argument is
 * true, the left object of every other pair is added as well. */
static const struct alloy_value *combine_maps(const struct alloy_call *call)
{
    const struct alloy_value *left;
    const struct alloy_value *right;
    const struct alloy_value *keys;
    struct alloy_list list;
    if (!alloy_arg_array(call, 0, &left) || !alloy_arg_array(call, 1, &right) ||
        !alloy_arg_array(call, 2, &keys) || !all_of(call, 0, left, VALUE_OBJECT, "objects") ||
        !all_of(call, 1, right, VALUE_OBJECT, "objects") ||
        !all_of(call, 2, keys, VALUE_STRING, "strings")) {
        return &alloy_unknown;
    }
    if (keys->n_members == 0) {
        return alloy_call_fail(call, 2, "expected at least one key");
    }
    bool keep = call->n == 4 && call->args[3].value->truth;
    size_t pairs;
    if (__builtin_mul_overflow(left->n_members, right->n_members, &pairs) ||
        pairs > ALLOY_VALUES_MAX || !alloy_start_list(call, pairs, &list)) {
        return alloy_call_fail(call, call->n, "more than %d pairs", ALLOY_VALUES_MAX);
    }
    for (size_t i = 0; i < pairs; i++) {
        const struct alloy_value *l = left->members[i / right->n_members].value;
        const struct alloy_value *r = right->members[i % right->n_members].value;
        if (matches(l, r, keys)) {
            list.at[list.n++].value = overlay(call, l, r);
        } else if (keep) {
            list.at[list.n++].value = l;
        }
    }
    return alloy_list_result(call, &list);
}

/* Makes the object {KEY = value, items = [...]}. */
static const struct alloy_value *make_group(const struct alloy_call *call, struct sv key,
                                            struct sv value, const struct alloy_list *items)
{
    struct arena *arena = call->ev->arena;
    struct alloy_member *members = arena_array(arena, 2, sizeof(*members));
    if (members == NULL) {
        return alloy_result(call, NULL);
    }
    members[0] = (struct alloy_member){.key = key, .value = alloy_string(arena, value)};
    members[1] = (struct alloy_member){.key = SV("items"), .value = alloy_list_result(call, items)};
    if (members[0].value == NULL) {
        return alloy_result(call, NULL);
    }
    return alloy_result(call, alloy_object(arena, members, 2));
}

static struct sv group_of(const struct alloy_value *object, struct sv key, bool *ret_missing)
{
    const struct alloy_value *v = alloy_member(object, key);
    *ret_missing = v == NULL || v->kind != VALUE_STRING;
    return *ret_missing ? SV("") : v->text;
}

/* Collects the objects, from `first` on, that belong to its group, and marks them as done. */
static const struct alloy_value *collect_group(const struct alloy_call *call,
                                               const struct alloy_value *array, struct sv key,
                                               size_t first, bool *done)
{
    struct alloy_list items;
    bool missing;
    struct sv group = group_of(array->members[first].value, key, &missing);
    if (!alloy_start_list(call, array->n_members - first, &items)) {
        return alloy_result(call, NULL);
    }
    for (size_t i = first; i < array->n_members; i++) {
        bool absent;
        struct sv other = group_of(array->members[i].value, key, &absent);
        if (!done[i] && absent == missing && sv_eq(other, group)) {
            done[i] = true;
            items.at[items.n++] = array->members[i];
        }
    }
    return make_group(call, key, group, &items);
}

/* Returns the groups in the order of their first elements. */
static const struct alloy_value *group_by(const struct alloy_call *call)
{
    const struct alloy_value *array;
    struct sv key;
    struct alloy_list groups;
    if (!alloy_arg_array(call, 0, &array) || !all_of(call, 0, array, VALUE_OBJECT, "objects") ||
        !alloy_arg_text(call, 1, &key)) {
        return &alloy_unknown;
    }
    bool drop = call->args[2].value->truth;
    bool *done = arena_array(call->ev->arena, array->n_members + 1, sizeof(*done));
    if (done == NULL || !alloy_start_list(call, array->n_members, &groups)) {
        return alloy_result(call, NULL);
    }
    for (size_t i = 0; i < array->n_members && !call->ev->exhausted; i++) {
        bool missing;
        (void)group_of(array->members[i].value, key, &missing);
        if (!done[i] && !(missing && drop)) {
            groups.at[groups.n++].value = collect_group(call, array, key, i, done);
        }
    }
    return alloy_list_result(call, &groups);
}

/* ---- other ----------------------------------------------------------------------------------- */

static const struct alloy_value *nonsensitive(const struct alloy_call *call)
{
    const struct alloy_value *v = call->args[0].value;
    struct alloy_value *plain = alloy_value_new(call->ev->arena, VALUE_STRING);
    if (alloy_is_content(v)) {
        return v;
    }
    if (v->kind != VALUE_STRING && v->kind != VALUE_SECRET) {
        (void)alloy_arg_mismatch(call, 0, "a secret or a string");
        return &alloy_unknown;
    }
    if (plain != NULL) {
        *plain = *v;
        plain->kind = VALUE_STRING;
        plain->maybe_secret = false;
    }
    return alloy_result(call, plain);
}

/* Removes the last part of a cleaned path; false if there is none that ".." can remove. */
static bool go_up(struct buf *path, bool rooted)
{
    size_t from = path->len;
    while (from > 0 && path->data[from - 1] != '/') {
        from--;
    }
    struct sv last = {path->data + from, path->len - from};
    if (last.n == 0 || sv_eq_str(last, "..")) {
        return rooted;
    }
    path->len = from > (rooted ? 1 : 0) ? from - 1 : from;
    return true;
}

/* Applies a part of a path that only moves or does nothing; returns false for other parts. */
static bool moves(struct sv name, struct buf *out, bool rooted)
{
    return name.n == 0 || sv_eq_str(name, ".") || (sv_eq_str(name, "..") && go_up(out, rooted));
}

/* Appends a path without ".", ".." and "//", as Go's path.Clean does. */
static void put_clean(struct sv path, struct buf *out)
{
    bool rooted = path.n > 0 && path.p[0] == '/';
    size_t root = rooted ? 1 : 0;
    buf_puts(out, rooted ? "/" : "");
    while (path.n > 0) {
        const char *slash = memchr(path.p, '/', path.n);
        struct sv name = {path.p, slash != NULL ? (size_t)(slash - path.p) : path.n};
        path = sv_skip(path, slash != NULL ? name.n + 1 : name.n);
        if (!moves(name, out, rooted)) {
            buf_puts(out, out->len > root ? "/" : "");
            buf_append(out, name.p, name.n);
        }
    }
    buf_puts(out, out->len == 0 ? "." : "");
}

static const struct alloy_value *path_join(const struct alloy_call *call)
{
    struct buf joined;
    struct buf out;
    buf_init(&joined, ALLOY_STRING_MAX);
    for (size_t i = 0; i < call->n; i++) {
        struct sv text;
        if (!alloy_arg_text(call, i, &text)) {
            buf_done(&joined);
            return &alloy_unknown;
        }
        if (text.n > 0 && joined.len > 0) {
            buf_putc(&joined, '/');
        }
        buf_append(&joined, text.p, text.n);
    }
    buf_init(&out, ALLOY_STRING_MAX);
    if (joined.len > 0) {
        put_clean((struct sv){joined.data, joined.len}, &out);
    }
    buf_done(&joined);
    return alloy_text_result(call, &out);
}

/* ---- the tables ------------------------------------------------------------------------------ */

static const struct alloy_function functions[] = {
    {"coalesce", NULL, 0, ALLOY_ARGS_MAX, coalesce},
    {"json_path", NULL, 2, 2, alloy_json_path},
    {"sys.env", "env", 1, 1, sys_env},
    {"array.concat", "concat", 0, ALLOY_ARGS_MAX, concat},
    {"array.combine_maps", NULL, 3, 4, combine_maps},
    {"array.group_by", NULL, 3, 3, group_by},
    {"string.format", "format", 1, ALLOY_ARGS_MAX, alloy_format},
    {"string.join", "join", 2, 2, alloy_join},
    {"string.split", "split", 2, 2, alloy_split},
    {"string.replace", "replace", 3, 3, alloy_replace},
    {"string.to_lower", "to_lower", 1, 1, alloy_to_lower},
    {"string.to_upper", "to_upper", 1, 1, alloy_to_upper},
    {"string.trim", "trim", 2, 2, alloy_trim},
    {"string.trim_prefix", "trim_prefix", 2, 2, alloy_trim_prefix},
    {"string.trim_suffix", "trim_suffix", 2, 2, alloy_trim_suffix},
    {"string.trim_space", "trim_space", 1, 1, alloy_trim_space},
    {"encoding.from_json", "json_decode", 1, 1, alloy_from_json},
    {"encoding.from_yaml", "yaml_decode", 1, 1, alloy_from_yaml},
    {"encoding.from_base64", "base64_decode", 1, 1, alloy_from_base64},
    {"encoding.from_URLbase64", NULL, 1, 1, alloy_from_url_base64},
    {"encoding.to_base64", NULL, 1, 1, alloy_to_base64},
    {"encoding.to_URLbase64", NULL, 1, 1, alloy_to_url_base64},
    {"encoding.to_json", NULL, 1, 1, alloy_to_json},
    {"encoding.url_encode", NULL, 1, 1, alloy_url_encode},
    {"encoding.url_decode", NULL, 1, 1, alloy_url_decode},
    {"convert.nonsensitive", "nonsensitive", 1, 1, nonsensitive},
    {"file.path_join", NULL, 0, ALLOY_ARGS_MAX, path_join},
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static const char *hostname(struct arena *arena)
{
    char name[HOSTNAME_SIZE];
    if (gethostname(name, sizeof(name)) != 0) {
        name[0] = '\0';
    }
    name[sizeof(name) - 1] = '\0';
    return arena_strdup(arena, name);
}

static const char *operating_system(struct arena *arena)
{
    (void)arena;
    return "linux";
}

/* Returns the architecture by its name in Go. */
static const char *architecture(struct arena *arena)
{
    (void)arena;
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__i386__)
    return "386";
#elif defined(__arm__)
    return "arm";
#elif defined(__powerpc64__)
    return "ppc64le";
#elif defined(__s390x__)
    return "s390x";
#elif defined(__riscv)
    return "riscv64";
#else
    return "unknown";
#endif
}

static const char *version(struct arena *arena)
{
    (void)arena;
    return "v" PROFPULL_VERSION;
}

static const struct {
    const char *name;
    const char *(*get)(struct arena *arena);
} constants[] = {
    {"hostname", hostname},
    {"os", operating_system},
    {"arch", architecture},
    {"version", version},
};
#define N_CONSTANTS (sizeof(constants) / sizeof(constants[0]))

/* Returns all constants as an object. */
static const struct alloy_value *make_constants(struct alloy_eval *ev, struct config_place place)
{
    struct alloy_member *members = arena_array(ev->arena, N_CONSTANTS, sizeof(*members));
    bool ok = members != NULL;
    for (size_t i = 0; ok && i < N_CONSTANTS; i++) {
        const char *text = constants[i].get(ev->arena);
        members[i].key = sv_from(constants[i].name);
        members[i].value = text != NULL ? alloy_string(ev->arena, sv_from(text)) : NULL;
        ok = members[i].value != NULL;
    }
    return alloy_made(ev, place, ok ? alloy_object(ev->arena, members, N_CONSTANTS) : NULL);
}

static const struct alloy_value *function_value(struct alloy_eval *ev, struct config_place place,
                                                const struct alloy_function *function)
{
    struct alloy_value *v = alloy_value_new(ev->arena, VALUE_FUNCTION);
    if (v != NULL) {
        v->function = function;
    }
    return alloy_made(ev, place, v);
}

/* Returns true if a name is the first part of the name of a function. */
static bool is_namespace(struct sv name)
{
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        struct sv full = sv_from(functions[i].name);
        if (full.n > name.n && full.p[name.n] == '.' && sv_starts_with(full, name)) {
            return true;
        }
    }
    return false;
}

static const struct alloy_value *unknown_name(struct alloy_eval *ev,
                                              const struct alloy_chain *chain, struct sv name)
{
    const char *names[2 * N_FUNCTIONS];
    size_t n = 0;
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        names[n++] = functions[i].name;
        if (functions[i].old_name != NULL) {
            names[n++] = functions[i].old_name;
        }
    }
    const char *close = suggest(name, names, n);
    const char *what =
        is_namespace(chain->names[0]) ? "function" : "component, function or variable";
    if (close != NULL) {
        return alloy_fail(ev, chain->places[0], "no %s \"%.*s\"; did you mean \"%s\"?", what,
                          SV_ARG(name), close);
    }
    return alloy_fail(ev, chain->places[0], "no %s \"%.*s\"", what, SV_ARG(name));
}

/* Finds the function that a chain names, and sets *ret_used to the number of names; NULL if there
 * is none. */
static const struct alloy_function *find_function(struct sv first, const char *joined,
                                                  size_t *ret_used)
{
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        const struct alloy_function *f = &functions[i];
        bool old = f->old_name != NULL && sv_eq_str(first, f->old_name);
        if (old || sv_eq_str(first, f->name)) {
            *ret_used = 1;
            return f;
        }
        if (strcmp(joined, f->name) == 0) {
            *ret_used = 2;
            return f;
        }
    }
    return NULL;
}

const struct alloy_value *alloy_library(struct alloy_eval *ev, const struct alloy_chain *chain,
                                        size_t *ret_used)
{
    char joined[NAME_MAX_BYTES];
    struct sv first = chain->names[0];
    struct sv second = chain->n > 1 ? chain->names[1] : SV("");
    snprintf(joined, sizeof(joined), "%.*s.%.*s", SV_ARG(first), SV_ARG(second));
    const struct alloy_function *function = find_function(first, joined, ret_used);
    if (function != NULL) {
        return function_value(ev, chain->places[0], function);
    }
    *ret_used = 1;
    if (sv_eq_str(first, "constants")) {
        return make_constants(ev, chain->places[0]);
    }
    if (sv_eq_str(first, "module_path") && ev->module_path != NULL) {
        return alloy_made(ev, chain->places[0], alloy_string(ev->arena, sv_from(ev->module_path)));
    }
    *ret_used = chain->n;
    bool function_wanted = is_namespace(first) && chain->n > 1;
    return unknown_name(ev, chain, function_wanted ? sv_from(joined) : chain->source);
}

const struct alloy_value *alloy_call_function(struct alloy_call *call,
                                              const struct alloy_function *function)
{
    call->name = function->name;
    if (call->n >= function->min_args && call->n <= function->max_args) {
        return function->run(call);
    }
    return alloy_call_fail(call, call->n, "expected %s%zu argument%s, got %zu",
                           function->min_args == function->max_args ? ""
                           : function->max_args == ALLOY_ARGS_MAX   ? "at least "
                                                                    : "3 or ",
                           function->min_args == function->max_args ? function->min_args
                           : function->max_args == ALLOY_ARGS_MAX   ? function->min_args
                                                                    : function->max_args,
                           function->max_args == 1 ? "" : "s", call->n);
}

#include "alloy/block.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS_ INT64_C(1000000)
#define NAMES_MAX (2 * ALLOY_ROWS_MAX)

const char *alloy_path(struct arena *arena, const char *path, struct sv name)
{
    const char *joined =
        arena_printf(arena, "%s%s%.*s", path, path[0] != '\0' ? "." : "", SV_ARG(name));
    return joined != NULL ? joined : path;
}

/* ---- values -> nodes ------------------------------------------------------------------------- */

const struct yaml_node *alloy_duration_node(struct alloy_reading *r, struct config_place place,
                                            const char *path, int64_t ns)
{
    char text[64];
    int64_t ms = ns / NS_PER_MS_ + (ns % NS_PER_MS_ > 0);
    if (ns < 0) {
        (void)alloy_fail(r->ev, place, "expected a duration that is not negative");
        return NULL;
    }
    if (ms * NS_PER_MS_ != ns) {
        config_tell(r->notes, place, path, "rounded up to whole milliseconds");
    }
    format_duration_ms(ms, text, sizeof(text));
    return tree_word(r->tree, place, path, text);
}

/* Returns a file name as an absolute one, since a relative name in YAML is relative to the
 * configuration file rather than to the working directory. */
static const struct yaml_node *file_node(struct alloy_reading *r, struct config_place place,
                                         const char *path, const struct alloy_value *s)
{
    char here[PATH_MAX];
    struct sv form = s->form;
    struct sv text = s->text;
    if (text.n > 0 && text.p[0] != '/' && getcwd(here, sizeof(here)) != NULL) {
        text = sv_from(arena_printf(r->tree->arena, "%s/%.*s", here, SV_ARG(text)));
        if (form.p != NULL) {
            form = sv_from(arena_printf(r->tree->arena, "%s/%.*s", here, SV_ARG(form)));
        }
    }
    return tree_text(r->tree, place, path, text, form);
}

static const struct yaml_node *string_node(struct alloy_reading *r, const struct alloy_attr *attr,
                                           struct config_place place, const char *path,
                                           const struct alloy_value *v)
{
    const struct alloy_value *s;
    bool ok = attr->type == ATTR_SECRET ? alloy_as_secret(r->ev, place, v, &s)
                                        : alloy_as_string(r->ev, place, v, &s);
    if (!ok) {
        return NULL;
    }
    if (attr->file_name) {
        return file_node(r, place, path, s);
    }
    struct sv form = attr->type == ATTR_TEXT ? s->text : s->form;
    return tree_text(r->tree, place, path, s->text, form);
}

static struct config_place place_of_member(const struct alloy_member *m, struct config_place whole)
{
    return m->place.line > 0 ? m->place : whole;
}

static const struct yaml_node *strings_node(struct alloy_reading *r, const struct alloy_attr *attr,
                                            struct config_place place, const char *path,
                                            const struct alloy_value *v)
{
    const struct alloy_value *array;
    struct alloy_attr element = {.type = attr->type == ATTR_LISTS_MAP ? ATTR_SECRET : ATTR_STRING,
                                 .file_name = attr->file_name};
    if (!alloy_as_array(r->ev, place, v, &array)) {
        return NULL;
    }
    struct yaml_node *list = tree_list(r->tree, place, path);
    for (size_t i = 0; i < array->n_members; i++) {
        const char *p = arena_printf(r->tree->arena, "%s[%zu]", path, i);
        struct config_place at = place_of_member(&array->members[i], place);
        r->ev->path = p;
        tree_append(r->tree, list, string_node(r, &element, at, p, array->members[i].value));
    }
    r->ev->path = path;
    return list;
}

static const struct yaml_node *map_node(struct alloy_reading *r, const struct alloy_attr *attr,
                                        struct config_place place, const char *path,
                                        const struct alloy_value *v)
{
    const struct alloy_value *object;
    struct alloy_attr element = {.type = ATTR_STRING};
    if (!alloy_as_object(r->ev, place, v, &object)) {
        return NULL;
    }
    struct yaml_node *mapping = tree_mapping(r->tree, place, path);
    for (size_t i = 0; i < object->n_members; i++) {
        const struct alloy_member *m = &object->members[i];
        struct config_place at = place_of_member(m, place);
        const char *p = alloy_path(r->tree->arena, path, m->key);
        r->ev->path = p;
        tree_put_new(r->tree, mapping, m->key,
                     attr->type == ATTR_LISTS_MAP ? strings_node(r, attr, at, p, m->value)
                                                  : string_node(r, &element, at, p, m->value));
    }
    r->ev->path = path;
    return mapping;
}

static const struct yaml_node *word_node(struct alloy_reading *r, const struct alloy_attr *attr,
                                         struct config_place place, const char *path,
                                         const struct alloy_value *v)
{
    char text[32];
    int64_t number;
    bool on;
    if (attr->type == ATTR_BOOL) {
        return alloy_as_bool(r->ev, place, v, &on)
                   ? tree_word(r->tree, place, path, on ? "true" : "false")
                   : NULL;
    }
    if (attr->type == ATTR_DURATION) {
        return alloy_as_duration(r->ev, place, v, &number)
                   ? alloy_duration_node(r, place, path, number)
                   : NULL;
    }
    if (!alloy_as_int(r->ev, place, v, &number)) {
        return NULL;
    }
    snprintf(text, sizeof(text), "%lld", (long long)number);
    return tree_word(r->tree, place, path, text);
}

const struct yaml_node *alloy_node(struct alloy_reading *r, const struct alloy_attr *attr,
                                   struct config_place place, const char *path,
                                   const struct alloy_value *v)
{
    switch (attr->type) {
    case ATTR_STRING:
    case ATTR_TEXT:
    case ATTR_SECRET:
        return string_node(r, attr, place, path, v);
    case ATTR_STRINGS:
        return strings_node(r, attr, place, path, v);
    case ATTR_STRING_MAP:
    case ATTR_LISTS_MAP:
        return map_node(r, attr, place, path, v);
    case ATTR_BOOL:
    case ATTR_INT:
    case ATTR_DURATION:
        return word_node(r, attr, place, path, v);
    case ATTR_VALUE:
    default:
        return NULL;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct alloy_attr *find_attr(const struct alloy_schema *s, struct sv name)
{
    for (; s != NULL; s = s->base) {
        for (size_t i = 0; i < s->n_attrs; i++) {
            if (sv_eq_str(name, s->attrs[i].name)) {
                return &s->attrs[i];
            }
        }
    }
    return NULL;
}

static const struct alloy_inner *find_inner(const struct alloy_schema *s, struct sv name)
{
    for (; s != NULL; s = s->base) {
        for (size_t i = 0; i < s->n_blocks; i++) {
            if (sv_eq_str(name, s->blocks[i].name)) {
                return &s->blocks[i];
            }
        }
    }
    return NULL;
}

/* Returns the known name that only has one more word before the last part: "profile.process_cpu"
 * for "profile.cpu". NULL if there is none. */
static const char *longer_name(struct sv name, const char *const *names, size_t n)
{
    size_t dot = name.n;
    while (dot > 0 && name.p[dot - 1] != '.') {
        dot--;
    }
    struct sv head = {name.p, dot};
    struct sv tail = sv_skip(name, dot);
    for (size_t i = 0; i < n; i++) {
        struct sv v = sv_from(names[i]);
        if (v.n > name.n && sv_starts_with(v, head) && sv_ends_with(v, tail) &&
            v.p[v.n - tail.n - 1] == '_') {
            return names[i];
        }
    }
    return NULL;
}

static void unknown(struct alloy_reading *r, const struct alloy_schema *schema,
                    const struct alloy_stmt *s, const char *path)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    bool attribute = s->value != NULL;
    for (const struct alloy_schema *t = schema; t != NULL; t = t->base) {
        for (size_t i = 0; attribute && i < t->n_attrs && n < NAMES_MAX; i++) {
            names[n++] = t->attrs[i].name;
        }
        for (size_t i = 0; !attribute && i < t->n_blocks && n < NAMES_MAX; i++) {
            names[n++] = t->blocks[i].name;
        }
        for (size_t i = 0; !attribute && t->other_names != NULL && t->other_names[i] != NULL; i++) {
            names[n++] = t->other_names[i];
        }
    }
    const char *close = suggest(s->name, names, n);
    close = close != NULL ? close : longer_name(s->name, names, n);
    r->ev->path = path;
    (void)alloy_fail(r->ev, s->place, "unknown %s%s%s%s", attribute ? "attribute" : "block",
                     close != NULL ? "; did you mean \"" : "", close != NULL ? close : "",
                     close != NULL ? "\"?" : "");
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Puts the name of the file instead of its content, if there is a key for it. */
static bool put_file(struct alloy_reading *r, const struct alloy_attr *attr,
                     const struct alloy_stmt *s, const char *path, const struct alloy_value *v,
                     struct yaml_node *out)
{
    const char *key =
        alloy_is_content(v) && attr->content_key != NULL ? attr->content_key : attr->file_key;
    if (key == NULL || v->file == NULL) {
        return false;
    }
    tree_put(r->tree, out, key,
             tree_text(r->tree, s->value->place, path, sv_from(v->file), (struct sv){.p = NULL}));
    return true;
}

static void read_attr(struct alloy_reading *r, const struct alloy_attr *attr,
                      const struct alloy_stmt *s, const char *path, struct yaml_node *out,
                      struct alloy_given *given)
{
    const struct alloy_stmt *before;
    r->ev->path = path;
    if (alloy_given(given, attr->name, &before) != NULL) {
        (void)alloy_fail(r->ev, s->place, "given twice, first at %d:%d", before->place.line,
                         before->place.column);
        return;
    }
    const struct alloy_value *v = alloy_eval(r->ev, s->value);
    if (attr->not_null && v->kind == VALUE_NULL) {
        v = alloy_fail(r->ev, s->value->place, "expected a value, got null");
    }
    if (given->n < ALLOY_ROWS_MAX) {
        given->at[given->n].attr = attr;
        given->at[given->n].stmt = s;
        given->at[given->n++].value = v;
    }
    if (attr->key == NULL || v->kind == VALUE_UNKNOWN || put_file(r, attr, s, path, v, out)) {
        return;
    }
    struct sv head;
    struct sv tail;
    if (sv_cut(sv_from(attr->key), '.', &head, &tail)) {
        const char *key = arena_strndup(r->tree->arena, head.p, head.n);
        out = key != NULL ? tree_submapping(r->tree, out, key) : NULL;
    } else {
        tail = sv_from(attr->key);
    }
    tree_put(r->tree, out, tail.p, alloy_node(r, attr, s->value->place, path, v));
}

const struct alloy_value *alloy_given(const struct alloy_given *g, const char *name,
                                      const struct alloy_stmt **ret_stmt)
{
    for (size_t i = 0; i < g->n; i++) {
        if (strcmp(g->at[i].attr->name, name) == 0) {
            *ret_stmt = g->at[i].stmt;
            return g->at[i].value;
        }
    }
    return NULL;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* One block that is being read. */
struct walk {
    struct alloy_reading *r;
    const struct alloy_schema *schema;
    const char *path;
    struct yaml_node *out;
    struct alloy_given *given;
    struct {
        const struct alloy_inner *inner;
        size_t n;
    } seen[ALLOY_ROWS_MAX];
    size_t n_seen;
};

/* Counts a block of this row; returns the number of earlier ones. */
static size_t count(struct walk *w, const struct alloy_inner *inner)
{
    size_t i = 0;
    while (i < w->n_seen && w->seen[i].inner != inner) {
        i++;
    }
    if (i == ALLOY_ROWS_MAX) {
        return 0;
    }
    if (i == w->n_seen) {
        w->seen[w->n_seen++].inner = inner;
    }
    return w->seen[i].n++;
}

/* Returns the mapping for the rows of an inner block. */
static struct yaml_node *target_of(struct walk *w, const struct alloy_inner *inner,
                                   struct config_place place, const char *path)
{
    struct tree *t = w->r->tree;
    if (inner->key == NULL) {
        return w->out;
    }
    struct yaml_node *mapping = tree_mapping(t, place, path);
    if (!inner->repeats) {
        tree_put(t, w->out, inner->key, mapping);
        return mapping;
    }
    struct yaml_node *list = tree_submapping(t, w->out, inner->key);
    if (list != NULL) {
        list->kind = YAML_LIST;
    }
    tree_append(t, list, mapping);
    return mapping;
}

static void read_inner(struct walk *w, const struct alloy_inner *inner, const struct alloy_stmt *s)
{
    struct alloy_given given;
    size_t index = count(w, inner);
    const char *path = alloy_path(w->r->tree->arena, w->path, s->name);
    if (inner->repeats) {
        const char *indexed = arena_printf(w->r->tree->arena, "%s[%zu]", path, index);
        path = indexed != NULL ? indexed : path;
    }
    w->r->ev->path = path;
    if (s->label_place.line > 0) {
        (void)alloy_fail(w->r->ev, s->label_place, "has no label");
    }
    if (index > 0 && !inner->repeats) {
        (void)alloy_fail(w->r->ev, s->place, "there may be only one such block");
    } else if (!inner->ignored) {
        alloy_read_block(w->r, inner->schema, s, path, target_of(w, inner, s->place, path), &given);
    }
}

/* Returns true for a block that schema->other takes. */
static bool is_other(const struct alloy_schema *s, struct sv name)
{
    for (; s != NULL; s = s->base) {
        for (size_t i = 0; s->other_names != NULL && s->other_names[i] != NULL; i++) {
            if (sv_eq_str(name, s->other_names[i])) {
                return true;
            }
        }
    }
    return false;
}

static void read_stmt(struct walk *w, const struct alloy_stmt *s)
{
    struct alloy_reading *r = w->r;
    const struct alloy_attr *attr = find_attr(w->schema, s->name);
    const struct alloy_inner *inner = find_inner(w->schema, s->name);
    const char *path = alloy_path(r->tree->arena, w->path, s->name);
    r->ev->path = path;
    if (s->value != NULL && attr != NULL) {
        read_attr(r, attr, s, path, w->out, w->given);
    } else if (s->value != NULL && (inner != NULL || is_other(w->schema, s->name))) {
        (void)alloy_fail(r->ev, s->place, "is a block: write it without \"=\"");
    } else if (s->value == NULL && inner != NULL) {
        read_inner(w, inner, s);
    } else if (s->value == NULL && attr != NULL) {
        (void)alloy_fail(r->ev, s->place, "is an attribute: write it with \"=\"");
    } else if (s->value != NULL || w->schema->other == NULL || !w->schema->other(r->arg, s, path)) {
        unknown(r, w->schema, s, path);
    }
}

static void check_required(const struct walk *w, const struct alloy_stmt *block)
{
    const struct alloy_stmt *stmt;
    for (const struct alloy_schema *t = w->schema; t != NULL; t = t->base) {
        for (size_t i = 0; i < t->n_attrs; i++) {
            if (t->attrs[i].required && alloy_given(w->given, t->attrs[i].name, &stmt) == NULL) {
                w->r->ev->path = w->path;
                (void)alloy_fail(w->r->ev, block->place, "missing required attribute \"%s\"",
                                 t->attrs[i].name);
            }
        }
    }
}

void alloy_read_block(struct alloy_reading *r, const struct alloy_schema *schema,
                      const struct alloy_stmt *block, const char *path, struct yaml_node *out,
                      struct alloy_given *ret_given)
{
    struct walk w = {.r = r, .schema = schema, .path = path, .out = out, .given = ret_given};
    size_t before = r->ev->n_failures;
    *ret_given = (struct alloy_given){0};
    for (const struct alloy_stmt *s = block->body.first; s != NULL; s = s->next) {
        read_stmt(&w, s);
    }
    check_required(&w, block);
    if (out != NULL && r->ev->n_failures > before) {
        out->incomplete = true;
    }
    r->ev->path = path;
}

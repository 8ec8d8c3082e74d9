#include "alloy/targets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_ADDRESS_NAME "__address__"
#define KEY_MAX ((size_t)1024 * 1024)

/* ---- atoms ----------------------------------------------------------------------------------- */

static void add_atom(struct alloy_load *l, struct alloy_atoms *list, const struct alloy_atom *atom)
{
    if (list->n == list->size) {
        size_t size = list->size == 0 ? 8 : 2 * list->size;
        const struct alloy_atom **at = arena_array(l->arena, size, sizeof(struct alloy_atom *));
        if (at == NULL) {
            alloy_no_memory(l);
            return;
        }
        if (list->n > 0) {
            memcpy(at, list->at, list->n * sizeof(void *));
        }
        list->at = at;
        list->size = size;
    }
    list->at[list->n++] = atom;
}

static const struct alloy_atom *new_atom(struct alloy_load *l, const struct alloy_origin *origin,
                                         const struct alloy_chain_link *chain)
{
    struct alloy_atom *atom = arena_alloc(l->arena, sizeof(*atom));
    if (atom == NULL) {
        alloy_no_memory(l);
        return NULL;
    }
    *atom = (struct alloy_atom){.origin = origin, .chain = chain};
    return atom;
}

const struct alloy_value *alloy_targets_value(struct alloy_load *l, const struct alloy_atoms *atoms)
{
    struct alloy_member *members = arena_array(l->arena, atoms->n + 1, sizeof(*members));
    struct alloy_value *splices = arena_array(l->arena, atoms->n + 1, sizeof(*splices));
    if (members == NULL || splices == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    for (size_t i = 0; i < atoms->n; i++) {
        splices[i].kind = VALUE_SPLICE;
        splices[i].handle = atoms->at[i];
        members[i].value = &splices[i];
    }
    struct config_place nowhere = {0};
    return alloy_made(&l->ev, nowhere, alloy_array(l->arena, members, atoms->n));
}

/* ---- literal targets ------------------------------------------------------------------------- */

/* Returns a number as Go's %v prints it. */
static const char *number_text(struct alloy_load *l, struct alloy_number n)
{
    struct buf text;
    char digits[40];
    double size = fabs(alloy_number_float(n));
    if (n.kind == NUMBER_FLOAT && size > 0 && (size < 1e-4 || size >= 1e21)) {
        int precision = 0;
        do {
            snprintf(digits, sizeof(digits), "%.*e", precision, n.f);
        } while (precision++ < 17 && strtod(digits, NULL) - n.f != 0);
        return alloy_text(l, "%s", digits);
    }
    buf_init(&text, KEY_MAX);
    const char *copy = alloy_number_put(n, &text) ? alloy_text(l, "%s", text.data) : "";
    buf_done(&text);
    return copy;
}

/* Returns the value of a label as a string; NULL after an error. */
static const struct alloy_value *label_text(struct alloy_load *l, struct config_place place,
                                            const struct alloy_value *v)
{
    switch (v->kind) {
    case VALUE_STRING:
        return v;
    case VALUE_NUMBER:
        return alloy_made(&l->ev, place,
                          alloy_string(l->arena, sv_from(number_text(l, v->number))));
    case VALUE_BOOL:
        return alloy_made(&l->ev, place,
                          alloy_string(l->arena, v->truth ? SV("true") : SV("false")));
    default:
        (void)alloy_mismatch(&l->ev, place, "a string, a number or a bool", v);
        return NULL;
    }
}

static const struct alloy_origin *literal(struct alloy_load *l, struct config_place place,
                                          const char *path, const struct alloy_value *object)
{
    struct alloy_origin *o = arena_alloc(l->arena, sizeof(*o));
    struct alloy_member *members = arena_array(l->arena, object->n_members + 1, sizeof(*members));
    bool ok = true;
    if (o == NULL || members == NULL) {
        alloy_no_memory(l);
        return NULL;
    }
    for (size_t i = 0; i < object->n_members; i++) {
        const struct alloy_member *m = &object->members[i];
        l->ev.path = alloy_path(l->arena, path, m->key);
        members[i] = *m;
        members[i].value = label_text(l, m->place.line > 0 ? m->place : place, m->value);
        ok = ok && members[i].value != NULL && members[i].value->kind == VALUE_STRING;
    }
    l->ev.path = path;
    if (!ok) {
        return NULL;
    }
    *o = (struct alloy_origin){.place = place, .path = path};
    o->labels = alloy_object(l->arena, members, object->n_members);
    const struct alloy_value *address =
        o->labels != NULL ? alloy_member(o->labels, SV(LABEL_ADDRESS_NAME)) : NULL;
    if (address == NULL) {
        (void)alloy_fail(&l->ev, place, "missing label \"__address__\"");
        return NULL;
    }
    if (memchr(address->text.p, '/', address->text.n) != NULL) {
        (void)alloy_fail(&l->ev, place, "expected host:port in \"__address__\", got \"%.*s\"",
                         SV_ARG(address->text));
        return NULL;
    }
    return o;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

/* Appends the identity of an atom: its origin and chain, or the labels of a literal target other
 * than
 * `__meta_*`. */
static bool put_identity(const struct alloy_atom *atom, struct buf *key)
{
    const struct alloy_value *labels = atom->origin->labels;
    buf_append(key, &atom->chain, sizeof(void *));
    if (labels == NULL) {
        return buf_append(key, &atom->origin, sizeof(void *));
    }
    for (size_t i = 0; i < labels->n_members; i++) {
        const struct alloy_member *m = &labels->members[i];
        if (!sv_starts_with(m->key, SV("__meta_"))) {
            buf_append(key, m->key.p, m->key.n);
            buf_putc(key, '\0');
            buf_append(key, m->value->text.p, m->value->text.n);
            buf_putc(key, '\0');
        }
    }
    return buf_ok(key);
}

struct collecting {
    struct alloy_load *l;
    struct map *seen;
    struct alloy_atoms *out;
    size_t n_literals;
};

static void add_once(struct collecting *c, const struct alloy_atom *atom)
{
    struct buf key;
    void *old = NULL;
    buf_init(&key, KEY_MAX);
    if (!put_identity(atom, &key)) {
        alloy_no_memory(c->l);
    } else if (map_get(c->seen, (struct sv){key.data, key.len}) == NULL) {
        if (!map_put(c->seen, (struct sv){key.data, key.len}, c->out, &old)) {
            alloy_no_memory(c->l);
        }
        add_atom(c->l, c->out, atom);
    }
    buf_done(&key);
}

static bool add_element(struct collecting *c, struct config_place place, const char *path,
                        const struct alloy_value *v)
{
    struct alloy_load *l = c->l;
    const struct alloy_origin *origin = NULL;
    l->ev.path = path;
    switch (v->kind) {
    case VALUE_SPLICE:
        add_once(c, v->handle);
        return true;
    case VALUE_OBJECT:
        if (++c->n_literals > ALLOY_LITERALS_MAX) {
            (void)alloy_fail(&l->ev, place, "more than %d literal targets", ALLOY_LITERALS_MAX);
            l->ev.exhausted = true;
            return false;
        }
        origin = literal(l, place, path, v);
        break;
    case VALUE_NULL:
        origin = literal(l, place, path, &(struct alloy_value){.kind = VALUE_OBJECT});
        break;
    case VALUE_ARRAY:
        (void)alloy_fail(&l->ev, place,
                         "expected a target, got a list within a list; leave out the brackets, or "
                         "use array.concat(...)");
        return false;
    default:
        (void)alloy_mismatch(&l->ev, place, "a target, which is an object of labels", v);
        return false;
    }
    const struct alloy_atom *atom = origin != NULL ? new_atom(l, origin, NULL) : NULL;
    if (atom != NULL) {
        add_once(c, atom);
    }
    return atom != NULL;
}

/* Adds the origin of targets of a component that is not supported: none of them can be scraped. */
static bool add_left_out(struct alloy_load *l, const struct alloy_value *v, struct alloy_atoms *out)
{
    struct alloy_origin *o = arena_alloc(l->arena, sizeof(*o));
    if (o == NULL) {
        alloy_no_memory(l);
        return false;
    }
    *o = (struct alloy_origin){.node = v->handle, .left_out = true};
    const struct alloy_atom *atom = new_atom(l, o, NULL);
    if (atom != NULL) {
        add_atom(l, out, atom);
    }
    return atom != NULL;
}

/* Adds one element of an array. path: the path of the array. */
static bool add_member(struct collecting *c, struct config_place place, const char *path,
                       const struct alloy_value *array, size_t i)
{
    struct alloy_load *l = c->l;
    const struct alloy_member *m = &array->members[i];
    bool splice = m->value->kind == VALUE_SPLICE;
    if (m->value->opaque) {
        return add_left_out(l, m->value, c->out);
    }
    return add_element(c, m->place.line > 0 ? m->place : place,
                       splice ? path : alloy_text(l, "%s[%zu]", path, i), m->value);
}

/* Adds the elements of a list that stands where a target is expected. Alloy takes them, too. */
static bool add_inner_list(struct collecting *c, struct config_place place, const char *path,
                           const struct alloy_value *list)
{
    bool ok = true;
    config_tell(c->l->warnings, place, path,
                "is a list within the list of targets: its targets are used as if the inner "
                "brackets were not there");
    for (size_t i = 0; ok && i < list->n_members && !c->l->ev.exhausted; i++) {
        ok = add_member(c, place, path, list, i);
    }
    return ok;
}

/* Adds the elements of an array; false after an error in any. */
static bool add_elements(struct collecting *c, struct config_place place, const char *path,
                         const struct alloy_value *v)
{
    struct alloy_load *l = c->l;
    const struct alloy_value *array;
    bool ok = alloy_as_array(&l->ev, place, v, &array);
    for (size_t i = 0; ok && i < array->n_members && !l->ev.exhausted; i++) {
        const struct alloy_member *m = &array->members[i];
        if (m->value->kind == VALUE_ARRAY && !m->value->opaque) {
            ok = add_inner_list(c, m->place.line > 0 ? m->place : place,
                                alloy_text(l, "%s[%zu]", path, i), m->value);
        } else {
            ok = add_member(c, place, path, array, i);
        }
    }
    return ok;
}

bool alloy_read_targets(struct alloy_load *l, struct config_place place, const char *path,
                        const struct alloy_value *v, struct alloy_atoms *ret_atoms)
{
    struct collecting c = {.l = l, .seen = map_new(), .out = ret_atoms};
    bool ok = true;
    *ret_atoms = (struct alloy_atoms){0};
    l->ev.path = path;
    if (c.seen == NULL) {
        alloy_no_memory(l);
        return false;
    }
    if (v->opaque) {
        ok = add_left_out(l, v, ret_atoms);
    } else if (v->kind == VALUE_OBJECT || v->kind == VALUE_HANDLE) {
        (void)alloy_mismatch(&l->ev, place, "a list of targets", v);
        ok = false;
    } else {
        ok = add_elements(&c, place, path, v);
    }
    map_free(c.seen, NULL);
    return ok;
}

/* ---- sources --------------------------------------------------------------------------------- */

#define ROWS(table) .attrs = (table), .n_attrs = sizeof(table) / sizeof((table)[0])
#define BLOCKS(table) .blocks = (table), .n_blocks = sizeof(table) / sizeof((table)[0])

static const struct alloy_value *export_origin(struct alloy_load *l, struct alloy_origin *o)
{
    struct alloy_atoms atoms = {0};
    const struct alloy_atom *atom = new_atom(l, o, NULL);
    if (atom == NULL) {
        return &alloy_unknown;
    }
    add_atom(l, &atoms, atom);
    return alloy_export(l, "targets", alloy_targets_value(l, &atoms));
}

/* Reads a block whose rows are those of a source in YAML. */
static const struct alloy_value *read_source(struct alloy_load *l, struct alloy_node *n,
                                             const struct alloy_schema *schema, const char *key)
{
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    struct alloy_origin *o = arena_alloc(l->arena, sizeof(*o));
    struct yaml_node *source = tree_mapping(&l->tree, n->stmt->place, n->path);
    if (o == NULL || source == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    alloy_read_block(&r, schema, n->stmt, n->path, source, &given);
    *o = (struct alloy_origin){.node = n, .key = key, .source = source};
    n->data = source;
    return export_origin(l, o);
}

const struct alloy_value *alloy_discovery_left_out(struct alloy_load *l, struct alloy_node *n)
{
    struct alloy_origin *o = arena_alloc(l->arena, sizeof(*o));
    if (o == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    alloy_nodes_add(l, &l->left_out, n);
    *o = (struct alloy_origin){.node = n, .left_out = true};
    return export_origin(l, o);
}

static const struct alloy_attr namespaces_attrs[] = {
    {.name = "own_namespace", .type = ATTR_BOOL, .key = "own_namespace"},
    {.name = "names", .type = ATTR_STRINGS, .key = "names"},
};
static const struct alloy_schema namespaces = {ROWS(namespaces_attrs)};
static const struct alloy_attr selector_attrs[] = {
    {.name = "role", .type = ATTR_STRING, .key = "role", .required = true, .not_null = true},
    {.name = "label", .type = ATTR_STRING, .key = "label"},
    {.name = "field", .type = ATTR_STRING, .key = "field"},
};
static const struct alloy_schema selector = {ROWS(selector_attrs)};
static const struct alloy_attr metadata_attrs[] = {
    {.name = "node", .type = ATTR_BOOL, .key = "node"},
    {.name = "namespace", .type = ATTR_BOOL, .key = "namespace"},
};
static const struct alloy_schema metadata = {ROWS(metadata_attrs)};
static const struct alloy_attr kubernetes_attrs[] = {
    {.name = "role", .type = ATTR_STRING, .key = "role", .required = true, .not_null = true},
    {.name = "api_server", .type = ATTR_STRING, .key = "api_server"},
    {.name = "kubeconfig_file", .type = ATTR_STRING, .key = "kubeconfig_file", .file_name = true},
};
static const struct alloy_inner kubernetes_blocks[] = {
    {.name = "namespaces", .schema = &namespaces, .key = "namespaces"},
    {.name = "selectors", .schema = &selector, .key = "selectors", .repeats = true},
    {.name = "attach_metadata", .schema = &metadata, .key = "attach_metadata"},
};
static const struct alloy_schema kubernetes = {ROWS(kubernetes_attrs), BLOCKS(kubernetes_blocks),
                                               .base = &alloy_http_client};

/* Removes keys of HTTP clients, which have no effect without api_server. */
static void drop_http(struct alloy_load *l, const struct alloy_node *n, struct yaml_node *source)
{
    static const char *const keys[] = {"role",       "api_server", "kubeconfig_file",
                                       "namespaces", "selectors",  "attach_metadata"};
    size_t i = 0;
    while (i < source->n_items) {
        struct sv key = source->items[i].key->text;
        if (sv_in(key, keys, sizeof(keys) / sizeof(keys[0]))) {
            i++;
            continue;
        }
        struct config_place place = {source->items[i].value->line, source->items[i].value->column,
                                     source->items[i].value->file};
        config_tell(l->notes, place, n->path, "\"%.*s\" has no effect without api_server; left out",
                    SV_ARG(key));
        tree_remove(source, key.p);
    }
}

const struct alloy_value *alloy_discovery_kubernetes(struct alloy_load *l, struct alloy_node *n)
{
    const struct alloy_value *exports = read_source(l, n, &kubernetes, "kubernetes_sd_configs");
    if (n->data != NULL && yaml_get(n->data, "api_server") == NULL) {
        drop_http(l, n, n->data);
    }
    return exports;
}

static const struct alloy_attr file_attrs[] = {
    {.name = "files", .type = ATTR_STRINGS, .key = "files", .required = true, .file_name = true},
    {.name = "refresh_interval", .type = ATTR_DURATION, .key = "refresh_interval"},
};
static const struct alloy_schema file_sd = {ROWS(file_attrs)};

const struct alloy_value *alloy_discovery_file(struct alloy_load *l, struct alloy_node *n)
{
    return read_source(l, n, &file_sd, "file_sd_configs");
}

static const struct alloy_attr http_attrs[] = {
    {.name = "url", .type = ATTR_STRING, .key = "url", .required = true, .not_null = true},
    {.name = "refresh_interval", .type = ATTR_DURATION, .key = "refresh_interval"},
};
static const struct alloy_schema http_sd = {ROWS(http_attrs), .base = &alloy_http_client};

const struct alloy_value *alloy_discovery_http(struct alloy_load *l, struct alloy_node *n)
{
    return read_source(l, n, &http_sd, "http_sd_configs");
}

/* ---- discovery.relabel ----------------------------------------------------------------------- */

static const struct alloy_attr rule_attrs[] = {
    {.name = "source_labels", .type = ATTR_STRINGS, .key = "source_labels"},
    {.name = "separator", .type = ATTR_TEXT, .key = "separator"},
    {.name = "regex", .type = ATTR_TEXT, .key = "regex", .not_null = true},
    {.name = "modulus", .type = ATTR_INT, .key = "modulus"},
    {.name = "target_label", .type = ATTR_TEXT, .key = "target_label"},
    {.name = "replacement", .type = ATTR_TEXT, .key = "replacement"},
    {.name = "action", .type = ATTR_STRING, .key = "action", .not_null = true},
};
static const struct alloy_schema rule = {ROWS(rule_attrs)};

const struct alloy_schema *alloy_rule_schema(void)
{
    return &rule;
}

static const struct alloy_attr relabel_attrs[] = {
    {.name = "targets", .type = ATTR_VALUE, .required = true},
};
static const struct alloy_inner relabel_blocks[] = {
    {.name = "rule", .schema = &rule, .key = "rule", .repeats = true},
};
static const struct alloy_schema relabel = {ROWS(relabel_attrs), BLOCKS(relabel_blocks)};

/* The chains that this component has made, so that targets with equal chains share one object. */
struct chains {
    struct alloy_chain_link *at;
    size_t n;
};

static const struct alloy_chain_link *chain_with(struct chains *made,
                                                 const struct alloy_chain_link *before,
                                                 const struct alloy_node *n,
                                                 const struct yaml_node *rules)
{
    for (size_t i = made->n; i > 0; i--) {
        if (made->at[i - 1].before == before) {
            return &made->at[i - 1];
        }
    }
    made->at[made->n] = (struct alloy_chain_link){.before = before, .relabel = n, .rules = rules};
    return &made->at[made->n++];
}

const struct alloy_value *alloy_discovery_relabel(struct alloy_load *l, struct alloy_node *n)
{
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    struct yaml_node *out = tree_mapping(&l->tree, n->stmt->place, n->path);
    struct alloy_atoms atoms = {0};
    struct alloy_atoms passed = {0};
    const struct alloy_stmt *stmt;
    alloy_read_block(&r, &relabel, n->stmt, n->path, out, &given);
    n->data = out;
    const struct alloy_value *v = alloy_given(&given, "targets", &stmt);
    if (out == NULL || v == NULL ||
        !alloy_read_targets(l, stmt->value->place, alloy_path(l->arena, n->path, SV("targets")), v,
                            &atoms)) {
        return &alloy_unknown;
    }
    struct chains made = {.at = arena_array(l->arena, atoms.n + 1, sizeof(*made.at))};
    if (made.at == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    for (size_t i = 0; i < atoms.n; i++) {
        const struct alloy_atom *atom =
            new_atom(l, atoms.at[i]->origin,
                     chain_with(&made, atoms.at[i]->chain, n, yaml_get(out, "rule")));
        if (atom == NULL) {
            return &alloy_unknown;
        }
        add_atom(l, &passed, atom);
    }
    return alloy_export(l, "output", alloy_targets_value(l, &passed));
}

/* Blocks that are not components (declare, argument, export, import, foreach), and the instances of
 * declared components. */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloy/graph.h"
#include "base/files.h"
#include "config/texts.h"

static const struct alloy_value *fail(struct alloy_load *l, struct config_place place,
                                      const char *path, const char *message)
{
    l->ev.path = path;
    return alloy_fail(&l->ev, place, "%s", message);
}

static bool is(const struct alloy_stmt *s, const char *name)
{
    return s->value == NULL && sv_eq_str(s->name, name);
}

bool alloy_is_config_block(struct sv name)
{
    static const char *const names[] = {"declare",       "argument",    "export",    "import.file",
                                        "import.string", "import.http", "import.git"};
    return sv_in(name, names, sizeof(names) / sizeof(names[0]));
}

/* ---- declare --------------------------------------------------------------------------------- */

static void add_declare(struct alloy_load *l, struct alloy_module *m, struct alloy_module *scope,
                        const char *name, const struct alloy_stmt *s)
{
    struct alloy_declare *d = arena_alloc(l->arena, sizeof(*d));
    if (d == NULL) {
        alloy_no_memory(l);
        return;
    }
    *d = (struct alloy_declare){
        .next = m->declares, .name = sv_from(name), .stmt = s, .scope = scope};
    m->declares = d;
    const char *dot = strchr(name, '.');
    const char *family =
        alloy_text(l, "%.*s.", dot != NULL ? (int)(dot - name) : (int)d->name.n, name);
    void *old;
    if (!map_put(m->declared, d->name, d, &old) ||
        !map_put(m->declared, sv_from(family), d, &old)) {
        alloy_no_memory(l);
    }
}

void alloy_collect_declare(struct alloy_load *l, struct alloy_module *m, const struct alloy_stmt *s)
{
    bool module_only = is(s, "argument") || is(s, "export");
    const char *path = alloy_text(l, "%s%.*s", m->prefix, SV_ARG(s->name));
    if (module_only && m->made_from == NULL) {
        (void)fail(l, s->place, path, "is allowed in a declare only");
    }
    if (!is(s, "declare")) {
        return;
    }
    const char *name = alloy_text(l, "%.*s", SV_ARG(s->label));
    if (s->label.n == 0 || strcmp(name, "declare") == 0) {
        (void)fail(l, s->place, path,
                   s->label.n == 0 ? "needs a label" : "cannot have the label \"declare\"");
    } else if (map_get(m->declared, sv_from(name)) != NULL) {
        (void)fail(l, s->place, path, alloy_text(l, "\"%s\" is declared twice", name));
    } else {
        add_declare(l, m, m, name, s);
    }
}

static bool is_import(const struct alloy_stmt *s)
{
    return s->value == NULL && sv_starts_with(s->name, SV("import."));
}

/* ---- import ---------------------------------------------------------------------------------- */

/* Returns true if an import that this module came from is importing this file. */
static bool is_importing(const struct alloy_module *m, const char *file)
{
    while (m != NULL && (m->file == NULL || strcmp(m->file, file) != 0)) {
        m = m->importer;
    }
    return m != NULL;
}

/* Collects the declares of a text. */
static void collect_imported(struct alloy_load *l, struct alloy_module *inside, const char *path,
                             const struct alloy_body *body)
{
    for (const struct alloy_stmt *t = body->first; t != NULL; t = t->next) {
        if (is(t, "declare")) {
            alloy_collect_declare(l, inside, t);
        } else if (!is_import(t)) {
            (void)fail(l, t->place, path, "only declare and import are allowed in an import");
        }
    }
}

/* Reads the declarations of the texts, then their imports. */
static void collect_all_imported(struct alloy_load *l, struct alloy_module *inside,
                                 const char *path, const struct alloy_body *bodies, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        collect_imported(l, inside, path, &bodies[i]);
    }
    struct alloy_module *before = alloy_enter(l, inside);
    for (size_t i = 0; i < n; i++) {
        for (const struct alloy_stmt *t = bodies[i].first; t != NULL; t = t->next) {
            alloy_collect_import(l, inside, t);
        }
    }
    alloy_enter(l, before);
}

/* Makes the namespace of an import known, even if it has no declares. */
static void add_namespace(struct alloy_load *l, struct alloy_module *m, struct alloy_module *scope,
                          struct sv name)
{
    struct alloy_declare *d = arena_alloc(l->arena, sizeof(*d));
    void *old;
    if (d == NULL ||
        !map_put(m->declared, sv_from(alloy_text(l, "%.*s.", SV_ARG(name))), d, &old)) {
        alloy_no_memory(l);
        return;
    }
    *d = (struct alloy_declare){.name = name, .scope = scope};
}

/* Adds the declares of texts, which form one scope, to the namespace of an import. The texts' own
 * imports are visible in that scope only. file: the file or directory that holds the texts; NULL:
 * none. */
static void import_texts(struct alloy_load *l, struct alloy_module *m, const struct alloy_stmt *s,
                         const char *path, const struct config_texts *texts, const char *file)
{
    if (m->depth == ALLOY_MODULES_DEEP_MAX) {
        (void)fail(l, s->place, path, "imports nested more than 16 deep");
        return;
    }
    struct alloy_module *inside = alloy_module_new(l, NULL, m->prefix, s->place);
    struct alloy_body *bodies = arena_array(l->arena, texts->n + 1, sizeof(*bodies));
    if (inside == NULL || bodies == NULL) {
        alloy_no_memory(l);
        return;
    }
    inside->directory = texts->directory;
    inside->depth = m->depth + 1;
    inside->importer = m;
    inside->file = file;
    bool ok = true;
    for (size_t i = 0; i < texts->n; i++) {
        ok = alloy_parse(texts->at[i].name, texts->at[i].text, l->arena, l->errors, &bodies[i]) &&
             ok;
    }
    if (ok) {
        collect_all_imported(l, inside, path, bodies, texts->n);
    }
    add_namespace(l, m, inside, s->label);
    for (const struct alloy_declare *d = inside->declares; d != NULL; d = d->next) {
        if (d->scope == inside) {
            add_declare(l, m, inside, alloy_text(l, "%.*s.%.*s", SV_ARG(s->label), SV_ARG(d->name)),
                        d->stmt);
        }
    }
}

static const char *one_attribute(struct alloy_load *l, const struct alloy_stmt *s, const char *path,
                                 const char *name, const struct alloy_schema *schema,
                                 struct config_place *ret_place)
{
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    const struct alloy_stmt *stmt;
    const struct alloy_value *text;
    alloy_read_block(&r, schema, s, path, tree_mapping(&l->tree, s->place, path), &given);
    const struct alloy_value *v = alloy_given(&given, name, &stmt);
    if (v == NULL) {
        return NULL;
    }
    *ret_place = stmt->value->place;
    l->ev.path = alloy_path(l->arena, path, sv_from(name));
    if (v->opaque) {
        (void)alloy_mismatch(&l->ev, stmt->value->place, "a string", v);
        return NULL;
    }
    if (!alloy_as_string(&l->ev, stmt->value->place, v, &text)) {
        return NULL;
    }
    return arena_strndup(l->arena, text->text.p, text->text.n);
}

static const struct alloy_attr file_attrs[] = {
    {.name = "filename", .type = ATTR_STRING, .required = true},
    {.name = "detector", .type = ATTR_STRING, .ignored = true},
    {.name = "poll_frequency", .type = ATTR_DURATION, .ignored = true},
};
static const struct alloy_schema file_schema = {
    .attrs = file_attrs, .n_attrs = sizeof(file_attrs) / sizeof(file_attrs[0])};
static const struct alloy_attr string_attrs[] = {
    {.name = "content", .type = ATTR_STRING, .required = true},
};
static const struct alloy_schema string_schema = {.attrs = string_attrs, .n_attrs = 1};

static void import_files(struct alloy_load *l, struct alloy_module *m, const struct alloy_stmt *s,
                         const char *path)
{
    struct config_place place = s->place;
    struct err err = ERR_INIT;
    const char *name = one_attribute(l, s, path, "filename", &file_schema, &place);
    struct config_texts sources = {0};
    if (name == NULL) {
        return;
    }
    if (!config_texts_read(name, ALLOY_SUFFIX, l->arena, &sources, &err)) {
        (void)fail(l, place, path, err.msg);
        return;
    }
    char resolved[PATH_MAX];
    const char *file = alloy_text(l, "%s", realpath(name, resolved) != NULL ? resolved : name);
    if (l->on_import != NULL) {
        l->on_import(l->import_arg, file);
    }
    if (is_importing(m, file)) {
        (void)fail(l, place, path, alloy_text(l, "imports itself: %s", file));
    } else {
        import_texts(l, m, s, path, &sources, file);
    }
}

void alloy_collect_import(struct alloy_load *l, struct alloy_module *m, const struct alloy_stmt *s)
{
    if (!is_import(s)) {
        return;
    }
    const char *path = alloy_text(l, "%s%.*s.%.*s", m->prefix, SV_ARG(s->name), SV_ARG(s->label));
    struct config_place place = s->place;
    if (s->label.n == 0) {
        (void)fail(l, s->place, path, "needs a label");
    } else if (is(s, "import.file")) {
        import_files(l, m, s, path);
    } else if (is(s, "import.string")) {
        const char *text = one_attribute(l, s, path, "content", &string_schema, &place);
        if (text != NULL) {
            const struct config_text source = {place.file, sv_from(text)};
            const struct config_texts one = {.at = &source, .n = 1, .directory = m->directory};
            import_texts(l, m, s, path, &one, NULL);
        }
    } else if (is(s, "import.http") || is(s, "import.git")) {
        config_tell(l->warnings, s->place, path,
                    "is not supported: components that use it are left out");
        /* This entry makes names in the namespace count as foreign. */
        add_declare(l, m, NULL, alloy_text(l, "%.*s", SV_ARG(s->label)), NULL);
    } else {
        (void)fail(l, s->place, path, "no such import");
    }
}

/* ---- instances ------------------------------------------------------------------------------- */

static const struct alloy_attr argument_attrs[] = {
    {.name = "optional", .type = ATTR_BOOL},
    {.name = "default", .type = ATTR_VALUE},
    {.name = "comment", .type = ATTR_STRING},
};
static const struct alloy_schema argument_schema = {
    .attrs = argument_attrs, .n_attrs = sizeof(argument_attrs) / sizeof(argument_attrs[0])};
static const struct alloy_attr export_attrs[] = {
    {.name = "value", .type = ATTR_VALUE, .required = true},
};
static const struct alloy_schema export_schema = {.attrs = export_attrs, .n_attrs = 1};

static size_t count_blocks(const struct alloy_body *body, const char *name)
{
    size_t n = 0;
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        n += is(s, name);
    }
    return n;
}

/* Returns the attributes of an instance by name; NULL if out of memory. The caller frees the
 * map. */
static struct map *attributes_of(struct alloy_load *l, const struct alloy_node *n)
{
    struct map *all = map_new();
    void *old;
    for (const struct alloy_stmt *s = n->stmt->body.first; all != NULL && s != NULL; s = s->next) {
        const struct alloy_stmt *before = map_get(all, s->name);
        if (s->value != NULL && before != NULL) {
            (void)fail(l, s->place, alloy_path(l->arena, n->path, s->name),
                       alloy_text(l, "given twice, first at %d:%d", before->place.line,
                                  before->place.column));
        } else if (s->value != NULL &&
                   /* the map's values are only read */
                   !map_put(all, s->name, (void *)(uintptr_t)s, &old)) {
            return map_free(all, NULL);
        }
    }
    return all;
}

/* Returns the value of an argument that the instance does not set: its default; NULL if the
 * argument is required. */
static const struct alloy_value *default_of(struct alloy_load *l, const struct alloy_node *n,
                                            const struct alloy_stmt *argument)
{
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, NULL);
    const struct alloy_stmt *stmt;
    bool optional = false;
    const char *path = alloy_text(l, "%s.argument.%.*s", n->path, SV_ARG(argument->label));
    alloy_read_block(&r, &argument_schema, argument, path,
                     tree_mapping(&l->tree, argument->place, path), &given);
    const struct alloy_value *v = alloy_given(&given, "optional", &stmt);
    if (v != NULL) {
        (void)alloy_as_bool(&l->ev, stmt->value->place, v, &optional);
    }
    v = alloy_given(&given, "default", &stmt);
    if (!optional) {
        return NULL;
    }
    return v != NULL ? v : &alloy_null;
}

/* Returns the value of an argument. given: the attribute of the instance, or NULL. */
static const struct alloy_value *value_of(struct alloy_load *l, const struct alloy_node *n,
                                          struct alloy_module *inside,
                                          const struct alloy_stmt *argument,
                                          const struct alloy_stmt *given)
{
    if (given != NULL) {
        l->ev.path = alloy_path(l->arena, n->path, argument->label);
        return alloy_eval(&l->ev, given->value);
    }
    struct alloy_module *before = alloy_enter(l, inside);
    const struct alloy_value *v = default_of(l, n, argument);
    alloy_enter(l, before);
    if (v != NULL) {
        return v;
    }
    l->ev.path = n->path;
    return alloy_fail(&l->ev, n->stmt->place, "missing required argument \"%.*s\"",
                      SV_ARG(argument->label));
}

/* Adds an argument with its value. If several have the same name, the first one counts. */
static void add_argument(struct alloy_load *l, struct alloy_module *inside, struct sv name,
                         const struct alloy_value *v)
{
    struct alloy_member *argument = &inside->arguments[inside->n_arguments];
    void *old;
    if (alloy_argument(inside, name) != NULL) {
        return;
    }
    *argument = (struct alloy_member){.key = name, .value = v};
    inside->n_arguments++;
    if (!map_put(inside->by_argument, name, argument, &old)) {
        alloy_no_memory(l);
    }
}

/* Evaluates the arguments: attributes of the instance in the scope of the instance, defaults in
 * that of the module. */
static void read_arguments(struct alloy_load *l, struct alloy_node *n, struct alloy_module *inside)
{
    const struct alloy_body *body = &n->declare->stmt->body;
    size_t size = count_blocks(body, "argument");
    inside->arguments = arena_array(l->arena, size + 1, sizeof(*inside->arguments));
    struct map *attributes = attributes_of(l, n);
    if (inside->arguments == NULL || attributes == NULL) {
        alloy_no_memory(l);
        map_free(attributes, NULL);
        return;
    }
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        if (!is(s, "argument")) {
            continue;
        }
        add_argument(l, inside, s->label, value_of(l, n, inside, s, map_get(attributes, s->label)));
    }
    map_free(attributes, NULL);
}

static void no_such_argument(struct alloy_load *l, const struct alloy_stmt *s, const char *path,
                             const struct alloy_module *inside)
{
    const char *names[ALLOY_ROWS_MAX];
    size_t n = 0;
    for (; n < inside->n_arguments && n < ALLOY_ROWS_MAX; n++) {
        names[n] = alloy_text(l, "%.*s", SV_ARG(inside->arguments[n].key));
    }
    const char *close = suggest(s->name, names, n);
    (void)fail(l, s->place, path,
               close != NULL
                   ? alloy_text(l, "the module has no such argument; did you mean \"%s\"?", close)
                   : "the module has no such argument");
}

static void check_given(struct alloy_load *l, const struct alloy_node *n,
                        const struct alloy_module *inside)
{
    for (const struct alloy_stmt *s = n->stmt->body.first; s != NULL; s = s->next) {
        const char *path = alloy_path(l->arena, n->path, s->name);
        if (s->value == NULL) {
            (void)fail(l, s->place, path, "an instance of a module has no blocks");
        } else if (alloy_argument(inside, s->name) == NULL) {
            no_such_argument(l, s, path, inside);
        }
    }
}

static const struct alloy_value *read_exports(struct alloy_load *l, const struct alloy_node *n,
                                              const struct alloy_body *body)
{
    size_t size = count_blocks(body, "export");
    struct alloy_member *members = arena_array(l->arena, size + 1, sizeof(*members));
    size_t n_members = 0;
    if (members == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        struct alloy_given given;
        struct alloy_reading r = alloy_reading(l, NULL);
        const struct alloy_stmt *stmt;
        if (!is(s, "export")) {
            continue;
        }
        const char *path = alloy_text(l, "%s.export.%.*s", n->path, SV_ARG(s->label));
        alloy_read_block(&r, &export_schema, s, path, tree_mapping(&l->tree, s->place, path),
                         &given);
        const struct alloy_value *v = alloy_given(&given, "value", &stmt);
        members[n_members++] = (struct alloy_member){
            .key = s->label, .place = s->place, .value = v != NULL ? v : &alloy_unknown};
    }
    return alloy_made(&l->ev, n->stmt->place, alloy_object(l->arena, members, n_members));
}

/* Returns true if the module is an instance of this declare, at any depth. */
static bool is_within(const struct alloy_module *m, const struct alloy_declare *d)
{
    while (m != NULL && (m->made_from == NULL || m->made_from->stmt != d->stmt)) {
        m = m->parent;
    }
    return m != NULL;
}

static const char *place_file(const struct alloy_load *l, struct config_place place)
{
    return place.file != NULL ? place.file : l->file;
}

const struct alloy_value *alloy_instance(struct alloy_load *l, struct alloy_node *n)
{
    const struct alloy_declare *d = n->declare;
    const char *prefix = n->stmt->label.n > 0
                             ? alloy_text(l, "%s%.*s/", n->module->prefix, SV_ARG(n->stmt->label))
                             : n->module->prefix;
    if (is_within(n->module, d)) {
        return fail(l, n->stmt->place, n->path, "a module that contains itself");
    }
    if (n->module->depth == ALLOY_MODULES_DEEP_MAX) {
        return fail(l, n->stmt->place, n->path, "modules nested more than 16 deep");
    }
    struct alloy_module *m = alloy_module_new(l, n->module, prefix, n->stmt->place);
    if (m == NULL) {
        return &alloy_unknown;
    }
    m->by_argument = map_new();
    if (m->by_argument == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    m->outer = d->scope;
    m->suffix = alloy_text(l, " (in %s, %s:%d)%s", n->name, place_file(l, n->stmt->place),
                           n->stmt->place.line, n->module->suffix != NULL ? n->module->suffix : "");
    m->made_from = d;
    m->directory = d->scope->directory;
    n->inside = m;
    read_arguments(l, n, m);
    check_given(l, n, m);
    struct alloy_module *before = alloy_enter(l, m);
    alloy_module_collect(l, m, &d->stmt->body, 1);
    alloy_module_run(l, m);
    const struct alloy_value *exports = read_exports(l, n, &d->stmt->body);
    alloy_enter(l, before);
    return exports;
}

/* ---- foreach --------------------------------------------------------------------------------- */

static const struct alloy_attr foreach_attrs[] = {
    {.name = "collection", .type = ATTR_VALUE, .required = true},
    {.name = "var", .type = ATTR_STRING, .required = true},
    {.name = "id", .type = ATTR_STRING, .ignored = true},
    {.name = "enable_metrics", .type = ATTR_BOOL, .ignored = true},
    {.name = "hash_string_id", .type = ATTR_BOOL, .ignored = true},
};

static bool take_template(void *arg, const struct alloy_stmt *s, const char *path)
{
    (void)path;
    const struct alloy_stmt **ret_template = arg;
    if (!is(s, "template")) {
        return false;
    }
    *ret_template = s;
    return true;
}

static const char *const template_names[] = {"template", NULL};
static const struct alloy_schema foreach_schema = {
    .attrs = foreach_attrs,
    .n_attrs = sizeof(foreach_attrs) / sizeof(foreach_attrs[0]),
    .other = take_template,
    .other_names = template_names,
};

static struct alloy_module *run_template(struct alloy_load *l, struct alloy_node *n,
                                         const struct alloy_stmt *template, struct sv variable,
                                         const struct alloy_value *element, size_t index)
{
    const char *prefix =
        alloy_text(l, "%s%.*s/%zu/", n->module->prefix, SV_ARG(n->stmt->label), index + 1);
    struct alloy_module *m = alloy_module_new(l, n->module, prefix, n->stmt->place);
    if (m == NULL) {
        return NULL;
    }
    m->outer = n->module;
    m->enclosing = n->module;
    m->variable = variable;
    m->variable_value = element;
    struct alloy_module *before = alloy_enter(l, m);
    alloy_module_collect(l, m, &template->body, 1);
    alloy_module_run(l, m);
    alloy_enter(l, before);
    return m;
}

const struct alloy_value *alloy_foreach(struct alloy_load *l, struct alloy_node *n)
{
    const struct alloy_stmt *template = NULL;
    struct alloy_given given;
    struct alloy_reading r = alloy_reading(l, &template);
    const struct alloy_stmt *stmt = n->stmt;
    const struct alloy_stmt *var_stmt = n->stmt;
    const struct alloy_value *array;
    const struct alloy_value *name;
    alloy_read_block(&r, &foreach_schema, n->stmt, n->path,
                     tree_mapping(&l->tree, n->stmt->place, n->path), &given);
    const struct alloy_value *collection = alloy_given(&given, "collection", &stmt);
    const struct alloy_value *var = alloy_given(&given, "var", &var_stmt);
    if (template == NULL) {
        return fail(l, n->stmt->place, n->path, "missing required block \"template\"");
    }
    if (n->module->depth == ALLOY_MODULES_DEEP_MAX) {
        return fail(l, n->stmt->place, n->path, "modules nested more than 16 deep");
    }
    if (collection == NULL || var == NULL) {
        return &alloy_unknown;
    }
    l->ev.path = alloy_path(l->arena, n->path, SV("var"));
    bool ok = alloy_as_string(&l->ev, var_stmt->value->place, var, &name);
    l->ev.path = alloy_path(l->arena, n->path, SV("collection"));
    if (!alloy_as_array(&l->ev, stmt->value->place, collection, &array) || !ok) {
        return &alloy_unknown;
    }
    if (array->open) {
        return fail(l, n->stmt->place, n->path,
                    "foreach over discovered targets is not supported: the targets change "
                    "while profpull runs");
    }
    struct alloy_module **last = &n->inside;
    for (size_t i = 0; i < array->n_members && !l->ev.exhausted; i++) {
        *last = run_template(l, n, template, name->text, array->members[i].value, i);
        last = *last != NULL ? &(*last)->next : last;
    }
    return NULL;
}

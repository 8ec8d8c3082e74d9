#include "alloy/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ID_MAX 512
#define SUGGESTIONS_MAX 1000

static const struct alloy_value *resolve(void *arg, const struct alloy_chain *chain,
                                         size_t *ret_used);

/* ---- small things ---------------------------------------------------------------------------- */

void alloy_no_memory(struct alloy_load *l)
{
    if (!l->ev.exhausted) {
        config_errors_add(l->errors, 0, 0, "", "the configuration needs too much memory");
    }
    l->ev.exhausted = true;
}

const char *alloy_text(struct alloy_load *l, const char *fmt, ...)
{
    char text[2 * ID_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    const char *copy = arena_strdup(l->arena, text);
    if (copy == NULL) {
        alloy_no_memory(l);
        return "";
    }
    return copy;
}

void alloy_nodes_add(struct alloy_load *l, struct alloy_nodes *list, struct alloy_node *n)
{
    if (list->n == list->size) {
        size_t size = list->size == 0 ? 16 : 2 * list->size;
        struct alloy_node **at = arena_array(l->arena, size, sizeof(struct alloy_node *));
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
    list->at[list->n++] = n;
}

const struct alloy_value *alloy_export(struct alloy_load *l, const char *name,
                                       const struct alloy_value *v)
{
    struct alloy_member *member = arena_array(l->arena, 1, sizeof(*member));
    if (member == NULL || v == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    *member = (struct alloy_member){.key = sv_from(name), .value = v};
    const struct alloy_value *object = alloy_object(l->arena, member, 1);
    if (object == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    return object;
}

struct alloy_reading alloy_reading(struct alloy_load *l, void *arg)
{
    return (struct alloy_reading){.ev = &l->ev, .tree = &l->tree, .notes = l->notes, .arg = arg};
}

/* ---- modules --------------------------------------------------------------------------------- */

struct alloy_module *alloy_module_new(struct alloy_load *l, struct alloy_module *parent,
                                      const char *prefix, struct config_place made_at)
{
    struct alloy_module *m = arena_alloc(l->arena, sizeof(*m));
    if (l->n_modules == ALLOY_NODES_MAX && !l->ev.exhausted) {
        (void)alloy_fail(&l->ev, made_at, "the configuration has more than %d modules",
                         ALLOY_NODES_MAX);
        l->ev.exhausted = true;
    }
    if (m == NULL || l->n_modules == ALLOY_NODES_MAX) {
        alloy_no_memory(l);
        return NULL;
    }
    l->modules[l->n_modules++] = m;
    m->by_id = map_new();
    m->declared = map_new();
    if (m->by_id == NULL || m->declared == NULL) {
        alloy_no_memory(l);
        return NULL;
    }
    m->parent = parent;
    m->prefix = prefix;
    m->made_at = made_at;
    m->last = &m->first;
    m->directory = parent != NULL ? parent->directory : "";
    m->depth = parent != NULL ? parent->depth + 1 : 0;
    return m;
}

void alloy_graph_done(struct alloy_load *l)
{
    for (size_t i = 0; i < l->n_modules; i++) {
        map_free(l->modules[i]->by_id, NULL);
        map_free(l->modules[i]->declared, NULL);
        map_free(l->modules[i]->by_argument, NULL);
    }
}

const struct alloy_member *alloy_argument(const struct alloy_module *m, struct sv name)
{
    return map_get(m->by_argument, name);
}

struct alloy_module *alloy_enter(struct alloy_load *l, struct alloy_module *m)
{
    struct alloy_module *before = l->module;
    l->module = m;
    l->ev.arg = l;
    l->ev.module_path = m != NULL ? m->directory : NULL;
    l->ev.suffix = m != NULL ? m->suffix : NULL;
    return before;
}

static const struct alloy_declare *find_declare(const struct alloy_module *m, struct sv name)
{
    const struct alloy_declare *d = NULL;
    for (; m != NULL && d == NULL; m = m->outer) {
        d = map_get(m->declared, name);
    }
    return d;
}

/* Returns true if the first word of a name belongs to a declare or an import. */
static bool is_declared_family(const struct alloy_module *m, struct sv first)
{
    char family[ID_MAX];
    int n = snprintf(family, sizeof(family), "%.*s.", SV_ARG(first));
    return n > 0 && (size_t)n < sizeof(family) &&
           find_declare(m, (struct sv){family, (size_t)n}) != NULL;
}

static struct sv first_word(struct sv name)
{
    struct sv head;
    struct sv tail;
    return sv_cut(name, '.', &head, &tail) ? head : name;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void refuse(struct alloy_load *l, const struct alloy_stmt *s, const char *path,
                   const char *message)
{
    l->ev.path = path;
    (void)alloy_fail(&l->ev, s->place, "%s", message);
}

static void unknown_component(struct alloy_load *l, const struct alloy_stmt *s, const char *path)
{
    const char *close = l->names->suggest(s->name);
    refuse(l, s, path,
           close != NULL ? alloy_text(l, "no such component; did you mean \"%s\"?", close)
                         : "no such component");
}

static const char *id_of(struct alloy_load *l, const struct alloy_stmt *s)
{
    return s->label.n > 0 ? alloy_text(l, "%.*s.%.*s", SV_ARG(s->name), SV_ARG(s->label))
                          : alloy_text(l, "%.*s", SV_ARG(s->name));
}

/* Adds a node to its module; NULL after an error. */
static struct alloy_node *new_node(struct alloy_load *l, struct alloy_module *m,
                                   const struct alloy_stmt *s)
{
    struct alloy_node *n = arena_alloc(l->arena, sizeof(*n));
    const char *id = s->label.n > 0 ? alloy_text(l, "%.*s.%.*s", SV_ARG(s->name), SV_ARG(s->label))
                                    : alloy_text(l, "%.*s", SV_ARG(s->name));
    void *old;
    if (n == NULL || ++l->n_nodes > ALLOY_NODES_MAX) {
        if (n != NULL && !l->ev.exhausted) {
            refuse(l, s, id, "the configuration has more than 20000 components");
            l->ev.exhausted = true;
        }
        return NULL;
    }
    *n = (struct alloy_node){.module = m, .stmt = s, .id = id};
    n->path = alloy_text(l, "%s%s", m->prefix, id);
    n->name = alloy_text(l, "%s%.*s", m->prefix, SV_ARG(s->label));
    struct alloy_node *first = map_get(m->by_id, sv_from(id));
    if (first != NULL) {
        refuse(l, s, n->path,
               alloy_text(l, "declared twice, first at %d:%d", first->stmt->place.line,
                          first->stmt->place.column));
        return NULL;
    }
    if (!map_put(m->by_id, sv_from(id), n, &old)) {
        alloy_no_memory(l);
        return NULL;
    }
    return n;
}

static bool is_declared(const struct alloy_module *m, const struct alloy_stmt *s)
{
    return find_declare(m, s->name) != NULL || is_declared_family(m, first_word(s->name));
}

/* Returns true for a namespace that could not be imported, and for a name within one. */
static bool is_lost_import(const struct alloy_module *m, struct sv name)
{
    for (size_t n = 1; n <= name.n; n++) {
        const struct alloy_declare *d =
            n == name.n || name.p[n] == '.' ? find_declare(m, (struct sv){name.p, n}) : NULL;
        if (d != NULL) {
            return d->stmt == NULL;
        }
    }
    return false;
}

static const struct alloy_component of_lost_import = {
    .name = "", .unsupported = "comes from an import that is not supported; left out"};

static void collect_component(struct alloy_load *l, struct alloy_module *m,
                              const struct alloy_stmt *s, const struct alloy_component *component)
{
    const struct alloy_declare *declare = component == NULL ? find_declare(m, s->name) : NULL;
    if (is_lost_import(m, s->name)) {
        component = &of_lost_import;
        declare = NULL;
    }
    bool known = is_declared(m, s) || l->names->known_family(s->name) ||
                 memchr(s->name.p, '.', s->name.n) == NULL;
    const char *path = alloy_text(l, "%s%.*s", m->prefix, SV_ARG(s->name));
    bool service = component != NULL && component->service;
    if (declare == NULL && component == NULL && known) {
        unknown_component(l, s, path);
    } else if (service && m->parent != NULL) {
        refuse(l, s, path, "is not allowed in a module");
    } else if (s->label.n == 0 && declare == NULL && !service) {
        refuse(l, s, path, "a component needs a label");
    } else {
        struct alloy_node *n = new_node(l, m, s);
        if (n != NULL) {
            n->component = component;
            n->declare = declare;
        }
    }
}

/* Links the nodes of a body to the module, in their order. */
static void link_nodes(struct alloy_load *l, struct alloy_module *m, const struct alloy_body *body)
{
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        struct alloy_node *n = s->value == NULL ? map_get(m->by_id, sv_from(id_of(l, s))) : NULL;
        if (n != NULL && n->stmt == s) {
            *m->last = n;
            m->last = &n->next;
        }
    }
}

/* Collecting has several steps, and each must be complete for all files before the next begins:
 * declarations come before the blocks that may be their instances, and before the imports that may
 * use them. */
static void collect_declares(struct alloy_load *l, struct alloy_module *m,
                             const struct alloy_body *body)
{
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        if (s->value != NULL) {
            refuse(l, s, alloy_text(l, "%s%.*s", m->prefix, SV_ARG(s->name)),
                   "unknown attribute: outside of blocks there are none");
        } else {
            l->names->declare(l, m, s);
        }
    }
}

static void collect_known(struct alloy_load *l, struct alloy_module *m,
                          const struct alloy_body *body)
{
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        const struct alloy_component *component = l->names->find(s->name);
        if (s->value == NULL && component != NULL && !is_declared(m, s)) {
            collect_component(l, m, s, component);
        }
    }
}

static void collect_imports(struct alloy_load *l, struct alloy_module *m,
                            const struct alloy_body *body)
{
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        if (s->value == NULL) {
            l->names->import(l, m, s);
        }
    }
}

static void collect_others(struct alloy_load *l, struct alloy_module *m,
                           const struct alloy_body *body)
{
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        bool collected = l->names->find(s->name) != NULL && !is_declared(m, s);
        if (s->value == NULL && !collected && !l->names->is_config_block(s->name)) {
            collect_component(l, m, s, NULL);
        }
    }
}

void alloy_module_collect(struct alloy_load *l, struct alloy_module *m,
                          const struct alloy_body *bodies, size_t n)
{
    typedef void step_fn(struct alloy_load * l, struct alloy_module * m,
                         const struct alloy_body *body);
    static step_fn *const steps[] = {collect_declares, collect_known, collect_imports,
                                     collect_others, link_nodes};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        for (size_t k = 0; k < n; k++) {
            steps[i](l, m, &bodies[k]);
        }
    }
}

/* ---- evaluation ------------------------------------------------------------------------------ */

/* Reports that a component is left out: a warning if it concerns profiles, otherwise a note. */
static void leave_out(struct alloy_load *l, struct alloy_node *n)
{
    const struct alloy_component *c = n->component;
    if (c == NULL) {
        config_tell(l->notes, n->stmt->place, n->path, "has nothing to do with pulled profiles");
        return;
    }
    alloy_nodes_add(l, &l->left_out, n);
    config_tell(c->quiet ? l->notes : l->warnings, n->stmt->place, n->path, "%s", c->unsupported);
}

static const struct alloy_value *evaluate(struct alloy_load *l, struct alloy_node *n)
{
    if (n->declare != NULL) {
        return l->names->instance(l, n);
    }
    if (n->component != NULL && n->component->evaluate != NULL) {
        return n->component->evaluate(l, n);
    }
    leave_out(l, n);
    return NULL;
}

static const struct alloy_value *cycle(struct alloy_load *l, const struct alloy_node *n,
                                       struct config_place from)
{
    return alloy_fail(&l->ev, from, "%s refers to itself, directly or through others", n->id);
}

const struct alloy_value *alloy_node_exports(struct alloy_load *l, struct alloy_node *n,
                                             struct config_place from)
{
    if (n->state == NODE_BUSY) {
        return cycle(l, n, from);
    }
    if (n->state == NODE_DONE) {
        return n->exports;
    }
    if (l->references == ALLOY_REFERENCES_MAX) {
        (void)alloy_fail(&l->ev, from, "more than %d components refer to one another in a row",
                         ALLOY_REFERENCES_MAX);
        l->ev.exhausted = true;
        return &alloy_unknown;
    }
    const char *path = l->ev.path;
    struct alloy_module *before = alloy_enter(l, n->module);
    n->state = NODE_BUSY;
    l->references++;
    n->exports = evaluate(l, n);
    l->references--;
    n->state = NODE_DONE;
    alloy_enter(l, before);
    l->ev.path = path;
    return n->exports;
}

void alloy_module_run(struct alloy_load *l, struct alloy_module *m)
{
    for (struct alloy_node *n = m->first; n != NULL && !l->ev.exhausted; n = n->next) {
        (void)alloy_node_exports(l, n, n->stmt->place);
    }
}

void alloy_graph_run(struct alloy_load *l, const struct alloy_body *bodies, size_t n_bodies,
                     const char *directory)
{
    struct config_place nowhere = {0};
    struct alloy_module *root = alloy_module_new(l, NULL, "", nowhere);
    if (root == NULL) {
        return;
    }
    root->directory = directory;
    l->ev.resolve = resolve;
    alloy_enter(l, root);
    alloy_module_collect(l, root, bodies, n_bodies);
    alloy_module_run(l, root);
}

/* ---- references ------------------------------------------------------------------------------ */

/* Returns `; did you mean "X"?`, or "" if `close` is NULL. */
static const char *hint(struct alloy_load *l, const char *close)
{
    return close != NULL ? alloy_text(l, "; did you mean \"%s\"?", close) : "";
}

static const struct alloy_value *argument_of(struct alloy_load *l, const struct alloy_module *m,
                                             const struct alloy_chain *chain, size_t *ret_used)
{
    const char *names[ALLOY_ROWS_MAX];
    const struct alloy_member *argument = alloy_argument(m, chain->names[1]);
    if (argument == NULL) {
        size_t n = 0;
        for (; n < m->n_arguments && n < ALLOY_ROWS_MAX; n++) {
            names[n] = alloy_text(l, "%.*s", SV_ARG(m->arguments[n].key));
        }
        *ret_used = chain->n;
        return alloy_fail(&l->ev, chain->places[1], "no argument \"%.*s\" in this module%s",
                          SV_ARG(chain->names[1]), hint(l, suggest(chain->names[1], names, n)));
    }
    bool whole = chain->n > 2 && sv_eq_str(chain->names[2], "value");
    *ret_used = whole ? 3 : chain->n;
    return whole ? argument->value
                 : alloy_fail(&l->ev, chain->places[1], "expected argument.%.*s.value",
                              SV_ARG(chain->names[1]));
}

/* Returns the meaning of a name in a module, apart from components. */
static const struct alloy_value *find_variable(struct alloy_load *l, const struct alloy_module *m,
                                               const struct alloy_chain *chain, size_t *ret_used)
{
    if (m->variable.n > 0 && sv_eq(chain->names[0], m->variable)) {
        *ret_used = 1;
        return m->variable_value;
    }
    if (m->made_from == NULL || !sv_eq_str(chain->names[0], "argument") || chain->n < 2) {
        return NULL;
    }
    return argument_of(l, m, chain, ret_used);
}

/* Returns the node that the shortest prefix of a chain names, and in *ret_used the length of that
 * prefix. */
static struct alloy_node *find_node(const struct alloy_module *m, const struct alloy_chain *chain,
                                    size_t *ret_used)
{
    char id[ID_MAX];
    size_t len = 0;
    for (size_t i = 0; i < chain->n; i++) {
        int n = snprintf(id + len, sizeof(id) - len, "%s%.*s", i > 0 ? "." : "",
                         SV_ARG(chain->names[i]));
        if (n < 0 || (size_t)n >= sizeof(id) - len) {
            return NULL;
        }
        len += (size_t)n;
        struct alloy_node *node = map_get(m->by_id, (struct sv){id, len});
        if (node != NULL) {
            *ret_used = i + 1;
            return node;
        }
    }
    return NULL;
}

/* Returns a handle in place of the exports of an unsupported component. */
static const struct alloy_value *foreign(struct alloy_load *l, const struct alloy_node *n)
{
    struct alloy_value *v = alloy_value_new(l->arena, VALUE_HANDLE);
    if (v == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    v->opaque = true;
    v->handle = n;
    v->what = alloy_text(l, "a value of %s, which is not supported", n->id);
    return v;
}

/* Returns a value for a reference to the component itself rather than to one of its exports. */
static const struct alloy_value *component_value(struct alloy_load *l, const struct alloy_node *n,
                                                 const char *first)
{
    struct alloy_value *v = alloy_value_new(l->arena, VALUE_HANDLE);
    if (v == NULL) {
        alloy_no_memory(l);
        return &alloy_unknown;
    }
    v->what = first != NULL ? alloy_text(l, "a component; did you mean \"%s.%s\"?", n->id, first)
                            : "a component";
    return v;
}

static const struct alloy_value *no_export(struct alloy_load *l, const struct alloy_node *n,
                                           const struct alloy_chain *chain, size_t used,
                                           const char *meant)
{
    return alloy_fail(&l->ev, chain->places[used], "no export \"%.*s\" in %s%s",
                      SV_ARG(chain->names[used]), n->id, hint(l, meant));
}

/* Returns the export that follows the component's id in the chain. */
static const struct alloy_value *find_export(struct alloy_load *l, const struct alloy_node *n,
                                             const struct alloy_value *exports,
                                             const struct alloy_chain *chain, size_t *used)
{
    const char *names[ALLOY_ROWS_MAX];
    size_t n_names = 0;
    for (size_t i = 0; i < exports->n_members && n_names < ALLOY_ROWS_MAX; i++) {
        names[n_names++] = alloy_text(l, "%.*s", SV_ARG(exports->members[i].key));
    }
    const char *first = n_names > 0 ? names[0] : NULL;
    if (chain->n == *used) {
        return component_value(l, n, first);
    }
    const struct alloy_value *v = alloy_member(exports, chain->names[*used]);
    if (v == NULL) {
        const char *close = suggest(chain->names[*used], names, n_names);
        v = no_export(l, n, chain, *used, close != NULL ? close : first);
        *used = chain->n;
        return v;
    }
    ++*used;
    return v;
}

static const struct alloy_value *export_of(struct alloy_load *l, struct alloy_node *n,
                                           const struct alloy_chain *chain, size_t *used)
{
    const struct alloy_value *exports = alloy_node_exports(l, n, chain->places[0]);
    n->used = true;
    if (exports != NULL && exports->kind != VALUE_UNKNOWN) {
        return find_export(l, n, exports, chain, used);
    }
    *used = chain->n;
    if (exports == NULL && (n->component == NULL || n->component->evaluate == NULL)) {
        return foreign(l, n);
    }
    return exports == NULL ? alloy_fail(&l->ev, chain->places[0], "%s exports nothing", n->id)
                           : &alloy_unknown;
}

/* Reports a chain that looks like a reference to a component that does not exist. */
static const struct alloy_value *missing(struct alloy_load *l, const struct alloy_module *m,
                                         const struct alloy_chain *chain, size_t *ret_used)
{
    const char *ids[SUGGESTIONS_MAX];
    size_t n = 0;
    char id[ID_MAX];
    size_t parts = chain->n > 2 ? chain->n - 1 : chain->n;
    if (m == NULL) {
        return NULL;
    }
    if (!is_declared_family(m, chain->names[0]) &&
        !l->names->known_family((struct sv){chain->source.p, chain->source.n})) {
        return NULL;
    }
    size_t len = 0;
    for (size_t i = 0; i < parts && len < sizeof(id); i++) {
        len += (size_t)snprintf(id + len, sizeof(id) - len, "%s%.*s", i > 0 ? "." : "",
                                SV_ARG(chain->names[i]));
    }
    len = len < sizeof(id) ? len : sizeof(id) - 1;
    for (const struct alloy_node *node = m->first; node != NULL && n < SUGGESTIONS_MAX;
         node = node->next) {
        ids[n++] = node->id;
    }
    const char *close = suggest((struct sv){id, len}, ids, n);
    *ret_used = chain->n;
    return alloy_fail(&l->ev, chain->places[0], "no %.*s%s", (int)len, id, hint(l, close));
}

static const struct alloy_value *resolve(void *arg, const struct alloy_chain *chain,
                                         size_t *ret_used)
{
    struct alloy_load *l = arg;
    for (struct alloy_module *m = l->module; m != NULL; m = m->enclosing) {
        const struct alloy_value *v = find_variable(l, m, chain, ret_used);
        struct alloy_node *n = v == NULL ? find_node(m, chain, ret_used) : NULL;
        if (v != NULL || n != NULL) {
            return v != NULL ? v : export_of(l, n, chain, ret_used);
        }
    }
    return missing(l, l->module, chain, ret_used);
}

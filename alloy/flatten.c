/* Makes jobs and endpoints of the graph.
 *
 * A scrape becomes a job for each chain of rules that its targets pass. A way leads from a scrape
 * through pyroscope.relabel components to an endpoint; if all ways have equal rules, the rules
 * become profile_relabel_configs of the job; otherwise each entry of forward_to has its own.
 */
#include <stdio.h>
#include <string.h>

#include "alloy/endpoint.h"
#include "alloy/profiles.h"

#define WAYS_MAX 128
/* The most pyroscope.relabel components on one way. */
#define RELABELS_MAX 16
#define JOBS_MAX 1000
#define KEY_MAX ((size_t)16 * 1024 * 1024)

/* One destination of a scrape, and the rules on the way to it. */
struct way {
    const struct alloy_node *write;
    const struct alloy_node *enrich;                 /* applies before the rules; NULL: none */
    const struct alloy_node *relabels[RELABELS_MAX]; /* in the order in which profiles pass them */
    size_t n_relabels;
    unsigned depth;   /* pyroscope.enrich components so far */
    bool is_received; /* it begins at pyroscope.receive_http */
};

struct ways {
    struct way at[WAYS_MAX];
    size_t n;
};

/* The targets that pass one chain of rules. */
struct group {
    const struct alloy_chain_link *chain;
    struct alloy_atoms atoms;
};

struct flattening {
    struct alloy_load *l;
    struct yaml_node *jobs;
    struct map *by_key; /* struct pending by the content of the job without its destinations */
    struct pending *first;
    struct pending **last;
    size_t n_jobs;
    size_t n_scrapes;
    struct pending *receive; /* NULL: nothing is received */
    struct yaml_node *write;
    size_t n_endpoints;
};

/* A job that may still get more ways. */
struct pending {
    struct pending *next;
    struct yaml_node *job;
    struct ways *ways;
    struct config_place place;
    const char *path;
};

/* ---- ways ------------------------------------------------------------------------------------ */

/* Returns true if two ways pass the same rules. */
static bool same_rules(const struct way *a, const struct way *b)
{
    size_t i = 0;
    while (i < a->n_relabels && i < b->n_relabels && a->relabels[i] == b->relabels[i]) {
        i++;
    }
    return i == a->n_relabels && i == b->n_relabels;
}

static bool equal_ways(const struct way *a, const struct way *b)
{
    return a->write == b->write && a->enrich == b->enrich && same_rules(a, b);
}

static void add_way(struct alloy_load *l, struct ways *ways, const struct way *way)
{
    for (size_t i = 0; i < ways->n; i++) {
        if (equal_ways(&ways->at[i], way)) {
            return;
        }
    }
    if (ways->n == WAYS_MAX) {
        (void)alloy_fail(&l->ev, way->write->stmt->place, "more than %d ways from one scrape",
                         WAYS_MAX);
        l->ev.exhausted = true;
        return;
    }
    ways->at[ways->n++] = *way;
}

/* Adds a pyroscope.enrich to a way. It has an effect on received profiles only, and only before all
 * rules. */
static void pass_enrich(struct alloy_load *l, const struct alloy_node *n, struct way *so_far)
{
    if (so_far->is_received && so_far->n_relabels == 0 && so_far->enrich == NULL) {
        so_far->enrich = n;
        return;
    }
    config_tell(
        l->warnings, n->stmt->place, n->path,
        "adds no labels here: only received profiles can get labels, before pyroscope.relabel");
}

/* Adds all ways that begin at these receivers. `so_far` has the rules up to here. */
static void walk(struct alloy_load *l, const struct alloy_receivers *receivers, struct way *so_far,
                 struct ways *out)
{
    for (size_t i = 0; i < receivers->n && !l->ev.exhausted; i++) {
        const struct alloy_node *n = receivers->at[i];
        if (sv_eq_str(n->stmt->name, "pyroscope.write")) {
            so_far->write = n;
            add_way(l, out, so_far);
            continue;
        }
        if (sv_eq_str(n->stmt->name, "pyroscope.enrich")) {
            const struct alloy_node *before = so_far->enrich;
            const struct alloy_enrich *e = n->data;
            if (e != NULL && so_far->depth < RELABELS_MAX) {
                so_far->depth++;
                pass_enrich(l, n, so_far);
                walk(l, &e->receivers, so_far, out);
                so_far->depth--;
            }
            so_far->enrich = before;
            continue;
        }
        const struct alloy_profile_relabel *p = n->data;
        if (p == NULL || so_far->n_relabels == RELABELS_MAX) {
            (void)alloy_fail(&l->ev, n->stmt->place, "more than %d pyroscope.relabel in a row",
                             RELABELS_MAX);
            l->ev.exhausted = true;
            return;
        }
        so_far->relabels[so_far->n_relabels++] = n;
        walk(l, &p->receivers, so_far, out);
        so_far->n_relabels--;
    }
}

static const struct yaml_node *way_rules(struct flattening *f, const struct way *way)
{
    struct tree *t = &f->l->tree;
    struct yaml_node *all = NULL;
    for (size_t i = 0; i < way->n_relabels; i++) {
        const struct alloy_profile_relabel *p = way->relabels[i]->data;
        for (size_t k = 0; p->rules != NULL && k < p->rules->n_items; k++) {
            if (all == NULL) {
                all = tree_list(t, way->relabels[i]->stmt->place, way->relabels[i]->path);
            }
            tree_append(t, all, p->rules->items[k].value);
        }
    }
    return all;
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static void put_endpoints(struct flattening *f, const struct alloy_node *n, bool own_labels)
{
    struct alloy_load *l = f->l;
    struct alloy_write *w = n->data;
    w->first = f->n_endpoints;
    for (size_t i = 0; w->endpoints != NULL && i < w->endpoints->n_items; i++) {
        struct yaml_node *e = alloy_endpoint(l, n, w->endpoints, i);
        if (f->n_endpoints++ == CONFIG_ENDPOINTS_MAX) {
            l->ev.path = n->path;
            (void)alloy_fail(&l->ev, n->stmt->place, "more than %d endpoints in all",
                             CONFIG_ENDPOINTS_MAX);
        }
        if (own_labels && w->external_labels != NULL) {
            tree_put(&l->tree, e, "external_labels", w->external_labels);
        }
        tree_append(&l->tree, f->write, e);
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Appends the content of a tree, without its places. */
static void put_tree(const struct yaml_node *n, struct buf *key)
{
    buf_putc(key, "sl{"[n->kind]);
    if (n->kind == YAML_SCALAR) {
        buf_append(key, n->text.p, n->text.n);
        buf_putc(key, '\0');
    }
    for (size_t i = 0; i < n->n_items; i++) {
        if (n->items[i].key != NULL) {
            put_tree(n->items[i].key, key);
        }
        put_tree(n->items[i].value, key);
    }
    buf_putc(key, '}');
}

static const struct yaml_node *chain_rules(struct alloy_load *l,
                                           const struct alloy_chain_link *chain)
{
    const struct alloy_chain_link *links[ALLOY_REFERENCES_MAX];
    size_t n = 0;
    struct yaml_node *all = NULL;
    for (; chain != NULL && n < ALLOY_REFERENCES_MAX; chain = chain->before) {
        links[n++] = chain;
    }
    while (n > 0) {
        const struct alloy_chain_link *link = links[--n];
        for (size_t i = 0; link->rules != NULL && i < link->rules->n_items; i++) {
            if (all == NULL) {
                all = tree_list(&l->tree, link->relabel->stmt->place, link->relabel->path);
            }
            tree_append(&l->tree, all, link->rules->items[i].value);
        }
    }
    return all;
}

/* Returns the labels of a literal target without its address. */
static struct yaml_node *labels_node(struct alloy_load *l, const struct alloy_origin *o)
{
    struct yaml_node *labels = NULL;
    for (size_t i = 0; i < o->labels->n_members; i++) {
        const struct alloy_member *m = &o->labels->members[i];
        struct config_place place = m->place.line > 0 ? m->place : o->place;
        if (sv_eq_str(m->key, "__address__")) {
            continue;
        }
        if (labels == NULL) {
            labels = tree_mapping(&l->tree, o->place, o->path);
        }
        tree_put_new(&l->tree, labels, m->key,
                     tree_text(&l->tree, place, alloy_path(l->arena, o->path, m->key),
                               m->value->text, m->value->form));
    }
    return labels;
}

static bool equal_trees(const struct yaml_node *a, const struct yaml_node *b)
{
    struct buf x;
    struct buf y;
    if (a == NULL || b == NULL) {
        return a == b;
    }
    buf_init(&x, KEY_MAX);
    buf_init(&y, KEY_MAX);
    put_tree(a, &x);
    put_tree(b, &y);
    bool equal =
        buf_ok(&x) && buf_ok(&y) && sv_eq((struct sv){x.data, x.len}, (struct sv){y.data, y.len});
    buf_done(&x);
    buf_done(&y);
    return equal;
}

/* Adds a literal target to static_configs; to the previous entry if that has the same labels. */
static void put_literal(struct alloy_load *l, struct yaml_node *job, const struct alloy_origin *o,
                        struct yaml_node **entry)
{
    struct tree *t = &l->tree;
    const struct alloy_value *address = alloy_member(o->labels, SV("__address__"));
    struct yaml_node *labels = labels_node(l, o);
    if (*entry == NULL || !equal_trees(yaml_get(*entry, "labels"), labels)) {
        struct yaml_node *list = tree_submapping(t, job, "static_configs");
        if (list != NULL) {
            list->kind = YAML_LIST;
        }
        *entry = tree_mapping(t, o->place, o->path);
        tree_put(t, *entry, "targets", tree_list(t, o->place, o->path));
        tree_put(t, *entry, "labels", labels);
        tree_append(t, list, *entry);
    }
    if (*entry != NULL) {
        tree_append(t, tree_submapping(t, *entry, "targets"),
                    tree_text(t, o->place, o->path, address->text, address->form));
    }
}

static void put_sources(struct alloy_load *l, struct yaml_node *job, const struct group *g)
{
    struct yaml_node *entry = NULL;
    for (size_t i = 0; i < g->atoms.n; i++) {
        const struct alloy_origin *o = g->atoms.at[i]->origin;
        if (o->labels != NULL) {
            put_literal(l, job, o, &entry);
            continue;
        }
        entry = NULL;
        struct yaml_node *list = tree_submapping(&l->tree, job, o->key);
        if (list != NULL) {
            list->kind = YAML_LIST;
        }
        tree_append(&l->tree, list, o->source);
    }
}

/* Makes the job of a group, still without its name and its ways. */
static struct yaml_node *make_job(struct alloy_load *l, const struct alloy_node *n,
                                  const struct group *g)
{
    const struct alloy_scrape *s = n->data;
    struct yaml_node *job = tree_mapping(&l->tree, n->stmt->place, n->path);
    put_sources(l, job, g);
    tree_put(&l->tree, job, "relabel_configs", chain_rules(l, g->chain));
    for (size_t i = 0; i < s->settings->n_items; i++) {
        tree_put_text(&l->tree, job, s->settings->items[i].key->text, s->settings->items[i].value);
    }
    return job;
}

static void use_writes(const struct ways *ways)
{
    for (size_t i = 0; i < ways->n; i++) {
        struct alloy_write *w = ways->at[i].write->data;
        w->used = true;
    }
}

/* Adds a job. If an equal job exists, only its ways are added to that one. */
static void add_job(struct flattening *f, const struct alloy_node *n, struct yaml_node *job,
                    const char *name, const struct ways *ways)
{
    struct alloy_load *l = f->l;
    struct buf key;
    void *old = NULL;
    if (job == NULL) {
        alloy_no_memory(l);
        return;
    }
    buf_init(&key, KEY_MAX);
    put_tree(job, &key);
    struct pending *p = buf_ok(&key) ? map_get(f->by_key, (struct sv){key.data, key.len}) : NULL;
    if (p == NULL) {
        p = arena_alloc(l->arena, sizeof(*p));
        struct ways *own = arena_alloc(l->arena, sizeof(*own));
        if (p == NULL || own == NULL || !buf_ok(&key) ||
            !map_put(f->by_key, (struct sv){key.data, key.len}, p, &old)) {
            alloy_no_memory(l);
            buf_done(&key);
            return;
        }
        const struct alloy_scrape *s = n->data;
        *p = (struct pending){.job = job, .ways = own, .place = s->place, .path = n->path};
        tree_put_first(
            &l->tree, job, "job_name",
            tree_text(&l->tree, n->stmt->place, n->path, sv_from(name), (struct sv){.p = NULL}));
        *f->last = p;
        f->last = &p->next;
        if (++f->n_jobs == JOBS_MAX + 1) {
            l->ev.path = n->path;
            (void)alloy_fail(&l->ev, n->stmt->place, "more than %d jobs", JOBS_MAX);
            l->ev.exhausted = true;
        }
    }
    buf_done(&key);
    for (size_t i = 0; i < ways->n; i++) {
        add_way(l, p->ways, &ways->at[i]);
    }
    use_writes(ways);
}

/* Divides the targets of a scrape into groups by their chains, in the order of their first
 * targets. */
static size_t group_targets(struct alloy_load *l, const struct alloy_atoms *atoms,
                            struct group *groups)
{
    size_t n = 0;
    for (size_t i = 0; i < atoms->n; i++) {
        const struct alloy_atom *a = atoms->at[i];
        size_t k = 0;
        if (a->origin->left_out) {
            continue;
        }
        while (k < n && groups[k].chain != a->chain) {
            k++;
        }
        if (k == n) {
            groups[n++] = (struct group){.chain = a->chain};
            groups[k].atoms.at = arena_array(l->arena, atoms->n, sizeof(struct alloy_atom *));
            if (groups[k].atoms.at == NULL) {
                alloy_no_memory(l);
                return 0;
            }
        }
        groups[k].atoms.at[groups[k].atoms.n++] = a;
    }
    return n;
}

static void warn_left_out(struct flattening *f, const struct alloy_node *n,
                          const struct alloy_atoms *atoms)
{
    for (size_t i = 0; i < atoms->n; i++) {
        const struct alloy_node *origin = atoms->at[i]->origin->node;
        if (atoms->at[i]->origin->left_out) {
            config_tell(f->l->warnings, origin->stmt->place, origin->path,
                        "is not supported; its targets are left out of %s", n->path);
        }
    }
}

static void flatten_scrape(struct flattening *f, const struct alloy_node *n)
{
    struct alloy_load *l = f->l;
    const struct alloy_scrape *s = n->data;
    struct way way = {.n_relabels = 0};
    f->n_scrapes++;
    if (s == NULL || !s->complete || l->ev.exhausted) {
        return;
    }
    struct ways *ways = arena_alloc(l->arena, sizeof(*ways));
    struct group *groups = arena_array(l->arena, s->targets.n + 1, sizeof(*groups));
    if (ways == NULL || groups == NULL) {
        alloy_no_memory(l);
        return;
    }
    walk(l, &s->receivers, &way, ways);
    warn_left_out(f, n, &s->targets);
    size_t n_groups = group_targets(l, &s->targets, groups);
    if (ways->n == 0 || n_groups == 0) {
        config_tell(l->warnings, n->stmt->place, n->path, "is left out: %s",
                    n_groups == 0 ? "nothing is left to scrape" : "it sends nowhere");
        return;
    }
    for (size_t i = 0; i < n_groups && !l->ev.exhausted; i++) {
        const char *name = n_groups == 1 ? n->name : alloy_text(l, "%s/%zu", n->name, i + 1);
        add_job(f, n, make_job(l, n, &groups[i]), name, ways);
    }
}

/* Returns the pyroscope.enrich that all ways pass first; NULL if there is none. */
static const struct alloy_node *common_enrich(struct alloy_load *l, const struct ways *ways)
{
    const struct alloy_node *common = ways->at[0].enrich;
    for (size_t i = 1; i < ways->n; i++) {
        const struct alloy_node *other = ways->at[i].enrich;
        const struct alloy_node *n = other != NULL ? other : common;
        if (other != common) {
            config_tell(l->warnings, n->stmt->place, n->path,
                        "adds no labels: not all profiles that are received pass it");
            return NULL;
        }
    }
    return common;
}

/* Makes the key `enrich` of `receive`. */
static void put_enrich(struct flattening *f, const struct alloy_node *n, struct yaml_node *receive)
{
    struct alloy_load *l = f->l;
    const struct alloy_enrich *e = n->data;
    struct group *groups = arena_array(l->arena, e->targets.n + 1, sizeof(*groups));
    if (groups == NULL) {
        alloy_no_memory(l);
        return;
    }
    warn_left_out(f, n, &e->targets);
    size_t n_groups = group_targets(l, &e->targets, groups);
    if (n_groups != 1) {
        config_tell(l->warnings, n->stmt->place, n->path, "adds no labels: %s",
                    n_groups == 0 ? "it has no targets"
                                  : "its targets pass different discovery.relabel components");
        return;
    }
    put_sources(l, e->settings, &groups[0]);
    tree_put(&l->tree, e->settings, "relabel_configs", chain_rules(l, groups[0].chain));
    tree_put(&l->tree, receive, "enrich", e->settings);
}

/* Converts the first pyroscope.receive_http; others get a warning, because profpull receives at one
 * address only. */
static void flatten_receive(struct flattening *f, const struct alloy_node *n)
{
    struct alloy_load *l = f->l;
    const struct alloy_receive *receive = n->data;
    struct way way = {.is_received = true};
    if (receive == NULL || !receive->complete || l->ev.exhausted) {
        return;
    }
    struct ways *ways = arena_alloc(l->arena, sizeof(*ways));
    struct pending *p = arena_alloc(l->arena, sizeof(*p));
    if (ways == NULL || p == NULL) {
        alloy_no_memory(l);
        return;
    }
    walk(l, &receive->receivers, &way, ways);
    if (ways->n == 0 || f->receive != NULL) {
        config_tell(l->warnings, n->stmt->place, n->path, "is left out: %s",
                    ways->n == 0 ? "it sends nowhere" : "another one receives already");
        return;
    }
    *p = (struct pending){
        .job = receive->settings, .ways = ways, .place = receive->place, .path = n->path};
    f->receive = p;
    const struct alloy_node *enrich = common_enrich(l, ways);
    if (enrich != NULL) {
        put_enrich(f, enrich, p->job);
    }
    use_writes(ways);
}

/* ---- where jobs send ------------------------------------------------------------------------- */

static void put_way(struct flattening *f, struct yaml_node *forward_to, const struct pending *p,
                    const struct way *way, bool own_rules)
{
    struct tree *t = &f->l->tree;
    const struct alloy_write *w = way->write->data;
    for (size_t i = 0; w->endpoints != NULL && i < w->endpoints->n_items; i++) {
        const struct yaml_node *name = w->first + i < f->write->n_items
                                           ? yaml_get(f->write->items[w->first + i].value, "name")
                                           : NULL;
        struct sv text = name != NULL ? name->text : SV("");
        struct yaml_node *entry = tree_text(t, p->place, NULL, text, (struct sv){.p = NULL});
        const struct yaml_node *rules = own_rules ? way_rules(f, way) : NULL;
        if (rules != NULL) {
            struct yaml_node *mapping = tree_mapping(t, p->place, NULL);
            tree_put(t, mapping, "name", entry);
            tree_put(t, mapping, "profile_relabel_configs", rules);
            entry = mapping;
        }
        tree_append(t, forward_to, entry);
    }
}

static void put_ways(struct flattening *f, const struct pending *p)
{
    struct tree *t = &f->l->tree;
    bool same = true;
    struct yaml_node *forward_to =
        tree_list(t, p->place, alloy_path(f->l->arena, p->path, SV("forward_to")));
    for (size_t i = 1; i < p->ways->n; i++) {
        same = same && same_rules(&p->ways->at[0], &p->ways->at[i]);
    }
    if (same) {
        tree_put(t, p->job, "profile_relabel_configs", way_rules(f, &p->ways->at[0]));
    }
    for (size_t i = 0; i < p->ways->n; i++) {
        put_way(f, forward_to, p, &p->ways->at[i], !same);
    }
    tree_put(t, p->job, "forward_to", forward_to);
}

/* ---- all of it ------------------------------------------------------------------------------- */

typedef void visit_fn(struct flattening *f, const struct alloy_node *n);

/* Calls a function for all components of a kind, in the order of the files, those in instances
 * included. */
static void visit(struct flattening *f, const struct alloy_module *m, const char *name,
                  visit_fn *fn)
{
    for (; m != NULL; m = m->next) {
        for (const struct alloy_node *n = m->first; n != NULL; n = n->next) {
            if (n->component != NULL && sv_eq_str(n->stmt->name, name)) {
                fn(f, n);
            }
            visit(f, n->inside, name, fn);
        }
    }
}

/* Collects the external labels of the pyroscope.write components in use. */
struct external_visit {
    struct flattening f; /* first: visit() passes it */
    const struct yaml_node *labels;
    size_t n;
    bool differ;
};

static void visit_external(struct flattening *f, const struct alloy_node *n)
{
    struct external_visit *v = (struct external_visit *)f;
    const struct alloy_write *w = n->data;
    if (w == NULL || !w->used) {
        return;
    }
    if (v->n++ == 0) {
        v->labels = w->external_labels;
    } else if (!equal_trees(v->labels, w->external_labels)) {
        v->differ = true;
    }
}

static void visit_global(struct flattening *f, const struct alloy_node *n)
{
    const struct alloy_write *w = n->data;
    if (w != NULL && w->used) {
        put_endpoints(f, n, false);
    } else if (config_errors_count(f->l->errors) == 0) {
        config_tell(f->l->notes, n->stmt->place, n->path, "nothing is sent to it; left out");
    }
}

static void visit_own(struct flattening *f, const struct alloy_node *n)
{
    const struct alloy_write *w = n->data;
    if (w != NULL && w->used) {
        put_endpoints(f, n, true);
    } else {
        visit_global(f, n);
    }
}

/* Complains that nothing would be scraped, and names the components that are not supported. */
static void nothing_left(struct flattening *f)
{
    struct alloy_load *l = f->l;
    struct buf names;
    struct config_place place = {1, 1, NULL};
    buf_init(&names, 1024);
    for (size_t i = 0; i < l->left_out.n; i++) {
        buf_printf(&names, "%s%s", i > 0 ? ", " : "", l->left_out.at[i]->id);
    }
    l->ev.path = NULL;
    if (l->left_out.n > 0) {
        (void)alloy_fail(&l->ev, place, "nothing in this file is scraped: %s %s not supported",
                         buf_ok(&names) ? names.data : "some components",
                         l->left_out.n == 1 ? "is" : "are");
    } else {
        (void)alloy_fail(&l->ev, place,
                         "nothing in this file is scraped: there is no "
                         "pyroscope.scrape that sends anywhere");
    }
    buf_done(&names);
}

void alloy_flatten(struct alloy_load *l, const struct alloy_module *root)
{
    struct config_place start = {1, 1, NULL};
    struct external_visit v = {.f = {.l = l, .by_key = map_new()}};
    struct flattening *f = &v.f;
    size_t errors = config_errors_count(l->errors);
    f->last = &f->first;
    f->jobs = tree_list(&l->tree, start, NULL);
    f->write = tree_list(&l->tree, start, NULL);
    if (f->by_key == NULL || f->jobs == NULL || f->write == NULL) {
        alloy_no_memory(l);
        map_free(f->by_key, NULL);
        return;
    }
    visit(f, root, "pyroscope.scrape", flatten_scrape);
    visit(f, root, "pyroscope.receive_http", flatten_receive);
    map_free(f->by_key, NULL);
    visit(f, root, "pyroscope.write", visit_external);
    visit(f, root, "pyroscope.write", v.differ ? visit_own : visit_global);
    if (!v.differ && v.labels != NULL) {
        tree_put(&l->tree, tree_submapping(&l->tree, l->root, "global"), "external_labels",
                 v.labels);
    }
    for (const struct pending *p = f->first; p != NULL; p = p->next) {
        put_ways(f, p);
        tree_append(&l->tree, f->jobs, p->job);
    }
    if (f->receive != NULL) {
        put_ways(f, f->receive);
        tree_put(&l->tree, l->root, "receive", f->receive->job);
    }
    if (f->n_jobs == 0 && f->receive == NULL && errors == 0 &&
        config_errors_count(l->errors) == 0) {
        nothing_left(f);
    }
    tree_put(&l->tree, l->root, "scrape_configs", f->jobs);
    tree_put(&l->tree, l->root, "write", f->write);
}

#include "agent/enrich.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"

/* Labels of targets as they are discovered. */
#define DISCOVERED_CONTAINER "__meta_kubernetes_pod_container_id"
#define DISCOVERED_POD "__meta_kubernetes_pod_uid"
#define DISCOVERED_NODE "__meta_kubernetes_node_name"
#define DISCOVERED_NAMESPACE "__meta_kubernetes_namespace"

/* The outcome for one profile: label of a metric. */
enum outcome { OUTCOME_MATCHED, OUTCOME_UNMATCHED, OUTCOMES };

/* A way to find the target of a profile; chains of targets are kept for each. */
enum way {
    WAY_LABEL, /* by the labels that the settings name */
    WAY_CONTAINER,
    WAY_POD,
    WAY_NODE,
    WAYS,
};

struct chain;

/* A target, in the chain of one way. */
struct entry {
    struct labels *labels; /* a reference */
    struct chain *chain;   /* the targets with the same value */
    TAILQ_ENTRY(entry) link;
};

TAILQ_HEAD(entry_list, entry);

/* The targets with one value, the last one at the end. */
struct chain {
    enum way way;
    char *value;
    struct entry_list entries;
};

/* The targets of one source. */
struct group {
    struct entry *entries; /* WAYS for each target, at most */
    size_t n;
    size_t n_targets;
};

struct enrich {
    pthread_mutex_t lock;
    struct map *chains[WAYS]; /* value -> struct chain */
    struct map *groups;       /* source -> struct group */
    uint64_t n;               /* targets */
    struct metric_cell *targets;
    struct metric_cell *surplus;
    struct metric_cell *outcomes[OUTCOMES];
};

struct enrich *enrich_new(struct metrics *metrics)
{
    static const char *const names[OUTCOMES] = {
        [OUTCOME_MATCHED] = "matched", [OUTCOME_UNMATCHED] = "unmatched"};
    struct enrich *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }
    pthread_mutex_init(&e->lock, NULL);
    e->groups = map_new();
    bool ok = e->groups != NULL;
    for (size_t i = 0; i < WAYS; i++) {
        e->chains[i] = map_new();
        ok = ok && e->chains[i] != NULL;
    }
    struct metric *outcomes = metrics_family(
        metrics, METRIC_COUNTER, "profpull_receive_enriched_total",
        "Pushed profiles, by whether a target of receive.enrich matched.", "result", NULL);
    for (size_t i = 0; i < OUTCOMES; i++) {
        e->outcomes[i] = metric_cell_of(outcomes, names[i]);
    }
    e->targets = metric_cell_of(
        metrics_family(metrics, METRIC_GAUGE, "profpull_receive_enrich_targets",
                       "Targets of receive.enrich by which profiles can be matched.", NULL, NULL),
        NULL);
    e->surplus = metric_cell_of(
        metrics_family(metrics, METRIC_COUNTER, "profpull_receive_enrich_surplus_targets_total",
                       "Targets of receive.enrich that were ignored, because there are too many.",
                       NULL, NULL),
        NULL);
    return ok ? e : enrich_free(e);
}

/* ---- targets; under the lock ----------------------------------------------------------------- */

static void remove_entry(struct enrich *e, struct entry *at)
{
    struct chain *c = at->chain;
    TAILQ_REMOVE(&c->entries, at, link);
    labels_unref(at->labels);
    if (TAILQ_EMPTY(&c->entries)) {
        (void)map_remove(e->chains[c->way], sv_from(c->value));
        free(c->value);
        free(c);
    }
}

static void free_group(struct enrich *e, struct group *g)
{
    if (g == NULL) {
        return;
    }
    for (size_t i = 0; i < g->n; i++) {
        remove_entry(e, &g->entries[i]);
    }
    e->n -= g->n_targets;
    free(g->entries);
    free(g);
}

/* Returns the chain of a value, which is made if necessary; NULL if out of memory. */
static struct chain *chain_of(struct enrich *e, enum way way, struct sv value)
{
    struct chain *c = map_get(e->chains[way], value);
    if (c != NULL) {
        return c;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    TAILQ_INIT(&c->entries);
    c->way = way;
    c->value = strndup(value.p, value.n);
    if (c->value == NULL || !map_put(e->chains[way], value, c, NULL)) {
        free(c->value);
        free(c);
        return NULL;
    }
    return c;
}

static bool add_entry(struct enrich *e, struct group *g, enum way way, struct sv value,
                      struct labels *labels)
{
    struct chain *c = chain_of(e, way, value);
    if (c == NULL) {
        return false;
    }
    struct entry *at = &g->entries[g->n++];
    *at = (struct entry){.labels = labels_ref(labels), .chain = c};
    TAILQ_INSERT_TAIL(&c->entries, at, link);
    return true;
}

/* Returns the value by which a way finds the target; empty if it does not find it. */
static struct sv value_of(const struct config_enrich *settings, enum way way,
                          const struct enrich_target *t)
{
    struct sv runtime;
    struct sv id;
    switch (way) {
    case WAY_LABEL:
        return settings->target_label != NULL
                   ? labels_get(t->labels, sv_from(settings->target_label))
                   : SV("");
    case WAY_CONTAINER:
        id = labels_get(t->discovered, SV(DISCOVERED_CONTAINER));
        /* "containerd://4f5a..." */
        if (sv_cut(id, '/', &runtime, &id)) {
            (void)sv_cut(id, '/', &runtime, &id);
        }
        return id;
    case WAY_POD:
        return labels_get(t->discovered, SV(DISCOVERED_POD));
    default:
        /* Targets of other kinds than nodes may have the name of theirs, but all of them are in a
         * namespace. */
        return labels_get(t->discovered, SV(DISCOVERED_NAMESPACE)).n == 0
                   ? labels_get(t->discovered, SV(DISCOVERED_NODE))
                   : SV("");
    }
}

/* Adds a target in all ways that find it. */
static bool add_target(struct enrich *e, struct group *g, const struct config_enrich *settings,
                       uint64_t max, const struct enrich_target *t)
{
    bool any = false;
    for (enum way way = 0; way < WAYS; way++) {
        struct sv value = value_of(settings, way, t);
        if (value.n == 0) {
            continue;
        }
        if (!any && e->n >= max) {
            metric_inc(e->surplus);
            return true;
        }
        if (!add_entry(e, g, way, value, t->labels)) {
            return false;
        }
        e->n += !any;
        g->n_targets += !any;
        any = true;
    }
    return true;
}

static bool add_group(struct enrich *e, const struct config_enrich *settings, uint64_t max,
                      const char *source, const struct enrich_target *targets, size_t n)
{
    struct group *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return false;
    }
    g->entries = calloc(n, WAYS * sizeof(g->entries[0]));
    bool ok = g->entries != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        ok = add_target(e, g, settings, max, &targets[i]);
    }
    if (!ok || !map_put(e->groups, sv_from(source), g, NULL)) {
        free_group(e, g);
        return false;
    }
    return true;
}

bool enrich_set_group(struct enrich *e, const struct config_enrich *settings, uint64_t max,
                      const char *source, const struct enrich_target *targets, size_t n)
{
    pthread_mutex_lock(&e->lock);
    free_group(e, map_remove(e->groups, sv_from(source)));
    bool ok =
        n == 0 || !config_enriches(settings) || add_group(e, settings, max, source, targets, n);
    metric_set(e->targets, (int64_t)e->n);
    pthread_mutex_unlock(&e->lock);
    return ok;
}

struct enrich *enrich_free(struct enrich *e)
{
    size_t cursor = 0;
    struct sv source;
    void *group;
    if (e == NULL) {
        return NULL;
    }
    while (e->groups != NULL && map_next(e->groups, &cursor, &source, &group)) {
        free_group(e, group);
    }
    map_free(e->groups, NULL);
    for (size_t i = 0; i < WAYS; i++) {
        map_free(e->chains[i], NULL);
    }
    pthread_mutex_destroy(&e->lock);
    free(e);
    return NULL;
}

/* ---- profiles -------------------------------------------------------------------------------- */

/* Returns a reference of the labels of the target that matches; NULL if there is none. */
static struct labels *find(struct enrich *e, enum way way, struct sv value)
{
    struct labels *found = NULL;
    if (value.n == 0) {
        return NULL;
    }
    pthread_mutex_lock(&e->lock);
    const struct chain *c = map_get(e->chains[way], value);
    if (c != NULL) {
        found = labels_ref(TAILQ_LAST(&c->entries, entry_list)->labels);
    }
    pthread_mutex_unlock(&e->lock);
    return found;
}

static void copy_all(const struct labels *from, struct labels_builder *b)
{
    for (size_t i = 0; i < labels_count(from); i++) {
        struct label l = labels_at(from, i);
        if (!sv_starts_with(l.name, SV("__"))) {
            labels_builder_set(b, l.name, l.value);
        }
    }
}

static void copy_named(const struct labels *from, const struct config_strings *names,
                       struct labels_builder *b)
{
    for (size_t i = 0; i < names->n; i++) {
        struct sv value = labels_get(from, sv_from(names->at[i]));
        if (value.n > 0) {
            labels_builder_set(b, sv_from(names->at[i]), value);
        }
    }
}

/* Returns the name of the profile's label by which a way finds its target; NULL: it has none. */
static const char *label_of(const struct config_enrich *settings, enum way way)
{
    static const char *const names[WAYS] = {
        [WAY_CONTAINER] = "container.id", [WAY_POD] = "k8s.pod.uid", [WAY_NODE] = "host.name"};
    return way == WAY_LABEL ? settings->profile_label : names[way];
}

/* Returns a reference of the labels of the target that a way finds; NULL if there is none. */
static struct labels *match(struct enrich *e, const struct config_enrich *settings, enum way way,
                            const struct labels_builder *b)
{
    const char *name = label_of(settings, way);
    return name != NULL ? find(e, way, labels_builder_get(b, sv_from(name))) : NULL;
}

/* Copies labels of a target; releases the reference. */
static void copy(const struct config_enrich *settings, struct labels *from,
                 struct labels_builder *b)
{
    if (from != NULL && settings->labels.n == 0) {
        copy_all(from, b);
    } else if (from != NULL) {
        copy_named(from, &settings->labels, b);
    }
    labels_unref(from);
}

void enrich_apply(struct enrich *e, const struct config_enrich *settings, struct labels_builder *b)
{
    static const enum way ways[] = {WAY_LABEL, WAY_CONTAINER, WAY_POD};
    if (!config_enriches(settings)) {
        return;
    }
    /* Both are found before either is copied: a copied label must not find another target. */
    struct labels *node = match(e, settings, WAY_NODE, b);
    struct labels *found = NULL;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && found == NULL; i++) {
        found = match(e, settings, ways[i], b);
    }
    metric_inc(e->outcomes[found != NULL || node != NULL ? OUTCOME_MATCHED : OUTCOME_UNMATCHED]);
    copy(settings, node, b);
    copy(settings, found, b);
}

bool enrich_wants(const struct config_enrich *settings, struct sv label)
{
    static const char *const discovered[] = {DISCOVERED_CONTAINER, DISCOVERED_POD, DISCOVERED_NODE,
                                             DISCOVERED_NAMESPACE};
    bool wanted = (settings->target_label != NULL && sv_eq_str(label, settings->target_label)) ||
                  sv_in(label, discovered, sizeof(discovered) / sizeof(discovered[0]));
    for (size_t i = 0; i < settings->labels.n && !wanted; i++) {
        wanted = sv_eq_str(label, settings->labels.at[i]);
    }
    return wanted;
}

#include "agent/enrich.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"

/* The outcome for one profile: label of a metric. */
enum outcome { OUTCOME_MATCHED, OUTCOME_UNMATCHED, OUTCOMES };

struct chain;

/* One target. */
struct entry {
    struct labels *labels; /* a reference */
    struct chain *chain;   /* the targets with the same value */
    TAILQ_ENTRY(entry) link;
};

TAILQ_HEAD(entry_list, entry);

/* The targets with one value of the label, the last one at the end. */
struct chain {
    char *value;
    struct entry_list entries;
};

/* The targets of one source. */
struct group {
    struct entry *entries;
    size_t n;
};

struct enrich {
    pthread_mutex_t lock;
    struct map *chains; /* value -> struct chain */
    struct map *groups; /* source -> struct group */
    uint64_t n;         /* targets */
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
    e->chains = map_new();
    e->groups = map_new();
    struct metric *outcomes = metrics_family(
        metrics, METRIC_COUNTER, "profpull_receive_enriched_total",
        "Pushed profiles, by whether a target of receive.enrich matched.", "result", NULL);
    for (size_t i = 0; i < OUTCOMES; i++) {
        e->outcomes[i] = metric_cell_of(outcomes, names[i]);
    }
    e->targets = metric_cell_of(
        metrics_family(metrics, METRIC_GAUGE, "profpull_receive_enrich_targets",
                       "Targets of receive.enrich whose label has a value.", NULL, NULL),
        NULL);
    e->surplus = metric_cell_of(
        metrics_family(metrics, METRIC_COUNTER, "profpull_receive_enrich_surplus_targets_total",
                       "Targets of receive.enrich that were ignored, because there are too many.",
                       NULL, NULL),
        NULL);
    return e->chains != NULL && e->groups != NULL ? e : enrich_free(e);
}

/* ---- targets; under the lock ----------------------------------------------------------------- */

static void remove_entry(struct enrich *e, struct entry *at)
{
    struct chain *c = at->chain;
    TAILQ_REMOVE(&c->entries, at, link);
    labels_unref(at->labels);
    if (TAILQ_EMPTY(&c->entries)) {
        (void)map_remove(e->chains, sv_from(c->value));
        free(c->value);
        free(c);
    }
    e->n--;
}

static void free_group(struct enrich *e, struct group *g)
{
    if (g == NULL) {
        return;
    }
    for (size_t i = 0; i < g->n; i++) {
        remove_entry(e, &g->entries[i]);
    }
    free(g->entries);
    free(g);
}

/* Returns the chain of a value, which is made if necessary; NULL if out of memory. */
static struct chain *chain_of(struct enrich *e, struct sv value)
{
    struct chain *c = map_get(e->chains, value);
    if (c != NULL) {
        return c;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    TAILQ_INIT(&c->entries);
    c->value = strndup(value.p, value.n);
    if (c->value == NULL || !map_put(e->chains, value, c, NULL)) {
        free(c->value);
        free(c);
        return NULL;
    }
    return c;
}

static bool add_entry(struct enrich *e, struct group *g, struct sv value, struct labels *labels)
{
    struct chain *c = chain_of(e, value);
    if (c == NULL) {
        return false;
    }
    struct entry *at = &g->entries[g->n++];
    *at = (struct entry){.labels = labels_ref(labels), .chain = c};
    TAILQ_INSERT_TAIL(&c->entries, at, link);
    e->n++;
    return true;
}

static bool fill_group(struct enrich *e, struct group *g, struct sv name, uint64_t max,
                       struct labels *const *targets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sv value = labels_get(targets[i], name);
        if (value.n > 0 && e->n >= max) {
            metric_inc(e->surplus);
        } else if (value.n > 0 && !add_entry(e, g, value, targets[i])) {
            return false;
        }
    }
    return true;
}

static bool add_group(struct enrich *e, const struct config_enrich *settings, uint64_t max,
                      const char *source, struct labels *const *targets, size_t n)
{
    struct group *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return false;
    }
    g->entries = calloc(n, sizeof(g->entries[0]));
    if (g->entries == NULL || !fill_group(e, g, sv_from(settings->target_label), max, targets, n) ||
        !map_put(e->groups, sv_from(source), g, NULL)) {
        free_group(e, g);
        return false;
    }
    return true;
}

bool enrich_set_group(struct enrich *e, const struct config_enrich *settings, uint64_t max,
                      const char *source, struct labels *const *targets, size_t n)
{
    pthread_mutex_lock(&e->lock);
    free_group(e, map_remove(e->groups, sv_from(source)));
    bool ok =
        n == 0 || settings->target_label == NULL || add_group(e, settings, max, source, targets, n);
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
    map_free(e->chains, NULL);
    pthread_mutex_destroy(&e->lock);
    free(e);
    return NULL;
}

/* ---- profiles -------------------------------------------------------------------------------- */

/* Returns a reference of the labels of the target that matches; NULL if there is none. */
static struct labels *find(struct enrich *e, struct sv value)
{
    struct labels *found = NULL;
    pthread_mutex_lock(&e->lock);
    const struct chain *c = map_get(e->chains, value);
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

void enrich_apply(struct enrich *e, const struct config_enrich *settings, struct labels_builder *b)
{
    if (settings->target_label == NULL) {
        return;
    }
    struct sv value = labels_builder_get(b, sv_from(settings->profile_label));
    struct labels *found = value.n > 0 ? find(e, value) : NULL;
    metric_inc(e->outcomes[found != NULL ? OUTCOME_MATCHED : OUTCOME_UNMATCHED]);
    if (found == NULL) {
        return;
    }
    if (settings->labels.n == 0) {
        copy_all(found, b);
    } else {
        copy_named(found, &settings->labels, b);
    }
    labels_unref(found);
}

bool enrich_wants(const struct config_enrich *settings, struct sv label)
{
    bool wanted = settings->target_label != NULL && sv_eq_str(label, settings->target_label);
    for (size_t i = 0; i < settings->labels.n && !wanted; i++) {
        wanted = sv_eq_str(label, settings->labels.at[i]);
    }
    return wanted;
}

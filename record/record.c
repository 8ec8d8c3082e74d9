#include "record/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/private.h"

#define CACHE_SWEEP_MS ((int64_t)5 * 60 * MS_PER_S)

/* The rules that match a label set. */
struct matches {
    struct labels *labels; /* a reference */
    bool used;             /* since the last sweep */
    size_t n;
    struct rule *at[]; /* rules of the set, which lives longer */
};

struct record_change {
    struct rule **at; /* references */
    size_t n;
    size_t max_rules;
    size_t max_series;
    int64_t stale_ms;
};

/* ---- making and freeing ---------------------------------------------------------------------- */

static void make_metrics(struct record *r, struct metrics *m)
{
    static const char *const names[RECORD_RESULTS] = {
        [RECORD_COUNTED] = "counted",       [RECORD_OLD] = "old",
        [RECORD_NO_SERIES] = "no_series",   [RECORD_PENDING] = "pending",
        [RECORD_CUMULATIVE] = "cumulative", [RECORD_TOO_LARGE] = "too_large",
        [RECORD_DAMAGED] = "damaged",       [RECORD_NO_MEMORY] = "memory",
    };
    struct metric *results = metrics_family(
        m, METRIC_COUNTER, "profpull_record_values_total",
        "Sums of profiles for rules of recorded metrics, by result.", "result", NULL);
    for (size_t i = 0; i < RECORD_RESULTS; i++) {
        r->results[i] = metric_cell_of(results, names[i]);
    }
    r->rules_cell = metrics_single(m, METRIC_GAUGE, "profpull_record_rules",
                                   "Rules of recorded metrics that are in force.");
    r->series_cell = metrics_single(m, METRIC_GAUGE, "profpull_record_series",
                                    "Series of all recorded metrics at their last read.");
    r->pending_cell = metrics_single(m, METRIC_GAUGE, "profpull_record_pending_bytes",
                                     "Profiles that wait to be counted for recorded metrics.");
}

struct record *record_new(const struct record_options *o)
{
    struct rng rng;
    struct record *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return NULL;
    }
    rng_seed_random(&rng);
    r->options = *o;
    r->options.pending_max = o->pending_max != 0 ? o->pending_max : RECORD_PENDING_DEFAULT;
    r->options.work_max = o->work_max != 0 ? o->work_max : RECORD_WORK_DEFAULT;
    r->seed = rng_next(&rng);
    r->max_rules = CONFIG_RECORD_RULES_DEFAULT;
    r->max_series = CONFIG_RECORD_SERIES_DEFAULT;
    r->stale_ms = CONFIG_RECORD_STALE_MS;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->queue_lock, NULL);
    pthread_cond_init(&r->filled, NULL);
    clock_cond_init(&r->emptied);
    STAILQ_INIT(&r->queue);
    make_metrics(r, o->metrics);
    r->cache = map_new();
    r->scratch = scratch_new();
    if (r->cache == NULL || r->scratch == NULL) {
        return record_free(r);
    }
    scratch_limit(r->scratch, r->options.work_max);
    return r;
}

static void free_rules(struct rule **at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        rule_unref(at[i]);
    }
    free(at);
}

static void free_matches(void *value)
{
    struct matches *m = value;
    labels_unref(m->labels);
    free(m);
}

struct record *record_free(struct record *r)
{
    if (r == NULL) {
        return NULL;
    }
    record_thread_stop(r);
    map_free(r->cache, free_matches);
    free_rules(r->set.at, r->set.n);
    scratch_free(r->scratch);
    pthread_cond_destroy(&r->filled);
    pthread_cond_destroy(&r->emptied);
    pthread_mutex_destroy(&r->queue_lock);
    pthread_mutex_destroy(&r->lock);
    free(r);
    return NULL;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Returns the rule in force that counts the same, with another reference; or makes it. */
static struct rule *keep_or_make(const struct record *r, const struct record_rule *from,
                                 struct err *err)
{
    struct rule *made = rule_new(from, err);
    for (size_t i = 0; made != NULL && i < r->set.n; i++) {
        struct rule *now = r->set.at[i];
        if (now->key_size == made->key_size && memcmp(now->key, made->key, now->key_size) == 0) {
            rule_unref(made);
            return rule_ref(now);
        }
    }
    return made;
}

/* Checks that the rules of one name agree on its type and unit; of two equal ids, both would make
 * the same series. */
static bool check_others(struct rule *const *at, size_t n, const struct rule *rule, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(at[i]->id, rule->id) == 0) {
            return err_set(err, ERR_INPUT, "two rules for the metric %s are equal", rule->family);
        }
        if (!rule_fits(at[i], rule)) {
            return err_set(err, ERR_INPUT,
                           "metric_name: another rule makes %s a metric of another kind: use "
                           "another name",
                           rule->family);
        }
    }
    return true;
}

/* Appends n rules to a list, which has room for them. */
static bool add_rules(const struct record *r, const struct record_rule *rules, size_t n,
                      struct rule **at, size_t *n_at, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct rule *rule = keep_or_make(r, &rules[i], err);
        if (rule == NULL || !check_others(at, *n_at, rule, err)) {
            rule_unref(rule);
            return false;
        }
        at[(*n_at)++] = rule;
    }
    return true;
}

/* Puts a list of rules in force and takes it over; under the lock. */
static void replace_set(struct record *r, struct rule **at, size_t n, size_t n_given)
{
    struct record_set former = r->set;
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(r->cache, &cursor, &key, &value)) {
        map_remove_at(r->cache, cursor);
        free_matches(value);
    }
    r->set = (struct record_set){.at = at, .n = n, .n_given = n_given};
    atomic_store(&r->n_rules, n);
    metric_set(r->rules_cell, (int64_t)n);
    free_rules(former.at, former.n);
}

static bool start_thread(struct record *r, size_t n, struct err *err)
{
    return n == 0 || record_thread_start(r, err);
}

struct record_change *record_discard(struct record_change *c)
{
    if (c != NULL) {
        free_rules(c->at, c->n);
        free(c);
    }
    return NULL;
}

static bool prepare(struct record *r, const struct config_record *config, struct record_change *c,
                    struct err *err)
{
    size_t n_others = r->set.n - r->set.n_given;
    if (config->n_rules > 0 && config->n_rules + n_others > config->max_rules) {
        return err_set(err, ERR_LIMIT,
                       "record: %zu rules, and %zu of the API of recording rules; max_rules is %u",
                       config->n_rules, n_others, config->max_rules);
    }
    for (size_t i = 0; i < config->n_rules; i++) {
        const struct config_record_rule *from = &config->rules[i];
        struct rule *rule = keep_or_make(r, &from->rule, err);
        if (rule == NULL || !check_others(c->at, c->n, rule, err) ||
            !check_others(r->set.at + r->set.n_given, n_others, rule, err)) {
            rule_unref(rule);
            return err_wrap(err, "record.rules[%zu]", i);
        }
        c->at[c->n++] = rule;
    }
    return start_thread(r, c->n, err);
}

struct record_change *record_prepare(struct record *r, const struct config_record *config,
                                     struct err *err)
{
    struct record_change *c = calloc(1, sizeof(*c));
    if (c == NULL || (c->at = calloc(config->n_rules + 1, sizeof(struct rule *))) == NULL) {
        free(c);
        err_memory(err);
        return NULL;
    }
    c->max_rules = config->max_rules;
    c->max_series = config->max_series;
    c->stale_ms = config->stale_ms;
    pthread_mutex_lock(&r->lock);
    bool ok = prepare(r, config, c, err);
    pthread_mutex_unlock(&r->lock);
    return ok ? c : record_discard(c);
}

/* Only the memory for the joined list is needed here. If there is none, the rules of the API are
 * left out. */
void record_commit(struct record *r, struct record_change *c)
{
    pthread_mutex_lock(&r->lock);
    size_t n_others = r->set.n - r->set.n_given;
    struct rule **at = realloc(c->at, (c->n + n_others + 1) * sizeof(struct rule *));
    size_t n = c->n;
    if (at != NULL) {
        for (size_t i = 0; i < n_others; i++) {
            at[n++] = rule_ref(r->set.at[r->set.n_given + i]);
        }
    } else {
        at = c->at;
    }
    r->max_rules = c->max_rules;
    r->max_series = c->max_series;
    r->stale_ms = c->stale_ms;
    replace_set(r, at, n, c->n);
    pthread_mutex_unlock(&r->lock);
    free(c);
}

static bool set_rules(struct record *r, const struct record_rule *rules, size_t n, struct err *err)
{
    size_t n_given = r->set.n_given;
    if (n_given + n > r->max_rules) {
        return err_set(err, ERR_LIMIT, "%zu rules; record.max_rules is %zu", n_given + n,
                       r->max_rules);
    }
    struct rule **at = calloc(n_given + n + 1, sizeof(struct rule *));
    if (at == NULL) {
        return err_memory(err);
    }
    size_t n_at = 0;
    while (n_at < n_given) {
        at[n_at] = rule_ref(r->set.at[n_at]);
        n_at++;
    }
    if (!add_rules(r, rules, n, at, &n_at, err) || !start_thread(r, n_at, err)) {
        free_rules(at, n_at);
        return false;
    }
    replace_set(r, at, n_at, n_given);
    return true;
}

bool record_set_rules(struct record *r, const struct record_rule *rules, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!record_rule_check(&rules[i], err)) {
            return false;
        }
    }
    pthread_mutex_lock(&r->lock);
    bool ok = set_rules(r, rules, n, err);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

/* ---- matching -------------------------------------------------------------------------------- */

/* Forgets the label sets that were not used since the last sweep. */
static void sweep_cache(struct record *r, int64_t now_ms)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    if (now_ms - r->cache_swept_ms < CACHE_SWEEP_MS) {
        return;
    }
    r->cache_swept_ms = now_ms;
    while (map_next(r->cache, &cursor, &key, &value)) {
        struct matches *m = value;
        if (!m->used) {
            map_remove_at(r->cache, cursor);
            free_matches(m);
        } else {
            m->used = false;
        }
    }
}

static struct matches *match(const struct record *r, struct labels *labels)
{
    struct matches *m = malloc(sizeof(*m) + r->set.n * sizeof(struct rule *));
    if (m == NULL) {
        return NULL;
    }
    *m = (struct matches){.labels = labels_ref(labels), .used = true};
    for (size_t i = 0; i < r->set.n; i++) {
        if (rule_matches(r->set.at[i], labels)) {
            m->at[m->n++] = r->set.at[i];
        }
    }
    return m;
}

static struct record_item *item_of(const struct matches *m, struct profile *p)
{
    struct record_item *i = malloc(sizeof(*i) + m->n * sizeof(struct rule *));
    if (i != NULL) {
        *i = (struct record_item){.profile = profile_ref(p), .bytes = profile_cost(p), .n = m->n};
        for (size_t k = 0; k < m->n; k++) {
            i->rules[k] = rule_ref(m->at[k]);
        }
    }
    return i;
}

/* Finds the rules of a profile, and remembers them if there is room. */
static struct record_item *find(struct record *r, struct profile *p, int64_t now_ms)
{
    uint64_t mark = labels_mark(p->labels);
    struct sv key = {(const char *)&mark, sizeof(mark)};
    sweep_cache(r, now_ms);
    struct matches *m = map_get(r->cache, key);
    bool known = m != NULL && labels_equal(m->labels, p->labels);
    if (!known) {
        bool room = m == NULL && map_count(r->cache) < RECORD_CACHED_MAX;
        m = match(r, p->labels);
        known = m != NULL && room && map_put(r->cache, key, m, NULL);
    }
    struct record_item *i = NULL;
    if (m != NULL && m->n > 0) {
        i = item_of(m, p);
    }
    if (m == NULL || (m->n > 0 && i == NULL)) {
        metric_inc(r->results[RECORD_NO_MEMORY]);
    }
    if (m != NULL && known) {
        m->used = true;
    } else if (m != NULL) {
        free_matches(m);
    }
    return i;
}

struct record_item *record_begin(struct record *r, struct profile *p)
{
    if (atomic_load_explicit(&r->n_rules, memory_order_relaxed) == 0 ||
        p->format != PROFILE_PPROF) {
        return NULL;
    }
    pthread_mutex_lock(&r->lock);
    struct record_item *i = find(r, p, clock_mono_ms());
    pthread_mutex_unlock(&r->lock);
    return i;
}

void record_item_free(struct record_item *i)
{
    profile_unref(i->profile);
    for (size_t k = 0; k < i->n; k++) {
        rule_unref(i->rules[k]);
    }
    free(i);
}

void record_count_all(struct record *r, const struct record_item *i, enum record_result result)
{
    metric_add(r->results[result], i->n);
}

/* Returns true if the counters of a profile count from the start of its program: a built-in type of
 * which no delta was made. */
static bool is_cumulative(const struct profile *p)
{
    const struct config_builtin_type *t;
    if (p->is_delta || sv_eq_str(labels_get(p->labels, SV(LABEL_DELTA)), "false")) {
        return false;
    }
    for (size_t i = 0; (t = config_builtin_type(i)) != NULL; i++) {
        if (t->type.cumulative && sv_eq_str(labels_get(p->labels, SV(LABEL_NAME)), t->type.name)) {
            return true;
        }
    }
    return false;
}

/* Removes the rules for counters from an item. */
static void leave_gauges(struct record *r, struct record_item *i)
{
    size_t n = 0;
    for (size_t k = 0; k < i->n; k++) {
        if (i->rules[k]->is_counter) {
            metric_inc(r->results[RECORD_CUMULATIVE]);
            rule_unref(i->rules[k]);
        } else {
            i->rules[n++] = i->rules[k];
        }
    }
    i->n = n;
}

void record_end(struct record *r, struct record_item *i, bool taken)
{
    if (i == NULL) {
        return;
    }
    if (taken && is_cumulative(i->profile)) {
        leave_gauges(r, i);
    }
    if (taken && i->n > 0) {
        record_thread_put(r, i);
    } else {
        record_item_free(i);
    }
}

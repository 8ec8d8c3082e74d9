#include "agent/profile_rules.h"

#include <stdlib.h>

#include "base/clock.h"
#include "relabel/relabel.h"

/* A cached result that is not used for this long is evicted within twice the time. For profiles
 * that arrive more rarely than that, the rules run each time; at this rate the cost does not
 * matter. */
#define CLOCK_PERIOD_MS ((int64_t)5 * 60 * MS_PER_S)
/* The number of messages about profiles that the rules failed on, in each period. */
#define LOG_PERIOD_MS 60000
#define LOG_BURST 5

enum outcome { OUTCOME_KEPT, OUTCOME_DROPPED, OUTCOME_NO_NAME, OUTCOME_FAILED };
#define OUTCOMES 4

static const char *const outcome_names[OUTCOMES] = {"kept", "dropped", "no_name", "failed"};

/* The result of a set of rules for a label set. */
struct cached {
    struct labels *before; /* references; NULL: empty */
    struct labels *after;  /* NULL unless kept */
    uint32_t bytes;
    uint32_t set;
    uint8_t outcome;
    bool used; /* used since the last pass of the clock hand */
};

struct job_rules {
    /* Index in `sets` of the first of its ways; the rules of the job itself are at the index of the
     * job. */
    size_t first_way;
    struct metric_cell *counts[OUTCOMES];
};

struct profile_rules {
    const struct config_job *config; /* the configuration of each job */
    size_t n_jobs;
    struct log *log;
    struct job_rules *jobs;
    struct relabel **sets; /* the rules of the jobs, then those of all their ways; NULL: none */
    size_t n_sets;
    struct cached *cache;  /* cached results by hash; NULL if no job has rules */
    size_t bytes;          /* the bytes of the labels in `cache` */
    size_t clock_hand;     /* evicts entries that were not used since its last pass */
    int64_t clock_hand_ms; /* when it last moved; 0: never */
    struct relabel_scratch *scratch;
    struct labels_builder *builder;
    struct log_limit limit;
};

/* ---- making and freeing ---------------------------------------------------------------------- */

static void register_counts(struct profile_rules *r, struct metrics *metrics)
{
    struct metric *counts =
        metrics_family(metrics, METRIC_COUNTER, "profpull_profile_relabel_total",
                       "Profiles by the result of profile_relabel_configs.", "job", "outcome");
    for (size_t i = 0; i < r->n_jobs; i++) {
        for (size_t k = 0; k < OUTCOMES && r->config[i].name != NULL; k++) {
            const char *values[] = {r->config[i].name, outcome_names[k]};
            r->jobs[i].counts[k] = metric_cell(counts, values);
        }
    }
}

static bool compile_set(struct profile_rules *r, size_t job, size_t set,
                        const struct config_rules *rules, struct err *err)
{
    if (rules->n > 0) {
        r->sets[set] = relabel_new(rules, err);
    }
    return rules->n == 0 || r->sets[set] != NULL ||
           err_wrap(err, "job \"%s\": profile_relabel_configs", r->config[job].name);
}

static bool compile(struct profile_rules *r, struct intern *intern, struct err *err)
{
    bool any = false;
    size_t set = r->n_jobs;
    for (size_t i = 0; i < r->n_jobs; i++) {
        const struct config_job *job = &r->config[i];
        r->jobs[i].first_way = set;
        if (!compile_set(r, i, i, &job->profile_relabel, err)) {
            return false;
        }
        for (size_t k = 0; k < job->n_ways; k++) {
            if (!compile_set(r, i, set++, &job->ways[k].rules, err)) {
                return false;
            }
        }
        any = any || job->profile_relabel.n > 0 || job->n_ways > 0;
    }
    if (any) {
        r->cache = calloc(PROFILE_RULES_CACHED, sizeof(*r->cache));
        r->scratch = relabel_scratch_new();
        r->builder = labels_builder_new(intern);
    }
    return !any || (r->cache != NULL && r->scratch != NULL && r->builder != NULL) ||
           err_memory(err);
}

static size_t count_sets(const struct config_job *jobs, size_t n_jobs)
{
    size_t n = n_jobs;
    for (size_t i = 0; i < n_jobs; i++) {
        n += jobs[i].n_ways;
    }
    return n;
}

struct profile_rules *profile_rules_new(const struct config_job *config, size_t n_jobs,
                                        struct intern *intern, struct log *log,
                                        struct metrics *metrics, struct err *err)
{
    size_t n_sets = count_sets(config, n_jobs);
    struct profile_rules *r = calloc(1, sizeof(*r));
    struct job_rules *jobs = calloc(n_jobs + 1, sizeof(*jobs));
    struct relabel **sets = calloc(n_sets + 1, sizeof(struct relabel *));
    if (r == NULL || jobs == NULL || sets == NULL) {
        err_memory(err);
        free(r);
        free(jobs);
        free(sets);
        return NULL;
    }
    *r = (struct profile_rules){.config = config,
                                .n_jobs = n_jobs,
                                .log = log,
                                .jobs = jobs,
                                .sets = sets,
                                .n_sets = n_sets};
    register_counts(r, metrics);
    return compile(r, intern, err) ? r : profile_rules_free(r);
}

static void evict(struct profile_rules *r, struct cached *m)
{
    r->bytes -= m->bytes;
    labels_unref(m->before);
    labels_unref(m->after);
    *m = (struct cached){.before = NULL};
}

struct profile_rules *profile_rules_free(struct profile_rules *r)
{
    if (r == NULL) {
        return NULL;
    }
    for (size_t i = 0; r->cache != NULL && i < PROFILE_RULES_CACHED; i++) {
        evict(r, &r->cache[i]);
    }
    for (size_t i = 0; i < r->n_sets; i++) {
        relabel_free(r->sets[i]);
    }
    free(r->sets);
    free(r->cache);
    free(r->jobs);
    relabel_scratch_free(r->scratch);
    labels_builder_free(r->builder);
    free(r);
    return NULL;
}

/* ---- applying -------------------------------------------------------------------------------- */

static void log_failed(struct profile_rules *r, const struct profile *p, const struct err *err,
                       int64_t now_ms)
{
    uint32_t suppressed = 0;
    if (!log_limit_allow(&r->limit, now_ms, LOG_PERIOD_MS, LOG_BURST, &suppressed)) {
        return;
    }
    log_warn(r->log, "profile dropped after profile_relabel_configs",
             LOG_STR("job", r->config[p->job].name),
             LOG_SV("type", labels_get(p->labels, SV(LABEL_NAME))),
             LOG_SV("instance", labels_get(p->labels, SV(LABEL_INSTANCE))), LOG_ERR(err),
             LOG_INT("suppressed", suppressed));
}

/* Runs the rules. *ret_labels is a new reference, NULL unless the profile is kept. */
static enum outcome apply_rules(struct profile_rules *r, const struct profile *p, size_t set,
                                struct labels **ret_labels, struct err *err)
{
    struct sv delta = labels_get(p->labels, SV(LABEL_DELTA));
    *ret_labels = NULL;
    labels_builder_reset(r->builder, p->labels);
    struct relabel_verdict v = relabel_apply(r->sets[set], r->scratch, r->builder, NULL, NULL);
    if (v.outcome == RELABEL_DROPPED) {
        return OUTCOME_DROPPED;
    }
    if (v.outcome == RELABEL_FAILED) {
        err_set(err, v.err.kind, "rule %zu: %s", v.rule, v.err.msg);
        return OUTCOME_FAILED;
    }
    if (labels_builder_get(r->builder, SV(LABEL_NAME)).n == 0) {
        err_set(err, ERR_INPUT, "the rules have removed " LABEL_NAME ", the type of the profile");
        return OUTCOME_NO_NAME;
    }
    if (delta.n > 0) {
        labels_builder_set(r->builder, SV(LABEL_DELTA), delta);
    }
    *ret_labels = labels_builder_build(r->builder);
    if (*ret_labels == NULL) {
        labels_builder_explain(r->builder, err);
        return OUTCOME_FAILED;
    }
    return OUTCOME_KEPT;
}

/* Moves the clock hand. One pass takes CLOCK_PERIOD_MS, however many profiles arrive: an entry that
 * was not used during a whole pass belongs to a scrape that is gone. */
static void move_clock_hand(struct profile_rules *r, int64_t now_ms)
{
    int64_t passed_ms = r->clock_hand_ms == 0 ? 0 : now_ms - r->clock_hand_ms;
    int64_t steps = passed_ms >= CLOCK_PERIOD_MS
                        ? PROFILE_RULES_CACHED
                        : passed_ms * PROFILE_RULES_CACHED / CLOCK_PERIOD_MS;
    if (steps == 0 && r->clock_hand_ms != 0) {
        return; /* the fraction of a step counts for the next call */
    }
    r->clock_hand_ms = now_ms;
    for (int64_t i = 0; i < steps; i++) {
        struct cached *m = &r->cache[r->clock_hand++ % PROFILE_RULES_CACHED];
        if (m->used) {
            m->used = false;
        } else {
            evict(r, m);
        }
    }
}

/* Failures are not cached: there may be memory the next time. */
static void store(struct profile_rules *r, struct cached *m, const struct profile *p, size_t set,
                  enum outcome outcome, struct labels *after)
{
    evict(r, m);
    size_t bytes = labels_bytes(p->labels) + (after == NULL ? 0 : labels_bytes(after));
    if (outcome != OUTCOME_FAILED && bytes <= PROFILE_RULES_BYTES_MAX - r->bytes) {
        r->bytes += bytes;
        *m = (struct cached){
            .before = labels_ref(p->labels),
            .after = after == NULL ? NULL : labels_ref(after),
            .bytes = (uint32_t)bytes,
            .set = (uint32_t)set,
            .outcome = (uint8_t)outcome,
        };
    }
}

static enum profile_verdict apply_set(struct profile_rules *r, struct profile *p, size_t set,
                                      int64_t now_ms)
{
    static const enum profile_verdict verdicts[OUTCOMES] = {
        [OUTCOME_KEPT] = PROFILE_KEPT,
        [OUTCOME_DROPPED] = PROFILE_DROPPED,
        [OUTCOME_NO_NAME] = PROFILE_FAILED,
        [OUTCOME_FAILED] = PROFILE_FAILED,
    };
    struct job_rules *job = &r->jobs[p->job];
    if (r->sets[set] == NULL) {
        metric_inc(job->counts[OUTCOME_KEPT]);
        return PROFILE_KEPT;
    }
    move_clock_hand(r, now_ms);
    uint64_t hash = labels_hash(p->labels) + set;
    struct cached *m = &r->cache[(hash ^ hash >> 32) % PROFILE_RULES_CACHED];
    struct labels *after = NULL;
    enum outcome outcome;
    struct err err = ERR_INIT;
    if (m->before != NULL && m->set == set && labels_equal(m->before, p->labels)) {
        outcome = (enum outcome)m->outcome;
        after = m->after == NULL ? NULL : labels_ref(m->after);
    } else {
        outcome = apply_rules(r, p, set, &after, &err);
        if (err.kind != ERR_NONE) {
            log_failed(r, p, &err, now_ms);
        }
        store(r, m, p, set, outcome, after);
    }
    m->used = true;
    metric_inc(job->counts[outcome]);
    if (outcome == OUTCOME_KEPT) {
        profile_set_labels(p, after);
    }
    return err.kind == ERR_MEMORY ? PROFILE_NO_MEMORY : verdicts[outcome];
}

enum profile_verdict profile_rules_apply(struct profile_rules *r, struct profile *p, int64_t now_ms)
{
    return apply_set(r, p, p->job, now_ms);
}

enum profile_verdict profile_rules_apply_way(struct profile_rules *r, struct profile *p, size_t way,
                                             int64_t now_ms)
{
    return apply_set(r, p, r->jobs[p->job].first_way + way, now_ms);
}

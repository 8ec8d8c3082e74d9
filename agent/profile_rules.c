#include "agent/profile_rules.h"

#include <stdlib.h>

#include "base/clock.h"
#include "relabel/relabel.h"

/* What was not asked for in this time is forgotten, within twice the time. Profiles that come more
 * rarely have the rules run each time, which costs them nothing that matters. */
#define TURN_MS ((int64_t)5 * 60 * MS_PER_S)
/* Messages about profiles that the rules could not be run on. */
#define LOG_PERIOD_MS 60000
#define LOG_BURST 5

enum outcome { OUTCOME_KEPT, OUTCOME_DROPPED, OUTCOME_NO_NAME, OUTCOME_FAILED };
#define OUTCOMES 4

static const char *const outcome_names[OUTCOMES] = {"kept", "dropped", "no_name", "failed"};

/* What the rules of a job make of a label set. */
struct memory {
    struct labels *before; /* references; NULL: empty */
    struct labels *after;  /* NULL unless kept */
    uint32_t job;
    uint8_t outcome;
    bool used; /* since the hand was here */
};

struct job_rules {
    struct relabel *rules; /* NULL: none */
    struct metric_cell *counts[OUTCOMES];
};

struct profile_rules {
    struct profile_rules_options options;
    struct job_rules *jobs;
    struct memory *memories; /* by hash; NULL if no job has rules */
    size_t hand;             /* goes around and forgets what was not used for a whole turn */
    int64_t hand_ms;         /* the time up to which it has gone; 0: not yet */
    struct relabel_scratch *scratch;
    struct labels_builder *builder;
    struct log_limit limit;
};

/* ---- making and freeing ---------------------------------------------------------------------- */

static void register_counts(struct profile_rules *r)
{
    static const struct metric_desc desc = {
        .name = "profpull_profile_relabel_total",
        .help = "Profiles by what profile_relabel_configs made of them.",
        .type = METRIC_COUNTER,
        .labels = {"job", "outcome"},
    };
    const struct config *config = r->options.config;
    struct metric *counts = metrics_register(r->options.metrics, &desc);
    for (size_t i = 0; i < config->n_jobs; i++) {
        for (size_t k = 0; k < OUTCOMES; k++) {
            const char *values[] = {config->jobs[i].name, outcome_names[k]};
            r->jobs[i].counts[k] = metric_cell(counts, values);
        }
    }
}

static bool compile(struct profile_rules *r, struct err *err)
{
    const struct config *config = r->options.config;
    bool any = false;
    for (size_t i = 0; i < config->n_jobs; i++) {
        const struct config_rules *rules = &config->jobs[i].profile_relabel;
        if (rules->n == 0) {
            continue;
        }
        r->jobs[i].rules = relabel_new(rules, err);
        if (r->jobs[i].rules == NULL) {
            return err_wrap(err, "job \"%s\": profile_relabel_configs", config->jobs[i].name);
        }
        any = true;
    }
    if (any) {
        r->memories = calloc(PROFILE_RULES_REMEMBERED, sizeof(*r->memories));
        r->scratch = relabel_scratch_new();
        r->builder = labels_builder_new(r->options.intern);
    }
    return !any || (r->memories != NULL && r->scratch != NULL && r->builder != NULL) ||
           err_memory(err);
}

struct profile_rules *profile_rules_new(const struct profile_rules_options *options,
                                        struct err *err)
{
    struct profile_rules *r = calloc(1, sizeof(*r));
    if (r != NULL) {
        r->options = *options;
        r->jobs = calloc(options->config->n_jobs + 1, sizeof(*r->jobs));
    }
    if (r == NULL || r->jobs == NULL) {
        err_memory(err);
        free(r);
        return NULL;
    }
    register_counts(r);
    return compile(r, err) ? r : profile_rules_free(r);
}

static void forget(struct memory *m)
{
    labels_unref(m->before);
    labels_unref(m->after);
    *m = (struct memory){.before = NULL};
}

struct profile_rules *profile_rules_free(struct profile_rules *r)
{
    if (r == NULL) {
        return NULL;
    }
    for (size_t i = 0; r->memories != NULL && i < PROFILE_RULES_REMEMBERED; i++) {
        forget(&r->memories[i]);
    }
    for (size_t i = 0; i < r->options.config->n_jobs; i++) {
        relabel_free(r->jobs[i].rules);
    }
    free(r->memories);
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
    log_warn(r->options.log, "profile dropped after profile_relabel_configs",
             LOG_STR("job", r->options.config->jobs[p->job].name),
             LOG_SV("type", labels_get(p->labels, SV(LABEL_NAME))),
             LOG_SV("instance", labels_get(p->labels, SV(LABEL_INSTANCE))), LOG_ERR(err),
             LOG_INT("suppressed", suppressed));
}

/* *ret_labels is a new reference, NULL unless kept. */
static enum outcome run(struct profile_rules *r, const struct profile *p,
                        struct labels **ret_labels, struct err *err)
{
    struct sv delta = labels_get(p->labels, SV(LABEL_DELTA));
    *ret_labels = NULL;
    labels_builder_reset(r->builder, p->labels);
    struct relabel_verdict v =
        relabel_apply(r->jobs[p->job].rules, r->scratch, r->builder, NULL, NULL);
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
        err_set(err, ERR_MEMORY, "too many labels, or out of memory");
        return OUTCOME_FAILED;
    }
    return OUTCOME_KEPT;
}

/* One turn takes TURN_MS, however many profiles come: what was not used for a whole turn is of a
 * scrape that is gone. */
static void move_hand(struct profile_rules *r, int64_t now_ms)
{
    int64_t passed_ms = r->hand_ms == 0 ? 0 : now_ms - r->hand_ms;
    int64_t steps = passed_ms >= TURN_MS ? PROFILE_RULES_REMEMBERED
                                         : passed_ms * PROFILE_RULES_REMEMBERED / TURN_MS;
    if (steps == 0 && r->hand_ms != 0) {
        return; /* the rest of a step counts for the next one */
    }
    r->hand_ms = now_ms;
    for (int64_t i = 0; i < steps; i++) {
        struct memory *m = &r->memories[r->hand++ % PROFILE_RULES_REMEMBERED];
        if (m->used) {
            m->used = false;
        } else {
            forget(m);
        }
    }
}

static struct memory *recall(struct profile_rules *r, const struct profile *p)
{
    uint64_t hash = labels_hash(p->labels) + p->job;
    return &r->memories[(hash ^ hash >> 32) % PROFILE_RULES_REMEMBERED];
}

static bool is_of(const struct memory *m, const struct profile *p)
{
    return m->before != NULL && m->job == p->job && labels_equal(m->before, p->labels);
}

/* A failure is not remembered: memory may be there the next time. */
static void remember(struct memory *m, const struct profile *p, enum outcome outcome,
                     struct labels *after)
{
    forget(m);
    if (outcome != OUTCOME_FAILED) {
        *m = (struct memory){
            .before = labels_ref(p->labels),
            .after = after == NULL ? NULL : labels_ref(after),
            .job = p->job,
            .outcome = (uint8_t)outcome,
        };
    }
}

bool profile_rules_apply(struct profile_rules *r, struct profile *p, int64_t now_ms)
{
    struct job_rules *job = &r->jobs[p->job];
    if (job->rules == NULL) {
        metric_inc(job->counts[OUTCOME_KEPT]);
        return true;
    }
    move_hand(r, now_ms);
    struct memory *m = recall(r, p);
    struct labels *after = NULL;
    enum outcome outcome;
    if (is_of(m, p)) {
        outcome = (enum outcome)m->outcome;
        after = m->after == NULL ? NULL : labels_ref(m->after);
    } else {
        struct err err = ERR_INIT;
        outcome = run(r, p, &after, &err);
        if (err.kind != ERR_NONE) {
            log_failed(r, p, &err, now_ms);
        }
        remember(m, p, outcome, after);
    }
    m->used = true;
    metric_inc(job->counts[outcome]);
    if (outcome == OUTCOME_KEPT) {
        profile_set_labels(p, after);
    }
    return outcome == OUTCOME_KEPT;
}

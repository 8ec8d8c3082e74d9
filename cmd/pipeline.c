#include "cmd/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LOG_PERIOD_MS 60000
#define LOG_BURST 20

struct pipeline {
    struct pipeline_options options;
    struct relabel **rules; /* one list for each job */
    struct relabel_scratch *scratch;
    struct labels_builder *builder;
    struct log_limit limit;
    struct metric *outcomes;
    struct metric *problems;
};

static bool compile_rules(struct pipeline *p, struct err *err)
{
    const struct config *config = p->options.config;
    p->rules = calloc(config->n_jobs + 1, sizeof(struct relabel *));
    if (p->rules == NULL) {
        return err_set(err, ERR_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < config->n_jobs; i++) {
        p->rules[i] = relabel_new(&config->jobs[i].relabel, err);
        if (p->rules[i] == NULL) {
            return err_wrap(err, "job \"%s\"", config->jobs[i].name);
        }
    }
    return true;
}

struct pipeline *pipeline_new(const struct pipeline_options *options, struct err *err)
{
    struct pipeline *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        err_set(err, ERR_MEMORY, "out of memory");
        return NULL;
    }
    p->options = *options;
    static const struct metric_desc outcomes = {
        .name = "profpull_relabel_targets_total",
        .help = "Discovered label sets by what became of them.",
        .type = METRIC_COUNTER,
        .labels = {"job", "outcome"},
    };
    p->outcomes = metrics_register(options->metrics, &outcomes);
    static const struct metric_desc problems = {
        .name = "profpull_target_problems_total",
        .help = "Profile types that are not scraped of a target because a label of it is wrong.",
        .type = METRIC_COUNTER,
        .labels = {"job", "type"},
    };
    p->problems = metrics_register(options->metrics, &problems);
    p->scratch = relabel_scratch_new();
    p->builder = labels_builder_new(options->intern);
    if (p->scratch == NULL || p->builder == NULL) {
        err_set(err, ERR_MEMORY, "out of memory");
        return pipeline_free(p);
    }
    if (!compile_rules(p, err)) {
        return pipeline_free(p);
    }
    return p;
}

struct pipeline *pipeline_free(struct pipeline *p)
{
    if (p == NULL) {
        return NULL;
    }
    for (size_t i = 0; p->rules != NULL && i < p->options.config->n_jobs; i++) {
        relabel_free(p->rules[i]);
    }
    free(p->rules);
    relabel_scratch_free(p->scratch);
    labels_builder_free(p->builder);
    free(p);
    return NULL;
}

const struct relabel *pipeline_rules(const struct pipeline *p, size_t job)
{
    return p->rules[job];
}

bool pipeline_wants(struct pipeline *p, size_t job, struct sv label)
{
    return target_reads(label) || relabel_reads(p->rules[job], p->scratch, label);
}

static void count(struct pipeline *p, size_t job, const char *outcome)
{
    const char *values[] = {p->options.config->jobs[job].name, outcome};
    metric_inc(metric_cell(p->outcomes, values));
}

#define HOST_MAX 256

/* The host that the target must have; NULL if it may have any. out is storage. */
static const char *pinned_host(const struct target_group *group, const struct labels *discovered,
                               char out[HOST_MAX])
{
    if (!group->pin_addresses) {
        return group->pinned_host;
    }
    struct sv host;
    uint16_t port;
    struct sv address = labels_get(discovered, SV(LABEL_ADDRESS));
    if (!split_host_port(address, &host, &port, NULL) || host.n >= HOST_MAX) {
        return ""; /* no host is this one */
    }
    memcpy(out, host.p, host.n);
    out[host.n] = '\0';
    return out;
}

/* One label set through the rules and into a target. */
static struct target *make_target(struct pipeline *p, const struct target_group *group,
                                  const struct labels *discovered, struct pipeline_verdict *verdict,
                                  struct err *err)
{
    labels_builder_reset(p->builder, discovered);
    struct relabel_verdict v =
        relabel_apply(p->rules[group->job], p->scratch, p->builder, NULL, NULL);
    verdict->outcome = v.outcome;
    verdict->rule = v.rule;
    if (v.outcome == RELABEL_DROPPED) {
        count(p, group->job, "dropped");
        return NULL;
    }
    if (v.outcome == RELABEL_FAILED) {
        count(p, group->job, "failed");
        err_set(err, v.err.kind, "relabel rule %zu: %s", v.rule, v.err.msg);
        return NULL;
    }
    char host[HOST_MAX];
    struct target *t = target_new(p->options.config, group->job, p->builder,
                                  pinned_host(group, discovered, host), err);
    if (t == NULL) {
        verdict->outcome = RELABEL_FAILED;
        count(p, group->job, "invalid");
        return NULL;
    }
    count(p, group->job, "kept");
    return t;
}

static void log_refused(struct pipeline *p, const struct target_group *group, const struct err *err)
{
    uint32_t suppressed = 0;
    if (!log_limit_allow(&p->limit, clock_mono_ms(), LOG_PERIOD_MS, LOG_BURST, &suppressed)) {
        return;
    }
    log_warn(p->options.log, "target refused",
             LOG_STR("job", p->options.config->jobs[group->job].name),
             LOG_STR("source", group->source), LOG_ERR(err), LOG_INT("suppressed", suppressed));
}

/* Types that a wrong label has cost the target; the type is a key of the configuration. */
static void report_problems(struct pipeline *p, const struct target_group *group,
                            const struct target *t)
{
    const char *job = p->options.config->jobs[group->job].name;
    for (size_t i = 0; i < target_problem_count(t); i++) {
        const char *type;
        uint32_t suppressed = 0;
        const char *sentence = target_problem(t, i, &type);
        const char *values[] = {job, type};
        metric_inc(metric_cell(p->problems, values));
        if (log_limit_allow(&p->limit, clock_mono_ms(), LOG_PERIOD_MS, LOG_BURST, &suppressed)) {
            struct sv address = labels_get(target_labels(t), SV(LABEL_ADDRESS));
            log_warn(p->options.log, "profile type refused", LOG_STR("job", job),
                     LOG_STR("source", group->source), LOG_STR("address", address.p),
                     LOG_STR("err", sentence), LOG_INT("suppressed", suppressed));
        }
    }
}

static struct target *judge(struct pipeline *p, const struct target_group *group, size_t i)
{
    struct err err = ERR_INIT;
    struct pipeline_verdict verdict = {.group = group, .discovered = group->targets[i]};
    verdict.target = make_target(p, group, group->targets[i], &verdict, &err);
    if (err.kind != ERR_NONE) {
        verdict.err = &err;
        log_refused(p, group, &err);
    }
    if (verdict.target != NULL) {
        report_problems(p, group, verdict.target);
    }
    if (p->options.on_verdict != NULL) {
        p->options.on_verdict(p->options.arg, &verdict);
    }
    return verdict.target;
}

void pipeline_group(struct pipeline *p, const struct target_group *group)
{
    struct target **targets = calloc(group->n_targets + 1, sizeof(struct target *));
    if (targets == NULL) {
        log_error(p->options.log, "out of memory: group ignored", LOG_STR("source", group->source));
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < group->n_targets; i++) {
        struct target *t = judge(p, group, i);
        if (t != NULL) {
            targets[n++] = t;
        }
    }
    if (p->options.scraper == NULL) {
        for (size_t i = 0; i < n; i++) {
            target_unref(targets[i]);
        }
    } else if (!scraper_set_group(p->options.scraper, group->job, group->source, targets, n)) {
        log_error(p->options.log, "out of memory: group ignored", LOG_STR("source", group->source));
    }
    free(targets);
}

#include "agent/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "config/change.h"
#include "scraper/targets/address.h"
#include "scraper/targets/ports.h"

#define LOG_PERIOD_MS 60000
#define LOG_BURST 20
#define POD_HOST_IP "__meta_kubernetes_pod_host_ip"

/* A job, by its slot; all members are NULL where there is none. */
struct pipeline_job {
    struct config *owner; /* a reference: the configuration that the job came with */
    const struct config_job *job;
    struct relabel *rules;
    bool kept; /* in a change: the pipeline keeps the job that it has */
};

struct pipeline_change {
    struct pipeline_job *jobs;
    size_t n_jobs;
};

struct pipeline {
    struct pipeline_options options;
    struct pipeline_job *jobs;
    size_t n_jobs;
    struct relabel_scratch *scratch;
    struct labels_builder *builder;
    struct log_limit limit;
    struct metric *outcomes;
    struct metric *problems;
    /* The number of scrapes of each host in the current group: host -> size_t. */
    struct map *claimed;
    bool said_limit; /* the line about pod_scrape_limit has been logged, once for each group */
};

/* ---- jobs ------------------------------------------------------------------------------------ */

static void free_jobs(struct pipeline_job *jobs, size_t n)
{
    for (size_t i = 0; jobs != NULL && i < n; i++) {
        relabel_free(jobs[i].rules);
        config_unref(jobs[i].owner);
    }
    free(jobs);
}

static bool compile_rules(struct pipeline_change *c, const struct config *config, const bool *kept,
                          struct err *err)
{
    for (size_t i = 0; i < config->n_jobs; i++) {
        const struct config_job *job = &config->jobs[i];
        struct pipeline_job *at = &c->jobs[job->slot];
        at->kept = kept != NULL && kept[job->slot];
        if (at->kept) {
            continue;
        }
        at->owner = config_ref(config);
        at->job = job;
        at->rules = relabel_new(&job->relabel, err);
        if (at->rules == NULL) {
            return err_wrap(err, "job \"%s\"", job->name);
        }
    }
    return true;
}

struct pipeline_change *pipeline_prepare(const struct config *next, const bool *kept,
                                         struct err *err)
{
    struct pipeline_change *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    c->n_jobs = config_job_slots(next);
    c->jobs = calloc(c->n_jobs + 1, sizeof(*c->jobs));
    if (c->jobs == NULL) {
        err_memory(err);
        return pipeline_discard(c);
    }
    return compile_rules(c, next, kept, err) ? c : pipeline_discard(c);
}

struct pipeline_change *pipeline_discard(struct pipeline_change *c)
{
    if (c != NULL) {
        free_jobs(c->jobs, c->n_jobs);
        free(c);
    }
    return NULL;
}

struct pipeline_change *pipeline_commit(struct pipeline *p, struct pipeline_change *c)
{
    for (size_t i = 0; i < c->n_jobs && i < p->n_jobs; i++) {
        if (c->jobs[i].kept) {
            c->jobs[i] = p->jobs[i];
            p->jobs[i] = (struct pipeline_job){.owner = NULL};
        }
    }
    free_jobs(p->jobs, p->n_jobs);
    p->jobs = c->jobs;
    p->n_jobs = c->n_jobs;
    free(c);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct pipeline *pipeline_new(const struct pipeline_options *options, struct err *err)
{
    struct pipeline *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        err_memory(err);
        return NULL;
    }
    p->options = *options;
    p->outcomes = metrics_family(options->metrics, METRIC_COUNTER, "profpull_relabel_targets_total",
                                 "Discovered label sets by result.", "job", "outcome");
    p->problems = metrics_family(
        options->metrics, METRIC_COUNTER, "profpull_target_problems_total",
        "Profile types of targets that are not scraped because a label of the target is wrong.",
        "job", "type");
    p->scratch = relabel_scratch_new();
    p->builder = labels_builder_new(options->intern);
    p->claimed = map_new();
    if (p->scratch == NULL || p->builder == NULL || p->claimed == NULL) {
        err_memory(err);
        return pipeline_free(p);
    }
    struct pipeline_change *c = pipeline_prepare(options->config, NULL, err);
    if (c == NULL) {
        return pipeline_free(p);
    }
    pipeline_commit(p, c);
    return p;
}

struct pipeline *pipeline_free(struct pipeline *p)
{
    if (p == NULL) {
        return NULL;
    }
    free_jobs(p->jobs, p->n_jobs);
    relabel_scratch_free(p->scratch);
    labels_builder_free(p->builder);
    map_free(p->claimed, free);
    free(p);
    return NULL;
}

const struct relabel *pipeline_rules(const struct pipeline *p, size_t job)
{
    return p->jobs[job].rules;
}

bool pipeline_wants(struct pipeline *p, size_t job, struct sv label)
{
    const struct pipeline_job *at = &p->jobs[job];
    if (at->job->enriches && enrich_wants(&at->owner->receive.enrich, label)) {
        return true;
    }
    bool network = !at->job->allow_host_network && sv_eq_str(label, POD_HOST_IP);
    return network || target_reads(label) || ports_read(label) ||
           relabel_reads(at->rules, p->scratch, label);
}

static void count(struct pipeline *p, size_t job, const char *outcome)
{
    const char *values[] = {p->jobs[job].job->name, outcome};
    metric_inc(metric_cell(p->outcomes, values));
}

#define HOST_MAX 256

/* Returns the host that the target must have; NULL if it may have any. Storage is out. */
static const char *pinned_host(const struct target_group *group, const struct labels *discovered,
                               char out[HOST_MAX])
{
    if (group->kind != GROUP_OBJECT) {
        return group->pinned_host;
    }
    struct sv host;
    uint16_t port;
    struct sv address = labels_get(discovered, SV(LABEL_ADDRESS));
    if (!split_host_port(address, &host, &port, NULL) || host.n >= HOST_MAX) {
        return ""; /* matches no host */
    }
    memcpy(out, host.p, host.n);
    out[host.n] = '\0';
    return out;
}

/* Applies the rules to the labels in the builder. Returns false if they dropped the labels or
 * failed. */
static bool run_rules(struct pipeline *p, struct pipeline_verdict *verdict, struct err *err)
{
    size_t job = verdict->group->job;
    struct relabel_verdict v =
        relabel_apply(p->jobs[job].rules, p->scratch, p->builder, NULL, NULL);
    verdict->outcome = v.outcome;
    verdict->rule = v.rule;
    if (v.outcome == RELABEL_DROPPED) {
        count(p, job, "dropped");
    } else if (v.outcome == RELABEL_FAILED) {
        count(p, job, "failed");
        err_set(err, v.err.kind, "relabel rule %zu: %s", v.rule, v.err.msg);
    }
    return v.outcome == RELABEL_KEPT;
}

/* ---- pod_scrape_limit ------------------------------------------------------------------------ */

/* Returns the number of scrapes that a pod, or a host of another object, has claimed in this group.
 * Returns NULL if out of memory. */
static size_t *claimed_by(struct pipeline *p, const struct target_group *group,
                          const struct target *target)
{
    struct sv host = SV("");
    uint16_t port;
    if (group->kind == GROUP_OBJECT) {
        split_host_port(sv_from(target_canonical(target)), &host, &port, NULL);
    }
    size_t *n = map_get(p->claimed, host);
    if (n == NULL && (n = calloc(1, sizeof(*n))) != NULL && !map_put(p->claimed, host, n, NULL)) {
        free(n);
        n = NULL;
    }
    return n;
}

static void forget_claims(struct pipeline *p)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(p->claimed, &cursor, &key, &value)) {
        map_remove_at(p->claimed, cursor);
        free(value);
    }
    p->said_limit = false;
}

/* Applies pod_scrape_limit: the author of a pod decides how many ports it declares. Lists of
 * targets belong to the operator, and have no such limit. */
static bool admit(struct pipeline *p, const struct target_group *group, const struct target *target,
                  struct err *err)
{
    if (group->kind == GROUP_LISTED) {
        return true;
    }
    uint64_t limit = p->jobs[group->job].job->pod_scrape_limit;
    size_t n = target_scrape_count(target);
    size_t *claimed = claimed_by(p, group, target);
    if (claimed == NULL) {
        return err_memory(err);
    }
    if (*claimed + n > limit) {
        return err_set(err, ERR_LIMIT,
                       "with its %zu scrapes at %s the pod would have %zu, more than the "
                       "pod_scrape_limit of %llu",
                       n, target_canonical(target), *claimed + n, (unsigned long long)limit);
    }
    *claimed += n;
    return true;
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Returns false with an error if a pod shares the network of its node and the job does not allow
 * that: the ports of such a pod are those of everything on the node. */
static bool check_network(const struct pipeline_verdict *verdict, struct err *err)
{
    struct sv node = labels_get(verdict->discovered, SV(POD_HOST_IP));
    bool shares = verdict->group->kind != GROUP_LISTED && node.n > 0 &&
                  address_has_host(sv_from(target_canonical(verdict->target)), node.p);
    return !shares || verdict->job->allow_host_network ||
           err_set(err, ERR_REFUSED,
                   "the pod has the address of its node (%s), which the job does not allow "
                   "(allow_host_network)",
                   node.p);
}

/* Creates a target from the relabelled labels in the builder. */
static void make_target(struct pipeline *p, struct pipeline_verdict *verdict, struct err *err)
{
    char storage[HOST_MAX];
    const struct target_group *group = verdict->group;
    const char *host = pinned_host(group, verdict->discovered, storage);
    verdict->target = target_new(p->jobs[group->job].owner, group->job, p->builder, host, err);
    if (verdict->target == NULL) {
        verdict->outcome = RELABEL_FAILED;
        count(p, group->job, err->kind == ERR_REFUSED ? "refused" : "invalid");
        return;
    }
    if (!check_network(verdict, err)) {
        verdict->target = target_unref(verdict->target);
        verdict->outcome = RELABEL_FAILED;
        count(p, group->job, "refused");
        return;
    }
    if (!admit(p, group, verdict->target, err)) {
        verdict->target = target_unref(verdict->target);
        verdict->outcome = RELABEL_FAILED;
        verdict->repeated = p->said_limit;
        p->said_limit = true;
        count(p, group->job, "pod_limit");
        return;
    }
    count(p, group->job, "kept");
    if (p->options.sharding != NULL) {
        verdict->key = sharding_key(verdict->target, host);
    }
}

static void log_refused(struct pipeline *p, const struct target_group *group, const struct err *err)
{
    uint32_t suppressed = 0;
    if (!log_limit_allow(&p->limit, clock_mono_ms(), LOG_PERIOD_MS, LOG_BURST, &suppressed)) {
        return;
    }
    log_warn(p->options.log, "target refused", LOG_STR("job", p->jobs[group->job].job->name),
             LOG_STR("source", group->source), LOG_ERR(err), LOG_INT("suppressed", suppressed));
}

/* Counts and logs the types of the target that are not scraped because a label is wrong. */
static void report_problems(struct pipeline *p, const struct target_group *group,
                            const struct target *t)
{
    const char *job = p->jobs[group->job].job->name;
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

/* The targets of one group, and the key of each for sharding. */
struct made {
    struct target **targets;
    uint64_t *keys;
    size_t n;
};

static void conclude(struct pipeline *p, struct pipeline_verdict *verdict, const struct err *err,
                     struct made *made)
{
    if (err->kind != ERR_NONE) {
        verdict->err = err;
        if (!verdict->repeated) {
            log_refused(p, verdict->group, err);
        }
    }
    if (verdict->target != NULL) {
        report_problems(p, verdict->group, verdict->target);
    }
    if (p->options.on_verdict != NULL) {
        p->options.on_verdict(p->options.arg, verdict);
    }
    if (verdict->target != NULL) {
        made->targets[made->n] = verdict->target;
        made->keys[made->n++] = verdict->key;
    }
}

/* Processes label sets that are independent of each other. */
static void make_each(struct pipeline *p, const struct target_group *group, struct made *made)
{
    for (size_t i = 0; i < group->n_targets; i++) {
        struct err err = ERR_INIT;
        struct pipeline_verdict verdict = {
            .group = group, .job = p->jobs[group->job].job, .discovered = group->targets[i]};
        labels_builder_reset(p->builder, group->targets[i]);
        if (run_rules(p, &verdict, &err)) {
            make_target(p, &verdict, &err);
        }
        conclude(p, &verdict, &err, made);
    }
}

/* The state of one label set of a pod. */
struct pod_state {
    struct pipeline_verdict verdict;
    struct err err;
};

static void relabel_pod(struct pipeline *p, const struct target_group *group,
                        struct pod_state *states, struct port_candidate *candidates)
{
    for (size_t i = 0; i < group->n_targets; i++) {
        struct pod_state *a = &states[i];
        a->verdict = (struct pipeline_verdict){
            .group = group, .job = p->jobs[group->job].job, .discovered = group->targets[i]};
        candidates[i].discovered = group->targets[i];
        labels_builder_reset(p->builder, group->targets[i]);
        if (!run_rules(p, &a->verdict, &a->err)) {
            continue;
        }
        a->verdict.relabelled = labels_builder_build(p->builder);
        if (a->verdict.relabelled == NULL) {
            a->verdict.outcome = RELABEL_FAILED;
            count(p, group->job, "failed");
            labels_builder_explain(p->builder, &a->err);
            continue;
        }
        candidates[i].labels = labels_ref(a->verdict.relabelled);
    }
}

static void finish_pod(struct pipeline *p, struct pod_state *a, struct port_candidate *c,
                       struct made *made)
{
    if (c->labels != NULL) {
        labels_builder_reset(p->builder, c->labels);
        make_target(p, &a->verdict, &a->err);
    } else if (c->set_aside) {
        a->verdict.set_aside = true;
        count(p, a->verdict.group->job, "set_aside");
    }
    conclude(p, &a->verdict, &a->err, made);
    labels_unref(a->verdict.relabelled);
    labels_unref(c->labels);
}

/* Processes the label sets of one pod: a scrape that several of them ask for runs once. */
static void make_pod(struct pipeline *p, const struct target_group *group, struct made *made)
{
    struct pod_state *states = calloc(group->n_targets + 1, sizeof(*states));
    struct port_candidate *candidates = calloc(group->n_targets + 1, sizeof(*candidates));
    if (states == NULL || candidates == NULL) {
        log_error(p->options.log, "out of memory: pod ignored", LOG_STR("source", group->source));
    } else {
        const struct config_job *job = p->jobs[group->job].job;
        relabel_pod(p, group, states, candidates);
        if (!ports_choose(job, candidates, group->n_targets, p->builder)) {
            log_error(p->options.log, "out of memory: a pod may be scraped more than once",
                      LOG_STR("source", group->source));
        }
        for (size_t i = 0; i < group->n_targets; i++) {
            finish_pod(p, &states[i], &candidates[i], made);
        }
    }
    free(states);
    free(candidates);
}

/* Hands the targets of a group to the scraper, or to sharding. Takes over the references. */
static bool hand_over(struct pipeline *p, const struct target_group *group, const struct made *made)
{
    const struct pipeline_options *o = &p->options;
    if (o->sharding != NULL && p->jobs[group->job].job->shared) {
        return sharding_put(o->sharding, group->job, group->source, made->targets, made->keys,
                            made->n, group->moved);
    }
    return scraper_set_group(o->scraper, group->job, group->source, made->targets, made->n);
}

/* Relabels the targets of a group for pushed profiles; they are not scraped. */
static void enrich_group(struct pipeline *p, const struct target_group *group)
{
    const struct pipeline_job *at = &p->jobs[group->job];
    struct enrich_target *all = calloc(group->n_targets + 1, sizeof(*all));
    size_t n = 0;
    for (size_t i = 0; all != NULL && i < group->n_targets; i++) {
        struct err err = ERR_INIT;
        struct pipeline_verdict verdict = {.group = group, .job = at->job};
        labels_builder_reset(p->builder, group->targets[i]);
        if (run_rules(p, &verdict, &err)) {
            struct labels *labels = labels_builder_build(p->builder);
            count(p, group->job, labels != NULL ? "kept" : "failed");
            all[n] = (struct enrich_target){group->targets[i], labels};
            n += labels != NULL;
        } else if (err.kind != ERR_NONE) {
            log_refused(p, group, &err);
        }
    }
    if (all == NULL || (p->options.enrich != NULL &&
                        !enrich_set_group(p->options.enrich, &at->owner->receive.enrich,
                                          at->job->target_limit, group->source, all, n))) {
        log_error(p->options.log, "out of memory: group ignored", LOG_STR("source", group->source));
    }
    for (size_t i = 0; i < n; i++) {
        labels_unref(all[i].labels);
    }
    free(all);
}

void pipeline_group(struct pipeline *p, const struct target_group *group)
{
    if (p->jobs[group->job].job->enriches) {
        enrich_group(p, group);
        return;
    }
    struct made made = {
        .targets = calloc(group->n_targets + 1, sizeof(struct target *)),
        .keys = calloc(group->n_targets + 1, sizeof(uint64_t)),
    };
    bool ok = made.targets != NULL && made.keys != NULL;
    if (ok && group->kind == GROUP_POD) {
        make_pod(p, group, &made);
    } else if (ok) {
        make_each(p, group, &made);
    }
    forget_claims(p);
    if (!ok || !hand_over(p, group, &made)) {
        log_error(p->options.log, "out of memory: group ignored", LOG_STR("source", group->source));
    }
    free(made.targets);
    free(made.keys);
}

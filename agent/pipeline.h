/* From a discovered group to scrape targets: relabels each label set, assigns profile types among
 * the label sets of one pod (ports.h), creates targets and hands the group to the scraper.
 *
 * A pipeline belongs to one thread, the one that discovery calls back on. It owns the compiled
 * rules of every job. A label set that fails does not affect the others: it is counted, and logged
 * at a limited rate.
 */
#ifndef PROFPULL_AGENT_PIPELINE_H
#define PROFPULL_AGENT_PIPELINE_H

#include "agent/enrich.h"
#include "agent/sharing/sharding.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"
#include "model/group.h"
#include "relabel/relabel.h"
#include "scraper/scraper.h"

struct pipeline_verdict {
    const struct target_group *group;
    const struct config_job *job;
    struct labels *discovered; /* before the rules; borrowed */
    /* For a pod: the labels after the rules; NULL if the rules dropped them; borrowed. */
    struct labels *relabelled;
    struct target *target; /* NULL if there is none; borrowed */
    bool set_aside;        /* kept, but without a type to scrape: see ports.h */
    enum relabel_outcome outcome;
    size_t rule;           /* the rule that dropped it or failed; 0 if the target was refused */
    const struct err *err; /* set unless kept or dropped */
    bool repeated; /* an earlier label set of the group had the same error: not logged again */
    uint64_t key;  /* the target's key if targets are shared (agent/sharing/sharding.h) */
};

struct pipeline_options {
    const struct config *config; /* takes a reference */
    struct intern *intern;
    struct log *log;
    struct metrics *metrics;
    struct scraper *scraper; /* may be NULL */
    struct enrich *enrich;   /* gets the targets of a job that enriches; may be NULL */
    /* Hands targets to the scraper instead; NULL: all targets are ours. */
    struct sharding *sharding;
    /* Called for each discovered label set, in order. May be NULL. */
    void (*on_verdict)(void *arg, const struct pipeline_verdict *verdict);
    void *arg;
};

struct pipeline;

struct pipeline *pipeline_new(const struct pipeline_options *options, struct err *err);
struct pipeline *pipeline_free(struct pipeline *p); /* accepts NULL, returns NULL */
/* Processes a group from discovery, on its thread. */
void pipeline_group(struct pipeline *p, const struct target_group *group);
/* Returns true if a discovered label can affect the targets of a job. On the pipeline's thread. */
bool pipeline_wants(struct pipeline *p, size_t job, struct sv label);

/* The jobs of another configuration. */
struct pipeline_change;
/* Compiles the rules of jobs that are not kept (by slot). Returns NULL with an error: nothing has
 * changed. Any thread. */
struct pipeline_change *pipeline_prepare(const struct config *next, const bool *kept,
                                         struct err *err);
/* Puts the jobs of the new configuration in force, on the pipeline's thread. Jobs that are kept
 * stay those of the configuration that they came with, as do their targets. Frees c, returns NULL.
 */
struct pipeline_change *pipeline_commit(struct pipeline *p, struct pipeline_change *c);
/* Frees c without putting its jobs in force. Accepts NULL, returns NULL. */
struct pipeline_change *pipeline_discard(struct pipeline_change *c);

/* Returns the compiled rules of a job, for descriptions. */
const struct relabel *pipeline_rules(const struct pipeline *p, size_t job);

#endif

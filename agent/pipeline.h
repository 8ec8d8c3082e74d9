/* From a discovered group to scrape targets: relabel each label set, choose among those of one pod
 * (ports.h), make a target of what is kept, hand the group to the scraper (or to whoever asks, see
 * on_verdict).
 *
 * One pipeline belongs to one thread, the one that discovery calls back on. It owns the compiled
 * rules of every job. A label set that cannot be relabelled or made a target costs nothing but
 * itself: it is counted, and logged at a limited rate.
 */
#ifndef PROFPULL_AGENT_PIPELINE_H
#define PROFPULL_AGENT_PIPELINE_H

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
    const struct labels *discovered; /* before the rules */
    struct labels *relabelled; /* of a pod, after the rules; NULL if they dropped it; borrowed */
    struct target *target;     /* NULL if there is none; borrowed */
    bool set_aside;            /* kept, but no type is scraped here: see ports.h */
    enum relabel_outcome outcome;
    size_t rule;           /* that dropped or failed; 0 if the target itself was refused */
    const struct err *err; /* set unless kept or dropped */
    uint64_t key; /* of the target, where targets are shared: see agent/sharing/sharding.h */
};

struct pipeline_options {
    const struct config *config; /* outlives the pipeline */
    struct intern *intern;
    struct log *log;
    struct metrics *metrics;
    struct scraper *scraper;   /* may be NULL */
    struct sharding *sharding; /* hands the targets to the scraper instead; NULL: all are ours */
    /* For each discovered label set, in order. May be NULL. */
    void (*on_verdict)(void *arg, const struct pipeline_verdict *verdict);
    void *arg;
};

struct pipeline;

struct pipeline *pipeline_new(const struct pipeline_options *options, struct err *err);
struct pipeline *pipeline_free(struct pipeline *p); /* accepts NULL, returns NULL */
/* Takes what discovery tells, on its thread. */
void pipeline_group(struct pipeline *p, const struct target_group *group);
/* Whether a discovered label can have an effect on the targets of a job. On the pipeline's thread.
 */
bool pipeline_wants(struct pipeline *p, size_t job, struct sv label);
/* The rules of a job, to describe one. */
const struct relabel *pipeline_rules(const struct pipeline *p, size_t job);

#endif

/* The sentences of `profpull discover --explain`: from labels and rules to plain English. Pure
 * functions that append to a buffer; only cli/explain/explain.c uses them.
 */
#ifndef PROFPULL_CLI_EXPLAIN_WORDS_H
#define PROFPULL_CLI_EXPLAIN_WORDS_H

#include "agent/pipeline.h"
#include "base/buf.h"
#include "base/labels.h"
#include "cli/explain/annotations.h"
#include "config/config.h"
#include "scraper/scraper.h"

/* One label set of a pod and its outcome. */
struct label_set {
    struct pipeline_verdict v; /* without group and err; its labels and target are references */
    struct labels *discovered;
    char *error;
};

/* The labels that a rule which dropped a label set looks at. */
enum rule_about {
    ABOUT_PHASE,
    ABOUT_INIT,       /* init containers */
    ABOUT_ANNOTATION, /* at annotations only */
    ABOUT_OTHER,
};
enum rule_about words_about(const struct config_rule *rule);

/* "rule 3 (file.yaml:12)" */
void words_rule(const struct config_job *job, size_t rule, struct buf *out);
/* Why the rule dropped a pod and what to change. rules: those of the job; at_rule: the labels that
 * the rule saw; discovered: those of the pod before all rules. */
void words_dropped(const struct config_job *job, size_t rule, const struct rule_reader *rules,
                   const struct labels *discovered, const struct labels *at_rule, struct buf *out);
/* "process_cpu at http://..., every 15s; memory at ..." */
void words_scrapes(const struct target *target, struct buf *out);
/* Why an enabled type is scraped nowhere in the pod. relabelled: of the first label set that the
 * rules kept; sets: all of the pod's. */
void words_no_port(const struct config_type *type, const struct rule_reader *rules,
                   const struct labels *relabelled, const struct label_set *sets, size_t n,
                   struct buf *out);
/* Which part of the source's namespaces and selectors excludes the pod. labels: those of the pod,
 * NULL if only its namespace is known. False if none is known to. */
bool words_left_out(const struct config_kubernetes *k, struct sv namespace,
                    const struct labels *labels, struct buf *out);

#endif

/* The sentences of `profpull discover --explain`, made of labels and rules. Pure functions that
 * append to a buffer; only cli/explain/explain.c uses them.
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
    struct pipeline_verdict v; /* without group and err; labels and target are references */
    struct labels *discovered;
    char *error;
};

/* The kind of labels that the rule which has dropped a label set reads. */
enum rule_about {
    ABOUT_PHASE,
    ABOUT_INIT,       /* whether it is an init container */
    ABOUT_ANNOTATION, /* annotations only */
    ABOUT_OTHER,
};
enum rule_about words_about(const struct config_rule *rule);

/* Appends the name of a rule: "rule 3 (file.yaml:12)". */
void words_rule(const struct config_job *job, size_t rule, struct buf *out);
/* Appends why a rule has dropped a pod, and what to change. rules: those of the job; at_rule: the
 * labels that the rule has seen; discovered: the labels of the pod before all rules. */
void words_dropped(const struct config_job *job, size_t rule, const struct rule_reader *rules,
                   const struct labels *discovered, const struct labels *at_rule, struct buf *out);
/* Appends the scrapes of a target: "process_cpu at http://..., every 15s; memory at ...". */
void words_scrapes(const struct target *target, struct buf *out);
/* Appends why no label set of the pod gives a scrape of an enabled type. relabelled: the labels of
 * the first label set that the rules have kept; sets: all label sets of the pod. */
void words_no_port(const struct config_type *type, const struct rule_reader *rules,
                   const struct labels *relabelled, const struct label_set *sets, size_t n,
                   struct buf *out);
/* Appends which namespaces or selectors of a source exclude the pod. labels: those of the pod; NULL
 * if only its namespace is known. Returns false if none is known to exclude it. */
bool words_left_out(const struct config_kubernetes *k, struct sv namespace,
                    const struct labels *labels, struct buf *out);

#endif

/* The sentences of `profpull discover --explain`: from labels and rules to plain English. Pure
 * functions that append to a buffer; only cli/explain/explain.c uses them.
 */
#ifndef PROFPULL_CLI_EXPLAIN_WORDS_H
#define PROFPULL_CLI_EXPLAIN_WORDS_H

#include "base/buf.h"
#include "base/labels.h"
#include "config/config.h"
#include "scraper/scraper.h"

/* What kind of question the rule asks that dropped a label set. */
enum rule_about {
    ABOUT_PHASE,
    ABOUT_INIT,       /* init containers */
    ABOUT_ANNOTATION, /* of all that it looks at */
    ABOUT_OTHER,
};
enum rule_about words_about(const struct config_rule *rule);

/* "rule 3 (file.yaml:12)" */
void words_rule(const struct config_job *job, size_t rule, struct buf *out);
/* Why the rule dropped a pod and what to change. at_rule: the labels that the rule saw;
 * discovered: those of the pod before all rules. */
void words_dropped(const struct config_job *job, size_t rule, const struct labels *discovered,
                   const struct labels *at_rule, struct buf *out);
/* "process_cpu at http://..., every 15s; memory at ..." */
void words_scrapes(const struct target *target, struct buf *out);
/* Why a type that is wanted is scraped nowhere in the pod. pieces: the relabelled and discovered
 * labels of the pod's label sets that rules kept. */
struct words_piece {
    const struct labels *discovered;
    const struct labels *relabelled;
};
void words_no_port(const struct config_type *type, const struct words_piece *pieces, size_t n,
                   struct buf *out);
/* The declared ports: "http 8080 (container main)", or that there are none. */
void words_ports(const struct words_piece *pieces, size_t n, struct buf *out);
/* Which part of the source's namespaces and selectors leaves the pod out. labels: of the pod, NULL
 * if only namespace is known. False if nothing does, as far as can be told. */
bool words_left_out(const struct config_kubernetes *k, struct sv namespace,
                    const struct labels *labels, struct buf *out);

#endif

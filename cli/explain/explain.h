/* `profpull explain` and `profpull discover --explain`: explain in plain English why pods are
 * scraped or not, and what to change.
 *
 * The pipeline's thread reports verdicts. The report is either one paragraph for each pod that
 * matches a pattern, or a summary that counts all pods by reason. If a pod is reported twice, its
 * last report counts.
 */
#ifndef PROFPULL_CLI_EXPLAIN_EXPLAIN_H
#define PROFPULL_CLI_EXPLAIN_EXPLAIN_H

#include <stdbool.h>

#include "agent/pipeline.h"
#include "base/buf.h"
#include "cli/explain/pod_lookup.h"
#include "discovery/discovery.h"

struct explain;

struct explain_options {
    const struct config *config;
    struct intern *intern;
    const struct pipeline *pipeline; /* the pipeline whose rules are explained */
    const struct sharding *sharding; /* NULL unless targets are shared */
    /* NAMESPACE/NAME, with wildcards as in file names; without a slash, a part of a name. NULL: the
     * report is a summary of all pods. */
    const char *pattern;
    /* The access of the person whose kubeconfig is used; NULL: a service account's. */
    const struct cluster_access *person;
};

/* Makes an empty report. NULL if out of memory. All that the options point to must outlive the
 * object. */
struct explain *explain_new(const struct explain_options *options);
struct explain *explain_free(struct explain *e); /* accepts NULL, returns NULL */

/* Takes a verdict. Label sets that do not belong to a pod are ignored. */
void explain_verdict(struct explain *e, const struct pipeline_verdict *verdict);
/* Notes a missing permission. */
void explain_forbidden(struct explain *e, const struct discovery_forbidden *what);

/* Returns true if a reported pod matches the pattern. */
bool explain_found(const struct explain *e);
/* Returns true if a reported pod that matches the pattern is a target. */
bool explain_scraped(const struct explain *e);
/* Takes what the API server says about a pod that no job has discovered; copied. */
void explain_looked_up(struct explain *e, const struct pod_found *found);

/* Appends the report as plain text. False if memory ran out. */
bool explain_report(struct explain *e, struct buf *out);

#endif

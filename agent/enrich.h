/* Labels of discovered targets for pushed profiles (the key receive.enrich).
 *
 * The pipeline hands over the targets of the job that discovers them, as discovered and after its
 * rules, group by group. A pushed profile gets labels of the first target that matches:
 *
 * 1. by the settings: the target_match_label of the target, after the rules, has the same value as
 *    profiles_match_label of the profile;
 * 2. by `container.id`: this is the container of the target, as discovered;
 * 3. by `k8s.pod.uid`: this is its pod, as discovered.
 *
 * Before that it gets the labels of the node whose name is `host.name`: only targets that are nodes
 * count, because the pods of a node are not what runs on the host. The names in 2, 3 and of the
 * node are those of OpenTelemetry. Of several targets with one value the last one counts. The
 * caller passes the settings with each group and each profile, so a group keeps the settings with
 * which it arrived.
 *
 * Any thread.
 */
#ifndef PROFPULL_AGENT_ENRICH_H
#define PROFPULL_AGENT_ENRICH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"
#include "base/metrics.h"
#include "config/config.h"

struct enrich;

struct enrich *enrich_new(struct metrics *metrics); /* NULL if out of memory */
struct enrich *enrich_free(struct enrich *e);       /* accepts NULL, returns NULL */

/* A target: its labels as they were discovered, and after the rules. */
struct enrich_target {
    struct labels *discovered;
    struct labels *labels;
};

/* Replaces the targets of a source. max: the limit of the targets of all sources; targets beyond it
 * are not kept, and are counted. Takes references of the labels after the rules. Returns false if
 * out of memory; the source has no targets then. */
bool enrich_set_group(struct enrich *e, const struct config_enrich *settings, uint64_t max,
                      const char *source, const struct enrich_target *targets, size_t n);

/* Adds labels of the targets that match the labels in the builder. A label of a target replaces one
 * of the profile, and one of a pod or container replaces one of the node. */
void enrich_apply(struct enrich *e, const struct config_enrich *settings, struct labels_builder *b);

/* Returns true if a discovered label may be needed, other than by the rules of the job. */
bool enrich_wants(const struct config_enrich *settings, struct sv label);

#endif

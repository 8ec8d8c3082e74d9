/* Labels of discovered targets for pushed profiles (the key receive.enrich).
 *
 * The pipeline hands over the targets of the job that discovers them, after its rules, group by
 * group. A pushed profile gets labels of the target whose target_match_label has the same value as
 * profiles_match_label of the profile; of several targets with one value the last one counts. The
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

/* Replaces the targets of a source. max: the limit of the targets of all sources; targets beyond it
 * are not kept, and are counted. Takes references of the labels. Returns false if out of memory;
 * the source has no targets then. */
bool enrich_set_group(struct enrich *e, const struct config_enrich *settings, uint64_t max,
                      const char *source, struct labels *const *targets, size_t n);

/* Adds labels of the target that matches the labels in the builder, if there is one. A label of the
 * target replaces one of the profile. */
void enrich_apply(struct enrich *e, const struct config_enrich *settings, struct labels_builder *b);

/* Returns true if a discovered label may be needed, other than by the rules of the job. */
bool enrich_wants(const struct config_enrich *settings, struct sv label);

#endif

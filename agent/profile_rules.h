/* The rules of `profile_relabel_configs`: between the scraper that makes a profile and the writer.
 *
 * They see all labels of the profile, `__*` included, when everything else has been set. Stands in
 * agent/ because the stages do not know each other. Belongs to one thread, the one that the scraper
 * calls back on. The rules of every job are compiled once; what they made of a label set is
 * remembered, so that a scrape whose labels stay costs one look-up. A job without rules costs a
 * counter.
 *
 * Two labels are not the rules' to take away. A profile without `__name__` has no type: it is
 * dropped and counted, not sent for servers to refuse. `__delta__` says what the bytes are, and
 * without it servers would subtract a second time: where it was, it stays as it was.
 */
#ifndef PROFPULL_AGENT_PROFILE_RULES_H
#define PROFPULL_AGENT_PROFILE_RULES_H

#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"
#include "model/profile.h"

/* Label sets of which the result is remembered, for all jobs together: 1.5 MiB of table when all
 * are in use, and the label sets. What was not asked for in five minutes is forgotten in the next
 * five, while profiles come. */
#define PROFILE_RULES_REMEMBERED 65536

struct profile_rules_options {
    const struct config *config; /* outlives the rules */
    struct intern *intern;
    struct log *log;
    struct metrics *metrics;
};

struct profile_rules;

struct profile_rules *profile_rules_new(const struct profile_rules_options *options,
                                        struct err *err);
struct profile_rules *profile_rules_free(struct profile_rules *r); /* accepts NULL, returns NULL */
/* Runs the rules of the profile's job on its labels. False: the profile is dropped, and counted;
 * the caller lets go of it. now_ms: monotonic, for what is forgotten and the rate of log lines. */
bool profile_rules_apply(struct profile_rules *r, struct profile *p, int64_t now_ms);

#endif

/* The rules of `profile_relabel_configs`, which run between the makers of profiles and the writer.
 *
 * They apply to all labels of the profile, `__*` included, after everything else is set. They are
 * part of agent/ because the stages do not know each other. One thread at a time. The rules of
 * every job are compiled once and their results are cached, so a scrape whose labels do not change
 * costs one look-up. A job without rules costs a counter.
 *
 * The rules cannot remove two labels. A profile without `__name__` has no type: it is dropped and
 * counted, not sent for servers to refuse. `__delta__` describes the bytes, and without it servers
 * would subtract again: it keeps its value.
 */
#ifndef PROFPULL_AGENT_PROFILE_RULES_H
#define PROFPULL_AGENT_PROFILE_RULES_H

#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"
#include "model/profile.h"

/* Cached results, for all jobs together: 1.5 MiB of table besides the label sets. A result that has
 * not been used for five minutes is evicted within the next five minutes, as long as profiles
 * arrive. */
#define PROFILE_RULES_CACHED 65536
/* The names and values of all cached results, counted as if none were shared. The rules run each
 * time for label sets that find no room. */
#define PROFILE_RULES_BYTES_MAX ((size_t)32 * 1024 * 1024)

struct profile_rules;

/* Compiles the rules of n_jobs jobs; profile.job is an index in them. An entry without a name is no
 * job. All arguments except err outlive the rules. */
struct profile_rules *profile_rules_new(const struct config_job *config, size_t n_jobs,
                                        struct intern *intern, struct log *log,
                                        struct metrics *metrics, struct err *err);
struct profile_rules *profile_rules_free(struct profile_rules *r); /* accepts NULL, returns NULL */
enum profile_verdict {
    PROFILE_KEPT,
    PROFILE_DROPPED, /* a rule dropped it, as intended */
    PROFILE_FAILED,  /* a rule failed, or took away the type */
    PROFILE_NO_MEMORY,
};
/* Applies the rules of the profile's job to its labels. Unless it is kept, the profile is counted
 * as dropped, and the caller releases it. now_ms: monotonic, for the eviction and the rate of log
 * lines. */
enum profile_verdict profile_rules_apply(struct profile_rules *r, struct profile *p,
                                         int64_t now_ms);
/* Does the same with the rules of one of the job's ways. */
enum profile_verdict profile_rules_apply_way(struct profile_rules *r, struct profile *p, size_t way,
                                             int64_t now_ms);

#endif

/* Sharing the targets among replicas: membership (agent/sharing/members.h), what is held
 * (owned_targets.h), and what they need of the world: a timer, metrics, the log.
 *
 *   discovery -> members ----> who owns a key
 *   pipeline  -> holdings ---> scraper: what is ours
 *
 * On the discovery thread.
 */
#ifndef PROFPULL_AGENT_SHARING_SHARDING_H
#define PROFPULL_AGENT_SHARING_SHARDING_H

#include "base/loop.h"
#include "base/metrics.h"
#include "config/config.h"
#include "discovery/discovery.h"
#include "scraper/scraper.h"

struct sharding;

struct sharding_options {
    const struct config *config; /* outlives this; sharding.mode is not none */
    struct loop *loop;
    struct log *log;
    struct metrics *metrics; /* may be NULL */
    struct scraper *scraper; /* NULL: nothing is scraped, so ownership is taken at once */
};

struct sharding *sharding_new(const struct sharding_options *options, struct err *err);
struct sharding *sharding_free(struct sharding *s); /* accepts NULL, returns NULL */

/* What discovery has to be told: who the members are to be told to, and, where targets are scraped,
 * which pods are left to others. Lives as long as s. NULL gives NULL. */
const struct discovery_sharing *sharding_of_discovery(struct sharding *s);

/* The key of a target by which its owner is found. pinned_host as in struct target_group. */
uint64_t sharding_key(const struct sharding *s, const struct target *t, size_t job,
                      const char *pinned_host);
/* Takes what a source has now (keys of the targets beside them). moved as in struct target_group.
 * Takes over the references. False if out of memory. */
bool sharding_put(struct sharding *s, size_t job, const char *source, struct target *const *targets,
                  const uint64_t *keys, size_t n, bool moved);

/* The member that a key belongs to; NULL if no members are known. */
const char *sharding_owner(const struct sharding *s, uint64_t key);
/* Are we that one? */
bool sharding_is_ours(const struct sharding *s, uint64_t key);
/* Are we a member at all? */
bool sharding_is_member(const struct sharding *s);
/* The name by which the others know us. */
const char *sharding_self(const struct sharding *s);
/* Appends a sentence about who scrapes a key, and why not we: "scraped by profpull-1 (this is
 * profpull-0; members: profpull-0, profpull-1)". False if out of memory. */
bool sharding_explain(const struct sharding *s, uint64_t key, struct buf *out);

#endif

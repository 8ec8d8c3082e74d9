/* Sharing the targets among replicas: wires members.h and owned_targets.h to a timer, the metrics
 * and the log.
 *
 *   discovery -> members ---------> the owner of a key
 *   pipeline  -> owned_targets ---> scraper: the targets that are ours
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
    struct scraper *scraper; /* NULL: nothing is scraped, so ownership moves at once */
    /* Receives the addresses of the members, on the discovery thread. May be NULL. */
    void (*on_addresses)(void *arg, const struct sv *addresses, size_t n);
    void *arg;
};

struct sharding *sharding_new(const struct sharding_options *options, struct err *err);
struct sharding *sharding_free(struct sharding *s); /* accepts NULL, returns NULL */

/* The callbacks for discovery: they receive the members and, if targets are scraped, decide which
 * pods are assigned to others. Lives as long as s. NULL gives NULL. */
const struct discovery_sharing *sharding_of_discovery(struct sharding *s);

/* Returns the key that determines the owner of a target. pinned_host as in struct target_group. */
uint64_t sharding_key(const struct target *t, const char *pinned_host);
/* Replaces the targets of a source; keys[i] is that of targets[i]. moved as in struct target_group.
 * Takes over the references. Returns false if out of memory. */
bool sharding_put(struct sharding *s, size_t job, const char *source, struct target *const *targets,
                  const uint64_t *keys, size_t n, bool moved);

/* Returns the member that a key belongs to; NULL if there are no members. */
const char *sharding_owner(const struct sharding *s, uint64_t key);
/* Returns true if this replica is that member. */
bool sharding_is_ours(const struct sharding *s, uint64_t key);
/* Returns true if this replica is a member. */
bool sharding_is_member(const struct sharding *s);
/* Returns the name of this replica among the members. */
const char *sharding_self(const struct sharding *s);
/* The counts, as the metrics show them. Any thread. */
struct sharding_counts {
    int64_t members;
    int64_t index; /* our index among the members; -1: we are no member */
    int64_t own;   /* targets */
    int64_t others;
};
struct sharding_counts sharding_counts(const struct sharding *s);
/* Appends a sentence about which replica scrapes a key: "scraped by profpull-1 (this is profpull-0;
 * members: profpull-0, profpull-1)". Returns false if out of memory. */
bool sharding_explain(const struct sharding *s, uint64_t key, struct buf *out);

#endif

/* All targets that discovery has found, and which of them are ours.
 *
 * Where replicas share the targets, each hands only its own to the scraper. A target of another
 * replica, or one that is about to be ours, is kept as what the rules made of it, without schedule,
 * baseline or connection. (Of pods that are left to others, discovery tells nothing.) When
 * ownership changes only the groups with a target that moves are told. One thread.
 */
#ifndef PROFPULL_AGENT_SHARING_OWNED_TARGETS_H
#define PROFPULL_AGENT_SHARING_OWNED_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scraper/scraper.h"

struct holdings_options {
    bool (*owns)(void *arg, uint64_t key);
    /* As scraper_set_group(): what of a group is ours now. Takes over the references. */
    bool (*tell)(void *arg, size_t job, const char *source, struct target *const *targets,
                 size_t n);
    void *arg;
};

struct holdings;

struct holdings *holdings_new(const struct holdings_options *options); /* NULL if out of memory */
/* Tells nobody. Accepts NULL, returns NULL. */
struct holdings *holdings_free(struct holdings *h);

/* Replaces the targets of one source (n 0 removes it) and tells what is ours of them. Takes over
 * the references in targets, not the arrays. False if out of memory: all is left as it was, or what
 * is ours has not been told. */
bool holdings_put(struct holdings *h, size_t job, const char *source, struct target *const *targets,
                  const uint64_t *keys, size_t n);

struct holdings_moves {
    size_t gained;
    size_t lost;
    size_t failed; /* groups that could not be told for want of memory: review again */
};
/* Ownership may have changed: tells the groups of what moves. */
struct holdings_moves holdings_review(struct holdings *h);

size_t holdings_owned(const struct holdings *h);
size_t holdings_total(const struct holdings *h);

#endif

/* All targets that discovery has found, by source, and which of them this replica owns.
 *
 * When replicas share the targets, each hands only its own to the scraper. Targets of other
 * replicas, and those about to become ours, are kept as relabelling left them: without schedule,
 * baseline or connection. (Discovery does not report pods owned by another replica at all.) A
 * change of ownership hands over only the sources with a target that moves. One thread.
 */
#ifndef PROFPULL_AGENT_SHARING_OWNED_TARGETS_H
#define PROFPULL_AGENT_SHARING_OWNED_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scraper/scraper.h"

struct owned_targets_options {
    bool (*owns)(void *arg, uint64_t key);
    /* Does the work of scraper_set_group(), with the owned targets of a source. Takes over the
     * references. */
    bool (*hand_over)(void *arg, size_t job, const char *source, struct target *const *targets,
                      size_t n);
    void *arg;
};

struct owned_targets;

struct owned_targets *owned_targets_new(const struct owned_targets_options *options);
/* Frees the object without handing anything over. Accepts NULL, returns NULL. */
struct owned_targets *owned_targets_free(struct owned_targets *o);

/* Replaces the targets of one source (n 0 removes it) and hands over those that are ours. Takes
 * over the references in targets, not the arrays. Returns false if out of memory: either nothing
 * has changed, or the hand-over failed and the next review repeats it. */
bool owned_targets_put(struct owned_targets *o, size_t job, const char *source,
                       struct target *const *targets, const uint64_t *keys, size_t n);

struct owned_moves {
    size_t gained;
    size_t lost;
    /* Sources whose hand-over failed because memory ran out: call the review again. */
    size_t failed;
};
/* Hands over the sources whose targets move, after ownership may have changed. */
struct owned_moves owned_targets_review(struct owned_targets *o);

/* Returns how many targets are ours, and how many there are. */
size_t owned_targets_count(const struct owned_targets *o);
size_t owned_targets_total(const struct owned_targets *o);

#endif

/* Profiles of targets that wait for names, for at most symbols.wait of their job: delivered as soon
 * as no question is under way any more, or when the time is over.
 *
 * A waiting profile counts as accepted. If its destinations have no room later, it cannot be
 * refused any more. One thread, that of the scraper, except for held_name().
 */
#ifndef PROFPULL_AGENT_HELD_H
#define PROFPULL_AGENT_HELD_H

#include "agent/naming/naming.h"
#include "base/loop.h"
#include "base/worker.h"
#include "model/profile.h"

struct held;

struct held_options {
    struct naming *naming;
    struct worker_pool *workers;
    struct loop *loop;
    size_t bytes_max; /* of all waiting profiles; further ones do not wait */
    /* Delivers a profile, on the loop. Takes over the reference. */
    void (*deliver)(void *arg, struct profile *profile, uint64_t endpoints);
    void *arg;
};

struct held *held_new(const struct held_options *options, struct err *err);
/* Drops the profiles that wait. Accepts NULL, returns NULL. */
struct held *held_free(struct held *h);

/* Lets a profile wait, and takes over the reference. owner: the configuration of `sources`. Returns
 * false, and takes over nothing, if there is no room. */
bool held_put(struct held *h, struct profile *profile, uint64_t endpoints,
              const struct symbols_sources *sources, const struct config *owner);
bool held_is_empty(const struct held *h);
/* Lets no profile wait any longer, now and later. */
void held_release(struct held *h);

/* Adds names to a pushed body like naming_body(), and waits for them on this thread, which may
 * block. */
bool held_name(struct naming *n, const struct naming_source *source, struct sv body, char **ret,
               size_t *ret_size);

#endif

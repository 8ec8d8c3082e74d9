/* Claims: targets of one job or of several jobs that want the same URL and type take part in one
 * scrape.
 *
 * The first target leads the scrape. Each further target has a claim. If a target of another job
 * has equal settings (target_can_share()), its job follows: one request serves both, and each
 * profile is passed on once for each job, with that job's labels and destinations. A target with
 * other settings gets a scrape of its own, with a baseline of its own. If a job already takes part,
 * a second target of it is set aside as a duplicate. When the leader is removed, the next target of
 * its job takes over phase, state, transfer and baseline; if there is none, the first follower
 * does.
 *
 * When settings change, a job leaves the scrape with a reference to its baseline, or joins a scrape
 * whose baseline is still the same: no growth is counted twice for a job.
 *
 * A job takes part in one scrape of an identity at most. All calls on the engine's thread; the list
 * of claims changes under the table's lock.
 */
#ifndef PROFPULL_SCRAPER_CLAIMS_H
#define PROFPULL_SCRAPER_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scraper/scrape_metrics.h"

struct engine;
struct group;
struct scrape;
struct target;

/* Claims the i-th scrape of a target for its group. replaces: the target may take the place of one
 * that the group had before this update (e->round). Returns false if out of memory. */
bool claims_want(struct engine *e, struct group *g, struct target *t, size_t i, bool replaces);
/* Releases the part that the group has in the i-th scrape of a target, unless this update has
 * claimed that scrape again. */
void claims_release(struct engine *e, struct group *g, const struct target *t, size_t i);
/* Returns true if the group has a part in the i-th scrape of a target. */
bool claims_hold(const struct engine *e, const struct group *g, const struct target *t, size_t i);
/* Adds n to the count of a result, for each job that takes part in the scrape. */
void claims_count(const struct scrape *sc, enum scrape_result result, uint64_t n);
/* Counts a failure, and its reason, for each job that takes part in the scrape. */
void claims_failed(struct engine *e, const struct scrape *sc, enum reason reason);

#endif

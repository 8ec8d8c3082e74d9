/* Claims: targets of one job or of several jobs that want the same URL and type take part in one
 * scrape.
 *
 * The first target leads the scrape. Each further target has a claim. If a target of another job
 * comes with equal settings (target_can_share()), its job follows: one request, and each profile is
 * passed on once for each job, with that job's labels and destinations. A target with other
 * settings gets a scrape of its own, with a baseline of its own. A second target of a job that
 * takes part already is set aside. When the leader goes, the next target of its job takes over, or
 * else the first follower, with phase, state, transfer and baseline.
 *
 * When settings change, a job leaves the scrape with a reference to its baseline, or comes back to
 * one whose baseline is still the same: no growth is counted twice for a job.
 *
 * A job takes part in one scrape of an identity at most. The engine's thread only; the list of
 * claims changes under the table's lock.
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

/* Claims the i-th scrape of a target for its group. replaces: it may take the place of a target
 * that the group had before this update (e->round). False if out of memory. */
bool claims_want(struct engine *e, struct group *g, struct target *t, size_t i, bool replaces);
/* Gives up the part that the group has in the i-th scrape of a target, unless this update wants
 * it. */
void claims_release(struct engine *e, struct group *g, const struct target *t, size_t i);
/* Returns true if the group has a part in the i-th scrape of a target. */
bool claims_hold(const struct engine *e, const struct group *g, const struct target *t, size_t i);
/* Counts a result for each job that takes part. */
void claims_count(const struct scrape *sc, enum scrape_result result, uint64_t n);
/* Counts a failure for each job that takes part, also by its reason. */
void claims_failed(struct engine *e, const struct scrape *sc, enum reason reason);

#endif

/* Which targets of a job are scraped where only some of each service are: `sampling` of a job.
 *
 * Processes are told apart by host and port. Each has a rank, a hash of that; of the processes of
 * one service_name those with the lowest ranks are kept, all their targets together. So the choice
 * stays put while others come and go: one that comes displaces one at most, one that goes makes
 * room for one at most, and every scraper comes to the same choice.
 *
 * Takes what sources offer and says what is kept of each. One owner, no locking; sampler_set()
 * changes nothing that sampler_count() and sampler_list() read but between lock() and unlock().
 */
#ifndef PROFPULL_SCRAPER_SAMPLING_H
#define PROFPULL_SCRAPER_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>

#include "scraper/scraper.h"

struct sampler;

struct sampler *sampler_new(void);               /* NULL if out of memory */
struct sampler *sampler_free(struct sampler *s); /* accepts NULL, returns NULL */

struct sampler_calls {
    /* The targets that are kept of a source, after each change of them. Borrowed. */
    void (*keep)(void *arg, const char *source, struct target *const *targets, size_t n);
    void (*lock)(void *arg);
    void (*unlock)(void *arg);
    void *arg;
};

/* The targets of one source from now on (none removes it); takes over the references, also on
 * failure. keep() is called for this source, and for each other one whose choice has changed. The
 * share applies to the whole job: percent of the processes of each service, rounded up (0: all),
 * and no more than max (0: any number). False if out of memory: nothing has changed then. */
bool sampler_set(struct sampler *s, const char *source, unsigned percent, unsigned max,
                 struct target *const *targets, size_t n, const struct sampler_calls *calls);

/* Targets that are not kept. */
size_t sampler_left_out(const struct sampler *s);
/* Up to max services of which not all is kept, in no order; returns how many. Service names are
 * copied (one that finds no memory is left out), jobs are NULL. */
size_t sampler_list(const struct sampler *s, struct sampled_service *out, size_t max);

#endif

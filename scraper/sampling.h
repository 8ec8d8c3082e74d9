/* The key `sampling` of a job: chooses the targets to scrape if only a share of each service is
 * scraped.
 *
 * A process is identified by host and port. Its rank is a hash of both. Among the processes of one
 * service_name, the ones with the lowest ranks are kept, each with all its targets. The choice is
 * therefore stable: a new process displaces at most one, a removed one admits at most one, and
 * every replica makes the same choice.
 *
 * The sampler knows the targets by rank, not by source: a source offers its targets, and the owner
 * of the source keeps a handle of that offer. One thread, no locking; what sampler_list() reads
 * changes only in sampler_set().
 */
#ifndef PROFPULL_SCRAPER_SAMPLING_H
#define PROFPULL_SCRAPER_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>

#include "scraper/scraper.h"

struct sampler;
struct offer; /* the targets of one source */

struct sampler *sampler_new(const char *job);    /* job: its name; NULL if out of memory */
struct sampler *sampler_free(struct sampler *s); /* accepts NULL, returns NULL; offers remain */

/* Replaces the targets of one source; takes over the references, also on failure. *offer is the
 * handle of the former offer (NULL: none), and is set to that of the new one, or to NULL if n is 0.
 * Call sampler_next() next, also on failure. The share in the job of the targets applies to the
 * whole job: sample_percent of the processes of each service, rounded up (0: all), and no more than
 * sample_max (0: any number). Returns false if out of memory; nothing has changed then. */
bool sampler_set(struct sampler *s, struct offer **offer, void *owner,
                 struct target *const *targets, size_t n);
/* Returns the next owner of a source whose choice has changed, with the targets that are kept,
 * which are valid until the next sampler_set(). A source that has just been set counts as changed.
 * Returns false if there are no more. */
bool sampler_next(struct sampler *s, void **ret_owner, struct target *const **ret_kept,
                  size_t *ret_n);
/* Frees an offer after the last use of its sampler. Accepts NULL. */
void offer_free(struct offer *o);

/* Returns true if nothing is offered. */
bool sampler_is_empty(const struct sampler *s);
/* Returns the number of targets that are not kept. */
size_t sampler_left_out(const struct sampler *s);
/* Lists up to max services of which some processes are left out, in no order, and returns their
 * number. Service names are copied (a service is left out if there is no memory for its name); a
 * job is NULL if there is none for its name. */
size_t sampler_list(const struct sampler *s, struct sampled_service *out, size_t max);

#endif

/* A running process gets another configuration: what has changed, and which number each job and
 * endpoint has from then on.
 *
 * Jobs and endpoints are identified by their names. While a process runs, each has a slot: a number
 * that stays with the name from one configuration to the next, whatever its place in the file is.
 * Whoever keeps state of a job or an endpoint keeps it by slot (`struct target_group`, `struct
 * profile`, forward_to, counters); with the first configuration slots are indices. A slot is given
 * to another name only when neither the new configuration nor the one in force has it, and, of an
 * endpoint, when its destination is gone.
 *
 * Pure functions; any thread, except config_assign_slots(), which comes before a configuration is
 * shared.
 */
#ifndef PROFPULL_CONFIG_CHANGE_H
#define PROFPULL_CONFIG_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"

/* Gives the jobs and endpoints of `next` the slots of those with the same names in `now`, and new
 * ones free slots; forward_to and the ways follow. An endpoint whose data is elsewhere from now on
 * (another directory, a directory instead of a server, another spool) counts as a new one: both
 * exist until the old one has been emptied. busy: bits of further slots whose destinations are not
 * gone yet. Once for each `next`. False if an endpoint would need a 65th slot, or memory ran out.
 */
bool config_assign_slots(struct config *next, const struct config *now, uint64_t busy,
                         struct err *err);

/* The job or the endpoint with a slot; NULL if there is none. */
const struct config_job *config_job_at(const struct config *c, size_t slot);
const struct config_endpoint *config_endpoint_at(const struct config *c, size_t slot);
/* One more than the highest slot of a job: the size of an array by slots. */
size_t config_job_slots(const struct config *c);
/* The bits of all endpoints. */
uint64_t config_endpoint_bits(const struct config *c);

/* Do they mean the same? Two values are compared by hashes of all that a dump shows of them, with
 * the secrets; positions do not count. False also if memory ran out. */
bool config_same(const struct config *a, const struct config *b);
bool config_same_job(const struct config *a, const struct config_job *x, const struct config *b,
                     const struct config_job *y);
/* A part of jobs: their sources. */
bool config_same_source(const struct config *a, const struct config_source *x,
                        const struct config *b, const struct config_source *y);
/* With the external labels that it has in the end. */
bool config_same_endpoint(const struct config *a, const struct config_endpoint *x,
                          const struct config *b, const struct config_endpoint *y);

enum config_part {
    CONFIG_PART_GLOBAL,
    CONFIG_PART_SERVER,
    CONFIG_PART_QUERY,
    CONFIG_PART_RECEIVE,
    CONFIG_PART_LOG,
    CONFIG_PART_SHARDING,
    CONFIG_PARTS,
};
/* "global", "server", ... */
const char *config_part_name(enum config_part part);
bool config_same_part(const struct config *a, const struct config *b, enum config_part part);

/* A hash of config_dump(), so without the secrets: the same for every process with the same
 * configuration. 0 if memory ran out. */
uint64_t config_hash(const struct config *c);

#endif

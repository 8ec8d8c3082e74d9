/* Compares a new configuration with the one in force: which parts have changed, and which slot each
 * job and endpoint gets.
 *
 * Jobs and endpoints are identified by their names. While a process runs, each has a slot: a number
 * that stays with the name from one configuration to the next, whatever its place in the file is.
 * All state of a job or an endpoint is kept by slot (`struct target_group`, `struct profile`,
 * forward_to, counters). In the first configuration of a process, slots are indices. A slot is
 * given to another name only if neither the new configuration nor the one in force uses it. The
 * slot of an endpoint also has to wait until its former destination has ended.
 *
 * The functions are pure and may run on any thread, except config_assign_slots(), which changes
 * `next` and must run before other threads see it.
 */
#ifndef PROFPULL_CONFIG_CHANGE_H
#define PROFPULL_CONFIG_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"

/* Gives the jobs and endpoints of `next` the slots of those with the same names in `now`, and gives
 * free slots to new ones; forward_to and the ways are renumbered to match. An endpoint whose data
 * moves (to another directory, from a server to a directory, to another spool) counts as a new one:
 * both exist until the old one has been emptied. busy: bits of further slots whose destinations
 * have not ended yet. Call it once for each `next`. False if an endpoint would need a 65th slot, or
 * memory ran out. */
bool config_assign_slots(struct config *next, const struct config *now, uint64_t busy,
                         struct err *err);

/* Return the job or the endpoint that has a slot; NULL if none has it. */
const struct config_job *config_job_at(const struct config *c, size_t slot);
const struct config_endpoint *config_endpoint_at(const struct config *c, size_t slot);
/* Returns the highest slot of a job plus one: the size of an array that is indexed by slots. */
size_t config_job_slots(const struct config *c);
/* Returns a set with one bit for the slot of each endpoint. */
uint64_t config_endpoint_bits(const struct config *c);

/* These return true if both values mean the same. They compare hashes of everything that a dump
 * shows, secrets included; positions in the file do not count. If memory ran out, they return
 * false. */
bool config_same(const struct config *a, const struct config *b);
bool config_same_job(const struct config *a, const struct config_job *x, const struct config *b,
                     const struct config_job *y);
/* Compares one source of each job. */
bool config_same_source(const struct config *a, const struct config_source *x,
                        const struct config *b, const struct config_source *y);
/* Compares two endpoints, including the external labels that result from the global ones and their
 * own. */
bool config_same_endpoint(const struct config *a, const struct config_endpoint *x,
                          const struct config *b, const struct config_endpoint *y);

enum config_part {
    CONFIG_PART_GLOBAL,
    CONFIG_PART_SERVER,
    CONFIG_PART_QUERY,
    CONFIG_PART_RECEIVE,
    CONFIG_PART_LOG,
    CONFIG_PART_SHARDING,
    CONFIG_PART_SYMBOLS,
    CONFIG_PARTS,
};
/* "global", "server", ... */
const char *config_part_name(enum config_part part);
bool config_same_part(const struct config *a, const struct config *b, enum config_part part);

/* Returns a hash of config_dump(), which contains no secrets. Every process with the same
 * configuration has the same hash. 0 if memory ran out. */
uint64_t config_hash(const struct config *c);

#endif

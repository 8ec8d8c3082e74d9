/* The baseline of one scrape: the values of its counters, stack by stack, at the last delta.
 *
 * Immutable once it is complete: each profile makes a new one, and the old one is released
 * only when the new profile has been handed on. So a failure loses nothing, and a worker may read
 * it without a lock. Reference-counted (atomic).
 *
 * Rows in the order of the profile, without a table: a stack with two counters takes 16 + 2 x 8 + 1
 * = 33 bytes. The next profile nearly always has the same stacks in the same order, so a stack is
 * first looked for after the one that was found last; a table is made for the time of a delta, and
 * only if one was not there.
 */
#ifndef PROFPULL_PPROF_DELTA_STATE_H
#define PROFPULL_PPROF_DELTA_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/index.h"
#include "pprof/scratch.h"

/* A stack missing from so many profiles in a row is forgotten. If it came back later, it would
 * count from zero again; Go never removes a stack from its cumulative profiles. */
#define DELTA_AGE_MAX 10

struct delta_state {
    atomic_uint refs;
    uint32_t columns;      /* counters of a stack */
    uint64_t columns_key;  /* of their names */
    int64_t time_nanos;    /* of the profile */
    int64_t until_ns;      /* wall clock: the end of its window */
    int64_t kept_until_ms; /* its owner's: when to free it, while no scrape has it */
    size_t plain_size;     /* of the profile when inflated: a hint for the next one */
    size_t bytes;          /* of the whole block */
    size_t n;              /* stacks */
    struct pprof_key *keys;
    int64_t *values; /* n x columns */
    uint8_t *ages;   /* profiles since the stack was seen */
};

/* The memory of a state with room for n stacks. */
size_t delta_state_bytes(size_t n, size_t columns);
/* An empty state with room for n stacks. NULL if out of memory. */
struct delta_state *delta_state_new(size_t n, size_t columns);
struct delta_state *delta_state_ref(struct delta_state *s);
struct delta_state *delta_state_unref(struct delta_state *s); /* accepts NULL, returns NULL */
/* Adds a stack that is not there yet; there must be room. */
void delta_state_add(struct delta_state *s, struct pprof_key key, const int64_t *values,
                     uint8_t age);

static inline int64_t *delta_state_values(const struct delta_state *s, size_t i)
{
    return s->values + i * s->columns;
}

/* Looks the stacks of a profile up, one after the other. */
struct delta_finder {
    const struct delta_state *state;
    struct scratch *scratch; /* for the table */
    size_t next;             /* the stack after the one that was found last */
    uint32_t *slots;         /* stack + 1 by key, 0 where free; NULL: not made yet */
    size_t mask;
    bool no_memory; /* the table could not be made: nothing is found any more */
};

/* The number of a stack. False if it is not there. */
bool delta_find(struct delta_finder *f, struct pprof_key key, size_t *ret);

#endif

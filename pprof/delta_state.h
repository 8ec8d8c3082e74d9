/* The baseline of one scrape: the values of its counters, stack by stack, at the last delta.
 *
 * Immutable once it is complete: each profile makes a new one, and the old one is released
 * only when the new profile has been handed on. So a failure loses nothing, and a worker may read
 * it without a lock. Reference-counted (atomic).
 *
 * Open addressing at a load of four fifths, laid out at its final size: a stack with two counters
 * takes (16 + 2 x 8 + 1) x 5/4 = 41 bytes.
 */
#ifndef PROFPULL_PPROF_DELTA_STATE_H
#define PROFPULL_PPROF_DELTA_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/index.h"

/* A stack missing from so many profiles in a row is forgotten. If it came back later, it would
 * count from zero again; Go never removes a stack from its cumulative profiles. */
#define DELTA_AGE_MAX 10

struct delta_state {
    atomic_uint refs;
    uint32_t columns;       /* counters of a stack */
    uint64_t columns_key;   /* of their names */
    int64_t time_nanos;     /* of the profile */
    int64_t until_ns;       /* wall clock: the end of its window */
    int64_t kept_until_ms;  /* its owner's: when to free it, while no scrape has it */
    size_t plain_size;      /* of the profile when inflated: a hint for the next one */
    size_t bytes;           /* of the whole block */
    size_t n;               /* stacks */
    size_t cap;             /* slots */
    struct pprof_key *keys; /* both halves 0 where free */
    int64_t *values;        /* cap x columns */
    uint8_t *ages;          /* profiles since the stack was seen */
};

/* The memory of a state with room for n stacks. */
size_t delta_state_bytes(size_t n, size_t columns);
/* An empty state with room for n stacks. NULL if out of memory. */
struct delta_state *delta_state_new(size_t n, size_t columns);
struct delta_state *delta_state_ref(struct delta_state *s);
struct delta_state *delta_state_unref(struct delta_state *s); /* accepts NULL, returns NULL */
/* The slot of a stack. False if it is not there. */
bool delta_state_find(const struct delta_state *s, struct pprof_key key, size_t *ret_slot);
/* Adds a stack that is not there yet; there must be room. */
void delta_state_add(struct delta_state *s, struct pprof_key key, const int64_t *values,
                     uint8_t age);

static inline bool delta_state_is_free(const struct delta_state *s, size_t slot)
{
    return (s->keys[slot].half[0] | s->keys[slot].half[1]) == 0;
}

static inline int64_t *delta_state_values(const struct delta_state *s, size_t slot)
{
    return s->values + slot * s->columns;
}

#endif

/* The baseline of one scrape: the values of its counters, stack by stack, at the last delta.
 *
 * Immutable once it is complete: each profile makes a new one, and the old one is released
 * only when the new profile has been handed on. So a failure loses nothing, and a worker may read
 * it without a lock. Reference-counted (atomic).
 *
 * Rows in the order of the profile, without a table. A stack is known by a key of 64 bits: with a
 * seed that nobody knows, two stacks of 500,000 are mistaken for one in one case of 10^8, and those
 * of a profile of usual size in one of 10^13. Each column takes as many bytes as its largest value
 * needs, so that a stack with two counters takes 14 to 18 bytes. delta_stacks_read() looks stacks
 * up.
 */
#ifndef PROFPULL_PPROF_DELTA_STATE_H
#define PROFPULL_PPROF_DELTA_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <endian.h>

#include "pprof/index.h"
#include "pprof/scratch.h"

/* A stack missing from so many profiles in a row is forgotten. If it came back later, it would
 * count from zero again; Go never removes a stack from its cumulative profiles. */
#define DELTA_AGE_MAX 10

/* Where a counter is in a row. */
struct delta_column {
    uint64_t mask; /* all bits that a value may have: whole bytes */
    uint32_t at;
    uint32_t width; /* in bytes, 0 to 8 */
};

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
    size_t row;            /* bytes of the values of a stack */
    uint64_t *keys;
    uint8_t *ages; /* profiles since the stack was seen */
    char *values;  /* n rows, and room to read and write 8 bytes at the end of the last one */
    struct delta_column column[];
};

/* An empty state with room for n stacks, whose counters have no other bits than those of their
 * columns: bits[columns]. NULL if out of memory, which is taken from the scratch's share. */
struct delta_state *delta_state_new(struct scratch *s, size_t n, const uint64_t *bits,
                                    size_t columns);
struct delta_state *delta_state_ref(struct delta_state *s);
struct delta_state *delta_state_unref(struct delta_state *s); /* accepts NULL, returns NULL */

static inline uint64_t delta_state_value(const struct delta_state *s, size_t i, size_t column)
{
    uint64_t value;
    memcpy(&value, s->values + i * s->row + s->column[column].at, sizeof(value));
    return le64toh(value) & s->column[column].mask;
}

/* Adds a stack that is not there yet; there must be room. values: one for each column. */
static inline void delta_state_add(struct delta_state *s, uint64_t key, const uint64_t *values,
                                   uint8_t age)
{
    size_t i = s->n++;
    char *row = s->values + i * s->row;
    s->keys[i] = key;
    s->ages[i] = age;
    /* Each value is followed by bytes of 0, which the next one overwrites. */
    for (size_t j = 0; j < s->columns; j++) {
        uint64_t value = htole64(values[j]);
        memcpy(row + s->column[j].at, &value, sizeof(value));
    }
}

#endif

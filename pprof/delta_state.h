/* The baseline of one scrape: the values of its counters, stack by stack, at the last delta.
 *
 * A baseline is immutable once it is complete. Each profile makes a new one, and the old one is
 * released only when the new profile has been forwarded. So a failure loses nothing, and a worker
 * may read a baseline without a lock. Baselines are reference-counted (atomic).
 *
 * Rows are in the order of the profile, without a table; delta_stacks_read() finds stacks. A stack
 * is identified by a key of 64 bits with a secret seed: the probability that any two of 500,000
 * stacks have the same key is 10^-8, and 10^-13 in a profile of usual size. Each column takes as
 * many bytes as its largest value needs, so that a stack with two counters takes 14 to 18 bytes.
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

/* A stack that is missing from this many profiles in a row is forgotten. If it came back later, it
 * would be treated as new. Go never removes a stack from its cumulative profiles. */
#define DELTA_AGE_MAX 10

/* The place of a counter in a row. */
struct delta_column {
    uint64_t mask; /* all bits that a value may have: whole bytes */
    uint32_t at;
    uint32_t width; /* in bytes, 0 to 8 */
};

struct delta_state {
    atomic_uint refs;
    uint32_t columns;      /* counters of a stack */
    uint64_t columns_key;  /* hash of the names of the counters */
    int64_t time_nanos;    /* of the profile */
    int64_t until_ns;      /* wall clock: the end of its window */
    int64_t kept_until_ms; /* its owner's: when to free it, while no scrape has it */
    size_t plain_size;     /* size of the inflated profile: a hint for the next one */
    size_t bytes;          /* size of the whole block */
    size_t n;              /* stacks */
    size_t row;            /* bytes of the values of a stack */
    uint64_t *keys;
    uint8_t *ages; /* profiles since the stack was seen */
    char *values;  /* n rows, and room to read and write 8 bytes at the end of the last one */
    struct delta_column column[];
};

/* Makes an empty state with room for n stacks. bits[i]: all bits that the values of column i may
 * have. Its memory counts towards the limit of the scratch. Returns NULL if out of memory. */
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

/* Adds a stack that the state does not have yet; there must be room. values: one for each
 * column. */
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

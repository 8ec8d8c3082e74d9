/* Shared by the parts of the delta engine: delta_stacks.c reads the samples, delta.c subtracts,
 * delta_write.c writes. */
#ifndef PROFPULL_PPROF_DELTA_PRIVATE_H
#define PROFPULL_PPROF_DELTA_PRIVATE_H

#include "base/buf.h"
#include "pprof/delta.h"
#include "pprof/index.h"

/* The counters among the columns. */
struct delta_columns {
    size_t types;
    size_t n;                    /* counters */
    uint8_t at[DELTA_TYPES_MAX]; /* their columns */
    uint64_t key;                /* hash of their names in order */
};

/* All samples of one stack. Their values are in a separate table, one row for each stack. */
struct delta_stack {
    uint64_t key;
    uint32_t sample; /* the number of the first one */
    uint32_t old;    /* its number in the baseline + 1; 0 if the baseline does not have it */
};

/* The stacks of a profile, in memory of a scratch.
 *
 * The next profile nearly always has the same stacks in the same order, so the search for a stack
 * begins in the baseline after the stack that was found last. Only if a stack is not there, a table
 * is made. It maps keys to numbers: first those of the baseline's stacks, then those of the
 * rows. */
struct delta_stacks {
    struct delta_stack *rows;
    int64_t *values; /* the sums of each stack's samples: n rows of columns.types */
    size_t n;
    const uint64_t *old_keys; /* of the baseline */
    size_t n_old;             /* its stacks, or 0 */
    size_t n_found;           /* stacks of the baseline that the profile has */
    size_t next;              /* the stack after the one that was found last */
    uint32_t *row_of;         /* row + 1 of each of them, 0 if the profile does not have it */
    uint32_t *slots;          /* number + 1 by key, 0 where free; NULL: not made yet */
    size_t mask;
    struct scratch *scratch;
    uint32_t *moved; /* rows that are written; room for n */
    size_t n_moved;
    bool has_texts; /* a sample has a label that is a text */
};

/* Reads the samples of a profile of pprof_index_frame() with its keys, checks them, and finds their
 * stacks in the baseline (old, or NULL), which must have the same columns. Returns false if a
 * sample is damaged, refers to an entry that does not exist, or has a negative counter, if a sum is
 * too large, or if out of memory. */
bool delta_stacks_read(struct delta_stacks *s, struct pprof_index *x,
                       const struct delta_columns *columns, const struct delta_state *old,
                       struct scratch *scratch, struct err *err);

/* Writes the profile with one sample for each stack in s->moved, and everything that these samples
 * refer to. Marks used entries in x, so it can be called only once for each x. Returns false if out
 * of memory. */
bool delta_write(struct pprof_index *x, const struct delta_stacks *s, int64_t duration_nanos,
                 struct scratch *scratch, struct buf *out);

#endif

/* A profile that is being added to a merge. Shared by merge.c, which merges heads and values, and
 * merge_entries.c, which reads strings, functions, mappings and locations.
 *
 * Each function finds the entry of a merge that a place of the profile has, or adds it. It returns
 * false, with an error, at the merge's limit or if out of memory.
 */
#ifndef PROFPULL_PPROF_MERGE_ADDING_H
#define PROFPULL_PPROF_MERGE_ADDING_H

#include "pprof/index.h"
#include "pprof/merge_private.h"

/* A label of the sample being read. */
struct label {
    uint32_t words[LABEL_WORDS];
    struct sv key; /* in the profile */
    uint32_t place;
};

/* A profile that is being added. */
struct adding {
    struct merge *m;
    struct scratch *scratch;
    struct pprof_index x;
    struct merge_head head;                /* as it will be */
    uint32_t *numbers[PROFILE_STRING + 1]; /* by field and place: entry + 1, or 0 if not yet */
    uint32_t *stacks;                      /* of each sample that is not zero */
    size_t n_stacks;
    int64_t *values; /* of these samples, in the order of the types */
    uint32_t *words; /* of a sample; room for the longest message */
    uint32_t *place; /* the words of a location; as much room */
    struct label *labels;
    struct err *err;
};

static inline void merge_put_u64(uint32_t *words, uint64_t value)
{
    words[0] = (uint32_t)value;
    words[1] = (uint32_t)(value >> 32);
}

static inline bool merge_add_words(struct adding *a, enum merge_table table, const uint32_t *words,
                                   size_t n_key, size_t n, uint32_t *ret)
{
    return merge_table_add(&a->m->tables[table], &a->m->budget, words, n_key * sizeof(*words),
                           n * sizeof(*words), ret, a->err);
}

bool merge_add_string(struct adding *a, uint64_t place, uint32_t *ret);
bool merge_add_mapping(struct adding *a, size_t place, uint32_t *ret);
bool merge_add_location(struct adding *a, size_t place, uint32_t *ret);

#endif

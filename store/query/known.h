/* Private to stacks.c: the stacks that were seen so far, and the nodes of their leaves.
 *
 * An open hash table whose keys are hashes already. The keys and the leaves are arrays of their
 * own, so that a lookup waits for memory once. The memory counts towards a budget. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_KNOWN_H
#define PROFPULL_STORE_QUERY_KNOWN_H

#include "pprof/index.h"
#include "pprof/table.h"

/* All members are private. */
struct known {
    struct pprof_key *keys; /* by slot */
    uint32_t *leaves;       /* by slot: 1 + the leaf, 0 where free */
    size_t n;
    size_t n_slots; /* a power of two, or 0; at most two thirds are used */
};

void known_done(struct known *k);

/* Makes room for one more stack. Returns false with ERR_LIMIT or ERR_MEMORY. */
bool known_grow(struct known *k, struct budget *b, struct err *err);

/* Asks the processor to load the slot of a key into its cache. Always inline, since GCC removes
 * calls of a function that only prefetches. */
static inline __attribute__((always_inline)) void known_prefetch(const struct known *k,
                                                                 const struct pprof_key *key)
{
    if (k->n_slots > 0) {
        size_t slot = key->half[0] & (k->n_slots - 1);
        __builtin_prefetch(&k->leaves[slot]);
        __builtin_prefetch(&k->keys[slot]);
    }
}

/* Returns the slot of a key: the slot that has it, or a free one. There must be room for one more
 * stack. */
static inline size_t known_slot(const struct known *k, const struct pprof_key *key)
{
    size_t slot = key->half[0] & (k->n_slots - 1);
    while (k->leaves[slot] != 0 &&
           (k->keys[slot].half[0] != key->half[0] || k->keys[slot].half[1] != key->half[1])) {
        slot = (slot + 1) & (k->n_slots - 1);
    }
    return slot;
}

/* Returns true, and the leaf, if a slot of known_slot() is not free. */
static inline bool known_leaf(const struct known *k, size_t slot, uint32_t *ret)
{
    *ret = k->leaves[slot] - 1;
    return k->leaves[slot] != 0;
}

/* Adds a stack at the free slot of its key. leaf: below UINT32_MAX. */
static inline void known_add(struct known *k, size_t slot, const struct pprof_key *key,
                             uint32_t leaf)
{
    k->keys[slot] = *key;
    k->leaves[slot] = leaf + 1;
    k->n++;
}

#endif

/* A table of different byte strings, numbered 0, 1, 2, ... in order of arrival.
 *
 * An entry is a key, and bytes after it that are not compared. One budget bounds the memory of
 * several tables. The last entries can be taken back. One owner, no
 * locking.
 */
#ifndef PROFPULL_PPROF_TABLE_H
#define PROFPULL_PPROF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Bytes that several growing arrays hold, and may hold (at most UINT32_MAX). */
struct budget {
    size_t used;
    size_t max;
};

/* Makes room for n elements of so many bytes in an array that has room for *cap (p is NULL for 0).
 * Returns the array, which may have moved. NULL, with ERR_LIMIT or ERR_MEMORY, if there is no room:
 * then p and *cap are as they were. */
void *budget_grow(struct budget *b, void *p, size_t *cap, size_t n, size_t size, struct err *err);

struct table_entry {
    uint32_t at;
    uint32_t n_key;
    uint32_t n; /* of the key and what follows it */
    uint32_t hash;
};

/* All members are private, except n. */
struct table {
    size_t n; /* entries */
    uint64_t seed;
    struct table_entry *entries;
    char *bytes;
    uint32_t *slots; /* number + 1, 0 where free */
    size_t entries_cap;
    size_t bytes_cap;
    size_t len;
    size_t slots_n; /* a power of two, or 0 */
};

/* seed: unknown to those who choose the keys. Allocates nothing. */
void merge_table_init(struct table *t, uint64_t seed);
void merge_table_done(struct table *t);

/* The number of the entry whose key is the first n_key of n bytes; they become a new one if there
 * is none. False at the budget's limit, and out of memory: then nothing has changed. */
bool merge_table_add(struct table *t, struct budget *b, const void *data, size_t n_key, size_t n,
                     uint32_t *ret, struct err *err);
/* Removes all entries but the first n. */
void merge_table_truncate(struct table *t, size_t n);

/* The bytes of an entry, *ret_n of them; at a multiple of 4 if all entries have such sizes. Valid
 * until the next merge_table_add(). */
static inline const void *merge_table_get(const struct table *t, uint32_t i, size_t *ret_n)
{
    *ret_n = t->entries[i].n;
    return t->bytes + t->entries[i].at;
}

#endif

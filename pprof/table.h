/* A table of different byte strings, numbered 0, 1, 2, ... in the order in which they are added.
 *
 * An entry is a key, followed by bytes that are not compared. One budget bounds the memory of
 * several tables. The last entries can be removed again. A table has one owner and no lock.
 */
#ifndef PROFPULL_PPROF_TABLE_H
#define PROFPULL_PPROF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The bytes that several growing arrays hold together, and their limit (at most UINT32_MAX). */
struct budget {
    size_t used;
    size_t max;
};

/* Makes room for n elements of `size` bytes in an array that has room for *cap (p is NULL if *cap
 * is 0). Returns the array, which may have moved. If there is no room, returns NULL with ERR_LIMIT
 * or ERR_MEMORY, and p and *cap are as they were. */
void *budget_grow(struct budget *b, void *p, size_t *cap, size_t n, size_t size, struct err *err);

struct table_entry {
    uint32_t at;
    uint32_t n_key;
    uint32_t n; /* bytes of the key and of what follows it */
};

/* A slot has the hash as well, so that another entry with the same slot is passed over without
 * reading the entry: in a large table, each entry is a wait for memory. */
struct table_slot {
    uint32_t hash;
    uint32_t entry; /* number + 1, 0 where free */
};

/* All members are private, except n. */
struct table {
    size_t n; /* entries */
    uint64_t seed;
    struct table_entry *entries;
    char *bytes;
    struct table_slot *slots;
    size_t next; /* the entry after the one found last; it may not exist */
    size_t left; /* the last value of `next` that was not found; its entry may not exist either */
    size_t entries_cap;
    size_t bytes_cap;
    size_t len;
    size_t slots_n; /* a power of two, or 0 */
};

/* Makes an empty table; allocates nothing. seed: must be unknown to those who choose the keys. */
void merge_table_init(struct table *t, uint64_t seed);
void merge_table_done(struct table *t);

/* Removes all entries, and keeps the memory. */
void merge_table_clear(struct table *t);

/* Makes room for n entries, if the budget allows it, so that the table need not grow step by step.
 */
void merge_table_reserve(struct table *t, struct budget *b, size_t n);

/* Finds the entry whose key is the first n_key of the n bytes, or adds the bytes as a new entry.
 * *ret is its number. Returns false, and changes nothing, at the budget's limit or if out of
 * memory. */
bool merge_table_add(struct table *t, struct budget *b, const void *data, size_t n_key, size_t n,
                     uint32_t *ret, struct err *err);
/* Returns the hash of a key for merge_table_add_hashed(), and has the memory that this will read
 * loaded: a caller that does something else in between need not wait for it. */
uint32_t merge_table_hash(const struct table *t, const void *key, size_t n);
/* Does the same as merge_table_add(), with the hash of the key. */
bool merge_table_add_hashed(struct table *t, struct budget *b, const void *data, size_t n_key,
                            size_t n, uint32_t hash, uint32_t *ret, struct err *err);
/* Removes all entries but the first n. */
void merge_table_truncate(struct table *t, size_t n);

/* Returns the bytes of an entry; *ret_n is their number. They are aligned to 4 if the sizes of all
 * entries are multiples of 4, and valid until the next merge_table_add(). */
static inline const void *merge_table_get(const struct table *t, uint32_t i, size_t *ret_n)
{
    *ret_n = t->entries[i].n;
    return t->bytes + t->entries[i].at;
}

#endif

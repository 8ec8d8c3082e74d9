#include "pprof/table.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 16
#define ELEMENTS_FIRST 16

void *budget_grow(struct budget *b, void *p, size_t *cap, size_t n, size_t size, struct err *err)
{
    if (n <= *cap) {
        return p;
    }
    size_t want = *cap + *cap / 2 < n ? n : *cap + *cap / 2;
    want = want < ELEMENTS_FIRST ? ELEMENTS_FIRST : want;
    size_t max = b->max < UINT32_MAX ? b->max : UINT32_MAX;
    if (want > max / size || (want - *cap) * size > max - b->used) {
        err_set(err, ERR_LIMIT, "needs more than %zu bytes of working memory", max);
        return NULL;
    }
    void *grown = realloc(p, want * size);
    if (grown == NULL) {
        err_memory(err);
        return NULL;
    }
    b->used += (want - *cap) * size;
    *cap = want;
    return grown;
}

void merge_table_init(struct table *t, uint64_t seed)
{
    *t = (struct table){.seed = seed};
}

void merge_table_done(struct table *t)
{
    free(t->entries);
    free(t->bytes);
    free(t->slots);
    merge_table_init(t, t->seed);
}

void merge_table_clear(struct table *t)
{
    t->n = t->len = t->next = t->left = 0;
    if (t->slots_n > 0) {
        memset(t->slots, 0, t->slots_n * sizeof(*t->slots));
    }
}

/* ---- hashes ---------------------------------------------------------------------------------- */

#define ODD_1 UINT64_C(0x9e3779b97f4a7c15)
#define ODD_2 UINT64_C(0xbb67ae8584caa73b)

static uint64_t load8(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    return x;
}

static uint64_t load4(const unsigned char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof(x));
    return x;
}

/* Combines two numbers: the halves of their product of 128 bits. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Reads at most 16 bytes into two numbers. Some bytes are read twice. */
static void load_tail(const unsigned char *p, size_t n, uint64_t ret[2])
{
    if (n >= 8) {
        ret[0] = load8(p);
        ret[1] = load8(p + n - 8);
    } else if (n >= 4) {
        ret[0] = load4(p);
        ret[1] = load4(p + n - 4);
    } else if (n > 0) {
        ret[0] = p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    }
}

/* Takes 16 bytes by one multiplication, where hash_bytes() takes 8 by two. The hash need not be the
 * same on every machine. */
static uint32_t hash_of(const void *key, size_t n, uint64_t seed)
{
    const unsigned char *p = key;
    uint64_t hash = seed ^ (n * ODD_1);
    uint64_t tail[2] = {0};
    for (; n > 16; n -= 16, p += 16) {
        hash = fold(load8(p) ^ seed ^ ODD_1, load8(p + 8) ^ hash);
    }
    load_tail(p, n, tail);
    hash = fold(tail[0] ^ seed ^ ODD_2, tail[1] ^ hash);
    return (uint32_t)fold(hash ^ ODD_1, seed ^ ODD_2);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static bool has_key(const struct table *t, const struct table_entry *e, const void *key, size_t n)
{
    return e->n_key == n && (n == 0 || memcmp(t->bytes + e->at, key, n) == 0);
}

/* Returns the slot of a key: the slot that has its entry, or a free one. */
static size_t slot_of(const struct table *t, const void *key, size_t n, uint32_t hash)
{
    size_t mask = t->slots_n - 1;
    size_t i = hash & mask;
    for (; t->slots[i].entry != 0; i = (i + 1) & mask) {
        if (t->slots[i].hash != hash) {
            continue;
        }
        const struct table_entry *e = &t->entries[t->slots[i].entry - 1];
        if (has_key(t, e, key, n)) {
            break;
        }
    }
    return i;
}

/* Makes slots for one entry more than `entries`: they are at most three quarters full. */
static bool grow_slots(struct table *t, struct budget *b, size_t entries, struct err *err)
{
    size_t cap = 0;
    size_t n = t->slots_n == 0 ? SLOTS_FIRST : t->slots_n;
    while (n - n / 4 <= entries) {
        n *= 2;
    }
    if (n == t->slots_n) {
        return true;
    }
    struct table_slot *slots = budget_grow(b, NULL, &cap, n, sizeof(*slots), err);
    if (slots == NULL) {
        return false;
    }
    memset(slots, 0, n * sizeof(*slots));
    /* All keys differ, so they need not be compared. */
    for (size_t i = 0; i < t->slots_n; i++) {
        size_t slot = t->slots[i].hash & (n - 1);
        while (t->slots[i].entry != 0 && slots[slot].entry != 0) {
            slot = (slot + 1) & (n - 1);
        }
        if (t->slots[i].entry != 0) {
            slots[slot] = t->slots[i];
        }
    }
    free(t->slots);
    b->used -= t->slots_n * sizeof(*slots);
    t->slots = slots;
    t->slots_n = n;
    return true;
}

/* Frees a slot, and moves the slots after it that would no longer be found. */
static void free_slot(struct table *t, size_t slot)
{
    size_t mask = t->slots_n - 1;
    for (size_t i = (slot + 1) & mask; t->slots[i].entry != 0; i = (i + 1) & mask) {
        size_t way = (i - t->slots[i].hash) & mask; /* from where the search for it begins */
        if (way >= ((i - slot) & mask)) {
            t->slots[slot] = t->slots[i];
            slot = i;
        }
    }
    t->slots[slot].entry = 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Makes room for one more entry of n bytes. */
static bool grow(struct table *t, struct budget *b, size_t n, struct err *err)
{
    if (t->n < t->entries_cap && t->len + n < t->bytes_cap && t->n < t->slots_n - t->slots_n / 4) {
        return true;
    }
    struct table_entry *entries =
        budget_grow(b, t->entries, &t->entries_cap, t->n + 1, sizeof(*entries), err);
    if (entries == NULL) {
        return false;
    }
    t->entries = entries;
    char *bytes = budget_grow(b, t->bytes, &t->bytes_cap, t->len + n + 1, 1, err);
    if (bytes == NULL) {
        return false;
    }
    t->bytes = bytes;
    return grow_slots(t, b, t->n, err);
}

void merge_table_reserve(struct table *t, struct budget *b, size_t n)
{
    struct err err = ERR_INIT;
    struct table_entry *entries =
        budget_grow(b, t->entries, &t->entries_cap, n, sizeof(*entries), &err);
    if (entries != NULL) {
        t->entries = entries;
        (void)grow_slots(t, b, n, &err);
    }
}

/* Returns true if the key is that of an entry that is likely to follow the last one. */
static inline bool is_at(const struct table *t, size_t place, const void *key, size_t n)
{
    return place < t->n && has_key(t, &t->entries[place], key, n);
}

bool merge_table_add(struct table *t, struct budget *b, const void *data, size_t n_key, size_t n,
                     uint32_t *ret, struct err *err)
{
    /* The profiles of a series have most entries in the same order, which saves the hash. Where a
     * profile has an entry of its own, the others continue after it, or after the entry that it has
     * instead. */
    size_t place = t->next;
    if (!is_at(t, place, data, n_key)) {
        place = t->left;
        t->left = t->next;
        if (!is_at(t, place, data, n_key) && !is_at(t, ++place, data, n_key)) {
            return merge_table_add_hashed(t, b, data, n_key, n, hash_of(data, n_key, t->seed), ret,
                                          err);
        }
    }
    *ret = (uint32_t)place;
    t->next = place + 1;
    return true;
}

uint32_t merge_table_hash(const struct table *t, const void *key, size_t n)
{
    uint32_t hash = hash_of(key, n, t->seed);
    if (t->slots_n > 0) {
        __builtin_prefetch(&t->slots[hash & (t->slots_n - 1)]);
    }
    return hash;
}

bool merge_table_add_hashed(struct table *t, struct budget *b, const void *data, size_t n_key,
                            size_t n, uint32_t hash, uint32_t *ret, struct err *err)
{
    size_t slot = 0;
    size_t slots_n = t->slots_n;
    if (slots_n > 0) {
        slot = slot_of(t, data, n_key, hash);
        uint32_t found = t->slots[slot].entry;
        if (found != 0) {
            *ret = found - 1;
            t->next = found;
            return true;
        }
    }
    if (!grow(t, b, n, err)) {
        return false;
    }
    if (n > 0) {
        memcpy(t->bytes + t->len, data, n);
    }
    if (t->slots_n != slots_n) {
        slot = slot_of(t, data, n_key, hash);
    }
    t->entries[t->n] =
        (struct table_entry){.at = (uint32_t)t->len, .n_key = (uint32_t)n_key, .n = (uint32_t)n};
    t->len += n;
    *ret = (uint32_t)t->n;
    t->slots[slot] = (struct table_slot){.hash = hash, .entry = (uint32_t)++t->n};
    return true;
}

void merge_table_truncate(struct table *t, size_t n)
{
    while (t->n > n) {
        const struct table_entry *e = &t->entries[t->n - 1];
        const char *key = t->bytes + e->at;
        free_slot(t, slot_of(t, key, e->n_key, hash_of(key, e->n_key, t->seed)));
        t->len = e->at;
        t->n--;
    }
}

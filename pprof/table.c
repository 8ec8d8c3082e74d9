#include "pprof/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

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

static bool has_key(const struct table *t, const struct table_entry *e, const void *key, size_t n)
{
    return e->n_key == n && (n == 0 || memcmp(t->bytes + e->at, key, n) == 0);
}

/* Returns the slot of a key: the slot that has its entry, or a free one. */
static size_t slot_of(const struct table *t, const void *key, size_t n, uint32_t hash)
{
    size_t mask = t->slots_n - 1;
    size_t i = hash & mask;
    for (; t->slots[i] != 0; i = (i + 1) & mask) {
        const struct table_entry *e = &t->entries[t->slots[i] - 1];
        if (e->hash == hash && has_key(t, e, key, n)) {
            break;
        }
    }
    return i;
}

static size_t slot_of_entry(const struct table *t, const struct table_entry *e)
{
    return slot_of(t, t->bytes + e->at, e->n_key, e->hash);
}

/* Keeps the table at most half full. */
static bool grow_slots(struct table *t, struct budget *b, struct err *err)
{
    size_t cap = 0;
    if (t->slots_n / 2 > t->n) {
        return true;
    }
    size_t n = t->slots_n == 0 ? SLOTS_FIRST : 2 * t->slots_n;
    uint32_t *slots = budget_grow(b, NULL, &cap, n, sizeof(*slots), err);
    if (slots == NULL) {
        return false;
    }
    free(t->slots);
    b->used -= t->slots_n * sizeof(*slots);
    memset(slots, 0, n * sizeof(*slots));
    t->slots = slots;
    t->slots_n = n;
    /* All keys differ, so they need not be compared. */
    for (size_t i = 0; i < t->n; i++) {
        size_t slot = t->entries[i].hash & (n - 1);
        while (slots[slot] != 0) {
            slot = (slot + 1) & (n - 1);
        }
        slots[slot] = (uint32_t)i + 1;
    }
    return true;
}

/* Makes room for one more entry of n bytes. */
static bool grow(struct table *t, struct budget *b, size_t n, struct err *err)
{
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
    return grow_slots(t, b, err);
}

bool merge_table_add(struct table *t, struct budget *b, const void *data, size_t n_key, size_t n,
                     uint32_t *ret, struct err *err)
{
    /* The profiles of a series have most entries in the same order, which saves the hash. */
    if (t->next < t->n && has_key(t, &t->entries[t->next], data, n_key)) {
        *ret = (uint32_t)t->next++;
        return true;
    }
    uint32_t hash = (uint32_t)hash_bytes(data, n_key, t->seed);
    if (t->slots_n > 0) {
        uint32_t found = t->slots[slot_of(t, data, n_key, hash)];
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
    struct table_entry *e = &t->entries[t->n];
    *e = (struct table_entry){
        .at = (uint32_t)t->len, .n_key = (uint32_t)n_key, .n = (uint32_t)n, .hash = hash};
    t->len += n;
    *ret = (uint32_t)t->n;
    t->slots[slot_of_entry(t, e)] = (uint32_t)++t->n;
    return true;
}

void merge_table_truncate(struct table *t, size_t n)
{
    /* The newest entry is the last of its run of slots that was added, so its slot can simply be
     * freed; after growing too, which adds in the same order. */
    while (t->n > n) {
        const struct table_entry *e = &t->entries[t->n - 1];
        t->slots[slot_of_entry(t, e)] = 0;
        t->len = e->at;
        t->n--;
    }
}

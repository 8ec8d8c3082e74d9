/* Linear probing over a power of two of slots. A removed entry leaves a mark (REMOVED), so that
 * removing during a walk moves nothing; rehashing clears the marks. At most three quarters of the
 * slots are live or marked. */
#include "base/map.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define SLOTS_FIRST 16

/* Special values of a slot's hash; real hashes are at least LIVE_MIN. */
#define EMPTY 0
#define REMOVED 1
#define LIVE_MIN 2

struct entry {
    void *value;
    size_t key_len;
    char key[]; /* NUL-terminated */
};

struct slot {
    uint64_t hash;
    struct entry *entry;
};

struct map {
    struct slot *slots;
    size_t n_slots; /* 0 or a power of two */
    size_t live;
    size_t removed;
    uint64_t seed;
};

struct map *map_new(void)
{
    struct map *m = calloc(1, sizeof(*m));
    if (m != NULL) {
        struct rng rng;
        rng_seed_random(&rng);
        m->seed = rng_next(&rng);
    }
    return m;
}

struct map *map_free(struct map *m, void (*free_value)(void *))
{
    if (m == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < m->n_slots; i++) {
        if (m->slots[i].hash >= LIVE_MIN) {
            if (free_value != NULL) {
                free_value(m->slots[i].entry->value);
            }
            free(m->slots[i].entry);
        }
    }
    free(m->slots);
    free(m);
    return NULL;
}

size_t map_count(const struct map *m)
{
    return m->live;
}

static uint64_t hash_key(const struct map *m, struct sv key)
{
    uint64_t hash = hash_bytes(key.p, key.n, m->seed);
    return hash < LIVE_MIN ? hash + LIVE_MIN : hash;
}

static struct sv entry_key(const struct entry *e)
{
    return (struct sv){.p = e->key, .n = e->key_len};
}

/* Returns the slot that holds the key, or NULL. */
static struct slot *find(const struct map *m, struct sv key, uint64_t hash)
{
    if (m->n_slots == 0) {
        return NULL;
    }
    size_t mask = m->n_slots - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        struct slot *s = &m->slots[i];
        if (s->hash == EMPTY) {
            return NULL;
        }
        if (s->hash == hash && sv_eq(entry_key(s->entry), key)) {
            return s;
        }
    }
}

/* Returns the first slot of the probe sequence that can take a new entry. One always exists. */
static struct slot *find_free(struct slot *slots, size_t n_slots, uint64_t hash)
{
    size_t mask = n_slots - 1;
    size_t i = (size_t)hash & mask;
    while (slots[i].hash >= LIVE_MIN) {
        i = (i + 1) & mask;
    }
    return &slots[i];
}

/* Makes room for one more entry, if necessary by rehashing, without the marks, into twice as many
 * slots as there are entries or more. */
static bool make_room(struct map *m)
{
    if ((m->live + m->removed + 1) * 4 <= m->n_slots * 3) {
        return true;
    }
    size_t n_slots = SLOTS_FIRST;
    while (n_slots < (m->live + 1) * 2) {
        n_slots *= 2;
    }
    struct slot *slots = calloc(n_slots, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < m->n_slots; i++) {
        if (m->slots[i].hash >= LIVE_MIN) {
            *find_free(slots, n_slots, m->slots[i].hash) = m->slots[i];
        }
    }
    free(m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
    m->removed = 0;
    return true;
}

static struct entry *new_entry(struct sv key, void *value)
{
    struct entry *e = malloc(sizeof(*e) + key.n + 1);
    if (e != NULL) {
        e->value = value;
        e->key_len = key.n;
        if (key.n > 0) {
            memcpy(e->key, key.p, key.n);
        }
        e->key[key.n] = '\0';
    }
    return e;
}

void *map_get(const struct map *m, struct sv key)
{
    struct slot *s = find(m, key, hash_key(m, key));
    return s == NULL ? NULL : s->entry->value;
}

bool map_put(struct map *m, struct sv key, void *value, void **ret_old)
{
    assert(value != NULL);
    uint64_t hash = hash_key(m, key);
    struct slot *s = find(m, key, hash);
    void *old = NULL;
    if (s != NULL) {
        old = s->entry->value;
        s->entry->value = value;
    } else {
        struct entry *e = new_entry(key, value);
        if (e == NULL || !make_room(m)) {
            free(e);
            return false;
        }
        s = find_free(m->slots, m->n_slots, hash);
        m->removed -= s->hash == REMOVED;
        m->live++;
        *s = (struct slot){.hash = hash, .entry = e};
    }
    if (ret_old != NULL) {
        *ret_old = old;
    }
    return true;
}

static void *remove_slot(struct map *m, struct slot *s)
{
    void *value = s->entry->value;
    free(s->entry);
    *s = (struct slot){.hash = REMOVED};
    m->live--;
    m->removed++;
    return value;
}

void *map_remove(struct map *m, struct sv key)
{
    struct slot *s = find(m, key, hash_key(m, key));
    return s == NULL ? NULL : remove_slot(m, s);
}

bool map_next(const struct map *m, size_t *cursor, struct sv *ret_key, void **ret_value)
{
    for (size_t i = *cursor; i < m->n_slots; i++) {
        const struct slot *s = &m->slots[i];
        if (s->hash >= LIVE_MIN) {
            *cursor = i + 1;
            if (ret_key != NULL) {
                *ret_key = entry_key(s->entry);
            }
            if (ret_value != NULL) {
                *ret_value = s->entry->value;
            }
            return true;
        }
    }
    *cursor = m->n_slots;
    return false;
}

void map_remove_at(struct map *m, size_t cursor)
{
    assert(cursor > 0 && cursor <= m->n_slots && m->slots[cursor - 1].hash >= LIVE_MIN);
    (void)remove_slot(m, &m->slots[cursor - 1]);
}

#include "scraper/table.h"

#include <stdlib.h>

#define BUCKETS_FIRST 256

bool table_init(struct table *t)
{
    *t = (struct table){.n_buckets = BUCKETS_FIRST};
    pthread_mutex_init(&t->lock, NULL);
    t->buckets = calloc(t->n_buckets, sizeof(struct scrape *));
    return t->buckets != NULL;
}

void table_done(struct table *t)
{
    free(t->slots);
    free(t->free_slots);
    free(t->buckets);
    pthread_mutex_destroy(&t->lock);
}

void table_lock(struct table *t)
{
    pthread_mutex_lock(&t->lock);
}

void table_unlock(struct table *t)
{
    pthread_mutex_unlock(&t->lock);
}

static struct scrape **bucket_of(const struct table *t, uint64_t hash)
{
    return &t->buckets[hash & (t->n_buckets - 1)];
}

struct scrape *table_find(const struct table *t, const struct target *target, size_t i)
{
    uint64_t hash = target_scrape_hash(target, i);
    for (struct scrape *sc = *bucket_of(t, hash); sc != NULL; sc = sc->next_in_bucket) {
        if (sc->hash == hash && target_same_scrape(sc->target, sc->entry, target, i)) {
            return sc;
        }
    }
    return NULL;
}

struct scrape *table_next(const struct scrape *sc)
{
    struct scrape *next = sc->next_in_bucket;
    while (next != NULL && (next->hash != sc->hash || !target_same_scrape(next->target, next->entry,
                                                                          sc->target, sc->entry))) {
        next = next->next_in_bucket;
    }
    return next;
}

/* Doubles the buckets. If memory runs out, the table still works, but a little slower. */
static void grow_buckets(struct table *t)
{
    size_t old_n = t->n_buckets;
    struct scrape **old = t->buckets;
    struct scrape **buckets = calloc(old_n * 2, sizeof(struct scrape *));
    if (buckets == NULL) {
        return;
    }
    t->buckets = buckets;
    t->n_buckets = old_n * 2;
    for (size_t i = 0; i < old_n; i++) {
        struct scrape *next;
        for (struct scrape *sc = old[i]; sc != NULL; sc = next) {
            next = sc->next_in_bucket;
            struct scrape **bucket = bucket_of(t, sc->hash);
            sc->next_in_bucket = *bucket;
            *bucket = sc;
        }
    }
    free(old);
}

static bool grow_slots(struct table *t)
{
    size_t cap = t->slots_cap == 0 ? 64 : t->slots_cap * 2;
    uint32_t *free_slots = reallocarray(t->free_slots, cap, sizeof(*free_slots));
    if (free_slots == NULL) {
        return false;
    }
    t->free_slots = free_slots;
    struct scrape **slots = reallocarray(t->slots, cap, sizeof(struct scrape *));
    if (slots == NULL) {
        return false;
    }
    t->slots = slots;
    t->slots_cap = cap;
    return true;
}

static bool take_slot(struct table *t, struct scrape *sc)
{
    if (t->n_free == 0 && t->n_slots == t->slots_cap && !grow_slots(t)) {
        return false;
    }
    sc->slot = t->n_free > 0 ? t->free_slots[--t->n_free] : (uint32_t)t->n_slots++;
    t->slots[sc->slot] = sc;
    return true;
}

bool table_insert(struct table *t, struct scrape *sc)
{
    table_lock(t);
    bool ok = take_slot(t, sc);
    table_unlock(t);
    if (!ok) {
        return false;
    }
    if (t->n >= t->n_buckets) {
        grow_buckets(t);
    }
    sc->hash = target_scrape_hash(sc->target, sc->entry);
    struct scrape **bucket = bucket_of(t, sc->hash);
    sc->next_in_bucket = *bucket;
    *bucket = sc;
    t->n++;
    return true;
}

void table_remove(struct table *t, struct scrape *sc)
{
    struct scrape **at = bucket_of(t, sc->hash);
    while (*at != sc) {
        at = &(*at)->next_in_bucket;
    }
    *at = sc->next_in_bucket;
    t->n--;
    table_lock(t);
    t->slots[sc->slot] = NULL;
    t->free_slots[t->n_free++] = sc->slot;
    table_unlock(t);
}

/* The table of all scrapes, which are looked up by identity or iterated by slot.
 *
 * Only the loop's thread changes the table and looks scrapes up. Other threads iterate over the
 * slots and read the shared fields of scrapes under the lock. A scrape stays in its slot for life,
 * so an iteration may pause.
 */
#ifndef PROFPULL_SCRAPER_TABLE_H
#define PROFPULL_SCRAPER_TABLE_H

#include <pthread.h>

#include "scraper/scrape.h"

struct table {
    pthread_mutex_t lock;
    struct scrape **slots; /* NULL where free */
    size_t n_slots;        /* used so far, free ones included */
    size_t slots_cap;
    uint32_t *free_slots; /* a stack, as large as slots */
    size_t n_free;
    struct scrape **buckets; /* a power of two */
    size_t n_buckets;
    size_t n; /* scrapes */
};

bool table_init(struct table *t); /* false if out of memory */
void table_done(struct table *t); /* the scrapes must be gone */
void table_lock(struct table *t);
void table_unlock(struct table *t);

/* Returns a scrape with the identity of entry i of a target, or NULL. Several scrapes may have this
 * identity: table_next() returns the others. */
struct scrape *table_find(const struct table *t, const struct target *target, size_t i);
/* Returns the next scrape with the identity of sc, or NULL. */
struct scrape *table_next(const struct scrape *sc);
/* Adds a scrape with target and entry set; sets hash and slot. Returns false if out of memory. */
bool table_insert(struct table *t, struct scrape *sc);
void table_remove(struct table *t, struct scrape *sc);

#endif

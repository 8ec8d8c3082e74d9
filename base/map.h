/* A hash table from byte strings to pointers.
 *
 * Keys are copied, values are the caller's. Open addressing, hash seeded per table. Iteration order
 * is that of the slots: sort where output must be stable. One owner, no locking.
 */
#ifndef PROFPULL_BASE_MAP_H
#define PROFPULL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct map;

struct map *map_new(void); /* NULL if out of memory */
/* Frees the table; free_value (may be NULL) is called for each value. Accepts NULL. Returns NULL.
 */
struct map *map_free(struct map *m, void (*free_value)(void *));

size_t map_count(const struct map *m);
/* The value of a key, or NULL. */
void *map_get(const struct map *m, struct sv key);
/* Sets a key to a value that is not NULL. *ret_old (may be NULL) gets the value that was there, or
 * NULL. False if out of memory: nothing has changed then. */
bool map_put(struct map *m, struct sv key, void *value, void **ret_old);
/* Removes a key and returns its value, or NULL. */
void *map_remove(struct map *m, struct sv key);

/* Walks the table: start with *cursor = 0; false at the end. The table must not be changed on the
 * way, but for map_remove_at() of the entry that was just returned. */
bool map_next(const struct map *m, size_t *cursor, struct sv *ret_key, void **ret_value);
/* Removes the entry that map_next() returned last with this cursor. */
void map_remove_at(struct map *m, size_t cursor);

#endif

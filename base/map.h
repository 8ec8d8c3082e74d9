/* A hash table from byte strings to pointers.
 *
 * The table copies its keys; the caller owns the values. Each table has a seed of its own. A walk
 * visits entries in no particular order: sort them where the output must be stable. A table has one
 * owner and no lock.
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
/* Returns the value of a key, or NULL. */
void *map_get(const struct map *m, struct sv key);
/* Sets the value, which must not be NULL, of a key. *ret_old (may be NULL) becomes the old value or
 * NULL. Returns false, and changes nothing, if out of memory. */
bool map_put(struct map *m, struct sv key, void *value, void **ret_old);
/* Removes a key and returns its value, or NULL. */
void *map_remove(struct map *m, struct sv key);

/* Walks the table: start with *cursor = 0; false at the end. The table must not be changed during
 * the walk, except by map_remove_at() of the entry that was just returned. */
bool map_next(const struct map *m, size_t *cursor, struct sv *ret_key, void **ret_value);
/* Removes the last entry that map_next() returned with this cursor. */
void map_remove_at(struct map *m, size_t cursor);

#endif

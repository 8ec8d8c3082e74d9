/* A bump allocator for objects with the same lifetime: those of one configuration, for example.
 *
 * An arena grows in chunks up to a ceiling. Allocations are zeroed, aligned for any type, and freed
 * all together. One owner, no locking. With ARENA_DEBUG (sanitizer builds) each allocation is a
 * malloc() of its own, so that overruns are found.
 */
#ifndef PROFPULL_BASE_ARENA_H
#define PROFPULL_BASE_ARENA_H

#include <stddef.h>

#include "base/str.h"

struct arena;

/* max: the ceiling in bytes. NULL if out of memory. */
struct arena *arena_new(size_t max);
/* Frees the arena and all its allocations; accepts NULL. Returns NULL. */
struct arena *arena_free(struct arena *a);

/* Zeroed memory; NULL at the ceiling or out of memory. */
void *arena_alloc(struct arena *a, size_t size) __attribute__((malloc));
/* The same for count elements; NULL on overflow. */
void *arena_array(struct arena *a, size_t count, size_t size) __attribute__((malloc));
/* A NUL-terminated copy. */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Frees all allocations; keeps one chunk of storage for the next ones. */
void arena_reset(struct arena *a);
/* The bytes allocated so far, with the padding for alignment. */
size_t arena_used(const struct arena *a);

#endif

/* A bump allocator for objects with the same lifetime: for example, all objects of one
 * configuration.
 *
 * An arena grows in chunks up to a ceiling. Allocations are zeroed, aligned for any type, and freed
 * all together. An arena has one owner and no lock. With ARENA_DEBUG (sanitizer builds) each
 * allocation is a malloc() of its own, so that sanitizers find overruns.
 */
#ifndef PROFPULL_BASE_ARENA_H
#define PROFPULL_BASE_ARENA_H

#include <stddef.h>

#include "base/str.h"

struct arena;

/* Makes an empty arena. max: the ceiling of its allocations in bytes. Returns NULL if out of
 * memory. */
struct arena *arena_new(size_t max);
/* Frees the arena and all its allocations; accepts NULL. Returns NULL. */
struct arena *arena_free(struct arena *a);

/* Returns zeroed memory, or NULL at the ceiling or if out of memory. */
void *arena_alloc(struct arena *a, size_t size) __attribute__((malloc));
/* Returns zeroed memory for count elements of this size; NULL also if the product overflows. */
void *arena_array(struct arena *a, size_t count, size_t size) __attribute__((malloc));
/* Return a NUL-terminated copy of the text, or NULL as arena_alloc() does. */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Frees all allocations; keeps one chunk of storage for the next ones. */
void arena_reset(struct arena *a);
/* Returns the bytes allocated so far, with the padding for alignment. */
size_t arena_used(const struct arena *a);

#endif

/* A bump allocator for things that die together: one configuration, one parsed object.
 *
 * Grows in chunks up to a ceiling. Allocations are zeroed and aligned for any type. Freed all at
 * once. One owner, no locking. Built with ARENA_DEBUG (the sanitizer builds) each allocation is a
 * real malloc, so that overruns are seen.
 */
#ifndef PROFPULL_BASE_ARENA_H
#define PROFPULL_BASE_ARENA_H

#include <stddef.h>

#include "base/str.h"

struct arena;

/* max: most bytes in all. NULL if out of memory. */
struct arena *arena_new(size_t max);
/* Frees the arena and all that came out of it; accepts NULL. Returns NULL. */
struct arena *arena_free(struct arena *a);

/* Zeroed memory, or NULL when the ceiling or memory is reached. */
void *arena_alloc(struct arena *a, size_t size) __attribute__((malloc));
/* The same for count elements; overflow gives NULL. */
void *arena_array(struct arena *a, size_t count, size_t size) __attribute__((malloc));
/* A NUL-terminated copy. */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Takes back all that was handed out; keeps one chunk of storage for the next round. */
void arena_reset(struct arena *a);
/* Bytes handed out so far, with the padding for alignment. */
size_t arena_used(const struct arena *a);

#endif

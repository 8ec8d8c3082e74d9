#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_LARGEST ((size_t)256 * 1024)
#ifdef ARENA_DEBUG
/* One chunk for each allocation, of exactly its size: a sanitizer finds every overrun, and every
 * use after a reset. */
#define CHUNK_FIRST ((size_t)0)
#define ALIGNMENT ((size_t)1)
#else
#define CHUNK_FIRST ((size_t)4096)
#define ALIGNMENT alignof(max_align_t)
#endif

struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    max_align_t data[];
};

struct arena {
    struct chunk *chunks; /* allocations are made from the first one */
    size_t max;
    size_t used;
    size_t next_chunk;
};

struct arena *arena_new(size_t max)
{
    struct arena *a = calloc(1, sizeof(*a));
    if (a != NULL) {
        /* Rounding up must not overflow. */
        a->max = max > SIZE_MAX / 4 ? SIZE_MAX / 4 : max;
        a->next_chunk = CHUNK_FIRST;
    }
    return a;
}

static void free_chunks(struct chunk *c)
{
    while (c != NULL) {
        struct chunk *next = c->next;
        free(c);
        c = next;
    }
}

struct arena *arena_free(struct arena *a)
{
    if (a != NULL) {
        free_chunks(a->chunks);
        free(a);
    }
    return NULL;
}

static size_t chunk_size(struct arena *a, size_t size)
{
    if (size > a->next_chunk / 4) {
        /* The object gets a chunk of its own, and the rest of the current one stays in use. */
        return size;
    }
    size_t chunk = a->next_chunk;
    if (a->next_chunk < CHUNK_LARGEST) {
        a->next_chunk *= 2;
    }
    return chunk;
}

static struct chunk *add_chunk(struct arena *a, size_t size)
{
    size_t chunk = chunk_size(a, size);
    struct chunk *c = calloc(1, sizeof(*c) + chunk);
    if (c == NULL) {
        return NULL;
    }
    c->size = chunk;
    if (chunk == size && a->chunks != NULL) {
        /* The new chunk is full already, so the current one stays the first. */
        c->next = a->chunks->next;
        a->chunks->next = c;
    } else {
        c->next = a->chunks;
        a->chunks = c;
    }
    return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > a->max) {
        return NULL;
    }
    size = size == 0 ? 1 : size;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size > a->max - a->used) {
        return NULL;
    }
    struct chunk *c = a->chunks;
    if (c == NULL || size > c->size - c->used) {
        c = add_chunk(a, size);
    }
    if (c == NULL) {
        return NULL;
    }
    void *p = (char *)c->data + c->used;
    c->used += size;
    a->used += size;
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    return arena_alloc(a, count * size);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *copy = n == SIZE_MAX ? NULL : arena_alloc(a, n + 1);
    if (copy != NULL && n > 0) {
        memcpy(copy, s, n);
    }
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (text != NULL) {
        va_start(ap, fmt);
        (void)vsnprintf(text, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    return text;
}

void arena_reset(struct arena *a)
{
    struct chunk *keep = CHUNK_FIRST > 0 ? a->chunks : NULL;
    free_chunks(keep != NULL ? keep->next : a->chunks);
    if (keep != NULL) {
        keep->next = NULL;
        memset(keep->data, 0, keep->used);
        keep->used = 0;
    }
    a->chunks = keep;
    a->used = 0;
}

size_t arena_used(const struct arena *a)
{
    return a->used;
}

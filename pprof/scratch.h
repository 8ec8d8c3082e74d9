/* Working memory that is reused from delta to delta.
 *
 * A delta needs a few blocks in proportion to the profile, which are all freed together. If
 * malloc() made them each time, large blocks would be returned to the system and faulted in again
 * page by page, which costs a tenth of the whole work. A scratch hands out pieces of one block,
 * which is large enough after the first round. With ARENA_DEBUG (the sanitizer builds) each piece
 * is a malloc() of its own, so that sanitizers find overruns.
 *
 * A scratch has no lock: one thread at a time uses it. A pool of scratches has a lock and may be
 * used by any thread.
 */
#ifndef PROFPULL_PPROF_SCRATCH_H
#define PROFPULL_PPROF_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct scratch;

/* Returns NULL if out of memory. */
struct scratch *scratch_new(void);
/* Accepts NULL, returns NULL. */
struct scratch *scratch_free(struct scratch *s);

/* Returns n elements of `size` bytes, aligned for any type and not cleared, which are valid until
 * scratch_reset(). Returns NULL if out of memory, or if s is NULL because the scratch could not be
 * made. */
void *scratch_array(struct scratch *s, size_t n, size_t size);
/* Returns an array like scratch_array(), cleared to zero. */
void *scratch_zeroed(struct scratch *s, size_t n, size_t size);
/* Returns a table for open addressing, whose slots hold a place + 1 and are all free (0). With n
 * entries it is at most half full. Its size is a power of two; *ret_mask is the size - 1. */
uint32_t *scratch_slots(struct scratch *s, size_t n, size_t *ret_mask);
/* Grows a piece of old_size bytes to size > old_size. The piece may move; p may be NULL. If out of
 * memory, returns NULL and p stays as it was. */
void *scratch_grow(struct scratch *s, void *p, size_t old_size, size_t size);
/* Returns the only buffer of the scratch, emptied. It holds at most SCRATCH_BUF_MAX bytes, keeps
 * its storage from round to round, and is freed with the scratch. */
struct buf *scratch_buf(struct scratch *s);
/* Returns the only piece that stays from round to round, of `size` bytes, the same each time, and
 * cleared when it is made; *ret_made: just now. Returns NULL if out of memory. */
void *scratch_kept(struct scratch *s, size_t size, bool *ret_made);
#define SCRATCH_BUF_MAX ((size_t)128 * 1024 * 1024)
/* Takes back all pieces, and resets the charges to 0. */
void scratch_reset(struct scratch *s);
/* Sets the limit of the scratch: bytes of blocks, buffer and charges together. A request beyond the
 * limit returns NULL, or a buffer that is full, and scratch_is_over() then returns true. Memory
 * above the limit is freed, so that no piece may be in use. */
void scratch_limit(struct scratch *s, size_t max);
/* Counts n bytes that were allocated elsewhere for the same round. Returns false if they exceed the
 * limit. */
bool scratch_charge(struct scratch *s, size_t n);
/* Returns true if a request was refused since the last reset because of scratch_limit(). */
bool scratch_is_over(const struct scratch *s);
/* Turns an error of kind ERR_MEMORY into one of ERR_LIMIT if scratch_limit() was its cause. */
void scratch_explain(const struct scratch *s, struct err *err);
/* Returns the bytes that the scratch holds, used or not. */
size_t scratch_bytes(const struct scratch *s);

/* The bytes that idle scratches may hold together by default; the rest is freed. They are enough
 * for two profiles of 40,000 samples. */
#define SCRATCH_POOL_MAX ((size_t)32 * 1024 * 1024)
/* A scratch that was not taken for this many rounds of its pool is freed, because it is larger than
 * needed now. */
#define SCRATCH_IDLE_ROUNDS 64

struct scratch_pool;

struct scratch_pool *scratch_pool_new(size_t idle_max);
struct scratch_pool *scratch_pool_ref(struct scratch_pool *p);
struct scratch_pool *scratch_pool_unref(struct scratch_pool *p); /* accepts NULL, returns NULL */
/* Sets the bytes that idle scratches may hold together, and frees the surplus. */
void scratch_pool_limit(struct scratch_pool *p, size_t idle_max);
/* Takes a scratch and limits it to max bytes: the largest idle one that holds no more, or a new
 * one. So small work does not shrink a scratch that large work needs. Returns NULL if out of
 * memory. */
struct scratch *scratch_pool_take(struct scratch_pool *p, size_t max);
/* Returns a scratch to its pool; accepts NULL. */
void scratch_pool_give(struct scratch_pool *p, struct scratch *s);
/* Returns the bytes that idle scratches hold. */
size_t scratch_pool_bytes(struct scratch_pool *p);

#endif

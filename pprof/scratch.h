/* Working memory that is reused from delta to delta.
 *
 * A delta takes a few blocks in proportion to the profile, which are all freed together. Taken from
 * malloc() each time, large ones would be returned to the system and faulted in again page by page,
 * a tenth of the whole work. A scratch hands out pieces of one block, which is large enough after
 * the first round. With ARENA_DEBUG (the sanitizer builds) each piece is a malloc of its own, so
 * that overruns are seen.
 *
 * One thread uses a scratch, without a lock. A pool of them has a lock; any thread.
 */
#ifndef PROFPULL_PPROF_SCRATCH_H
#define PROFPULL_PPROF_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct scratch;

/* NULL if out of memory. */
struct scratch *scratch_new(void);
/* Accepts NULL, returns NULL. */
struct scratch *scratch_free(struct scratch *s);

/* n elements of so many bytes, aligned for any type, not cleared. NULL if out of memory, and for a
 * scratch of NULL, which could not be made. Valid until scratch_reset(). */
void *scratch_array(struct scratch *s, size_t n, size_t size);
/* The same, all zero. */
void *scratch_zeroed(struct scratch *s, size_t n, size_t size);
/* A table of places + 1 with open addressing, all free (0) and at most half full with n entries.
 * Its size is a power of two, *ret_mask one less. */
uint32_t *scratch_slots(struct scratch *s, size_t n, size_t *ret_mask);
/* Grows a piece of old_size bytes to size > old_size; it may move, and p may be NULL. NULL if out
 * of memory: p stays as it was. */
void *scratch_grow(struct scratch *s, void *p, size_t old_size, size_t size);
/* The one buffer of the scratch, empty, of at most SCRATCH_BUF_MAX bytes. It keeps its storage from
 * round to round and is freed with the scratch. */
struct buf *scratch_buf(struct scratch *s);
#define SCRATCH_BUF_MAX ((size_t)128 * 1024 * 1024)
/* Takes back all pieces, and what was charged. */
void scratch_reset(struct scratch *s);
/* Sets the limit of the scratch: bytes of blocks, buffer and charges together. A request beyond the
 * limit returns NULL, or a buffer that is full, and scratch_is_over() then returns true. Memory
 * above the limit is freed, so that no piece may be in use. */
void scratch_limit(struct scratch *s, size_t max);
/* Counts n bytes that were allocated elsewhere for the same round. False if they do not fit. */
bool scratch_charge(struct scratch *s, size_t n);
/* Has anything been refused since the last reset because of scratch_limit()? */
bool scratch_is_over(const struct scratch *s);
/* Turns an error of memory into one of ERR_LIMIT if that was its cause. */
void scratch_explain(const struct scratch *s, struct err *err);
/* Bytes that it holds, used or not. */
size_t scratch_bytes(const struct scratch *s);

/* Bytes that idle scratches may hold together by default, enough for two profiles of 40,000
 * samples; the rest goes back to the system. */
#define SCRATCH_POOL_MAX ((size_t)32 * 1024 * 1024)
/* One that was not taken for so many rounds of its pool is freed: it is larger than what is needed
 * now. */
#define SCRATCH_IDLE_ROUNDS 64

struct scratch_pool;

struct scratch_pool *scratch_pool_new(size_t idle_max);
struct scratch_pool *scratch_pool_ref(struct scratch_pool *p);
struct scratch_pool *scratch_pool_unref(struct scratch_pool *p); /* accepts NULL, returns NULL */
/* From now on idle ones hold at most so many bytes together; frees the surplus. */
void scratch_pool_limit(struct scratch_pool *p, size_t idle_max);
/* One that holds at most max bytes from now on: the largest idle one that does, or a new one. So
 * small work leaves what large work needs as it is. NULL if out of memory. */
struct scratch *scratch_pool_take(struct scratch_pool *p, size_t max);
/* Gives it back; accepts NULL. */
void scratch_pool_give(struct scratch_pool *p, struct scratch *s);
/* Bytes that idle ones hold. */
size_t scratch_pool_bytes(struct scratch_pool *p);

#endif

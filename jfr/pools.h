/* An index of the constants of a chunk. Private to jfr.
 *
 * The index of a pool has the offset of each constant in the chunk, and a note of 32 bits for the
 * caller. Nothing is copied: a constant is read when it is needed. One reader owns the pools, and
 * uses them again for each chunk.
 */
#ifndef PROFPULL_JFR_POOLS_H
#define PROFPULL_JFR_POOLS_H

#include "jfr/metadata.h"

enum jfr_pool_kind {
    JFR_POOL_STACK_TRACE,
    JFR_POOL_METHOD,
    JFR_POOL_CLASS,
    JFR_POOL_SYMBOL,
    JFR_POOL_STRING,
    JFR_POOL_STATE,
    JFR_POOLS, /* count */
};

/* Slots for the fields of constants. */
enum { JFR_STACK_TRUNCATED, JFR_STACK_FRAMES };
enum { JFR_FRAME_METHOD, JFR_FRAME_LINE };
enum { JFR_METHOD_TYPE, JFR_METHOD_NAME };
/* The only slot of a class, a symbol, a string and a thread state. */
#define JFR_TEXT 0

struct jfr_pool {
    /* 0: free. Otherwise the low bits are the offset of the constant in the chunk, where its id and
     * value are, and the high bits are a part of the hash, so that other constants need not be
     * read. */
    uint32_t *slots;
    uint32_t *notes; /* the caller's notes, 0 at first */
    size_t n_slots;  /* a power of two, or 0 */
    size_t slots_cap;
    size_t notes_cap;
    size_t n;
    /* the program that reads a value; JFR_NONE: the chunk has no such class */
    uint32_t program;
};

struct jfr_pools {
    const struct jfr_metadata *m;
    struct jfr_pool pools[JFR_POOLS];
    unsigned offset_bits;   /* of a slot */
    uint32_t frame_program; /* the program that reads a frame of a stack */
    uint64_t seed;
    struct budget *budget;
};

void jfr_pools_init(struct jfr_pools *p, uint64_t seed, struct budget *budget);
void jfr_pools_done(struct jfr_pools *p);

/* Indexes all checkpoints of the chunk whose metadata was read, from the last one to the first. */
bool jfr_pools_read(struct jfr_pools *p, struct jfr_metadata *m, uint64_t checkpoint,
                    struct err *err);
/* Returns the slot of a constant, or SIZE_MAX if the pool does not have it. */
size_t jfr_pools_find(const struct jfr_pools *p, enum jfr_pool_kind kind, uint64_t id);
/* Reads the constant of a slot. values[] has JFR_SLOTS_MAX elements and is cleared first. */
void jfr_pools_get(const struct jfr_pools *p, enum jfr_pool_kind kind, size_t slot,
                   struct jfr_value *values);
/* Appends the text of a value, which is a string or a constant that has one. Appends nothing if
 * there is none. */
void jfr_pools_text(const struct jfr_pools *p, const struct jfr_value *v, struct buf *out);

#endif

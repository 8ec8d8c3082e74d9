/* The constants of a chunk: where each one stands. Private to jfr.
 *
 * An index of a pool has the offset of each constant in the chunk, and a note of 32 bits for the
 * caller. Nothing is copied: a constant is read when it is needed. Owned by one reader, and used
 * again for each chunk.
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

/* Slots of the values of constants. */
enum { JFR_STACK_TRUNCATED, JFR_STACK_FRAMES };
enum { JFR_FRAME_METHOD, JFR_FRAME_LINE };
enum { JFR_METHOD_TYPE, JFR_METHOD_NAME };
/* The only slot of a class, a symbol, a string and a thread state. */
#define JFR_TEXT 0

struct jfr_pool {
    /* 0: free; else the offset in the chunk of index and value, and above it a part of the hash, so
     * that other constants need not be looked at. */
    uint32_t *slots;
    uint32_t *notes; /* of the caller, 0 at first */
    size_t n_slots;  /* a power of two, or 0 */
    size_t slots_cap;
    size_t notes_cap;
    size_t n;
    uint32_t program; /* reads a value; JFR_NONE: the chunk has no such class */
};

struct jfr_pools {
    const struct jfr_metadata *m;
    struct jfr_pool pools[JFR_POOLS];
    unsigned offset_bits;   /* of a slot */
    uint32_t frame_program; /* of the elements of a stack */
    uint64_t seed;
    struct budget *budget;
};

void jfr_pools_init(struct jfr_pools *p, uint64_t seed, struct budget *budget);
void jfr_pools_done(struct jfr_pools *p);

/* Indexes all checkpoints of the chunk whose metadata were read, from the last one on. */
bool jfr_pools_read(struct jfr_pools *p, struct jfr_metadata *m, uint64_t checkpoint,
                    struct err *err);
/* The slot of a constant; SIZE_MAX if it is not there. */
size_t jfr_pools_find(const struct jfr_pools *p, enum jfr_pool_kind kind, uint64_t id);
/* Reads the constant of a slot. values[] has JFR_SLOTS_MAX elements and is cleared first. */
void jfr_pools_get(const struct jfr_pools *p, enum jfr_pool_kind kind, size_t slot,
                   struct jfr_value *values);
/* Appends the text of a value: a string, or a constant that has one. Nothing if there is none. */
void jfr_pools_text(const struct jfr_pools *p, const struct jfr_value *v, struct buf *out);

#endif

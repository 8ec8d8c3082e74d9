/* Reads messages of pprof that are written as nearly all writers do it: each field once, in the
 * order of numbers. A caller that finds anything else reads the message again, field by field.
 *
 * The functions read bytes from outside and trust none of them. They are pure.
 */
#ifndef PROFPULL_PPROF_QUICK_H
#define PROFPULL_PPROF_QUICK_H

#include "pprof/wire.h"

/* The part of a message that is still to be read. `next` is NULL once something is unusual. */
struct rest {
    const char *next;
    const char *end;
    const char *readable; /* the end of the profile */
};

/* plain: the whole profile, in which the message is. */
static inline struct rest rest_of(struct sv plain, struct sv message)
{
    return (struct rest){
        .next = message.p,
        .end = message.p + message.n,
        .readable = plain.p + plain.n,
    };
}

/* Returns true if a field with this tag is next. */
static inline bool is_next(const struct rest *r, unsigned tag)
{
    return r->next != NULL && r->next < r->end && (unsigned char)*r->next == tag;
}

/* Reads the number of a field if it is next. Otherwise returns 0, because writers leave out numbers
 * that are 0. */
static inline __attribute__((always_inline)) uint64_t take(struct rest *r, unsigned field)
{
    if (!is_next(r, field << 3 | WIRE_VARINT)) {
        return 0;
    }
    struct wire_varint v = wire_varint_ahead(r->next + 1, r->readable);
    r->next = v.next;
    return v.value;
}

/* Reads the bytes of a field if it is next. Otherwise the result is empty. */
static inline struct sv take_bytes(struct rest *r, unsigned field)
{
    struct sv none = {.p = r->end, .n = 0};
    if (!is_next(r, field << 3 | WIRE_BYTES)) {
        return none;
    }
    struct wire_varint n = wire_varint_ahead(r->next + 1, r->readable);
    if (n.next == NULL || n.next > r->end || n.value > (uint64_t)(r->end - n.next)) {
        r->next = NULL;
        return none;
    }
    r->next = n.next + n.value;
    return (struct sv){.p = n.next, .n = (size_t)n.value};
}

/* Returns true if the whole message has been read, and nothing in it was unusual. */
static inline bool is_good_end(const struct rest *r)
{
    return r->next == r->end;
}

/* Reads the function of a location's line if a line is next. A line that is unusual makes the
 * location unusual. */
static inline __attribute__((always_inline)) bool take_line(struct rest *location,
                                                            uint64_t *ret_function)
{
    if (!is_next(location, LOCATION_LINE << 3 | WIRE_BYTES)) {
        return false;
    }
    struct sv message = take_bytes(location, LOCATION_LINE);
    struct rest line = {message.p, message.p + message.n, location->readable};
    *ret_function = take(&line, LINE_FUNCTION_ID);
    take(&line, LINE_LINE);
    take(&line, LINE_COLUMN);
    if (!is_good_end(&line)) {
        location->next = NULL;
    }
    return location->next != NULL;
}

/* ---- packed numbers ---------------------------------------------------------------------------
 */

#define QUICK_ONES UINT64_C(0x0101010101010101)

/* Returns the next eight bytes of packed numbers, of which `left` bytes are left. Bytes after these
 * are 1. All bytes up to `readable` can be read. */
static inline uint64_t quick_eight(const char *p, size_t left, const char *readable)
{
    if (left >= sizeof(uint64_t)) {
        return wire_eight(p);
    }
    uint64_t after = UINT64_MAX << 8 * left;
    uint64_t bytes = 0;
    if (readable - p >= (ptrdiff_t)sizeof(bytes)) {
        bytes = wire_eight(p);
    } else {
        memcpy(&bytes, p, left);
        bytes = le64toh(bytes);
    }
    return (bytes & ~after) | (QUICK_ONES & after);
}

/* Returns true if a packed field consists of whole numbers of at most nine bytes, and, if they are
 * ids, has no byte of 0. Reads eight bytes at a time. Adds the number of numbers to *ret_n. */
static inline bool quick_numbers(struct sv packed, bool ids, const char *readable, size_t *ret_n)
{
    uint64_t unusual = 0;
    uint64_t continued = 0;
    for (size_t i = 0; i < packed.n; i += sizeof(uint64_t)) {
        uint64_t bytes = quick_eight(packed.p + i, packed.n - i, readable);
        uint64_t more = bytes & WIRE_TOP_BITS;
        uint64_t zero = (bytes - QUICK_ONES) & ~bytes & WIRE_TOP_BITS;
        /* Runs of four bytes that go on, at the end of these eight and in the next, are fine. */
        unusual |= more & more >> 8 & more >> 16 & more >> 24 & more >> 32;
        unusual |= ids ? zero : 0;
        continued += (more >> 7) * QUICK_ONES >> 56; /* the highest byte is the sum of all */
    }
    *ret_n += packed.n - (size_t)continued;
    return unusual == 0 && wire_packed_is_whole(packed);
}

/* Checks repeated numbers if they are next, packed or, as Go writes one or two of them, each in a
 * field of its own. Adds their number to *ret_n. Returns false if they are unusual. */
static inline bool quick_repeated(struct rest *r, unsigned field, bool ids, size_t *ret_n)
{
    bool zero = false;
    for (; is_next(r, field << 3 | WIRE_VARINT); ++*ret_n) {
        zero = take(r, field) == 0 || zero;
    }
    return !(ids && zero) && quick_numbers(take_bytes(r, field), ids, r->readable, ret_n);
}

#endif

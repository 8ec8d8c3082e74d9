/* A reader of the numbers and strings of a chunk. Private to jfr.
 *
 * Integers are big-endian base-128 numbers of at most nine bytes (the ninth has eight bits), or
 * plain big-endian ones if the head of the chunk says so. A read past the end sets the problem and
 * moves to the end, so that a run of reads needs one check. The functions are pure; any thread may
 * call them.
 */
#ifndef PROFPULL_JFR_CURSOR_H
#define PROFPULL_JFR_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "pprof/wire.h"

/* Bytes of an integer that is not compressed. */
enum jfr_width { JFR_SHORT = 2, JFR_INT = 4, JFR_LONG = 8 };

/* The encodings of a string, which are its first byte. */
enum {
    JFR_STRING_NULL = 0,
    JFR_STRING_EMPTY = 1,
    JFR_STRING_POOL = 2,
    JFR_STRING_UTF8 = 3,
    JFR_STRING_UTF16 = 4, /* a number for each unit */
    JFR_STRING_LATIN1 = 5,
};

struct jfr_string {
    unsigned encoding;
    bool fixed;        /* the units of UTF-16 are not compressed */
    uint64_t index;    /* JFR_STRING_POOL: in the pool of strings */
    struct sv content; /* encoded bytes, in the chunk */
};

struct jfr_cursor {
    const unsigned char *p;
    const unsigned char *end;
    const char *problem; /* NULL: none */
    bool fixed;
};

static inline size_t jfr_left(const struct jfr_cursor *c)
{
    return (size_t)(c->end - c->p);
}

void jfr_fail(struct jfr_cursor *c, const char *problem);

/* Private: read numbers of more than one byte. */
uint64_t jfr_varint_slow(struct jfr_cursor *c);
uint64_t jfr_raw(struct jfr_cursor *c, size_t bytes);

static inline uint64_t jfr_number(struct jfr_cursor *c, enum jfr_width width)
{
    if (__builtin_expect(c->fixed, 0)) {
        return jfr_raw(c, (size_t)width);
    }
    if (c->p < c->end && *c->p < 0x80) {
        return *c->p++;
    }
    if (c->end - c->p >= (ptrdiff_t)sizeof(uint64_t)) {
        /* Up to eight bytes are encoded as in protobuf. */
        struct wire_varint v = wire_varint_in_eight((const char *)c->p);
        if (v.next != NULL) {
            c->p = (const unsigned char *)v.next;
            return v.value;
        }
    }
    return jfr_varint_slow(c);
}

/* Returns a hash of an id. The seed must be unknown to those who choose ids. */
static inline size_t jfr_hash(uint64_t id, uint64_t seed)
{
    uint64_t x = (id ^ seed) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(x ^ x >> 32);
}

static inline unsigned jfr_byte(struct jfr_cursor *c)
{
    return (unsigned)jfr_raw(c, 1);
}

/* Skips n integers of a width; n may be any number. */
void jfr_skip_numbers(struct jfr_cursor *c, uint64_t n, enum jfr_width width);
/* Skips n bytes; n may be any number. */
void jfr_skip(struct jfr_cursor *c, uint64_t n);
void jfr_string(struct jfr_cursor *c, struct jfr_string *ret);

/* Returns true if a string has this text, which must be ASCII. Returns false for a string in the
 * pool. */
bool jfr_string_is(const struct jfr_string *s, struct sv text);
/* Copies the first characters, at most size, and returns their number. Characters beyond ASCII
 * become 0. */
size_t jfr_string_ascii(const struct jfr_string *s, char *room, size_t size);
/* Appends the text as valid UTF-8. Appends nothing for a null string and for a string in the
 * pool. */
void jfr_string_put(const struct jfr_string *s, struct buf *out);

#endif

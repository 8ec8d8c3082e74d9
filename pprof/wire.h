/* A reader of protobuf fields over a flat buffer.
 *
 * These functions read bytes from outside and trust none of them. They are pure, allocate nothing,
 * and may be called by any thread. Most numbers of a profile are short, so these are read inline.
 */
#ifndef PROFPULL_PPROF_WIRE_H
#define PROFPULL_PPROF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <endian.h>

#include "base/str.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
    uint64_t number; /* >= 1 */
    unsigned type;   /* WIRE_* */
    uint64_t value;  /* WIRE_VARINT */
    struct sv bytes; /* the content, in the input; of a number, its encoded bytes */
};

struct wire_reader {
    struct sv in;
    size_t at;
    size_t field_start;  /* where the field that was read last begins */
    const char *problem; /* why wire_next() stopped before the end, or NULL */
    bool cut;            /* the problem is that the input ends too early */
};

static inline struct wire_reader wire_reader_of(struct sv in)
{
    return (struct wire_reader){.in = in};
}

/* ---- numbers -----------------------------------------------------------------------------------
 * Everything is passed by value, so that a loop over fields stays in registers: nearly all of the
 * time that a delta takes is spent here. */

struct wire_varint {
    const char *next; /* the byte after the number; NULL if there is no number */
    uint64_t value;   /* the number; if there is none: 1 if the input is cut */
};

/* The top bits of eight bytes. A bit is set if the number continues in the next byte. */
#define WIRE_TOP_BITS UINT64_C(0x8080808080808080)

/* Reads eight bytes as a number; the first byte is the lowest. */
static inline uint64_t wire_eight(const char *p)
{
    uint64_t bytes;
    memcpy(&bytes, p, sizeof(bytes));
    return le64toh(bytes);
}

/* Reads the number at p if it ends within eight bytes, all of which must be readable. Otherwise
 * next is NULL. */
static inline struct wire_varint wire_varint_in_eight(const char *p)
{
    uint64_t bytes = wire_eight(p);
    uint64_t last = ~bytes & WIRE_TOP_BITS;
    if (last == 0) {
        return (struct wire_varint){NULL, 0};
    }
    /* All bits above its last byte are removed. The seven bits of each byte are joined: first pairs
     * of bytes, then pairs of two bytes, then of four. */
    bytes &= last ^ (last - 1);
    bytes = (bytes & UINT64_C(0x007f007f007f007f)) | (bytes & UINT64_C(0x7f007f007f007f00)) >> 1;
    bytes = (bytes & UINT64_C(0x00003fff00003fff)) | (bytes & UINT64_C(0x3fff00003fff0000)) >> 2;
    bytes = (bytes & UINT64_C(0x0fffffff)) | (bytes & UINT64_C(0x0fffffff00000000)) >> 4;
    return (struct wire_varint){p + __builtin_ctzll(last) / 8 + 1, bytes};
}

/* Private: reads numbers of more than two bytes, and bad ones. */
struct wire_varint wire_varint_slow(const char *p, const char *end);

static inline struct wire_varint wire_varint(const char *p, const char *end)
{
    uint64_t first = p < end ? (unsigned char)p[0] : 0x80;
    if (first < 0x80) {
        return (struct wire_varint){p + 1, first};
    }
    if (end - p >= 2 && (unsigned char)p[1] < 0x80) {
        return (struct wire_varint){p + 2, (first & 0x7f) | (uint64_t)(unsigned char)p[1] << 7};
    }
    return wire_varint_slow(p, end);
}

/* Reads a number as wire_varint() does. All bytes up to `readable` can be read, and the number may
 * end anywhere among them. */
static inline __attribute__((always_inline)) struct wire_varint
wire_varint_ahead(const char *p, const char *readable)
{
    if (readable - p < (ptrdiff_t)sizeof(uint64_t)) {
        return wire_varint(p, readable);
    }
    uint64_t first = (unsigned char)p[0];
    uint64_t second = (unsigned char)p[1];
    if (first < 0x80) {
        return (struct wire_varint){p + 1, first};
    }
    if (second < 0x80) {
        return (struct wire_varint){p + 2, (first & 0x7f) | second << 7};
    }
    struct wire_varint v = wire_varint_in_eight(p);
    return v.next != NULL ? v : wire_varint_slow(p, readable);
}

static inline bool wire_fail(struct wire_reader *r, const char *problem, bool cut)
{
    r->problem = problem;
    r->cut = cut;
    return false;
}

static inline bool wire_fail_number(struct wire_reader *r, uint64_t cut)
{
    return wire_fail(r, cut != 0 ? "a number without end" : "a number of more than 64 bits",
                     cut != 0);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Says why there is no field: its tag or type is wrong. Returns false. */
static inline bool wire_fail_tag(struct wire_reader *r, const struct wire_field *f)
{
    return wire_fail(r,
                     f->number == 0           ? "a field with number 0"
                     : f->number > 0x1fffffff ? "a field number that is too large"
                                              : "a wire type that does not exist",
                     false);
}

/* Private: reads a field of any kind. The reader must not be at the end. */
static inline __attribute__((always_inline)) bool wire_next_any(struct wire_reader *r,
                                                                struct wire_field *ret)
{
    const char *end = r->in.p + r->in.n;
    struct wire_varint tag = wire_varint(r->in.p + r->at, end);
    if (tag.next == NULL) {
        return wire_fail_number(r, tag.value);
    }
    const char *p = tag.next;
    ret->number = tag.value >> 3;
    ret->type = (unsigned)(tag.value & 7);
    ret->value = 0;
    /* Numbers from 1 to 0x1fffffff. */
    if (ret->number - 1 >= 0x1fffffff) {
        return wire_fail_tag(r, ret);
    }
    uint64_t size = ret->type == WIRE_FIXED64 ? 8 : 4;
    if (ret->type == WIRE_VARINT || ret->type == WIRE_BYTES) {
        struct wire_varint v = wire_varint(p, end);
        if (v.next == NULL) {
            return wire_fail_number(r, v.value);
        }
        ret->value = v.value;
        size = ret->type == WIRE_BYTES ? v.value : (uint64_t)(v.next - p);
        p = ret->type == WIRE_BYTES ? v.next : p;
    } else if (ret->type != WIRE_FIXED64 && ret->type != WIRE_FIXED32) {
        return wire_fail_tag(r, ret);
    }
    if (size > (uint64_t)(end - p)) {
        return wire_fail(r, "a field that runs past the end", true);
    }
    ret->bytes.p = p;
    ret->bytes.n = (size_t)size;
    r->at = (size_t)(p - r->in.p) + (size_t)size;
    return true;
}

/* Returns true if these two bytes begin a field of bytes with a number below 16 and a length below
 * 128. Nearly all fields of a profile begin like this. */
static inline bool wire_is_short(unsigned char tag, unsigned char size)
{
    return (tag & 0x87) == WIRE_BYTES && tag >= 1 << 3 && size < 0x80;
}

/* Returns the content of the field that begins at p if the field has this number, which is below
 * 16, and less than 128 bytes. Otherwise the p of the result is NULL. */
static inline struct sv wire_short_field(const char *p, const char *end, unsigned number)
{
    size_t n = end - p >= 2 ? (unsigned char)p[1] : SIZE_MAX;
    bool good =
        n < 0x80 && (unsigned char)p[0] == (number << 3 | WIRE_BYTES) && n <= (size_t)(end - p - 2);
    return (struct sv){.p = good ? p + 2 : NULL, .n = n};
}

/* Reads one field. Returns false at the end, or at a problem. */
static inline __attribute__((always_inline)) bool wire_next(struct wire_reader *r,
                                                            struct wire_field *ret)
{
    const unsigned char *p = (const unsigned char *)r->in.p + r->at;
    size_t left = r->in.n - r->at;
    r->field_start = r->at;
    if (left == 0 || r->problem != NULL) {
        return false;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): where bytes are left, p is not NULL */
    if (left >= 2 && wire_is_short(p[0], p[1]) && p[1] <= left - 2) {
        ret->number = p[0] >> 3;
        ret->type = WIRE_BYTES;
        ret->value = p[1];
        ret->bytes = (struct sv){.p = r->in.p + r->at + 2, .n = p[1]};
        r->at += 2 + (size_t)p[1];
        return true;
    }
    return wire_next_any(r, ret);
}

/* Reads the numbers of a message that are not repeated: ret[i] is the last field i, and is not
 * changed if there is none. Reading stops without an error where the message is damaged. */
static inline void wire_read_numbers(struct sv message, uint64_t *ret, size_t n)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (r.at < message.n) {
        unsigned tag = (unsigned char)message.p[r.at];
        if ((tag & 0x87) == WIRE_VARINT && tag >= 1 << 3) {
            struct wire_varint v = wire_varint(message.p + r.at + 1, message.p + message.n);
            if (v.next == NULL) {
                return;
            }
            f.number = tag >> 3;
            f.type = WIRE_VARINT;
            f.value = v.value;
            r.at = (size_t)(v.next - message.p);
        } else if (!wire_next(&r, &f)) {
            return;
        }
        if (f.number < n && f.type == WIRE_VARINT) {
            ret[f.number] = f.value;
        }
    }
}

/* Reads the numbers of a repeated field, packed or not. It is used for each field with this
 * number. */
struct wire_numbers {
    const char *at; /* NULL once something is wrong */
    const char *end;
};

static inline struct wire_numbers wire_numbers_of(const struct wire_field *f)
{
    return (struct wire_numbers){.at = f->bytes.p, .end = f->bytes.p + f->bytes.n};
}

/* Returns true if the last one of packed numbers is whole, so that none runs past the end. */
static inline bool wire_packed_is_whole(struct sv packed)
{
    return packed.n == 0 || (unsigned char)packed.p[packed.n - 1] < 0x80;
}

/* Reads the next number. Returns false at the end; if n->at is NULL then, a number was bad. */
static inline __attribute__((always_inline)) bool wire_numbers_next(struct wire_numbers *n,
                                                                    uint64_t *ret)
{
    if (n->at == NULL || n->at >= n->end) {
        return false;
    }
    struct wire_varint v = wire_varint(n->at, n->end);
    n->at = v.next;
    *ret = v.value;
    return v.next != NULL;
}

/* ---- pprof's messages ------------------------------------------------------------------------ */

/* Fields of pprof's Profile message. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_DROP_FRAMES = 7,
    PROFILE_KEEP_FRAMES = 8,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
    PROFILE_DOC_URL = 15,
    PROFILE_FIELDS, /* above all that are known */
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3, LABEL_NUM_UNIT = 4 };
enum {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILENAME = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_LAST = 10, /* has_functions and so on */
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION_ID = 1, LINE_LINE = 2, LINE_COLUMN = 3 };
enum {
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILENAME = 4,
    FUNCTION_START_LINE = 5,
};

#endif

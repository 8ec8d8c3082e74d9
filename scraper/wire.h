/* A reader of protobuf fields over a flat buffer.
 *
 * Everything here takes bytes from outside and does not trust one of them. Pure functions, any
 * thread, no allocation. The short numbers that profiles are full of are read inline.
 */
#ifndef PROFPULL_SCRAPER_WIRE_H
#define PROFPULL_SCRAPER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
    uint64_t number; /* >= 1 */
    unsigned type;   /* WIRE_* */
    uint64_t value;  /* WIRE_VARINT */
    struct sv bytes; /* WIRE_BYTES: points into the input */
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

/* Private: what wire_next() and wire_number() do beyond their short ways. */
bool wire_next_slow(struct wire_reader *r, struct wire_field *ret);
bool wire_number_slow(struct wire_reader *r, uint64_t *ret);

/* Reads a number without a tag, as they stand in packed fields. False at the end of the input too:
 * ask r->at == r->in.n first. */
static inline bool wire_number(struct wire_reader *r, uint64_t *ret)
{
    if (r->at < r->in.n && (unsigned char)r->in.p[r->at] < 0x80) {
        *ret = (unsigned char)r->in.p[r->at++];
        return true;
    }
    return wire_number_slow(r, ret);
}

/* Reads one field. False at the end, or at a problem. */
static inline bool wire_next(struct wire_reader *r, struct wire_field *ret)
{
    size_t left = r->in.n - r->at;
    if (left < 2 || r->problem != NULL) {
        return wire_next_slow(r, ret);
    }
    const unsigned char *p = (const unsigned char *)r->in.p + r->at;
    unsigned type = p[0] & 7U;
    size_t n = type == WIRE_BYTES ? p[1] : 0;
    /* A tag of one byte with a number or a length of one byte. */
    bool is_short = p[0] >= 8 && p[0] < 0x80 && p[1] < 0x80 && n <= left - 2 &&
                    (type == WIRE_VARINT || type == WIRE_BYTES);
    if (!is_short) {
        return wire_next_slow(r, ret);
    }
    r->field_start = r->at;
    r->at += 2 + n;
    *ret = (struct wire_field){.number = p[0] >> 3,
                               .type = type,
                               .value = p[1],
                               .bytes = {r->in.p + (r->at - n), n}};
    return true;
}

/* The numbers of a repeated field, packed or not: give it each field of that number. */
struct wire_numbers {
    struct wire_reader in;
    uint64_t single;
    bool is_single;
};

static inline struct wire_numbers wire_numbers_of(const struct wire_field *f)
{
    return (struct wire_numbers){
        .in = wire_reader_of(f->bytes),
        .single = f->value,
        .is_single = f->type == WIRE_VARINT,
    };
}

/* False at the end; n->in.problem says whether the end is a good one. */
static inline bool wire_numbers_next(struct wire_numbers *n, uint64_t *ret)
{
    if (n->is_single) {
        n->is_single = false;
        n->in.in.n = 0;
        n->in.at = 0;
        *ret = n->single;
        return true;
    }
    return n->in.at < n->in.in.n && wire_number(&n->in, ret);
}

/* ---- pprof's messages --------------------------------------------------------------------------
 */

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
    PROFILE_DOC_URL = 15, /* the last one that is known */
};

/* False if it is a known field of pprof's Profile message with a wire type that it cannot have. */
bool profile_field_fits(const struct wire_field *f);

#endif

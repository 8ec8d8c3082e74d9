/* A strict reader of protobuf, apart from the product's: shortest varints, and no field but those
 * that have a length. */
#ifndef PROFPULL_TESTS_PROTOBUF_READER_H
#define PROFPULL_TESTS_PROTOBUF_READER_H

#include "tests/unit/lib/testing.h"

struct field {
    unsigned number;
    struct sv content;
};

/* Fails the test if the number is cut or not in its shortest form. */
static inline size_t next_varint(struct sv *in)
{
    size_t v = 0;
    for (unsigned shift = 0; in->n > 0 && shift < 63; shift += 7) {
        unsigned char c = (unsigned char)in->p[0];
        *in = sv_skip(*in, 1);
        v |= (size_t)(c & 0x7f) << shift;
        if ((c & 0x80) == 0) {
            assert_true(shift == 0 || c != 0);
            return v;
        }
    }
    fail_msg("a varint that does not end");
    return 0;
}

/* The tag of a field with a length, and that length. */
static inline size_t next_tag(struct sv *in, unsigned *ret_number)
{
    size_t tag = next_varint(in);
    CHECK_INT(tag & 7, 2, "wire type");
    *ret_number = (unsigned)(tag >> 3);
    return next_varint(in);
}

/* The next field; fails the test if there is none. */
static inline struct field next_field(struct sv *in)
{
    struct field f = {.content = SV("")};
    size_t size = next_tag(in, &f.number);
    assert_true(size <= in->n);
    f.content = (struct sv){.p = in->p, .n = size};
    *in = sv_skip(*in, size);
    return f;
}

#endif

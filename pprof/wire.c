/* The long ways of the reader. */
#include "pprof/wire.h"

struct wire_varint wire_varint_slow(const char *p, const char *end)
{
    const struct wire_varint cut = {NULL, 1};
    const struct wire_varint too_large = {NULL, 0};
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p == end) {
            return cut;
        }
        uint64_t byte = (unsigned char)*p++;
        if (shift == 63 && byte > 1) {
            return too_large;
        }
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            return (struct wire_varint){p, value};
        }
    }
    return too_large;
}

bool profile_field_fits(const struct wire_field *f)
{
    if (f->number >= PROFILE_FIELDS) {
        return true;
    }
    if (f->number == PROFILE_COMMENT) {
        return f->type == WIRE_VARINT || f->type == WIRE_BYTES; /* repeated numbers may be packed */
    }
    bool is_message = f->number <= PROFILE_STRING || f->number == PROFILE_PERIOD_TYPE;
    return f->type == (is_message ? WIRE_BYTES : WIRE_VARINT);
}

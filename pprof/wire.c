/* The slow paths of the reader: numbers of several bytes. */
#include "pprof/wire.h"

struct wire_varint wire_varint_slow(const char *p, const char *end)
{
    const struct wire_varint cut = {NULL, 1};
    const struct wire_varint too_large = {NULL, 0};
    uint64_t value = 0;
    if (end - p >= (ptrdiff_t)sizeof(uint64_t)) {
        struct wire_varint v = wire_varint_in_eight(p);
        if (v.next != NULL) {
            return v;
        }
    }
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

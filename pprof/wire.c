/* The long ways of the reader. */
#include "pprof/wire.h"

/* The number in these bytes, of which the lowest comes first: seven bits of each byte are brought
 * together, by pairs of bytes, of two and of four. */
static uint64_t gather(uint64_t bytes)
{
    bytes = (bytes & UINT64_C(0x007f007f007f007f)) | (bytes & UINT64_C(0x7f007f007f007f00)) >> 1;
    bytes = (bytes & UINT64_C(0x00003fff00003fff)) | (bytes & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (bytes & UINT64_C(0x0fffffff)) | (bytes & UINT64_C(0x0fffffff00000000)) >> 4;
}

struct wire_varint wire_varint_slow(const char *p, const char *end)
{
    const struct wire_varint cut = {NULL, 1};
    const struct wire_varint too_large = {NULL, 0};
    uint64_t value = 0;
    if (end - p >= (ptrdiff_t)sizeof(uint64_t)) {
        uint64_t bytes = wire_eight(p);
        uint64_t last = ~bytes & WIRE_TOP_BITS;
        if (last != 0) { /* it ends within these bytes: all above its last one is cut off */
            return (struct wire_varint){p + __builtin_ctzll(last) / 8 + 1,
                                        gather(bytes & (last ^ (last - 1)))};
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

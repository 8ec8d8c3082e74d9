#include "write/spool/crc32c.h"

#include <string.h>

/* 4 bits at a time: entry i is i divided by the reflected polynomial 0x82f63b78. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t n)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const unsigned char *p = data;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data,
                                                               size_t n)
{
    const unsigned char *p = data;
    uint64_t wide = ~crc;
    for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t), p += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        wide = _mm_crc32_u64(wide, word);
    }
    uint32_t narrow = (uint32_t)wide;
    for (; n > 0; n--, p++) {
        narrow = _mm_crc32_u8(narrow, *p);
    }
    return ~narrow;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t n)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, data, n)
                                            : crc32c_portable(crc, data, n);
}

#else

uint32_t crc32c(uint32_t crc, const void *data, size_t n)
{
    return crc32c_portable(crc, data, n);
}

#endif

/* The bit mixer that hash_bytes() and struct rng use. Private to base/. */
#ifndef PROFPULL_BASE_MIX_H
#define PROFPULL_BASE_MIX_H

#include <stdint.h>

/* Odd numbers with about half of their bits set: the first 64 fractional bits of the golden ratio,
 * and of the square roots of 2 (made odd) and 3. */
#define MIX_GOLDEN UINT64_C(0x9e3779b97f4a7c15)
#define MIX_ROOT2 UINT64_C(0x6a09e667f3bcc909)
#define MIX_ROOT3 UINT64_C(0xbb67ae8584caa73b)

/* Computes a permutation of the 64-bit numbers in which every input bit affects every output bit:
 * shifts move high bits down, odd multiplications carry low bits up. */
static inline uint64_t mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= MIX_ROOT2;
    x ^= x >> 29;
    x *= MIX_ROOT3;
    x ^= x >> 32;
    return x;
}

#endif

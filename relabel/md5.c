#include "relabel/md5.h"

#include <string.h>

#define BLOCK 64
/* The length in bits stands in the last bytes of the last block. */
#define LENGTH_BYTES 8

/* T[i] = floor(2^32 * |sin(i + 1)|), RFC 1321 section 3.4. */
static const uint32_t sines[BLOCK] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

/* Rotation in each of the four rounds, by step modulo 4. */
static const unsigned char rotations[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

/* Which word of the block a step takes: (factor * step + start) mod 16, by round. */
static const unsigned char word_factor[4] = {1, 5, 3, 7};
static const unsigned char word_start[4] = {0, 1, 5, 0};

static uint32_t rotate_left(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static uint32_t mix(unsigned round, uint32_t x, uint32_t y, uint32_t z)
{
    switch (round) {
    case 0:
        return (x & y) | (~x & z);
    case 1:
        return (x & z) | (y & ~z);
    case 2:
        return x ^ y ^ z;
    default:
        return y ^ (x | ~z);
    }
}

static void add_block(uint32_t state[4], const uint8_t block[BLOCK])
{
    uint32_t words[16];
    for (size_t i = 0; i < 16; i++) {
        const uint8_t *b = block + 4 * i;
        words[i] = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    }
    uint32_t a = state[0];
    uint32_t b = state[1];
    uint32_t c = state[2];
    uint32_t d = state[3];
    for (unsigned i = 0; i < BLOCK; i++) {
        unsigned round = i / 16;
        unsigned word = (word_factor[round] * i + word_start[round]) % 16;
        uint32_t sum = a + mix(round, b, c, d) + words[word] + sines[i];
        a = d;
        d = c;
        c = b;
        b += rotate_left(sum, rotations[round][i % 4]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

/* The rest of the message, a one bit, zeros and the length, in one block or two. */
static void add_tail(uint32_t state[4], struct sv rest, uint64_t bits)
{
    uint8_t tail[2 * BLOCK] = {0};
    if (rest.n > 0) {
        memcpy(tail, rest.p, rest.n);
    }
    tail[rest.n] = 0x80;
    size_t size = rest.n + 1 + LENGTH_BYTES <= BLOCK ? BLOCK : 2 * BLOCK;
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        tail[size - LENGTH_BYTES + i] = (uint8_t)(bits >> (8 * i));
    }
    for (size_t at = 0; at < size; at += BLOCK) {
        add_block(state, tail + at);
    }
}

void md5(struct sv message, uint8_t digest[MD5_BYTES])
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    uint64_t bits = (uint64_t)message.n * 8;
    for (; message.n >= BLOCK; message.n -= BLOCK, message.p += BLOCK) {
        add_block(state, (const uint8_t *)message.p);
    }
    add_tail(state, message, bits);
    for (size_t i = 0; i < MD5_BYTES; i++) {
        digest[i] = (uint8_t)(state[i / 4] >> (8 * (i % 4)));
    }
}

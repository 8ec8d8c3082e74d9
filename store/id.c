/* Ids of profiles, and the hashes in them. */
#include <stdio.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "store/blob.h"
#include "store/private.h"

/* ---- ids ------------------------------------------------------------------------------------- */

/* Formats a UUID of version 8: 48 bits of the time in ms, 12 and 30 bits of the hash, 32 bits of
 * the row. */
void store_id_format(int64_t time_ns, uint64_t hash, int64_t row, char out[STORE_ID_LENGTH + 1])
{
    uint64_t ms = (uint64_t)(time_ns / NS_PER_MS);
    (void)snprintf(out, STORE_ID_LENGTH + 1, "%08x-%04x-8%03x-%04x-%04x%08x", (unsigned)(ms >> 16),
                   (unsigned)(ms & 0xffff), (unsigned)(hash & 0xfff),
                   0x8000 | (unsigned)(hash >> 12 & 0x3fff), (unsigned)(hash >> 26 & 0xffff),
                   (unsigned)row);
}

static bool take_hex(struct sv text, size_t at, size_t n, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = at; i < at + n; i++) {
        int digit = ascii_hex_value(text.p[i]);
        if (digit < 0) {
            return false;
        }
        v = v << 4 | (uint64_t)digit;
    }
    *ret = v;
    return true;
}

bool store_id_parse(struct sv text, int64_t *ret_time_ms, uint64_t *ret_hash, int64_t *ret_row)
{
    uint64_t v[6];
    static const struct {
        size_t at;
        size_t n;
    } pieces[] = {{0, 8}, {9, 4}, {14, 4}, {19, 4}, {24, 4}, {28, 8}};
    if (text.n != STORE_ID_LENGTH || text.p[8] != '-' || text.p[13] != '-' || text.p[18] != '-' ||
        text.p[23] != '-') {
        return false;
    }
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        if (!take_hex(text, pieces[i].at, pieces[i].n, &v[i])) {
            return false;
        }
    }
    *ret_time_ms = (int64_t)(v[0] << 16 | v[1]);
    *ret_hash = (v[2] & 0xfff) | (v[3] & 0x3fff) << 12 | v[4] << 26;
    *ret_row = (int64_t)v[5];
    return v[2] >> 12 == 8 && v[3] >> 14 == 2;
}

bool store_id_fits(int64_t time_ns, uint64_t hash, int64_t time_ms, uint64_t id_hash)
{
    return time_ns / NS_PER_MS == time_ms && (hash & ((UINT64_C(1) << 42) - 1)) == id_hash;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

/* The salt changes only the 16 highest bits of a hash. The other bits still show whether the bytes
 * have changed. */
#define SALT_SHIFT 48

uint64_t store_hash(struct sv data, uint16_t salt)
{
    return blob_hash(data, NULL, 0) ^ (uint64_t)salt << SALT_SHIFT;
}

bool store_hash_fits(struct sv data, uint64_t hash)
{
    return (blob_hash(data, NULL, 0) ^ hash) << (64 - SALT_SHIFT) == 0;
}

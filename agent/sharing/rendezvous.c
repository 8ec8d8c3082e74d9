#include "agent/sharing/rendezvous.h"

/* FNV-1a (draft-eastlake-fnv). */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of x affects every bit of the
 * result. FNV alone gives similar hashes to names that differ in the last letter. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t rendezvous_hash(struct sv text)
{
    uint64_t h = FNV_BASIS;
    for (size_t i = 0; i < text.n; i++) {
        h = (h ^ (unsigned char)text.p[i]) * FNV_PRIME;
    }
    return mix(h);
}

uint64_t rendezvous_weight(uint64_t member, uint64_t key)
{
    return mix(member ^ key);
}

struct sv rendezvous_key(struct sv process, const char *pinned_host, bool foreign_allowed)
{
    struct sv host;
    uint16_t port;
    if (pinned_host == NULL || !split_host_port(process, &host, &port, NULL) ||
        (foreign_allowed && !sv_eq_str(host, pinned_host))) {
        return process;
    }
    return host;
}

#include "server/shares.h"

#include <stdlib.h>

#include "base/map.h"

struct shares {
    struct map *counts; /* of struct share, by address; none is 0 */
};

struct share {
    size_t n;
};

static struct sv key_of(const struct in6_addr *address)
{
    return (struct sv){.p = (const char *)address, .n = sizeof(*address)};
}

struct shares *shares_new(void)
{
    struct shares *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->counts = map_new();
    return s->counts != NULL ? s : shares_free(s);
}

struct shares *shares_free(struct shares *s)
{
    if (s != NULL) {
        map_free(s->counts, free);
        free(s);
    }
    return NULL;
}

/* Adds an address without requests. NULL if out of memory. */
static struct share *add(struct shares *s, const struct in6_addr *address)
{
    struct share *share = calloc(1, sizeof(*share));
    if (share != NULL && !map_put(s->counts, key_of(address), share, NULL)) {
        free(share);
        share = NULL;
    }
    return share;
}

bool shares_take(struct shares *s, const struct in6_addr *address, size_t most)
{
    struct share *share = map_get(s->counts, key_of(address));
    if ((share != NULL ? share->n : 0) >= most) {
        return false;
    }
    share = share != NULL ? share : add(s, address);
    if (share != NULL) {
        share->n++;
    }
    return share != NULL;
}

void shares_give(struct shares *s, const struct in6_addr *address)
{
    struct share *share = map_get(s->counts, key_of(address));
    if (--share->n == 0) {
        free(map_remove(s->counts, key_of(address)));
    }
}

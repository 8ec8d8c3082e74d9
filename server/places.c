#include "server/places.h"

#include <stdlib.h>

#include "base/map.h"

struct place {
    struct connection *connection;
    struct host *host;
    size_t index; /* index among all places */
    /* Neighbours among the places of the same address, in order of their last request. */
    struct place *older;
    struct place *newer;
};

/* An address with at least one connection. */
struct host {
    struct in6_addr address; /* IPv4 as ::ffff:a.b.c.d */
    size_t n;
    struct place *oldest;
    struct place *newest;
    /* Neighbours among the addresses with the same number of connections, in order of their last
     * request. */
    struct host *before;
    struct host *after;
};

struct row {
    struct host *first;
    struct host *last;
};

struct places {
    size_t max;
    size_t max_of_one;
    struct place **all;
    size_t n;
    struct map *hosts;
    struct row *by_count; /* [n]: the addresses with n connections */
    size_t most;          /* the largest number of connections that an address has */
};

/* ---- hosts ----------------------------------------------------------------------------------- */

static struct sv key_of(const struct in6_addr *address)
{
    return (struct sv){.p = (const char *)address, .n = sizeof(*address)};
}

static void unlink_host(struct places *p, struct host *h)
{
    struct row *row = &p->by_count[h->n];
    *(h->before != NULL ? &h->before->after : &row->first) = h->after;
    *(h->after != NULL ? &h->after->before : &row->last) = h->before;
}

static void link_host(struct places *p, struct host *h)
{
    struct row *row = &p->by_count[h->n];
    h->before = row->last;
    h->after = NULL;
    *(h->before != NULL ? &h->before->after : &row->first) = h;
    row->last = h;
}

static struct host *host_new(struct places *p, const struct in6_addr *address)
{
    struct host *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return NULL;
    }
    h->address = *address;
    if (!map_put(p->hosts, key_of(address), h, NULL)) {
        free(h);
        return NULL;
    }
    link_host(p, h);
    return h;
}

/* Moves a host to the row of its new number of connections. */
static void recount(struct places *p, struct host *h, size_t n)
{
    unlink_host(p, h);
    h->n = n;
    link_host(p, h);
    if (n > p->most) {
        p->most = n;
    }
    while (p->most > 0 && p->by_count[p->most].first == NULL) {
        p->most--;
    }
}

/* ---- places of a host ------------------------------------------------------------------------ */

static void unlink_place(struct place *place)
{
    struct host *h = place->host;
    *(place->older != NULL ? &place->older->newer : &h->oldest) = place->newer;
    *(place->newer != NULL ? &place->newer->older : &h->newest) = place->older;
}

static void link_place(struct place *place)
{
    struct host *h = place->host;
    place->older = h->newest;
    place->newer = NULL;
    *(place->older != NULL ? &place->older->newer : &h->oldest) = place;
    h->newest = place;
}

struct place *places_add(struct places *p, const struct in6_addr *address, struct connection *c)
{
    struct place *place = calloc(1, sizeof(*place));
    struct host *h = map_get(p->hosts, key_of(address));
    if (h == NULL && place != NULL) {
        h = host_new(p, address);
    }
    if (h == NULL) {
        free(place);
        return NULL;
    }
    if (place != NULL) {
        *place = (struct place){.connection = c, .host = h, .index = p->n};
        p->all[p->n++] = place;
        link_place(place);
        recount(p, h, h->n + 1);
    }
    return place;
}

void places_use(struct places *p, struct place *place)
{
    unlink_place(place);
    link_place(place);
    unlink_host(p, place->host);
    link_host(p, place->host);
}

void places_remove(struct places *p, struct place *place)
{
    struct host *h = place->host;
    p->all[place->index] = p->all[--p->n];
    p->all[place->index]->index = place->index;
    unlink_place(place);
    free(place);
    recount(p, h, h->n - 1);
    if (h->n == 0) {
        unlink_host(p, h);
        map_remove(p->hosts, key_of(&h->address));
        free(h);
    }
}

/* ---- who has to go --------------------------------------------------------------------------- */

struct connection *places_own_victim(const struct places *p, const struct in6_addr *address)
{
    const struct host *h = map_get(p->hosts, key_of(address));
    return h != NULL && h->n >= p->max_of_one ? h->oldest->connection : NULL;
}

struct connection *places_victim(const struct places *p)
{
    return p->most > 0 ? p->by_count[p->most].first->oldest->connection : NULL;
}

bool places_are_full(const struct places *p)
{
    return p->n >= p->max;
}

size_t places_count(const struct places *p)
{
    return p->n;
}

size_t places_addresses(const struct places *p)
{
    return map_count(p->hosts);
}

const struct in6_addr *place_address(const struct place *place)
{
    return &place->host->address;
}

struct connection *places_at(const struct places *p, size_t i)
{
    return p->all[i]->connection;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct places *places_new(size_t max, size_t max_of_one)
{
    struct places *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    p->max = max;
    p->max_of_one = max_of_one;
    p->all = calloc(max, sizeof(void *));
    p->hosts = map_new();
    p->by_count = calloc(max + 1, sizeof(*p->by_count));
    return p->all != NULL && p->hosts != NULL && p->by_count != NULL ? p : places_free(p);
}

struct places *places_free(struct places *p)
{
    if (p != NULL) {
        for (size_t i = 0; i < p->n; i++) {
            free(p->all[i]);
        }
        map_free(p->hosts, free);
        free(p->all);
        free(p->by_count);
        free(p);
    }
    return NULL;
}

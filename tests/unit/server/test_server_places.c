/* Which connection has to go, compared with looking at all of them. */
#include "server/places.h"

#include <stdlib.h>

#include "tests/unit/lib/testing.h"

#define MAX 40
#define HOSTS 12

/* One that the model knows; a connection is a pointer into the array of them. */
struct model {
    struct place *place; /* NULL: free */
    struct in6_addr address;
    unsigned used; /* when its last request was */
};

struct world {
    struct places *places;
    struct model at[MAX];
    unsigned now;
    unsigned host_used[HOSTS]; /* when it last had a request or another number of connections */
    unsigned random;
};

static unsigned draw(struct world *w, unsigned n)
{
    w->random = w->random * 1103515245 + 12345;
    return (w->random >> 16) % n;
}

static struct in6_addr address_of(unsigned host)
{
    return (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff, [15] = (uint8_t)host}};
}

static unsigned host_of(const struct model *m)
{
    return m->address.s6_addr[15];
}

static struct connection *as_connection(struct model *m)
{
    return (struct connection *)(void *)m;
}

static size_t count(const struct world *w, unsigned host)
{
    size_t n = 0;
    for (size_t i = 0; i < MAX; i++) {
        n += w->at[i].place != NULL && host_of(&w->at[i]) == host;
    }
    return n;
}

static struct model *oldest(struct world *w, unsigned host)
{
    struct model *found = NULL;
    for (size_t i = 0; i < MAX; i++) {
        struct model *m = &w->at[i];
        if (m->place != NULL && host_of(m) == host && (found == NULL || m->used < found->used)) {
            found = m;
        }
    }
    return found;
}

/* Returns the connection that has to go: the oldest of the addresses with the most connections. */
static struct model *victim(struct world *w)
{
    unsigned worst = HOSTS;
    for (unsigned h = 0; h < HOSTS; h++) {
        size_t n = count(w, h);
        size_t most = worst == HOSTS ? 0 : count(w, worst);
        if (n > most || (n > 0 && n == most && w->host_used[h] < w->host_used[worst])) {
            worst = h;
        }
    }
    return worst == HOSTS ? NULL : oldest(w, worst);
}

static void check(struct world *w)
{
    assert_ptr_equal(places_victim(w->places), as_connection(victim(w)));
    size_t n = 0;
    for (unsigned h = 0; h < HOSTS; h++) {
        struct in6_addr address = address_of(h);
        struct connection *own = count(w, h) >= 5 ? as_connection(oldest(w, h)) : NULL;
        assert_ptr_equal(places_own_victim(w->places, &address), own);
        n += count(w, h);
    }
    CHECK_INT(places_count(w->places), n, "");
    CHECK_INT(places_are_full(w->places), n == MAX, "");
    for (size_t i = 0; i < n; i++) {
        assert_non_null(((struct model *)(void *)places_at(w->places, i))->place);
    }
}

static void step(struct world *w)
{
    struct model *m = &w->at[draw(w, MAX)];
    unsigned host = m->place != NULL ? host_of(m) : draw(w, HOSTS);
    w->now++;
    w->host_used[host] = w->now;
    if (m->place == NULL) {
        m->address = address_of(host);
        m->used = w->now;
        m->place = places_add(w->places, &m->address, as_connection(m));
        assert_non_null(m->place);
    } else if (draw(w, 3) == 0) {
        places_remove(w->places, m->place);
        m->place = NULL;
    } else {
        m->used = w->now;
        places_use(w->places, m->place);
    }
}

TEST(as_looking_at_all_would_choose)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct world w = {.places = places_new(MAX, 5), .random = seed};
        assert_non_null(w.places);
        for (int i = 0; i < 500; i++) {
            step(&w);
            check(&w);
        }
        places_free(w.places);
    }
}

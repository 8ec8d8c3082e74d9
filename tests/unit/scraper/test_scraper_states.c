/* The states of a scrape and the transitions between them. */
#include "tests/unit/scraper/scraper_world.h"

/* A scrape becomes what the table says, and nothing else. */
TEST_WITH(transitions, setup, teardown)
{
    static const char *const rows[SCRAPE_STATES] = {
        /* idle, early, gate, slot, slot gated, flight, flight gated */
        [SCRAPE_IDLE] = "xxxxx--",
        [SCRAPE_IDLE_EARLY] = "xx-----",
        [SCRAPE_WAITS_GATE] = "x---x--",
        [SCRAPE_WAITS_SLOT] = "x--x-x-",
        [SCRAPE_WAITS_SLOT_GATED] = "x---x-x",
        [SCRAPE_IN_FLIGHT] = "x------",
        [SCRAPE_IN_FLIGHT_GATED] = "x------",
    };
    for (unsigned from = 0; from < SCRAPE_STATES; from++) {
        for (unsigned to = 0; to < SCRAPE_STATES; to++) {
            bool may = scrape_may_become((enum scrape_state)from, (enum scrape_state)to);
            CHECK_INT(may, rows[from][to] == 'x', rows[from]);
        }
    }
}

/* Returns true if the scrape of the type at a path, of which there is one, is in a state. */
static bool is_in(struct world *w, const char *path, enum scrape_state state)
{
    for (size_t i = 0; i < w->e->table.n_slots; i++) {
        const struct scrape *sc = w->e->table.slots[i];
        if (sc != NULL && strcmp(scrape_type(sc)->path, path) == 0) {
            return sc->state == state;
        }
    }
    return false;
}

/* The way of two scrapes that sample the same process, with one slot: the second one waits for the
 * gate, then for the slot that another target holds, and runs. */
TEST_ON(struct world *w, the_way_of_a_scrape)
{
    engine_free(w->e);
    make_engine(w, 1);
    w->types[MEMORY].enabled = false;
    w->types[CPU].enabled = true;
    w->types[FGPROF].enabled = true;
    set(w, 0, "s", "1", AT("h:1"));
    struct http_transfer *first = next_start(w);
    bool cpu_first = strstr(first->url, "/cpu") != NULL;
    const char *one = cpu_first ? "/cpu" : "/fg";
    const char *two = cpu_first ? "/fg" : "/cpu";
    assert_true(is_in(w, one, SCRAPE_IN_FLIGHT_GATED));
    assert_true(is_in(w, two, SCRAPE_IDLE) || is_in(w, two, SCRAPE_IDLE_EARLY) ||
                is_in(w, two, SCRAPE_WAITS_GATE));
    for (int i = 0; i < 15000 && !is_in(w, two, SCRAPE_WAITS_GATE); i++) {
        turn(w, 1);
    }
    assert_true(is_in(w, two, SCRAPE_WAITS_GATE));
    w->types[MEMORY].enabled = true; /* another target waits for the slot */
    w->types[CPU].enabled = false;
    w->types[FGPROF].enabled = false;
    set(w, 1, "m", "1", AT("m:1"));
    for (int i = 0; i < 15000 && !is_in(w, "/mem", SCRAPE_WAITS_SLOT); i++) {
        turn(w, 1);
    }
    assert_true(is_in(w, "/mem", SCRAPE_WAITS_SLOT));
    assert_true(is_in(w, one, SCRAPE_IN_FLIGHT_GATED));
    succeed(w, first);
    bool mem_first = is_in(w, "/mem", SCRAPE_IN_FLIGHT);
    assert_true(is_in(w, two, mem_first ? SCRAPE_WAITS_SLOT_GATED : SCRAPE_IN_FLIGHT_GATED));
    assert_true(is_in(w, one, SCRAPE_IDLE) || is_in(w, one, SCRAPE_IDLE_EARLY));
    succeed(w, &w->transfers[w->n_transfers - 1]);
    assert_true(is_in(w, two, mem_first ? SCRAPE_IN_FLIGHT_GATED : SCRAPE_IDLE));
    assert_true(is_in(w, "/mem", mem_first ? SCRAPE_IDLE : SCRAPE_IN_FLIGHT));
}

/* A scrape that is asked for is due at once, and in its phase again after that. */
TEST_ON(struct world *w, asked_for)
{
    set(w, 0, "s", "1", AT("h:1"));
    succeed(w, next_start(w));
    assert_true(is_in(w, "/mem", SCRAPE_IDLE));
    engine_scrape_now(w->e, w->e->table.slots[0]->target, 0);
    assert_true(is_in(w, "/mem", SCRAPE_IDLE_EARLY));
    struct http_transfer *t = next_start(w);
    assert_true(is_in(w, "/mem", SCRAPE_IN_FLIGHT));
    engine_scrape_now(w->e, w->e->table.slots[0]->target, 0);
    assert_true(is_in(w, "/mem", SCRAPE_IN_FLIGHT));
    succeed(w, t);
    assert_true(is_in(w, "/mem", SCRAPE_IDLE));
}

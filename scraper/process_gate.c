#include "scraper/process_gate.h"

#include <stdlib.h>

struct process {
    struct scrape_line waiting;
};

bool process_gate_init(struct process_gate *g)
{
    g->processes = map_new();
    return g->processes != NULL;
}

void process_gate_done(struct process_gate *g)
{
    g->processes = map_free(g->processes, free);
}

static struct sv key(const struct scrape *sc)
{
    return sv_from(target_process(sc->target, sc->entry));
}

enum gate_result process_gate_enter(struct process_gate *g, struct scrape *sc)
{
    struct process *p = map_get(g->processes, key(sc));
    if (p != NULL) {
        TAILQ_INSERT_TAIL(&p->waiting, sc, link);
        return GATE_WAITS;
    }
    p = malloc(sizeof(*p));
    if (p == NULL || !map_put(g->processes, key(sc), p, NULL)) {
        free(p);
        return GATE_NO_MEMORY;
    }
    TAILQ_INIT(&p->waiting);
    return GATE_ENTERED;
}

struct scrape *process_gate_leave(struct process_gate *g, struct scrape *sc)
{
    struct process *p = map_get(g->processes, key(sc));
    struct scrape *next = TAILQ_FIRST(&p->waiting);
    if (next == NULL) {
        map_remove(g->processes, key(sc));
        free(p);
        return NULL;
    }
    TAILQ_REMOVE(&p->waiting, next, link);
    return next;
}

void process_gate_give_up(struct process_gate *g, struct scrape *sc)
{
    struct process *p = map_get(g->processes, key(sc));
    TAILQ_REMOVE(&p->waiting, sc, link);
}

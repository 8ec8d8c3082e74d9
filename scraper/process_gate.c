#include "scraper/process_gate.h"

#include <stdlib.h>

struct process {
    struct scrape_line line;
};

bool turns_init(struct turns *t)
{
    t->processes = map_new();
    return t->processes != NULL;
}

void turns_done(struct turns *t)
{
    t->processes = map_free(t->processes, free);
}

static struct sv key(const struct scrape *sc)
{
    return sv_from(target_process(sc->target, sc->entry));
}

enum turn turns_take(struct turns *t, struct scrape *sc)
{
    struct process *p = map_get(t->processes, key(sc));
    if (p != NULL) {
        TAILQ_INSERT_TAIL(&p->line, sc, link);
        return TURN_LATER;
    }
    p = malloc(sizeof(*p));
    if (p == NULL || !map_put(t->processes, key(sc), p, NULL)) {
        free(p);
        return TURN_NO_MEMORY;
    }
    TAILQ_INIT(&p->line);
    sc->has_turn = true;
    return TURN_NOW;
}

struct scrape *turns_release(struct turns *t, struct scrape *sc)
{
    sc->has_turn = false;
    struct process *p = map_get(t->processes, key(sc));
    struct scrape *next = TAILQ_FIRST(&p->line);
    if (next == NULL) {
        map_remove(t->processes, key(sc));
        free(p);
        return NULL;
    }
    TAILQ_REMOVE(&p->line, next, link);
    next->has_turn = true;
    return next;
}

void turns_leave(struct turns *t, struct scrape *sc)
{
    struct process *p = map_get(t->processes, key(sc));
    TAILQ_REMOVE(&p->line, sc, link);
}

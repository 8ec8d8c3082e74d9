/* Admission of bodies: the engine's side of scraper/room.h. */
#include "base/clock.h"
#include "scraper/engine.h"

/* If a scrape waits for memory for this long, memory counts as short. */
#define SHORT_WAIT_MS 1000
/* Memory counts as short for this long after a scrape has waited for it. */
#define SHORT_KEPT_MS (60 * 1000)

static unsigned held_back(const struct engine *e)
{
    unsigned n = 0;
    for (unsigned size = 0; size < ROOM_SIZES; size++) {
        bool crowded = room_is_crowded(&e->room, (enum room_size)size);
        n += crowded ? slots_waiting(&e->slots, engine_body_of((enum room_size)size)) : 0;
    }
    return n;
}

static enum scrape_shortage shortage_of(const struct engine *e)
{
    return room_next_lacks_workers(&e->room) ? SHORTAGE_WORKERS : SHORTAGE_MEMORY;
}

void engine_show_waiting(struct engine *e)
{
    struct admission_status *s = &e->shown;
    unsigned unread = e->room.waiting[ROOM_SMALL] + e->room.waiting[ROOM_LARGE];
    unsigned held = held_back(e);
    int64_t now = engine_now_ms(e);
    int64_t from = atomic_load_explicit(&s->waits_from_ms, memory_order_relaxed);
    metric_set(e->metrics.unread, unread);
    metric_set(e->metrics.held_back, held);
    atomic_store_explicit(&s->unread, unread, memory_order_relaxed);
    atomic_store_explicit(&s->held_back, held, memory_order_relaxed);
    if (unread + held == 0) {
        atomic_store_explicit(&s->waits_from_ms, INT64_MAX, memory_order_relaxed);
        return;
    }
    if (from > now) {
        atomic_store_explicit(&s->waits_from_ms, now, memory_order_relaxed);
    }
    atomic_store_explicit(&s->shortage, shortage_of(e), memory_order_relaxed);
    if (from <= now && now - from >= SHORT_WAIT_MS) {
        atomic_store_explicit(&s->short_ms, now, memory_order_relaxed);
    }
}

void engine_note_shortage(struct engine *e, enum scrape_shortage reason)
{
    atomic_store_explicit(&e->shown.shortage, reason, memory_order_relaxed);
    atomic_store_explicit(&e->shown.short_ms, engine_now_ms(e), memory_order_relaxed);
}

void engine_admit(struct engine *e)
{
    struct room_guest *g;
    if (e->admitting) {
        return; /* the call up the stack continues */
    }
    e->admitting = true;
    do {
        while ((g = room_next(&e->room)) != NULL) {
            fetch_grant(e, g);
        }
        if ((g = room_victim(&e->room)) != NULL) {
            fetch_give_up(e, g);
        }
    } while (g != NULL);
    e->admitting = false;
    engine_show_waiting(e);
}

void engine_admit_soon(struct engine *e)
{
    e->armed_ms = engine_now_ms(e);
    e->io.wake_at(e->io.arg, e->armed_ms);
}

struct scrape_memory engine_memory(struct engine *e)
{
    const struct admission_status *s = &e->shown;
    int64_t now = e->io.mono_ns(e->io.arg) / NS_PER_MS;
    int64_t last = atomic_load_explicit(&s->short_ms, memory_order_relaxed);
    int64_t from = atomic_load_explicit(&s->waits_from_ms, memory_order_relaxed);
    bool is_short = (last != INT64_MIN && now - last < SHORT_KEPT_MS) ||
                    (from <= now && now - from >= SHORT_WAIT_MS);
    unsigned shortage = atomic_load_explicit(&s->shortage, memory_order_relaxed);
    return (struct scrape_memory){
        .shortage = is_short ? (enum scrape_shortage)shortage : SHORTAGE_NONE,
        .unread = atomic_load_explicit(&s->unread, memory_order_relaxed),
        .held_back = atomic_load_explicit(&s->held_back, memory_order_relaxed),
        .max_bytes = e->room.max,
    };
}

static const struct {
    const char *name;
    const char *advice;
} shortages[] = {
    [SHORTAGE_NONE] = {"none", ""},
    [SHORTAGE_MEMORY] = {"memory",
                         "memory is the bottleneck: raise global.memory_limit (or the limit of the "
                         "container), or scrape large profiles less often"},
    [SHORTAGE_WORKERS] = {"workers",
                          "CPU is the bottleneck, profiles come faster than deltas are made of "
                          "them: give the process more CPUs, or scrape less often"},
};

const char *scrape_shortage_name(enum scrape_shortage s)
{
    return shortages[s].name;
}

const char *scrape_shortage_advice(enum scrape_shortage s)
{
    return shortages[s].advice;
}

/* From ticks to transfers: the schedule, the gates of processes, the slots. */
#include "scraper/engine.h"

#include <stdlib.h>

#include "base/clock.h"

struct engine *engine_new(const struct scraper_options *options, const struct engine_io *io,
                          struct err *err)
{
    struct engine *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        err_memory(err);
        return NULL;
    }
    e->options = *options;
    e->io = *io;
    if (options->max_in_flight == 0) {
        e->options.max_in_flight = ENGINE_IN_FLIGHT_DEFAULT;
    }
    if (options->bodies_max_bytes == 0) {
        e->options.bodies_max_bytes = ENGINE_BODIES_DEFAULT;
    }
    e->armed_ms = INT64_MAX;
    atomic_init(&e->shown.waits_from_ms, INT64_MAX);
    atomic_init(&e->shown.short_ms, INT64_MIN);
    if (options->seed == 0) {
        rng_seed_random(&e->rng);
    } else {
        rng_seed(&e->rng, options->seed);
    }
    schedule_init(&e->schedule);
    e->builder = labels_builder_new(options->intern);
    bool ok = e->builder != NULL;
    ok = table_init(&e->table) && ok;
    ok = process_gate_init(&e->gate) && ok;
    ok = slots_init(&e->slots, e->options.max_in_flight, 0) && ok;
    ok = room_init(&e->room, e->options.bodies_max_bytes,
                   io->submit != NULL ? &e->offloads : NULL) &&
         ok;
    ok = groups_init(e) && ok;
    ok = deltas_init(&e->deltas, options->metrics, options->delta_state_max_bytes) && ok;
    conversions_init(&e->conversions, options->metrics);
    const struct offload_limits limits = {options->pending_max_bytes, options->work_max_bytes,
                                          options->n_workers};
    ok = offload_open(&e->offloads, &limits, options->metrics) && ok;
    e->offloads.on_left = engine_pump;
    ok = scrape_metrics_init(&e->metrics, options->metrics) && ok;
    if (!ok) {
        err_memory(err);
        return engine_free(e);
    }
    return e;
}

struct engine *engine_free(struct engine *e)
{
    if (e == NULL) {
        return NULL;
    }
    engine_stop(e);
    groups_done(e);
    schedule_done(&e->schedule);
    process_gate_done(&e->gate);
    slots_done(&e->slots);
    room_done(&e->room);
    offload_close(&e->offloads);
    deltas_done(&e->deltas);
    scrape_metrics_done(&e->metrics);
    labels_builder_free(e->builder);
    table_done(&e->table);
    free(e);
    return NULL;
}

int64_t engine_now_ms(struct engine *e)
{
    return e->io.mono_ns(e->io.arg) / NS_PER_MS;
}

void engine_rearm(struct engine *e)
{
    int64_t due;
    if (schedule_head(&e->schedule, &due) == NULL || e->deltas.next_expiry_ms < due) {
        due = e->deltas.next_expiry_ms;
    }
    if (!e->stopped && due < e->armed_ms) {
        e->armed_ms = due;
        e->io.wake_at(e->io.arg, due);
    }
}

/* Returns the first instant at or after now_ms that is in the phase of a scrape. */
static int64_t phase_from(struct engine *e, const struct scrape *sc, int64_t now_ms)
{
    int64_t offset_ms = e->io.wall_offset_ns(e->io.arg) / NS_PER_MS;
    return schedule_first(now_ms, offset_ms, scrape_interval_ms(sc), sc->hash);
}

/* Moves a scrape in the schedule. */
static void reschedule(struct engine *e, struct scrape *sc, int64_t due_ms)
{
    schedule_move(&e->schedule, &sc->item, due_ms);
    status_next_due(e, sc, due_ms);
}

bool engine_schedule(struct engine *e, struct scrape *sc)
{
    int64_t now = engine_now_ms(e);
    int64_t phase = phase_from(e, sc, now);
    int64_t due = schedule_resume(now, phase, scrape_interval_ms(sc), scrape_sampling_ms(sc));
    if (!schedule_add(&e->schedule, &sc->item, due)) {
        return false;
    }
    status_state(e, sc, due != phase ? SCRAPE_IDLE_EARLY : SCRAPE_IDLE);
    status_next_due(e, sc, due);
    return true;
}

void engine_reschedule(struct engine *e, struct scrape *sc)
{
    reschedule(e, sc, phase_from(e, sc, engine_now_ms(e)));
}

void engine_scrape_now(struct engine *e, const struct target *target, size_t entry)
{
    struct scrape *sc = table_find(&e->table, target, entry);
    while (sc != NULL && (sc->target != target || sc->entry != entry)) {
        sc = table_next(sc);
    }
    if (sc == NULL || !scrape_is_idle(sc) || e->stopped) {
        return;
    }
    status_state(e, sc, SCRAPE_IDLE_EARLY);
    reschedule(e, sc, engine_now_ms(e));
    engine_rearm(e);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Returns the class of a scrape. A scrape that was never tried has the class of the other scrapes
 * of its target: a target that is known to answer does not wait with those that may hang, and a
 * target that hangs is not tried with every type first. */
static enum slot_class class_of(struct engine *e, const struct scrape *sc)
{
    enum slot_class class = slot_class_of(sc);
    size_t n = class == SLOT_NEW ? target_scrape_count(sc->target) : 0;
    for (size_t i = 0; i < n && class != SLOT_QUICK; i++) {
        const struct scrape *other = table_find(&e->table, sc->target, i);
        enum slot_class its = other == NULL ? SLOT_NEW : slot_class_of(other);
        class = its == SLOT_NEW ? class : its;
    }
    return class;
}

/* Returns the body class for which a scrape may be held back. It is SLOT_BODY_ANY (never held back)
 * unless memory is short, or if the response arrives only after the target has sampled. */
static enum slot_body body_of(const struct engine *e, const struct scrape *sc)
{
    const struct room *r = &e->room;
    if (r->waiting[ROOM_SMALL] + r->waiting[ROOM_LARGE] == 0 || scrape_sampling_ms(sc) > 0) {
        return SLOT_BODY_ANY;
    }
    return engine_body_of(room_size_of(r, fetch_expected_size(e, sc)));
}

/* Returns the bodies that are held back, for slots_take(). */
static unsigned held_back(const struct engine *e)
{
    unsigned bits = 0;
    for (unsigned size = 0; size < ROOM_SIZES; size++) {
        bool crowded = room_is_crowded(&e->room, (enum room_size)size);
        bits |= crowded ? 1U << engine_body_of((enum room_size)size) : 0;
    }
    return bits;
}

/* Puts a scrape into the line for slots. If there is no memory for that, the scrape becomes idle,
 * and those that wait for it at the gate of their process are put into the line, one after the
 * other. gated: the scrape holds that gate. */
static void wait_for_slot(struct engine *e, struct scrape *sc, bool gated)
{
    while (sc != NULL && !slots_wait(&e->slots, sc, class_of(e, sc), body_of(e, sc))) {
        status_state(e, sc, SCRAPE_IDLE);
        outcome_no_memory(e, sc);
        sc = gated ? process_gate_leave(&e->gate, sc) : NULL;
    }
    if (sc != NULL) {
        status_state(e, sc, gated ? SCRAPE_WAITS_SLOT_GATED : SCRAPE_WAITS_SLOT);
        metric_gauge_add(e->metrics.waiting, 1);
    }
}

/* Makes a scrape that was due idle again. If it held the gate of its process, the next scrape
 * enters the gate. */
static void become_idle(struct engine *e, struct scrape *sc)
{
    bool gated = scrape_holds_gate(sc);
    status_state(e, sc, SCRAPE_IDLE);
    struct scrape *next = gated ? process_gate_leave(&e->gate, sc) : NULL;
    if (next != NULL) {
        wait_for_slot(e, next, true);
    }
}

static void show_slots(struct engine *e)
{
    metric_set(e->metrics.in_flight, slots_used(&e->slots));
    for (unsigned c = 0; c < SLOT_CLASSES; c++) {
        metric_set(e->metrics.slots[c], e->slots.used[c]);
    }
}

/* Starts scrapes that wait for a slot, while there are free ones. */
static void pump(struct engine *e)
{
    struct scrape *sc;
    room_forget_invited(&e->room, engine_now_ms(e));
    while (!e->stopped && (sc = slots_take(&e->slots, held_back(e))) != NULL) {
        metric_gauge_add(e->metrics.waiting, -1);
        /* The class has become known: another type of the target has been tried. */
        if (class_of(e, sc) != slots_class(sc)) {
            slots_release(&e->slots, sc);
            wait_for_slot(e, sc, scrape_holds_gate(sc));
        } else if (!fetch_start(e, sc)) {
            slots_release(&e->slots, sc);
            outcome_no_memory(e, sc);
            become_idle(e, sc);
        }
    }
    show_slots(e);
}

void engine_pump(struct engine *e)
{
    engine_admit(e);
    pump(e);
}

static void begin(struct engine *e, struct scrape *sc, int64_t due_ms)
{
    const struct config_type *type = scrape_type(sc);
    /* A process can sample only one CPU profile at a time. Differences that the server computes do
     * not disturb each other. */
    bool exclusive = type->sampling && type->delta != DELTA_SERVER;
    sc->due_ms = due_ms;
    switch (exclusive ? process_gate_enter(&e->gate, sc) : GATE_ENTERED) {
    case GATE_ENTERED:
        wait_for_slot(e, sc, exclusive);
        pump(e);
        break;
    case GATE_WAITS:
        status_state(e, sc, SCRAPE_WAITS_GATE);
        break;
    case GATE_NO_MEMORY:
        outcome_no_memory(e, sc);
        break;
    }
}

static void run_tick(struct engine *e, struct scrape *sc, int64_t due_ms, int64_t now_ms)
{
    struct schedule_tick tick = schedule_tick(due_ms, now_ms, scrape_interval_ms(sc));
    if (sc->state == SCRAPE_IDLE_EARLY) {
        status_state(e, sc, SCRAPE_IDLE);
        tick.next_ms = phase_from(e, sc, now_ms + 1);
    }
    reschedule(e, sc, tick.next_ms);
    if (!scrape_is_idle(sc) && scrape_type(sc)->continuous) {
        return; /* when the running scrape ends, the next one starts */
    }
    if (!tick.run) {
        status_skipped(e, sc, tick.missed);
    } else if (!scrape_is_idle(sc)) {
        status_skipped(e, sc, 1);
    } else {
        begin(e, sc, due_ms);
    }
}

/* Ends a drain: the last scrape has ended, or there is no time left for the others. */
static void end_drain(struct engine *e)
{
    struct engine_drain drain = e->drain;
    if (drain.on_drained == NULL) {
        return;
    }
    e->drain.on_drained = NULL;
    if (slots_used(&e->slots) > 0) {
        log_warn(e->options.log, "scrapes cancelled: their responses did not arrive in time",
                 LOG_INT("cancelled", slots_used(&e->slots)));
        engine_stop(e);
    }
    drain.on_drained(drain.arg);
}

/* Ends a drain if its time is up, and else sets the timer to that time. */
static void wake_while_stopped(struct engine *e, int64_t now)
{
    if (now >= e->drain.until_ms) {
        end_drain(e);
    } else if (e->drain.on_drained != NULL) {
        e->armed_ms = e->drain.until_ms;
        e->io.wake_at(e->io.arg, e->armed_ms);
    }
}

void engine_wake(struct engine *e)
{
    int64_t now = engine_now_ms(e);
    e->armed_ms = INT64_MAX;
    engine_pump(e);
    if (e->stopped) {
        wake_while_stopped(e, now);
        return;
    }
    deltas_expire(&e->deltas, now);
    for (int i = 0; i < ENGINE_BATCH; i++) {
        int64_t due;
        struct schedule_item *item = schedule_head(&e->schedule, &due);
        if (item == NULL || due > now) {
            break;
        }
        run_tick(e, (struct scrape *)item, due, now);
    }
    engine_rearm(e);
}

/* ---- ending ---------------------------------------------------------------------------------- */

void engine_plan(struct engine *e, struct scrape *sc, enum reason reason, int64_t start_ms)
{
    int64_t now = engine_now_ms(e);
    struct scrape_history history = sc->history;
    const struct next_scrape_input in = {
        .end = reason_kind(reason),
        .continuous = scrape_type(sc)->continuous,
        .now_ms = now,
        .start_ms = start_ms,
        .tick_ms = schedule_due(&e->schedule, &sc->item),
        .phase_ms = phase_from(e, sc, now + 1),
        .interval_ms = scrape_interval_ms(sc),
        .sampling_ms = scrape_sampling_ms(sc),
    };
    reschedule(e, sc, next_scrape_at(&history, &in, &e->rng));
    status_history(e, sc, history);
}

void engine_landed(struct engine *e, struct scrape *sc)
{
    slots_release(&e->slots, sc);
    become_idle(e, sc);
    engine_pump(e);
    if (slots_used(&e->slots) == 0) {
        end_drain(e);
    }
}

void engine_abort(struct engine *e, struct scrape *sc)
{
    switch ((enum scrape_state)sc->state) {
    case SCRAPE_IDLE:
    case SCRAPE_IDLE_EARLY:
        break;
    case SCRAPE_WAITS_GATE:
        process_gate_give_up(&e->gate, sc);
        status_state(e, sc, SCRAPE_IDLE);
        break;
    case SCRAPE_WAITS_SLOT:
    case SCRAPE_WAITS_SLOT_GATED:
        slots_give_up(&e->slots, sc);
        metric_gauge_add(e->metrics.waiting, -1);
        become_idle(e, sc);
        pump(e);
        break;
    case SCRAPE_IN_FLIGHT:
    case SCRAPE_IN_FLIGHT_GATED:
        fetch_cancel(e, sc);
        engine_landed(e, sc);
        break;
    }
}

void engine_stop(struct engine *e)
{
    e->stopped = true;
    e->drain.on_drained = NULL;
    for (size_t i = 0; i < e->table.n_slots; i++) {
        if (e->table.slots[i] != NULL) {
            engine_abort(e, e->table.slots[i]);
        }
    }
}

/* Cancels the scrapes that wait and those that cannot end in time, and returns how many of them
 * were in flight. *ret_sampled_ms: when the last of the others will have been sampled. */
static unsigned abort_late(struct engine *e, int64_t deadline_ms, int64_t *ret_sampled_ms)
{
    unsigned n = 0;
    *ret_sampled_ms = engine_now_ms(e);
    for (size_t i = 0; i < e->table.n_slots; i++) {
        struct scrape *sc = e->table.slots[i];
        bool in_flight = sc != NULL && scrape_is_in_flight(sc);
        int64_t sampled_ms = in_flight ? fetch_sampled_ms(sc) : 0;
        if (sc != NULL && (!in_flight || sampled_ms >= deadline_ms)) {
            n += in_flight;
            engine_abort(e, sc);
        } else if (sampled_ms > *ret_sampled_ms) {
            *ret_sampled_ms = sampled_ms;
        }
    }
    return n;
}

void engine_drain(struct engine *e, int64_t deadline_ms, void (*on_drained)(void *arg), void *arg)
{
    int64_t sampled_ms;
    e->stopped = true;
    unsigned cancelled = abort_late(e, deadline_ms, &sampled_ms);
    unsigned finishing = slots_used(&e->slots);
    if (finishing > 0 || cancelled > 0) {
        log_info(e->options.log, "no more scrapes are started", LOG_INT("finishing", finishing),
                 LOG_INT("cancelled", cancelled));
    }
    e->drain.on_drained = on_drained;
    e->drain.arg = arg;
    if (finishing == 0) {
        end_drain(e);
        return;
    }
    int64_t patience_ms = sampled_ms + ENGINE_DRAIN_ANSWER_MS;
    e->drain.until_ms = patience_ms < deadline_ms ? patience_ms : deadline_ms;
    e->armed_ms = e->drain.until_ms;
    e->io.wake_at(e->io.arg, e->armed_ms);
}

/* The shared fields of scrapes: changed and copied under the table's lock. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scraper/engine.h"

/* Scrapes copied in one go while the lock is held. */
#define PAGE ((size_t)32)
#define URL_MAX ((size_t)16 * 1024)

/* ---- changes (the engine's thread) ----------------------------------------------------------- */

static void check_transition(const struct scrape *sc, enum scrape_state state)
{
#ifdef ARENA_DEBUG
    assert(scrape_may_become((enum scrape_state)sc->state, state));
#else
    (void)sc;
    (void)state;
#endif
}

void status_state(struct engine *e, struct scrape *sc, enum scrape_state state)
{
    check_transition(sc, state);
    table_lock(&e->table);
    sc->state = (uint8_t)state;
    table_unlock(&e->table);
}

void status_next_due(struct engine *e, struct scrape *sc, int64_t due_ms)
{
    table_lock(&e->table);
    sc->next_due_ms = due_ms;
    table_unlock(&e->table);
}

void status_history(struct engine *e, struct scrape *sc, struct scrape_history history)
{
    table_lock(&e->table);
    sc->history = history;
    table_unlock(&e->table);
}

void status_started(struct engine *e, struct scrape *sc, int64_t start_ns)
{
    status_state(e, sc, scrape_holds_gate(sc) ? SCRAPE_IN_FLIGHT_GATED : SCRAPE_IN_FLIGHT);
    table_lock(&e->table);
    sc->last_start_ns = start_ns;
    table_unlock(&e->table);
}

void status_ended(struct engine *e, struct scrape *sc, enum reason reason, const char *message,
                  struct scrape_time time, size_t size)
{
    bool ok = reason == REASON_NONE;
    /* If there is no memory for the text, the reason must suffice. */
    char *text = ok ? NULL : strdup(message);
    enum scrape_health health = sc->history.absent ? SCRAPE_ABSENT : SCRAPE_DOWN;
    health = ok ? SCRAPE_UP : health;
    metric_gauge_add(sc->metrics->states[sc->health], -1);
    metric_gauge_add(sc->metrics->states[health], 1);
    table_lock(&e->table);
    char *old = sc->last_error;
    sc->health = (uint8_t)health;
    sc->reason = (uint8_t)reason;
    sc->last_error = text;
    if (time.duration_ns >= 0) {
        int64_t ms = time.duration_ns / NS_PER_MS;
        int64_t own_ms = ms - time.waited_ns / NS_PER_MS - scrape_sampling_ms(sc);
        sc->last_duration_ms = ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
        sc->slow = own_ms > SLOTS_SLOW_MS;
    }
    if (ok) {
        sc->last_size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
        sc->successes++;
    } else {
        sc->failures++;
    }
    table_unlock(&e->table);
    free(old);
}

void status_skipped(struct engine *e, struct scrape *sc, uint64_t n)
{
    claims_count(sc, SCRAPE_SKIPPED, n);
    table_lock(&e->table);
    sc->skipped += n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    table_unlock(&e->table);
}

void status_target(struct engine *e, struct scrape *sc, struct group *group, struct target *target,
                   size_t entry)
{
    struct target *old = sc->target;
    target_ref(target);
    table_lock(&e->table);
    sc->group = group;
    sc->target = target;
    sc->entry = (uint16_t)entry;
    table_unlock(&e->table);
    sc->series = labels_unref(sc->series);
    target_unref(old);
}

const char *scrape_health_name(enum scrape_health health)
{
    static const char *const names[SCRAPE_HEALTHS] = {"unknown", "up", "down", "absent"};
    return names[health];
}

/* ---- copies (any thread) --------------------------------------------------------------------- */

/* Copies the shared fields, under the lock; derive() adds the rest, which takes longer, without it.
 * c: the claim of the job that follows, or NULL for the scrape's own job. */
static void copy_scrape(const struct scrape *sc, const struct claim *c, struct scrape_status *st)
{
    *st = (struct scrape_status){
        .target = target_ref(c == NULL ? sc->target : c->target),
        .entry = c == NULL ? sc->entry : c->entry,
        .leader = c == NULL ? NULL : target_ref(sc->target),
        .health = (enum scrape_health)sc->health,
        .in_flight = scrape_is_in_flight(sc),
        .reason = (enum reason)sc->reason,
        .source = strdup(group_source(c == NULL ? sc->group : c->group)),
        .last_error = strdup(sc->last_error == NULL ? "" : sc->last_error),
        .last_start_ns = sc->last_start_ns,
        .last_duration_ms = sc->last_duration_ms,
        .last_size = sc->last_size,
        .next_due_ns = sc->next_due_ms * NS_PER_MS, /* on the monotonic clock yet */
        .successes = sc->successes,
        .failures = sc->failures,
        .skipped = sc->skipped,
        .conflicts = scrape_history_conflicts(&sc->history),
        .attempts = sc->history.attempts,
    };
}

/* Copies the status of a scrape, unless an earlier page had it, and of the jobs that follow it.
 * *done counts the copies so far; it is 0 again when all were made. */
static size_t copy_all(const struct scrape *sc, size_t *done, struct scrape_status *out, size_t max)
{
    size_t at = 0;
    size_t n = 0;
    if (at++ == *done) {
        copy_scrape(sc, NULL, &out[n++]);
    }
    for (const struct claim *c = sc->claims; c != NULL; c = c->next) {
        if (!c->follows || at++ < *done) {
            continue;
        }
        if (n == max) {
            *done += n;
            return n;
        }
        copy_scrape(sc, c, &out[n++]);
    }
    *done = 0;
    return n;
}

/* The cursor consists of the slot and, in the bits above, of the copies of this slot so far. */
#define CURSOR_BITS 32
#define CURSOR_SLOT UINT32_MAX

static size_t copy_page(struct engine *e, size_t *cursor, struct scrape_status *out, size_t max)
{
    size_t n = 0;
    size_t slot = *cursor & CURSOR_SLOT;
    size_t done = *cursor >> CURSOR_BITS;
    table_lock(&e->table);
    while (n < max && slot < e->table.n_slots) {
        const struct scrape *sc = e->table.slots[slot];
        if (sc != NULL) {
            n += copy_all(sc, &done, &out[n], max - n);
        }
        slot += done == 0;
    }
    table_unlock(&e->table);
    *cursor = slot | done << CURSOR_BITS;
    return n;
}

/* Completes a status. Returns false if out of memory: the entry is left out. */
static bool derive(struct engine *e, struct scrape_status *st, struct labels_builder *b)
{
    struct buf url;
    buf_init(&url, URL_MAX);
    target_shown_url(st->target, st->entry, &url);
    st->url = buf_take(&url, NULL);
    st->job = st->target->job_config->name;
    st->follows = st->leader == NULL ? NULL : st->leader->job_config->name;
    st->type = target_scrape_type(st->target, st->entry)->name;
    st->sampling_ms = (int64_t)st->target->entries[st->entry].seconds * MS_PER_S;
    st->next_due_ns += e->io.wall_offset_ns(e->io.arg);
    st->labels = b == NULL ? NULL : target_series(st->target, st->entry, b);
    buf_done(&url);
    if (st->labels == NULL || st->source == NULL || st->last_error == NULL || st->url == NULL) {
        scrape_status_done(st);
        return false;
    }
    return true;
}

size_t engine_snapshot(struct engine *e, size_t *cursor, struct scrape_status *out, size_t max)
{
    struct labels_builder *b = labels_builder_new(e->options.intern);
    size_t n = 0;
    size_t got;
    do {
        size_t start = n;
        got = copy_page(e, cursor, out + start, max - start < PAGE ? max - start : PAGE);
        for (size_t i = start; i < start + got; i++) {
            if (derive(e, &out[i], b)) {
                out[n++] = out[i];
            }
        }
    } while (got > 0 && n < max);
    labels_builder_free(b);
    return n;
}

size_t engine_sampled(struct engine *e, struct sampled_service *out, size_t max)
{
    size_t n = 0;
    table_lock(&e->table);
    for (size_t i = 0; i < e->n_jobs; i++) {
        const struct job_quota *quota = &e->jobs[i];
        if (quota->sampler != NULL) {
            n += sampler_list(quota->sampler, out + n, max - n);
        }
    }
    table_unlock(&e->table);
    return n;
}

void sampled_service_done(struct sampled_service *v)
{
    free(v->job);
    free(v->service);
}

void scrape_status_done(struct scrape_status *st)
{
    labels_unref(st->labels);
    target_unref(st->target);
    target_unref(st->leader);
    /* copy_page() gives each entry texts of its own, which clang loses sight of in a loop. */
    free(st->source);     // NOLINT(clang-analyzer-unix.Malloc)
    free(st->last_error); // NOLINT(clang-analyzer-unix.Malloc)
    free(st->url);
    *st = (struct scrape_status){.labels = NULL};
}

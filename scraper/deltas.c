#include "scraper/deltas.h"

#include <stdlib.h>

#include "base/clock.h"
#include "scraper/engine.h"
#include "scraper/names.h"

#define KEY_MAX ((size_t)32 * 1024)
/* An exceeded budget is logged at most once in this time. */
#define ROOM_PERIOD_MS 60000
/* The step in which kept baselines expire. */
#define EXPIRY_STEP_MS 1000

bool deltas_init(struct deltas *d, struct metrics *metrics, size_t max_bytes)
{
    struct rng rng;
    rng_seed_random(&rng);
    *d = (struct deltas){
        .seed = rng_next(&rng),
        .max_bytes = max_bytes == 0 ? DELTAS_STATE_DEFAULT : max_bytes,
        .next_expiry_ms = INT64_MAX,
        .kept = map_new(),
        .results =
            metrics_family(metrics, METRIC_COUNTER, "profpull_delta_total",
                           "Deltas by result. first, rebased, no_room: only gauges were passed on.",
                           "result", NULL),
        .bytes_cell = metrics_single(metrics, METRIC_GAUGE, "profpull_delta_state_bytes",
                                     "Memory of the baselines of deltas."),
        .stacks_cell = metrics_single(metrics, METRIC_GAUGE, "profpull_delta_state_stacks",
                                      "Stacks in the baselines of deltas."),
    };
    return d->kept != NULL;
}

static void free_kept(void *value)
{
    delta_state_unref(value);
}

void deltas_done(struct deltas *d)
{
    d->kept = map_free(d->kept, free_kept);
}

void deltas_count(struct deltas *d, const char *result)
{
    metric_inc(metric_cell_of(d->results, result));
}

/* ---- work ------------------------------------------------------------------------------------ */

static enum gzip_level level_of(const struct scrape *sc)
{
    static const enum gzip_level levels[] = {
        [COMPRESSION_FAST] = GZIP_FAST,
        [COMPRESSION_BEST] = GZIP_BEST,
        [COMPRESSION_NONE] = GZIP_NONE,
    };
    return levels[sc->target->job_config->delta_compression];
}

static void delta_run(struct offload *o, struct scratch *scratch)
{
    struct delta_work *w = (struct delta_work *)o;
    const struct delta_input in = {
        .body = {o->body, o->size},
        .baseline = w->baseline,
        .any_counter = w->any_counter,
        .seed = w->seed,
        .level = w->level,
        .scratch = scratch,
        .rewrite = names_rewrite(w->names),
    };
    w->result = delta_make(&in, &w->out, &o->err);
    if (w->result == DELTA_PASSED && w->names != NULL) {
        scratch_reset(scratch);
        (void)names_rewrite_body(w->names, scratch, in.body, &w->named, &w->named_size);
    }
    if (w->named == NULL && names_need_more(o, w->names, scratch)) {
        delta_output_done(&w->out);
    }
}

static void delta_release(struct offload *o)
{
    struct delta_work *w = (struct delta_work *)o;
    delta_output_done(&w->out);
    delta_state_unref(w->baseline);
    names_of_free(w->names);
    free(w->named);
}

struct offload *deltas_start(struct engine *e, const struct scrape *sc, struct names_of *names,
                             char *body, size_t size, bool has_place,
                             void (*done)(void *arg, struct offload *o), void *arg,
                             enum reason *ret_reason, struct err *err)
{
    static const struct offload_kind kind = {
        .size = sizeof(struct delta_work),
        .run = delta_run,
        .release = delta_release,
    };
    struct delta_work *w = offload_new(e, &kind, body, size, has_place, ret_reason, err);
    if (w == NULL) {
        return NULL;
    }
    w->baseline = sc->baseline == NULL ? NULL : delta_state_ref(sc->baseline);
    w->any_counter = !scrape_type(sc)->cumulative;
    w->seed = e->deltas.seed;
    w->level = level_of(sc);
    w->names = names;
    offload_reserve_more(&w->offload, names != NULL ? NAMES_ROOM : 0);
    offload_submit(&w->offload, done, arg);
    return &w->offload;
}

/* ---- baselines ------------------------------------------------------------------------------- */

static void account(struct deltas *d, const struct delta_state *s, bool added)
{
    if (s == NULL) {
        return;
    }
    d->bytes = added ? d->bytes + s->bytes : d->bytes - s->bytes;
    d->stacks = added ? d->stacks + s->n : d->stacks - s->n;
    metric_set(d->bytes_cell, (int64_t)d->bytes);
    metric_set(d->stacks_cell, (int64_t)d->stacks);
}

static void drop(struct deltas *d, struct delta_state *s)
{
    account(d, s, false);
    delta_state_unref(s);
}

void deltas_expire(struct deltas *d, int64_t now_ms)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    if (now_ms < d->next_expiry_ms) {
        return;
    }
    d->next_expiry_ms = INT64_MAX;
    while (map_next(d->kept, &cursor, &key, &value)) {
        struct delta_state *state = value;
        if (state->kept_until_ms <= now_ms) {
            map_remove_at(d->kept, cursor);
            drop(d, state);
        } else if (state->kept_until_ms < d->next_expiry_ms) {
            d->next_expiry_ms = state->kept_until_ms;
        }
    }
    /* A pass visits all kept baselines, so thousands that expire one by one share a pass. */
    if (d->next_expiry_ms < INT64_MAX && d->next_expiry_ms - now_ms < EXPIRY_STEP_MS) {
        d->next_expiry_ms = now_ms + EXPIRY_STEP_MS;
    }
}

static bool has_room(struct deltas *d, size_t bytes)
{
    return bytes <= d->max_bytes && d->bytes <= d->max_bytes - bytes;
}

static void log_no_room(struct engine *e)
{
    uint32_t suppressed;
    if (log_enabled(e->options.log, LOG_WARN) &&
        log_limit_allow(&e->deltas.room_limit, engine_now_ms(e), ROOM_PERIOD_MS, 1, &suppressed)) {
        log_warn(e->options.log, "no memory for the baseline of a delta: only gauges are passed on",
                 LOG_INT("delta_state_max_bytes", e->deltas.max_bytes),
                 LOG_INT("suppressed", suppressed));
    }
}

bool deltas_commit(struct engine *e, struct scrape *sc, struct delta_state *next)
{
    struct deltas *d = &e->deltas;
    drop(d, sc->baseline);
    sc->baseline = NULL;
    if (!has_room(d, next->bytes) && d->next_expiry_ms != INT64_MAX) {
        d->next_expiry_ms = 0;
        deltas_expire(d, INT64_MAX); /* frees the baselines of removed scrapes */
    }
    if (!has_room(d, next->bytes)) {
        delta_state_unref(next);
        log_no_room(e);
        return false;
    }
    account(d, next, true);
    sc->baseline = next;
    return true;
}

void deltas_forget(struct engine *e, struct scrape *sc)
{
    drop(&e->deltas, sc->baseline);
    sc->baseline = NULL;
}

void deltas_share(struct engine *e, const struct scrape *from, struct scrape *to)
{
    drop(&e->deltas, to->baseline);
    to->baseline = from->baseline == NULL ? NULL : delta_state_ref(from->baseline);
    account(&e->deltas, to->baseline, true);
}

/* Appends the identity of the scrape and its pod; false if out of memory. Two scrapes of one
 * identity have different counts, so the job is part of their keys (apart). */
static bool make_key(const struct target *t, size_t i, bool apart, struct buf *key)
{
    buf_init(key, KEY_MAX);
    return target_scrape_key(t, i, key) && buf_append(key, &t->generation, sizeof(t->generation)) &&
           (!apart || buf_puts(key, t->job_config->name));
}

/* Keeps a baseline under the identity of a scrape. Takes over the reference. */
static void put_kept(struct engine *e, const struct target *t, size_t i, bool apart,
                     struct delta_state *state)
{
    struct deltas *d = &e->deltas;
    struct buf key;
    void *old = NULL;
    if (make_key(t, i, apart, &key) &&
        map_put(d->kept, (struct sv){key.data, key.len}, state, &old)) {
        if (state->kept_until_ms < d->next_expiry_ms) {
            d->next_expiry_ms = state->kept_until_ms;
        }
        drop(d, old);
    } else {
        drop(d, state);
    }
    buf_done(&key);
}

void deltas_keep(struct engine *e, struct scrape *sc)
{
    struct delta_state *state = sc->baseline;
    if (state == NULL) {
        return;
    }
    sc->baseline = NULL;
    int64_t keep_ms = 2 * scrape_interval_ms(sc);
    keep_ms = keep_ms < DELTAS_KEPT_MIN_MS ? DELTAS_KEPT_MIN_MS : keep_ms;
    state->kept_until_ms = engine_now_ms(e) + keep_ms;
    put_kept(e, sc->target, sc->entry, sc->apart, state);
}

static struct delta_state *take_kept(struct engine *e, const struct target *t, size_t i, bool apart)
{
    struct buf key;
    struct delta_state *state = NULL;
    if (map_count(e->deltas.kept) == 0) {
        return NULL;
    }
    if (make_key(t, i, apart, &key)) {
        state = map_remove(e->deltas.kept, (struct sv){key.data, key.len});
    }
    buf_done(&key);
    return state;
}

void deltas_adopt(struct engine *e, struct scrape *sc)
{
    struct delta_state *a = take_kept(e, sc->target, sc->entry, false);
    struct delta_state *b = take_kept(e, sc->target, sc->entry, true);
    bool later = a != NULL && (b == NULL || a->until_ns >= b->until_ns);
    sc->baseline = later ? a : b; /* the later one counts nothing twice */
    drop(&e->deltas, later ? b : a);
}

bool deltas_join(struct engine *e, const struct scrape *sc, const struct target *t, size_t i)
{
    struct delta_state *kept = take_kept(e, t, i, true);
    if (kept != NULL && sc->baseline != NULL && kept->until_ns > sc->baseline->until_ns) {
        put_kept(e, t, i, true, kept);
        return false;
    }
    drop(&e->deltas, kept);
    return true;
}

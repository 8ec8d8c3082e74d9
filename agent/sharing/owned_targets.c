#include "agent/sharing/owned_targets.h"

#include <stdlib.h>

#include "base/map.h"

/* "<job>/<source>" */
#define KEY_MAX ((size_t)64 * 1024)

struct source {
    size_t job;
    size_t n;
    size_t n_ours;
    bool stale; /* memory ran out: the scraper has an older state */
    struct {
        struct target *target; /* a reference */
        uint64_t key;
        bool ours; /* as of the last hand-over */
    } at[];
};

struct owned_targets {
    struct owned_targets_options options;
    struct map *sources; /* "<job>/<source>" -> struct source */
    size_t n_ours;
    size_t n;
};

static void source_free(void *value)
{
    struct source *s = value;
    for (size_t i = 0; s != NULL && i < s->n; i++) {
        target_unref(s->at[i].target);
    }
    free(s);
}

struct owned_targets *owned_targets_new(const struct owned_targets_options *options)
{
    struct owned_targets *o = calloc(1, sizeof(*o));
    if (o != NULL) {
        o->options = *options;
        o->sources = map_new();
    }
    return o == NULL || o->sources == NULL ? owned_targets_free(o) : o;
}

struct owned_targets *owned_targets_free(struct owned_targets *o)
{
    if (o != NULL) {
        map_free(o->sources, source_free);
        free(o);
    }
    return NULL;
}

/* Makes the record of a source. Takes over the references. */
static struct source *source_new(const struct owned_targets *o, size_t job,
                                 struct target *const *targets, const uint64_t *keys, size_t n)
{
    struct source *s = calloc(1, sizeof(*s) + n * sizeof(s->at[0]));
    if (s == NULL) {
        targets_unref(targets, n);
        return NULL;
    }
    s->job = job;
    s->n = n;
    for (size_t i = 0; i < n; i++) {
        s->at[i].target = targets[i];
        s->at[i].key = keys[i];
        s->at[i].ours = o->options.owns(o->options.arg, keys[i]);
        s->n_ours += s->at[i].ours;
    }
    return s;
}

/* Hands the targets of a source that are ours to the scraper. Sets s->stale if memory runs out. */
static void hand_over(const struct owned_targets *o, struct source *s, const char *name)
{
    struct target **ours = calloc(s->n_ours + 1, sizeof(struct target *));
    size_t n = 0;
    for (size_t i = 0; ours != NULL && i < s->n; i++) {
        if (s->at[i].ours) {
            ours[n++] = target_ref(s->at[i].target);
        }
    }
    s->stale = ours == NULL || !o->options.hand_over(o->options.arg, s->job, name, ours, n);
    free(ours);
}

/* Replaces the record of a source by next, or removes it if next is empty. */
static bool replace(struct owned_targets *o, struct sv key, struct source *next, const char *name)
{
    static const struct source none = {.n = 0};
    struct source *known = map_get(o->sources, key);
    const struct source *old = known == NULL ? &none : known;
    bool empty = next->n == 0;
    if (empty) {
        map_remove(o->sources, key);
    } else if (!map_put(o->sources, key, next, NULL)) {
        source_free(next);
        return false;
    }
    o->n_ours += next->n_ours - old->n_ours;
    o->n += next->n - old->n;
    if (next->n_ours > 0 || old->n_ours > 0 || old->stale) {
        hand_over(o, next, name);
    }
    bool ok = !next->stale;
    source_free(known);
    if (empty) {
        free(next);
    }
    return ok;
}

bool owned_targets_put(struct owned_targets *o, size_t job, const char *source,
                       struct target *const *targets, const uint64_t *keys, size_t n)
{
    struct source *s = source_new(o, job, targets, keys, n);
    struct buf key;
    buf_init(&key, KEY_MAX);
    bool ok = s != NULL && buf_printf(&key, "%zu/%s", job, source);
    if (ok) {
        ok = replace(o, (struct sv){.p = key.data, .n = key.len}, s, source);
    } else {
        source_free(s);
    }
    buf_done(&key);
    return ok;
}

static void review_source(struct owned_targets *o, struct source *s, struct owned_moves *moves)
{
    for (size_t i = 0; i < s->n; i++) {
        bool ours = o->options.owns(o->options.arg, s->at[i].key);
        if (ours && !s->at[i].ours) {
            moves->gained++;
        } else if (!ours && s->at[i].ours) {
            moves->lost++;
        }
        s->at[i].ours = ours;
    }
    s->n_ours += moves->gained - moves->lost;
    o->n_ours += moves->gained - moves->lost;
}

struct owned_moves owned_targets_review(struct owned_targets *o)
{
    struct owned_moves sum = {0};
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(o->sources, &cursor, &key, &value)) {
        struct source *s = value;
        struct owned_moves moves = {0};
        review_source(o, s, &moves);
        sum.gained += moves.gained;
        sum.lost += moves.lost;
        if (moves.gained + moves.lost > 0 || s->stale) {
            struct sv job;
            struct sv name;
            sv_cut(key, '/', &job, &name);
            hand_over(o, s, name.p);
            sum.failed += s->stale;
        }
    }
    return sum;
}

size_t owned_targets_count(const struct owned_targets *o)
{
    return o->n_ours;
}

size_t owned_targets_total(const struct owned_targets *o)
{
    return o->n;
}

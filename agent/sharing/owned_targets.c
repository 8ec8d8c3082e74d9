#include "agent/sharing/owned_targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* "<job>/<source>" */
#define KEY_MAX ((size_t)64 * 1024)

struct held {
    struct target *target;
    uint64_t key;
    bool ours; /* as told */
};

struct holding {
    size_t job;
    size_t n;
    size_t n_ours;
    bool untold; /* memory ran out: the scraper knows an older state */
    struct held at[];
};

struct holdings {
    struct holdings_options options;
    struct map *groups; /* "<job>/<source>" -> struct holding */
    size_t owned;
    size_t total;
};

static void free_holding(void *value)
{
    struct holding *g = value;
    for (size_t i = 0; g != NULL && i < g->n; i++) {
        target_unref(g->at[i].target);
    }
    free(g);
}

struct holdings *holdings_new(const struct holdings_options *options)
{
    struct holdings *h = calloc(1, sizeof(*h));
    if (h != NULL) {
        h->options = *options;
        h->groups = map_new();
    }
    return h == NULL || h->groups == NULL ? holdings_free(h) : h;
}

struct holdings *holdings_free(struct holdings *h)
{
    if (h != NULL) {
        map_free(h->groups, free_holding);
        free(h);
    }
    return NULL;
}

/* Takes over the references. */
static struct holding *make_holding(const struct holdings *h, size_t job,
                                    struct target *const *targets, const uint64_t *keys, size_t n)
{
    struct holding *g = malloc(sizeof(*g) + n * sizeof(g->at[0]));
    if (g == NULL) {
        for (size_t i = 0; i < n; i++) {
            target_unref(targets[i]);
        }
        return NULL;
    }
    *g = (struct holding){.job = job, .n = n};
    for (size_t i = 0; i < n; i++) {
        bool ours = h->options.owns(h->options.arg, keys[i]);
        g->at[i] = (struct held){.target = targets[i], .key = keys[i], .ours = ours};
        g->n_ours += ours ? 1 : 0;
    }
    return g;
}

static bool tell(const struct holdings *h, const struct holding *g, const char *source)
{
    struct target **ours = calloc(g->n_ours + 1, sizeof(struct target *));
    if (ours == NULL) {
        return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (g->at[i].ours) {
            ours[n++] = target_ref(g->at[i].target);
        }
    }
    bool ok = h->options.tell(h->options.arg, g->job, source, ours, n);
    free(ours);
    return ok;
}

static void count(struct holdings *h, const struct holding *old, const struct holding *now)
{
    h->owned += now->n_ours - (old == NULL ? 0 : old->n_ours);
    h->total += now->n - (old == NULL ? 0 : old->n);
}

/* g takes the place of what was known of the source, or nothing does if it is empty. */
static bool replace(struct holdings *h, struct sv key, struct holding *g, const char *source)
{
    struct holding *old = map_get(h->groups, key);
    bool empty = g->n == 0;
    if (empty) {
        map_remove(h->groups, key);
    } else if (!map_put(h->groups, key, g, NULL)) {
        free_holding(g);
        return false;
    }
    count(h, old, g);
    bool told = g->n_ours > 0 || (old != NULL && (old->n_ours > 0 || old->untold));
    g->untold = told && !tell(h, g, source);
    bool ok = !g->untold;
    free_holding(old);
    if (empty) {
        free(g);
    }
    return ok;
}

bool holdings_put(struct holdings *h, size_t job, const char *source, struct target *const *targets,
                  const uint64_t *keys, size_t n)
{
    struct holding *g = make_holding(h, job, targets, keys, n);
    if (g == NULL) {
        return false;
    }
    struct buf key;
    buf_init(&key, KEY_MAX);
    bool ok = buf_printf(&key, "%zu/%s", job, source);
    if (ok) {
        ok = replace(h, (struct sv){.p = key.data, .n = key.len}, g, source);
    } else {
        free_holding(g);
    }
    buf_done(&key);
    return ok;
}

/* Counts what moves, and takes note of it. */
static struct holdings_moves review(struct holdings *h, struct holding *g)
{
    struct holdings_moves moves = {0};
    for (size_t i = 0; i < g->n; i++) {
        bool ours = h->options.owns(h->options.arg, g->at[i].key);
        moves.gained += ours && !g->at[i].ours ? 1 : 0;
        moves.lost += !ours && g->at[i].ours ? 1 : 0;
        g->at[i].ours = ours;
    }
    g->n_ours += moves.gained - moves.lost;
    h->owned += moves.gained - moves.lost;
    return moves;
}

struct holdings_moves holdings_review(struct holdings *h)
{
    struct holdings_moves sum = {0};
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(h->groups, &cursor, &key, &value)) {
        struct holding *g = value;
        struct holdings_moves moves = review(h, g);
        sum.gained += moves.gained;
        sum.lost += moves.lost;
        if (moves.gained + moves.lost > 0 || g->untold) {
            struct sv job;
            struct sv source;
            sv_cut(key, '/', &job, &source);
            g->untold = !tell(h, g, source.p);
            sum.failed += g->untold ? 1 : 0;
        }
    }
    return sum;
}

size_t holdings_owned(const struct holdings *h)
{
    return h->owned;
}

size_t holdings_total(const struct holdings *h)
{
    return h->total;
}

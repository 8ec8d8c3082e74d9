#include "cli/flame/chart.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool chart_matches(struct sv name, struct sv text)
{
    if (text.n == 0) {
        return false;
    }
    for (size_t i = 0; i + text.n <= name.n; i++) {
        if (strncasecmp(name.p + i, text.p, text.n) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- nodes that are seen --------------------------------------------------------------------- */

/* A node that is wide enough to be drawn, and what sorts it. */
struct seen {
    struct sv name;
    int64_t total;
    uint32_t node;
    uint32_t parent; /* node of the caller */
    uint32_t level;
};

struct work {
    const struct tree *tree;
    const struct chart_options *options;
    uint32_t *levels; /* of tree_levels() */
    bool *matched;    /* by node: it or one of its callers matches; NULL without a search */
    struct seen *seen;
    size_t n_seen;
    int64_t least; /* nodes of a smaller total are not drawn */
};

static void note_match(struct work *w, struct chart *c, uint32_t i)
{
    struct tree_node node = tree_node(w->tree, i);
    bool above = i != w->options->root && w->matched[node.parent];
    w->matched[i] = above || chart_matches(node.name, w->options->search);
    if (w->matched[i] && !above) {
        c->matched += node.total;
    }
}

static void note_seen(struct work *w, uint32_t i)
{
    struct tree_node node = tree_node(w->tree, i);
    w->seen[w->n_seen++] = (struct seen){.name = node.name,
                                         .total = node.total,
                                         .node = i,
                                         .parent = node.parent,
                                         .level = w->levels[i]};
}

/* Visits every node below the root of the chart that has a positive value, callers first. Most
 * nodes of a large tree are too narrow to be drawn, so only their totals and levels are read. */
static void visit_nodes(struct work *w, struct chart *c)
{
    size_t n = tree_size(w->tree);
    const int64_t *totals = tree_node_totals(w->tree);
    c->depth = tree_levels(w->tree, w->options->root, w->levels);
    for (uint32_t i = 0; i < n; i++) {
        bool drawn = totals[i] >= w->least && w->levels[i] < CHART_LEVELS_MAX;
        if (w->matched != NULL && totals[i] > 0 && w->levels[i] != TREE_OUTSIDE) {
            note_match(w, c, i);
        }
        if (drawn) {
            note_seen(w, i);
        }
    }
}

/* Sorts by level, caller and name. */
static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a;
    const struct seen *y = b;
    if (x->level != y->level) {
        return x->level < y->level ? -1 : 1;
    }
    if (x->parent != y->parent) {
        return x->parent < y->parent ? -1 : 1;
    }
    return sv_cmp(x->name, y->name);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* The value at which the next child of a box begins. */
struct place {
    size_t box;
    int64_t next;
};

static uint32_t column_of(int64_t value, const struct chart *c)
{
    double at = (double)value * (double)c->columns / (double)c->total + 0.5;
    return (uint32_t)(at < (double)c->columns ? at : (double)c->columns);
}

static void place_box(const struct work *w, const struct seen *s, struct place *places,
                      struct chart *c)
{
    struct place *above = &places[s->level == 0 ? s->node : s->parent];
    int64_t start = above->next;
    size_t caller = above->box;
    if (s->level > 0) {
        above->next += s->total;
    }
    places[s->node].next = start;
    uint32_t left = column_of(start, c);
    uint32_t right = column_of(start + s->total, c);
    if (right > left) {
        c->boxes[c->n++] = (struct chart_box){
            .node = s->node,
            .level = s->level,
            .left = left,
            .right = right,
            .parent = (uint32_t)caller,
            .matches = w->matched != NULL && chart_matches(s->name, w->options->search),
        };
    }
}

static int compare_boxes(const void *a, const void *b)
{
    const struct chart_box *x = a;
    const struct chart_box *y = b;
    return (x->left > y->left) - (x->left < y->left);
}

/* Makes the boxes level by level. A box without a column has no callee with one, so a level without
 * boxes is the last. */
static void place_boxes(const struct work *w, struct place *places, struct chart *c)
{
    size_t i = 0;
    while (i < w->n_seen) {
        uint32_t level = w->seen[i].level;
        size_t first = c->n;
        for (; i < w->n_seen && w->seen[i].level == level; i++) {
            place_box(w, &w->seen[i], places, c);
        }
        if (c->n == first) {
            return;
        }
        qsort(c->boxes + first, c->n - first, sizeof(*c->boxes), compare_boxes);
        for (size_t k = first; k < c->n; k++) {
            places[c->boxes[k].node].box = k;
        }
        c->rows[c->n_levels++] = first;
        c->rows[c->n_levels] = c->n;
    }
}

static bool lay_out(struct work *w, struct arena *arena, struct chart *c, struct err *err)
{
    struct place *places = calloc(tree_size(w->tree), sizeof(*places));
    size_t levels = c->depth < CHART_LEVELS_MAX ? c->depth : CHART_LEVELS_MAX;
    c->rows = arena_array(arena, levels + 1, sizeof(*c->rows));
    c->boxes = arena_array(arena, w->n_seen + 1, sizeof(*c->boxes));
    bool ok = places != NULL && c->rows != NULL && c->boxes != NULL;
    if (ok) {
        qsort(w->seen, w->n_seen, sizeof(*w->seen), compare_seen);
        place_boxes(w, places, c);
    }
    free(places);
    return ok || err_memory(err);
}

bool chart_make(const struct tree *t, const struct chart_options *options, struct arena *arena,
                struct chart *ret, struct err *err)
{
    size_t n = tree_size(t);
    struct work w = {.tree = t, .options = options};
    *ret = (struct chart){.columns = options->columns, .total = tree_node(t, options->root).total};
    w.least = ret->total / (int64_t)(2 * options->columns);
    w.least = w.least < 1 ? 1 : w.least;
    w.levels = calloc(n, sizeof(*w.levels));
    w.seen = calloc(n, sizeof(*w.seen));
    w.matched = options->search.n > 0 ? calloc(n, sizeof(*w.matched)) : NULL;
    bool ok = w.levels != NULL && w.seen != NULL && (options->search.n == 0 || w.matched != NULL);
    if (ok) {
        visit_nodes(&w, ret);
        ok = lay_out(&w, arena, ret, err);
    } else {
        err_memory(err);
    }
    free(w.levels);
    free(w.seen);
    free(w.matched);
    return ok;
}

size_t chart_find(const struct chart *chart, uint32_t node)
{
    size_t i = 0;
    while (i < chart->n && chart->boxes[i].node != node) {
        i++;
    }
    return i;
}

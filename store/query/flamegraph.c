#include <stdlib.h>
#include <string.h>

#include "store/query/layout.h"

/* A flame graph, or a difference of two, is drawn by two walks through the tree. The first one
 * counts the bars of each level and numbers the names; the second one writes the bars. The walk
 * goes from right to left, so each level is filled from its end. */

#define SIDES_MAX 2
/* Index of `total` among the names of a flame graph. */
#define NAME_TOTAL 0

struct bar {
    int64_t x[SIDES_MAX];
    int64_t total[SIDES_MAX];
    int64_t self[SIDES_MAX];
    uint32_t name; /* number of a name of the tree */
};

struct drawing {
    const struct tree *t;
    const struct layout *l;
    size_t sides;
    const int64_t *self[SIDES_MAX]; /* self of each node, for each side */
    const int64_t *total[SIDES_MAX];
    int64_t *cut[SIDES_MAX]; /* the sum of the children of each node that are not drawn */
    int64_t *end[SIDES_MAX]; /* by level: the right end of the next bar */
    size_t *bars; /* by level: the number of bars counted, then the number still to be written */
    uint32_t *number; /* by name: 1 + its index in the result; 0 if it is not in the result yet */
    /* the name of a bar that stands for cut children: that of a function `other` if there is one,
     * else a number beyond those of the tree */
    uint32_t other;
    bool writing;
    struct arena *arena;
    struct flamegraph *result;
};

/* Subtracts. If sums have reached the limits of int64_t, positions may be wrong, but the result is
 * never undefined. */
static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* ---- bars ------------------------------------------------------------------------------------ */

static void count_bar(struct drawing *d, size_t level, const struct bar *bar)
{
    struct flamegraph *fg = d->result;
    d->bars[level]++;
    fg->n_levels = level + 1 > fg->n_levels ? level + 1 : fg->n_levels;
    for (size_t side = 0; side < d->sides; side++) {
        fg->max_self = bar->self[side] > fg->max_self ? bar->self[side] : fg->max_self;
    }
    if (level > 0 && d->number[bar->name] == 0) {
        d->number[bar->name] = (uint32_t)++fg->n_names;
    }
}

static void write_bar(struct drawing *d, size_t level, const struct bar *bar)
{
    size_t width = 3 * d->sides + 1;
    int64_t *at = d->result->levels[level].at + --d->bars[level] * width;
    for (size_t side = 0; side < d->sides; side++) {
        *at++ = bar->x[side];
        *at++ = bar->total[side];
        *at++ = bar->self[side];
    }
    *at = level == 0 ? NAME_TOTAL : (int64_t)d->number[bar->name] - 1;
}

static void put_bar(struct drawing *d, size_t level, const struct bar *bar)
{
    if (d->writing) {
        write_bar(d, level, bar);
    } else {
        count_bar(d, level, bar);
    }
}

/* Draws the children of a node that are cut, as one bar on its right. */
static void put_other(struct drawing *d, uint32_t node, size_t level)
{
    struct bar bar = {.name = d->other};
    bool any = false;
    for (size_t side = 0; side < d->sides; side++) {
        bar.total[side] = bar.self[side] = d->cut[side][node];
        any = any || bar.total[side] > 0;
    }
    if (!any) {
        return;
    }
    for (size_t side = 0; side < d->sides; side++) {
        d->end[side][level] = minus(d->end[side][level], bar.total[side]);
        bar.x[side] = d->end[side][level];
    }
    put_bar(d, level + 1, &bar);
}

static void put_node(struct drawing *d, uint32_t node, size_t level)
{
    struct bar bar = {.name = node == 0 ? 0 : tree_edge_of(d->t, node)->name};
    for (size_t side = 0; side < d->sides; side++) {
        bar.total[side] = d->total[side][node];
        bar.self[side] = d->self[side][node];
        if (level > 0) {
            bar.x[side] = d->end[side][level - 1] = minus(d->end[side][level - 1], bar.total[side]);
        }
        d->end[side][level] = minus(bar.x[side], minus(0, bar.total[side]));
    }
    put_bar(d, level, &bar);
    put_other(d, node, level);
}

static bool walk(struct drawing *d, struct err *err)
{
    struct layout_walk w;
    enum layout_event event;
    uint32_t node;
    size_t level;
    if (!layout_walk_init(&w, d->l, err)) {
        return false;
    }
    while ((event = layout_walk_next(&w, &node, &level)) != LAYOUT_END) {
        if (event == LAYOUT_ENTER) {
            put_node(d, node, level);
        }
    }
    layout_walk_done(&w);
    return true;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Numbers the names: functions called `total` share the number of the root, and functions called
 * `other` that of the bars for cut children. */
static void number_names(struct drawing *d)
{
    d->result->n_names = NAME_TOTAL + 1;
    d->other = (uint32_t)d->t->names.n;
    for (uint32_t i = 0; i < d->t->names.n; i++) {
        struct sv name = tree_name_of(d->t, i);
        if (sv_eq_str(name, "total")) {
            d->number[i] = NAME_TOTAL + 1;
        } else if (sv_eq_str(name, "other")) {
            d->other = i;
        }
    }
}

/* Allocates the bars and names that the first walk has counted. */
static bool make_room(struct drawing *d, struct err *err)
{
    struct flamegraph *fg = d->result;
    size_t width = 3 * d->sides + 1;
    fg->levels = arena_array(d->arena, fg->n_levels, sizeof(*fg->levels));
    fg->names = arena_array(d->arena, fg->n_names, sizeof(*fg->names));
    if (fg->levels == NULL || fg->names == NULL) {
        return query_no_room(err);
    }
    for (size_t i = 0; i < fg->n_levels; i++) {
        fg->levels[i].n = d->bars[i] * width;
        fg->levels[i].at = arena_array(d->arena, fg->levels[i].n, sizeof(int64_t));
        if (fg->levels[i].at == NULL) {
            return query_no_room(err);
        }
    }
    fg->names[NAME_TOTAL] = SV("total");
    for (uint32_t i = 0; i <= d->t->names.n; i++) {
        if (d->number[i] > NAME_TOTAL + 1) {
            fg->names[d->number[i] - 1] = i < d->t->names.n ? tree_name_of(d->t, i) : SV("other");
        }
    }
    return true;
}

/* Replaces the position of each bar by its distance from the bar before. */
static void code_offsets(struct drawing *d)
{
    size_t width = 3 * d->sides + 1;
    for (size_t level = 0; level < d->result->n_levels; level++) {
        int64_t *at = d->result->levels[level].at;
        int64_t before[SIDES_MAX] = {0};
        for (size_t i = 0; i < d->result->levels[level].n; i += width) {
            for (size_t side = 0; side < d->sides; side++) {
                int64_t *x = &at[i + 3 * side];
                int64_t after = minus(x[0], minus(0, x[1]));
                x[0] = minus(x[0], before[side]);
                before[side] = after;
            }
        }
    }
}

static bool draw_bars(struct drawing *d, struct err *err)
{
    /* The bars for cut children may need one level more than the tree has. */
    size_t levels = d->l->depth + 1;
    int64_t *ends = calloc(levels * SIDES_MAX, sizeof(*ends));
    bool ok = false;
    *d->result = (struct flamegraph){.n_names = 0};
    d->number = calloc(d->t->names.n + 1, sizeof(*d->number));
    d->bars = calloc(levels, sizeof(*d->bars));
    if (ends == NULL || d->number == NULL || d->bars == NULL) {
        err_memory(err);
    } else {
        d->end[0] = ends;
        d->end[1] = ends + levels;
        number_names(d);
        ok = walk(d, err) && make_room(d, err);
        d->writing = true;
        ok = ok && walk(d, err);
    }
    if (ok) {
        code_offsets(d);
    }
    free(ends);
    free(d->number);
    free(d->bars);
    return ok;
}

/* Draws the root and the nodes whose values are not below the max_nodes-th largest one from the
 * node `first` on. values: by node. */
static bool draw(struct drawing *d, struct layout *l, const int64_t *values, size_t first,
                 int64_t max_nodes, struct err *err)
{
    int64_t least;
    d->l = l;
    bool ok = layout_threshold(values + first, l->n - first, max_nodes, &least, err) &&
              layout_order(l, d->t, values, least, err);
    for (size_t side = 0; ok && side < d->sides; side++) {
        d->cut[side] = layout_cut(l, d->t, d->total[side], values, least);
        ok = d->cut[side] != NULL || err_memory(err);
    }
    ok = ok && draw_bars(d, err);
    free(d->cut[0]);
    free(d->cut[1]);
    return ok;
}

bool tree_flamegraph(const struct tree *t, int64_t max_nodes, struct arena *arena,
                     struct flamegraph *ret, struct err *err)
{
    struct layout l;
    if (!layout_init(&l, t, err)) {
        return false;
    }
    struct drawing d = {
        .t = t,
        .sides = 1,
        .self = {t->self},
        .total = {l.total},
        .arena = arena,
        .result = ret,
    };
    bool ok = draw(&d, &l, l.total, 1, max_nodes, err);
    if (ok) {
        ret->total = l.total[0];
    }
    layout_done(&l);
    return ok;
}

/* ---- the difference -------------------------------------------------------------------------- */

/* Two trees, united into one. */
struct both {
    struct tree *t;     /* has the values of the left tree */
    uint32_t *place[2]; /* for each node of a side, its node in t */
    int64_t *self;      /* values of the right tree, by node of t */
    int64_t *total;
    int64_t *key; /* the greater of both totals */
};

static bool is_positive(const struct tree *t, const char *what, struct err *err)
{
    for (size_t i = 0; i < tree_size(t); i++) {
        if (t->self[i] < 0) {
            return err_set(err, ERR_INPUT, "%s require only positive values", what);
        }
    }
    return true;
}

/* Adds the nodes of a tree to b->t. */
static bool unite(struct both *b, const struct tree *from, int side, struct err *err)
{
    bool ok = true;
    uint32_t *place = calloc(tree_size(from), sizeof(*place));
    uint32_t *names = calloc(from->names.n + 1, sizeof(*names));
    b->place[side] = place;
    if (place == NULL || names == NULL) {
        free(names);
        return err_memory(err);
    }
    for (uint32_t i = 0; ok && i < from->names.n; i++) {
        ok = tree_name(b->t, tree_name_of(from, i), &names[i], err);
    }
    for (uint32_t i = 1; ok && i < tree_size(from); i++) {
        const struct tree_edge *edge = tree_edge_of(from, i);
        ok = tree_child(b->t, place[edge->parent], names[edge->name], &place[i], err);
    }
    free(names);
    return ok;
}

static bool fill_right(struct both *b, const struct tree *right, const int64_t *left_total,
                       struct err *err)
{
    size_t n = tree_size(b->t);
    b->self = calloc(n, sizeof(*b->self));
    b->total = calloc(n, sizeof(*b->total));
    b->key = calloc(n, sizeof(*b->key));
    if (b->self == NULL || b->total == NULL || b->key == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < tree_size(right); i++) {
        b->self[b->place[1][i]] = right->self[i];
    }
    memcpy(b->total, b->self, n * sizeof(*b->total));
    for (size_t i = n - 1; i > 0; i--) {
        uint32_t parent = tree_edge_of(b->t, (uint32_t)i)->parent;
        b->total[parent] = tree_plus(b->total[parent], b->total[i]);
    }
    for (size_t i = 0; i < n; i++) {
        b->key[i] = b->total[i] > left_total[i] ? b->total[i] : left_total[i];
    }
    return true;
}

/* Copies the names into the arena, because the united tree is freed. */
static bool keep_names(struct flamegraph *fg, struct arena *arena, struct err *err)
{
    for (size_t i = 0; i < fg->n_names; i++) {
        fg->names[i].p = arena_strndup(arena, fg->names[i].p, fg->names[i].n);
        if (fg->names[i].p == NULL) {
            return query_no_room(err);
        }
    }
    return true;
}

static bool draw_both(struct both *b, const struct tree *right, int64_t max_nodes,
                      struct arena *arena, struct flamegraph *ret, struct err *err)
{
    struct layout l;
    if (!layout_init(&l, b->t, err)) {
        return false;
    }
    struct drawing d = {.t = b->t, .sides = 2, .arena = arena, .result = ret};
    bool ok = fill_right(b, right, l.total, err);
    if (ok) {
        d.self[0] = b->t->self;
        d.self[1] = b->self;
        d.total[0] = l.total;
        d.total[1] = b->total;
        ok = draw(&d, &l, b->key, 0, max_nodes, err) && keep_names(ret, arena, err);
    }
    if (ok) {
        ret->left = l.total[0];
        ret->right = b->total[0];
        ret->total = tree_plus(ret->left, ret->right);
    }
    layout_done(&l);
    return ok;
}

bool tree_diff(const struct tree *left, const struct tree *right, int64_t max_nodes,
               struct arena *arena, struct flamegraph *ret, struct err *err)
{
    if (!is_positive(left, "left tree", err) || !is_positive(right, "right tree", err)) {
        return false;
    }
    struct both b = {.t = tree_new(left->budget.max + right->budget.max, err)};
    bool ok = b.t != NULL && unite(&b, left, 0, err) && unite(&b, right, 1, err);
    if (ok) {
        for (uint32_t i = 0; i < tree_size(left); i++) {
            tree_add(b.t, b.place[0][i], left->self[i]);
        }
        ok = draw_both(&b, right, max_nodes, arena, ret, err);
    }
    tree_free(b.t);
    free(b.place[0]);
    free(b.place[1]);
    free(b.self);
    free(b.total);
    free(b.key);
    return ok;
}

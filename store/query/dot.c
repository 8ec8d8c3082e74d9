/* Draws a tree as a graph of functions for Graphviz, in the style of google/pprof: a node for each
 * function with its self and total, and an edge for each call with the total that goes through it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/query/layout.h"

#define NO_NAME UINT32_MAX
#define FONT_MIN 8
#define FONT_RANGE 16
#define PEN_RANGE 5
#define VALUE_MAX 48

/* The key of an edge. An edge that passes through functions which are not drawn is dashed. */
struct call {
    uint32_t from;
    uint32_t to;
    uint32_t is_direct;
};

struct graph {
    const struct tree *tree;
    struct sv unit;
    struct tree_function *at; /* the functions that are drawn */
    size_t n;
    uint32_t *number;   /* by name: the number of the function, from 1; 0: not drawn */
    uint32_t *nearest;  /* by level: the nearest function that is drawn, at this level or above */
    struct table calls; /* keys are struct call */
    struct budget budget;
    int64_t *weight; /* the total of each call */
    uint32_t *on_path;
    size_t weight_cap;
    size_t on_path_cap;
    int64_t total;
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* Writes a value with its unit, in its shortest form. */
static void value_text(const struct graph *g, int64_t value, char out[VALUE_MAX])
{
    static const char *const sizes[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double scaled = (double)value;
    size_t i = 0;
    if (sv_eq_str(g->unit, "nanoseconds")) {
        (void)snprintf(out, VALUE_MAX, "%.6gs", scaled / 1e9);
    } else if (sv_eq_str(g->unit, "bytes")) {
        while (scaled >= 1024 && i + 1 < sizeof(sizes) / sizeof(sizes[0])) {
            scaled /= 1024;
            i++;
        }
        (void)snprintf(out, VALUE_MAX, "%.2f%s", scaled, sizes[i]);
    } else {
        (void)snprintf(out, VALUE_MAX, "%" PRId64, value);
    }
}

static double share(const struct graph *g, int64_t value)
{
    return g->total == 0 ? 0 : (double)value / (double)g->total;
}

static void put_share(const struct graph *g, int64_t value, struct buf *out)
{
    char text[VALUE_MAX];
    value_text(g, value, text);
    buf_printf(out, "%s (%.2f%%)", text, 100 * share(g, value));
}

/* Writes a name as part of a quoted text. */
static void put_name(struct sv name, struct buf *out)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c == '"' || c == '\\') {
            buf_putc(out, '\\');
        }
        buf_putc(out, (unsigned char)c < ' ' ? ' ' : c);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool find_call(struct graph *g, struct call call, uint32_t *ret, struct err *err)
{
    size_t before = g->calls.n;
    if (!merge_table_add(&g->calls, &g->budget, &call, sizeof(call), sizeof(call), ret, err)) {
        return false;
    }
    int64_t *weight =
        budget_grow(&g->budget, g->weight, &g->weight_cap, g->calls.n, sizeof(*weight), err);
    if (weight == NULL) {
        return false;
    }
    g->weight = weight;
    uint32_t *on_path =
        budget_grow(&g->budget, g->on_path, &g->on_path_cap, g->calls.n, sizeof(*on_path), err);
    if (on_path == NULL) {
        return false;
    }
    g->on_path = on_path;
    if (g->calls.n > before) {
        weight[*ret] = 0;
        on_path[*ret] = 0;
    }
    return true;
}

/* A node that is entered adds its total to the call that leads to it, but only once on each path:
 * recursion does not count again. */
static bool visit(struct graph *g, const struct layout_walk *w, enum layout_event event,
                  uint32_t node, size_t level, struct err *err)
{
    const struct tree_edge *edge = tree_edge_of(g->tree, node);
    uint32_t above = g->nearest[level - 1];
    uint32_t i = 0;
    g->nearest[level] = g->number[edge->name] == 0 ? above : edge->name;
    if (g->number[edge->name] == 0 || above == NO_NAME || above == edge->name) {
        return true;
    }
    bool direct = edge->parent != 0 && tree_edge_of(g->tree, edge->parent)->name == above;
    if (!find_call(g, (struct call){above, edge->name, direct}, &i, err)) {
        return false;
    }
    if (event == LAYOUT_LEAVE) {
        g->on_path[i]--;
    } else if (g->on_path[i]++ == 0) {
        g->weight[i] = tree_plus(g->weight[i], w->l->total[node]);
    }
    return true;
}

static bool sum_calls(struct graph *g, const struct layout *l, struct err *err)
{
    struct layout_walk w;
    enum layout_event event;
    uint32_t node;
    size_t level;
    bool ok = true;
    g->nearest = calloc(l->depth + 1, sizeof(*g->nearest));
    if (g->nearest == NULL) {
        return err_memory(err);
    }
    if (!layout_walk_init(&w, l, err)) {
        return false;
    }
    g->nearest[0] = NO_NAME;
    while (ok && (event = layout_walk_next(&w, &node, &level)) != LAYOUT_END) {
        ok = node == 0 || visit(g, &w, event, node, level, err);
    }
    layout_walk_done(&w);
    return ok;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_functions(const struct graph *g, struct buf *out)
{
    int64_t most = 1;
    for (size_t i = 0; i < g->n; i++) {
        most = g->at[i].self > most ? g->at[i].self : most;
    }
    for (size_t i = 0; i < g->n; i++) {
        const struct tree_function *f = &g->at[i];
        double size = f->self <= 0 ? 0 : sqrt((double)f->self / (double)most);
        buf_printf(out, "N%zu [label=\"", i + 1);
        put_name(f->name, out);
        buf_puts(out, "\\n");
        put_share(g, f->self, out);
        if (f->self != f->total) {
            buf_puts(out, "\\nof ");
            put_share(g, f->total, out);
        }
        buf_printf(out, "\" id=\"node%zu\" fontsize=%d shape=box tooltip=\"", i + 1,
                   FONT_MIN + (int)ceil(FONT_RANGE * size));
        put_name(f->name, out);
        buf_puts(out, "\"]\n");
    }
}

static void write_calls(const struct graph *g, struct buf *out)
{
    for (uint32_t i = 0; i < g->calls.n; i++) {
        size_t n = 0;
        char value[VALUE_MAX];
        const struct call *call = merge_table_get(&g->calls, i, &n);
        value_text(g, g->weight[i], value);
        buf_printf(out, "N%" PRIu32 " -> N%" PRIu32 " [label=\" %s\" weight=%d penwidth=%d%s]\n",
                   g->number[call->from], g->number[call->to], value,
                   1 + (int)(100 * share(g, g->weight[i])),
                   1 + (int)(PEN_RANGE * share(g, g->weight[i])),
                   call->is_direct != 0 ? "" : " style=\"dashed\"");
    }
}

static void write_graph(const struct graph *g, struct sv type, struct buf *out)
{
    int64_t shown = 0;
    char total[VALUE_MAX];
    for (size_t i = 0; i < g->n; i++) {
        shown = tree_plus(shown, g->at[i].self);
    }
    value_text(g, g->total, total);
    buf_puts(out, "digraph \"");
    put_name(type, out);
    buf_puts(out, "\" {\nnode [style=filled fillcolor=\"#f8f8f8\"]\n"
                  "subgraph cluster_L { \"Type: ");
    put_name(type, out);
    buf_puts(out, "\" [shape=box fontsize=16 label=\"Type: ");
    put_name(type, out);
    buf_puts(out, "\\lShowing nodes accounting for ");
    put_share(g, shown, out);
    buf_printf(out, " of %s total\\l\"] }\n", total);
    write_functions(g, out);
    write_calls(g, out);
    buf_puts(out, "}\n");
}

/* ---- the graph ------------------------------------------------------------------------------- */

static int compare_totals(const void *a, const void *b)
{
    const struct tree_function *x = a;
    const struct tree_function *y = b;
    return x->total != y->total ? (x->total < y->total) - (x->total > y->total)
                                : sv_cmp(x->name, y->name);
}

/* Finds the number of a name of the tree by the place of its bytes: the bytes of names are stored
 * in the order of their numbers, and an empty name has the place of the next one. */
static uint32_t number_of(const struct tree *t, struct sv name)
{
    uint32_t low = 0;
    uint32_t high = (uint32_t)t->names.n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tree_name_of(t, middle).p < name.p) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (tree_name_of(t, low).n != name.n) {
        low++;
    }
    return low;
}

/* Chooses the functions with the largest totals, and finds their numbers. */
static bool choose(struct graph *g, int64_t max_nodes, struct arena *arena, struct err *err)
{
    if (!tree_functions(g->tree, arena, &g->at, &g->n, err)) {
        return false;
    }
    qsort(g->at, g->n, sizeof(*g->at), compare_totals);
    if (max_nodes > 0 && g->n > (uint64_t)max_nodes) {
        g->n = (size_t)max_nodes;
    }
    g->number = calloc(g->tree->names.n + 1, sizeof(*g->number));
    if (g->number == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < g->n; i++) {
        g->number[number_of(g->tree, g->at[i].name)] = (uint32_t)i + 1;
    }
    return true;
}

static bool draw(struct graph *g, int64_t max_nodes, struct sv type, struct arena *arena,
                 struct buf *out, struct err *err)
{
    struct layout l;
    if (!choose(g, max_nodes, arena, err) || !layout_init(&l, g->tree, err)) {
        return false;
    }
    bool ok = layout_order(&l, g->tree, l.total, LAYOUT_ALL, err) && sum_calls(g, &l, err);
    layout_done(&l);
    if (!ok) {
        return false;
    }
    write_graph(g, type, out);
    return buf_ok(out) || query_no_room(err);
}

bool tree_dot(const struct tree *t, int64_t max_nodes, struct sv type, struct sv unit,
              struct buf *out, struct err *err)
{
    struct graph g = {.tree = t, .unit = unit, .budget = t->budget, .total = tree_total(t)};
    struct arena *arena = arena_new(t->budget.max);
    bool ok = arena != NULL ? true : err_memory(err);
    merge_table_init(&g.calls, t->names.seed);
    ok = ok && draw(&g, max_nodes, type, arena, out, err);
    merge_table_done(&g.calls);
    free(g.number);
    free(g.nearest);
    free(g.weight);
    free(g.on_path);
    arena_free(arena);
    return ok;
}

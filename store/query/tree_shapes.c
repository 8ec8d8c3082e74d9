#include <stdlib.h>

#include "pprof/put.h"
#include "store/query/layout.h"

/* ---- Pyroscope's tree bytes ------------------------------------------------------------------ */

static void put_uvarint(struct buf *out, uint64_t value)
{
    unsigned char bytes[WIRE_NUMBER_MAX];
    buf_append(out, bytes, wire_encode(value, bytes));
}

static void put_node(struct buf *out, struct sv name, int64_t self, size_t children)
{
    put_uvarint(out, name.n);
    buf_append(out, name.p, name.n);
    put_uvarint(out, (uint64_t)self);
    put_uvarint(out, children);
}

static void write_nodes(const struct tree *t, struct layout_walk *w, const int64_t *cut,
                        struct buf *out)
{
    enum layout_event event;
    uint32_t node;
    size_t level;
    while ((event = layout_walk_next(w, &node, &level)) != LAYOUT_END) {
        if (event == LAYOUT_LEAVE) {
            continue;
        }
        size_t kept = w->l->start[node + 1] - w->l->start[node];
        struct sv name = node == 0 ? SV("") : tree_name_of(t, tree_edge_of(t, node)->name);
        put_node(out, name, t->self[node], kept + (cut[node] > 0));
        if (cut[node] > 0) {
            put_node(out, SV("other"), cut[node], 0);
        }
    }
}

/* Writes the nodes whose totals are not below the least one. */
static bool write_tree(const struct tree *t, struct layout *l, int64_t least, struct buf *out,
                       struct err *err)
{
    struct layout_walk w = {.level = 0};
    bool ok = layout_order(l, t, l->total, least, err) && layout_walk_init(&w, l, err);
    int64_t *cut = ok ? layout_cut(l, t, l->total, l->total, least) : NULL;
    if (cut != NULL) {
        write_nodes(t, &w, cut, out);
        ok = buf_ok(out) || err_set(err, ERR_LIMIT, "a tree of more than %zu bytes", out->max);
    } else if (ok) {
        ok = err_memory(err);
    }
    free(cut);
    layout_walk_done(&w);
    return ok;
}

bool tree_bytes(const struct tree *t, int64_t max_nodes, struct buf *out, struct err *err)
{
    struct layout l;
    int64_t least;
    if (!layout_init(&l, t, err)) {
        return false;
    }
    bool ok = layout_threshold(l.total + 1, l.n - 1, max_nodes, &least, err) &&
              (l.total[0] <= 0 || write_tree(t, &l, least, out, err));
    layout_done(&l);
    return ok;
}

/* ---- the table of functions ------------------------------------------------------------------ */

static int compare_functions(const void *a, const void *b)
{
    const struct tree_function *x = a;
    const struct tree_function *y = b;
    return x->self != y->self ? (x->self < y->self) - (x->self > y->self)
                              : sv_cmp(x->name, y->name);
}

/* Sums up the nodes by name. `on_path` counts how often each name is on the path from the root to
 * the current node. */
static void sum_functions(const struct tree *t, struct layout_walk *w, uint32_t *on_path,
                          struct tree_function *at)
{
    enum layout_event event;
    uint32_t node;
    size_t level;
    while ((event = layout_walk_next(w, &node, &level)) != LAYOUT_END) {
        if (node == 0) {
            continue;
        }
        uint32_t name = tree_edge_of(t, node)->name;
        if (event == LAYOUT_LEAVE) {
            on_path[name]--;
            continue;
        }
        at[name].self = tree_plus(at[name].self, t->self[node]);
        if (on_path[name]++ == 0) {
            at[name].total = tree_plus(at[name].total, w->l->total[node]);
        }
    }
}

/* Moves the functions with a positive total to the front, and sets their names. Returns their
 * number. */
static size_t keep_counted(const struct tree *t, struct tree_function *at)
{
    size_t n = 0;
    for (uint32_t i = 0; i < t->names.n; i++) {
        if (at[i].total > 0) {
            at[i].name = tree_name_of(t, i);
            at[n++] = at[i];
        }
    }
    return n;
}

bool tree_functions(const struct tree *t, struct arena *arena, struct tree_function **ret,
                    size_t *ret_n, struct err *err)
{
    struct layout l;
    struct layout_walk w;
    struct tree_function *at = arena_array(arena, t->names.n + 1, sizeof(*at));
    if (at == NULL) {
        return query_no_room(err);
    }
    uint32_t *on_path = calloc(t->names.n + 1, sizeof(*on_path));
    if (on_path == NULL) {
        return err_memory(err);
    }
    bool ok = layout_init(&l, t, err);
    if (ok) {
        ok = layout_order(&l, t, l.total, LAYOUT_ALL, err) && layout_walk_init(&w, &l, err);
        if (ok) {
            sum_functions(t, &w, on_path, at);
            layout_walk_done(&w);
            *ret = at;
            *ret_n = keep_counted(t, at);
            qsort(at, *ret_n, sizeof(*at), compare_functions);
        }
        layout_done(&l);
    }
    free(on_path);
    return ok;
}

#include "store/query/layout.h"

#include <stdlib.h>
#include <string.h>

/* ---- order ----------------------------------------------------------------------------------- */

struct named {
    struct sv name;
    uint32_t i;
};

static int compare_names(const void *a, const void *b)
{
    const struct named *x = a;
    const struct named *y = b;
    return sv_cmp(x->name, y->name);
}

/* Ranks the names of so many nodes in byte order. Names of other nodes have no rank. Returns false
 * if out of memory. */
static bool rank_names(const struct tree *t, const uint32_t *nodes, size_t n_nodes,
                       uint32_t *ret_rank)
{
    size_t n = 0;
    struct named *names = calloc(t->names.n + 1, sizeof(*names));
    if (names == NULL) {
        return false;
    }
    for (size_t i = 0; i < n_nodes; i++) {
        uint32_t name = tree_edge_of(t, nodes[i])->name;
        if (ret_rank[name] == 0) {
            ret_rank[name] = 1;
            names[n++] = (struct named){tree_name_of(t, name), name};
        }
    }
    qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 0; i < n; i++) {
        ret_rank[names[i].i] = (uint32_t)i;
    }
    free(names);
    return true;
}

/* Sorts nodes stably by their keys, which are below n_keys; nodes with equal keys keep the order of
 * `from`. start must have room for n_keys + 1 elements: it gets the place at which the nodes of
 * each key begin. */
static void sort_nodes(const uint32_t *from, size_t n, const uint32_t *key_of_node, size_t n_keys,
                       uint32_t *start, uint32_t *ret)
{
    memset(start, 0, (n_keys + 1) * sizeof(*start));
    for (size_t i = 0; i < n; i++) {
        start[key_of_node[from[i]] + 1]++;
    }
    for (size_t i = 0; i < n_keys; i++) {
        start[i + 1] += start[i];
    }
    for (size_t i = 0; i < n; i++) {
        ret[start[key_of_node[from[i]]]++] = from[i];
    }
    /* The loop has moved the start of each key to the start of the next one: moves them back. */
    memmove(start + 1, start, n_keys * sizeof(*start));
    start[0] = 0;
}

struct order {
    size_t n;        /* ordered nodes, without the root */
    uint32_t *rank;  /* by name: its rank in byte order */
    uint32_t *key;   /* of each node: first its level, then the rank of its name, then its parent */
    uint32_t *nodes; /* in order of their ranks */
    uint32_t *start; /* by rank: where its nodes begin */
};

static void fill(struct layout *l, const struct tree *t, struct order *o)
{
    for (size_t i = 0; i < o->n; i++) {
        o->key[l->kids[i]] = o->rank[tree_edge_of(t, l->kids[i])->name];
    }
    sort_nodes(l->kids, o->n, o->key, t->names.n, o->start, o->nodes);
    for (size_t i = 0; i < o->n; i++) {
        o->key[l->kids[i]] = tree_edge_of(t, l->kids[i])->parent;
    }
    sort_nodes(o->nodes, o->n, o->key, l->n, l->start, l->kids);
}

/* Finds the level of each node: a parent comes before its children. Nodes that have no place have
 * the level 0, and so has the root. */
static void find_depth(struct layout *l, const struct tree *t, const uint32_t *nodes, size_t n,
                       uint32_t *level)
{
    l->depth = 1;
    for (size_t i = 0; i < n; i++) {
        level[nodes[i]] = level[tree_edge_of(t, nodes[i])->parent] + 1;
        size_t levels = (size_t)level[nodes[i]] + 1;
        l->depth = levels > l->depth ? levels : l->depth;
    }
}

bool layout_init(struct layout *l, const struct tree *t, struct err *err)
{
    size_t n = tree_size(t);
    *l = (struct layout){.n = n};
    if (!tree_room(t,
                   n * (sizeof(int64_t) + 4 * sizeof(uint32_t)) + t->names.n * sizeof(struct named),
                   err)) {
        return false;
    }
    l->total = calloc(n, sizeof(*l->total));
    if (l->total == NULL) {
        return err_memory(err);
    }
    tree_totals(t, l->total);
    return true;
}

/* Returns the number of nodes that are to be ordered, without the root. If ret is not NULL, lists
 * them. */
static size_t list_nodes(const struct layout *l, const int64_t *values, int64_t least,
                         uint32_t *ret)
{
    size_t n = 0;
    for (uint32_t i = 1; i < l->n; i++) {
        if (values[i] >= least) {
            if (ret != NULL) {
                ret[n] = i;
            }
            n++;
        }
    }
    return n;
}

bool layout_order(struct layout *l, const struct tree *t, const int64_t *values, int64_t least,
                  struct err *err)
{
    size_t names = t->names.n;
    struct order o = {
        .n = list_nodes(l, values, least, NULL),
        .rank = calloc(names + 1, sizeof(uint32_t)),
        .key = calloc(l->n, sizeof(uint32_t)),
        .start = calloc(names + 1, sizeof(uint32_t)),
    };
    o.nodes = calloc(o.n + 1, sizeof(uint32_t));
    l->start = calloc(l->n + 1, sizeof(*l->start));
    l->kids = calloc(o.n + 1, sizeof(*l->kids));
    bool ok = l->start != NULL && l->kids != NULL && o.rank != NULL && o.key != NULL &&
              o.nodes != NULL && o.start != NULL;
    if (ok) {
        (void)list_nodes(l, values, least, l->kids);
        find_depth(l, t, l->kids, o.n, o.key);
        ok = rank_names(t, l->kids, o.n, o.rank);
    }
    if (ok) {
        fill(l, t, &o);
    } else {
        err_memory(err);
    }
    free(o.rank);
    free(o.key);
    free(o.nodes);
    free(o.start);
    return ok;
}

void layout_done(struct layout *l)
{
    free(l->total);
    free(l->start);
    free(l->kids);
    *l = (struct layout){.n = 0};
}

/* ---- the threshold --------------------------------------------------------------------------- */

/* Moves the top of a heap down to where it belongs. The top of the heap is its least value. */
static void sink(int64_t *heap, size_t n)
{
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && heap[child + 1] < heap[child]) {
            child++;
        }
        if (heap[i] <= heap[child]) {
            return;
        }
        int64_t swap = heap[i];
        heap[i] = heap[child];
        heap[child] = swap;
        i = child;
    }
}

static int compare_values(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

bool layout_threshold(const int64_t *totals, size_t n, int64_t max_nodes, int64_t *ret,
                      struct err *err)
{
    *ret = 1;
    if (max_nodes < 1 || (uint64_t)max_nodes >= n) {
        return true;
    }
    /* The heap has the largest totals so far. A sorted list is a heap. */
    size_t size = (size_t)max_nodes;
    int64_t *heap = calloc(size, sizeof(*heap));
    if (heap == NULL) {
        return err_memory(err);
    }
    memcpy(heap, totals, size * sizeof(*heap));
    qsort(heap, size, sizeof(*heap), compare_values);
    for (size_t i = size; i < n; i++) {
        if (totals[i] > heap[0]) {
            heap[0] = totals[i];
            sink(heap, size);
        }
    }
    *ret = heap[0] < 1 ? 1 : heap[0];
    free(heap);
    return true;
}

int64_t *layout_cut(const struct layout *l, const struct tree *t, const int64_t *totals,
                    const int64_t *values, int64_t least)
{
    int64_t *cut = calloc(l->n, sizeof(*cut));
    for (uint32_t i = 1; cut != NULL && i < l->n; i++) {
        if (values[i] < least && totals[i] > 0) {
            int64_t *of_parent = &cut[tree_edge_of(t, i)->parent];
            *of_parent = tree_plus(*of_parent, totals[i]);
        }
    }
    return cut;
}

/* ---- the walk -------------------------------------------------------------------------------- */

bool layout_walk_init(struct layout_walk *w, const struct layout *l, struct err *err)
{
    *w = (struct layout_walk){.l = l, .stack = calloc(l->depth, sizeof(*w->stack))};
    return w->stack != NULL || err_memory(err);
}

void layout_walk_done(struct layout_walk *w)
{
    free(w->stack);
    w->stack = NULL;
}

static enum layout_event enter(struct layout_walk *w, uint32_t node, uint32_t *ret_node,
                               size_t *ret_level)
{
    *ret_node = node;
    *ret_level = w->level;
    w->stack[w->level++] =
        (struct layout_step){.node = node, .left = w->l->start[node + 1] - w->l->start[node]};
    return LAYOUT_ENTER;
}

enum layout_event layout_walk_next(struct layout_walk *w, uint32_t *ret_node, size_t *ret_level)
{
    if (!w->begun) {
        w->begun = true;
        return enter(w, 0, ret_node, ret_level);
    }
    if (w->level == 0) {
        return LAYOUT_END;
    }
    struct layout_step *top = &w->stack[w->level - 1];
    if (top->left > 0) {
        top->left--;
        return enter(w, w->l->kids[w->l->start[top->node] + top->left], ret_node, ret_level);
    }
    w->level--;
    *ret_node = top->node;
    *ret_level = w->level;
    return LAYOUT_LEAVE;
}

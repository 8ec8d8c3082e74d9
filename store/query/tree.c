#include "store/query/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "pprof/index.h"
#include "store/query/tree_private.h"

#define SLOTS_FIRST 64

bool query_no_room(struct err *err)
{
    return err_set(err, ERR_LIMIT,
                   "the result needs more memory than query.max_bytes allows: raise it, or ask for "
                   "less");
}

struct tree *tree_new(size_t bytes_max, struct err *err)
{
    struct tree *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        err_memory(err);
        return NULL;
    }
    struct rng rng;
    rng_seed_random(&rng);
    t->budget.max = bytes_max;
    merge_table_init(&t->names, rng_next(&rng));
    t->seed = rng_next(&rng);
    t->self = calloc(1, sizeof(*t->self));
    t->total = calloc(1, sizeof(*t->total));
    t->self_cap = t->total_cap = 1;
    if (t->self == NULL || t->total == NULL) {
        err_memory(err);
        return tree_free(t);
    }
    return t;
}

struct tree *tree_free(struct tree *t)
{
    if (t != NULL) {
        merge_table_done(&t->names);
        free(t->edges);
        free(t->slots);
        free(t->self);
        free(t->total);
        free(t);
    }
    return NULL;
}

bool tree_name(struct tree *t, struct sv name, uint32_t *ret, struct err *err)
{
    if (utf8_valid(name)) {
        return merge_table_add(&t->names, &t->budget, name.p, name.n, name.n, ret, err);
    }
    struct buf text;
    buf_init(&text, name.n * strlen(UTF8_REPLACEMENT));
    bool ok = utf8_repair(name, &text)
                  ? merge_table_add(&t->names, &t->budget, text.data, text.len, text.len, ret, err)
                  : err_memory(err);
    buf_done(&text);
    return ok;
}

/* ---- edges -----------------------------------------------------------------------------------
 * A table of its own, since finding a child is most of the work.
 *
 * The nodes of a new stack follow each other, so a node whose number is one above that of its
 * parent is found beside it, without the table: only the other edges have a slot.
 */

static size_t slot_of(const struct tree *t, const struct tree_edge *edge)
{
    uint64_t key = (uint64_t)edge->parent << 32 | edge->name;
    return (size_t)pprof_fold(t->seed, key, PPROF_ODD_0) & (t->n_slots - 1);
}

/* Returns true if a node was added right after its parent: such an edge has no slot. */
static bool follows_parent(const struct tree *t, uint32_t node)
{
    return tree_edge_of(t, node)->parent == node - 1;
}

static bool has_slot(const struct tree *t)
{
    return t->n_slots / 2 > t->n_slotted;
}

/* Grows the slots, so that they are at most half full with one more edge. */
static bool grow_slots(struct tree *t, struct err *err)
{
    size_t cap = 0;
    if (has_slot(t)) {
        return true;
    }
    size_t n = t->n_slots == 0 ? SLOTS_FIRST : 2 * t->n_slots;
    uint32_t *slots = budget_grow(&t->budget, NULL, &cap, n, sizeof(*slots), err);
    if (slots == NULL) {
        return false;
    }
    free(t->slots);
    t->budget.used -= t->n_slots * sizeof(*slots);
    memset(slots, 0, n * sizeof(*slots));
    t->slots = slots;
    t->n_slots = n;
    for (uint32_t node = 1; node <= t->n_edges; node++) {
        if (follows_parent(t, node)) {
            continue;
        }
        size_t slot = slot_of(t, tree_edge_of(t, node));
        while (slots[slot] != 0) {
            slot = (slot + 1) & (n - 1);
        }
        slots[slot] = node;
    }
    return true;
}

/* Makes room for so many more nodes, of which at most one has a slot. */
static bool grow(struct tree *t, size_t more, struct err *err)
{
    size_t n = t->n_edges + 1 + more;
    if (n <= t->self_cap && n <= t->total_cap && n <= t->edges_cap && has_slot(t)) {
        return true;
    }
    int64_t *self = budget_grow(&t->budget, t->self, &t->self_cap, n, sizeof(*self), err);
    if (self == NULL) {
        return false;
    }
    t->self = self;
    int64_t *total = budget_grow(&t->budget, t->total, &t->total_cap, n, sizeof(*total), err);
    if (total == NULL) {
        return false;
    }
    t->total = total;
    struct tree_edge *edges =
        budget_grow(&t->budget, t->edges, &t->edges_cap, n, sizeof(*edges), err);
    if (edges == NULL) {
        return false;
    }
    t->edges = edges;
    return grow_slots(t, err);
}

static uint32_t add_edge(struct tree *t, struct tree_edge edge)
{
    t->edges[t->n_edges++] = edge;
    uint32_t node = (uint32_t)t->n_edges;
    t->self[node] = t->total[node] = 0;
    return node;
}

bool tree_child(struct tree *t, uint32_t parent, uint32_t name, uint32_t *ret, struct err *err)
{
    const struct tree_edge edge = {parent, name};
    /* edges[parent] leads to the node after the parent. */
    bool is_newest = parent == t->n_edges;
    if (!is_newest && t->edges[parent].parent == parent && t->edges[parent].name == name) {
        *ret = parent + 1;
        return true;
    }
    if (!grow(t, 1, err)) {
        return false;
    }
    if (is_newest) { /* it has no children yet */
        *ret = add_edge(t, edge);
        return true;
    }
    size_t slot = slot_of(t, &edge);
    for (; t->slots[slot] != 0; slot = (slot + 1) & (t->n_slots - 1)) {
        const struct tree_edge *e = tree_edge_of(t, t->slots[slot]);
        if (e->parent == parent && e->name == name) {
            *ret = t->slots[slot];
            return true;
        }
    }
    *ret = t->slots[slot] = add_edge(t, edge);
    t->n_slotted++;
    return true;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Prepares the search for the next name of a path. */
static void look_ahead(const struct tree *t, struct tree_path *p)
{
    p->candidate = 0;
    if (p->done < p->n && p->node < t->n_edges) {
        const struct tree_edge edge = {p->node, p->names[p->done]};
        p->slot = (uint32_t)slot_of(t, &edge);
        __builtin_prefetch(&t->edges[p->node]);
        __builtin_prefetch(&t->slots[p->slot]);
    }
}

/* Compares the next name of a path with one edge, in memory that was loaded. Returns false if the
 * path cannot be followed further. */
static bool step(const struct tree *t, struct tree_path *p)
{
    uint32_t child = p->candidate != 0 ? p->candidate : p->node + 1;
    if (p->done == p->n || child > t->n_edges) {
        return false;
    }
    const struct tree_edge *e = tree_edge_of(t, child);
    if (e->parent == p->node && e->name == p->names[p->done]) {
        p->node = child;
        p->done++;
        look_ahead(t, p);
        return true;
    }
    if (p->candidate != 0) {
        p->slot = (p->slot + 1) & (uint32_t)(t->n_slots - 1);
    }
    p->candidate = t->slots[p->slot];
    if (p->candidate != 0) {
        __builtin_prefetch(tree_edge_of(t, p->candidate));
    }
    return p->candidate != 0;
}

void tree_follow(const struct tree *t, struct tree_path *paths, size_t n)
{
    bool any = true;
    for (size_t i = 0; i < n; i++) {
        look_ahead(t, &paths[i]);
    }
    while (any) {
        any = false;
        for (size_t i = 0; i < n; i++) {
            any = step(t, &paths[i]) || any;
        }
    }
}

bool tree_complete(struct tree *t, struct tree_path *path, struct err *err)
{
    size_t before = t->n_edges;
    while (path->done < path->n && t->n_edges == before) {
        if (!tree_child(t, path->node, path->names[path->done], &path->node, err)) {
            return false;
        }
        path->done++;
    }
    /* A new node has no children, so the rest of the path is new. */
    if (path->done < path->n && !grow(t, path->n - path->done, err)) {
        return false;
    }
    for (; path->done < path->n; path->done++) {
        path->node = add_edge(t, (struct tree_edge){path->node, path->names[path->done]});
    }
    return true;
}

void tree_add(struct tree *t, uint32_t node, int64_t value)
{
    t->self[node] = tree_plus(t->self[node], value);
}

size_t tree_bytes_used(const struct tree *t)
{
    return sizeof(*t) + t->budget.used;
}

bool tree_room(const struct tree *t, size_t bytes, struct err *err)
{
    if (bytes > t->budget.max - t->budget.used) {
        return err_set(err, ERR_LIMIT, "needs more than %zu bytes of working memory",
                       t->budget.max);
    }
    return true;
}

/* ---- sums and walking ------------------------------------------------------------------------ */

int64_t tree_total(const struct tree *t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < tree_size(t); i++) {
        sum = tree_plus(sum, t->self[i]);
    }
    return sum;
}

void tree_totals(const struct tree *t, int64_t *ret_total)
{
    memcpy(ret_total, t->self, tree_size(t) * sizeof(*ret_total));
    /* A parent comes before its children. */
    for (size_t i = tree_size(t) - 1; i > 0; i--) {
        uint32_t parent = tree_edge_of(t, (uint32_t)i)->parent;
        ret_total[parent] = tree_plus(ret_total[parent], ret_total[i]);
    }
}

void tree_sum(struct tree *t)
{
    tree_totals(t, t->total);
}

size_t tree_size(const struct tree *t)
{
    return t->n_edges + 1;
}

struct tree_node tree_node(const struct tree *t, uint32_t i)
{
    struct tree_node node = {.name = SV(""), .self = t->self[i], .total = t->total[i]};
    if (i > 0) {
        const struct tree_edge *edge = tree_edge_of(t, i);
        node.parent = edge->parent;
        node.name = tree_name_of(t, edge->name);
    }
    return node;
}

const int64_t *tree_node_totals(const struct tree *t)
{
    return t->total;
}

size_t tree_levels(const struct tree *t, uint32_t root, uint32_t *ret_level)
{
    uint32_t levels = 0;
    /* A parent comes before its children. */
    for (uint32_t i = 0; i < tree_size(t); i++) {
        uint32_t above = i <= root ? TREE_OUTSIDE : ret_level[tree_edge_of(t, i)->parent];
        uint32_t level = above == TREE_OUTSIDE ? TREE_OUTSIDE : above + 1;
        ret_level[i] = i == root ? 0 : level;
        if (ret_level[i] != TREE_OUTSIDE && ret_level[i] >= levels && t->total[i] > 0) {
            levels = ret_level[i] + 1;
        }
    }
    return levels;
}

/* Private to the files of trees: their representation. */
#ifndef PROFPULL_STORE_QUERY_TREE_PRIVATE_H
#define PROFPULL_STORE_QUERY_TREE_PRIVATE_H

#include <stdint.h>

#include "pprof/table.h"
#include "store/query/tree.h"

struct tree_edge {
    uint32_t parent;
    uint32_t name;
};

struct tree {
    struct budget budget;
    struct table names;
    struct tree_edge *edges; /* edge i leads to node i + 1 */
    size_t n_edges;
    size_t edges_cap;
    /* hash table of the edges to nodes that do not follow their parent: numbers of nodes, 0 where
     * free; at most half full */
    uint32_t *slots;
    size_t n_slotted;
    size_t n_slots; /* a power of two, or 0 */
    uint64_t seed;
    int64_t *self; /* the self of each node */
    int64_t *total;
    size_t self_cap;
    size_t total_cap;
};

static inline int64_t tree_plus(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) {
        return sum;
    }
    return a > 0 ? INT64_MAX : INT64_MIN;
}

/* Returns the edge that leads to a node, which is not the root. */
static inline const struct tree_edge *tree_edge_of(const struct tree *t, uint32_t node)
{
    return &t->edges[node - 1];
}

static inline struct sv tree_name_of(const struct tree *t, uint32_t name)
{
    size_t n;
    const char *p = merge_table_get(&t->names, name, &n);
    return (struct sv){p, n};
}

/* A path from the root, and the part of it that was found. */
struct tree_path {
    const uint32_t *names; /* the outermost first */
    uint32_t n;
    uint32_t done; /* names whose nodes were found */
    uint32_t node; /* the node of the last of them; 0: the root */
    /* Private: where the next name may be found. */
    uint32_t candidate; /* a node from the slots to compare with; 0: none yet */
    uint32_t slot;
};

/* Follows paths as far as the tree has their nodes. The paths take turns, so that the memory of one
 * is loaded while others are compared. */
void tree_follow(const struct tree *t, struct tree_path *paths, size_t n);
/* Adds the nodes of a path that are missing. */
bool tree_complete(struct tree *t, struct tree_path *path, struct err *err);

/* Writes the total of each node. */
void tree_totals(const struct tree *t, int64_t *ret_total);
/* Returns false with ERR_LIMIT if this many further bytes would exceed the limit of the tree. */
bool tree_room(const struct tree *t, size_t bytes, struct err *err);

#endif

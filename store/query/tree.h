/* Trees of stacks by names of functions, and the shapes in which trees are drawn.
 *
 * The path of names from the root identifies a node. The total of a node is its self plus the
 * totals of its children. A virtual root without a name is the parent of all stacks. Sums stay at
 * the limits of int64_t. Nodes whose total is not positive are not drawn.
 *
 * A tree takes at most bytes_max, including what is needed to draw it: about 60 bytes for a node,
 * and its names. One thread at a time; functions that take a const tree may run concurrently.
 */
#ifndef PROFPULL_STORE_QUERY_TREE_H
#define PROFPULL_STORE_QUERY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* The default of the number of nodes of a flame graph, and the largest that can be asked for. */
#define TREE_NODES_DEFAULT 8192
#define TREE_NODES_MAX 1048576

struct tree;

/* Sets ERR_LIMIT, because the memory of an arena or of a query has run out. Returns false. */
bool query_no_room(struct err *err);

struct tree *tree_new(size_t bytes_max, struct err *err);
struct tree *tree_free(struct tree *t); /* accepts NULL, returns NULL */

/* Finds or adds the number of a name. Bytes that are not UTF-8 become U+FFFD. False with ERR_MEMORY
 * or ERR_LIMIT. */
bool tree_name(struct tree *t, struct sv name, uint32_t *ret, struct err *err);
/* Finds or adds the child of a node whose name has a number. Node 0 is the root. */
bool tree_child(struct tree *t, uint32_t parent, uint32_t name, uint32_t *ret, struct err *err);
/* Adds to the self of a node. */
void tree_add(struct tree *t, uint32_t node, int64_t value);

int64_t tree_total(const struct tree *t);
size_t tree_bytes_used(const struct tree *t);

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Levels of bars. A bar is four numbers (offset, total, self, name), or seven in a difference. The
 * bar `other`, which stands for the children that max_nodes has cut, is the last child. */
struct flamegraph {
    struct sv *names; /* [0] is "total": the root, and functions of this name */
    size_t n_names;
    struct {
        int64_t *at;
        size_t n;
    } * levels;
    size_t n_levels;
    int64_t total;
    int64_t max_self;
    int64_t left;
    int64_t right;
};
/* Draws a tree in memory of the arena; names point into the tree. If max_nodes is above 0, all
 * children whose total is below the max_nodes-th largest one of the tree become one leaf `other` of
 * their parent. */
bool tree_flamegraph(const struct tree *t, int64_t max_nodes, struct arena *arena,
                     struct flamegraph *ret, struct err *err);
/* Draws the difference of two trees; the names are in the arena as well. max_nodes counts the root,
 * and is applied to the greater of both totals of a node. ERR_INPUT for negative values. */
bool tree_diff(const struct tree *left, const struct tree *right, int64_t max_nodes,
               struct arena *arena, struct flamegraph *ret, struct err *err);
/* Appends a tree in the format in which Pyroscope's components exchange them; appends nothing for
 * an empty tree. */
bool tree_bytes(const struct tree *t, int64_t max_nodes, struct buf *out, struct err *err);
/* Appends the graph of functions for Graphviz, in the style of google/pprof. */
bool tree_dot(const struct tree *t, int64_t max_nodes, struct sv type, struct sv unit,
              struct buf *out, struct err *err);

/* A line of the table of functions. */
struct tree_function {
    struct sv name;
    int64_t self;
    int64_t total; /* each stack counts once, even if the function recurs in it */
};
/* Lists all functions by self, the largest first, then by name. */
bool tree_functions(const struct tree *t, struct arena *arena, struct tree_function **ret,
                    size_t *ret_n, struct err *err);

/* ---- walking --------------------------------------------------------------------------------- */

struct tree_node {
    struct sv name;
    uint32_t parent;
    int64_t self;
    int64_t total;
};
/* tree_sum() computes the totals; they are valid until the tree changes. tree_node() returns node
 * i, from 0 (the root) to tree_size() - 1; a parent comes before its children. */
void tree_sum(struct tree *t);
size_t tree_size(const struct tree *t);
struct tree_node tree_node(const struct tree *t, uint32_t i);
/* Returns the total of each node, as tree_node() does; valid until the tree changes. */
const int64_t *tree_node_totals(const struct tree *t);
/* Sets the level of each node: 0 for `root`, and TREE_OUTSIDE if it is not below `root`. Returns
 * the number of levels that have a node with a positive total. */
#define TREE_OUTSIDE UINT32_MAX
size_t tree_levels(const struct tree *t, uint32_t root, uint32_t *ret_level);

#endif

/* Private to the shapes of trees: the children of each node in order, and a walk through them.
 *
 * layout_init() sums the tree up, layout_threshold() finds which nodes are large enough to be
 * drawn, and layout_order() orders only these, since most nodes of a large tree are not drawn.
 *
 * Children are in byte order of their names. A walk visits them from the last to the first, because
 * Pyroscope's code does: the numbers of names and the order of tree bytes depend on it. One thread
 * at a time.
 */
#ifndef PROFPULL_STORE_QUERY_LAYOUT_H
#define PROFPULL_STORE_QUERY_LAYOUT_H

#include "store/query/tree_private.h"

struct layout {
    int64_t *total;  /* the total of each node */
    uint32_t *start; /* by node: where its children begin in kids; the last element is the end */
    uint32_t *kids;
    size_t n;     /* nodes */
    size_t depth; /* number of levels of the ordered nodes, including that of the root */
};

/* Least value of layout_order() that no node is below. */
#define LAYOUT_ALL INT64_MIN

/* Sums up the totals. Allocates memory; this and what layout_order() allocates count towards the
 * limit of the tree. */
bool layout_init(struct layout *l, const struct tree *t, struct err *err);
/* Orders the nodes whose values are not below the least one: the others have no place among their
 * parent's children. values: by node, such as l->total. */
bool layout_order(struct layout *l, const struct tree *t, const int64_t *values, int64_t least,
                  struct err *err);
void layout_done(struct layout *l);

/* Finds the least total that a node must have to be drawn: the max_nodes-th largest of n totals, or
 * 1 if all nodes may be drawn. */
bool layout_threshold(const int64_t *totals, size_t n, int64_t max_nodes, int64_t *ret,
                      struct err *err);

/* Returns an array that the caller frees: by node, the sum of the positive totals of its children
 * that layout_order() leaves out with these values. Returns NULL if out of memory. */
int64_t *layout_cut(const struct layout *l, const struct tree *t, const int64_t *totals,
                    const int64_t *values, int64_t least);

struct layout_step {
    uint32_t node;
    uint32_t left; /* children that have not been visited yet */
};
enum layout_event { LAYOUT_END, LAYOUT_ENTER, LAYOUT_LEAVE };
struct layout_walk {
    const struct layout *l;
    struct layout_step *stack; /* the step at each level */
    size_t level;              /* level of the next step; 0 at the start and at the end */
    bool begun;
};

bool layout_walk_init(struct layout_walk *w, const struct layout *l, struct err *err);
void layout_walk_done(struct layout_walk *w);
/* Enters the next node, or leaves a node whose children have been visited. *ret_level is the level
 * of the node; that of the root is 0. */
enum layout_event layout_walk_next(struct layout_walk *w, uint32_t *ret_node, size_t *ret_level);

#endif

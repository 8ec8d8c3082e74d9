/* Private to the shapes of trees: the children of each node in order, and a walk through them.
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
    size_t depth; /* number of levels, including that of the root */
};

/* Allocates memory, which counts towards the limit of the tree. */
bool layout_init(struct layout *l, const struct tree *t, struct err *err);
void layout_done(struct layout *l);

/* Finds the least total that a node must have to be drawn: the max_nodes-th largest of n totals, or
 * 1 if all nodes may be drawn. */
bool layout_threshold(const int64_t *totals, size_t n, int64_t max_nodes, int64_t *ret,
                      struct err *err);

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
/* Leaves the node that was just entered, without visiting its children. No event reports this. */
void layout_walk_skip(struct layout_walk *w);

#endif

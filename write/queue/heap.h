/* An intrusive heap: the node with the smallest key is first.
 *
 * A pairing heap: adding is O(1), removing any node O(log n) on average over many. It allocates
 * nothing, so it cannot fail. One owner, no locking. */
#ifndef PROFPULL_WRITE_QUEUE_HEAP_H
#define PROFPULL_WRITE_QUEUE_HEAP_H

#include <stdint.h>

struct heap_node {
    uint64_t key;
    /* private */
    struct heap_node *child;
    struct heap_node *next; /* sibling */
    struct heap_node *prev; /* sibling, or the parent of the first child */
};

/* A heap of all zeros is empty. */
struct heap {
    struct heap_node *first; /* the smallest; NULL: empty */
};

/* Adds a node that is in no heap. The caller has set its key, which must not change while the node
 * is in a heap.
 */
void heap_add(struct heap *h, struct heap_node *n);
/* Removes a node of this heap. */
void heap_remove(struct heap *h, struct heap_node *n);

#endif

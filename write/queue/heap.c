#include "write/queue/heap.h"

#include <stddef.h>

/* Makes one tree of two; both are roots without siblings, or NULL. */
static struct heap_node *merge(struct heap_node *a, struct heap_node *b)
{
    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }
    if (b->key < a->key) {
        struct heap_node *t = a;
        a = b;
        b = t;
    }
    b->prev = a;
    b->next = a->child;
    if (b->next != NULL) {
        b->next->prev = b;
    }
    a->child = b;
    return a;
}

static struct heap_node *detach(struct heap_node *n)
{
    if (n != NULL) {
        n->next = NULL;
        n->prev = NULL;
    }
    return n;
}

/* Makes one tree of siblings: in pairs from the left, then the pairs from the right. */
static struct heap_node *merge_siblings(struct heap_node *first)
{
    struct heap_node *pairs = NULL;
    while (first != NULL) {
        struct heap_node *a = first;
        struct heap_node *b = a->next;
        first = b != NULL ? b->next : NULL;
        struct heap_node *pair = merge(detach(a), detach(b));
        pair->next = pairs;
        pairs = pair;
    }
    struct heap_node *root = NULL;
    while (pairs != NULL) {
        struct heap_node *pair = pairs;
        pairs = pair->next;
        root = merge(root, detach(pair));
    }
    return root;
}

void heap_add(struct heap *h, struct heap_node *n)
{
    n->child = NULL;
    h->first = merge(h->first, detach(n));
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    struct heap_node *below = merge_siblings(n->child);
    if (h->first == n) {
        h->first = below;
        return;
    }
    if (n->prev->child == n) {
        n->prev->child = n->next;
    } else {
        n->prev->next = n->next;
    }
    if (n->next != NULL) {
        n->next->prev = n->prev;
    }
    h->first = merge(h->first, below);
}

#include "model/profile.h"

#include <stdlib.h>

/* The memory of a profile besides its bytes: this struct, the queue's entry, its share of labels.
 */
#define FLAT_COST ((size_t)1024)

struct profile *profile_new(struct labels *labels, char *data, size_t size)
{
    struct profile *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        labels_unref(labels);
        free(data);
        return NULL;
    }
    atomic_init(&p->refs, 1);
    p->labels = labels;
    p->data = data;
    p->size = size;
    return p;
}

void profile_set_labels(struct profile *p, struct labels *labels)
{
    labels_unref(p->labels);
    p->labels = labels;
}

struct profile *profile_ref(struct profile *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

struct profile *profile_unref(struct profile *p)
{
    if (p != NULL && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) {
        labels_unref(p->labels);
        free(p->data);
        free(p);
    }
    return NULL;
}

size_t profile_cost(size_t size)
{
    return size + FLAT_COST;
}

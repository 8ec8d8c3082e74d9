#include "model/profile.h"

#include <stdlib.h>
#include <string.h>

/* The constant part of the memory of a profile: this struct, the queue's entry, and labels of usual
 * size. */
#define FLAT_COST ((size_t)1024)
#define FLAT_LABELS ((size_t)512)

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

struct profile *profile_with(const struct profile *p, char *data, size_t size)
{
    struct profile *other = profile_new(labels_ref(p->labels), data, size);
    if (other == NULL) {
        return NULL;
    }
    other->from_ns = p->from_ns;
    other->until_ns = p->until_ns;
    other->scraped_ms = p->scraped_ms;
    other->is_delta = p->is_delta;
    other->is_pushed = p->is_pushed;
    other->names = p->names;
    other->format = p->format;
    other->job = p->job;
    other->salt = p->salt;
    return other;
}

struct profile *profile_copy(const struct profile *p)
{
    char *data = malloc(p->size > 0 ? p->size : 1);
    if (data == NULL) {
        return NULL;
    }
    memcpy(data, p->data, p->size);
    struct profile *copy = profile_with(p, data, p->size);
    if (copy != NULL && p->receipt != NULL) {
        copy->receipt = receipt_ref(p->receipt);
    }
    return copy;
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
        receipt_unref(p->receipt);
        free(p->data);
        free(p);
    }
    return NULL;
}

size_t profile_cost_of(size_t size, size_t labels_bytes)
{
    return size + FLAT_COST + (labels_bytes > FLAT_LABELS ? labels_bytes - FLAT_LABELS : 0);
}

size_t profile_cost(const struct profile *p)
{
    return profile_cost_of(p->size, p->labels == NULL ? 0 : labels_bytes(p->labels));
}

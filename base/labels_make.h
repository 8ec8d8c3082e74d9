/* A label set on the inside, for labels.c and the builder. Private to base. */
#ifndef PROFPULL_BASE_LABELS_MAKE_H
#define PROFPULL_BASE_LABELS_MAKE_H

#include "base/intern.h"
#include "base/labels.h"

/* One allocation each: the header and two pointers per label. */
struct labels {
    atomic_uint refs;
    uint32_t count;
    struct intern *in;
    struct istr *strings[]; /* name, value, name, value, ..., sorted by name */
};

/* A label set of count labels from 2 * count strings (name, value, ... sorted by name) of this
 * table. Takes over their references; NULL if out of memory, and they stay the caller's. */
struct labels *labels_make(struct intern *in, struct istr *const *strings, size_t count);

#endif

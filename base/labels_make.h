/* What the builder needs of finished label sets. Private to base. */
#ifndef PROFPULL_BASE_LABELS_MAKE_H
#define PROFPULL_BASE_LABELS_MAKE_H

#include "base/intern.h"
#include "base/labels.h"

/* A label set of count labels from 2 * count strings (name, value, ... sorted by name) of this
 * table. Takes over their references; NULL if out of memory, they stay the caller's then. */
struct labels *labels_make(struct intern *in, struct istr *const *strings, size_t count);

/* Borrowed, good while the set lives. */
struct istr *labels_name_istr(const struct labels *l, size_t i);
struct istr *labels_value_istr(const struct labels *l, size_t i);
struct intern *labels_intern(const struct labels *l);

#endif

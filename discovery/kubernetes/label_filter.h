/* Filters the labels that discovery could build: a label that has no effect, because no rule reads
 * it, is not built.
 *
 * The filter calls wants_label() once for each name and remembers the results. There are few names,
 * since pods that differ in the values of labels share the names. One owner.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_LABEL_FILTER_H
#define PROFPULL_DISCOVERY_KUBERNETES_LABEL_FILTER_H

#include <stdbool.h>

#include "base/str.h"

/* The most names that are remembered; for further names wants_label() is called each time. */
#define LABEL_FILTER_NAMES_MAX 4096

struct label_filter_options {
    /* Returns true if the label can have an effect. The result for a name never changes. */
    bool (*wants_label)(void *arg, struct sv name);
    void *arg;
    /* Filters only the labels and annotations of objects: the join needs the rest. */
    bool metadata_only;
};

struct label_filter;

struct label_filter *label_filter_new(const struct label_filter_options *options); /* NULL if out of
                                                                                     memory */
struct label_filter *label_filter_free(struct label_filter *f); /* accepts NULL, returns NULL */

/* Returns true if the label is to be built; a NULL filter passes all. */
bool label_filter_passes(struct label_filter *f, struct sv name);
/* Returns true if a label that represents a label or an annotation of an object is to be built. */
bool label_filter_passes_metadata(struct label_filter *f, struct sv name);

#endif

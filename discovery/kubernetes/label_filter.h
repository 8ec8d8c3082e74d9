/* Which of the labels that discovery could make are of any use: what no rule reads is not made.
 *
 * Asks once for each name and remembers the answers, of which there are few: pods that are told
 * apart by their values have the same labels. One owner.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_LABEL_FILTER_H
#define PROFPULL_DISCOVERY_KUBERNETES_LABEL_FILTER_H

#include <stdbool.h>

#include "base/str.h"

/* Names that are remembered; whether one beyond is wanted is asked each time. */
#define WANTED_NAMES_MAX 4096

struct wanted_options {
    /* Whether the label can have an effect; must always say the same of one name. */
    bool (*asks)(void *arg, struct sv name);
    void *arg;
    /* Only labels and annotations (of objects) may be left out: others are needed to join. */
    bool marks_only;
};

struct wanted;

struct wanted *wanted_new(const struct wanted_options *options); /* NULL if out of memory */
struct wanted *wanted_free(struct wanted *w);                    /* accepts NULL, returns NULL */

/* Whether a label is to be made; all are if w is NULL. */
bool wanted_label(struct wanted *w, struct sv name);
/* The same for what stands for a label or annotation of an object. */
bool wanted_mark(struct wanted *w, struct sv name);

#endif

/* The annotations that ask for profiles, for the sentences of `profpull discover --explain`: their
 * names, which labels have lost, and what is wrong with those of a pod. Pure functions that append
 * to a buffer.
 */
#ifndef PROFPULL_CLI_EXPLAIN_ANNOTATIONS_H
#define PROFPULL_CLI_EXPLAIN_ANNOTATIONS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/labels.h"

#define ANNOTATION_POD "__meta_kubernetes_pod_"
#define ANNOTATION_PREFIX ANNOTATION_POD "annotation_"

/* Appends the name of the annotation that a label stands for; the label comes without
 * ANNOTATION_PREFIX. Dots, slashes and dashes are lost in labels: for unknown domains the label's
 * own name is appended. */
void annotation_put_name(struct sv label, struct buf *out);

/* Which labels the rules of a job read. */
struct rule_reader {
    bool (*reads)(void *arg, struct sv label);
    void *arg;
    bool mask_all; /* show no value of a parameter (model/masking.h) */
};
/* The same for the label of an annotation, without ANNOTATION_PREFIX. */
bool annotation_is_read(const struct rule_reader *rules, struct sv label);

/* One sentence for each annotation of the pod that looks like a well-known one and is not
 * understood, or that the rules do not read although it is one. Only annotations that the rules
 * read are recommended. */
void annotations_explain(const struct rule_reader *rules, const struct labels *discovered,
                         struct buf *out);

/* True if annotations_explain() recommends another name for an annotation; its label comes without
 * ANNOTATION_PREFIX. */
bool annotation_is_renamed(const struct rule_reader *rules, struct sv label);

/* The length to print of a value from outside. */
int annotation_shown(struct sv value);

#endif

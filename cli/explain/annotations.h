/* The annotations that ask for profiles, for the sentences of `profpull discover --explain`: their
 * names, which Kubernetes' labels have lost, and the mistakes in the annotations of a pod. Pure
 * functions that append to a buffer.
 */
#ifndef PROFPULL_CLI_EXPLAIN_ANNOTATIONS_H
#define PROFPULL_CLI_EXPLAIN_ANNOTATIONS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/labels.h"

#define ANNOTATION_POD "__meta_kubernetes_pod_"
#define ANNOTATION_PREFIX ANNOTATION_POD "annotation_"

/* Appends the name of the annotation that a label, without ANNOTATION_PREFIX, stands for. In
 * labels, dots, slashes and dashes have become underscores; for an unknown domain they cannot be
 * restored, and the name of the label is appended. */
void annotation_put_name(struct sv label, struct buf *out);

/* Says which labels the rules of a job read. */
struct rule_reader {
    bool (*reads)(void *arg, struct sv label);
    void *arg;
    bool mask_all; /* hide the values of all parameters (model/masking.h) */
};
/* Returns true if the rules read the label of an annotation; the label comes without
 * ANNOTATION_PREFIX. */
bool annotation_is_read(const struct rule_reader *rules, struct sv label);

/* Appends a sentence for each annotation of the pod that resembles a well-known one but is unknown,
 * and for each well-known one that the rules do not read. Only annotations that the rules read are
 * recommended. */
void annotations_explain(const struct rule_reader *rules, const struct labels *discovered,
                         struct buf *out);

/* Returns true if annotations_explain() recommends another name for an annotation; its label comes
 * without ANNOTATION_PREFIX. */
bool annotation_is_renamed(const struct rule_reader *rules, struct sv label);

/* Returns how many bytes of a value from outside are printed. */
int annotation_shown(struct sv value);

#endif

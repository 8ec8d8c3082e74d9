/* The annotations that ask for profiles, for the sentences of `profpull discover --explain`: their
 * names, which labels have lost, and what is wrong with those of a pod. Pure functions that append
 * to a buffer.
 */
#ifndef PROFPULL_CLI_EXPLAIN_ANNOTATIONS_H
#define PROFPULL_CLI_EXPLAIN_ANNOTATIONS_H

#include "base/buf.h"
#include "base/labels.h"

#define ANNOTATION_POD "__meta_kubernetes_pod_"
#define ANNOTATION_PREFIX ANNOTATION_POD "annotation_"

/* Appends the name of the annotation that a label stands for; the label comes without
 * ANNOTATION_PREFIX. Dots, slashes and dashes are lost in labels: for unknown domains the label's
 * own name is appended. */
void annotation_put_name(struct sv label, struct buf *out);

/* One sentence for each annotation of the pod that looks like a well-known one and is not
 * understood. */
void annotations_explain(const struct labels *discovered, struct buf *out);

/* The length to print of a value from outside. */
int annotation_shown(struct sv value);

#endif

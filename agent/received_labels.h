/* Checks the labels of a pushed profile, and turns them into those that are stored. Pure; any
 * thread. */
#ifndef PROFPULL_AGENT_RECEIVED_LABELS_H
#define PROFPULL_AGENT_RECEIVED_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/labels.h"
#include "config/config.h"

/* Sorts the labels by name, and drops those with an empty value, which means that a label does not
 * exist. Returns how many are left. */
size_t received_labels_sort(struct label *labels, size_t n);
/* Returns true if a Pyroscope server would accept these labels, which are sorted. The error
 * messages are those of Pyroscope.
 */
bool received_labels_check(const struct label *labels, size_t n,
                           const struct config_receive *limits, struct err *err);
/* Puts checked labels into an empty builder as the server stores them: the names of godeltaprof
 * become those of the types, a session and a tenant are removed, and a service has a name. */
void received_labels_put(const struct label *labels, size_t n, struct labels_builder *b);
/* Appends labels in the form {a="b", c="d"}. */
void received_labels_print(const struct label *labels, size_t n, struct buf *out);

#endif

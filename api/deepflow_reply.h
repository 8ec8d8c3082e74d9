/* DeepFlow's two formats of a tree: columns of numbers, and a list of nodes. Pure; any thread. Both
 * functions add the tree up (tree_sum()). */
#ifndef PROFPULL_API_DEEPFLOW_REPLY_H
#define PROFPULL_API_DEEPFLOW_REPLY_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/query/tree.h"

/* Appends {"functions":[...],"function_types":[...],"function_values":{...},"node_values":{...}}.
 * `root` is the name of the root. If the tree is empty, null stands in the place of each array.
 * event: that of the question, on which some types of functions depend. */
bool deepflow_put_columns(struct tree *t, struct sv root, struct sv event, struct arena *arena,
                          struct buf *out, struct err *err);
/* Appends [{"profile_location_str":...,"node_id":...,"parent_node_id":...,"self_value":...,
 * "total_value":...},...], beginning with the root; appends [] for an empty tree. */
bool deepflow_put_list(struct tree *t, struct sv root, struct buf *out, struct err *err);

#endif

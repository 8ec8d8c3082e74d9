/* DeepFlow's two shapes of a tree: columns of numbers, and a list of nodes. Pure; any thread. */
#ifndef PROFPULL_API_DEEPFLOW_REPLY_H
#define PROFPULL_API_DEEPFLOW_REPLY_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/query/tree.h"

/* Appends {"functions":[...],"function_types":[...],"function_values":{...},"node_values":{...}}.
 * The root is called root; of an empty tree everything is null. event: of the question, which
 * decides some types of functions. Both sum the tree up (tree_sum()). */
bool deepflow_put_columns(struct tree *t, struct sv root, struct sv event, struct arena *arena,
                          struct buf *out, struct err *err);
/* Appends [{"profile_location_str":...,"node_id":...,"parent_node_id":...,"self_value":...,
 * "total_value":...},...], with the root first; [] for an empty tree. */
bool deepflow_put_list(struct tree *t, struct sv root, struct buf *out, struct err *err);

#endif

/* The tree in an answer of DeepFlow's ProfileTracing, in both of its shapes. It comes from outside
 * and is not trusted. Pure; any thread.
 */
#ifndef PROFPULL_CLI_QUERY_DEEPFLOW_ANSWER_H
#define PROFPULL_CLI_QUERY_DEEPFLOW_ANSWER_H

#include "base/err.h"
#include "store/query/tree.h"

struct json_t;

/* result: columns, a list of nodes, or nothing (NULL). The first node is the root, which the tree
 * has as well. The caller frees the tree; NULL with ERR_REFUSED if nodes have no name or no way to
 * the root. */
struct tree *deepflow_answer_read(const struct json_t *result, struct err *err);

#endif

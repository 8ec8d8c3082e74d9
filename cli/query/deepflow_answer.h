/* Reads the tree in a response of DeepFlow's ProfileTracing, in both of its formats. The response
 * comes from outside and is not trusted. Pure; any thread.
 */
#ifndef PROFPULL_CLI_QUERY_DEEPFLOW_ANSWER_H
#define PROFPULL_CLI_QUERY_DEEPFLOW_ANSWER_H

#include "base/err.h"
#include "store/query/tree.h"

struct json_t;

/* Reads a result: columns, a list of nodes, or nothing (NULL). The first node is the root, which
 * becomes the root of the tree. The caller frees the tree. NULL with ERR_REFUSED if a node has no
 * name or no path to the root. */
struct tree *deepflow_answer_read(const struct json_t *result, struct err *err);

#endif

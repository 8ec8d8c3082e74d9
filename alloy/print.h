/* The tree of an Alloy configuration as YAML with comments. */
#ifndef PROFPULL_ALLOY_PRINT_H
#define PROFPULL_ALLOY_PRINT_H

#include "alloy/alloy.h"

/* Appends the YAML, which loads to the same. Each message is a comment: before the job or the
 * endpoint that it is about, or else at the top. False if out is full. */
bool alloy_print(const struct yaml_node *root, const struct alloy_messages *messages,
                 struct buf *out);

#endif

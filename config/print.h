/* A tree of nodes, however it was made, as YAML with comments. */
#ifndef PROFPULL_CONFIG_PRINT_H
#define PROFPULL_CONFIG_PRINT_H

#include "config/language.h"

/* Appends the YAML, which loads to the same. Each message is a comment: before the job or the
 * endpoint that it is about, or else at the top. False if out is full. */
bool config_print_tree(const struct yaml_node *root, const struct config_messages *messages,
                       struct buf *out);

#endif

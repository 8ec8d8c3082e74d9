/* Prints a tree of nodes, from whatever source, as YAML with comments. */
#ifndef PROFPULL_CONFIG_PRINT_H
#define PROFPULL_CONFIG_PRINT_H

#include "config/language.h"

/* Appends the tree as YAML that loads to the same tree. Each message becomes a comment: before the
 * job or endpoint that it is about, or otherwise at the top. False if out is full. */
bool config_print_tree(const struct yaml_node *root, const struct config_messages *messages,
                       struct buf *out);

#endif

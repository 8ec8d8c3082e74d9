/* Converts Grafana Alloy's configuration files to the tree that the tables of config/ read.
 *
 * Components on the way from a discovery to a pyroscope.write become jobs and endpoints; the others
 * are named in warnings and notes. All mistakes are reported in one run.
 */
#ifndef PROFPULL_ALLOY_ALLOY_H
#define PROFPULL_ALLOY_ALLOY_H

#include "config/language.h"

/* The row for struct config_options. It recognises a directory of files, a file whose name ends in
 * ".alloy", and a file whose text begins as Alloy's language does. */
extern const struct config_language alloy_language;

/* Returns true if a text begins as Alloy's language does and YAML does not: with a comment of "//",
 * a block or an attribute. */
bool alloy_is_text(struct sv text);
/* The function `read` of struct config_language. */
const struct yaml_node *alloy_read(const struct config_texts *texts,
                                   const struct config_options *options, struct arena *arena,
                                   const struct config_messages *messages);

#endif

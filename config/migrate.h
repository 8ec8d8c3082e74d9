/* Converts the YAML of other programs that scrape profiles to the tree of a file of profpull: that
 * of Parca, that of the Pyroscope agent (Phlare), which has the same jobs, and Prometheus-style
 * scrape_configs.
 *
 * Pure: no file is opened, and no value is checked. A key that cannot be expressed, or that means
 * something else here, becomes a warning or a note with its position. One thread.
 */
#ifndef PROFPULL_CONFIG_MIGRATE_H
#define PROFPULL_CONFIG_MIGRATE_H

#include "base/arena.h"
#include "config/language.h"
#include "config/yaml.h"

/* The URL that is written if a file names no endpoint. */
#define MIGRATE_URL "${PYROSCOPE_URL:-http://pyroscope:4040}"

/* Returns true if the name, or else the first line of the text, shows YAML rather than Alloy's
 * language. */
bool migrate_is_yaml(const char *name, struct sv text);

/* Returns the converted tree, in the arena. It shares nodes with root, which must live as long.
 * NULL after errors, which are in messages->errors, or, without errors, if the arena is full. Keys
 * of profpull are kept unchanged. Messages about a job or the endpoint have its path,
 * "scrape_configs[0]" or "write[0]". */
const struct yaml_node *migrate_tree(const struct yaml_node *root, struct arena *arena,
                                     const struct config_messages *messages);

#endif

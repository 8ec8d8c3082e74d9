/* The YAML of other programs that scrape profiles -> the tree of a file of ours: Parca's, that of
 * the Pyroscope agent (Phlare), which has the same jobs, and Prometheus-style scrape_configs.
 *
 * Pure: no file is opened, nothing is checked. Whatever cannot be said, or means something else
 * here, becomes a warning or a note with its place. One thread.
 */
#ifndef PROFPULL_CONFIG_MIGRATE_H
#define PROFPULL_CONFIG_MIGRATE_H

#include "base/arena.h"
#include "config/language.h"
#include "config/yaml.h"

/* The endpoint of a file that names none. */
#define MIGRATE_URL "${PYROSCOPE_URL:-http://pyroscope:4040}"

/* Does the name, or else the first line of the text, say that this is YAML rather than Alloy's
 * language? */
bool migrate_is_yaml(const char *name, struct sv text);

/* The tree, in the arena, which shares nodes with root: both must live as long. NULL after errors
 * (messages->errors has them), or, without errors, if the arena is full. Keys that are ours stay as
 * they are. Messages about a job or the endpoint have its path, "scrape_configs[0]" or "write[0]".
 */
const struct yaml_node *migrate_tree(const struct yaml_node *root, struct arena *arena,
                                     const struct config_messages *messages);

#endif

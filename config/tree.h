/* Builds the tree of nodes that the tables of config/ read, as if it had come from YAML.
 *
 * Nodes live in an arena and know their place and what messages call them. If memory
 * runs out, the tree is incomplete and `full` is set; every function accepts what the others
 * return.
 */
#ifndef PROFPULL_CONFIG_TREE_H
#define PROFPULL_CONFIG_TREE_H

#include "base/arena.h"
#include "config/errors.h"
#include "config/yaml.h"

struct tree {
    struct arena *arena;
    struct config_errors *errors; /* gets errors for texts that no configuration can hold */
    bool full;
};

/* path: what messages call the node; NULL if that follows from the nodes above. Not copied. */
struct yaml_node *tree_mapping(struct tree *t, struct config_place place, const char *path);
struct yaml_node *tree_list(struct tree *t, struct config_place place, const char *path);
/* Makes a text, in which no variable is expanded. form: how the text is written in YAML if that
 * differs from the text itself; form.p is NULL otherwise. A NUL, or a byte that is not UTF-8,
 * cannot be written in YAML and is reported as an error at the place. */
struct yaml_node *tree_text(struct tree *t, struct config_place place, const char *path,
                            struct sv text, struct sv form);
/* Makes a word without quotes: a number, a bool, a duration. */
struct yaml_node *tree_word(struct tree *t, struct config_place place, const char *path,
                            const char *word);
/* Adds a pair or replaces the one with this key, which is not copied. */
void tree_put(struct tree *t, struct yaml_node *mapping, const char *key,
              const struct yaml_node *value);
/* Adds or replaces a pair whose key comes from the user. */
void tree_put_text(struct tree *t, struct yaml_node *mapping, struct sv key,
                   const struct yaml_node *value);
/* Adds a pair whose key the mapping does not have yet, without searching for it. */
void tree_put_new(struct tree *t, struct yaml_node *mapping, struct sv key,
                  const struct yaml_node *value);
void tree_append(struct tree *t, struct yaml_node *list, const struct yaml_node *value);
/* Adds or replaces a pair, and makes it the first one. */
void tree_put_first(struct tree *t, struct yaml_node *mapping, const char *key,
                    const struct yaml_node *value);
/* Removes the pair with this key, if there is one. */
void tree_remove(struct yaml_node *mapping, const char *key);
/* Returns the mapping that is the value of a key; creates it if the key is missing. */
struct yaml_node *tree_submapping(struct tree *t, struct yaml_node *mapping, const char *key);

#endif

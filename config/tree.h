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
    struct config_errors *errors; /* of texts that no configuration can have */
    bool full;
};

/* path: what messages call the node; NULL if that follows from the nodes above. Not copied. */
struct yaml_node *tree_mapping(struct tree *t, struct config_place place, const char *path);
struct yaml_node *tree_list(struct tree *t, struct config_place place, const char *path);
/* A text, in which nothing is expanded. form: how YAML says it, if not so; p is NULL otherwise.
 * What YAML could not say, a NUL or a byte that is no UTF-8, is reported as an error at the place.
 */
struct yaml_node *tree_text(struct tree *t, struct config_place place, const char *path,
                            struct sv text, struct sv form);
/* A word without quotes: a number, a bool, a duration. */
struct yaml_node *tree_word(struct tree *t, struct config_place place, const char *path,
                            const char *word);
/* Adds a pair or replaces the one with this key, which is not copied. */
void tree_put(struct tree *t, struct yaml_node *mapping, const char *key,
              const struct yaml_node *value);
/* The same with a key of the user. */
void tree_put_text(struct tree *t, struct yaml_node *mapping, struct sv key,
                   const struct yaml_node *value);
/* The same with a key that the mapping does not have: without a look at the others. */
void tree_put_new(struct tree *t, struct yaml_node *mapping, struct sv key,
                  const struct yaml_node *value);
void tree_append(struct tree *t, struct yaml_node *list, const struct yaml_node *value);
/* The same as the first pair. */
void tree_put_first(struct tree *t, struct yaml_node *mapping, const char *key,
                    const struct yaml_node *value);
/* Removes the pair with this key, if there is one. */
void tree_remove(struct yaml_node *mapping, const char *key);
/* The mapping that a key has, which is made if it is not there. */
struct yaml_node *tree_submapping(struct tree *t, struct yaml_node *mapping, const char *key);

#endif

/* Parses YAML text into a tree of nodes with their positions in the text. The parser knows no keys
 * and no meaning.
 *
 * A text is one document in UTF-8, within the limits CONFIG_FILE_MAX, CONFIG_NODES_MAX and
 * CONFIG_DEPTH_MAX. Anchors and aliases are shared parts of the tree; the limits count each alias
 * as a copy, so that a small file cannot expand to a huge one. Merge keys ("<<") are resolved: the
 * mapping's own keys win, then the first of the merged mappings. The tree lives in the caller's
 * arena, is read-only and has no cycles.
 *
 * Duplicate keys, tags and the like are marked in the nodes, not refused: the reader of the tree
 * reports them, because it knows the path.
 */
#ifndef PROFPULL_CONFIG_YAML_H
#define PROFPULL_CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAPPING };

struct yaml_node;

/* One element of a list (key is NULL) or one pair of a mapping, in the order of the file. */
struct yaml_item {
    const struct yaml_node *key;
    const struct yaml_node *value;
    const struct yaml_node *duplicate_of; /* the same key in an earlier pair */
};

struct yaml_node {
    enum yaml_kind kind;
    int line; /* counting from 1; columns count characters */
    int column;
    bool plain;          /* a scalar without quotes and not a block */
    bool literal;        /* a scalar in which "${" is not expanded */
    const char *problem; /* an error in any use of the node, or NULL */
    struct sv text;      /* the text of a scalar; NUL-terminated */
    struct yaml_item *items;
    size_t n_items;
    /* For nodes that were not made from YAML (alloy/): */
    bool incomplete;  /* a mapping without the parts about which errors were reported */
    const char *file; /* the file of line and column; NULL: the one that is being read */
    const char *path; /* the path of the node in messages, if not made of its keys; or NULL */
    struct sv form;   /* the text as YAML writes it, if that differs; p is NULL otherwise */
    size_t weight;    /* nodes in this part of the tree, aliases expanded */
    int height;       /* levels below this node */
};

/* The place of a failure in the text; line 0 if it is about the text as a whole. */
struct yaml_place {
    int line;
    int column;
};

/* Returns the root of the tree in *ret_root; NULL for a text without any node. At the first syntax
 * error or exceeded limit it returns false, and sets err and *reterr_place. Temporary memory is
 * freed; the tree lives in the arena. */
bool yaml_parse(struct sv text, struct arena *arena, const struct yaml_node **ret_root,
                struct yaml_place *reterr_place, struct err *err);

/* Returns true for a plain scalar that YAML reads as null: an empty one, ~ or null. */
bool yaml_is_null(const struct yaml_node *n);
/* Returns the value of a key in a mapping; NULL if the key is missing, or if n is not a mapping. */
const struct yaml_node *yaml_get(const struct yaml_node *n, const char *key);
/* Names the kind of a node for messages: "a list", "a mapping", "null", "a string", "a value". */
const char *yaml_what(const struct yaml_node *n);

#endif

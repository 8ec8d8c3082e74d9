/* YAML text -> a tree of nodes with their places in the text. Knows no key and no meaning.
 *
 * One document, UTF-8, within the limits CONFIG_FILE_MAX, CONFIG_NODES_MAX and CONFIG_DEPTH_MAX.
 * Anchors and aliases are shared parts of the tree; the limits count each alias as a copy, so that
 * a small file cannot expand to a huge one. Merge keys ("<<") are resolved: the mapping's own keys
 * win, then the first of the merged mappings. The tree lives in the caller's arena, is read-only
 * and has no cycles.
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
    struct sv text;      /* of a scalar; NUL-terminated */
    struct yaml_item *items;
    size_t n_items;
    /* For nodes that were not made from YAML (alloy/): */
    bool incomplete;  /* a mapping that lacks what an error was reported about */
    const char *file; /* that the place is in; NULL: the one that is being read */
    const char *path; /* what messages call the node, instead of its keys; NULL otherwise */
    struct sv form;   /* how YAML says the text, if not as it is; p is NULL otherwise */
    size_t weight;    /* nodes in this part of the tree, aliases expanded */
    int height;       /* levels below this node */
};

/* The place of a failure in the text; line 0 if it is about the text as a whole. */
struct yaml_place {
    int line;
    int column;
};

/* The root in *ret_root: NULL for a text without any node. False with err and *reterr_place at the
 * first syntax error or broken limit. Temporary memory is freed; the tree lives in the arena.
 */
bool yaml_parse(struct sv text, struct arena *arena, const struct yaml_node **ret_root,
                struct yaml_place *reterr_place, struct err *err);

/* A plain scalar that YAML reads as null: nothing at all, ~ or null. */
bool yaml_is_null(const struct yaml_node *n);
/* The value of a key in a mapping, or NULL; on anything but a mapping NULL. */
const struct yaml_node *yaml_get(const struct yaml_node *n, const char *key);
/* Names the kind of a node for messages: "a list", "a mapping", "null", "a string", "a value". */
const char *yaml_what(const struct yaml_node *n);

#endif

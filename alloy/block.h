/* Reads the body of a block by a table of its attributes and inner blocks.
 *
 * The value of an attribute that has a key is converted and put into the tree of nodes. The value
 * of one without a key is only collected (struct alloy_given), and the component processes it.
 * Unknown, repeated and missing attributes, and blocks in place of attributes, are errors with
 * suggestions; the reader continues after them.
 */
#ifndef PROFPULL_ALLOY_BLOCK_H
#define PROFPULL_ALLOY_BLOCK_H

#include "alloy/convert.h"
#include "config/tree.h"

/* The most rows of one block, those of its base table included. */
#define ALLOY_ROWS_MAX 48

enum alloy_attr_type {
    ATTR_VALUE, /* any value; never converted */
    ATTR_STRING,
    ATTR_TEXT, /* a string in which YAML expands nothing */
    ATTR_SECRET,
    ATTR_BOOL,
    ATTR_INT,
    ATTR_DURATION,
    ATTR_STRINGS,
    ATTR_STRING_MAP,
    ATTR_LISTS_MAP, /* a map whose values are lists of strings or secrets */
};

struct alloy_attr {
    const char *name;
    enum alloy_attr_type type;
    const char *key; /* the key in YAML; "a.b" is b in the mapping a; NULL: only collected */
    /* the key to use instead if the value is the content of a file; or NULL */
    const char *file_key;
    /* the key to use instead if the value is a content (config/content.h); or NULL */
    const char *content_key;
    bool required;
    bool not_null;
    bool ignored;   /* accepted without effect */
    bool file_name; /* a file name relative to the working directory; it becomes absolute */
};

struct alloy_schema;

struct alloy_inner {
    const char *name;
    const struct alloy_schema *schema;
    /* the key of its mapping, or of the list if it repeats; NULL: its rows belong to the
     * component's mapping */
    const char *key;
    bool repeats;
    bool ignored;
};

struct alloy_schema {
    const struct alloy_attr *attrs;
    size_t n_attrs;
    const struct alloy_inner *blocks;
    size_t n_blocks;
    const struct alloy_schema *base; /* further rows; NULL for none */
    /* Reads a block with a dotted or otherwise special name; false if the name is unknown. May be
     * NULL. */
    bool (*other)(void *arg, const struct alloy_stmt *s, const char *path);
    const char *const *other_names; /* for suggestions, NULL-terminated; may be NULL */
};

/* The values of the attributes of a block. */
struct alloy_given {
    struct {
        const struct alloy_attr *attr;
        const struct alloy_stmt *stmt;
        const struct alloy_value *value;
    } at[ALLOY_ROWS_MAX];
    size_t n;
};

/* The state of reading blocks: the evaluator, and the targets of nodes and notes. */
struct alloy_reading {
    struct alloy_eval *ev;
    struct tree *tree;
    struct config_errors *notes;
    void *arg; /* the argument of schema->other */
};

/* Reads the statements of a block into a mapping. path: the name of the block in messages. */
void alloy_read_block(struct alloy_reading *r, const struct alloy_schema *schema,
                      const struct alloy_stmt *block, const char *path, struct yaml_node *out,
                      struct alloy_given *ret_given);
/* Returns the value of an attribute, and in *ret_stmt its statement; NULL if it was not given. */
const struct alloy_value *alloy_given(const struct alloy_given *g, const char *name,
                                      const struct alloy_stmt **ret_stmt);
/* "PATH.NAME" in the arena; never NULL. */
const char *alloy_path(struct arena *arena, const char *path, struct sv name);
/* Converts a value to a node as the attribute's type asks for; NULL after an error. */
const struct yaml_node *alloy_node(struct alloy_reading *r, const struct alloy_attr *attr,
                                   struct config_place place, const char *path,
                                   const struct alloy_value *v);
/* Returns a node with a duration in YAML's form, rounded up to whole milliseconds. */
const struct yaml_node *alloy_duration_node(struct alloy_reading *r, struct config_place place,
                                            const char *path, int64_t ns);

#endif

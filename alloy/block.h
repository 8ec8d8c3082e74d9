/* Reads the body of a block by a table of its attributes and inner blocks.
 *
 * An attribute with a key goes into the tree of nodes as it is converted; one without is the
 * component's to take from the values that were given. Unknown, repeated and missing ones, and
 * blocks in place of attributes, are errors with suggestions, and the reading goes on.
 */
#ifndef PROFPULL_ALLOY_BLOCK_H
#define PROFPULL_ALLOY_BLOCK_H

#include "alloy/convert.h"
#include "config/tree.h"

/* The rows of one block, those of an included table among them. */
#define ALLOY_ROWS_MAX 48

enum alloy_attr_type {
    ATTR_VALUE, /* anything; never converted */
    ATTR_STRING,
    ATTR_TEXT, /* a string in which YAML expands nothing */
    ATTR_SECRET,
    ATTR_BOOL,
    ATTR_INT,
    ATTR_DURATION,
    ATTR_STRINGS,
    ATTR_STRING_MAP,
    ATTR_LISTS_MAP, /* of lists of strings or secrets */
};

struct alloy_attr {
    const char *name;
    enum alloy_attr_type type;
    const char *key;      /* in YAML, "a.b" within the mapping a; NULL: see above */
    const char *file_key; /* the key for the name of a file whose content the value is; or NULL */
    const char *content_key; /* the same if only contents (config/content.h) go there */
    bool required;
    bool not_null;
    bool ignored;   /* has no meaning here */
    bool file_name; /* relative to the working directory: becomes absolute */
};

struct alloy_schema;

struct alloy_inner {
    const char *name;
    const struct alloy_schema *schema;
    const char *key; /* of its mapping, or of the list if it repeats; NULL: the component's own */
    bool repeats;
    bool ignored;
};

struct alloy_schema {
    const struct alloy_attr *attrs;
    size_t n_attrs;
    const struct alloy_inner *blocks;
    size_t n_blocks;
    const struct alloy_schema *base; /* further rows; NULL for none */
    /* Takes a block with a dotted or otherwise special name; false if the name is unknown. May be
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

/* Where things go. */
struct alloy_reading {
    struct alloy_eval *ev;
    struct tree *tree;
    struct config_errors *notes;
    void *arg; /* of schema->other */
};

/* Reads the statements of a block, whose path is for messages, into a mapping. */
void alloy_read_block(struct alloy_reading *r, const struct alloy_schema *schema,
                      const struct alloy_stmt *block, const char *path, struct yaml_node *out,
                      struct alloy_given *ret_given);
/* The value of an attribute, and in *ret_stmt where it is; NULL if it was not given. */
const struct alloy_value *alloy_given(const struct alloy_given *g, const char *name,
                                      const struct alloy_stmt **ret_stmt);
/* "PATH.NAME" in the arena; never NULL. */
const char *alloy_path(struct arena *arena, const char *path, struct sv name);
/* A node for a value; NULL after an error. */
const struct yaml_node *alloy_node(struct alloy_reading *r, const struct alloy_attr *attr,
                                   struct config_place place, const char *path,
                                   const struct alloy_value *v);
/* A duration for YAML, rounded up to whole milliseconds. */
const struct yaml_node *alloy_duration_node(struct alloy_reading *r, struct config_place place,
                                            const char *path, int64_t ns);

#endif

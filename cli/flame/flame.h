/* A flame graph in the terminal: printed once (flame_print()), or browsed with keys (browse.h). */
#ifndef PROFPULL_CLI_FLAME_FLAME_H
#define PROFPULL_CLI_FLAME_FLAME_H

#include "cli/flame/draw.h"

struct flame_options {
    const char *title;  /* the content of the profile, such as "cart, cpu" */
    const char *unit;   /* of the values of the tree */
    const char *search; /* NULL: none */
    size_t depth;       /* levels to print; 0: all */
};

/* The caller of both functions has called tree_sum(). */

/* Appends a flame graph: a line about it, a line for each level, and lines about what was left
 * out. */
bool flame_print(const struct tree *t, const struct flame_options *options,
                 const struct terminal *terminal, struct buf *out, struct err *err);
/* Appends the tree as JSON: {"unit":..., "total":..., "root": {"name", "self", "total",
 * "children"}}. Children whose total is not positive are left out. */
bool flame_json(const struct tree *t, const char *unit, struct buf *out, struct err *err);

#endif

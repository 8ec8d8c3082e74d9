/* Draws a chart as text: with colours as blocks, without colours between vertical lines. Pure; one
 * thread at a time for a tree.
 */
#ifndef PROFPULL_CLI_FLAME_DRAW_H
#define PROFPULL_CLI_FLAME_DRAW_H

#include "cli/flame/chart.h"
#include "cli/terminal/terminal.h"

/* No box is selected. */
#define DRAW_NO_NODE UINT32_MAX

struct draw {
    const struct tree *tree;
    const struct chart *chart;
    enum terminal_colours colours;
    bool utf8;
    uint32_t selected; /* a node, or DRAW_NO_NODE */
};

/* Returns the columns that a chart may have on a terminal: without colours, the last column is for
 * the line at the end of the last box. */
size_t draw_columns(const struct terminal *t);
/* Appends one row without the end of its line. A level without boxes is empty. */
void draw_row(const struct draw *d, size_t level, struct buf *out);
/* Returns the name of a node; "total" for the root of the tree. */
struct sv draw_name(const struct tree *t, uint32_t node);

#endif

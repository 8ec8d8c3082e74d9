/* A flame graph as rows of boxes, for a number of columns.
 *
 * The root is the topmost row. The boxes of a row are functions, in byte order of their names below
 * each caller, and as wide as their share of the root. A function of less than half a column is
 * left out, so its place is free at the right end of its caller. chart_make() visits each node of
 * the tree once and sorts only those that are drawn. One thread at a time.
 */
#ifndef PROFPULL_CLI_FLAME_CHART_H
#define PROFPULL_CLI_FLAME_CHART_H

#include "base/arena.h"
#include "base/err.h"
#include "store/query/tree.h"

/* Deepest level that is drawn. */
#define CHART_LEVELS_MAX 4096

struct chart_box {
    uint32_t node;   /* in the tree */
    uint32_t level;  /* 0: the root of the chart */
    uint32_t left;   /* first column */
    uint32_t right;  /* the column after the last one */
    uint32_t parent; /* index of the caller's box */
    bool matches;    /* the name matches the search */
};

struct chart {
    struct chart_box *boxes; /* by level, then from left to right */
    size_t n;
    size_t *rows;    /* by level: index of its first box; the last element is n */
    size_t n_levels; /* levels that have a box */
    size_t depth;    /* levels of the tree below the root of the chart, drawn or not */
    int64_t total;   /* the value of the root of the chart */
    int64_t matched; /* the part of the total that is in matching functions */
    size_t columns;
};

struct chart_options {
    uint32_t root;  /* a node of the tree */
    size_t columns; /* at least 1 */
    struct sv
        search; /* functions whose name contains it, ignoring the case of ASCII; may be empty */
};

/* Makes a chart in memory of the arena. The caller has called tree_sum(). */
bool chart_make(const struct tree *t, const struct chart_options *options, struct arena *arena,
                struct chart *ret, struct err *err);
/* Returns true if a name contains the text, ignoring the case of ASCII letters. */
bool chart_matches(struct sv name, struct sv text);
/* Returns the index of the box of a node; chart->n if it has none. */
size_t chart_find(const struct chart *chart, uint32_t node);

#endif

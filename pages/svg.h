/* Draws a flame graph as an SVG within a page, for browsers without JavaScript: all bars that are
 * wide enough to be seen, each with a title. unit: that of the values, for the titles. Pure; any
 * thread. */
#ifndef PROFPULL_PAGES_SVG_H
#define PROFPULL_PAGES_SVG_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "store/query/tree.h"

void svg_flamegraph(struct buf *out, const struct flamegraph *g, bool is_diff, struct sv unit);

#endif

/* Draws values over time as SVG within a page, for browsers with and without JavaScript. The text
 * of an axis is beside the picture, so that it stays readable at each width. Pure; any thread. */
#ifndef PROFPULL_PAGES_CHART_H
#define PROFPULL_PAGES_CHART_H

#include "base/buf.h"
#include "base/str.h"

/* Appends a small line with an area below it; values: n of them, NAN where there is none. The axis
 * goes from 0 to the greatest value. label: the text for those who do not see the picture; it
 * must not need escaping. */
void chart_spark(struct buf *out, const double *values, size_t n, const char *label);

/* A vertical line at a part, from 0 to 1, of the width. */
struct chart_mark {
    double at;
};
/* Appends bars between 0 and `end`, with lines at the top and in the middle, and marks. */
void chart_bars(struct buf *out, const double *values, size_t n, double end,
                const struct chart_mark *marks, size_t n_marks, const char *label);

#endif

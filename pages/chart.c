#include "pages/chart.h"

#include <math.h>

#define SPARK_WIDTH 120.0
#define SPARK_HEIGHT 28.0
/* The line keeps this distance from the edges, so that its width is seen. */
#define SPARK_MARGIN 1.5
#define BARS_WIDTH 1000.0
#define BARS_HEIGHT 100.0

static double greatest(const double *values, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        most = values[i] > most ? values[i] : most; /* false for NAN */
    }
    return most;
}

/* Appends the points of values from i to the next gap, and returns the index after the last one. */
static size_t put_run(struct buf *out, const double *values, size_t n, size_t i, double most)
{
    double wide = n > 1 ? SPARK_WIDTH / (double)(n - 1) : SPARK_WIDTH;
    double floor_y = SPARK_HEIGHT - SPARK_MARGIN;
    size_t begin = i;
    for (; i < n && !isnan(values[i]); i++) {
        double part = most > 0 && values[i] > 0 ? values[i] / most : 0;
        buf_printf(out, "%s%.1f %.1f", i == begin ? "M" : "L", (double)i * wide,
                   floor_y - part * (floor_y - SPARK_MARGIN));
    }
    if (i == begin + 1) {
        buf_printf(out, "h%.1f", wide); /* a single value is seen as a dash */
    }
    return i;
}

void chart_spark(struct buf *out, const double *values, size_t n, const char *label)
{
    double most = greatest(values, n);
    buf_printf(out,
               "<svg class=\"spark\" viewBox=\"0 0 %.0f %.0f\" preserveAspectRatio=\"none\" "
               "role=\"img\" aria-label=\"%s\"><title>%s</title><path d=\"",
               SPARK_WIDTH, SPARK_HEIGHT, label, label);
    for (size_t i = 0; i < n;) {
        i = isnan(values[i]) ? i + 1 : put_run(out, values, n, i, most);
    }
    buf_puts(out, "\"/></svg>");
}

void chart_bars(struct buf *out, const double *values, size_t n, double end,
                const struct chart_mark *marks, size_t n_marks, const char *label)
{
    double wide = n > 0 ? BARS_WIDTH / (double)n : BARS_WIDTH;
    buf_printf(out,
               "<svg class=\"bars\" viewBox=\"0 0 %.0f %.0f\" preserveAspectRatio=\"none\" "
               "role=\"img\" aria-label=\"%s\"><path class=\"grid\" d=\"M0 0.5H%.0fM0 %.0fH%.0f\"/>"
               "<path class=\"bar\" d=\"",
               BARS_WIDTH, BARS_HEIGHT, label, BARS_WIDTH, BARS_HEIGHT / 2, BARS_WIDTH);
    for (size_t i = 0; i < n; i++) {
        double part = values[i] > 0 && end > 0 ? values[i] / end : 0;
        double high = (part < 1 ? part : 1) * BARS_HEIGHT;
        if (!isnan(values[i])) {
            /* A bar of 0 is a thin line: there was a profile. */
            high = high < 1 ? 1 : high;
            buf_printf(out, "M%.1f %.1fh%.1fv%.1fh-%.1fz", (double)i * wide, BARS_HEIGHT - high,
                       wide * 0.85, high, wide * 0.85);
        }
    }
    buf_puts(out, "\"/>");
    for (size_t i = 0; i < n_marks; i++) {
        buf_printf(out, "<path class=\"mark\" d=\"M%.1f 0V%.0f\"/>", marks[i].at * BARS_WIDTH,
                   BARS_HEIGHT);
    }
    buf_puts(out, "</svg>");
}

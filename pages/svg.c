#include "pages/svg.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pages/html.h"
#include "pages/value.h"

#define WIDTH 1400.0
#define ROW 18
#define CHAR_WIDTH 6.7
/* The least width of a bar that is drawn, and the deepest level that is drawn. */
#define LEAST 1.5
#define LEVELS_MAX 120
#define TEXT_CHARS_MIN 3

/* A bar of a level, with its position as a sum. */
struct bar {
    double x;
    int64_t total;
    int64_t self;
    int64_t before; /* the total of the baseline */
    struct sv name;
};

/* Adds; sums stay at the limits of int64_t. */
static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Returns the package of a function. Each package has a colour. */
static struct sv package_of(struct sv name)
{
    size_t slash = 0;
    for (size_t i = 0; i < name.n; i++) {
        slash = name.p[i] == '/' ? i : slash;
    }
    for (size_t i = slash + 1; i < name.n; i++) {
        if (name.p[i] == '.' || (name.p[i] == ':' && i + 1 < name.n && name.p[i + 1] == ':')) {
            return (struct sv){name.p, i};
        }
    }
    return name;
}

/* Writes the colour of a change: orange for more, blue for less, stronger for a larger change of
 * the share. */
static void put_change(struct buf *out, const struct bar *bar, const struct flamegraph *g)
{
    double before = g->left > 0 ? (double)bar->before / (double)g->left : 0;
    double after = g->right > 0 ? (double)(bar->total - bar->before) / (double)g->right : 0;
    double most = before > after ? before : after;
    double change = most > 0 ? (after - before) / most : 0;
    double strength = change < 0 ? -change : change;
    buf_printf(out, "hsl(%d %.0f%% %.0f%%)", change > 0 ? 18 : 212, 75 * strength,
               86 - 22 * strength);
}

static void put_colour(struct buf *out, const struct bar *bar, const struct flamegraph *g,
                       bool is_diff)
{
    if (is_diff) {
        put_change(out, bar, g);
        return;
    }
    struct sv package = package_of(bar->name);
    buf_printf(out, "hsl(%u 62%% 76%%)", (unsigned)(hash_bytes(package.p, package.n, 0) % 360));
}

/* Writes a name, cut to a number of characters. The bytes of a character are never split. */
static void put_cut(struct buf *out, struct sv name, size_t chars)
{
    size_t n = 0;
    size_t seen = 0;
    while (n < name.n) {
        if (((unsigned char)name.p[n] & 0xc0U) != 0x80 && seen++ == chars) {
            break;
        }
        n++;
    }
    html_text(out, (struct sv){name.p, n});
}

static void put_bar(struct buf *out, const struct bar *bar, const struct flamegraph *g,
                    size_t level, bool is_diff, struct sv unit)
{
    int64_t whole = is_diff ? plus(g->left, g->right) : g->total;
    double scale = WIDTH / (double)(whole > 0 ? whole : 1);
    double width = (double)bar->total * scale;
    if (width < LEAST) {
        return;
    }
    buf_puts(out, "<g><title>");
    html_text(out, bar->name);
    if (is_diff) {
        buf_puts(out, ": ");
        value_put(out, bar->before, unit);
        buf_puts(out, " → ");
        value_put(out, bar->total - bar->before, unit);
    } else {
        buf_puts(out, ": ");
        value_put(out, bar->total, unit);
        buf_puts(out, ", ");
        value_put_share(out, bar->total, whole);
        buf_puts(out, ", self ");
        value_put(out, bar->self, unit);
    }
    double x = bar->x * scale;
    buf_printf(out, "</title><rect x=\"%.1f\" y=\"%zu\" width=\"%.1f\" height=\"%d\" fill=\"", x,
               level * ROW, width - 0.5, ROW - 1);
    put_colour(out, bar, g, is_diff);
    buf_puts(out, "\"/>");
    size_t chars = (size_t)((width - 6) / CHAR_WIDTH > 0 ? (width - 6) / CHAR_WIDTH : 0);
    if (chars >= TEXT_CHARS_MIN) {
        buf_printf(out, "<text x=\"%.1f\" y=\"%zu\">", x + 3, level * ROW + 13);
        put_cut(out, bar->name, chars);
        buf_puts(out, "</text>");
    }
    buf_puts(out, "</g>\n");
}

static void put_level(struct buf *out, const struct flamegraph *g, size_t level, bool is_diff,
                      struct sv unit)
{
    const int64_t *at = g->levels[level].at;
    size_t width = is_diff ? 7 : 4;
    double x = 0;
    for (size_t i = 0; i + width <= g->levels[level].n; i += width) {
        const int64_t *v = at + i;
        struct bar bar = {.x = x + (double)v[0], .total = v[1], .self = v[2]};
        if (is_diff) {
            bar = (struct bar){.x = x + (double)v[0] + (double)v[3],
                               .total = plus(v[1], v[4]),
                               .self = plus(v[2], v[5]),
                               .before = v[1]};
        }
        size_t name = (size_t)v[width - 1];
        bar.name = name < g->n_names ? g->names[name] : SV("");
        x = bar.x + (double)bar.total;
        put_bar(out, &bar, g, level, is_diff, unit);
    }
}

void svg_flamegraph(struct buf *out, const struct flamegraph *g, bool is_diff, struct sv unit)
{
    size_t levels = g->n_levels < LEVELS_MAX ? g->n_levels : LEVELS_MAX;
    buf_printf(out,
               "<svg class=\"flame\" viewBox=\"0 0 %.0f %zu\" role=\"img\" "
               "aria-label=\"Flame graph\">\n",
               WIDTH, levels * ROW);
    for (size_t i = 0; i < levels; i++) {
        put_level(out, g, i, is_diff, unit);
    }
    buf_puts(out, "</svg>\n");
}

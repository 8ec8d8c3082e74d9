#include "cli/flame/draw.h"

#include <stdio.h>
#include <string.h>

#include "cli/flame/colour.h"
#include "cli/terminal/text.h"

/* A name of fewer columns says nothing. */
#define LABEL_MIN 3
#define SHARE_MAX 16

size_t draw_columns(const struct terminal *t)
{
    return t->colours == COLOURS_NONE ? t->width - 1 : t->width;
}

struct sv draw_name(const struct tree *t, uint32_t node)
{
    return node == 0 ? SV("total") : tree_node(t, node).name;
}

static void put_spaces(size_t n, struct buf *out)
{
    buf_printf(out, "%*s", (int)n, "");
}

static const char *edge_of(const struct draw *d)
{
    static const char *const thin = "\xe2\x96\x8f"; /* U+258F, the left eighth of a column */
    static const char *const line = "\xe2\x94\x82"; /* U+2502 */
    return !d->utf8 ? "|" : d->colours == COLOURS_NONE ? line : thin;
}

/* Appends the label of a box, in exactly this many columns: the longest form of the name that fits,
 * with its share if there is room. */
static void put_label(const struct draw *d, const struct chart_box *box, size_t columns,
                      struct buf *out)
{
    struct sv name = draw_name(d->tree, box->node);
    const struct sv forms[] = {name, colour_short(name, false), colour_short(name, true)};
    char share[SHARE_MAX];
    size_t i = 0;
    while (i < 2 && terminal_columns(forms[i], d->utf8) > columns) {
        i++;
    }
    size_t used = columns < LABEL_MIN ? 0 : terminal_put(forms[i], columns, d->utf8, out);
    double part = 100.0 * (double)tree_node(d->tree, box->node).total / (double)d->chart->total;
    int n = snprintf(share, sizeof(share), " %.1f%%", part);
    if (n > 0 && i < 2 && used + (size_t)n <= columns && used > 0) {
        buf_puts(out, share);
        used += (size_t)n;
    }
    put_spaces(columns - used, out);
}

static enum colour_role role_of(const struct draw *d, const struct chart_box *box)
{
    return box->node == d->selected ? COLOUR_SELECTED
           : box->matches           ? COLOUR_MATCH
           : box->node == 0         ? COLOUR_ROOT
                                    : COLOUR_FUNCTION;
}

static void put_box(const struct draw *d, const struct chart_box *box, struct buf *out)
{
    size_t columns = box->right - box->left;
    enum colour_role role = role_of(d, box);
    colour_put(d->colours, role, draw_name(d->tree, box->node), out);
    /* Without colours, a mark stands in for those of matches and of the selected box. */
    bool marked = d->colours == COLOURS_NONE && columns > 1 &&
                  (role == COLOUR_MATCH || role == COLOUR_SELECTED);
    buf_puts(out, edge_of(d));
    if (marked) {
        buf_putc(out, role == COLOUR_MATCH ? '*' : '>');
    }
    put_label(d, box, columns - 1 - marked, out);
    colour_end(d->colours, out);
}

void draw_row(const struct draw *d, size_t level, struct buf *out)
{
    const struct chart *c = d->chart;
    size_t column = 0;
    bool open = false; /* a box without colours needs a line at its end */
    if (level >= c->n_levels) {
        return;
    }
    for (size_t i = c->rows[level]; i < c->rows[level + 1]; i++) {
        const struct chart_box *box = &c->boxes[i];
        size_t gap = box->left - column;
        if (open && gap > 0) {
            buf_puts(out, edge_of(d));
            gap--;
        }
        put_spaces(gap, out);
        put_box(d, box, out);
        column = box->right;
        open = d->colours == COLOURS_NONE;
    }
    buf_puts(out, open ? edge_of(d) : "");
}

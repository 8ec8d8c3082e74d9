#include "cli/flame/flame.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/query/values.h"
#include "cli/terminal/text.h"

/* Memory for one chart: TERMINAL_WIDTH_MAX boxes in each of CHART_LEVELS_MAX levels. */
#define CHART_BYTES_MAX ((size_t)256 * 1024 * 1024)

/* ---- text ------------------------------------------------------------------------------------ */

static void put_head(const struct flame_options *o, const struct chart *c,
                     const struct terminal *terminal, struct buf *out)
{
    terminal_put(sv_from(o->title), terminal->width / 2, terminal->utf8, out);
    buf_puts(out, ": ");
    value_with_unit(c->total, o->unit, out);
    buf_printf(out, ", %zu level%s\n", c->depth, c->depth == 1 ? "" : "s");
}

static void put_foot(const struct flame_options *o, const struct chart *c, size_t shown,
                     const struct terminal *terminal, struct buf *out)
{
    if (o->search != NULL && o->search[0] != '\0') {
        buf_puts(out, "matching \"");
        terminal_put(sv_from(o->search), terminal->width / 2, terminal->utf8, out);
        buf_puts(out, "\": ");
        value_with_unit(c->matched, o->unit, out);
        buf_printf(out, ", %.2f%%\n", value_share(c->matched, c->total));
    }
    if (shown < c->n_levels) {
        buf_printf(out, "%zu deeper levels are not shown: --depth %zu shows all\n",
                   c->depth - shown, c->depth);
    } else if (c->n_levels < c->depth) {
        buf_printf(out, "%zu deeper levels are narrower than a column: use a larger --width\n",
                   c->depth - c->n_levels);
    }
}

bool flame_print(const struct tree *t, const struct flame_options *options,
                 const struct terminal *terminal, struct buf *out, struct err *err)
{
    struct chart chart;
    struct chart_options how = {.columns = draw_columns(terminal),
                                .search = sv_from(options->search)};
    struct arena *arena = arena_new(CHART_BYTES_MAX);
    if (arena == NULL || !chart_make(t, &how, arena, &chart, err)) {
        arena_free(arena);
        return arena == NULL ? err_memory(err) : false;
    }
    struct draw d = {.tree = t,
                     .chart = &chart,
                     .colours = terminal->colours,
                     .utf8 = terminal->utf8,
                     .selected = DRAW_NO_NODE};
    size_t shown =
        options->depth == 0 || options->depth > chart.n_levels ? chart.n_levels : options->depth;
    put_head(options, &chart, terminal, out);
    for (size_t level = 0; level < shown; level++) {
        draw_row(&d, level, out);
        buf_putc(out, '\n');
    }
    put_foot(options, &chart, shown, terminal, out);
    arena_free(arena);
    return buf_ok(out) || err_memory(err);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Children of each node as lists: the first child, and the next sibling; 0 ends a list. */
struct kin {
    uint32_t child;
    uint32_t sibling;
};

static struct kin *kin_of(const struct tree *t)
{
    size_t n = tree_size(t);
    struct kin *kin = calloc(n, sizeof(*kin));
    for (uint32_t i = (uint32_t)n - 1; kin != NULL && i > 0; i--) {
        struct tree_node node = tree_node(t, i);
        if (node.total > 0) {
            kin[i].sibling = kin[node.parent].child;
            kin[node.parent].child = i;
        }
    }
    return kin;
}

static void open_node(const struct tree *t, uint32_t i, struct buf *out)
{
    struct tree_node node = tree_node(t, i);
    buf_puts(out, "{\"name\":");
    json_quote(draw_name(t, i), out);
    buf_printf(out, ",\"self\":%" PRId64 ",\"total\":%" PRId64, node.self, node.total);
}

/* Writes a node and its children without recursion, since stacks may be deep. */
static void put_nodes(const struct tree *t, const struct kin *kin, struct buf *out)
{
    uint32_t i = 0;
    open_node(t, i, out);
    for (;;) {
        if (kin[i].child != 0) {
            buf_puts(out, ",\"children\":[");
            i = kin[i].child;
            open_node(t, i, out);
            continue;
        }
        buf_putc(out, '}');
        while (i != 0 && kin[i].sibling == 0) {
            i = tree_node(t, i).parent;
            buf_puts(out, "]}");
        }
        if (i == 0) {
            return;
        }
        i = kin[i].sibling;
        buf_putc(out, ',');
        open_node(t, i, out);
    }
}

bool flame_json(const struct tree *t, const char *unit, struct buf *out, struct err *err)
{
    struct kin *kin = kin_of(t);
    if (kin == NULL) {
        return err_memory(err);
    }
    buf_putc(out, '{');
    json_member("unit", sv_from(unit), out);
    buf_printf(out, ",\"total\":%" PRId64 ",\"root\":", tree_node(t, 0).total);
    put_nodes(t, kin, out);
    buf_puts(out, "}\n");
    free(kin);
    return buf_ok(out) || err_memory(err);
}

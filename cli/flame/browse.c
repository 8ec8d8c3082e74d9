#include "cli/flame/browse.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/query/values.h"
#include "cli/terminal/text.h"

#define CHART_BYTES_MAX ((size_t)256 * 1024 * 1024)
/* Lines that are no levels: the title, the selected function, and the line of keys. */
#define FRAME_LINES 3
#define HEIGHT_MIN 4

struct browse {
    const struct tree *tree;
    struct flame_options options;
    struct terminal terminal;
    struct arena *arena;
    struct chart chart;
    bool stale; /* the chart must be made again */
    uint32_t root;
    uint32_t selected;
    size_t top; /* first level that is shown */
    char search[BROWSE_SEARCH_MAX];
    bool typing; /* keys go to the search */
    bool help;
};

struct browse *browse_new(const struct tree *t, const struct flame_options *options,
                          const struct terminal *terminal, struct err *err)
{
    struct browse *b = calloc(1, sizeof(*b));
    struct arena *arena = arena_new(CHART_BYTES_MAX);
    if (b == NULL || arena == NULL) {
        err_memory(err);
        free(b);
        arena_free(arena);
        return NULL;
    }
    b->tree = t;
    b->options = *options;
    b->terminal = *terminal;
    b->arena = arena;
    struct sv search = sv_from(options->search);
    search.n = utf8_prefix(search, sizeof(b->search) - 1);
    memcpy(b->search, search.n == 0 ? "" : search.p, search.n);
    browse_resize(b, terminal->width, terminal->height);
    return b;
}

struct browse *browse_free(struct browse *b)
{
    if (b != NULL) {
        arena_free(b->arena);
        free(b);
    }
    return NULL;
}

void browse_resize(struct browse *b, size_t width, size_t height)
{
    b->terminal.width = width < TERMINAL_WIDTH_MIN   ? TERMINAL_WIDTH_MIN
                        : width > TERMINAL_WIDTH_MAX ? TERMINAL_WIDTH_MAX
                                                     : width;
    b->terminal.height = height < HEIGHT_MIN ? HEIGHT_MIN : height;
    b->stale = true;
}

/* ---- the chart ------------------------------------------------------------------------------- */

static bool refresh(struct browse *b, struct err *err)
{
    const struct chart_options how = {
        .root = b->root, .columns = draw_columns(&b->terminal), .search = sv_from(b->search)};
    if (!b->stale) {
        return true;
    }
    arena_reset(b->arena);
    if (!chart_make(b->tree, &how, b->arena, &b->chart, err)) {
        return false;
    }
    b->stale = false;
    if (chart_find(&b->chart, b->selected) == b->chart.n) {
        b->selected = b->root; /* its box has become too narrow, or lies outside */
    }
    return true;
}

static size_t rows_of(const struct browse *b)
{
    return b->terminal.height - FRAME_LINES;
}

/* Scrolls so that the selected box is seen. */
static void follow(struct browse *b)
{
    size_t i = chart_find(&b->chart, b->selected);
    size_t level = i < b->chart.n ? b->chart.boxes[i].level : 0;
    size_t rows = rows_of(b);
    if (level < b->top) {
        b->top = level;
    } else if (level >= b->top + rows) {
        b->top = level - rows + 1;
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void select_box(struct browse *b, size_t i)
{
    b->selected = b->chart.boxes[i].node;
}

static void go_up(struct browse *b, size_t at)
{
    if (b->chart.boxes[at].level > 0) {
        select_box(b, b->chart.boxes[at].parent);
    }
}

/* Selects the widest callee. */
static void go_down(struct browse *b, size_t at)
{
    const struct chart *c = &b->chart;
    size_t level = c->boxes[at].level + 1;
    size_t widest = c->n;
    for (size_t i = level < c->n_levels ? c->rows[level] : c->n; i < c->n && i < c->rows[level + 1];
         i++) {
        const struct chart_box *box = &c->boxes[i];
        if (box->parent == at &&
            (widest == c->n ||
             box->right - box->left > c->boxes[widest].right - c->boxes[widest].left)) {
            widest = i;
        }
    }
    if (widest < c->n) {
        select_box(b, widest);
    }
}

static void go_beside(struct browse *b, size_t at, bool right)
{
    size_t level = b->chart.boxes[at].level;
    size_t first = b->chart.rows[level];
    size_t end = b->chart.rows[level + 1];
    if (right ? at + 1 < end : at > first) {
        select_box(b, right ? at + 1 : at - 1);
    }
}

static void zoom(struct browse *b, uint32_t node)
{
    b->root = node;
    b->top = 0;
    b->stale = true;
}

static void zoom_out(struct browse *b)
{
    if (b->root != 0) {
        b->selected = b->root;
        zoom(b, tree_node(b->tree, b->root).parent);
    }
}

/* Selects the next matching box in the order of the chart, or the one before; goes round. */
static void go_match(struct browse *b, size_t at, bool forward)
{
    size_t n = b->chart.n;
    for (size_t step = 1; step <= n; step++) {
        size_t i = (at + (forward ? step : n - step)) % n;
        if (b->chart.boxes[i].matches) {
            select_box(b, i);
            return;
        }
    }
}

static void go_page(struct browse *b, size_t at, bool down)
{
    size_t rows = rows_of(b);
    for (size_t i = 0; i < rows; i++) {
        uint32_t before = b->selected;
        (down ? go_down : go_up)(b, at);
        if (b->selected == before) {
            return;
        }
        at = chart_find(&b->chart, b->selected);
    }
}

static void type_key(struct browse *b, const struct key *key)
{
    size_t n = strlen(b->search);
    char bytes[UTF8_BYTES_MAX];
    if (key->kind == KEY_ENTER || key->kind == KEY_ESCAPE) {
        b->typing = false;
        b->search[key->kind == KEY_ESCAPE ? 0 : n] = '\0';
    } else if (key->kind == KEY_BACKSPACE && n > 0) {
        while (n > 1 && ((unsigned char)b->search[n - 1] & 0xc0) == 0x80) {
            n--; /* the later bytes of a character */
        }
        b->search[n - 1] = '\0';
    } else if (key->kind == KEY_RUNE) {
        size_t more = utf8_encode(key->rune, bytes);
        if (n + more < sizeof(b->search)) {
            memcpy(b->search + n, bytes, more);
            b->search[n + more] = '\0';
        }
    }
    b->stale = true;
}

/* Handles a character. Returns false if it asks to quit. */
static bool rune_key(struct browse *b, uint32_t rune, size_t at)
{
    switch (rune) {
    case 'q':
        return false;
    case 'k':
        go_up(b, at);
        break;
    case 'j':
        go_down(b, at);
        break;
    case 'h':
    case 'l':
        go_beside(b, at, rune == 'l');
        break;
    case 'n':
    case 'N':
        go_match(b, at, rune == 'n');
        break;
    case 'u':
        zoom_out(b);
        break;
    case 'r':
        zoom(b, 0);
        break;
    case '/':
        b->typing = true;
        b->search[0] = '\0';
        b->stale = true;
        break;
    case '?':
        b->help = true;
        break;
    default:
        break;
    }
    return true;
}

static void move_key(struct browse *b, enum key_kind kind, size_t at)
{
    switch (kind) {
    case KEY_UP:
        go_up(b, at);
        break;
    case KEY_DOWN:
        go_down(b, at);
        break;
    case KEY_LEFT:
    case KEY_RIGHT:
        go_beside(b, at, kind == KEY_RIGHT);
        break;
    case KEY_PAGE_UP:
    case KEY_PAGE_DOWN:
        go_page(b, at, kind == KEY_PAGE_DOWN);
        break;
    case KEY_ENTER:
        zoom(b, b->selected);
        break;
    case KEY_BACKSPACE:
        zoom_out(b);
        break;
    case KEY_HOME:
    case KEY_ESCAPE:
        zoom(b, 0);
        break;
    default:
        break;
    }
}

bool browse_key(struct browse *b, const struct key *key)
{
    if (b->help) {
        b->help = false;
        return true;
    }
    if (b->typing) {
        type_key(b, key);
        return true;
    }
    if (!refresh(b, NULL) || b->chart.n == 0) {
        return key->kind != KEY_RUNE || key->rune != 'q';
    }
    size_t at = chart_find(&b->chart, b->selected);
    at = at < b->chart.n ? at : 0;
    if (key->kind == KEY_RUNE) {
        return rune_key(b, key->rune, at);
    }
    move_key(b, key->kind, at);
    return true;
}

/* ---- the picture ----------------------------------------------------------------------------- */

/* Goes to the next line and erases it. Erasing comes before the text: after a text that ends in the
 * last column, it would erase this column. */
static void end_line(struct buf *out)
{
    buf_puts(out, "\r\n\033[2K");
}

/* Appends a line about the profile, cut at the width. */
static void put_line(const struct browse *b, struct buf *line, struct buf *out)
{
    (void)terminal_put((struct sv){line->data, line->len}, b->terminal.width - 1, b->terminal.utf8,
                       out);
    buf_clear(line);
}

static void put_title(const struct browse *b, struct buf *line, struct buf *out)
{
    buf_printf(line, "%s: ", b->options.title);
    value_with_unit(b->chart.total, b->options.unit, line);
    if (b->root != 0) {
        struct sv name = draw_name(b->tree, b->root);
        buf_printf(line, " (%.2f%%) in %.*s",
                   value_share(b->chart.total, tree_node(b->tree, 0).total), SV_ARG(name));
    }
    put_line(b, line, out);
}

static void put_selected(const struct browse *b, struct buf *line, struct buf *out)
{
    struct tree_node node = tree_node(b->tree, b->selected);
    int64_t whole = tree_node(b->tree, 0).total;
    value_with_unit(node.total, b->options.unit, line);
    buf_printf(line, " (%.2f%%), self ", value_share(node.total, whole));
    value_with_unit(node.self, b->options.unit, line);
    struct sv name = draw_name(b->tree, b->selected);
    buf_printf(line, " (%.2f%%)  %.*s", value_share(node.self, whole), SV_ARG(name));
    put_line(b, line, out);
}

static void put_keys(const struct browse *b, struct buf *line, struct buf *out)
{
    if (b->typing) {
        buf_printf(line, "/%s_", b->search);
    } else if (b->search[0] != '\0') {
        buf_printf(line, "\"%s\": ", b->search);
        value_with_unit(b->chart.matched, b->options.unit, line);
        buf_printf(line, ", %.2f%%; n, N: next, previous",
                   value_share(b->chart.matched, b->chart.total));
    } else {
        buf_puts(line, "arrows: select  enter: zoom  backspace: out  /: search  ?: help  q: quit");
    }
    put_line(b, line, out);
}

static void put_help(const struct browse *b, struct buf *line, struct buf *out)
{
    static const char *const lines[] = {
        "up, k            the caller",
        "down, j          the widest callee",
        "left, h right, l the function beside it",
        "page up, down    a screen up or down",
        "enter            zoom: the function becomes the root",
        "backspace, u     zoom out by one caller",
        "escape, home, r  the whole profile",
        "/                search; enter keeps it, escape ends it",
        "n, N             the next and the previous match",
        "q, Ctrl-C        quit",
    };
    size_t n = sizeof(lines) / sizeof(lines[0]);
    for (size_t i = 0; i < rows_of(b); i++) {
        buf_puts(line, i < n ? lines[i] : "");
        end_line(out);
        put_line(b, line, out);
    }
}

static void put_levels(const struct browse *b, struct buf *out)
{
    const struct draw d = {.tree = b->tree,
                           .chart = &b->chart,
                           .colours = b->terminal.colours,
                           .utf8 = b->terminal.utf8,
                           .selected = b->selected};
    for (size_t i = 0; i < rows_of(b); i++) {
        end_line(out);
        draw_row(&d, b->top + i, out);
    }
}

bool browse_draw(struct browse *b, struct buf *out, struct err *err)
{
    struct buf line;
    if (!refresh(b, err)) {
        return false;
    }
    follow(b);
    buf_init(&line, (size_t)1024 * 1024);
    buf_puts(out, "\033[H\033[2K");
    put_title(b, &line, out);
    if (b->help) {
        put_help(b, &line, out);
    } else {
        put_levels(b, out);
    }
    end_line(out);
    put_selected(b, &line, out);
    end_line(out);
    put_keys(b, &line, out);
    buf_done(&line);
    return buf_ok(out) || err_memory(err);
}

#include "cli/query/changes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/query/values.h"
#include "cli/terminal/text.h"

/* Long names are printed whole, because lines may wrap. */
#define NAME_COLUMNS ((size_t)64 * 1024)

/* ---- comparing ------------------------------------------------------------------------------- */

struct functions {
    struct tree_function *at;
    size_t n;
};

static int compare_names(const void *a, const void *b)
{
    const struct tree_function *x = a;
    const struct tree_function *y = b;
    return sv_cmp(x->name, y->name);
}

static bool list_functions(const struct tree *t, struct arena *arena, struct functions *ret,
                           struct err *err)
{
    if (!tree_functions(t, arena, &ret->at, &ret->n, err)) {
        return false;
    }
    qsort(ret->at, ret->n, sizeof(*ret->at), compare_names);
    return true;
}

static int64_t scaled(int64_t value, double by)
{
    double v = (double)value * by;
    return v >= (double)INT64_MAX ? INT64_MAX : (int64_t)(v + (v < 0 ? -0.5 : 0.5));
}

static void scale(struct functions *f, double by)
{
    for (size_t i = 0; i < f->n; i++) {
        f->at[i].self = scaled(f->at[i].self, by);
        f->at[i].total = scaled(f->at[i].total, by);
    }
}

/* Joins two lists in order of names. */
static void join(const struct functions *base, const struct functions *now, struct changes *ret)
{
    size_t i = 0;
    size_t k = 0;
    while (i < base->n || k < now->n) {
        int order = i == base->n ? 1 : k == now->n ? -1 : sv_cmp(base->at[i].name, now->at[k].name);
        struct change *c = &ret->at[ret->n++];
        if (order <= 0) {
            c->name = base->at[i].name;
            c->base_self = base->at[i].self;
            c->base_total = base->at[i++].total;
        }
        if (order >= 0) {
            c->name = now->at[k].name;
            c->self = now->at[k].self;
            c->total = now->at[k++].total;
        }
    }
}

static uint64_t size_of(const struct change *c)
{
    return c->self > c->base_self ? (uint64_t)(c->self - c->base_self)
                                  : (uint64_t)(c->base_self - c->self);
}

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;
    if (size_of(x) != size_of(y)) {
        return size_of(x) > size_of(y) ? -1 : 1;
    }
    return sv_cmp(x->name, y->name);
}

bool changes_make(const struct tree *base, const struct tree *now, bool normalize,
                  struct arena *arena, struct changes *ret, struct err *err)
{
    struct functions before;
    struct functions after;
    *ret = (struct changes){.base_total = tree_total(base), .total = tree_total(now)};
    if (!list_functions(base, arena, &before, err) || !list_functions(now, arena, &after, err)) {
        return false;
    }
    if (normalize && ret->base_total != 0) {
        scale(&before, (double)ret->total / (double)ret->base_total);
        ret->base_total = ret->total;
    }
    ret->at = arena_array(arena, before.n + after.n + 1, sizeof(*ret->at));
    if (ret->at == NULL) {
        return err_memory(err);
    }
    join(&before, &after, ret);
    qsort(ret->at, ret->n, sizeof(*ret->at), compare_changes);
    return true;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void put_signed(int64_t value, const char *unit, char out[VALUE_TEXT_MAX])
{
    char text[VALUE_TEXT_MAX];
    (void)value_format(value, unit, text);
    (void)snprintf(out, VALUE_TEXT_MAX, "%s%.*s", value > 0 ? "+" : "", VALUE_TEXT_MAX - 2, text);
}

static void print_change(const struct change *c, const char *unit, struct buf *out)
{
    char base[VALUE_TEXT_MAX];
    char now[VALUE_TEXT_MAX];
    char self[VALUE_TEXT_MAX];
    char total[VALUE_TEXT_MAX];
    (void)value_format(c->base_self, unit, base);
    (void)value_format(c->self, unit, now);
    put_signed(c->self - c->base_self, unit, self);
    put_signed(c->total - c->base_total, unit, total);
    buf_printf(out, "%12s %12s %12s %13s  ", base, now, self, total);
    (void)terminal_put(c->name, NAME_COLUMNS, true, out);
    buf_putc(out, '\n');
}

static bool goes(const struct change *c, bool up)
{
    return up ? c->self > c->base_self : c->self < c->base_self;
}

static void print_side(const struct changes *c, bool up, const char *unit, size_t limit,
                       struct buf *out)
{
    size_t shown = 0;
    size_t all = 0;
    for (size_t i = 0; i < c->n; i++) {
        all += goes(&c->at[i], up);
    }
    buf_printf(out, "%s: %zu functions%s", up ? "grew" : "shrank", all, all == 0 ? "\n" : "");
    if (all == 0) {
        return;
    }
    buf_printf(out, ", the first %zu\n", limit == 0 || limit > all ? all : limit);
    for (size_t i = 0; i < c->n && (limit == 0 || shown < limit); i++) {
        if (goes(&c->at[i], up)) {
            print_change(&c->at[i], unit, out);
            shown++;
        }
    }
}

void changes_print(const struct changes *c, const char *unit, size_t limit, struct buf *out)
{
    char change[VALUE_TEXT_MAX];
    put_signed(c->total - c->base_total, unit, change);
    buf_puts(out, "base ");
    value_with_unit(c->base_total, unit, out);
    buf_puts(out, ", now ");
    value_with_unit(c->total, unit, out);
    buf_printf(out, ": %s", change);
    if (c->base_total != 0) {
        buf_printf(out, " (%+.2f%%)", value_share(c->total - c->base_total, c->base_total));
    }
    buf_printf(out, "\n%12s %12s %12s %13s  %s\n", "base self", "self", "change", "total change",
               "function");
    print_side(c, true, unit, limit, out);
    print_side(c, false, unit, limit, out);
}

static void side_json(const struct changes *c, bool up, size_t limit, struct buf *out)
{
    size_t shown = 0;
    buf_printf(out, ",\"%s\":[", up ? "grew" : "shrank");
    for (size_t i = 0; i < c->n && (limit == 0 || shown < limit); i++) {
        const struct change *f = &c->at[i];
        if (goes(f, up)) {
            buf_puts(out, shown++ == 0 ? "{\"name\":" : ",{\"name\":");
            json_quote(f->name, out);
            buf_printf(out,
                       ",\"base_self\":%" PRId64 ",\"self\":%" PRId64 ",\"base_total\":%" PRId64
                       ",\"total\":%" PRId64 "}",
                       f->base_self, f->self, f->base_total, f->total);
        }
    }
    buf_putc(out, ']');
}

void changes_json(const struct changes *c, const char *unit, size_t limit, struct buf *out)
{
    buf_putc(out, '{');
    json_member("unit", sv_from(unit), out);
    buf_printf(out, ",\"base_total\":%" PRId64 ",\"total\":%" PRId64, c->base_total, c->total);
    side_json(c, true, limit, out);
    side_json(c, false, limit, out);
    buf_puts(out, "}\n");
}

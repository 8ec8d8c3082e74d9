#include "cli/query/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/query/values.h"
#include "cli/terminal/text.h"
#include "pprof/gzip.h"
#include "pprof/summary.h"
#include "store/query/stacks.h"

/* ---- the sample type ------------------------------------------------------------------------- */

/* Returns the index of the string that names the default sample type; 0 if there is none. */
static uint64_t default_type(struct sv plain)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    uint64_t type = 0;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_DEFAULT_SAMPLE_TYPE && f.type == WIRE_VARINT) {
            type = f.value;
        }
    }
    return type;
}

static bool choose_column(const struct pprof_summary *s, uint64_t preferred, const char *value,
                          size_t *ret, struct err *err)
{
    size_t n = s->n[PROFILE_SAMPLE_TYPE];
    n = n < SUMMARY_TYPES_MAX ? n : SUMMARY_TYPES_MAX;
    *ret = n - 1;
    for (size_t i = n; i > 0; i--) {
        const struct pprof_value_type *t = &s->types[i - 1];
        if (value == NULL ? preferred != 0 && t->type == preferred
                          : sv_eq_str(t->type_text, value)) {
            *ret = i - 1;
            return true;
        }
    }
    if (n > 0 && value == NULL) {
        return true;
    }
    char types[256];
    pprof_summary_print_types(s, "?", types, sizeof(types));
    return err_set(err, ERR_INPUT, "the profile has no sample type \"%s\", only %s",
                   value == NULL ? "" : value, types[0] == '\0' ? "none" : types);
}

static bool add_stacks(struct tree *t, struct sv plain, size_t column, bool as_recorded,
                       struct err *err)
{
    const struct query_stacks all = {.as_recorded = as_recorded};
    const struct store_series series = {.column = column};
    const struct store_series *list[] = {&series};
    const struct store_body body = {.id = "",
                                    .data = plain,
                                    .format = PROFILE_PPROF,
                                    .series = list,
                                    .n_series = 1,
                                    .whole = true};
    int64_t sum;
    struct stacks *s = stacks_new(t, &all, TOP_BYTES_MAX, err);
    bool ok = s != NULL && stacks_add(s, &body, column, &sum, err);
    stacks_free(s);
    return ok;
}

struct tree *top_tree(struct sv body, const char *value, bool as_recorded, char unit[TOP_UNIT_MAX],
                      struct err *err)
{
    struct pprof_summary summary;
    struct sv plain;
    size_t column;
    struct tree *t = tree_new(TOP_BYTES_MAX, err);
    struct scratch *scratch = scratch_new();
    bool ok = t != NULL && (scratch != NULL || err_memory(err)) &&
              gzip_plain(scratch, body, TOP_BYTES_MAX, 0, &plain, err) &&
              pprof_summary_read(scratch, plain, TOP_BYTES_MAX, &summary, err) &&
              choose_column(&summary, default_type(plain), value, &column, err);
    if (ok) {
        (void)snprintf(unit, TOP_UNIT_MAX, "%.*s", SV_ARG(summary.types[column].unit_text));
        ok = add_stacks(t, plain, column, as_recorded, err);
    }
    scratch_free(scratch);
    return ok ? t : tree_free(t);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Long names are printed whole, because lines may wrap. */
#define NAME_COLUMNS ((size_t)64 * 1024)

static void print_function(const struct tree_function *f, int64_t total, const char *unit,
                           struct buf *out)
{
    char self[VALUE_TEXT_MAX];
    char sum[VALUE_TEXT_MAX];
    (void)value_format(f->self, unit, self);
    (void)value_format(f->total, unit, sum);
    buf_printf(out, "%12s %6.2f%% %12s %6.2f%%  ", self, value_share(f->self, total), sum,
               value_share(f->total, total));
    (void)terminal_put(f->name, NAME_COLUMNS, true, out);
    buf_putc(out, '\n');
}

/* The functions of a tree, in memory of an arena. */
struct table {
    struct tree_function *at;
    size_t n;
    size_t shown;
    int64_t total;
};

static bool make_table(const struct tree *t, size_t limit, struct arena *arena, struct table *ret,
                       struct err *err)
{
    if (arena == NULL) {
        return err_memory(err);
    }
    if (!tree_functions(t, arena, &ret->at, &ret->n, err)) {
        return false;
    }
    ret->shown = limit == 0 || limit > ret->n ? ret->n : limit;
    ret->total = tree_total(t);
    return true;
}

bool top_print(const struct tree *t, const char *unit, size_t limit, struct buf *out,
               struct err *err)
{
    struct table table = {.at = NULL};
    struct arena *arena = arena_new(TOP_BYTES_MAX);
    bool ok = make_table(t, limit, arena, &table, err);
    if (ok) {
        value_with_unit(table.total, unit, out);
        buf_printf(out, " in %zu functions, the first %zu:\n", table.n, table.shown);
        buf_printf(out, "%12s %7s %12s %7s  %s\n", "self", "", "total", "", "function");
        for (size_t i = 0; i < table.shown; i++) {
            print_function(&table.at[i], table.total, unit, out);
        }
        ok = buf_ok(out) || err_memory(err);
    }
    arena_free(arena);
    return ok;
}

bool top_json(const struct tree *t, const char *unit, size_t limit, struct buf *out,
              struct err *err)
{
    struct table table = {.at = NULL};
    struct arena *arena = arena_new(TOP_BYTES_MAX);
    bool ok = make_table(t, limit, arena, &table, err);
    if (ok) {
        buf_putc(out, '{');
        json_member("unit", sv_from(unit), out);
        buf_printf(out, ",\"total\":%" PRId64 ",\"count\":%zu,\"functions\":[", table.total,
                   table.n);
        for (size_t i = 0; i < table.shown; i++) {
            buf_puts(out, i == 0 ? "{\"name\":" : ",{\"name\":");
            json_quote(table.at[i].name, out);
            buf_printf(out, ",\"self\":%" PRId64 ",\"total\":%" PRId64 "}", table.at[i].self,
                       table.at[i].total);
        }
        buf_puts(out, "]}\n");
        ok = buf_ok(out) || err_memory(err);
    }
    arena_free(arena);
    return ok;
}

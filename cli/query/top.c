#include "cli/query/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pprof/gzip.h"
#include "pprof/summary.h"
#include "store/query/stacks.h"

#define NUMBER_TEXT_MAX 40

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

/* Formats a value: "1.25s", "3.50MiB", "42". Returns false if the text does not include the unit.
 */
static bool format_value(int64_t value, const char *unit, char out[NUMBER_TEXT_MAX])
{
    static const struct {
        const char *unit;
        double scale;
        const char *shown;
    } units[] = {
        {"nanoseconds", 1.0 / (double)NS_PER_S, "s"},
        {"microseconds", 1e-6, "s"},
        {"bytes", 1.0 / (1024 * 1024), "MiB"},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].unit) == 0) {
            (void)snprintf(out, NUMBER_TEXT_MAX, "%.2f%s", (double)value * units[i].scale,
                           units[i].shown);
            return true;
        }
    }
    (void)snprintf(out, NUMBER_TEXT_MAX, "%" PRId64, value);
    return false;
}

static double share(int64_t value, int64_t total)
{
    return total == 0 ? 0.0 : 100.0 * (double)value / (double)total;
}

static void print_function(const struct tree_function *f, int64_t total, const char *unit,
                           struct buf *out)
{
    char self[NUMBER_TEXT_MAX];
    char sum[NUMBER_TEXT_MAX];
    (void)format_value(f->self, unit, self);
    (void)format_value(f->total, unit, sum);
    buf_printf(out, "%12s %6.2f%% %12s %6.2f%%  ", self, share(f->self, total), sum,
               share(f->total, total));
    json_escape(f->name, out);
    buf_putc(out, '\n');
}

bool top_print(const struct tree *t, const char *unit, size_t limit, struct buf *out,
               struct err *err)
{
    struct tree_function *functions;
    size_t n;
    char total[NUMBER_TEXT_MAX];
    struct arena *arena = arena_new(TOP_BYTES_MAX);
    bool ok = (arena != NULL || err_memory(err)) && tree_functions(t, arena, &functions, &n, err);
    if (ok) {
        size_t shown = limit == 0 || limit > n ? n : limit;
        bool complete = format_value(tree_total(t), unit, total) || unit[0] == '\0';
        buf_printf(out, "%s%s%s in %zu functions, the first %zu:\n", total, complete ? "" : " ",
                   complete ? "" : unit, n, shown);
        buf_printf(out, "%12s %7s %12s %7s  %s\n", "self", "", "total", "", "function");
        for (size_t i = 0; i < shown; i++) {
            print_function(&functions[i], tree_total(t), unit, out);
        }
        ok = buf_ok(out) || err_memory(err);
    }
    arena_free(arena);
    return ok;
}

#include "record/counting.h"

#include <stdint.h>
#include <string.h>

#include "pprof/check.h"
#include "pprof/columns.h"
#include "pprof/gzip.h"
#include "pprof/index.h"

/* The sums whose functions are looked for in one pass over the samples: one bit each. */
#define PASS_MAX 64
#define NO_COLUMN SIZE_MAX

struct pass {
    struct counting_want *wants;
    size_t n;
    size_t columns[PASS_MAX];        /* NO_COLUMN: the profile has no such sample type */
    uint64_t all;                    /* bits of the sums that need no function */
    const struct pprof_index *index; /* NULL: no sum needs a function */
    uint64_t *marks;                 /* by place of a location: the functions that it has */
};

/* ---- columns --------------------------------------------------------------------------------- */

static size_t column_of(const struct pprof_summary *s, const struct record_type *t)
{
    if (!sv_eq(s->period_type.type_text, t->period_type) ||
        !sv_eq(s->period_type.unit_text, t->period_unit)) {
        return NO_COLUMN;
    }
    size_t n = s->n[PROFILE_SAMPLE_TYPE];
    for (size_t i = 0; i < n && i < SUMMARY_TYPES_MAX; i++) {
        if (sv_eq(s->types[i].type_text, t->type) && sv_eq(s->types[i].unit_text, t->unit)) {
            return i;
        }
    }
    return NO_COLUMN;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Returns the bits of the sums whose function has this name. */
static uint64_t bits_of_name(const struct pass *p, struct sv name)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->columns[i] != NO_COLUMN && p->wants[i].function.n > 0 &&
            sv_eq(p->wants[i].function, name)) {
            bits |= UINT64_C(1) << i;
        }
    }
    return bits;
}

/* Returns the bits of all functions in the lines of a location. */
static uint64_t bits_of_location(const struct pprof_index *x, const uint64_t *functions,
                                 struct sv location)
{
    struct wire_reader r = wire_reader_of(location);
    struct wire_field f = {.number = 0};
    uint64_t bits = 0;
    while (wire_next(&r, &f)) {
        uint64_t numbers[LINE_COLUMN + 1] = {0};
        size_t place = 0;
        if (f.number == LOCATION_LINE && f.type == WIRE_BYTES) {
            wire_read_numbers(f.bytes, numbers, LINE_COLUMN + 1);
            if (pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, numbers[LINE_FUNCTION_ID],
                               &place)) {
                bits |= functions[place];
            }
        }
    }
    return bits;
}

/* Marks each location with the functions that it has. */
static bool mark_locations(struct pass *p, struct scratch *s, struct err *err)
{
    const struct pprof_index *x = p->index;
    size_t n_functions = x->entries[PROFILE_FUNCTION].ids.n;
    size_t n_locations = x->entries[PROFILE_LOCATION].ids.n;
    uint64_t *functions = scratch_zeroed(s, n_functions + 1, sizeof(*functions));
    p->marks = scratch_zeroed(s, n_locations + 1, sizeof(*p->marks));
    if (functions == NULL || p->marks == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < n_functions; i++) {
        functions[i] = bits_of_name(p, pprof_string(x, x->functions[i].name));
    }
    for (size_t i = 0; i < n_locations; i++) {
        p->marks[i] =
            bits_of_location(x, functions, pprof_span_of(x, x->entries[PROFILE_LOCATION].spans[i]));
    }
    return true;
}

/* ---- samples --------------------------------------------------------------------------------- */

static uint64_t bits_of_ids(const struct pass *p, const struct wire_field *f)
{
    struct wire_numbers ids = wire_numbers_of(f);
    uint64_t bits = 0;
    uint64_t id;
    size_t place;
    while (wire_numbers_next(&ids, &id)) {
        if (pprof_ids_find(&p->index->entries[PROFILE_LOCATION].ids, id, &place)) {
            bits |= p->marks[place];
        }
    }
    return bits;
}

static void count_sample(struct pass *p, struct sv sample)
{
    struct wire_reader r = wire_reader_of(sample);
    struct wire_field f = {.number = 0};
    int64_t values[SUMMARY_TYPES_MAX] = {0};
    size_t n_values = 0;
    uint64_t bits = p->all;
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t value;
        if (f.number == SAMPLE_LOCATION_ID && p->index != NULL) {
            bits |= bits_of_ids(p, &f);
        }
        while (f.number == SAMPLE_VALUE && n_values < SUMMARY_TYPES_MAX &&
               wire_numbers_next(&numbers, &value)) {
            values[n_values++] = (int64_t)value;
        }
    }
    for (size_t i = 0; i < p->n; i++) {
        if ((bits >> i & 1) != 0 && values[p->columns[i]] > 0) {
            p->wants[i].sum += (uint64_t)values[p->columns[i]];
        }
    }
}

static bool run_pass(struct pass *p, struct scratch *s, struct sv plain, struct err *err)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    if (p->index != NULL && !mark_locations(p, s, err)) {
        return false;
    }
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE && f.type == WIRE_BYTES) {
            count_sample(p, f.bytes);
        }
    }
    return true;
}

/* Finds the columns of a pass. Returns false if the profile has none of them. *ret_functions: a sum
 * needs a function. */
static bool plan_pass(struct pass *p, const struct pprof_summary *summary, bool *ret_functions)
{
    bool any = false;
    *ret_functions = false;
    for (size_t i = 0; i < p->n; i++) {
        struct counting_want *w = &p->wants[i];
        p->columns[i] = column_of(summary, &w->type);
        w->found = p->columns[i] != NO_COLUMN;
        any = any || w->found;
        if (w->found && w->function.n == 0) {
            p->all |= UINT64_C(1) << i;
        }
        *ret_functions = *ret_functions || (w->found && w->function.n > 0);
    }
    return any;
}

static bool run_all(struct scratch *s, struct sv plain, const struct pprof_summary *summary,
                    struct counting_want *wants, size_t n, uint64_t seed, struct err *err)
{
    struct pprof_index index;
    bool indexed = false;
    for (size_t at = 0; at < n; at += PASS_MAX) {
        struct pass p = {.wants = wants + at, .n = n - at < PASS_MAX ? n - at : PASS_MAX};
        bool functions = false;
        if (!plan_pass(&p, summary, &functions)) {
            continue;
        }
        if (functions && !indexed && !pprof_index(&index, s, plain, summary, seed, err)) {
            return false;
        }
        indexed = indexed || functions;
        p.index = functions ? &index : NULL;
        if (!run_pass(&p, s, plain, err)) {
            return false;
        }
    }
    return true;
}

bool counting_run(struct scratch *s, struct sv body, struct counting_want *wants, size_t n,
                  uint64_t seed, struct err *err)
{
    struct pprof_summary summary;
    struct sv plain;
    for (size_t i = 0; i < n; i++) {
        wants[i].found = false;
        wants[i].sum = 0;
    }
    scratch_reset(s);
    bool ok = gzip_plain(s, body, COUNTING_PLAIN_MAX, 0, &plain, err);
    if (ok && plain.n > COUNTING_PLAIN_MAX) {
        ok = err_set(err, ERR_LIMIT, "a profile of %zu bytes; at most %zu are counted", plain.n,
                     COUNTING_PLAIN_MAX);
    }
    ok = ok && pprof_check(plain, &summary, err) && pprof_small_enough(summary.n, "sum", err);
    if (ok) {
        pprof_summary_name_types(plain, &summary);
        ok = run_all(s, plain, &summary, wants, n, seed, err);
    }
    if (!ok) {
        scratch_explain(s, err);
    }
    return ok;
}

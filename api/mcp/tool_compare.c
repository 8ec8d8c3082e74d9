/* The tool compare. */
#include <math.h>
#include <stdlib.h>

#include "api/mcp/stacks.h"
#include "model/record_rule.h"

/* A difference below this part of the greater value is none: ranges of "the same length" may differ
 * by some milliseconds, and nobody mends a ten-thousandth. */
#define DIFFERENCE_MIN 1e-4

/* One of the two sets of profiles. */
struct side {
    struct ask ask;
    struct tree *tree;
    struct tree_function *functions; /* by name */
    size_t n;
    double whole;
    double seconds; /* of its range; 1 for a gauge, which is no rate */
};

struct difference {
    struct sv name;
    double before; /* per second */
    double after;
    double share_before; /* percent */
    double share_after;
};

static int by_name(const void *a, const void *b)
{
    return sv_cmp(((const struct tree_function *)a)->name, ((const struct tree_function *)b)->name);
}

static int by_size(const void *a, const void *b)
{
    const struct difference *x = a;
    const struct difference *y = b;
    double left = fabs(x->after - x->before);
    double right = fabs(y->after - y->before);
    return left > right ? -1 : left < right ? 1 : sv_cmp(x->name, y->name);
}

static bool load(struct tool_call *call, struct side *s, struct err *err)
{
    s->tree = stacks_tree(call, &s->ask, err);
    if (s->tree == NULL || !tree_functions(s->tree, call->arena, &s->functions, &s->n, err)) {
        return false;
    }
    const struct profile_type *t = &s->ask.type;
    const struct record_type type = {
        .name = t->name, .type = t->sample_type, .unit = t->sample_unit};
    bool rate = record_type_is_counter(&type);
    s->seconds = rate ? (double)(s->ask.range.end_ms - s->ask.range.start_ms) / 1000.0 : 1;
    s->whole = (double)tree_total(s->tree);
    if (s->n > 0) {
        qsort(s->functions, s->n, sizeof(s->functions[0]), by_name);
    }
    return true;
}

static double value_of(const struct tree_function *f, bool totals)
{
    return (double)(totals ? f->total : f->self);
}

static void put_before(struct difference *d, const struct tree_function *f, const struct side *s,
                       bool totals)
{
    d->name = f->name;
    d->before = value_of(f, totals) / s->seconds;
    d->share_before = stacks_percent(value_of(f, totals), s->whole);
}

static void put_after(struct difference *d, const struct tree_function *f, const struct side *s,
                      bool totals)
{
    d->name = f->name;
    d->after = value_of(f, totals) / s->seconds;
    d->share_after = stacks_percent(value_of(f, totals), s->whole);
}

/* Compares the next functions of both sides by name; a side that has ended comes last. */
static int order_of(const struct side *before, size_t i, const struct side *after, size_t k)
{
    if (i == before->n || k == after->n) {
        return i == before->n ? 1 : -1;
    }
    return sv_cmp(before->functions[i].name, after->functions[k].name);
}

static bool differs(const struct difference *d)
{
    return fabs(d->after - d->before) > DIFFERENCE_MIN * fmax(d->before, d->after);
}

/* Joins the functions of both sides, without those that are equal. */
static struct difference *join(struct tool_call *call, const struct side *before,
                               const struct side *after, bool totals, size_t *ret_n)
{
    struct difference *all =
        arena_array(call->arena, before->n + after->n + 1, sizeof(struct difference));
    size_t i = 0;
    size_t k = 0;
    size_t n = 0;
    while (all != NULL && (i < before->n || k < after->n)) {
        int order = order_of(before, i, after, k);
        struct difference d = {.before = 0};
        if (order <= 0) {
            put_before(&d, &before->functions[i++], before, totals);
        }
        if (order >= 0) {
            put_after(&d, &after->functions[k++], after, totals);
        }
        if (differs(&d)) {
            all[n++] = d;
        }
    }
    *ret_n = n;
    return all;
}

static void print_side(struct tool_call *call, const char *label, const struct side *s, bool rate)
{
    (void)tool_row(call, "%s: %s to %s, %s%s in all", label, tool_time(call, s->ask.range.start_ms),
                   tool_time(call, s->ask.range.end_ms),
                   tool_value(call, s->whole / s->seconds, s->ask.type.sample_unit),
                   rate ? " per second" : "");
}

static bool print(struct tool_call *call, const struct side *before, const struct side *after,
                  bool totals, struct err *err)
{
    size_t n = 0;
    struct difference *all = join(call, before, after, totals, &n);
    bool rate = after->seconds != 1 || before->seconds != 1;
    struct sv unit = after->ask.type.sample_unit;
    if (all == NULL) {
        return err_set(err, ERR_LIMIT, "too many functions: ask for a shorter range");
    }
    if (n > 0) {
        qsort(all, n, sizeof(all[0]), by_size);
    }
    print_side(call, "Before", before, rate);
    print_side(call, "After ", after, rate);
    (void)tool_row(call,
                   "%zu function%s by more than 0.01%%. Largest differences of %s%s first; the "
                   "share of all samples in percent does not move with the load. This list does "
                   "not say whether a difference is more than chance.",
                   n, n == 1 ? " differs" : "s differ", totals ? "total" : "self",
                   rate ? " per second" : "");
    for (size_t i = 0; i < n; i++) {
        const struct difference *d = &all[i];
        if (i >= call->limit) {
            call->left_out++;
            continue;
        }
        (void)tool_row(call, "%s%s: %s -> %s, share %.2f%% -> %.2f%%: %s",
                       d->after > d->before ? "+" : "",
                       tool_value(call, d->after - d->before, unit),
                       tool_value(call, d->before, unit), tool_value(call, d->after, unit),
                       d->share_before, d->share_after, tool_name(call, d->name, STACKS_NAME_MAX));
    }
    return true;
}

/* Sets the range of the side before: the same one if versions or labels are compared, else the one
 * of the same length before. */
static bool range_before(const struct tool_call *call, const struct query_range *after,
                         struct ask *before, struct err *err)
{
    const char *version = NULL;
    const char *selector = NULL;
    if (!tool_text(call, "before_version", &version, err) ||
        !tool_text(call, "before_selector", &selector, err)) {
        return false;
    }
    bool same = version != NULL || selector != NULL;
    int64_t length = after->end_ms - after->start_ms;
    before->range.start_ms = same ? after->start_ms : after->start_ms - length;
    before->range.end_ms = same ? after->end_ms : after->start_ms;
    return tool_range(call, "before_", before, err);
}

/* Adds the argument `selector` to the side before, unless it has labels of its own. */
static bool select_before(const struct tool_call *call, struct ask *before, struct err *err)
{
    const char *own = NULL;
    if (!tool_text(call, "before_selector", &own, err)) {
        return false;
    }
    if (own != NULL || json_object_get(call->args, "selector") == NULL) {
        return tool_selector(call, "before_", before, err);
    }
    /* The version of the side before and the selector of both. */
    json_t *args = json_copy((json_t *)(uintptr_t)call->args);
    struct tool_call both = *call;
    both.args = args;
    bool ok = args != NULL &&
              json_object_set(args, "before_selector", json_object_get(args, "selector")) == 0;
    ok = ok ? tool_selector(&both, "before_", before, err) : err_memory(err);
    json_decref(args);
    return ok;
}

bool tool_compare(struct tool_call *call, struct err *err)
{
    struct side before = {.ask = {.selector = NULL}};
    struct side after = {.ask = {.selector = NULL}};
    bool totals = false;
    bool ok = stacks_choice(call, "by", "self", "total", &totals, err) &&
              tool_range(call, "", &after.ask, err) && tool_selector(call, "", &after.ask, err) &&
              tool_type(call, STACKS_CPU, &after.ask, err) &&
              range_before(call, &after.ask.range, &before.ask, err) &&
              select_before(call, &before.ask, err);
    if (ok) {
        before.ask.type = after.ask.type;
        ok = load(call, &after, err) &&
             (load(call, &before, err) || err_wrap(err, "the profiles to compare with")) &&
             print(call, &before, &after, totals, err);
    }
    if (ok) {
        stacks_page(call, &after.ask);
    }
    tree_free(before.tree);
    tree_free(after.tree);
    ask_done(&before.ask);
    ask_done(&after.ask);
    return ok;
}

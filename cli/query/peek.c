#include "cli/query/peek.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/query/values.h"
#include "cli/terminal/text.h"
#include "regex/regex.h"

/* Long names are printed whole, because lines may wrap. */
#define NAME_COLUMNS ((size_t)64 * 1024)
#define RULER "----------------------------------------------------------+-------------\n"

/* ---- the functions --------------------------------------------------------------------------- */

static struct regex *compile(const char *pattern, struct err *err)
{
    struct buf text;
    buf_init(&text, (size_t)2 * REGEX_PATTERN_MAX);
    buf_printf(&text, ".*(?:%s).*", pattern);
    struct regex *re = NULL;
    if (!buf_ok(&text)) {
        (void)err_set(err, ERR_INPUT, "the regex has more than %d bytes", REGEX_PATTERN_MAX);
    } else if ((re = regex_new((struct sv){text.data, text.len}, 0, err)) == NULL) {
        err_wrap(err, "\"%s\" is not a regex", pattern);
    }
    buf_done(&text);
    return re;
}

/* Keeps the functions that a regex matches, in their order. */
static bool keep_matching(struct peek *p, const struct tree_function *all, size_t n,
                          const char *pattern, struct err *err)
{
    struct regex *re = compile(pattern, err);
    struct regex_scratch *s = re == NULL ? NULL : regex_scratch_new();
    bool ok = s != NULL || (re != NULL && err_memory(err));
    for (size_t i = 0; i < n && ok; i++) {
        enum regex_result r = regex_match(re, s, all[i].name, err);
        ok = r != REGEX_FAILED;
        if (r == REGEX_MATCH) {
            p->at[p->n++].function = all[i];
        }
    }
    regex_scratch_free(s);
    regex_free(re);
    return ok;
}

static bool choose(struct peek *p, const struct tree_function *all, size_t n, const char *pattern,
                   struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (sv_eq_str(all[i].name, pattern)) {
            p->at[p->n++].function = all[i];
            return true;
        }
    }
    if (!keep_matching(p, all, n, pattern, err)) {
        return false;
    }
    return p->n > 0 ||
           err_set(err, ERR_INPUT, "no function of the profile matches \"%s\"", pattern);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Names of one tree are equal if their pointers are. */
static bool same(struct sv a, struct sv b)
{
    return a.p == b.p && a.n == b.n;
}

/* Returns true if the call that leads to a node also occurs above it in the stack. */
static bool recurs(const struct tree *t, struct sv caller, struct sv callee, uint32_t above)
{
    while (above != 0) {
        struct tree_node node = tree_node(t, above);
        if (same(node.name, callee) && same(tree_node(t, node.parent).name, caller)) {
            return true;
        }
        above = node.parent;
    }
    return false;
}

static int compare_pointers(const void *a, const void *b)
{
    const struct peek_edge *x = a;
    const struct peek_edge *y = b;
    uintptr_t p = (uintptr_t)x->name.p;
    uintptr_t q = (uintptr_t)y->name.p;
    return (p > q) - (p < q);
}

static int compare_values(const void *a, const void *b)
{
    const struct peek_edge *x = a;
    const struct peek_edge *y = b;
    if (x->value != y->value) {
        return x->value > y->value ? -1 : 1;
    }
    return sv_cmp(x->name, y->name);
}

/* Joins edges with the same name, and sorts the result. Returns the number of edges. */
static size_t join(struct peek_edge *at, size_t n)
{
    size_t kept = 0;
    if (n == 0) {
        return 0;
    }
    qsort(at, n, sizeof(*at), compare_pointers);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && same(at[kept - 1].name, at[i].name)) {
            at[kept - 1].value += at[i].value;
        } else {
            at[kept++] = at[i];
        }
    }
    qsort(at, kept, sizeof(*at), compare_values);
    return kept;
}

/* The edges of one function while they are collected. */
struct edges {
    struct peek_edge *callers;
    struct peek_edge *callees;
    size_t n_callers;
    size_t n_callees;
};

/* Collects the calls to and from a function. Both lists have room for all nodes. */
static void collect(const struct tree *t, struct sv name, struct edges *e)
{
    size_t n = tree_size(t);
    for (uint32_t i = 1; i < n; i++) {
        struct tree_node node = tree_node(t, i);
        struct sv caller = node.parent == 0 ? SV("") : tree_node(t, node.parent).name;
        bool is_callee = same(node.name, name);
        bool is_caller = node.parent != 0 && same(caller, name);
        if (node.total <= 0 || (!is_callee && !is_caller) ||
            (node.parent != 0 && recurs(t, caller, node.name, node.parent))) {
            continue;
        }
        if (is_callee && node.parent != 0) {
            e->callers[e->n_callers++] = (struct peek_edge){caller, node.total};
        }
        if (is_caller) {
            e->callees[e->n_callees++] = (struct peek_edge){node.name, node.total};
        }
    }
}

static struct peek_edge *copy(struct arena *arena, const struct peek_edge *from, size_t n)
{
    struct peek_edge *to = arena_array(arena, n + 1, sizeof(*to));
    if (to != NULL && n > 0) {
        memcpy(to, from, n * sizeof(*to));
    }
    return to;
}

static bool find_calls(const struct tree *t, struct arena *arena, struct peek_function *f,
                       struct edges *room, struct err *err)
{
    room->n_callers = room->n_callees = 0;
    collect(t, f->function.name, room);
    f->n_callers = join(room->callers, room->n_callers);
    f->n_callees = join(room->callees, room->n_callees);
    f->callers = copy(arena, room->callers, f->n_callers);
    f->callees = copy(arena, room->callees, f->n_callees);
    return (f->callers != NULL && f->callees != NULL) || err_memory(err);
}

bool peek_make(const struct tree *t, const char *pattern, struct arena *arena, struct peek *ret,
               struct err *err)
{
    struct tree_function *all;
    size_t n;
    *ret = (struct peek){.total = tree_total(t)};
    if (!tree_functions(t, arena, &all, &n, err)) {
        return false;
    }
    ret->at = arena_array(arena, n + 1, sizeof(*ret->at));
    if (ret->at == NULL) {
        return err_memory(err);
    }
    if (!choose(ret, all, n, pattern, err)) {
        return false;
    }
    struct edges room = {.callers = calloc(tree_size(t), sizeof(struct peek_edge)),
                         .callees = calloc(tree_size(t), sizeof(struct peek_edge))};
    bool ok = room.callers != NULL && room.callees != NULL;
    if (!ok) {
        err_memory(err);
    }
    for (size_t i = 0; ok && i < ret->n; i++) {
        ok = find_calls(t, arena, &ret->at[i], &room, err);
    }
    free(room.callers);
    free(room.callees);
    return ok;
}

/* ---- printing -------------------------------------------------------------------------------- */

#define PERCENT_MAX 16

/* Formats a share like pprof: "100%", "12.90%", "0.45%", "0%". */
static void format_percent(int64_t value, int64_t whole, char out[PERCENT_MAX])
{
    double percent = value_share(value, whole);
    double size = percent < 0 ? -percent : percent;
    if (size >= 99.95 && size <= 100.05) {
        (void)snprintf(out, PERCENT_MAX, "100%%");
    } else if (size >= 1) {
        (void)snprintf(out, PERCENT_MAX, "%.2f%%", percent);
    } else {
        (void)snprintf(out, PERCENT_MAX, "%.2g%%", percent);
    }
}

static void print_edges(const struct peek_edge *at, size_t n, int64_t whole, const char *unit,
                        struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        char value[VALUE_TEXT_MAX];
        char percent[PERCENT_MAX];
        (void)value_format(at[i].value, unit, value);
        format_percent(at[i].value, whole, percent);
        buf_printf(out, "%50s %6s |   ", value, percent);
        (void)terminal_put(at[i].name, NAME_COLUMNS, true, out);
        buf_putc(out, '\n');
    }
}

static void print_function(const struct peek_function *f, int64_t sum, int64_t whole,
                           const char *unit, struct buf *out)
{
    char self[VALUE_TEXT_MAX];
    char total[VALUE_TEXT_MAX];
    char flat[PERCENT_MAX];
    char so_far[PERCENT_MAX];
    char cum[PERCENT_MAX];
    (void)value_format(f->function.self, unit, self);
    (void)value_format(f->function.total, unit, total);
    format_percent(f->function.self, whole, flat);
    format_percent(sum, whole, so_far);
    format_percent(f->function.total, whole, cum);
    buf_printf(out, "%10s %6s %6s %10s %6s                | ", self, flat, so_far, total, cum);
    (void)terminal_put(f->function.name, NAME_COLUMNS, true, out);
    buf_putc(out, '\n');
}

void peek_print(const struct peek *p, const char *unit, struct buf *out)
{
    int64_t sum = 0;
    buf_puts(out, "total ");
    value_with_unit(p->total, unit, out);
    buf_puts(out, "\n" RULER "      flat  flat%   sum%        cum   cum%   calls calls% + "
                  "context\n" RULER);
    for (size_t i = 0; i < p->n; i++) {
        const struct peek_function *f = &p->at[i];
        sum += f->function.self;
        print_edges(f->callers, f->n_callers, f->function.total, unit, out);
        print_function(f, sum, p->total, unit, out);
        print_edges(f->callees, f->n_callees, f->function.total, unit, out);
        buf_puts(out, RULER);
    }
}

static void edges_json(const char *key, const struct peek_edge *at, size_t n, struct buf *out)
{
    buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i == 0 ? "{\"name\":" : ",{\"name\":");
        json_quote(at[i].name, out);
        buf_printf(out, ",\"value\":%" PRId64 "}", at[i].value);
    }
    buf_putc(out, ']');
}

void peek_json(const struct peek *p, const char *unit, struct buf *out)
{
    buf_putc(out, '{');
    json_member("unit", sv_from(unit), out);
    buf_printf(out, ",\"total\":%" PRId64 ",\"functions\":[", p->total);
    for (size_t i = 0; i < p->n; i++) {
        const struct peek_function *f = &p->at[i];
        buf_puts(out, i == 0 ? "{\"name\":" : ",{\"name\":");
        json_quote(f->function.name, out);
        buf_printf(out, ",\"self\":%" PRId64 ",\"total\":%" PRId64, f->function.self,
                   f->function.total);
        edges_json("callers", f->callers, f->n_callers, out);
        edges_json("callees", f->callees, f->n_callees, out);
        buf_putc(out, '}');
    }
    buf_puts(out, "]}\n");
}

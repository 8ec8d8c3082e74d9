/* The tools top_functions and call_tree. */
#include <stdlib.h>
#include <string.h>

#include "api/mcp/stacks.h"

#define DEPTH_DEFAULT 25
#define DEPTH_MAX 200
/* Nodes with less than a thousandth of the total are not shown. */
#define SHARE_MIN 0.001
/* Names of functions that an error lists. */
#define SUGGESTED_MAX 5

/* ---- shared ---------------------------------------------------------------------------------- */

double stacks_percent(double part, double whole)
{
    return whole != 0 ? 100.0 * part / whole : 0;
}

struct tree *stacks_tree(struct tool_call *call, const struct ask *ask, struct err *err)
{
    struct query q;
    const struct query_stacks all = {.n_call_site = 0};
    if (!tool_query(call, &q, err)) {
        return NULL;
    }
    struct tree *t = query_tree(&q, &ask->range, &ask->type, &all, err);
    if (t == NULL) {
        return NULL;
    }
    tree_sum(t);
    if (tree_total(t) > 0) {
        return t;
    }
    err_set(err, ERR_INPUT,
            "no samples of %.*s between %s and %s: check service, version and selector with "
            "list_services and labels, or ask for a longer range",
            SV_ARG(ask->type.id), tool_time(call, ask->range.start_ms),
            tool_time(call, ask->range.end_ms));
    return tree_free(t);
}

struct tree *stacks_of_args(struct tool_call *call, struct ask *ask, struct err *err)
{
    return tool_range(call, "", ask, err) && tool_selector(call, "", ask, err) &&
                   tool_type(call, STACKS_CPU, ask, err)
               ? stacks_tree(call, ask, err)
               : NULL;
}

bool stacks_choice(const struct tool_call *call, const char *name, const char *first,
                   const char *second, bool *ret, struct err *err)
{
    const char *text = first;
    if (!tool_text(call, name, &text, err)) {
        return false;
    }
    *ret = strcmp(text, second) == 0;
    return *ret || strcmp(text, first) == 0 ||
           err_set(err, ERR_INPUT, "%s must be \"%s\" or \"%s\"", name, first, second);
}

void stacks_page(struct tool_call *call, const struct ask *ask)
{
    const char *service = "";
    const char *selector = "";
    struct err ignored = ERR_INIT;
    (void)tool_text(call, "service", &service, &ignored);
    (void)tool_text(call, "selector", &selector, &ignored);
    tool_page(call, "/?service=%s&labels=%s&type=%s&from=%lld&until=%lld",
              tool_encoded(call, sv_from(service)), tool_encoded(call, sv_from(selector)),
              tool_encoded(call, ask->type.id), (long long)ask->range.start_ms / 1000,
              (long long)ask->range.end_ms / 1000);
}

static void print_head(struct tool_call *call, const struct ask *ask, const struct tree *t)
{
    (void)tool_row(call, "Total %s of %.*s (%.*s), from %s to %s.",
                   tool_value(call, (double)tree_total(t), ask->type.sample_unit),
                   SV_ARG(ask->type.sample_type), SV_ARG(ask->type.id),
                   tool_time(call, ask->range.start_ms), tool_time(call, ask->range.end_ms));
}

/* ---- top_functions --------------------------------------------------------------------------- */

/* The largest total first. */
static int by_total(const void *a, const void *b)
{
    const struct tree_function *x = a;
    const struct tree_function *y = b;
    return x->total > y->total ? -1 : x->total < y->total ? 1 : sv_cmp(x->name, y->name);
}

static bool print_functions(struct tool_call *call, const struct ask *ask, const struct tree *t,
                            bool totals, const char *match, struct err *err)
{
    struct tree_function *all = NULL;
    size_t n = 0;
    size_t shown = 0;
    double whole = (double)tree_total(t);
    if (!tree_functions(t, call->arena, &all, &n, err)) {
        return false;
    }
    if (totals && n > 0) {
        qsort(all, n, sizeof(all[0]), by_total);
    }
    print_head(call, ask, t);
    (void)tool_row(call, "%zu functions. self (own), total (with everything called), function:", n);
    for (size_t i = 0; i < n; i++) {
        const struct tree_function *f = &all[i];
        if (match != NULL && memmem(f->name.p, f->name.n, match, strlen(match)) == NULL) {
            continue;
        }
        if (shown++ >= call->limit) {
            call->left_out++;
            continue;
        }
        (void)tool_row(call, "%s (%.2f%%), %s (%.2f%%), %s",
                       tool_value(call, (double)f->self, ask->type.sample_unit),
                       stacks_percent((double)f->self, whole),
                       tool_value(call, (double)f->total, ask->type.sample_unit),
                       stacks_percent((double)f->total, whole),
                       tool_name(call, f->name, STACKS_NAME_MAX));
    }
    return shown > 0 || match == NULL ||
           err_set(err, ERR_INPUT, "match: no function has \"%.100s\" in its name", match);
}

bool tool_top_functions(struct tool_call *call, struct err *err)
{
    struct ask ask = {.selector = NULL};
    bool totals = false;
    const char *match = NULL;
    struct tree *t = NULL;
    bool ok = stacks_choice(call, "by", "self", "total", &totals, err) &&
              tool_text(call, "match", &match, err) &&
              (t = stacks_of_args(call, &ask, err)) != NULL &&
              print_functions(call, &ask, t, totals, match, err);
    if (ok) {
        stacks_page(call, &ask);
    }
    tree_free(t);
    ask_done(&ask);
    return ok;
}

/* ---- trees of one function ------------------------------------------------------------------- */

/* Adds the callees of a function to a tree: each outermost call of it, with everything below. */
static bool add_callees(const struct tree *from, struct sv function, uint32_t *map, struct tree *to,
                        struct err *err)
{
    uint32_t name;
    for (uint32_t i = 1; i < tree_size(from); i++) {
        struct tree_node node = tree_node(from, i);
        /* 0, the root, is in no call of the function. */
        bool inside = map[node.parent] != 0;
        if (!inside && !sv_eq(node.name, function)) {
            continue;
        }
        if (!tree_name(to, node.name, &name, err) ||
            !tree_child(to, inside ? map[node.parent] : 0, name, &map[i], err)) {
            return false;
        }
        tree_add(to, map[i], node.self);
    }
    return true;
}

/* Adds the path from one call of a function to the root. */
static bool add_path(const struct tree *from, uint32_t node, int64_t value, struct tree *to,
                     struct err *err)
{
    uint32_t at = 0;
    uint32_t name;
    for (uint32_t i = node; i != 0; i = tree_node(from, i).parent) {
        if (!tree_name(to, tree_node(from, i).name, &name, err) ||
            !tree_child(to, at, name, &at, err)) {
            return false;
        }
    }
    tree_add(to, at, value);
    return true;
}

/* Adds the callers of a function: the paths of its outermost calls, reversed. */
static bool add_callers(const struct tree *from, struct sv function, uint32_t *map, struct tree *to,
                        struct err *err)
{
    for (uint32_t i = 1; i < tree_size(from); i++) {
        struct tree_node node = tree_node(from, i);
        bool inside = map[node.parent] != 0;
        bool found = sv_eq(node.name, function);
        map[i] = inside || found;
        if (found && !inside && !add_path(from, i, node.total, to, err)) {
            return false;
        }
    }
    return true;
}

/* Says which names are like a function that no stack has. */
static bool no_function(struct tool_call *call, const struct tree *t, const char *function,
                        struct err *err)
{
    struct tree_function *all = NULL;
    size_t n = 0;
    size_t listed = 0;
    struct buf list;
    buf_init(&list, 4096);
    const char *last = strrchr(function, '.');
    last = last != NULL && last[1] != '\0' ? last + 1 : function;
    if (!tree_functions(t, call->arena, &all, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n && listed < SUGGESTED_MAX; i++) {
        if (memmem(all[i].name.p, all[i].name.n, last, strlen(last)) != NULL) {
            buf_printf(&list, "%s%s", listed++ > 0 ? ", " : "", tool_name(call, all[i].name, 100));
        }
    }
    err_set(err, ERR_INPUT,
            "no stack has the function \"%.100s\"%s%s; top_functions with match finds "
            "whole names",
            function, listed > 0 ? "; similar: " : "", list.data);
    buf_done(&list);
    return false;
}

static struct tree *tree_of_function(struct tool_call *call, const struct tree *from,
                                     const char *function, bool callers, struct err *err)
{
    uint32_t *map = arena_array(call->arena, tree_size(from) + 1, sizeof(*map));
    struct tree *to = tree_new(call->exchange->bytes_max / 4, err);
    if (map == NULL || to == NULL) {
        tree_free(to);
        (void)(err->kind != ERR_NONE || err_memory(err));
        return NULL;
    }
    if (!(callers ? add_callers : add_callees)(from, sv_from(function), map, to, err)) {
        return tree_free(to);
    }
    tree_sum(to);
    if (tree_total(to) <= 0) {
        (void)no_function(call, from, function, err);
        return tree_free(to);
    }
    return to;
}

/* ---- call_tree ------------------------------------------------------------------------------- */

/* A node in the order in which its siblings are printed. */
struct ranked {
    uint32_t parent;
    uint32_t node;
    int64_t total;
};

static int by_parent(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->parent != y->parent) {
        return x->parent < y->parent ? -1 : 1;
    }
    return x->total > y->total ? -1 : x->total < y->total ? 1 : x->node < y->node ? -1 : 1;
}

/* The tree as it is printed. */
struct drawing {
    const struct tree *tree;
    const struct ranked *ranked;
    size_t n;
    double whole; /* the total of which nodes show their share */
    size_t depth_max;
    struct sv unit;
    size_t rows;
};

/* Returns the index of the first child of a node in the ranked list, or n. */
static size_t first_child(const struct drawing *d, uint32_t parent)
{
    size_t low = 0;
    size_t high = d->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->ranked[middle].parent < parent) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < d->n && d->ranked[low].parent == parent ? low : d->n;
}

static void print_node(struct tool_call *call, struct drawing *d, uint32_t node, size_t depth)
{
    struct tree_node t = tree_node(d->tree, node);
    if (d->rows++ >= call->limit) {
        call->left_out++;
        return;
    }
    (void)tool_row(
        call, "%*s%.2f%% %s (self %s) %s", (int)(2 * depth), "",
        stacks_percent((double)t.total, d->whole), tool_value(call, (double)t.total, d->unit),
        tool_value(call, (double)t.self, d->unit), tool_name(call, t.name, STACKS_NAME_MAX));
}

/* Prints the nodes depth first, the largest children first. next[k]: the index of the next node to
 * print on level k. */
static void draw(struct tool_call *call, struct drawing *d, size_t next[DEPTH_MAX + 1])
{
    size_t depth = 0;
    next[0] = first_child(d, 0);
    for (;;) {
        size_t i = next[depth];
        bool ends = i >= d->n ||
                    (depth > 0 && d->ranked[i].parent != d->ranked[next[depth - 1] - 1].node) ||
                    (depth == 0 && d->ranked[i].parent != 0) ||
                    (double)d->ranked[i].total < d->whole * SHARE_MIN;
        if (ends && depth == 0) {
            return;
        }
        if (ends) {
            depth--;
            continue;
        }
        print_node(call, d, d->ranked[i].node, depth);
        next[depth] = i + 1;
        size_t child = first_child(d, d->ranked[i].node);
        if (child < d->n && depth + 1 < d->depth_max) {
            next[++depth] = child;
        }
    }
}

static bool print_tree(struct tool_call *call, const struct ask *ask, const struct tree *t,
                       double whole, size_t depth, struct err *err)
{
    size_t n = tree_size(t);
    struct ranked *ranked = arena_array(call->arena, n + 1, sizeof(*ranked));
    size_t *next = arena_array(call->arena, DEPTH_MAX + 1, sizeof(*next));
    if (ranked == NULL || next == NULL) {
        return err_set(err, ERR_LIMIT, "the tree is too large: ask for a shorter range");
    }
    for (uint32_t i = 1; i < n; i++) {
        struct tree_node node = tree_node(t, i);
        ranked[i - 1] = (struct ranked){node.parent, i, node.total};
    }
    qsort(ranked, n - 1, sizeof(*ranked), by_parent);
    struct drawing d = {.tree = t,
                        .ranked = ranked,
                        .n = n - 1,
                        .whole = whole,
                        .depth_max = depth,
                        .unit = ask->type.sample_unit};
    draw(call, &d, next);
    return true;
}

static bool print_call_tree(struct tool_call *call, const struct ask *ask, const struct tree *t,
                            const char *function, bool callers, size_t depth, struct err *err)
{
    struct tree *part = NULL;
    print_head(call, ask, t);
    if (function != NULL) {
        part = tree_of_function(call, t, function, callers, err);
        if (part == NULL) {
            return false;
        }
    }
    (void)tool_row(call, "%s; share of the total, total, self, function; below 0.1%% is left out:",
                   function == NULL ? "The hottest paths from the root"
                   : callers        ? "The function and, indented, its callers"
                                    : "The function and, indented, its callees");
    bool ok = print_tree(call, ask, part != NULL ? part : t, (double)tree_total(t), depth, err);
    tree_free(part);
    return ok;
}

bool tool_call_tree(struct tool_call *call, struct err *err)
{
    struct ask ask = {.selector = NULL};
    const char *function = NULL;
    bool callers = false;
    size_t depth = DEPTH_DEFAULT;
    struct tree *t = NULL;
    bool ok = tool_text(call, "function", &function, err) &&
              stacks_choice(call, "direction", "callees", "callers", &callers, err) &&
              tool_number(call, "depth", 1, DEPTH_MAX, &depth, err) &&
              (t = stacks_of_args(call, &ask, err)) != NULL &&
              print_call_tree(call, &ask, t, function, callers, depth, err);
    if (ok) {
        stacks_page(call, &ask);
    }
    tree_free(t);
    ask_done(&ask);
    return ok;
}

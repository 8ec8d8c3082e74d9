#include "store/query/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "store/query/tree_private.h"

struct tree *tree_new(size_t bytes_max, struct err *err)
{
    struct tree *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        err_memory(err);
        return NULL;
    }
    struct rng rng;
    rng_seed_random(&rng);
    t->budget.max = bytes_max;
    merge_table_init(&t->names, rng_next(&rng));
    merge_table_init(&t->edges, rng_next(&rng));
    t->self = calloc(1, sizeof(*t->self));
    t->total = calloc(1, sizeof(*t->total));
    t->self_cap = t->total_cap = 1;
    if (t->self == NULL || t->total == NULL) {
        err_memory(err);
        return tree_free(t);
    }
    return t;
}

struct tree *tree_free(struct tree *t)
{
    if (t != NULL) {
        merge_table_done(&t->names);
        merge_table_done(&t->edges);
        free(t->self);
        free(t->total);
        free(t);
    }
    return NULL;
}

bool tree_name(struct tree *t, struct sv name, uint32_t *ret, struct err *err)
{
    if (utf8_valid(name)) {
        return merge_table_add(&t->names, &t->budget, name.p, name.n, name.n, ret, err);
    }
    struct buf text;
    buf_init(&text, name.n * strlen(UTF8_REPLACEMENT));
    bool ok = utf8_repair(name, &text)
                  ? merge_table_add(&t->names, &t->budget, text.data, text.len, text.len, ret, err)
                  : err_memory(err);
    buf_done(&text);
    return ok;
}

/* Makes room for the values of one more node than there are edges now. */
static bool grow_values(struct tree *t, struct err *err)
{
    size_t n = t->edges.n + 2;
    int64_t *self = budget_grow(&t->budget, t->self, &t->self_cap, n, sizeof(*self), err);
    if (self == NULL) {
        return false;
    }
    t->self = self;
    int64_t *total = budget_grow(&t->budget, t->total, &t->total_cap, n, sizeof(*total), err);
    if (total == NULL) {
        return false;
    }
    t->total = total;
    return true;
}

bool tree_child(struct tree *t, uint32_t parent, uint32_t name, uint32_t *ret, struct err *err)
{
    const struct tree_edge edge = {parent, name};
    size_t before = t->edges.n;
    uint32_t i;
    if (!grow_values(t, err) ||
        !merge_table_add(&t->edges, &t->budget, &edge, sizeof(edge), sizeof(edge), &i, err)) {
        return false;
    }
    if (t->edges.n > before) {
        t->self[i + 1] = t->total[i + 1] = 0;
    }
    *ret = i + 1;
    return true;
}

void tree_add(struct tree *t, uint32_t node, int64_t value)
{
    t->self[node] = tree_plus(t->self[node], value);
}

size_t tree_bytes_used(const struct tree *t)
{
    return sizeof(*t) + t->budget.used;
}

bool tree_room(const struct tree *t, size_t bytes, struct err *err)
{
    if (bytes > t->budget.max - t->budget.used) {
        return err_set(err, ERR_LIMIT, "takes more than %zu bytes to work in", t->budget.max);
    }
    return true;
}

/* ---- sums and walking ------------------------------------------------------------------------ */

int64_t tree_total(const struct tree *t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < tree_size(t); i++) {
        sum = tree_plus(sum, t->self[i]);
    }
    return sum;
}

void tree_totals(const struct tree *t, int64_t *ret_total)
{
    memcpy(ret_total, t->self, tree_size(t) * sizeof(*ret_total));
    /* A parent comes before its children. */
    for (size_t i = tree_size(t) - 1; i > 0; i--) {
        uint32_t parent = tree_edge_of(t, (uint32_t)i)->parent;
        ret_total[parent] = tree_plus(ret_total[parent], ret_total[i]);
    }
}

void tree_sum(struct tree *t)
{
    tree_totals(t, t->total);
}

size_t tree_size(const struct tree *t)
{
    return t->edges.n + 1;
}

struct tree_node tree_node(const struct tree *t, uint32_t i)
{
    struct tree_node node = {.name = SV(""), .self = t->self[i], .total = t->total[i]};
    if (i > 0) {
        const struct tree_edge *edge = tree_edge_of(t, i);
        node.parent = edge->parent;
        node.name = tree_name_of(t, edge->name);
    }
    return node;
}

#include "store/query/bodies.h"
#include "store/query/stacks.h"

static bool tree_on_body(void *arg, const struct store_body *body, struct err *err)
{
    int64_t sum;
    for (size_t column = 0; query_next_column(body, &column); column++) {
        if (!stacks_add(arg, body, column, &sum, err)) {
            return false;
        }
    }
    return true;
}

struct tree *query_tree(const struct query *q, const struct query_range *r,
                        const struct profile_type *type, const struct query_stacks *which,
                        struct err *err)
{
    struct query_scope scope;
    if (!query_scope_init(q, &scope, r, type, err)) {
        return NULL;
    }
    scope.by_series = true; /* the order does not change sums, and this one is faster */
    struct tree *t = tree_new(q->bytes_max / 2, err);
    struct stacks *s = t == NULL ? NULL : stacks_new(t, which, q->bytes_max / 2, err);
    if (s == NULL || !query_each_body(q, &scope, which, tree_on_body, s, err)) {
        t = tree_free(t);
    }
    stacks_free(s);
    query_scope_done(&scope);
    return t;
}

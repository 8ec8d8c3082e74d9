#include "store/query/bodies.h"
#include "store/query/crew.h"

/* Makes the tree, with helpers unless that is NULL. *ret_again is set if the parts of the memory
 * that the helpers had were too small. */
static struct tree *read_tree(const struct query *q, const struct query_scope *scope,
                              const struct query_stacks *which, struct query_helpers *helpers,
                              bool *ret_again, struct err *err)
{
    struct crew *c = crew_new(q, which, helpers, err);
    struct tree *t = NULL;
    if (c != NULL && query_each_body(q, scope, which, crew_on_body, c, err)) {
        t = crew_finish(c, err);
    }
    *ret_again = c != NULL && t == NULL && err->kind == ERR_LIMIT && crew_had_helpers(c);
    crew_free(c);
    return t;
}

struct tree *query_tree(const struct query *q, const struct query_range *r,
                        const struct profile_type *type, const struct query_stacks *which,
                        struct err *err)
{
    struct query_scope scope;
    bool again;
    if (!query_scope_init(q, &scope, r, type, err)) {
        return NULL;
    }
    scope.by_series = true; /* the order does not change sums, and this one is faster */
    scope.with_sums = true;
    size_t damaged = q->damaged != NULL ? atomic_load(q->damaged) : 0;
    struct tree *t = read_tree(q, &scope, which, q->helpers, &again, err);
    if (again) {
        err_clear(err);
        if (q->damaged != NULL) {
            atomic_store(q->damaged, damaged); /* they are counted again */
        }
        t = read_tree(q, &scope, which, NULL, &again, err);
    }
    query_scope_done(&scope);
    return t;
}

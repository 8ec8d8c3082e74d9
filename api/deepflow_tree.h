/* DeepFlow's questions to the store: the series of an event, their tags, and the tree of their
 * stacks. Any thread.
 */
#ifndef PROFPULL_API_DEEPFLOW_TREE_H
#define PROFPULL_API_DEEPFLOW_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/tag_filter.h"
#include "base/err.h"
#include "base/str.h"
#include "server/exchange.h"
#include "store/query/tree.h"

struct deepflow_question {
    struct sv service; /* empty: the filter selects the services */
    struct sv event;
    struct sv language;
    struct tag_filter *filter;
    int64_t from_ns; /* from_ns and until_ns are both inclusive */
    int64_t until_ns;
};

/* Appends the names of the services that the filter leaves, sorted and joined by ", ", to *ret,
 * which the caller has initialised; *ret_n is their number. */
bool deepflow_services(const struct exchange *x, const struct deepflow_question *q, struct buf *ret,
                       size_t *ret_n, struct err *err);

/* Builds the tree of the stacks of all profiles that the question selects; the caller frees it. CPU
 * time is counted in samples. For states (inuse_*, goroutines) the last profile of each process
 * counts; for all other events, the sum of all profiles. */
struct tree *deepflow_tree(const struct exchange *x, const struct deepflow_question *q,
                           struct err *err);

#endif

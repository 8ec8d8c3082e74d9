/* Private to queries: visiting profiles with their bytes. */
#ifndef PROFPULL_STORE_QUERY_BODIES_H
#define PROFPULL_STORE_QUERY_BODIES_H

#include "store/query/query_private.h"

/* Visits each pprof of the scope once, or each of those listed in which->profile_ids. The callback
 * returns false with an error: ERR_INPUT leaves the profile out and counts it, all others end the
 * query. Looks at the deadline before each. The scope has a selector if profiles are listed. */
bool query_each_body(const struct query *q, const struct query_scope *scope,
                     const struct query_stacks *which,
                     bool (*visit_body)(void *arg, const struct store_body *body, struct err *err),
                     void *arg, struct err *err);

/* Finds the next column, from *column on, that a series of the body has. False if there is none. */
bool query_next_column(const struct store_body *body, size_t *column);

#endif

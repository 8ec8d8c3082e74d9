/* Private to queries: visiting profiles with their bytes. */
#ifndef PROFPULL_STORE_QUERY_BODIES_H
#define PROFPULL_STORE_QUERY_BODIES_H

#include "store/query/query_private.h"

/* Visits each pprof profile of the scope once; if which->profile_ids lists profiles, visits these
 * instead. If the callback returns false with ERR_INPUT, the profile is left out and counted; any
 * other error ends the query. The deadline is checked before each profile. If profiles are listed,
 * the scope must have a selector. */
bool query_each_body(const struct query *q, const struct query_scope *scope,
                     const struct query_stacks *which,
                     bool (*visit_body)(void *arg, const struct store_body *body, struct err *err),
                     void *arg, struct err *err);

/* Visits each pprof profile of the scope once, without its bytes. */
bool query_each_head(const struct query *q, const struct query_scope *scope,
                     bool (*visit_body)(void *arg, const struct store_body *body, struct err *err),
                     void *arg, struct err *err);

/* Finds the next column, from *column on, that a series of the body has. False if there is none. */
bool query_next_column(const struct store_body *body, size_t *column);

#endif

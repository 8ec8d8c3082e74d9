/* Serves Pyroscope's querier.v1.QuerierService from the store, so that Grafana's Pyroscope data
 * source and Profiles Drilldown work with profpull's address.
 */
#ifndef PROFPULL_API_QUERIER_H
#define PROFPULL_API_QUERIER_H

#include "api/connect.h"
#include "api/proto/querier.pb-c.h"
#include "server/routes.h"
#include "store/query/query.h"

/* Limit of a request, which has a selector and a few ids. */
#define QUERIER_BODY_MAX ((size_t)1024 * 1024)

extern const struct route querier_routes[];

/* The methods: those for labels are in querier.c, those for stacks in querier_stacks.c, those over
 * time in querier_time.c. */
bool querier_merge_stacktraces(struct connect_call *call, const void *request, struct err *err);
bool querier_merge_span_profile(struct connect_call *call, const void *request, struct err *err);
bool querier_merge_profile(struct connect_call *call, const void *request, struct err *err);
bool querier_diff(struct connect_call *call, const void *request, struct err *err);
bool querier_series(struct connect_call *call, const void *request, struct err *err);
bool querier_heatmap(struct connect_call *call, const void *request, struct err *err);

/* Copies the call site of a request into the arena, if it has one. */
bool querier_call_site(struct arena *arena, const Api__StackTraceSelector *s,
                       struct query_stacks *ret, struct err *err);

#endif

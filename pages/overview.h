/* The overview: each service with its CPU, allocations, live heap, goroutines, targets and version,
 * the most expensive first. */
#ifndef PROFPULL_PAGES_OVERVIEW_H
#define PROFPULL_PAGES_OVERVIEW_H

#include "server/exchange.h"

/* The first page: the overview; the page of profiles if the request has parameters of that page, as
 * its addresses had until the overview was added, or if no profiles are kept. */
void page_first(struct exchange *x);
/* GET /api/v1/overview: the same as JSON. */
void v1_overview(struct exchange *x);

extern const char *const overview_params[];

#endif

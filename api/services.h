/* The small services that Pyroscope's apps ask beside the querier: settings, feature flags,
 * version, and the answers by which they hide what is not there.
 */
#ifndef PROFPULL_API_SERVICES_H
#define PROFPULL_API_SERVICES_H

#include "server/routes.h"

/* The services, GET /api/v1/status/buildinfo and GET /ready. */
extern const struct route services_routes[];

#endif

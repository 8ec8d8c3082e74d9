/* The small services that Pyroscope's apps use besides the querier: settings, feature flags, the
 * version, and the responses from which apps learn to hide a feature that does not exist here.
 */
#ifndef PROFPULL_API_SERVICES_H
#define PROFPULL_API_SERVICES_H

#include "server/routes.h"

/* The services, GET /api/v1/status/buildinfo and GET /ready. */
extern const struct route services_routes[];

#endif

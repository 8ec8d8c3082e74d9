/* The tables of routes of the APIs, for `routes` of a server's options; each line adds one table.
 */
#ifndef PROFPULL_API_TABLES_H
#define PROFPULL_API_TABLES_H

#include "api/changes.h"
#include "api/control.h"
#include "api/deepflow.h"
#include "api/health.h"
#include "api/mcp/mcp.h"
#include "api/peer.h"
#include "api/pgo.h"
#include "api/process.h"
#include "api/profefe.h"
#include "api/querier.h"
#include "api/receive/receive_routes.h"
#include "api/recorded.h"
#include "api/recording_rules.h"
#include "api/render.h"
#include "api/services.h"

/* clang-format off */
#define API_TABLES  \
    process_routes, \
    control_routes, \
    health_routes, \
    recorded_routes, \
    recording_routes, \
    mcp_routes, \
    receive_routes, \
    querier_routes, \
    render_routes,  \
    services_routes, \
    profefe_routes, \
    deepflow_routes, \
    peer_routes, \
    pgo_routes, \
    changes_routes
/* clang-format on */

/* Prefixes of paths that SDKs and data sources keep in their URLs. */
#define API_PREFIXES "/pyroscope", "/profile"

#endif

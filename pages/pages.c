#include "pages/pages.h"

#include "pages/assets.h"
#include "pages/changes.h"
#include "pages/destinations.h"
#include "pages/dropped.h"
#include "pages/overview.h"
#include "pages/profiles.h"
#include "pages/status.h"
#include "pages/targets.h"
#include "pages/v1_profiles.h"
#include "pages/view.h"

static const char *const label_params[] = {"name", VIEW_PARAMS, NULL};
static const char *const scrape_params[] = {"job", "type", "url", NULL};
static const char *const dropped_params[] = {"job", NULL};
static const char *const trace_params[] = {"id", "job", "source", "address", NULL};
static const char *const no_params[] = {NULL};

const struct route page_routes[] = {
    {"/", .set = ROUTE_QUERY, .work = page_first,
     .about = "services: CPU, memory, targets and versions"},
    {"/profiles", .set = ROUTE_QUERY, .work = page_profiles,
     .about = "profiles: flame graphs and tables"},
    {"/changes", .set = ROUTE_QUERY, .work = page_changes,
     .about = "what changed from one version of a service to the next"},
    {"/api/v1/overview", .set = ROUTE_QUERY, .work = v1_overview, .params = overview_params,
     .about = "services, as JSON"},
    {"/assets/", .is_prefix = true, .set = ROUTE_ADMIN, .work = page_asset},
    {"/assets/", .is_prefix = true, .set = ROUTE_QUERY, .work = page_asset},
    {"/api/v1/services", .set = ROUTE_QUERY, .work = v1_services, .params = view_params,
     .about = "services with profiles"},
    {"/api/v1/types", .set = ROUTE_QUERY, .work = v1_types, .params = view_params,
     .about = "types of a service"},
    {"/api/v1/labels", .set = ROUTE_QUERY, .work = v1_labels, .params = label_params,
     .about = "labels of a service"},
    {"/api/v1/flamegraph", .set = ROUTE_QUERY, .work = v1_flamegraph,
     .about = "levels of a flame graph"},
    {"/api/v1/top", .set = ROUTE_QUERY, .work = v1_top, .about = "the most expensive functions"},
    {"/api/v1/timeline", .set = ROUTE_QUERY, .work = v1_timeline, .about = "totals over time"},
    {"/api/v1/pprof", .set = ROUTE_QUERY, .work = v1_pprof, .about = "a merged profile"},
    {"/targets", .set = ROUTE_ADMIN, .work = page_targets, .about = "every scrape and its state"},
    {"/api/v1/scrape", .set = ROUTE_ADMIN, .methods = ROUTE_POST, .work = v1_scrape,
     .params = scrape_params},
    {"/dropped", .set = ROUTE_ADMIN, .work = page_dropped,
     .about = "targets that were dropped, and the rule that dropped them"},
    {"/api/v1/dropped", .set = ROUTE_ADMIN, .work = v1_dropped, .params = dropped_params,
     .about = "the same as JSON"},
    {"/trace", .set = ROUTE_ADMIN, .work = page_trace},
    {"/api/v1/trace", .set = ROUTE_ADMIN, .work = v1_trace, .params = trace_params},
    {"/destinations", .set = ROUTE_ADMIN, .work = page_destinations,
     .about = "destinations and their ledgers"},
    {"/api/v1/destinations", .set = ROUTE_ADMIN, .work = v1_destinations, .params = no_params,
     .about = "the same as JSON"},
    {"/api/v1/status", .set = ROUTE_ADMIN, .work = v1_status, .params = no_params,
     .about = "how the process is; <code>profpull status</code> shows it"},
    {"/config", .set = ROUTE_ADMIN, .work = page_config, .about = "the effective configuration"},
    {"/api/v1/config", .set = ROUTE_ADMIN, .work = v1_config, .params = no_params,
     .about = "the same as JSON"},
    {.path = NULL},
};

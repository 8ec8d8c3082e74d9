/* Nothing changes state without POST: which routes GET and HEAD reach. */
#include "tests/unit/lib/testing.h"

#include "api/tables.h"
#include "pages/pages.h"

/* The routes that have been checked by a person: they only read. The services of Connect answer 405
 * to all but POST themselves. */
static const char *const readers[] = {
    "/",
    "/-/healthy",
    "/-/ready",
    "/adhocprofiles.v1.AdHocProfileService/",
    "/api/0/",
    "/api/0/profiles",
    "/api/0/profiles/",
    "/api/0/profiles/merge",
    "/api/0/services",
    "/api/0/version",
    "/api/v1/changes",
    "/api/v1/config",
    "/api/v1/destinations",
    "/api/v1/dropped",
    "/api/v1/flamegraph",
    "/api/v1/labels",
    "/api/v1/overview",
    "/api/v1/pprof",
    "/api/v1/services",
    "/api/v1/status",
    "/api/v1/status/buildinfo",
    "/api/v1/targets",
    "/api/v1/timeline",
    "/api/v1/top",
    "/api/v1/trace",
    "/api/v1/types",
    "/assets/",
    "/capabilities.v1.FeatureFlagsService/",
    "/changes",
    "/config",
    "/destinations",
    "/dropped",
    "/links",
    "/metrics",
    "/metrics/recorded",
    "/pgo/",
    "/pprof",
    "/profiles",
    "/pyroscope/label-values",
    "/pyroscope/render",
    "/pyroscope/render-diff",
    "/querier.v1.QuerierService/",
    "/ready",
    "/settings.v1.RecordingRulesService/",
    "/settings.v1.SettingsService/",
    "/targets",
    "/trace",
    "/vcs.v1.VCSService/",
    "/version.v1.Version/",
};

static bool is_reader(const char *path)
{
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        if (strcmp(readers[i], path) == 0) {
            return true;
        }
    }
    return false;
}

static unsigned methods_of(const struct route *route)
{
    return route->methods != 0 ? route->methods : ROUTE_GET;
}

TEST(routes_that_get_reaches_only_read)
{
    static const struct route *const tables[] = {page_routes, API_TABLES, NULL};
    const struct server_options options = {.name = "admin", .routes = tables};
    const struct route *route;
    size_t n = 0;
    for (size_t i = 0; (route = routes_at(&options, i)) != NULL; i++) {
        bool by_get = (methods_of(route) & ROUTE_GET) != 0;
        if (by_get && !is_reader(route->path)) {
            print_error("%s\n", route->path);
            n++;
        }
        if (route->set == ROUTE_RECEIVE) {
            CHECK_INT(methods_of(route), ROUTE_POST, route->path);
        }
    }
    CHECK(n == 0,
          "do GET or HEAD of %zu new routes change anything? If not, list them in `readers`, "
          "otherwise let them have ROUTE_POST",
          n);
}

#include "api/receive/receive_routes.h"

#include "api/receive/ingest.h"
#include "api/receive/otlp.h"
#include "api/receive/otlp_http.h"
#include "api/receive/pprof_post.h"
#include "api/receive/profefe_post.h"
#include "api/receive/push.h"
#include "api/route_errors.h"

const struct route receive_routes[] = {
    {RECEIVE_PUSH_PATH, .set = ROUTE_RECEIVE, .methods = ROUTE_POST, .errors = connect_route_error,
     .work = push_work},
    {"/ingest", .set = ROUTE_RECEIVE, .methods = ROUTE_POST, .errors = connect_route_error,
     .work = ingest_work},
    {"/api/v1/profile/ingest", .set = ROUTE_RECEIVE, .methods = ROUTE_POST,
     .errors = connect_route_error, .work = deepflow_ingest_work},
    {"/api/0/profiles", .set = ROUTE_RECEIVE, .methods = ROUTE_POST, .errors = profefe_route_error,
     .work = profefe_post_work},
    {"/v1/pprof", .set = ROUTE_RECEIVE, .methods = ROUTE_POST, .work = pprof_post_work},
    {RECEIVE_OTLP_PATH, .set = ROUTE_RECEIVE, .methods = ROUTE_POST, .errors = otlp_route_error,
     .work = otlp_http_work},
    {RECEIVE_OTLP_METHOD, .set = ROUTE_RECEIVE, .methods = ROUTE_POST,
     .errors = connect_route_error, .work = otlp_method_work},
    {.path = NULL},
};

#include "api/health.h"

#include "api/answers.h"
#include "api/connect.h"
#include "api/proto/services.pb-c.h"
#include "api/route_errors.h"
#include "api/served.h"

/* Limit of a request: the name of a service. */
#define HEALTH_BODY_MAX ((size_t)1024)
#define READY_TEXT_MAX ((size_t)64 * 1024)

#define PATH "/grpc.health.v1.Health/"

static bool is_ready(const struct served *served)
{
    struct buf text;
    buf_init(&text, READY_TEXT_MAX);
    bool ready = served->ready == NULL || served->ready(served->arg, &text);
    buf_done(&text);
    return ready;
}

/* Returns true for the name of a service of this server, and for "", the server itself. */
static bool is_service(const struct server_options *o, struct sv name)
{
    const struct route *route;
    for (size_t i = 0; name.n > 0 && (route = routes_at(o, i)) != NULL; i++) {
        struct sv path = sv_skip(sv_from(route->path), 1);
        if ((route->set & o->sets) != 0 && route->errors == connect_route_error &&
            sv_starts_with(path, name) && path.n > name.n && path.p[name.n] == '/') {
            return true;
        }
    }
    return name.n == 0;
}

static bool check(struct connect_call *call, const void *request, struct err *err)
{
    const Api__HealthCheckRequest *r = request;
    const struct server_options *o = call->exchange->options;
    if (!is_service(o, sv_from(r->service))) {
        return connect_fail(call, CONNECT_NOT_FOUND, err, "there is no service %s", r->service);
    }
    Api__HealthCheckResponse *answer =
        answer_new(call->arena, &api__health_check_response__descriptor, err);
    if (answer == NULL) {
        return false;
    }
    answer->status =
        is_ready(o->served) ? API__SERVING_STATUS__SERVING : API__SERVING_STATUS__NOT_SERVING;
    call->reply = &answer->base;
    return true;
}

static void serve(struct exchange *x)
{
    static const struct connect_method methods[] = {
        {PATH "Check", &api__health_check_request__descriptor, NULL, check},
    };
    connect_serve(x, methods, 1, HEALTH_BODY_MAX);
}

#define ROW(sets)                                                                                  \
    {                                                                                              \
        PATH, .is_prefix = true, .set = (sets), .methods = ROUTE_POST, .is_open = true,            \
              .is_quick = true, .errors = connect_route_error, .work = serve                       \
    }

const struct route health_routes[] = {
    ROW(ROUTE_ADMIN),
    ROW(ROUTE_QUERY),
    ROW(ROUTE_RECEIVE),
    {.path = NULL},
};

#include "server/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/deepflow.h"
#include "api/pgo.h"
#include "api/profefe.h"
#include "api/querier.h"
#include "api/receive/receive_routes.h"
#include "api/render.h"
#include "api/services.h"
#include "api/targets_json.h"
#include "base/buf.h"
#include "pages/pages.h"
#include "server/control.h"

#define LINKS_MAX ((size_t)64 * 1024)
/* Bytes of a parameter that an error quotes. */
#define PARAM_SHOWN 64
#define READY_TEXT_MAX ((size_t)64 * 1024)
/* A metrics page of 64 MiB would be a defect, not a page. */
#define METRICS_PAGE_MAX ((size_t)64 * 1024 * 1024)

/* ---- replies --------------------------------------------------------------------------------- */

void reply_plain(struct connection *c, int status, const char *text)
{
    connection_reply(c, status, "text/plain; charset=utf-8", sv_from(text));
}

/* The code of Connect for what the server itself answers. */
static const char *connect_code(int status)
{
    static const struct {
        int status;
        const char *code;
    } rows[] = {
        {400, "invalid_argument"},   {401, "unauthenticated"},    {408, "deadline_exceeded"},
        {413, "resource_exhausted"}, {429, "resource_exhausted"}, {499, "canceled"},
        {500, "internal"},           {503, "unavailable"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == status) {
            return rows[i].code;
        }
    }
    return "unknown";
}

void reply_error(struct connection *c, enum route_errors errors, int status, struct sv headers,
                 const char *message)
{
    struct buf body;
    const char *type = "application/json";
    buf_init(&body, LINKS_MAX);
    if (errors == ROUTE_ERRORS_CONNECT && status == STATUS_METHOD) {
        type = NULL; /* Connect's own servers send no body with it */
    } else if (errors == ROUTE_ERRORS_CONNECT) {
        buf_puts(&body, "{");
        json_member("code", sv_from(connect_code(status)), &body);
        json_member("message", sv_from(message), &body);
        buf_puts(&body, "}");
    } else if (errors == ROUTE_ERRORS_PROFEFE) {
        buf_printf(&body, "{\"code\":%d", status);
        json_member("error", sv_from(message), &body);
        buf_puts(&body, "}\n");
    } else {
        type = "text/plain; charset=utf-8";
        buf_printf(&body, "%s\n", message);
    }
    connection_answer(c, &(struct connection_answer){
                             .status = status, .type = type, .headers = headers, .body = &body});
    buf_done(&body);
}

void reply_bad_query(struct connection *c, const char *message)
{
    struct buf body;
    buf_init(&body, LINKS_MAX);
    buf_putc(&body, '{');
    json_member("error", sv_from(message), &body);
    buf_puts(&body, "}\n");
    connection_reply(c, STATUS_BAD_REQUEST, "application/json", (struct sv){body.data, body.len});
    buf_done(&body);
}

static bool is_known(const char *const *names, struct sv name)
{
    while (*names != NULL && !sv_eq_str(name, *names)) {
        names++;
    }
    return *names != NULL;
}

/* Says which parameter is wrong, and which ones there are. */
static void refuse_param(struct connection *c, struct sv name, const char *const *known)
{
    size_t n = 0;
    struct buf list;
    struct buf text;
    buf_init(&list, LINKS_MAX);
    buf_init(&text, LINKS_MAX);
    for (; known[n] != NULL; n++) {
        buf_printf(&list, "%s%s", n == 0 ? "" : ", ", known[n]);
    }
    const char *near = suggest(name, known, n);
    buf_printf(&text, "unknown parameter \"%.*s\"%s%s%s: expected %s",
               name.n < PARAM_SHOWN ? (int)name.n : PARAM_SHOWN, name.p,
               near == NULL ? "" : ", did you mean \"", near == NULL ? "" : near,
               near == NULL ? "" : "\"?", n == 0 ? "none" : list.data);
    reply_bad_query(c, buf_ok(&text) && buf_ok(&list) ? text.data : "unknown parameter");
    buf_done(&text);
    buf_done(&list);
}

bool routes_check_params(struct connection *c, const struct request *r, const struct route *route)
{
    for (size_t i = 0; route != NULL && route->params != NULL && i < r->n_params; i++) {
        if (!is_known(route->params, r->params[i].name)) {
            refuse_param(c, r->params[i].name, route->params);
            return false;
        }
    }
    return true;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void reply_healthy(struct connection *c, const struct request *r,
                          const struct server_options *options)
{
    (void)r;
    struct err err = ERR_INIT;
    bool ok = options->healthy == NULL || options->healthy(options->arg, &err);
    char text[ERR_MSG_MAX + 8];
    snprintf(text, sizeof(text), "%s%s%s", ok ? "ok\n" : "", err.msg,
             err.msg[0] != '\0' ? "\n" : "");
    reply_plain(c, ok ? STATUS_OK : STATUS_UNAVAILABLE, text);
}

static void reply_ready(struct connection *c, const struct request *r,
                        const struct server_options *options)
{
    (void)r;
    struct buf text;
    buf_init(&text, READY_TEXT_MAX);
    bool ready = options->ready == NULL || options->ready(options->arg, &text);
    struct buf page;
    buf_init(&page, READY_TEXT_MAX + 16);
    buf_printf(&page, "%s%s%s", ready ? "ok\n" : "", text.data, text.len > 0 ? "\n" : "");
    reply_plain(c, ready ? STATUS_OK : STATUS_UNAVAILABLE, page.data);
    buf_done(&text);
    buf_done(&page);
}

static void reply_metrics(struct connection *c, const struct request *r,
                          const struct server_options *options)
{
    (void)r;
    struct buf page;
    buf_init(&page, METRICS_PAGE_MAX);
    if (metrics_render(options->metrics, &page) && buf_ok(&page)) {
        connection_reply(c, STATUS_OK, "text/plain; version=0.0.4; charset=utf-8",
                         (struct sv){page.data, page.len});
    } else {
        reply_plain(c, STATUS_INTERNAL, "out of memory while rendering the metrics\n");
    }
    buf_done(&page);
}

static void reply_links(struct connection *c, const struct request *r,
                        const struct server_options *options)
{
    (void)r;
    const struct route *route;
    struct buf page;
    buf_init(&page, LINKS_MAX);
    buf_printf(&page, "<!doctype html><title>profpull</title><h1>profpull %s</h1><ul>",
               options->version);
    for (size_t i = 0; (route = routes_at(options, i)) != NULL; i++) {
        if (route->about != NULL && (route->set & options->sets) != 0) {
            buf_printf(&page, "<li><a href=\"%s\">%s</a> %s", route->path, route->path,
                       route->about);
        }
    }
    buf_puts(&page, "</ul>\n");
    connection_reply(c, STATUS_OK, "text/html; charset=utf-8", (struct sv){page.data, page.len});
    buf_done(&page);
}

/* ---- routes ---------------------------------------------------------------------------------- */

static const struct route agent_routes[] = {
    {"/", .set = ROUTE_ADMIN, .handle = reply_links}, /* if profiles are not shown here */
    {"/links", .set = ROUTE_ADMIN, .handle = reply_links},
    {"/metrics", .set = ROUTE_ADMIN, .handle = reply_metrics,
     .about = "counters, gauges and histograms"},
    {"/api/v1/targets", .set = ROUTE_ADMIN, .handle = reply_targets, .params = targets_params,
     .about = "every scrape and its state; <a "
              "href=\"/api/v1/targets?health=down\">?health=down</a> the failing ones"},
    /* Kubelets have no credentials. */
    {"/-/healthy", .set = ROUTE_ADMIN, .is_open = true, .handle = reply_healthy,
     .about = "whether the process works"},
    {"/-/ready", .set = ROUTE_ADMIN, .is_open = true, .handle = reply_ready,
     .about = "whether discovery has been read"},
    {.path = NULL},
};

/* A new API adds a line. */
static const struct route *const tables[] = {
    page_routes,   agent_routes,    control_routes, receive_routes,  querier_routes,
    render_routes, services_routes, profefe_routes, deepflow_routes, pgo_routes,
};

/* The i-th row of a table; *i becomes less by the rows of it. NULL past the last one. */
static const struct route *row_of(const struct route *table, size_t *i)
{
    for (const struct route *route = table; route != NULL && route->path != NULL; route++) {
        if ((*i)-- == 0) {
            return route;
        }
    }
    return NULL;
}

const struct route *routes_at(const struct server_options *options, size_t i)
{
    const struct route *route = row_of(options->routes, &i);
    for (size_t t = 0; route == NULL && t < sizeof(tables) / sizeof(tables[0]); t++) {
        route = row_of(tables[t], &i);
    }
    return route;
}

static bool serves(const struct route *route, struct sv path)
{
    struct sv own = sv_from(route->path);
    return sv_eq(path, own) || (route->is_prefix && sv_starts_with(path, own));
}

static unsigned methods_of(const struct route *route)
{
    return route->methods != 0 ? route->methods : ROUTE_GET;
}

static struct route_match find(const struct server_options *options, unsigned sets,
                               enum request_method method, struct sv path)
{
    struct route_match match = {.route = NULL};
    const struct route *route;
    for (size_t i = 0; (route = routes_at(options, i)) != NULL; i++) {
        if ((route->set & sets) == 0 || !serves(route, path)) {
            continue;
        }
        if ((methods_of(route) >> method & 1) != 0) {
            match.route = route;
            return match;
        }
        match.other = match.other == NULL ? route : match.other;
        match.methods |= methods_of(route);
    }
    return match;
}

/* Cuts a prefix off that ends before a slash. */
static bool cut_prefix(struct sv *path, struct sv prefix)
{
    struct sv rest = *path;
    if (prefix.n == 0 || !sv_starts_with(rest, prefix)) {
        return false;
    }
    rest = sv_skip(rest, prefix.n);
    if (rest.n == 0 || rest.p[0] != '/') {
        return false;
    }
    *path = rest;
    return true;
}

/* "//x" is how "/" at the end of a URL and "/x" are joined. */
static struct sv without_slashes(struct sv path)
{
    while (path.n > 1 && path.p[0] == '/' && path.p[1] == '/') {
        path = sv_skip(path, 1);
    }
    return path;
}

static bool is_found(const struct route_match *match)
{
    return match->route != NULL || match->other != NULL;
}

struct route_match routes_find(const struct server_options *options, struct request *r)
{
    static const char *const kept[] = {"/pyroscope", "/profile"};
    r->path = without_slashes(r->path);
    struct route_match match = find(options, options->sets, r->method, r->path);
    if (!is_found(&match) && cut_prefix(&r->path, sv_from(options->path_prefix))) {
        r->path = without_slashes(r->path);
        match = find(options, options->sets, r->method, r->path);
    }
    for (size_t i = 0; !is_found(&match) && i < sizeof(kept) / sizeof(kept[0]); i++) {
        struct sv rest = r->path;
        if (cut_prefix(&rest, sv_from(kept[i]))) {
            rest = without_slashes(rest);
            match = find(options, options->sets & (ROUTE_QUERY | ROUTE_RECEIVE), r->method, rest);
            r->path = is_found(&match) ? rest : r->path;
        }
    }
    return match;
}

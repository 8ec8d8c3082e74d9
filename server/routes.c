#include "server/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define ERROR_MAX ((size_t)64 * 1024)
/* Bytes of an unknown parameter that an error quotes. */
#define PARAM_SHOWN 64

/* ---- replies --------------------------------------------------------------------------------- */

void reply_plain(struct connection *c, int status, const char *text)
{
    connection_reply(c, status, "text/plain; charset=utf-8", sv_from(text));
}

void reply_error(struct connection *c, route_error_writer *errors, int status, struct sv headers,
                 const char *message)
{
    struct route_error e = {.request = connection_request(c), .message = message, .status = status};
    buf_init(&e.headers, ERROR_MAX);
    buf_init(&e.body, ERROR_MAX);
    buf_append(&e.headers, headers.p, headers.n);
    if (errors != NULL) {
        errors(&e);
    } else {
        e.type = "text/plain; charset=utf-8";
        buf_printf(&e.body, "%s\n", message);
    }
    connection_answer(c, &(struct connection_answer){.status = e.status,
                                                     .type = e.type,
                                                     .headers = {e.headers.data, e.headers.len},
                                                     .body = &e.body});
    buf_done(&e.headers);
    buf_done(&e.body);
}

void reply_bad_query(struct connection *c, const char *message)
{
    struct buf body;
    buf_init(&body, ERROR_MAX);
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

/* Answers 400, and names the wrong parameter and those that the route has. */
static void refuse_param(struct connection *c, struct sv name, const char *const *known)
{
    size_t n = 0;
    struct buf list;
    struct buf text;
    buf_init(&list, ERROR_MAX);
    buf_init(&text, ERROR_MAX);
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

/* ---- routes ---------------------------------------------------------------------------------- */

/* Returns the i-th row of a table, or NULL past the last one; then *i is reduced by the number of
 * rows. */
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
    const struct route *route = NULL;
    for (size_t t = 0; route == NULL && options->routes != NULL && options->routes[t] != NULL;
         t++) {
        route = row_of(options->routes[t], &i);
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

/* Removes a prefix that ends before a slash. */
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

/* Removes all but one of the slashes at the start: "//x" comes from joining a URL that ends in "/"
 * with "/x". */
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
    const char *const *prefix = options->api_prefixes;
    r->path = without_slashes(r->path);
    struct route_match match = find(options, options->sets, r->method, r->path);
    if (!is_found(&match) && cut_prefix(&r->path, sv_from(options->path_prefix))) {
        r->path = without_slashes(r->path);
        match = find(options, options->sets, r->method, r->path);
    }
    for (; !is_found(&match) && prefix != NULL && *prefix != NULL; prefix++) {
        struct sv rest = r->path;
        if (cut_prefix(&rest, sv_from(*prefix))) {
            rest = without_slashes(rest);
            match = find(options, options->sets & (ROUTE_QUERY | ROUTE_RECEIVE), r->method, rest);
            r->path = is_found(&match) ? rest : r->path;
        }
    }
    return match;
}

/* The pages and APIs of the admin server: one table, one row for each.
 *
 * A handler runs on the server's thread, answers its request and takes what it needs from the
 * options. A new page is a file with a handler and a row in routes.c.
 */
#ifndef PROFPULL_SERVER_ROUTES_H
#define PROFPULL_SERVER_ROUTES_H

#include <event2/http.h>

#include "server/server.h"

typedef void route_handler(struct evhttp_request *req, const struct server_options *options);

struct route {
    enum evhttp_cmd_type method; /* EVHTTP_REQ_GET answers HEAD as well */
    const char *path;
    route_handler *handle;
    const char *about; /* HTML, for the page of links; NULL: not listed */
};

/* NULL past the last one. */
const struct route *route_at(size_t i);
/* Answers a request by its route, or that there is none. */
void routes_dispatch(struct evhttp_request *req, const struct server_options *options);

/* Answers with a whole body. */
void reply_text(struct evhttp_request *req, int code, const char *type, const char *text,
                size_t len);
void reply_plain(struct evhttp_request *req, int code, const char *text);

#endif

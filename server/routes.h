/* The pages and APIs of the admin server: one table, one row for each.
 *
 * A handler runs on the server's thread, answers its request and takes what it needs from the
 * options. A new page is a file with a handler and a row in routes.c.
 */
#ifndef PROFPULL_SERVER_ROUTES_H
#define PROFPULL_SERVER_ROUTES_H

#include "server/connection.h"
#include "server/server.h"

#define STATUS_OK 200
#define STATUS_NOT_FOUND 404
#define STATUS_INTERNAL 500
#define STATUS_UNAVAILABLE 503

typedef void route_handler(struct connection *c, const struct request *r,
                           const struct server_options *options);

/* Routes answer GET; HEAD gets the same without the body. */
struct route {
    const char *path;
    route_handler *handle;
    const char *about; /* HTML, for the page of links; NULL: not listed */
};

/* NULL past the last one. */
const struct route *route_at(size_t i);
/* Answers a request by its route, or that there is none. */
void routes_dispatch(struct connection *c, const struct request *r,
                     const struct server_options *options);

/* Answers with a text. */
void reply_plain(struct connection *c, int status, const char *text);

#endif

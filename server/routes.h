/* Routes of a server: tables of rows. api/ and pages/ define them, and the server's options list
 * them.
 *
 * A handler of a plain route (`handle`) runs on the server's thread and must not block: it answers
 * its request from what the options point to. A handler that may block (`work`) runs on a thread of
 * the pool for its set, after the body was read (server/exchange.h).
 */
#ifndef PROFPULL_SERVER_ROUTES_H
#define PROFPULL_SERVER_ROUTES_H

#include "server/connection.h"
#include "server/server.h"

#define STATUS_OK 200
#define STATUS_BAD_REQUEST 400
#define STATUS_UNAUTHORIZED 401
#define STATUS_NOT_FOUND 404
#define STATUS_METHOD 405
#define STATUS_BUSY 429
#define STATUS_CANCELLED 499
#define STATUS_INTERNAL 500
#define STATUS_UNAVAILABLE 503

struct exchange;

typedef void route_handler(struct connection *c, const struct request *r,
                           const struct server_options *options);
typedef void route_work(struct exchange *x);

/* An error that the server itself reports, such as a wrong method, missing credentials, a body that
 * is too large, or too many requests. */
struct route_error {
    const struct request *request; /* NULL if its head could not be read */
    const char *message;
    /* The response, which the writer completes. */
    int status;
    const char *type;   /* NULL: a response without a body */
    struct buf headers; /* "Name: value\r\n" each */
    struct buf body;
};
/* Writes an error in the format of an API. */
typedef void route_error_writer(struct route_error *e);

/* Value for `methods` of a route. */
#define ROUTE_GET (1U << REQUEST_GET | 1U << REQUEST_HEAD)
#define ROUTE_POST (1U << REQUEST_POST)
#define ROUTE_ANY (~0U)

struct route {
    const char *path; /* begins with "/" */
    bool is_prefix;   /* the path ends with "/", and the route also serves all paths below it */
    unsigned set;     /* ROUTE_ADMIN, ROUTE_QUERY, ROUTE_RECEIVE or ROUTE_PEERS */
    /* Methods that the route serves; all others get 405. 0: ROUTE_GET. HEAD gets the response to
     * GET without its body. */
    unsigned methods;
    route_error_writer *errors; /* NULL: a line of text */
    bool is_open;               /* no credentials are needed */
    /* The parameters of the query, ended by NULL. A request with another parameter gets 400, so
     * that a misspelt filter is not ignored. NULL: the handler checks them. */
    const char *const *params;
    /* `work` runs on the thread of the server, so that it waits for no others: it must not block.
     */
    bool is_quick;
    route_handler *handle; /* exactly one of `handle` and `work` is set */
    route_work *work;
    const char *about; /* HTML, for the page of links; NULL: not listed */
};

struct route_match {
    const struct route *route; /* NULL: no route has the path, or none has it for this method */
    /* if route is NULL, a route of this path for other methods; NULL: none */
    const struct route *other;
    unsigned methods; /* if other is not NULL, the methods that the path has */
};
/* Finds the first route of the server's sets for the path and method of a request. Several slashes
 * at the start of a path count as one. The path may begin with the path_prefix of the options, and
 * the path of an API also with one of their api_prefixes. The path of the request becomes the rest
 * after the prefix. */
struct route_match routes_find(const struct server_options *options, struct request *r);

/* Checks the parameters of a request. If it has one that the route does not have, answers 400 with
 * {"error":"..."} and returns false. If route is NULL, all parameters are accepted. */
bool routes_check_params(struct connection *c, const struct request *r, const struct route *route);

/* Answers 400 with {"error":"..."}. */
void reply_bad_query(struct connection *c, const char *message);
/* Returns the i-th row of all tables of the options, whichever sets the server has; NULL past the
 * last row. */
const struct route *routes_at(const struct server_options *options, size_t i);

/* Answers with a plain text. */
void reply_plain(struct connection *c, int status, const char *text);
/* Answers with an error of the server itself. errors NULL: the body is a line of text; headers:
 * further headers, or SV(""). */
void reply_error(struct connection *c, route_error_writer *errors, int status, struct sv headers,
                 const char *message);

#endif

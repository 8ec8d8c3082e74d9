/* Routes of a server: tables of rows, which api/ and pages/ provide and the options pass in.
 *
 * A handler runs on the server's thread, answers its request and takes what it needs from the
 * options; it must not block. A handler that works (`work`) runs on a thread of the pool for its
 * set, with the whole body (server/exchange.h).
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

/* Writes the body of an error that the server itself answers: a wrong method, no credentials, too
 * large a body, too many requests. Returns its content type; NULL for an answer without a body. */
typedef const char *route_error_writer(int status, const char *message, struct buf *body);

/* For `methods` of a route. */
#define ROUTE_GET (1U << REQUEST_GET | 1U << REQUEST_HEAD)
#define ROUTE_POST (1U << REQUEST_POST)
#define ROUTE_ANY (~0U)

struct route {
    const char *path; /* begins with "/" */
    bool is_prefix;   /* the path ends with "/", and stands for all below it too */
    unsigned set;     /* ROUTE_ADMIN, ROUTE_QUERY or ROUTE_RECEIVE */
    /* Others are answered 405. 0: ROUTE_GET; HEAD gets what GET gets without the body. */
    unsigned methods;
    route_error_writer *errors; /* NULL: a line of text */
    bool is_open;               /* credentials are not asked for */
    /* The parameters of the query, NULL after the last one; a request with another one is answered
     * 400, so that a misspelt filter is not taken for none. NULL: the handler sees to it. */
    const char *const *params;
    route_handler *handle; /* one of these two */
    route_work *work;
    const char *about; /* HTML, for the page of links; NULL: not listed */
};

struct route_match {
    const struct route *route; /* NULL: none, or none for the method */
    const struct route *other; /* then, if there is one for other methods */
    unsigned methods;          /* then, what they are */
};
/* The first route of the server's sets for the path and method of a request. Several slashes at the
 * start of a path count as one. The path may follow the path_prefix of the options, and a path of
 * an API also one of their api_prefixes; the path of the request becomes the rest after the prefix.
 */
struct route_match routes_find(const struct server_options *options, struct request *r);

/* Answers 400 as {"error":"..."} and returns false if the request has a parameter that the route
 * does not know; route NULL: any is fine. */
bool routes_check_params(struct connection *c, const struct request *r, const struct route *route);

/* Answers 400 with {"error":"..."}. */
void reply_bad_query(struct connection *c, const char *message);
/* Returns the i-th row of all tables of the options, whatever the server's sets are; NULL past the
 * last row. */
const struct route *routes_at(const struct server_options *options, size_t i);

/* Answers with a text. */
void reply_plain(struct connection *c, int status, const char *text);
/* Answers with an error of the server's own. errors NULL: a line of text; headers: further ones, or
 * SV(""). */
void reply_error(struct connection *c, route_error_writer *errors, int status, struct sv headers,
                 const char *message);

#endif

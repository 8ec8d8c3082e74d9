/* The threads on which the handlers of APIs work, and the bounded line before them.
 *
 * Requests are given to it, and answered by it, on the loop of their server. A request that finds
 * the line full is refused at once; one whose client has hung up, or whose time is over, before its
 * turn comes is not worked on.
 */
#ifndef PROFPULL_SERVER_EXCHANGE_POOL_H
#define PROFPULL_SERVER_EXCHANGE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "server/connection.h"
#include "server/routes.h"
#include "server/server.h"

struct exchange_pool;
struct server_setup;

struct exchange_pool_options {
    const char *name; /* "query" or "receive", for metrics */
    struct loop *loop;
    struct metrics *metrics;
    unsigned threads;
};

struct exchange_pool *exchange_pool_new(const struct exchange_pool_options *o, struct err *err);
/* Waits for the handlers that run, once the connections have been freed: the others are not called
 * any more. Accepts NULL. */
void exchange_pool_stop(struct exchange_pool *p);
/* After the loop has been freed. Accepts NULL, returns NULL. */
struct exchange_pool *exchange_pool_free(struct exchange_pool *p);
/* Holds the connection, whose body is there, and lets the route's handler answer it by the
 * present setup of the server. False, and
 * nothing has happened, if the line is full or memory is short. */
bool exchange_pool_submit(struct exchange_pool *p, struct connection *c, const struct route *route,
                          const struct request *r, struct server_setup *setup);

#endif

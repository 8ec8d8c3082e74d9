/* The threads on which the handlers of APIs work, and the bounded queue of requests before them.
 *
 * The loop of the server submits requests and sends the responses. If the queue is full, a request
 * is refused at once. The threads give way to those that scrape (thread_lower()). A request whose
 * client hangs up, or whose deadline passes, while it is queued is not worked on.
 */
#ifndef PROFPULL_SERVER_EXCHANGE_POOL_H
#define PROFPULL_SERVER_EXCHANGE_POOL_H

#include <netinet/in.h>
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

/* The client of a request. */
struct exchange_client {
    struct in6_addr address;
    bool has_neighbours; /* other addresses have connections as well */
};

struct exchange_pool *exchange_pool_new(const struct exchange_pool_options *o, struct err *err);
/* Waits for the handlers that run; requests that are still queued are not handled. Call it after
 * the connections have been freed. Accepts NULL. */
void exchange_pool_stop(struct exchange_pool *p);
/* Frees the pool, after the loop has been freed. Accepts NULL, returns NULL. */
struct exchange_pool *exchange_pool_free(struct exchange_pool *p);
/* Holds the connection, whose body is complete, and queues its request for the route's handler,
 * which gets the current setup of the server. A quick handler (route->is_quick) runs at once.
 * Returns false and changes nothing if the queue is full, if memory is short, or if the client has
 * half of the queue's places already while other addresses are connected: the rest is for these. */
bool exchange_pool_submit(struct exchange_pool *p, struct connection *c, const struct route *route,
                          const struct request *r, struct server_setup *setup,
                          const struct exchange_client *client);

#endif

/* The admin HTTP server, on a thread and loop of its own. Its pages and APIs are in
 * server/routes.c:
 *
 *     GET /metrics          Prometheus text format
 *     GET /-/healthy        200 while every loop runs (last tick under 5 s ago)
 *     GET /-/ready          200 once the configuration is loaded and discovery has synced
 *     GET /api/v1/targets   JSON: every scrape with state, last error, last duration, next due
 *     GET /                 a page of links
 *
 * It reads snapshots and atomics only: a slow or hostile client delays no other thread. Nor does it
 * keep others from being answered, a health check above all: a connection serves one request in a
 * bounded time, and a new one always gets a place. If all are taken, the oldest connection of the
 * address that has the most of them ends for it.
 */
#ifndef PROFPULL_SERVER_SERVER_H
#define PROFPULL_SERVER_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "scraper/scraper.h"

struct server;

/* Everything in it outlives the server. */
struct server_options {
    const char *listen; /* "0.0.0.0:4041", "[::1]:0" */
    unsigned max_connections;
    unsigned max_connections_per_address;
    int64_t request_timeout_ms; /* for the head of a request, from the connection on */
    int64_t answer_timeout_ms;  /* for sending the answer, whole */
    struct log *log;
    struct metrics *metrics;
    struct scraper *scraper;
    const char *version;
    /* Called on the server's thread; false with the reason in err, true perhaps with a warning
     * there. */
    bool (*healthy)(void *arg, struct err *err);
    /* The same; the reason, or what should be known although it is ready, is appended to text. */
    bool (*ready)(void *arg, struct buf *text);
    void *arg;
};

/* Binds and starts the thread. The error names the address. */
struct server *server_start(const struct server_options *options, struct err *err);
/* The port that was bound (the kernel chooses one for port 0). */
uint16_t server_port(const struct server *s);
struct server *server_stop(struct server *s); /* accepts NULL, returns NULL */

#endif

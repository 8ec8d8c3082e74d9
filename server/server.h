/* The admin HTTP server, on a thread and loop of its own (libevent's evhttp). Its pages and APIs
 * are in server/routes.c:
 *
 *     GET /metrics          Prometheus text format
 *     GET /-/healthy        200 while every loop runs (last tick under 5 s ago)
 *     GET /-/ready          200 once the configuration is loaded and discovery has synced
 *     GET /api/v1/targets   JSON: every scrape with state, last error, last duration, next due
 *     GET /                 a page of links
 *
 * It reads snapshots and atomics only: a slow or hostile client delays no other thread.
 */
#ifndef PROFPULL_SERVER_SERVER_H
#define PROFPULL_SERVER_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "scraper/scraper.h"

/* Limits against clients. */
#define SERVER_CONNECTIONS_MAX 64
#define SERVER_HEADERS_MAX (16 * 1024)
#define SERVER_BODY_MAX 1024
#define SERVER_TIMEOUT_S 30

struct server;

/* Everything in it outlives the server. */
struct server_options {
    const char *listen; /* "0.0.0.0:4041", "[::1]:0" */
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

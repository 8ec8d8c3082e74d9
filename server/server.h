/* An HTTP server with a thread and a loop of its own. It defines no page and no API: the options
 * pass in tables of routes (server/routes.h) of up to three sets, namely pages of the agent, APIs
 * that answer queries, and APIs that receive profiles. A process has one admin server, and up to
 * two further servers for the APIs.
 *
 * The pages of the agent only read snapshots and atomics, and APIs work on the threads of a pool,
 * so a slow or hostile client delays no other thread. Such a client does not keep the server from
 * answering others either, above all health checks: each step of a connection has a time limit, and
 * a new connection always gets a place. If all places are taken, one connection ends: of the
 * address with the most connections, the one that has had no request for the longest time.
 */
#ifndef PROFPULL_SERVER_SERVER_H
#define PROFPULL_SERVER_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "http/http.h"

struct route;
struct served;
struct server;
struct web_tls;
struct write_ledger;

/* Sets of routes. */
#define ROUTE_ADMIN 1U
#define ROUTE_QUERY 2U
#define ROUTE_RECEIVE 4U
/* Questions of other processes: with the limits of queries, but on threads of their own, because
 * the threads for queries of both processes may wait for each other. */
#define ROUTE_PEERS 8U

/* Limits for the handlers of an API. */
struct server_work {
    unsigned threads;     /* requests that are worked on at the same time */
    unsigned waiting_max; /* requests that may wait for a thread; further ones are refused */
    int64_t timeout_ms;   /* time for a request, including the wait for a thread */
    uint64_t bytes_max;   /* memory that a request may use */
    uint64_t body_max;    /* a larger body is refused */
    /* The credentials that clients must have. NULL, or settings without any: those of the agent's
     * pages. */
    const struct http_settings *access;
};

/* Files in PEM for TLS. */
struct server_tls {
    const char *cert_file; /* NULL: no TLS */
    const char *key_file;
    /* clients need a certificate of this authority; NULL: they need none */
    const char *client_ca_file;
    /* Further TLS settings of a web configuration file, which also says whether clients need a
     * certificate; NULL: there is no such file. */
    const struct web_tls *web;
    bool no_http2;    /* ALPN does not offer HTTP/2 */
    unsigned version; /* version of the web configuration file; a new version means new settings */
};

/* Options of a server. All that they point to must live until release() is called, or as long as
 * the server. */
struct server_options {
    const char *listen_option; /* what sets `listen`, for messages: "receive.listen"; may be NULL */
    /* "admin", "query" or "receive": for the name of the thread, the log and metrics */
    const char *name;
    const char *listen; /* "0.0.0.0:4041", "[::1]:0" */
    unsigned sets;      /* the sets of routes that it serves */
    unsigned max_connections;
    unsigned max_connections_per_address;
    /* Streams of HTTP/2: of all connections together, and of one. */
    unsigned max_streams;
    unsigned max_streams_per_connection;
    int64_t request_timeout_ms; /* time for the head of a request, from its first byte */
    int64_t answer_timeout_ms;  /* time for sending a complete response */
    int64_t idle_timeout_ms;    /* time until the next request begins */
    uint64_t bodies_max_bytes;  /* all bodies together */
    struct server_tls tls;
    const char *web_config_file; /* replaces tls and access (web.h); NULL: no such file */
    /* credentials for the pages of the agent; NULL: none are needed */
    const struct http_settings *access;
    const char *path_prefix;    /* paths may begin with it, such as "/profiles"; NULL: no prefix */
    struct server_work query;   /* limits for all other `work` routes */
    struct server_work receive; /* limits for `work` routes of ROUTE_RECEIVE */
    /* Tables of routes, each ended by a row without a path. The list ends with NULL; NULL stands
     * for an empty list. The first row that fits a request answers it. */
    const struct route *const *routes;
    /* Prefixes, such as "/pyroscope", that paths of APIs may have as well. The list ends with NULL;
     * NULL stands for an empty list. */
    const char *const *api_prefixes;
    struct log *log;
    struct metrics *metrics;
    /* the parts of the process that handlers read; the server does not use them */
    const struct served *served;
    /* Called when the options are no longer used, also after an error. NULL: there is nothing to
     * release. */
    void (*release)(void *owner);
    void *owner;
};

/* Binds the address and starts the thread. The error names the address. */
struct server *server_start(const struct server_options *options, struct err *err);
/* Returns the port that was bound. If the options ask for port 0, the kernel has chosen it. */
uint16_t server_port(const struct server *s);

/* Prepares other options, with the same name, for a running server. The address, the sets, whether
 * there is a web configuration file, and the numbers of connections and threads cannot change: an
 * error names the key. A file of the new options that cannot be used is an error as well. Call it
 * on the main thread. */
struct server_setup;
struct server_setup *server_prepare(struct server *s, const struct server_options *next,
                                    struct err *err);
/* Puts a prepared setup into force: the next request is answered by it. Connections stay open, and
 * requests that are being worked on keep their setup. */
void server_commit(struct server *s, struct server_setup *setup);
/* Gives up a prepared setup that was not committed, and calls release(). Accepts NULL. */
void server_discard(struct server_setup *setup);

struct server *server_stop(struct server *s); /* accepts NULL, returns NULL */

#endif

/* An HTTP server on a thread and loop of its own. It has no page and no API of its own: the options
 * pass in tables of routes (server/routes.h), of up to three sets: pages of the agent, APIs that
 * answer queries, and APIs that receive profiles. A process has the admin server, and perhaps
 * others for the APIs.
 *
 * The pages of the agent read snapshots and atomics only, and APIs work on threads of a pool: a
 * slow or hostile client delays no other thread. Nor does it keep others from being answered, a
 * health check above all: each step of a connection has a bounded time, and a new one always gets a
 * place. If all are taken, the one of the address with the most connections ends that has had no
 * request for the longest time.
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

/* How handlers of an API work. */
struct server_work {
    unsigned threads;     /* requests that are worked on at the same time */
    unsigned waiting_max; /* and that wait for it; further ones are refused */
    int64_t timeout_ms;   /* of a request, waiting included */
    uint64_t bytes_max;   /* memory that a request may use */
    uint64_t body_max;    /* a larger body is refused */
    /* The credentials that clients must have; NULL or without any: those of the agent's pages. */
    const struct http_settings *access;
};

/* Files in PEM. */
struct server_tls {
    const char *cert_file; /* NULL: no TLS */
    const char *key_file;
    const char *client_ca_file; /* clients need a certificate of it; NULL: they need none */
    /* The rest of it, of a web configuration file, which also says whether clients need one; NULL:
     * there is no such file. */
    const struct web_tls *web;
    unsigned version; /* of that file; another one means other settings */
};

/* Everything in it outlives the server, or until release() is called. */
struct server_options {
    const char *name;   /* "admin", "query" or "receive": for the thread, the log and metrics */
    const char *listen; /* "0.0.0.0:4041", "[::1]:0" */
    unsigned sets;      /* of routes */
    unsigned max_connections;
    unsigned max_connections_per_address;
    int64_t request_timeout_ms; /* for the head of a request, from its first byte on */
    int64_t answer_timeout_ms;  /* for sending the answer, whole */
    int64_t idle_timeout_ms;    /* for the next request to begin */
    uint64_t bodies_max_bytes;  /* all bodies together */
    struct server_tls tls;
    const char *web_config_file;        /* in place of tls and access (web.h); NULL: none */
    const struct http_settings *access; /* for the pages of the agent; NULL: for everybody */
    const char *path_prefix;            /* "/profiles": paths may begin with it; NULL for none */
    struct server_work query;           /* for work of ROUTE_ADMIN and ROUTE_QUERY */
    struct server_work receive;         /* for work of ROUTE_RECEIVE */
    /* Tables of routes, each ended by a row without a path; NULL after the last one, and for none.
     * The first row that fits a request answers it. */
    const struct route *const *routes;
    /* Prefixes that paths of APIs may have besides, such as "/pyroscope"; NULL after the last one,
     * and for none. */
    const char *const *api_prefixes;
    struct log *log;
    struct metrics *metrics;
    const struct served *served; /* what handlers read of the process; opaque here */
    /* Called when the options are not used any more, also after an error; NULL: nothing is to be
     * released. */
    void (*release)(void *owner);
    void *owner;
};

/* Binds and starts the thread. The error names the address. */
struct server *server_start(const struct server_options *options, struct err *err);
/* The port that was bound (the kernel chooses one for port 0). */
uint16_t server_port(const struct server *s);

/* Other options for a server that runs, of the same name. What is not said here may change: the
 * address, the sets, and the numbers of connections and threads are those of the start, and others
 * are an error that names the key. An error also if a file of them cannot be used. The main thread.
 */
struct server_setup;
struct server_setup *server_prepare(struct server *s, const struct server_options *next,
                                    struct err *err);
/* The next request is answered by them; connections stay. Those that are worked on keep theirs. */
void server_commit(struct server *s, struct server_setup *setup);
/* In place of that; calls release(). Accepts NULL. */
void server_discard(struct server_setup *setup);

struct server *server_stop(struct server *s); /* accepts NULL, returns NULL */

#endif

/* One connection of a client to a server of ours: it reads a request, answers it, and waits for the
 * next one. Each step has a time limit, however the bytes are split: the head, the body (by its
 * size), the response, and the time between two requests. Belongs to the loop of the server.
 *
 * With HTTP/1, requests are answered in order: the bytes after a request are not read as a request
 * until its response is sent. The connection ends after a response if the client asks for that, or
 * if the request was not read completely.
 *
 * HTTP/2 begins with the preface of the client, or with ALPN in TLS (http2.h). Then each stream is
 * a connection of its own to the functions for requests and responses below, and the time limits
 * apply to each stream.
 */
#ifndef PROFPULL_SERVER_CONNECTION_H
#define PROFPULL_SERVER_CONNECTION_H

#include <openssl/types.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "server/request.h"

struct event_base;
struct connection;
struct place;

/* The reason why a connection ended. */
enum connection_end {
    CONNECTION_DONE,         /* the response is sent, or the client has closed the connection */
    CONNECTION_TLS,          /* the TLS handshake failed */
    CONNECTION_IDLE,         /* no further request arrived */
    CONNECTION_SLOW_REQUEST, /* the request did not arrive in time */
    CONNECTION_SLOW_ANSWER,  /* the client did not read the response in time */
    CONNECTION_CROWDED, /* ended to make room for a new connection, because all places were taken */
    /* ended to make room for a new connection of the same address, which had too many */
    CONNECTION_SAME_ADDRESS,
    CONNECTION_PROTOCOL, /* the client broke the rules of HTTP/2 */
    CONNECTION_FLOOD,    /* the client sent too many frames of HTTP/2 that ask for nothing */
    CONNECTION_RESETS,   /* the client gave up too many of its streams */
    CONNECTION_ENDS,
};

/* Reasons why the server itself answers a request with an error status, before any handler. */
enum connection_refusal {
    REFUSED_MALFORMED,  /* 400, 417, 431 or 501 */
    REFUSED_LARGE_BODY, /* 413 */
    REFUSED_SLOW_BODY,  /* 408 */
    REFUSED_NO_ROOM,    /* 503: all bodies together have reached their limit */
    REFUSED_BUSY,       /* 429: too many requests wait already */
    REFUSED_AUTH,       /* 401 */
    CONNECTION_REFUSALS,
};

/* Counts the bytes of the bodies that all connections hold. */
struct connection_bodies {
    uint64_t now;
    uint64_t max;
};

/* The way in which a stream of HTTP/2 ended. */
enum connection_stream_end {
    STREAM_DONE,        /* the response is sent */
    STREAM_RESET,       /* the client gave it up */
    STREAM_REFUSED,     /* there were too many streams, or too many unread responses */
    STREAM_SLOW_ANSWER, /* the client did not read the response in time */
    STREAM_MALFORMED,   /* the client broke the rules of HTTP/2 */
    STREAM_CUT,         /* the connection ended */
    STREAM_ENDS,
};

/* Counts the streams of HTTP/2 that all connections have. */
struct connection_streams {
    unsigned now;
    unsigned max;        /* of all connections together */
    unsigned max_of_one; /* of one connection */
};

/* Bytes a second that a body must have on average after request_ms; a slower body is refused. */
#define CONNECTION_BODY_RATE 65536

struct connection_options {
    struct event_base *base;
    int64_t request_ms; /* time for the head; a body has the same time, and more by its size */
    int64_t answer_ms;  /* time for sending a response, from its start */
    int64_t idle_ms;    /* time until the next request begins */
    struct connection_bodies *bodies;
    struct connection_streams *streams;
    struct sv headers; /* headers of every response, "Name: value\r\n" each */
    /* Called when the head of a request is complete. It must answer or call connection_read_body().
     */
    void (*on_request)(void *arg, struct connection *c, struct request *r);
    /* Called when the body is complete: connection_body() returns it. It must answer or call
     * connection_hold(). */
    void (*on_body)(void *arg, struct connection *c, const struct request *r);
    /* Called for a request that is refused. It must answer, in the format of the API that the
     * request addresses. r is NULL if the head could not be read. */
    void (*on_refusal)(void *arg, struct connection *c, const struct request *r,
                       enum connection_refusal why, int status);
    /* Called when the connection ends. The connection is freed afterwards; one that is held is
     * freed when it is resumed. */
    void (*on_end)(void *arg, struct connection *c, enum connection_end why);
    /* Called when a stream of HTTP/2 ends. */
    void (*on_stream_end)(void *arg, enum connection_stream_end how);
    void *arg;
};

/* Takes over the socket and the TLS session (NULL: no TLS). Returns NULL if out of memory; then
 * both are freed. The options must outlive the connection. */
struct connection *connection_new(const struct connection_options *o, int fd, SSL *session);
/* Closes and frees a connection without calling on_end(). Accepts NULL, returns NULL. A connection
 * that is held is freed when it is resumed. */
struct connection *connection_free(struct connection *c);
/* Sets and returns the place that the server keeps with a connection; NULL before it is set. */
void connection_set_place(struct connection *c, struct place *place);
struct place *connection_place(const struct connection *c);
/* Ends a connection: calls on_end(), closes and frees it. */
void connection_end(struct connection *c, enum connection_end why);
/* Ends a connection, or refuses its request, if its current step has exceeded its time limit. */
void connection_check_time(struct connection *c, int64_t now_ms);

/* ---- requests -------------------------------------------------------------------------------- */

/* Reads the body. A body of more than max bytes is refused; if its length is announced, before it
 * is read. */
void connection_read_body(struct connection *c, size_t max);
struct sv connection_body(const struct connection *c);
/* Returns the present request; NULL if its head could not be read. */
const struct request *connection_request(const struct connection *c);
/* Returns the TLS session of a connection; NULL without TLS. */
const SSL *connection_tls(const struct connection *c);
/* Sets and returns data that the caller keeps with the request; NULL before it is set. */
void connection_set_data(struct connection *c, const void *data);
const void *connection_data(const struct connection *c);
/* Holds a connection whose response comes later: the request and its body stay valid until
 * connection_resume(), and other threads may read them. */
void connection_hold(struct connection *c);
/* Resumes a connection that was held. Returns true if the client is still connected: then the
 * request must be answered. Otherwise the connection is freed. */
bool connection_resume(struct connection *c);
/* Returns a flag that becomes true if the client hangs up while the connection is held. Any thread
 * may read it. */
const atomic_bool *connection_cancelled(const struct connection *c);

/* ---- answers --------------------------------------------------------------------------------- */

struct connection_answer {
    int status;
    const char *type;  /* NULL: no Content-Type */
    struct sv headers; /* further headers, "Name: value\r\n" each */
    struct buf *body;  /* its storage is taken over; NULL: no body */
    /* Headers after the body, "name: value\r\n" each. Over HTTP/1.1, a body that has trailers is
     * sent in chunks. HTTP/1.0 has no chunks: its clients do not get them. */
    struct sv trailers;
};
void connection_answer(struct connection *c, const struct connection_answer *a);
/* Answers with a copy of a body. */
void connection_reply(struct connection *c, int status, const char *type, struct sv body);
/* Returns the reason phrase of a status. */
const char *connection_status_text(int status);

/* Makes a body page by page, as fast as the client reads it. */
struct connection_source {
    bool (*next)(void *arg, struct buf *page); /* appends a page; false: this was the last one */
    void (*done)(void *arg);                   /* always called, once */
    void *arg;
};
void connection_stream(struct connection *c, const char *type, struct connection_source source);

#endif

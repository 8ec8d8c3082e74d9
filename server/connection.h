/* One connection of a client to a server of ours: it reads a request, answers it, and waits for the
 * next one. Each step has a bound in time, whatever pieces things come in: the head, the body (by
 * its size), the answer, and the silence between two requests. Belongs to the loop of the server.
 *
 * Requests are answered in order: what follows one is not looked at until its answer is sent. The
 * connection ends after an answer if the client wants that, or if it has not read the whole
 * request.
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

/* Why a connection ended. */
enum connection_end {
    CONNECTION_DONE,         /* answered, or closed by the client */
    CONNECTION_TLS,          /* the handshake failed */
    CONNECTION_IDLE,         /* no further request came */
    CONNECTION_SLOW_REQUEST, /* its request did not come in time */
    CONNECTION_SLOW_ANSWER,  /* it did not take its answer in time */
    CONNECTION_CROWDED,      /* for a new one, when all places were taken */
    CONNECTION_SAME_ADDRESS, /* for a new one of its address, which had too many */
    CONNECTION_ENDS,
};

/* Why a request was answered with a status of the server's own, before any handler. */
enum connection_refusal {
    REFUSED_MALFORMED,  /* 400, 417, 431 or 501 */
    REFUSED_LARGE_BODY, /* 413 */
    REFUSED_SLOW_BODY,  /* 408 */
    REFUSED_NO_ROOM,    /* 503: all bodies together have reached their limit */
    REFUSED_BUSY,       /* 429: too many requests wait already */
    REFUSED_AUTH,       /* 401 */
    CONNECTION_REFUSALS,
};

/* The bytes of all bodies that connections hold. */
struct connection_bodies {
    uint64_t now;
    uint64_t max;
};

/* A body of fewer bytes in a second than this, after request_ms, is slow. */
#define CONNECTION_BODY_RATE 65536

struct connection_options {
    struct event_base *base;
    int64_t request_ms; /* until the head is there; a body gets as much, and more by its size */
    int64_t answer_ms;  /* until the answer is sent, from its start on */
    int64_t idle_ms;    /* for the next request to begin */
    struct connection_bodies *bodies;
    struct sv headers; /* of every answer, "Name: value\r\n" each */
    /* The head of a request is there. Must answer or call connection_read_body(). */
    void (*on_request)(void *arg, struct connection *c, struct request *r);
    /* The body is there, as connection_body(). Must answer or call connection_hold(). */
    void (*on_body)(void *arg, struct connection *c, const struct request *r);
    /* Must answer, in the words of the API that was asked. r is NULL if the request could not be
     * read. */
    void (*on_refusal)(void *arg, struct connection *c, const struct request *r,
                       enum connection_refusal why, int status);
    /* The connection is freed afterwards, or when it is resumed. */
    void (*on_end)(void *arg, struct connection *c, enum connection_end why);
    void *arg;
};

/* Takes over the socket and the TLS session (NULL: no TLS). NULL if out of memory; then both are
 * freed. The options must live as long. */
struct connection *connection_new(const struct connection_options *o, int fd, SSL *session);
/* Without on_end(). Accepts NULL, returns NULL. One that is held lives until it is resumed. */
struct connection *connection_free(struct connection *c);
/* The place that the server keeps with a connection; NULL before it is set. */
void connection_set_place(struct connection *c, struct place *place);
struct place *connection_place(const struct connection *c);
/* Ends it: calls on_end(), closes and frees. */
void connection_end(struct connection *c, enum connection_end why);
/* Ends it if its time is over. */
void connection_check_time(struct connection *c, int64_t now_ms);

/* ---- requests -------------------------------------------------------------------------------- */

/* Reads the body; one of more than max bytes is refused, before it is read if its length is known.
 */
void connection_read_body(struct connection *c, size_t max);
struct sv connection_body(const struct connection *c);
/* NULL without TLS. */
const SSL *connection_tls(const struct connection *c);
/* Data that the caller keeps with the request; NULL before it is set. */
void connection_set_data(struct connection *c, const void *data);
const void *connection_data(const struct connection *c);
/* The answer comes later: the request and its body stay until connection_resume(), and other
 * threads may read them. */
void connection_hold(struct connection *c);
/* True if the client is still there: then it must be answered. Otherwise the connection is freed.
 */
bool connection_resume(struct connection *c);
/* True once the client has hung up, while the connection is held. Any thread. */
const atomic_bool *connection_cancelled(const struct connection *c);

/* ---- answers --------------------------------------------------------------------------------- */

struct connection_answer {
    int status;
    const char *type;  /* NULL: no Content-Type */
    struct sv headers; /* further ones, "Name: value\r\n" each */
    struct buf *body;  /* its storage is taken; NULL: none */
};
void connection_answer(struct connection *c, const struct connection_answer *a);
/* Answers with a copy of a body. */
void connection_reply(struct connection *c, int status, const char *type, struct sv body);
/* The usual words for a status. */
const char *connection_status_text(int status);

/* A body that is made page by page, as the client takes it. */
struct connection_source {
    bool (*next)(void *arg, struct buf *page); /* appends to it; false: this was the last page */
    void (*done)(void *arg);                   /* always called, once */
    void *arg;
};
void connection_stream(struct connection *c, const char *type, struct connection_source source);

#endif

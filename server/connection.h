/* One connection of a client to the admin server: it reads the head of a request, answers it, and
 * ends. No connection is kept for a second request, so its whole life has a bound: one for the
 * head, one for the answer, whatever pieces they come in. Belongs to the loop of the server.
 */
#ifndef PROFPULL_SERVER_CONNECTION_H
#define PROFPULL_SERVER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "server/request.h"

struct event_base;
struct connection;

/* Why a connection ended. */
enum connection_end {
    CONNECTION_DONE,         /* answered, or closed by the client */
    CONNECTION_SLOW_REQUEST, /* its request did not come in time */
    CONNECTION_SLOW_ANSWER,  /* it did not take its answer in time */
    CONNECTION_CROWDED,      /* for a new one, when all places were taken */
    CONNECTION_SAME_ADDRESS, /* for a new one of its address, which had too many */
    CONNECTION_ENDS,
};

struct connection_options {
    struct event_base *base;
    int64_t request_ms; /* until the head is there */
    int64_t answer_ms;  /* from then on, until the answer is sent */
    /* Must answer by connection_reply() or connection_stream(). */
    void (*on_request)(void *arg, struct connection *c, const struct request *r);
    /* The connection is freed afterwards. */
    void (*on_end)(void *arg, struct connection *c, enum connection_end why);
    void *arg;
};

/* Takes over the socket. NULL if out of memory; then the socket is closed. The options must live as
 * long. */
struct connection *connection_new(const struct connection_options *o, int fd);
/* Without on_end(). Accepts NULL, returns NULL. */
struct connection *connection_free(struct connection *c);
/* Ends it: calls on_end(), closes and frees. */
void connection_end(struct connection *c, enum connection_end why);
/* Ends it if its time is over. */
void connection_check_time(struct connection *c, int64_t now_ms);

/* Answers with a whole body. */
void connection_reply(struct connection *c, int status, const char *type, struct sv body);

/* A body that is made page by page, as the client takes it. */
struct connection_source {
    bool (*next)(void *arg, struct buf *page); /* appends to it; false: this was the last page */
    void (*done)(void *arg);                   /* always called, once */
    void *arg;
};
void connection_stream(struct connection *c, const char *type, struct connection_source source);

#endif

/* The members of a connection, and what its HTTP/1 side (connection.c) and its HTTP/2 side
 * (http2_stream.c) share. Private to these two.
 *
 * A request is answered by the connection that it came on. With HTTP/1 that is the connection of
 * the socket; with HTTP/2 it is a connection of its own for each stream, so that handlers see no
 * difference.
 */
#ifndef PROFPULL_SERVER_CONNECTION_PRIVATE_H
#define PROFPULL_SERVER_CONNECTION_PRIVATE_H

#include "server/body.h"
#include "server/connection.h"

struct bufferevent;
struct http2;
struct http2_stream;

enum connection_state {
    IDLE,      /* waits for the next request */
    HEAD,      /* reads the head */
    BODY,      /* reads the body */
    HELD,      /* waits until another thread has made the response */
    ANSWERING, /* sends the response */
    LINGERING, /* has sent the last response, and reads what the client still sends */
    STREAMING, /* speaks HTTP/2: each request is a stream with a state of its own */
};

struct connection {
    const struct connection_options *o;
    struct bufferevent *bev; /* NULL: a stream, or the connection has ended while it was held */
    enum connection_state state;
    int64_t deadline_ms;
    size_t looked_at; /* bytes of an incomplete head that were searched for its end */
    char *head;       /* the head of the request, followed by its decoded texts */
    struct request request;
    const void *data;    /* data of the caller for this request */
    struct place *place; /* the server's place for this connection */
    struct body body;
    uint64_t counted;                /* bytes of this body that are counted in o->bodies */
    int64_t body_ms;                 /* the time at which the body began */
    bool reads_on;                   /* another request may follow this one */
    bool eof;                        /* the client has closed its side */
    SSL *session;                    /* the TLS session of bev; NULL without TLS */
    bool shaking;                    /* the TLS handshake is not finished */
    bool begun;                      /* a request was read, so no preface of HTTP/2 can follow */
    enum connection_end why;         /* the reason of the end, once that is decided */
    atomic_bool hung_up;             /* the client has hung up while the connection was held */
    struct connection_source source; /* next is NULL if there is no further page */
    struct http2 *http2;             /* the streams of this socket; NULL: it speaks HTTP/1 */
    struct http2_stream *stream;     /* the stream that this connection is; NULL: a socket */
};

/* Limit of one page of a source. */
#define CONNECTION_PAGE_MAX ((size_t)64 * 1024 * 1024)

/* Prepares a zeroed connection. */
void connection_init(struct connection *c, const struct connection_options *o);
/* Answers that the request is refused. The rest of the request is not read. */
void connection_refuse(struct connection *c, enum connection_refusal why, int status);
/* Counts the bytes of the body that have arrived, and extends its time by them. Returns false if
 * all bodies together have reached their limit. */
bool connection_count_body(struct connection *c);
/* Ends the reading of a body: passes it to on_body(), or refuses the request. */
void connection_finish_body(struct connection *c, enum body_state state);
/* Frees the body of the present request. */
void connection_forget_body(struct connection *c);
/* Frees what belongs to the present request. */
void connection_forget_request(struct connection *c);
/* Ends the source of the response, if it has one. */
void connection_end_source(struct connection *c);
/* Returns true if a response of this status to the present request has a body. */
bool connection_has_body(const struct connection *c, int status);

#endif

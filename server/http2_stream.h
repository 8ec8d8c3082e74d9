/* A stream of HTTP/2: one request and its response. To handlers it is a connection of its own, with
 * the same limits as a request of HTTP/1. Private to HTTP/2 and connection.c; on the loop of the
 * server.
 *
 * The stream is freed when it is closed; one that is held is freed when it is resumed.
 */
#ifndef PROFPULL_SERVER_HTTP2_STREAM_H
#define PROFPULL_SERVER_HTTP2_STREAM_H

#include <nghttp2/nghttp2.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "server/connection_private.h"

struct http2;

TAILQ_HEAD(http2_streams, http2_stream);

/* The part of a session that its streams use. */
struct http2_link {
    nghttp2_session *session;
    struct http2_streams streams; /* all, also closed ones whose handler has not ended */
    unsigned n;                   /* how many */
    unsigned open;                /* streams that are not closed */
    size_t unread;                /* bytes of responses that the clients have yet to read */
    int64_t check_ms;             /* no stream has a deadline before this time */
    struct connection *owner;
    void (*on_output)(void *arg);
    void *arg;
    bool busy; /* a caller on the stack asks for the output itself: on_output() is not called */
};

struct http2_stream {
    struct connection connection;
    struct http2_link *link; /* NULL: the connection has ended while the stream was held */
    TAILQ_ENTRY(http2_stream) next;
    int32_t id;
    bool closed;       /* closed while it was held */
    bool sent;         /* the response has been sent to its end */
    bool request_ends; /* the client has sent all of the request */
    bool reset;        /* the client has given the stream up */
    bool slow;         /* the client did not read the response in time */
    /* The head, as it arrives. */
    struct buf method;
    struct buf path;
    struct buf lines;  /* "name: value\r\n" each */
    size_t head_bytes; /* its size as RFC 9113, 6.5.2 counts it */
    struct buf early;  /* DATA that came while the stream was held for a password */
    /* The response: its bytes, or the present page of a source. */
    char *answer;
    size_t answer_bytes;
    size_t answer_sent;
    struct buf trailers;
};

/* Makes a stream, which libnghttp2 then knows by its id. NULL if memory is short. */
struct http2_stream *http2_stream_new(struct http2_link *link, int32_t id);
/* Ends a stream that libnghttp2 has closed. */
void http2_stream_close(struct http2_stream *s, enum connection_stream_end how);
/* Ends a stream whose connection ends. */
void http2_stream_cut(struct http2_stream *s);

/* Adds a header of the request. */
void http2_stream_header(struct http2_stream *s, struct sv name, struct sv value);
/* Begins the request: its head is complete. Returns false if it was refused for its head. */
bool http2_stream_request(struct http2_stream *s);
/* Takes bytes of the body. */
void http2_stream_data(struct http2_stream *s, struct sv data);
/* Notes that the request is complete. */
void http2_stream_end(struct http2_stream *s);
/* Ends the stream, or refuses its request, if its time is up. Returns the end of its time. */
int64_t http2_stream_check_time(struct http2_stream *s, int64_t now_ms);

/* The functions of connection.h for a stream. */
void http2_stream_answer(struct http2_stream *s, const struct connection_answer *a);
void http2_stream_reply(struct http2_stream *s, int status, const char *type, struct sv body);
void http2_stream_pages(struct http2_stream *s, const char *type, struct connection_source source);
void http2_stream_read_body(struct http2_stream *s, size_t max);
bool http2_stream_resume(struct http2_stream *s);

#endif

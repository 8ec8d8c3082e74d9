/* HTTP/2 on one connection of a server of ours, by libnghttp2: bytes of the client in, bytes to the
 * client out, and a stream (http2_stream.h) for each request between them. Knows no socket. Belongs
 * to the loop of the server.
 *
 * HTTP/2 begins with the preface on a plain connection ("prior knowledge"; RFC 9113, 3.3) or with
 * ALPN in TLS. An upgrade from HTTP/1.1 is not offered.
 *
 * A client cannot make the server work for nothing, nor hold its memory:
 * - the streams of a connection and of the server have limits; a stream whose client has given it
 *   up counts until its handler has ended;
 * - the head of a request has the limit of HTTP/1, and the time limits of HTTP/1 apply to each
 *   stream: head, body, response;
 * - frames that ask for nothing, and streams that are given up, take from a budget
 *   (http2_budget.h). Frames are counted in front of libnghttp2 (http2_frames.h), which reports
 *   none that it ignores;
 * - libnghttp2 limits CONTINUATION frames, the replies to PING and SETTINGS that wait to be sent,
 *   and the size of its tables.
 */
#ifndef PROFPULL_SERVER_HTTP2_H
#define PROFPULL_SERVER_HTTP2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sv.h"
#include "server/connection.h"

struct evbuffer;
struct http2;

/* No more frames are made while this much waits to be sent, in bytes. */
#define HTTP2_OUTPUT_MAX ((size_t)64 * 1024)
/* Windows for what a client sends, in bytes: of one stream and of a connection. */
#define HTTP2_STREAM_WINDOW ((int32_t)256 * 1024)
#define HTTP2_WINDOW ((int32_t)1024 * 1024)
/* A further stream of a connection is refused while its client leaves this much of its responses
 * unread, in bytes. */
#define HTTP2_UNREAD_MAX ((size_t)16 * 1024 * 1024)

/* Returns the bytes with which a client begins HTTP/2. */
struct sv http2_preface(void);

/* Begins HTTP/2 on a connection, whose options, place and TLS session its streams share.
 * on_output(arg) is called when something is to be sent, except within http2_read() and
 * http2_check_time(). It may call http2_write(), and must not free the object. NULL if memory is
 * short. */
struct http2 *http2_new(struct connection *owner, void (*on_output)(void *arg), void *arg);
/* Ends all streams. Accepts NULL, returns NULL. */
struct http2 *http2_free(struct http2 *h);

/* Takes bytes of the client, and calls the handlers of the requests that they complete. */
void http2_read(struct http2 *h, struct sv data);
/* Appends what is to be sent, until the buffer has HTTP2_OUTPUT_MAX bytes. */
void http2_write(struct http2 *h, struct evbuffer *out);
/* Ends streams, or the connection, whose time is up. */
void http2_check_time(struct http2 *h, int64_t now_ms);
/* Returns true when nothing is left to be read or sent. */
bool http2_is_done(const struct http2 *h);
/* Returns true if the connection has been ended, and the client has not read that in time. */
bool http2_is_stuck(const struct http2 *h, int64_t now_ms);
/* Returns why the connection ends. */
enum connection_end http2_why(const struct http2 *h);

#endif

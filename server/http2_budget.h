/* A budget for the frames of HTTP/2 that cost the server work and ask for nothing: PING, SETTINGS,
 * PRIORITY, WINDOW_UPDATE, CONTINUATION, empty DATA, frames for streams that have ended, frames of
 * unknown types, and streams that are given up. Each such frame takes from the budget of its
 * connection. Time, frames that carry content, and requests that are answered put
 * something back. A connection whose budget is used up floods the server, and ends.
 *
 * Pure; one owner.
 */
#ifndef PROFPULL_SERVER_HTTP2_BUDGET_H
#define PROFPULL_SERVER_HTTP2_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* The most that a connection can have; it begins with this much. */
#define HTTP2_BUDGET_MAX 2000
/* The amount that comes back each second. */
#define HTTP2_BUDGET_RATE 100
/* The cost of a frame that asks for nothing. */
#define HTTP2_COST_FRAME 1
/* A frame that asks for nothing costs 1 more for each so many bytes of its payload. A client that
 * learns late that its body is refused has sent a window of it, 256 KiB: 80 with a budget of 2,000.
 */
#define HTTP2_BYTES_FOR_COST 4096
/* The cost of a stream that is given up, or that breaks the rules. */
#define HTTP2_COST_RESET 10
/* The cost of a request whose head is malformed or too large, more than its response gains; and of
 * a head that begins no request. */
#define HTTP2_COST_HEAD 20
/* Gain by a request that is answered to its end. */
#define HTTP2_GAIN_ANSWER 10
/* Gain by a frame of content that is sent: a client may answer it with a WINDOW_UPDATE for the
 * stream, another for the connection, and a PING that measures the way. */
#define HTTP2_GAIN_SENT 3
/* A sent frame with fewer bytes of content gains nothing: a client with a window of 1 byte could
 * pay for each WINDOW_UPDATE with the frame that it causes. */
#define HTTP2_SENT_MIN 1024
/* Gain by a frame of content that arrives. */
#define HTTP2_GAIN_RECEIVED 1
/* DATA with fewer bytes of content, unless it is the last of its stream, asks for nothing. Padding
 * is no content. */
#define HTTP2_DATA_MIN 64

struct http2_budget {
    int64_t left;
    int64_t at_ms; /* the passing of time has been credited up to this time */
};

void http2_budget_init(struct http2_budget *b, int64_t now_ms);
/* Takes from the budget. Returns false if it is used up. */
bool http2_budget_take(struct http2_budget *b, int64_t cost, int64_t now_ms);
void http2_budget_give(struct http2_budget *b, int64_t gain);

#endif

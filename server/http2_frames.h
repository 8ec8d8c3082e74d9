/* The borders of frames in the bytes that a client of HTTP/2 sends. libnghttp2 reports no frame
 * that it ignores, such as DATA for a stream that has been answered; its server must charge these,
 * too.
 *
 * Pure; one owner.
 */
#ifndef PROFPULL_SERVER_HTTP2_FRAMES_H
#define PROFPULL_SERVER_HTTP2_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sv.h"

/* Size of the head of a frame, in bytes (RFC 9113, 4.1). */
#define HTTP2_FRAME_HEAD 9

struct http2_frames {
    size_t before; /* bytes that are left of what comes before the first frame */
    uint8_t head[HTTP2_FRAME_HEAD];
    size_t n;    /* bytes of the head that have arrived */
    size_t left; /* bytes of the payload that have not arrived */
    /* The frame that has been taken last. Valid when http2_frames_take() has set *ret_whole. */
    uint32_t length; /* of its payload, in bytes */
    uint8_t type;
};

/* Begins with as many bytes before the first frame: the preface. */
void http2_frames_init(struct http2_frames *f, size_t before);
/* Takes bytes, at most to the end of a frame. Returns how many, at least 1 if there are any, and
 * sets *ret_whole if they end a frame. */
size_t http2_frames_take(struct http2_frames *f, struct sv data, bool *ret_whole);

#endif

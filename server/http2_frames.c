#include "server/http2_frames.h"

#include <string.h>

/* The three bytes of the length, big endian, and the type (RFC 9113, 4.1). */
static void read_head(struct http2_frames *f)
{
    f->length = (uint32_t)f->head[0] << 16 | (uint32_t)f->head[1] << 8 | f->head[2];
    f->type = f->head[3];
    f->left = f->length;
}

void http2_frames_init(struct http2_frames *f, size_t before)
{
    *f = (struct http2_frames){.before = before};
}

/* Returns how many of n bytes belong to the part of which *left bytes are missing. */
static size_t take(size_t *left, size_t n)
{
    size_t taken = n < *left ? n : *left;
    *left -= taken;
    return taken;
}

size_t http2_frames_take(struct http2_frames *f, struct sv data, bool *ret_whole)
{
    size_t used = take(&f->before, data.n);
    *ret_whole = false;
    if (used > 0) {
        return used;
    }
    if (f->n < HTTP2_FRAME_HEAD) {
        size_t missing = HTTP2_FRAME_HEAD - f->n;
        used = take(&missing, data.n);
        memcpy(f->head + f->n, data.p, used);
        f->n += used;
        if (f->n < HTTP2_FRAME_HEAD) {
            return used;
        }
        read_head(f);
    }
    used += take(&f->left, data.n - used);
    if (f->left == 0) {
        f->n = 0;
        *ret_whole = true;
    }
    return used;
}

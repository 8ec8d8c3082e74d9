/* Whole bodies go through libdeflate, which takes a third of zlib's time: inflating is half of what
 * a delta costs. Only zlib can inflate a part of one. */
#include "pprof/gzip.h"

#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CAP_MIN ((size_t)4096)

bool gzip_is(struct sv body)
{
    return body.n >= 2 && (unsigned char)body.p[0] == 0x1f && (unsigned char)body.p[1] == 0x8b;
}

size_t gzip_claim(struct sv body)
{
    const unsigned char *end = (const unsigned char *)body.p + body.n;
    if (body.n < 4 || !gzip_is(body)) {
        return body.n;
    }
    return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

/* ---- whole bodies ---------------------------------------------------------------------------- */

/* An output that grows up to a limit. */
struct growing {
    struct scratch *scratch;
    char *data;
    size_t n;
    size_t cap;
    size_t limit;
};

static bool grow(struct growing *g, size_t cap, struct err *err)
{
    if (cap > g->limit + 1) {
        cap = g->limit + 1; /* one more byte shows that the body is too large */
    }
    char *data = scratch_grow(g->scratch, g->data, g->n, cap);
    if (data == NULL) {
        return err_memory(err);
    }
    g->data = data;
    g->cap = cap;
    return true;
}

/* Inflates the member at the start of in, and skips it. If there is not enough room, it is inflated
 * again with more: no stream has to be kept, and at worst the work is done twice. */
static bool inflate_member(struct libdeflate_decompressor *d, struct sv *in, struct growing *g,
                           struct err *err)
{
    size_t used = 0;
    size_t made = 0;
    enum libdeflate_result r = LIBDEFLATE_INSUFFICIENT_SPACE;
    for (;;) {
        r = libdeflate_gzip_decompress_ex(d, in->p, in->n, g->data + g->n, g->cap - g->n, &used,
                                          &made);
        if (r != LIBDEFLATE_INSUFFICIENT_SPACE || g->cap > g->limit) {
            break;
        }
        if (!grow(g, 2 * g->cap, err)) {
            return false;
        }
    }
    g->n += r == LIBDEFLATE_SUCCESS ? made : 0;
    if (r == LIBDEFLATE_INSUFFICIENT_SPACE || g->n > g->limit) {
        return err_set(err, ERR_LIMIT, "inflates to more than %zu bytes", g->limit);
    }
    in->p += used;
    in->n -= used;
    return r == LIBDEFLATE_SUCCESS || err_set(err, ERR_INPUT, "damaged or cut gzip");
}

static size_t limit_of(struct sv body, size_t max)
{
    size_t bomb = body.n < max / GZIP_RATIO_MAX ? body.n * GZIP_RATIO_MAX : max;
    size_t limit = bomb < GZIP_SMALL ? GZIP_SMALL : bomb;
    return limit < max ? limit : max;
}

bool gzip_inflate(struct scratch *s, struct sv body, size_t max, size_t hint, struct sv *ret,
                  struct err *err)
{
    struct growing g = {.scratch = s, .limit = limit_of(body, max)};
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t cap = hint != 0 ? hint : gzip_claim(body);
    bool ok = d != NULL ? grow(&g, cap < CAP_MIN ? CAP_MIN : cap, err) : err_memory(err);
    do {
        ok = ok && inflate_member(d, &body, &g, err);
    } while (ok && body.n > 0);
    libdeflate_free_decompressor(d);
    *ret = ok ? (struct sv){.p = g.data, .n = g.n} : SV("");
    return ok;
}

bool gzip_plain(struct scratch *s, struct sv body, size_t max, size_t hint, struct sv *ret,
                struct err *err)
{
    *ret = body;
    return !gzip_is(body) || gzip_inflate(s, body, max, hint, ret, err);
}

/* ---- the start of a body --------------------------------------------------------------------- */

/* Inflates what z has until the room for output is full; members may follow each other. Returns the
 * result of the last inflate(): Z_STREAM_END if the input ended with a member. */
static int inflate_members(z_stream *z)
{
    int rc = Z_OK;
    while (z->avail_out > 0 && (rc == Z_OK || (rc == Z_STREAM_END && z->avail_in > 0))) {
        if (rc == Z_STREAM_END) {
            inflateReset(z);
        }
        rc = inflate(z, Z_NO_FLUSH);
    }
    return rc;
}

struct gzip_start gzip_inflate_start(struct sv input, void *room, size_t room_size)
{
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)input.p,
        .avail_in = (uInt)(input.n < UINT32_MAX ? input.n : UINT32_MAX),
        .next_out = room,
        .avail_out = (uInt)room_size,
    };
    int rc = inflateInit2(&z, 15 + 16); /* gzip only */
    if (rc == Z_OK) {
        rc = inflate_members(&z);
        inflateEnd(&z);
    }
    bool fine = rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR;
    bool used_up = fine && z.avail_in == 0;
    return (struct gzip_start){
        .plain = {.p = room, .n = room_size - z.avail_out},
        .end = used_up && rc == Z_STREAM_END,
        .cut = used_up && rc != Z_STREAM_END && z.avail_out > 0,
        .no_memory = rc == Z_MEM_ERROR,
        .problem = fine            ? NULL
                   : z.msg == NULL ? "inflate failed"
                                   : z.msg,
    };
}

/* ---- compressing ----------------------------------------------------------------------------- */

static bool deflate_at(struct scratch *s, struct sv plain, enum gzip_level level, struct sv *ret)
{
    static const int levels[] = {[GZIP_FAST] = 1, [GZIP_BEST] = 6};
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(levels[level]);
    size_t cap = c == NULL ? 0 : libdeflate_gzip_compress_bound(c, plain.n);
    char *data = c == NULL ? NULL : scratch_array(s, cap, 1);
    size_t n = data == NULL ? 0 : libdeflate_gzip_compress(c, plain.p, plain.n, data, cap);
    libdeflate_free_compressor(c);
    *ret = (struct sv){.p = n == 0 ? "" : data, .n = n};
    return n > 0;
}

bool gzip_deflate(struct scratch *s, struct sv plain, struct sv *ret)
{
    return deflate_at(s, plain, GZIP_FAST, ret);
}

bool gzip_pack_at(struct scratch *s, struct sv plain, enum gzip_level level, char **ret_data,
                  size_t *ret_size)
{
    struct sv packed = plain;
    bool ok =
        (level == GZIP_NONE || deflate_at(s, plain, level, &packed)) && scratch_charge(s, packed.n);
    *ret_data = ok ? malloc(packed.n) : NULL;
    if (*ret_data == NULL) {
        return false;
    }
    memcpy(*ret_data, packed.p, packed.n);
    *ret_size = packed.n;
    return true;
}

bool gzip_pack(struct scratch *s, struct sv plain, char **ret_data, size_t *ret_size)
{
    return gzip_pack_at(s, plain, GZIP_FAST, ret_data, ret_size);
}

#include "scraper/gzip.h"

#include <zlib.h>

#define WINDOW_GZIP (15 + 16)
#define MEM_LEVEL 8
#define LEVEL 1
/* The first guess of how much comes out, as a multiple of what goes in. */
#define RATIO_GUESS 4
#define CAP_MIN ((size_t)4096)

bool gzip_is(struct sv body)
{
    return body.n >= 2 && (unsigned char)body.p[0] == 0x1f && (unsigned char)body.p[1] == 0x8b;
}

/* The state of zlib lies in the scratch, too. */
static void *allocate(void *s, unsigned n, unsigned size)
{
    return scratch_array(s, n, size);
}

static void release(void *s, void *p)
{
    (void)s;
    (void)p;
}

/* An output that grows up to a limit. */
struct growing {
    struct scratch *scratch;
    char *data;
    size_t n;
    size_t cap;
    size_t limit;
};

static bool grow(struct growing *g, size_t cap)
{
    if (cap > g->limit + 1) {
        cap = g->limit + 1; /* one byte more shows that there is too much */
    }
    char *data = scratch_grow(g->scratch, g->data, g->n, cap);
    if (data == NULL) {
        return false;
    }
    g->data = data;
    g->cap = cap;
    return true;
}

/* Inflates all members. Z_STREAM_END if all is well, Z_BUF_ERROR if it is cut, Z_MEM_ERROR. */
static int inflate_members(z_stream *z, struct growing *g)
{
    int rc = Z_OK;
    while (g->n <= g->limit && (rc == Z_OK || (rc == Z_STREAM_END && z->avail_in > 0))) {
        if (rc == Z_STREAM_END) {
            inflateReset(z);
        }
        if (g->n == g->cap && !grow(g, 2 * g->cap)) {
            return Z_MEM_ERROR;
        }
        size_t room = g->cap - g->n;
        z->next_out = (Bytef *)g->data + g->n;
        z->avail_out = (uInt)room;
        rc = inflate(z, Z_NO_FLUSH);
        g->n += room - z->avail_out;
    }
    return rc;
}

static size_t limit_of(struct sv body, size_t max)
{
    size_t bomb = body.n < max / GZIP_RATIO_MAX ? body.n * GZIP_RATIO_MAX : max;
    size_t limit = bomb < GZIP_SMALL ? GZIP_SMALL : bomb;
    return limit < max ? limit : max;
}

static enum gzip_result judge(int rc, const struct growing *g, struct err *err)
{
    if (rc == Z_MEM_ERROR) {
        err_set(err, ERR_MEMORY, "out of memory");
        return GZIP_NO_MEMORY;
    }
    if (g->n > g->limit) {
        err_set(err, ERR_LIMIT, "inflates to more than %zu bytes", g->limit);
        return GZIP_TOO_LARGE;
    }
    if (rc != Z_STREAM_END) {
        err_set(err, ERR_INPUT, "damaged or cut gzip");
        return GZIP_BAD;
    }
    return GZIP_OK;
}

enum gzip_result gzip_inflate(struct scratch *s, struct sv body, size_t max, size_t hint,
                              struct sv *ret, struct err *err)
{
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)body.p,
        .avail_in = (uInt)body.n,
        .zalloc = allocate,
        .zfree = release,
        .opaque = s,
    };
    struct growing g = {.scratch = s, .limit = limit_of(body, max)};
    *ret = (struct sv){.p = "", .n = 0};
    if (body.n > UINT32_MAX || max >= UINT32_MAX) {
        err_set(err, ERR_LIMIT, "larger than 4 GiB");
        return GZIP_TOO_LARGE;
    }
    size_t cap = hint != 0 ? hint : RATIO_GUESS * body.n;
    int rc = grow(&g, cap < CAP_MIN ? CAP_MIN : cap) ? inflateInit2(&z, WINDOW_GZIP) : Z_MEM_ERROR;
    if (rc == Z_OK) {
        rc = inflate_members(&z, &g);
        inflateEnd(&z);
    }
    enum gzip_result r = judge(rc, &g, err);
    if (r == GZIP_OK) {
        *ret = (struct sv){.p = g.data, .n = g.n};
    }
    return r;
}

bool gzip_deflate(struct scratch *s, struct sv plain, struct sv *ret)
{
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)plain.p,
        .avail_in = (uInt)plain.n,
        .zalloc = allocate,
        .zfree = release,
        .opaque = s,
    };
    *ret = (struct sv){.p = "", .n = 0};
    if (plain.n > UINT32_MAX / 2 ||
        deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW_GZIP, MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    size_t cap = deflateBound(&z, (uLong)plain.n);
    char *data = scratch_array(s, cap, 1);
    bool ok = false;
    if (data != NULL) {
        z.next_out = (Bytef *)data;
        z.avail_out = (uInt)cap;
        ok = deflate(&z, Z_FINISH) == Z_STREAM_END;
        *ret = (struct sv){.p = data, .n = cap - z.avail_out};
    }
    deflateEnd(&z);
    return ok;
}

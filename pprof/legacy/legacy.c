#include "pprof/legacy/legacy.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/gzip.h"
#include "pprof/legacy/profile.h"

enum legacy_format legacy_format_of(struct sv start)
{
    if (legacy_is_cpu(start)) {
        return LEGACY_CPU;
    }
    return legacy_is_heap(start) ? LEGACY_HEAP : LEGACY_NONE;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* Compressed, and in memory that outlives the scratch. */
static enum legacy_result pack(struct scratch *s, struct sv plain, struct legacy_output *ret,
                               struct err *err)
{
    struct sv zipped;
    if (!gzip_deflate(s, plain, &zipped)) {
        return legacy_no_memory(err);
    }
    ret->data = malloc(zipped.n);
    if (ret->data == NULL) {
        return legacy_no_memory(err);
    }
    memcpy(ret->data, zipped.p, zipped.n);
    ret->size = zipped.n;
    return LEGACY_MADE;
}

static enum legacy_result write_out(const struct legacy_profile *p, const struct legacy_input *in,
                                    struct legacy_output *ret, struct err *err)
{
    struct buf *out = scratch_buf(p->scratch);
    legacy_write(p, in->time_ns, p->kind->samples_time ? in->duration_ns : 0, out);
    if (buf_ok(out)) {
        return pack(p->scratch, (struct sv){.p = out->data, .n = out->len}, ret, err);
    }
    if (buf_too_big(out)) {
        err_set(err, ERR_LIMIT, "more than %zu bytes when converted", SCRATCH_BUF_MAX);
        return LEGACY_TOO_LARGE;
    }
    return legacy_no_memory(err);
}

/* ---- in -------------------------------------------------------------------------------------- */

static enum legacy_result read_plain(struct legacy_profile *p, struct sv plain, uint64_t seed,
                                     struct err *err)
{
    switch (legacy_format_of(plain)) {
    case LEGACY_CPU:
        return legacy_read_cpu(p, plain, seed, err);
    case LEGACY_HEAP:
        return legacy_read_heap(p, plain, seed, err);
    case LEGACY_NONE:
        break;
    }
    err_set(err, ERR_INPUT, "none of the old formats of pprof");
    return LEGACY_BAD;
}

static enum legacy_result inflate(struct scratch *s, struct sv body, struct sv *ret_plain,
                                  struct err *err)
{
    *ret_plain = body;
    if (!gzip_is(body)) {
        if (body.n > LEGACY_PLAIN_MAX) {
            err_set(err, ERR_LIMIT, "larger than %zu bytes", LEGACY_PLAIN_MAX);
            return LEGACY_TOO_LARGE;
        }
        return LEGACY_MADE;
    }
    switch (gzip_inflate(s, body, LEGACY_PLAIN_MAX, 0, ret_plain, err)) {
    case GZIP_OK:
        return LEGACY_MADE;
    case GZIP_BAD:
        return LEGACY_BAD_GZIP;
    case GZIP_TOO_LARGE:
        return LEGACY_TOO_LARGE;
    case GZIP_NO_MEMORY:
        break;
    }
    return LEGACY_NO_MEMORY;
}

static enum legacy_result convert(const struct legacy_input *in, struct scratch *s,
                                  struct legacy_output *ret, struct err *err)
{
    struct sv plain;
    struct legacy_profile p = {.scratch = s};
    enum legacy_result r = inflate(s, in->body, &plain, err);
    if (r == LEGACY_MADE) {
        r = read_plain(&p, plain, in->seed, err);
    }
    return r == LEGACY_MADE ? write_out(&p, in, ret, err) : r;
}

enum legacy_result legacy_convert(const struct legacy_input *in, struct legacy_output *ret,
                                  struct err *err)
{
    struct scratch *own = in->scratch == NULL ? scratch_new() : NULL;
    struct scratch *s = own == NULL ? in->scratch : own;
    *ret = (struct legacy_output){.data = NULL};
    enum legacy_result r = s == NULL ? legacy_no_memory(err) : convert(in, s, ret, err);
    if (in->scratch != NULL) {
        scratch_reset(in->scratch);
    }
    scratch_free(own);
    return r;
}

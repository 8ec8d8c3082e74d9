#include "pprof/legacy/legacy.h"

#include "base/clock.h"
#include "pprof/gzip.h"
#include "pprof/legacy/profile.h"

struct format {
    bool (*is)(struct sv start);
    bool (*read)(struct legacy_profile *p, struct sv body, struct err *err);
};

/* Returns the format of a body by its start, or NULL if it has none of them. */
static const struct format *format_of(struct sv start)
{
    static const struct format formats[] = {{legacy_is_cpu, legacy_read_cpu},
                                            {legacy_is_heap, legacy_read_heap},
                                            {legacy_is_contention, legacy_read_contention}};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].is(start)) {
            return &formats[i];
        }
    }
    return NULL;
}

bool legacy_is(struct sv start)
{
    return format_of(start) != NULL;
}

static bool read_plain(struct legacy_profile *p, struct sv plain, struct err *err)
{
    const struct format *f = format_of(plain);
    return f != NULL ? f->read(p, plain, err)
                     : err_set(err, ERR_INPUT, "none of the old formats of pprof");
}

/* Charges the names of files to the scratch. They are collected in a buffer of their own, which
 * grows by doubling, and a byte that is not UTF-8 becomes three. */
static bool charge_names(const struct legacy_profile *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->maps.n; i++) {
        n += p->maps.at[i].file.n;
    }
    return scratch_charge(p->scratch, 2 * 3 * n);
}

static bool write_out(const struct legacy_profile *p, const struct legacy_input *in,
                      struct legacy_output *ret, struct err *err)
{
    if (!charge_names(p)) {
        return err_memory(err);
    }
    struct buf *out = scratch_buf(p->scratch);
    legacy_write(p, in->time_ns, in->duration_ns, out);
    if (buf_too_big(out)) {
        return err_set(err, ERR_LIMIT, "more than %zu bytes when converted", out->max);
    }
    struct sv plain = {.p = out->data, .n = out->len};
    return (buf_ok(out) && pprof_rewrite_pack(in->rewrite, p->scratch, plain, GZIP_FAST, &ret->data,
                                              &ret->size)) ||
           err_memory(err);
}

/* Returns the result of a failure. damaged: the result if the input is wrong. */
static enum legacy_result failure(const struct scratch *scratch, struct err *err,
                                  enum legacy_result damaged)
{
    scratch_explain(scratch, err);
    if (err->kind == ERR_LIMIT) {
        return LEGACY_TOO_LARGE;
    }
    return err->kind == ERR_MEMORY ? LEGACY_NO_MEMORY : damaged;
}

enum legacy_result legacy_convert(const struct legacy_input *in, struct legacy_output *ret,
                                  struct err *err)
{
    struct sv plain;
    struct legacy_profile p = {.scratch = in->scratch, .seed = in->seed};
    *ret = (struct legacy_output){.data = NULL};
    if (!gzip_plain(in->scratch, in->body, LEGACY_PLAIN_MAX, 0, &plain, err)) {
        return failure(in->scratch, err, LEGACY_BAD_GZIP);
    }
    bool ok = plain.n <= LEGACY_PLAIN_MAX
                  ? read_plain(&p, plain, err) && write_out(&p, in, ret, err)
                  : err_set(err, ERR_LIMIT, "larger than %zu bytes", LEGACY_PLAIN_MAX);
    return ok ? LEGACY_MADE : failure(in->scratch, err, LEGACY_BAD);
}

enum legacy_result legacy_convert_one(struct sv body, int64_t time_ns, int64_t duration_ns,
                                      struct legacy_output *ret, struct err *err)
{
    struct rng rng;
    rng_seed_random(&rng);
    const struct legacy_input in = {
        .body = body,
        .time_ns = time_ns,
        .duration_ns = duration_ns,
        .seed = rng_next(&rng),
        .scratch = scratch_new(),
    };
    enum legacy_result r = legacy_convert(&in, ret, err);
    scratch_free(in.scratch);
    return r;
}

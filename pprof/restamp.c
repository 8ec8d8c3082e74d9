#include "pprof/restamp.h"

#include "base/buf.h"
#include "pprof/check.h"
#include "pprof/gzip.h"
#include "pprof/put.h"

/* Copies all fields except the ones that are replaced. They must not occur twice: to readers, a
 * second time would mean a second profile. */
static void copy_fields(struct sv plain, bool with_duration, struct buf *out)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number != PROFILE_TIME_NANOS &&
            (with_duration || f.number != PROFILE_DURATION_NANOS)) {
            buf_append(out, plain.p + r.field_start, r.at - r.field_start);
        }
    }
}

static bool restamp_plain(struct sv plain, int64_t time_ns, int64_t duration_ns, struct buf *out,
                          struct err *err)
{
    struct pprof_summary s;
    if (!pprof_check(plain, &s, err)) {
        return false;
    }
    buf_reserve(out, plain.n + 32);
    copy_fields(plain, duration_ns < 0, out);
    wire_put_number(out, PROFILE_TIME_NANOS, (uint64_t)time_ns);
    if (duration_ns >= 0) {
        wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_ns);
    }
    return buf_ok(out) || err_memory(err);
}

bool pprof_restamp(struct sv body, int64_t time_ns, int64_t duration_ns, char **ret_data,
                   size_t *ret_size, struct err *err)
{
    struct scratch *scratch = scratch_new();
    struct sv plain;
    struct buf out;
    buf_init(&out, RESTAMP_INFLATED_MAX + 1024);
    bool ok = gzip_plain(scratch, body, RESTAMP_INFLATED_MAX, 0, &plain, err) &&
              restamp_plain(plain, time_ns, duration_ns, &out, err);
    if (ok && gzip_is(body)) {
        struct sv stamped = {.p = out.data, .n = out.len};
        ok = gzip_pack(scratch, stamped, ret_data, ret_size) || err_memory(err);
    } else if (ok) {
        *ret_data = buf_take(&out, ret_size);
        ok = *ret_data != NULL || err_memory(err);
    }
    buf_done(&out);
    scratch_free(scratch);
    return ok;
}

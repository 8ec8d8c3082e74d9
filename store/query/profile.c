/* A merged profile of one sample type. */
#include "base/clock.h"
#include "pprof/gzip.h"
#include "pprof/merge.h"
#include "store/query/bodies.h"
#include "store/query/rewrite.h"

struct merging {
    const struct query *q;
    const struct query_profile_options *o;
    struct rewrite_options rewrite;
    struct scratch *scratch; /* memory for the profile that is being read */
    struct scratch *second;  /* memory for the merge, whose input was written with the first one */
    struct buf written;
    struct merge *merge;
    size_t n; /* number of samples */
    uint64_t seed;
};

/* ---- gathering ------------------------------------------------------------------------------- */

static bool add_column(struct merging *m, const struct store_body *body, size_t column,
                       struct err *err)
{
    struct samples s;
    size_t n = 0;
    buf_clear(&m->written);
    bool ok = samples_open(&s, m->scratch, body, column, &m->o->stacks, m->seed, err) &&
              rewrite_profile(&s, m->scratch, &m->rewrite, &m->written, &n, err);
    if (!ok) {
        scratch_explain(m->scratch, err);
    }
    scratch_reset(m->scratch);
    if (ok && n > 0) {
        ok = merge_add(m->merge, (struct sv){m->written.data, m->written.len}, err);
        m->n += ok ? n : 0;
    }
    return ok;
}

static bool profile_on_body(void *arg, const struct store_body *body, struct err *err)
{
    struct merging *m = arg;
    for (size_t column = 0; query_next_column(body, &column); column++) {
        if (!add_column(m, body, column, err)) {
            return false;
        }
    }
    return true;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Writes the plain bytes of a merge, in memory of the scratch. */
static bool plain_of(struct merging *m, struct merge *merge, struct sv *ret, struct err *err)
{
    struct buf zipped;
    buf_init(&zipped, m->written.max);
    bool ok =
        merge_write(merge, &zipped, err) &&
        gzip_inflate(m->scratch, (struct sv){zipped.data, zipped.len}, m->written.max, 0, ret, err);
    buf_done(&zipped);
    return ok;
}

/* Folds small frames. The result is merged once more to leave out entries that are no longer used.
 */
static bool fold(struct merging *m, struct sv plain, struct sv *ret, struct err *err)
{
    const struct merge_options o = {.bytes_max = m->q->bytes_max / 4, .scratch = m->second};
    buf_clear(&m->written);
    if (!rewrite_fold(plain, m->scratch, m->o->max_nodes, m->q->bytes_max / 4, &m->written, err)) {
        return false;
    }
    scratch_reset(m->scratch);
    struct merge *again = merge_new(&o, err);
    bool ok = again != NULL &&
              merge_add(again, (struct sv){m->written.data, m->written.len}, err) &&
              plain_of(m, again, ret, err);
    merge_free(again);
    return ok;
}

static bool write_result(struct merging *m, struct buf *out, struct err *err)
{
    struct sv plain;
    if (m->n == 0) {
        return true;
    }
    if (!plain_of(m, m->merge, &plain, err) ||
        (m->o->max_nodes > 0 && !fold(m, plain, &plain, err))) {
        return false;
    }
    return buf_append(out, plain.p, plain.n) ||
           err_set(err, ERR_LIMIT, "a profile of more than %zu bytes", out->max);
}

static bool open_merging(struct merging *m, struct err *err)
{
    size_t quarter = m->q->bytes_max / 4;
    const struct merge_options o = {.bytes_max = quarter, .scratch = m->second};
    if (m->scratch == NULL || m->second == NULL) {
        return err_memory(err);
    }
    scratch_limit(m->scratch, quarter);
    scratch_limit(m->second, quarter);
    m->merge = merge_new(&o, err);
    return m->merge != NULL;
}

bool query_profile(const struct query *q, const struct query_range *r,
                   const struct profile_type *type, const struct query_profile_options *o,
                   struct buf *out, struct err *err)
{
    struct query_scope scope;
    if (!query_scope_init(q, &scope, r, type, err)) {
        return false;
    }
    scope.with_sums = true;
    struct merging m = {
        .q = q,
        .o = o,
        .rewrite = {.type = type,
                    .profile = o,
                    .time_ns =
                        r->end_ms > INT64_MAX / NS_PER_MS ? INT64_MAX : r->end_ms * NS_PER_MS},
        .scratch = scratch_new(),
        .second = scratch_new(),
        .seed = query_seed(),
    };
    buf_init(&m.written, q->bytes_max / 4);
    bool ok = open_merging(&m, err) &&
              query_each_body(q, &scope, &o->stacks, profile_on_body, &m, err) &&
              write_result(&m, out, err);
    merge_free(m.merge);
    buf_done(&m.written);
    scratch_free(m.scratch);
    scratch_free(m.second);
    query_scope_done(&scope);
    return ok;
}

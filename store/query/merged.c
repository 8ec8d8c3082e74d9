/* Merges the profiles of a range in the way of google/pprof. */
#include "pprof/merge.h"
#include "store/query/named.h"
#include "store/query/query_private.h"

struct merging {
    const struct query *q;
    struct merge *merge;
    struct scratch *names; /* for one profile with names */
    size_t n;
    struct err err;
};

static bool merged_on_body(void *arg, const struct store_body *body)
{
    struct merging *m = arg;
    if (body->format != PROFILE_PPROF) {
        return true;
    }
    if (!query_alive(m->q, &m->err)) {
        return false;
    }
    bool ok = merge_add(m->merge, named_data(body, m->names), &m->err);
    scratch_reset(m->names);
    if (!ok) {
        return err_wrap(&m->err, "profile %s", body->id);
    }
    m->n++;
    return true;
}

bool query_merged(const struct query *q, const struct store_scan *scan, struct buf *out,
                  size_t *ret_n, struct err *err)
{
    struct scratch *scratch = scratch_new();
    struct scratch *names = scratch_new();
    if (scratch == NULL || names == NULL) {
        scratch_free(scratch);
        scratch_free(names);
        return err_memory(err);
    }
    scratch_limit(scratch, q->bytes_max / 2);
    scratch_limit(names, q->bytes_max / 4);
    const struct merge_options o = {.bytes_max = q->bytes_max / 2, .scratch = scratch};
    struct store_scan with_data = *scan;
    with_data.with_data = true;
    with_data.range.partial = q->partial;
    with_data.range.peers = q->peers;
    struct merging m = {.q = q, .merge = merge_new(&o, err), .names = names};
    bool ok = m.merge != NULL;
    if (ok) {
        ok = store_each_body(q->store, &with_data, merged_on_body, &m, err);
        ok = query_ended(ok, &m.err, err) && (m.n == 0 || merge_write(m.merge, out, err));
        *ret_n = m.n;
    }
    merge_free(m.merge);
    scratch_free(scratch);
    scratch_free(names);
    return ok;
}

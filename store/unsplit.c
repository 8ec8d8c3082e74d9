#include "store/unsplit.h"

#include "pprof/gzip.h"
#include "store/parts.h"

/* Memory for the labels of a set, as numbers and texts. */
#define SET_MAX (16 * STORE_BLOB_MAX)

bool unsplit_init(struct unsplit *u, struct err *err)
{
    *u = (struct unsplit){.scratch = scratch_new(), .arena = arena_new(SET_MAX)};
    buf_init(&u->no_labels, STORE_BLOB_MAX);
    return (u->scratch != NULL && u->arena != NULL && blob_put_labels(NULL, 0, &u->no_labels)) ||
           err_memory(err);
}

void unsplit_done(struct unsplit *u)
{
    scratch_free(u->scratch);
    arena_free(u->arena);
    buf_done(&u->no_labels);
}

void unsplit_take_set(struct unsplit *u, struct sv blob)
{
    arena_reset(u->arena);
    if (!blob_read_set(blob, u->arena, &u->set)) {
        u->set = (struct set){.n_labels = 0};
    }
}

bool unsplit_no_labels(const struct unsplit *u, struct sv labels)
{
    return sv_eq(labels, (struct sv){u->no_labels.data, u->no_labels.len});
}

bool unsplit_read(struct unsplit *u, struct sv body, bool *ret, struct err *err)
{
    struct err why = ERR_INIT;
    struct parts parts = {.n = 0};
    struct sv plain;
    scratch_reset(u->scratch);
    bool ok = gzip_plain(u->scratch, body, SCRATCH_BUF_MAX, gzip_claim(body), &plain, &why) &&
              parts_read(u->scratch, plain, u->set.labels, u->set.n_labels, false, &parts, &why);
    *ret = ok && parts.unsplit;
    return ok || why.kind != ERR_MEMORY || err_memory(err);
}

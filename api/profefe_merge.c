#include "api/profefe_merge.h"

#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/pprof_reply.h"
#include "api/profefe_params.h"
#include "api/served.h"
#include "pprof/gzip.h"
#include "pprof/merge.h"
#include "store/query/named.h"

#define PPROF_TYPE "application/octet-stream"

static bool finish(struct exchange *x, bool ok, struct err *err)
{
    x->content_type = PPROF_TYPE;
    if (!ok) {
        buf_clear(&x->reply);
    }
    return ok || (err->kind != ERR_NONE ? false : err_memory(err));
}

bool profefe_merge_range(struct exchange *x, const struct store_range *range, size_t limit,
                         size_t *ret_n, struct err *err)
{
    /* Newest first, because profefe's storage lists profiles in this order, and the first profile
     * determines the head of the result. */
    const struct store_scan scan = {.range = *range, .newest_first = true, .limit = limit};
    struct query q;
    atomic_size_t damaged = 0;
    bool ok = ask_query(x, x->deadline_ms, NULL, &damaged, &q, err) &&
              query_merged(&q, &scan, &x->reply, ret_n, err);
    ask_count_damaged(x, &damaged);
    return finish(x, ok, err);
}

/* ---- by id ----------------------------------------------------------------------------------- */

struct one {
    struct exchange *x;
    struct merge *merge;     /* NULL: the response is the bytes of the profile */
    struct sv id;            /* the id that is asked for */
    struct buf *merged;      /* ids of the merged profiles that were added already */
    struct scratch *scratch; /* for the names of one profile */
    struct err *err;
    bool ok;
};

/* Returns true if a profile has not been added. Several ids may stand for one merged profile of the
 * store, which is added only once. */
static bool is_new(struct one *o, const char *id)
{
    if (sv_eq_str(o->id, id)) {
        return true;
    }
    bool known = memmem(o->merged->data, o->merged->len, id, strlen(id)) != NULL;
    buf_puts(o->merged, known ? "" : id);
    return !known;
}

/* Appends a profile to the response: as it is stored, or packed again if it got names. */
static bool put_one(struct one *o, const struct store_body *body)
{
    struct sv data = named_data(body, o->scratch);
    char *packed = NULL;
    size_t size;
    if (data.p != body->data.p && gzip_pack(o->scratch, data, &packed, &size)) {
        data = (struct sv){packed, size};
    } else {
        data = body->data;
    }
    bool ok = buf_append(&o->x->reply, data.p, data.n) ||
              err_set(o->err, ERR_LIMIT, "the profile is larger than query.max_bytes");
    free(packed);
    return ok;
}

static bool profefe_on_found(void *arg, const struct store_body *body)
{
    struct one *o = arg;
    if (o->merge != NULL) {
        o->ok = !is_new(o, body->id) || merge_add(o->merge, named_data(body, o->scratch), o->err);
    } else {
        o->ok = put_one(o, body);
    }
    scratch_reset(o->scratch);
    return true;
}

/* Finds a profile. If the id has profefe's format, as in responses to POST, it is first translated
 * into an id of the store. */
static bool get(struct one *o, struct sv id, bool *ret_found)
{
    struct store *store = o->x->options->served->store;
    char known[STORE_ID_LENGTH + 1];
    uint32_t second;
    uint64_t hash;
    *ret_found = false;
    if (exchange_is_over(o->x, o->err)) {
        return false;
    }
    if (profefe_id_parse(id, &second, &hash)) {
        if (!store_find(store, second, hash, ret_found, known, o->err) || !*ret_found) {
            return o->err->kind == ERR_NONE;
        }
        id = sv_from(known);
    }
    o->id = id;
    o->ok = true;
    const struct store_peers peers = ask_peers(o->x, o->x->deadline_ms);
    return store_get_partial(store, id, &peers, o->x->partial, ret_found, profefe_on_found, o,
                             o->err) &&
           o->ok;
}

static struct scratch *new_scratch(const struct exchange *x)
{
    struct scratch *s = scratch_new();
    if (s != NULL) {
        scratch_limit(s, x->bytes_max / 2);
    }
    return s;
}

bool profefe_get(struct exchange *x, struct sv id, bool *ret_found, struct err *err)
{
    struct one o = {.x = x, .err = err, .scratch = new_scratch(x)};
    bool ok = o.scratch != NULL ? get(&o, id, ret_found) : err_memory(err);
    scratch_free(o.scratch);
    return finish(x, ok, err);
}

static struct merge *new_merge(const struct exchange *x, struct err *err)
{
    struct merge_options options = {.bytes_max = x->bytes_max / 2, .mode = MERGE_SUM};
    return merge_new(&options, err);
}

bool profefe_merge_ids(struct exchange *x, struct sv ids, bool *ret_found, struct err *err)
{
    struct buf merged;
    struct one o = {.x = x,
                    .merge = new_merge(x, err),
                    .merged = &merged,
                    .scratch = new_scratch(x),
                    .err = err};
    bool ok = o.merge != NULL && (o.scratch != NULL || err_memory(err));
    bool more = true;
    *ret_found = true;
    buf_init(&merged, REQUEST_HEAD_MAX);
    while (ok && more && *ret_found) {
        struct sv id = ids;
        more = sv_cut(ids, '+', &id, &ids);
        ok = get(&o, id, ret_found);
    }
    if (ok && *ret_found) {
        ok = merge_write(o.merge, &x->reply, err);
    }
    merge_free(o.merge);
    scratch_free(o.scratch);
    buf_done(&merged);
    return finish(x, ok, err);
}

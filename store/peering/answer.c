#include "store/peering/answer.h"

#include <stdlib.h>
#include <string.h>

#include "store/archive/archive.h"
#include "store/private.h"

/* ---- the list of files ----------------------------------------------------------------------- */

struct listing {
    struct store_file *const *files;
    size_t n;
    struct buf *out;
};

/* Appends a file of the archive unless it is on the disk. */
static void answer_on_recent(void *arg, const char *name, const char *hash, int64_t age_ms)
{
    const struct listing *l = arg;
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->files[i]->text, name) == 0 && strcmp(l->files[i]->hash, hash) == 0) {
            return;
        }
    }
    peering_put_file(name, hash, age_ms, l->out);
}

static void put_files(struct store *s, const struct peering_question *q, struct listing *l)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < l->n; i++) {
        peering_put_file(l->files[i]->text, l->files[i]->hash, -1, l->out);
    }
    /* The lock of the archive is taken after that of the store. */
    if (s->archive != NULL) {
        archive_each_recent(s->archive, q->from_ns, q->until_ns, answer_on_recent, l);
    }
    pthread_mutex_unlock(&s->lock);
    if (s->archive != NULL && !store_is_read_only(s) && archive_unlisted_ms(s->archive) >= 0) {
        peering_put_unlisted(archive_unlisted_ms(s->archive), l->out);
    }
    peering_put_end(l->out);
}

/* ---- a slice --------------------------------------------------------------------------------- */

static struct slice_options options_of(const struct peering_question *q, const struct catalogue *c)
{
    uint64_t most =
        q->bytes_max > 0 && q->bytes_max < PEERING_SLICE_MAX ? q->bytes_max : PEERING_SLICE_MAX;
    uint64_t some = q->bytes > 0 && q->bytes < PEERING_SLICE_BYTES ? q->bytes : PEERING_SLICE_BYTES;
    return (struct slice_options){.kind = q->kind,
                                  .from_ns = q->from_ns,
                                  .until_ns = q->until_ns,
                                  .profile = q->profile,
                                  .profile_ms = q->profile_ms,
                                  .profile_hash = q->profile_hash,
                                  .after_set = q->after_set,
                                  .bytes = some,
                                  .bytes_max = most,
                                  .catalogue = c};
}

/* Appends a slice of an open file. */
static bool put_slice(struct db *from, const struct slice_options *o, struct buf *out,
                      struct err *err)
{
    struct db slice;
    int64_t last = 0;
    if (!db_make_slice(&slice, o->bytes_max, err)) {
        return false;
    }
    bool ok = slice_fill(from, o, &slice, &last, err);
    if (ok) {
        struct sv bytes = db_slice_bytes(&slice);
        ok = (bytes.n > 0 && peering_put_slice(bytes, last, out)) || err_memory(err);
    }
    db_close(&slice);
    return ok;
}

/* Reads the catalogue and the slice in one transaction. */
static bool read_slice(struct store *s, struct store_file *f, struct db *db,
                       const struct peering_question *q, const struct selector *selector,
                       struct buf *out, struct err *err)
{
    struct catalogue catalogue;
    int64_t *bad = NULL;
    if (!catalogue_init(&catalogue, selector, err)) {
        return false;
    }
    struct slice_options o = options_of(q, &catalogue);
    bool ok = store_bad_of(s, f, &bad, &o.n_bad) || err_memory(err);
    o.bad = bad;
    if (ok && (ok = db_run(db, SQL_BEGIN_READ, err))) {
        ok = (q->kind == SLICE_PROFILE || catalogue_read(&catalogue, db, err)) &&
             put_slice(db, &o, out, err);
        ok = db_run(db, SQL_COMMIT, ok ? err : NULL) && ok;
    }
    free(bad);
    catalogue_done(&catalogue);
    return ok;
}

static bool answer_file(struct store *s, struct store_file *f, const struct peering_question *q,
                        const struct selector *selector, struct buf *out, struct err *err)
{
    struct err why = ERR_INIT;
    bool skip;
    store_index_file(s, f);
    store_scan_begin(s, f);
    struct reader_conn *r = store_reader_take(s, f, &skip, &why);
    bool ok = r != NULL || skip;
    if (r != NULL) {
        ok = read_slice(s, f, &r->db, q, selector, out, &why);
        store_reader_give(s, r, &why);
    } else if (skip) {
        peering_put_gone(out);
        peering_put_end(out);
    }
    store_scan_end(s, f);
    return ok || err_set(err, why.kind, "%s: %s", f->text, why.msg);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Lists the files on the disk that a question is about: those of its range, or the one it names. */
static bool list(struct store *s, const struct peering_question *q, struct store_file ***ret,
                 size_t *ret_n, struct err *err)
{
    struct store_name name;
    if (q->files) {
        return store_files_in(s, q->from_ns, q->until_ns, ret, ret_n, err);
    }
    if (!store_name_parse(q->file, &name)) {
        return err_set(err, ERR_INPUT, "expected the name of a file");
    }
    const struct store_file stretch = {.name = name};
    return store_files_in(s, store_file_from_ns(&stretch), store_file_until_ns(&stretch), ret,
                          ret_n, err);
}

static bool answer_slice(struct store *s, struct store_file *const *files, size_t n,
                         const struct peering_question *q, struct buf *out, struct err *err)
{
    struct selector *selector = NULL;
    for (size_t i = 0; i < n; i++) {
        if (sv_eq_str(q->file, files[i]->text)) {
            selector = q->selector.n > 0 ? selector_parse(q->selector, err) : NULL;
            bool ok = (q->selector.n == 0 || selector != NULL) &&
                      answer_file(s, files[i], q, selector, out, err);
            selector_free(selector);
            return ok;
        }
    }
    peering_put_gone(out);
    return peering_put_end(out) || err_memory(err);
}

bool peering_answer(struct store *s, const char *instance, const struct peering_question *q,
                    struct buf *out, struct err *err)
{
    struct store_file **files = NULL;
    char writer[64] = "";
    size_t n = 0;
    if (!list(s, q, &files, &n, err)) {
        return false;
    }
    if (s->archive != NULL) {
        archive_own_name(s->archive, writer);
    }
    peering_put_answer(instance, writer, out);
    struct listing l = {.files = files, .n = n, .out = out};
    bool ok = true;
    if (q->files) {
        put_files(s, q, &l);
    } else {
        ok = answer_slice(s, files, n, q, out, err);
    }
    store_files_free(files, n);
    return ok && (buf_ok(out) || err_memory(err));
}

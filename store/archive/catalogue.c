#include "store/archive/catalogue.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/wire.h"
#include "store/archive/private.h"

#define FIRST_LINE "profpull archive catalogue 1\n"
/* Days of the owner that its catalogue has. */
#define DAYS_MAX 100

/* ---- the format ------------------------------------------------------------------------------ */

static bool put_text(struct buf *out, struct sv v)
{
    uint64_t n = v.n;
    while (n >= 0x80) {
        buf_putc(out, (char)(n | 0x80));
        n >>= 7;
    }
    buf_putc(out, (char)n);
    return buf_append(out, v.p, v.n);
}

static bool take_text(struct sv *rest, struct sv *ret)
{
    struct wire_varint v = wire_varint(rest->p, rest->p + rest->n);
    if (rest->n == 0 || v.next == NULL || v.value > (uint64_t)(rest->p + rest->n - v.next)) {
        return false;
    }
    *ret = (struct sv){v.next, (size_t)v.value};
    *rest = sv_skip(*rest, (size_t)(v.next - rest->p) + ret->n);
    return true;
}

bool catalogue_begin(struct buf *out)
{
    return buf_puts(out, FIRST_LINE);
}

bool catalogue_put(const struct catalogue_entry *e, struct buf *out)
{
    return put_text(out, e->key) && put_text(out, e->etag) && put_text(out, e->bytes);
}

bool catalogue_open(struct sv text, struct sv *ret)
{
    if (!sv_starts_with(text, SV(FIRST_LINE))) {
        return false;
    }
    *ret = sv_skip(text, sizeof(FIRST_LINE) - 1);
    return true;
}

bool catalogue_next(struct sv *rest, struct catalogue_entry *ret)
{
    return take_text(rest, &ret->key) && take_text(rest, &ret->etag) &&
           take_text(rest, &ret->bytes);
}

static void catalogue_key(const char *writer, char out[ARCHIVE_KEY_SIZE])
{
    (void)snprintf(out, ARCHIVE_KEY_SIZE, "%s/" ARCHIVE_CATALOGUE, writer);
}

/* ---- the owner ------------------------------------------------------------------------------- */

/* Lists the newest days of this writer, with references, and computes a hash of them. */
static size_t list_days(struct archive *a, struct store_file *ret[DAYS_MAX], uint64_t *ret_hash)
{
    size_t n = 0;
    uint64_t hash = 1;
    pthread_mutex_lock(&a->lock);
    for (size_t i = a->n_files; i-- > 0 && n < DAYS_MAX;) {
        struct store_file *f = a->files[i];
        const struct archive_object *o = f->object;
        if (f->name.length_ms == MS_PER_DAY && strcmp(o->writer, a->writer) == 0 &&
            o->state == OBJECT_FINE) {
            hash = hash_bytes(o->index_key, strlen(o->index_key), hash);
            hash = hash_bytes(o->index_etag, strlen(o->index_etag), hash);
            ret[n++] = store_file_ref(f);
        }
    }
    pthread_mutex_unlock(&a->lock);
    *ret_hash = hash;
    return n;
}

/* Writes the entries that fit. An index that cannot be read is left out. */
static bool write_entries(struct store_file *const *days, size_t n, struct buf *out)
{
    bool ok = catalogue_begin(out);
    for (size_t i = 0; ok && i < n; i++) {
        struct archive_object *o = days[i]->object;
        struct err err = ERR_INIT;
        struct buf bytes;
        buf_init(&bytes, ARCHIVE_INDEX_MAX + 1);
        if (o->index.size + ARCHIVE_KEY_SIZE + BUCKET_ETAG_SIZE > CATALOGUE_MAX - out->len) {
            i = n;
        } else if (archive_index_bytes(o, &bytes, &err)) {
            ok = catalogue_put(&(struct catalogue_entry){sv_from(o->index_key),
                                                         sv_from(o->index_etag),
                                                         {bytes.data, bytes.len}},
                               out);
        }
        buf_done(&bytes);
    }
    return ok;
}

bool archive_put_catalogue(struct archive *a)
{
    struct store_file *days[DAYS_MAX];
    char key[ARCHIVE_KEY_SIZE];
    struct err err = ERR_INIT;
    struct buf out;
    uint64_t hash;
    enum bucket_result result = BUCKET_OK;
    size_t n = list_days(a, days, &hash);
    if (n > 1 && hash != a->catalogue_hash) {
        buf_init(&out, CATALOGUE_MAX);
        catalogue_key(a->writer, key);
        result = write_entries(days, n, &out) ? a->backend.put(a->backend.arg, key, out.data,
                                                               out.len, archive_deadline(), &err)
                                              : BUCKET_MEMORY;
        buf_done(&out);
    }
    for (size_t i = 0; i < n; i++) {
        store_file_unref(days[i]);
    }
    a->catalogue_hash = result == BUCKET_OK ? hash : 0;
    return archive_note(a, "catalogue", result, &err);
}

/* ---- readers --------------------------------------------------------------------------------- */

/* Puts an entry into the cache, if the list has its index. False with the reason if the entry is
 * damaged. Its bytes are checked before others rely on them: the index itself may be fine. */
static bool take_entry(struct archive *a, const char *writer, const struct catalogue_entry *e,
                       struct err *err)
{
    struct archive_name name;
    size_t skip = strlen(writer) + sizeof("/" ARCHIVE_INDEX) - 1;
    if (e->key.n < skip || !archive_index_parse(sv_skip(e->key, skip), &name)) {
        return err_set(err, ERR_INPUT, "damaged: expected the key of an index");
    }
    pthread_mutex_lock(&a->lock);
    struct store_file *f = archive_list_find(a, writer, &name);
    bool fits = f != NULL && sv_eq_str(e->key, f->object->index_key) &&
                sv_eq_str(e->etag, f->object->index_etag);
    f = fits ? store_file_ref(f) : NULL;
    pthread_mutex_unlock(&a->lock);
    if (f == NULL) {
        return true;
    }
    enum archive_verdict verdict = ARCHIVE_INDEX_DAMAGED;
    if (e->bytes.n == f->object->index.size) {
        verdict = archive_index_check(e->bytes, err);
    } else {
        err_set(err, ERR_INPUT, "damaged: an index of %zu bytes, expected %llu", e->bytes.n,
                (unsigned long long)f->object->index.size);
    }
    if (verdict == ARCHIVE_INDEX_FINE) {
        archive_cache_seed(a->cache, &f->object->index, 0, e->bytes, ARCHIVE_SEED_INDEX);
    }
    store_file_unref(f);
    return verdict != ARCHIVE_INDEX_DAMAGED;
}

/* Takes the entries of a catalogue up to the first damaged one. False with the reason if there is
 * one. */
static bool take_entries(struct archive *a, const char *writer, struct sv text, struct err *err)
{
    struct sv rest;
    struct catalogue_entry e;
    if (!catalogue_open(text, &rest)) {
        return err_set(err, ERR_INPUT,
                       "damaged, or of a later version: expected the first line \"%.*s\"",
                       (int)sizeof(FIRST_LINE) - 2, FIRST_LINE);
    }
    while (catalogue_next(&rest, &e)) {
        if (!take_entry(a, writer, &e, err)) {
            return false;
        }
    }
    return rest.n == 0 || err_set(err, ERR_INPUT, "damaged: the last entry is cut off");
}

/* Counts and logs a damaged catalogue, once for each version of it. */
static void note_damaged(struct archive *a, const char *key, const char *etag,
                         const struct err *why)
{
    uint64_t version = hash_bytes(key, strlen(key), hash_bytes(etag, strlen(etag), 1));
    pthread_mutex_lock(&a->lock);
    bool is_new = a->bad_catalogue != version;
    a->bad_catalogue = version;
    pthread_mutex_unlock(&a->lock);
    if (is_new) {
        metric_inc(metric_cell(a->metrics.faults,
                               (const char *const[]){a->store->options.name, "catalogue"}));
        log_warn(a->store->options.log,
                 "a catalogue of the archive cannot be used: the indexes are read one by one",
                 LOG_STR("endpoint", a->store->options.name), LOG_STR("object", key), LOG_ERR(why));
    }
}

void archive_read_catalogue(struct archive *a, const char *writer)
{
    char key[ARCHIVE_KEY_SIZE];
    char *text = malloc(CATALOGUE_MAX);
    struct bucket_range r = {.len = CATALOGUE_MAX, .into = text};
    struct bucket_read got = {.len = 0};
    struct err err = ERR_INIT;
    catalogue_key(writer, key);
    if (text != NULL &&
        a->backend.get(a->backend.arg, key, &r, archive_deadline(), &got, &err) == BUCKET_OK &&
        !take_entries(a, writer, (struct sv){text, got.len}, &err)) {
        note_damaged(a, key, got.etag, &err);
    }
    free(text);
}

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
        if (f->name.length_ms == ARCHIVE_DAY_MS && strcmp(o->writer, a->writer) == 0 &&
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

/* Puts an entry into the cache, if the list has its index. */
static void take_entry(struct archive *a, const char *writer, const struct catalogue_entry *e)
{
    struct archive_name name;
    size_t skip = strlen(writer) + sizeof("/" ARCHIVE_INDEX) - 1;
    if (e->key.n < skip || !archive_index_parse(sv_skip(e->key, skip), &name)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    struct store_file *f = archive_list_find(a, writer, &name);
    bool fits = f != NULL && sv_eq_str(e->key, f->object->index_key) &&
                sv_eq_str(e->etag, f->object->index_etag) && e->bytes.n == f->object->index.size;
    f = fits ? store_file_ref(f) : NULL;
    pthread_mutex_unlock(&a->lock);
    if (f != NULL) {
        archive_cache_seed(a->cache, &f->object->index, 0, e->bytes);
        store_file_unref(f);
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
        a->backend.get(a->backend.arg, key, &r, archive_deadline(), &got, &err) == BUCKET_OK) {
        struct sv rest;
        struct catalogue_entry e;
        bool ok = catalogue_open((struct sv){text, got.len}, &rest);
        while (ok && catalogue_next(&rest, &e)) {
            take_entry(a, writer, &e);
        }
    }
    free(text);
}

/* The files of an archive: the list of them, and reading their indexes and databases. */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/archive/private.h"

/* Threads that read indexes ahead of a scan. */
#define PREPARE_THREADS_MAX 8

/* ---- reading ranges -------------------------------------------------------------------------- */

/* Returns false with the last error while the bucket is down. */
static bool is_up(struct archive *a, struct err *err)
{
    pthread_mutex_lock(&a->lock);
    bool up = clock_mono_ms() >= a->down_until_ms;
    if (!up) {
        err_set(err, a->down_err.kind, "%s", a->down_err.msg);
    }
    pthread_mutex_unlock(&a->lock);
    return up;
}

static enum archive_read failed(struct archive *a, enum bucket_result result, const struct err *why,
                                struct err *err)
{
    metric_inc(metric_cell(a->metrics.failures, (const char *const[]){a->store->options.name,
                                                                      bucket_result_name(result)}));
    err_set(err, why->kind == ERR_NONE ? ERR_SYSTEM : why->kind, "%s", why->msg);
    if (result == BUCKET_NOT_FOUND) {
        return ARCHIVE_GONE;
    }
    if (result == BUCKET_CHANGED) {
        return ARCHIVE_CHANGED;
    }
    pthread_mutex_lock(&a->lock);
    a->down_until_ms = clock_mono_ms() + ARCHIVE_DOWN_MS;
    a->down_err = *why;
    pthread_mutex_unlock(&a->lock);
    return ARCHIVE_FAILED;
}

static enum archive_read fetch(struct archive *a, const char *key, const char *etag,
                               uint64_t offset, size_t n, void *into, struct err *err)
{
    struct bucket_range r = {
        .offset = offset, .len = n, .into = into, .etag = *etag != '\0' ? etag : NULL};
    struct bucket_read got = {.len = 0};
    struct err why = ERR_INIT;
    if (!is_up(a, err)) {
        return ARCHIVE_FAILED;
    }
    enum bucket_result result =
        a->backend.get(a->backend.arg, key, &r, archive_deadline(), &got, &why);
    if (result != BUCKET_OK) {
        return failed(a, result, &why, err);
    }
    if (got.len != n) {
        err_set(err, ERR_INPUT, "%s/%s: it has %llu bytes, fewer than its index says",
                a->backend.url(a->backend.arg), key, (unsigned long long)got.total);
        return ARCHIVE_CHANGED;
    }
    return ARCHIVE_READ;
}

static enum archive_read archive_fetch_index(void *arg, uint64_t offset, size_t n, void *into,
                                             struct err *err)
{
    struct archive_object *o = arg;
    return fetch(o->archive, o->index_key, o->index_etag, offset, n, into, err);
}

static enum archive_read archive_fetch_data(void *arg, uint64_t offset, size_t n, void *into,
                                            struct err *err)
{
    struct archive_object *o = arg;
    return fetch(o->archive, o->data_key, o->data_etag, offset, n, into, err);
}

/* Computes an id that differs for all objects and versions. */
static bool set_id(const struct archive *a, const char *key, const char *etag,
                   struct archive_source *s)
{
    struct buf all;
    unsigned char sum[EVP_MAX_MD_SIZE];
    buf_init(&all, 8192);
    buf_printf(&all, "%s\n%s\n%s\n%llu", a->backend.url(a->backend.arg), key, etag,
               (unsigned long long)s->size);
    bool ok = buf_ok(&all) && EVP_Digest(all.data, all.len, sum, NULL, EVP_sha256(), NULL) == 1;
    if (ok) {
        memcpy(s->id, sum, sizeof(s->id));
    }
    buf_done(&all);
    return ok;
}

/* ---- objects --------------------------------------------------------------------------------- */

void archive_object_free(struct archive_object *o)
{
    if (o != NULL) {
        free(o->index_key);
        free(o->data_key);
        free(o->replaces);
        free(o->ranges);
        free(o);
    }
}

static struct archive_object *object_new(struct archive *a, const char *writer,
                                         const struct archive_name *name, const char *index_etag,
                                         uint64_t index_bytes)
{
    char key[ARCHIVE_KEY_SIZE];
    struct archive_object *o = calloc(1, sizeof(*o));
    if (o == NULL) {
        return NULL;
    }
    o->archive = a;
    o->name = *name;
    (void)snprintf(o->writer, sizeof(o->writer), "%s", writer);
    (void)snprintf(o->index_etag, sizeof(o->index_etag), "%s", index_etag);
    archive_index_key(writer, name, key);
    o->index_key = strdup(key);
    archive_data_key(writer, name, key);
    o->data_key = strdup(key);
    o->index = (struct archive_source){.size = index_bytes, .fetch = archive_fetch_index, .arg = o};
    o->data = (struct archive_source){.size = name->bytes, .fetch = archive_fetch_data, .arg = o};
    if (o->index_key == NULL || o->data_key == NULL ||
        !set_id(a, o->index_key, index_etag, &o->index)) {
        archive_object_free(o);
        return NULL;
    }
    return o;
}

struct store_file *archive_file_new(struct archive *a, const char *writer,
                                    const struct archive_name *name, const char *index_etag,
                                    uint64_t index_bytes, struct err *err)
{
    struct store_file *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        err_memory(err);
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->name = name->stretch;
    store_name_format(&f->name, f->text);
    f->object = object_new(a, writer, name, index_etag, index_bytes);
    if (f->object == NULL ||
        asprintf(&f->path, "%s/%s", a->backend.url(a->backend.arg), f->object->data_key) < 0) {
        archive_object_free(f->object);
        free(f);
        err_memory(err);
        return NULL;
    }
    /* The exact times are in the index, which may not be needed. */
    f->profiles = name->profiles;
    f->data_bytes = name->bytes;
    f->oldest_ns = store_file_from_ns(f);
    f->newest_ns = store_file_until_ns(f);
    return f;
}

/* ---- the list; all under the lock of the archive --------------------------------------------- */

static int compare(const struct store_file *f, const char *writer, const struct archive_name *name)
{
    int order = store_name_compare(&f->name, &name->stretch);
    order = order != 0 ? order : strcmp(f->object->writer, writer);
    return order != 0 ? order : strcmp(f->object->name.hash, name->hash);
}

/* Returns the index of the first file that is not before a name. */
static size_t place_of(const struct archive *a, const char *writer, const struct archive_name *name)
{
    size_t lo = 0;
    size_t hi = a->n_files;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(a->files[mid], writer, name) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct store_file *archive_list_find(struct archive *a, const char *writer,
                                     const struct archive_name *name)
{
    size_t i = place_of(a, writer, name);
    return i < a->n_files && compare(a->files[i], writer, name) == 0 ? a->files[i] : NULL;
}

static bool grow(struct archive *a)
{
    if (a->n_files == a->files_cap) {
        size_t cap = a->files_cap == 0 ? 256 : 2 * a->files_cap;
        struct store_file **files = reallocarray((void *)a->files, cap, sizeof(void *));
        if (files == NULL) {
            return false;
        }
        a->files = files;
        a->files_cap = cap;
    }
    return true;
}

struct store_file *archive_list_add(struct archive *a, struct store_file *f)
{
    struct archive_object *o = f->object;
    size_t at = place_of(a, o->writer, &o->name);
    bool known = at < a->n_files && compare(a->files[at], o->writer, &o->name) == 0;
    if (known && strcmp(a->files[at]->object->index_etag, o->index_etag) == 0) {
        /* A bucket may answer 404 for an object that it has: what is listed is asked for again. */
        if (a->files[at]->object->state == OBJECT_GONE) {
            a->files[at]->object->state = OBJECT_FINE;
        }
        store_file_unref(f);
        return a->files[at];
    }
    if ((!known && !grow(a)) || !map_put(a->by_key, sv_from(o->data_key), f, NULL)) {
        store_file_unref(f);
        return NULL;
    }
    if (known) {
        /* Its owner has uploaded it again. */
        store_file_unref(a->files[at]);
    } else {
        memmove(&a->files[at + 1], &a->files[at], (a->n_files - at) * sizeof(void *));
        a->n_files++;
    }
    o->number = ++a->objects;
    o->added_ms = clock_mono_ms();
    a->files[at] = f;
    return f;
}

void archive_list_remove(struct archive *a, struct store_file *f)
{
    const struct archive_object *o = f->object;
    size_t at = place_of(a, o->writer, &o->name);
    if (at < a->n_files && a->files[at] == f) {
        (void)map_remove(a->by_key, sv_from(o->data_key));
        memmove(&a->files[at], &a->files[at + 1], (a->n_files - at - 1) * sizeof(void *));
        a->n_files--;
        store_file_unref(f);
    }
}

size_t archive_count(struct archive *a)
{
    pthread_mutex_lock(&a->lock);
    size_t n = a->n_files;
    pthread_mutex_unlock(&a->lock);
    return n;
}

void archive_mark_twin(struct archive *a, const struct store_file *f, uint64_t mark)
{
    struct archive_name name = {.stretch = f->name};
    memcpy(name.hash, f->hash, sizeof(name.hash));
    pthread_mutex_lock(&a->lock);
    struct store_file *twin = name.hash[0] != '\0' ? archive_list_find(a, a->writer, &name) : NULL;
    if (twin != NULL) {
        twin->mark = mark;
    }
    pthread_mutex_unlock(&a->lock);
}

void archive_add_files(struct archive *a, int64_t from_ns, int64_t until_ns, uint64_t mark,
                       struct store_file **files, size_t *n, size_t cap)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n_files && *n < cap; i++) {
        struct store_file *f = a->files[i];
        if (store_file_from_ns(f) <= until_ns && store_file_until_ns(f) >= from_ns &&
            f->mark != mark) {
            files[(*n)++] = store_file_ref(f);
        }
    }
    pthread_mutex_unlock(&a->lock);
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Notes that an object cannot be used, and reports it once. */
static void set_state(struct archive_object *o, enum object_state state, const struct err *why)
{
    static const char *const names[] = {[OBJECT_FINE] = "fine",
                                        [OBJECT_GONE] = "missing",
                                        [OBJECT_DAMAGED] = "damaged",
                                        [OBJECT_NEWER] = "newer"};
    struct archive *a = o->archive;
    pthread_mutex_lock(&a->lock);
    bool is_new = o->state == OBJECT_FINE && state != OBJECT_FINE;
    if (is_new) {
        o->state = state;
    }
    o->why = *why;
    pthread_mutex_unlock(&a->lock);
    if (is_new) {
        metric_inc(metric_cell(a->metrics.faults,
                               (const char *const[]){a->store->options.name, names[state]}));
        log_error(a->store->options.log,
                  state == OBJECT_GONE ? "an object of the archive is not there any more"
                                       : "an object of the archive cannot be used, and is left "
                                         "where it is",
                  LOG_STR("endpoint", a->store->options.name), LOG_STR("object", o->data_key),
                  LOG_STR("reason", names[state]), LOG_ERR(why));
    }
}

/* Returns false with the reason if the object cannot be used. */
static bool is_fine(struct archive_object *o, struct err *err)
{
    pthread_mutex_lock(&o->archive->lock);
    bool fine = o->state == OBJECT_FINE;
    if (!fine) {
        err_set(err, ERR_INPUT, "%s", o->why.msg);
    }
    pthread_mutex_unlock(&o->archive->lock);
    return fine;
}

const struct archive_source *archive_find_source(void *arg, const char *name)
{
    struct archive *a = arg;
    pthread_mutex_lock(&a->lock);
    const struct store_file *f = map_get(a->by_key, sv_from(name));
    const struct archive_source *s = f != NULL && f->object->known ? &f->object->data : NULL;
    pthread_mutex_unlock(&a->lock);
    return s;
}

void archive_source_failed(void *arg, const char *name, enum archive_read why,
                           const struct err *err)
{
    struct archive *a = arg;
    pthread_mutex_lock(&a->lock);
    struct store_file *f = map_get(a->by_key, sv_from(name));
    f = f != NULL ? store_file_ref(f) : NULL;
    pthread_mutex_unlock(&a->lock);
    if (f != NULL) {
        set_state(f->object, why == ARCHIVE_GONE ? OBJECT_GONE : OBJECT_FINE, err);
        store_file_unref(f);
    }
}

void archive_read_failed(struct store_file *f, enum db_fault fault, struct err *err)
{
    struct archive_object *o = f->object;
    if (fault == DB_UNREADABLE) {
        pthread_mutex_lock(&o->archive->lock);
        if (o->why.kind != ERR_NONE) {
            err_clear(err);
            err_set(err, o->why.kind, "%s", o->why.msg);
        }
        pthread_mutex_unlock(&o->archive->lock);
    } else if (fault != DB_FINE) {
        set_state(o, fault == DB_NEWER ? OBJECT_NEWER : OBJECT_DAMAGED, err);
    }
}

/* ---- indexes --------------------------------------------------------------------------------- */

/* Takes over the fields of a day. Under the lock. */
static bool take_day(struct archive_object *o, const struct archive_day *day, struct err *err)
{
    o->replaces = calloc(day->n_replaces + 1, sizeof(o->replaces[0]));
    o->ranges = calloc(day->n_ranges + 1, sizeof(o->ranges[0]));
    if (o->replaces == NULL || o->ranges == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < day->n_replaces; i++) {
        if (!archive_data_parse(day->replaces[i], &o->replaces[i])) {
            return err_set(err, ERR_INPUT, "damaged: the names in the index");
        }
    }
    for (size_t i = 0; i < day->n_ranges; i++) {
        o->ranges[i] = day->ranges[i];
    }
    o->n_replaces = day->n_replaces;
    o->n_ranges = day->n_ranges;
    return true;
}

/* Checks that index and name fit, and takes over where the database is. */
static bool take_index(struct archive_object *o, const struct archive_index *index, struct err *err)
{
    if (index->bytes != o->name.bytes || index->profiles != o->name.profiles ||
        index->etag.n >= sizeof(o->data_etag)) {
        return err_set(err, ERR_INPUT, "damaged: the index does not fit its name");
    }
    pthread_mutex_lock(&o->archive->lock);
    bool ok = true;
    if (!o->known) {
        (void)snprintf(o->data_etag, sizeof(o->data_etag), "%.*s", SV_ARG(index->etag));
        ok = set_id(o->archive, o->data_key, o->data_etag, &o->data) || err_memory(err);
        free(o->replaces);
        free(o->ranges);
        o->replaces = NULL;
        o->ranges = NULL;
        ok = ok && take_day(o, &index->day, err);
        o->known = ok;
    }
    pthread_mutex_unlock(&o->archive->lock);
    if (ok && index->day.head.n > 0) {
        archive_cache_seed(o->archive->cache, &o->data, 0, index->day.head, ARCHIVE_SEED_PART);
    }
    if (ok && index->day.tail.n > 0) {
        archive_cache_seed(o->archive->cache, &o->data, index->day.tail_at, index->day.tail,
                           ARCHIVE_SEED_PART);
    }
    return ok;
}

bool archive_index_bytes(struct archive_object *o, struct buf *out, struct err *err)
{
    struct archive_reader r = {.source = &o->index};
    size_t n = (size_t)o->index.size;
    if (o->index.size > ARCHIVE_INDEX_MAX) {
        err_set(err, ERR_INPUT, "damaged: the index has %llu bytes, more than %zu",
                (unsigned long long)o->index.size, ARCHIVE_INDEX_MAX);
        set_state(o, OBJECT_DAMAGED, err);
        return false;
    }
    buf_reserve(out, n + 1);
    if (out->failed) {
        return err_memory(err);
    }
    if (n > ARCHIVE_BLOCK_BYTES) {
        archive_cache_prefetch(o->archive->cache, &o->index, 0, n);
    }
    enum archive_read result = archive_cache_read(o->archive->cache, &r, 0, n, out->data, err);
    if (result == ARCHIVE_GONE) {
        set_state(o, OBJECT_GONE, err);
    }
    out->len = result == ARCHIVE_READ ? n : 0;
    return result == ARCHIVE_READ;
}

bool archive_read_index(struct store_file *f, struct arena *arena, struct archive_index *ret,
                        struct err *err)
{
    struct archive_object *o = f->object;
    struct buf bytes;
    if (!is_fine(o, err)) {
        return false;
    }
    buf_init(&bytes, ARCHIVE_INDEX_MAX + 1);
    bool ok = archive_index_bytes(o, &bytes, err);
    if (ok) {
        enum archive_verdict verdict =
            archive_index_read((struct sv){bytes.data, bytes.len}, arena, ret, err);
        ok = verdict == ARCHIVE_INDEX_FINE && take_index(o, ret, err);
        if (!ok && verdict != ARCHIVE_INDEX_MEMORY && err->kind != ERR_MEMORY) {
            set_state(o, verdict == ARCHIVE_INDEX_NEWER ? OBJECT_NEWER : OBJECT_DAMAGED, err);
        }
    }
    buf_done(&bytes);
    return ok;
}

/* Keeps the series of an index. NULL if out of memory. */
static struct series_list *list_of(struct series_lists *lists, const struct archive_index *index)
{
    struct series_list *l = series_list_new();
    for (size_t i = 0; l != NULL && i < index->n_rows; i++) {
        const struct archive_row *row = &index->rows[i];
        if (!series_lists_add_row(lists, l, row->id, row->columns, row->set_id, row->set,
                                  row->labels)) {
            series_lists_release(lists, l);
            l = NULL;
        }
    }
    return l;
}

const struct series_list *archive_series(struct store_file *f, struct arena *arena, struct err *err)
{
    struct archive_object *o = f->object;
    struct archive *a = o->archive;
    struct series_lists *lists = a->store->series;
    const struct series_version version = {{o->index.id[0], o->index.id[1], o->index.size, 0}};
    struct archive_index index;
    if (!is_fine(o, err)) {
        return NULL;
    }
    pthread_mutex_lock(&a->lock);
    bool known = o->known;
    pthread_mutex_unlock(&a->lock);
    const struct series_list *kept = known ? series_lists_get(lists, f->path, &version) : NULL;
    if (kept != NULL) {
        return kept;
    }
    if (!archive_read_index(f, arena, &index, err)) {
        return NULL;
    }
    struct series_list *l = list_of(lists, &index);
    if (l == NULL) {
        err_memory(err);
        return NULL;
    }
    series_lists_add(lists, l, f->path, &version);
    /* Queries find the series in memory from now on. */
    archive_cache_drop(a->cache, &o->index);
    pthread_mutex_lock(&a->store->lock);
    f->oldest_ns = index.oldest_ns;
    f->newest_ns = index.newest_ns;
    pthread_mutex_unlock(&a->store->lock);
    return l;
}

bool archive_open_db(struct store_file *f, struct db *db, struct err *err)
{
    struct archive_object *o = f->object;
    bool empty = false;
    if (!is_fine(o, err)) {
        return false;
    }
    if (db_open_remote(db, archive_vfs_name(o->archive->vfs), o->data_key, &empty, err) && !empty) {
        return true;
    }
    if (empty) {
        db_damaged(db, "it is empty", err);
        db_close(db);
    }
    archive_read_failed(f, db->fault, err);
    return false;
}

/* Bytes of the database to read ahead. */
struct span {
    uint64_t from;
    uint64_t until; /* 0: none */
};

/* Adds bytes to those that are read ahead next. Bytes elsewhere are read first. The sets of a
 * service are neighbours, so they take one request. */
static void span_add(struct archive_object *o, struct span *s, uint64_t from, uint64_t until)
{
    if (s->until != 0 && from <= s->until + ARCHIVE_BLOCK_BYTES && until >= s->from) {
        s->from = from < s->from ? from : s->from;
        s->until = until > s->until ? until : s->until;
        return;
    }
    archive_cache_prefetch(o->archive->cache, &o->data, s->from, s->until);
    *s = (struct span){from, until};
}

void archive_prefetch(struct store_file *f, const struct series_list *list,
                      bool (*wants)(void *arg, size_t row), void *arg)
{
    struct archive_object *o = f->object;
    struct span rows = {.until = 0};
    struct span bodies = {.until = 0};
    size_t r = 0;
    int64_t last = 0;
    for (size_t i = 0; i < list->n; i++) {
        int64_t set_id = list->rows[i].set_id;
        if (set_id == last || !wants(arg, i)) {
            continue;
        }
        last = set_id;
        /* Both are in order of sets, as a rule. */
        r = r < o->n_ranges && o->ranges[r].set_id <= set_id ? r : 0;
        while (r < o->n_ranges && o->ranges[r].set_id < set_id) {
            r++;
        }
        if (r < o->n_ranges && o->ranges[r].set_id == set_id) {
            span_add(o, &rows, o->ranges[r].rows_from, o->ranges[r].rows_until);
            span_add(o, &bodies, o->ranges[r].from, o->ranges[r].until);
        }
    }
    archive_cache_prefetch(o->archive->cache, &o->data, rows.from, rows.until);
    archive_cache_prefetch(o->archive->cache, &o->data, bodies.from, bodies.until);
}

/* ---- reading ahead --------------------------------------------------------------------------- */

struct preparation {
    struct store_file *const *files;
    size_t n;
    atomic_size_t next;
};

static void *archive_prepare_thread(void *arg)
{
    struct preparation *p = arg;
    size_t i;
    while ((i = atomic_fetch_add(&p->next, 1)) < p->n) {
        struct archive_object *o = p->files[i]->object;
        struct err err = ERR_INIT;
        struct buf bytes;
        buf_init(&bytes, ARCHIVE_INDEX_MAX + 1);
        (void)(is_fine(o, &err) && archive_index_bytes(o, &bytes, &err));
        buf_done(&bytes);
    }
    return NULL;
}

/* Keeps the files whose index was never read, and can be. Returns their number. */
static size_t unknown_of(struct store_file *const *files, size_t n, struct store_file **ret)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        struct archive_object *o = files[i]->object;
        if (o != NULL) {
            pthread_mutex_lock(&o->archive->lock);
            if (!o->known && o->state == OBJECT_FINE) {
                ret[k++] = files[i];
            }
            pthread_mutex_unlock(&o->archive->lock);
        }
    }
    return k;
}

/* Reads the catalogues of the writers that have several days among some files. */
static void read_catalogues(struct archive *a, struct store_file *const *files, size_t n)
{
    struct map *days = map_new(); /* by writer: the number of days */
    for (size_t i = 0; days != NULL && i < n; i++) {
        const char *writer = files[i]->object->writer;
        size_t before = (size_t)(uintptr_t)map_get(days, sv_from(writer));
        if (files[i]->name.length_ms != MS_PER_DAY ||
            !map_put(days, sv_from(writer), (void *)(uintptr_t)(before + 1), NULL)) {
            continue;
        }
        if (before == 1) {
            archive_read_catalogue(a, writer);
        }
    }
    map_free(days, NULL);
}

void archive_prepare(struct archive *a, struct store_file *const *files, size_t n)
{
    struct store_file **unknown = calloc(n + 1, sizeof(void *));
    pthread_t threads[PREPARE_THREADS_MAX];
    size_t n_threads = 0;
    if (unknown == NULL) {
        return;
    }
    struct preparation p = {.files = unknown, .n = unknown_of(files, n, unknown)};
    read_catalogues(a, unknown, p.n);
    while (p.n > 1 && n_threads < PREPARE_THREADS_MAX && n_threads < p.n &&
           thread_start(&threads[n_threads], "archive-index", archive_prepare_thread, &p, NULL)) {
        n_threads++;
    }
    for (size_t i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
    }
    free((void *)unknown);
}

/* Uploads the sealed files of the store.
 *
 * The steps, each of which may be the last one before a crash:
 *
 *     1. freeze the file, and write its mark with the hash of its bytes
 *     2. upload the database
 *     3. upload the index, which has the ETag of the database
 *     4. put the object on the list, as the twin of the file
 *
 * All steps give the same result when they are repeated. Only a file with a twin may be removed
 * from the disk.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/archive/hash.h"
#include "store/archive/mark.h"
#include "store/archive/private.h"

/* ---- the files on disk ----------------------------------------------------------------------- */

void archive_read_marks(struct store *s)
{
    char hash[ARCHIVE_HASH_DIGITS + 1];
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        if (mark_read(f->path, hash)) {
            f->frozen = true;
            memcpy(f->hash, hash, sizeof(hash));
        }
    }
    pthread_mutex_unlock(&s->lock);
}

bool archive_has(const struct store_file *f)
{
    if (f->outdated || f->twin == NULL) {
        return f->outdated;
    }
    struct archive *a = f->twin->object->archive;
    pthread_mutex_lock(&a->lock);
    bool fine = f->twin->object->state == OBJECT_FINE;
    pthread_mutex_unlock(&a->lock);
    return fine;
}

void archive_set_twin(struct store_file *f, struct store_file *twin)
{
    struct store_file *old = f->twin;
    f->twin = twin;
    store_file_unref(old);
}

void archive_match(struct archive *a)
{
    struct store *s = a->store;
    pthread_mutex_lock(&s->lock);
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        struct archive_name name = {.stretch = f->name};
        memcpy(name.hash, f->hash, sizeof(name.hash));
        struct store_file *twin =
            f->frozen && f->hash[0] != '\0' ? archive_list_find(a, a->writer, &name) : NULL;
        if (twin == NULL && f->frozen && f->hash[0] != '\0') {
            twin = archive_find_day(a, &name);
        }
        if (twin != f->twin) {
            archive_set_twin(f, twin != NULL ? store_file_ref(twin) : NULL);
        }
    }
    pthread_mutex_unlock(&a->lock);
    pthread_mutex_unlock(&s->lock);
}

/* Lists the files that the archive should have, with references, and marks those that are older
 * than it keeps. */
static size_t waiting(struct archive *a, int64_t now_ns, struct store_file ***ret)
{
    struct store *s = a->store;
    int64_t max_age_ms = a->max_age_ms;
    int64_t before_ns =
        max_age_ms > 0 ? archive_server_ns(a, now_ns) - max_age_ms * NS_PER_MS : INT64_MIN;
    size_t n = 0;
    uint64_t bytes = 0;
    pthread_mutex_lock(&s->lock);
    struct store_file **files = calloc(s->n_files + 1, sizeof(void *));
    for (size_t i = 0; files != NULL && i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        f->outdated = store_file_until_ns(f) < before_ns;
        if (f->fault == DB_FINE && (f->sealed || f->frozen) && f->profiles > 0 && f->twin == NULL &&
            !f->outdated) {
            bytes += f->data_bytes;
            files[n++] = store_file_ref(f);
        }
    }
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&a->lock);
    a->waiting_files = n;
    a->waiting_bytes = bytes;
    pthread_mutex_unlock(&a->lock);
    *ret = files;
    return n;
}

/* Freezes the file, unless it has changed since it was listed. A file that has a mark was sealed
 * when it got it. */
static bool freeze(struct archive *a, struct store_file *f)
{
    pthread_mutex_lock(&a->store->lock);
    bool ok = (f->sealed || f->frozen) && !f->gone && f->fault == DB_FINE && !f->merging;
    f->frozen = f->frozen || ok;
    pthread_mutex_unlock(&a->store->lock);
    return ok;
}

/* ---- one file -------------------------------------------------------------------------------- */

struct upload {
    struct archive_upload up;
    struct store_file *file;
};

static bool make_index(struct archive_upload *u, struct buf *out, struct err *err)
{
    struct db db;
    bool empty = false;
    if (!db_open_still(&db, u->path, &empty, err)) {
        return err_wrap(err, "%s", u->path);
    }
    bool ok = empty ? err_set(err, ERR_INPUT, "it is empty")
                    : archive_index_write(&db, u->data_etag, u->name.bytes, u->day, out, err);
    db_close(&db);
    return ok || err_wrap(err, "%s", u->path);
}

/* Uploads the database, and asks for its ETag. */
static enum bucket_result put_data(struct archive_upload *u, struct err *err)
{
    const struct archive_backend *b = &u->archive->backend;
    struct bucket_object o = {.size = 0};
    archive_data_key(u->archive->writer, &u->name, u->data_key);
    enum bucket_result result = b->put_file(b->arg, u->data_key, u->fd, 0, u->name.bytes, 0, err);
    if (result == BUCKET_OK) {
        result = b->head(b->arg, u->data_key, archive_deadline(), &o, err);
    }
    if (result == BUCKET_OK && o.size != u->name.bytes) {
        err_set(err, ERR_SYSTEM, "%s/%s: the bucket has %llu bytes, and %llu were uploaded",
                b->url(b->arg), u->data_key, (unsigned long long)o.size,
                (unsigned long long)u->name.bytes);
        return BUCKET_BAD_ANSWER;
    }
    memcpy(u->data_etag, o.etag, sizeof(u->data_etag));
    return result;
}

/* Uploads the index. *ret is the file of the object. */
static enum bucket_result put_index(struct archive_upload *u, struct store_file **ret,
                                    struct err *err)
{
    const struct archive_backend *b = &u->archive->backend;
    struct bucket_object o = {.size = 0};
    struct buf index;
    enum bucket_result result = BUCKET_FILE;
    buf_init(&index, ARCHIVE_INDEX_MAX);
    archive_index_key(u->archive->writer, &u->name, u->index_key);
    if (make_index(u, &index, err)) {
        result = b->put(b->arg, u->index_key, index.data, index.len, archive_deadline(), err);
    }
    if (result == BUCKET_OK) {
        result = b->head(b->arg, u->index_key, archive_deadline(), &o, err);
    }
    if (result == BUCKET_OK) {
        *ret = archive_file_new(u->archive, u->archive->writer, &u->name, o.etag, index.len, err);
        result = *ret != NULL ? BUCKET_OK : BUCKET_MEMORY;
        if (*ret != NULL) {
            (*ret)->object->modified_ns = o.modified_ns;
        }
    }
    buf_done(&index);
    return result;
}

enum bucket_result archive_put(struct archive_upload *u, struct store_file **ret, struct err *err)
{
    enum bucket_result result = put_data(u, err);
    return result == BUCKET_OK ? put_index(u, ret, err) : result;
}

/* Opens and hashes the file, and writes its mark. */
static bool mark(struct upload *u, struct err *err)
{
    struct store_file *f = u->file;
    struct stat st;
    u->up.fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (u->up.fd < 0 || fstat(u->up.fd, &st) != 0) {
        return err_sys(err, "cannot open %s", f->path);
    }
    u->up.name = (struct archive_name){
        .stretch = f->name, .bytes = (uint64_t)st.st_size, .profiles = f->profiles};
    if (!archive_hash_file(u->up.fd, u->up.name.bytes, u->up.name.hash, err)) {
        return err_wrap(err, "%s", f->path);
    }
    if (f->hash[0] != '\0') {
        return strcmp(f->hash, u->up.name.hash) == 0 ||
               err_set(err, ERR_INPUT,
                       "%s has changed since its upload began: it is left alone, remove %s" //
                       ARCHIVE_MARK_SUFFIX " to upload it as it is now",
                       f->path, f->path);
    }
    if (!mark_write(f->path, u->up.name.hash, err)) {
        return false;
    }
    pthread_mutex_lock(&u->up.archive->store->lock);
    memcpy(f->hash, u->up.name.hash, sizeof(f->hash));
    pthread_mutex_unlock(&u->up.archive->store->lock);
    return true;
}

/* Puts the object on the list, and makes it the twin of the file. */
static void publish(struct upload *u, struct store_file *twin)
{
    struct archive *a = u->up.archive;
    pthread_mutex_lock(&a->store->lock);
    pthread_mutex_lock(&a->lock);
    twin = archive_list_add(a, twin);
    if (twin != NULL) {
        archive_set_twin(u->file, store_file_ref(twin));
    }
    pthread_mutex_unlock(&a->lock);
    pthread_mutex_unlock(&a->store->lock);
    metric_add(a->metrics.upload_bytes, u->up.name.bytes);
    log_info(a->store->options.log, "a file of the store was archived",
             LOG_STR("endpoint", a->store->options.name), LOG_STR("file", u->file->path),
             LOG_STR("object", u->up.data_key), LOG_INT("bytes", (int64_t)u->up.name.bytes));
}

/* Uploads one file. False if the bucket has failed, so that further files are not tried now. */
static bool upload(struct archive *a, struct store_file *f)
{
    struct upload u = {.up = {.archive = a, .path = f->path, .fd = -1}, .file = f};
    struct err err = ERR_INIT;
    struct store_file *twin = NULL;
    if (!freeze(a, f)) {
        return true;
    }
    bool ours = mark(&u, &err);
    enum bucket_result result = ours ? archive_put(&u.up, &twin, &err) : BUCKET_FILE;
    if (result == BUCKET_OK) {
        publish(&u, twin);
    }
    if (u.up.fd >= 0) {
        close(u.up.fd);
    }
    metric_inc(metric_cell(
        a->metrics.uploads,
        (const char *const[]){a->store->options.name, result == BUCKET_OK ? "ok" : "failed"}));
    return archive_note(a, "upload", result, &err) || result == BUCKET_FILE;
}

void archive_upload(struct archive *a, int64_t now_ns)
{
    struct store_file **files;
    size_t n = waiting(a, now_ns, &files);
    bool ok = true;
    for (size_t i = 0; ok && i < n && !archive_is_stopping(a); i++) {
        ok = upload(a, files[i]);
    }
    store_files_free(files, n);
    if (n > 0) {
        n = waiting(a, now_ns, &files);
        store_files_free(files, n);
    }
}

/* The space that files and their logs take on the disk, and the space that is free. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "store/private.h"

/* Limits of the log of one file: a 64th of the limit of all files, within these bounds. */
#define LOG_BYTES_MIN (UINT64_C(1) << 20)
#define LOG_BYTES_MAX (UINT64_C(16) << 20)
#define LOG_SHARE 64
/* A file gets a successor when it has this share of the limit of all files, so that retention
 * always has whole files to remove; but not before it has FILE_BYTES_MIN, since an empty file has
 * 0.2 MiB. */
#define FILE_SHARE 8
#define FILE_BYTES_MIN (UINT64_C(1) << 19)
/* The databases leave this part of the disk (an eighth) to logs and to the file system. */
#define DISK_SHARE_FREE 8
/* Space for the pages that a profile changes besides its bytes, and for the index of a file's log.
 */
#define PROFILE_PAGES_BYTES (UINT64_C(16) << 10)
#define BATCH_BYTES (UINT64_C(512) << 10)

/* ---- limits ---------------------------------------------------------------------------------- */

static bool look_at_disk(const struct store *s, struct statvfs *ret)
{
    return statvfs(s->options.directory, ret) == 0;
}

/* Returns the bytes of the disk that this program could use, including those in use. */
static uint64_t capacity_of(const struct statvfs *v)
{
    return (v->f_blocks - (v->f_bfree - v->f_bavail)) * (uint64_t)v->f_frsize;
}

void store_disk_measure(struct store *s)
{
    struct statvfs v;
    if (look_at_disk(s, &v)) {
        atomic_store(&s->disk_bytes, capacity_of(&v));
    }
}

uint64_t store_max_bytes(const struct store *s)
{
    uint64_t max = s->limits.max_bytes;
    uint64_t disk = s->disk_bytes;
    uint64_t share = disk - disk / DISK_SHARE_FREE;
    return max > 0 && share > 0 && share < max ? share : max;
}

static uint64_t log_limit(const struct store *s)
{
    uint64_t max = store_max_bytes(s);
    uint64_t limit = max / LOG_SHARE;
    limit = limit < LOG_BYTES_MIN ? LOG_BYTES_MIN : limit;
    return max == 0 || limit > LOG_BYTES_MAX ? LOG_BYTES_MAX : limit;
}

void store_log_limit(const struct store *s, struct db *db)
{
    db_limit_log(db, log_limit(s));
}

bool store_file_is_full(const struct store *s, const struct store_file *f)
{
    uint64_t max = store_max_bytes(s);
    uint64_t share = max / FILE_SHARE;
    return max > 0 && f->data_bytes > (share > FILE_BYTES_MIN ? share : FILE_BYTES_MIN);
}

/* ---- logs ------------------------------------------------------------------------------------ */

bool store_log_is_large(struct store *s, struct store_file *f)
{
    store_log_note(s, f);
    pthread_mutex_lock(&s->lock);
    bool large = f->log_bytes > log_limit(s);
    pthread_mutex_unlock(&s->lock);
    return large;
}

void store_log_note(struct store *s, struct store_file *f)
{
    char name[4096];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%s-wal", f->path);
    uint64_t bytes = stat(name, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    pthread_mutex_lock(&s->lock);
    f->log_bytes = bytes;
    pthread_mutex_unlock(&s->lock);
}

static uint64_t log_bytes(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    uint64_t bytes = f->log_bytes;
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

void store_logs_copy(struct store *s)
{
    struct store_file **files;
    size_t n;
    if (!store_files_in(s, INT64_MIN, INT64_MAX, &files, &n, NULL)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        bool skip;
        struct reader_conn *c =
            log_bytes(s, files[i]) > 0 ? store_reader_take(s, files[i], &skip, &err) : NULL;
        if (c != NULL) {
            (void)db_copy_log(&c->db, DB_COPY_AND_CUT, &err);
            store_reader_give(s, c, &err);
            store_log_note(s, files[i]);
        }
    }
    store_files_free(files, n);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Returns the bytes that must be free before a batch: those for the batch, at most a sixteenth of
 * the disk, those for committing the open transactions, and those for copying the logs of the open
 * files into their databases. */
static uint64_t needed(struct store *s, const struct statvfs *v, uint64_t bytes, size_t n)
{
    struct store_file *files[STORE_WRITERS_MAX];
    size_t n_files = store_writers_files(s, files);
    /* The pages of an index take space in the log, and again in the database. */
    uint64_t batch = bytes + 2 * n * PROFILE_PAGES_BYTES + BATCH_BYTES;
    uint64_t max = capacity_of(v) / (2 * DISK_SHARE_FREE);
    batch = batch < max ? batch : max;
    batch += 2 * store_writers_cached(s);
    for (size_t i = 0; i < n_files; i++) {
        batch += log_bytes(s, files[i]);
        store_file_unref(files[i]);
    }
    return batch;
}

bool store_has_room(struct store *s, uint64_t bytes, size_t n, struct err *err)
{
    struct statvfs v;
    if (!look_at_disk(s, &v)) {
        return true;
    }
    uint64_t need = needed(s, &v, bytes, n);
    uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
    if (left >= need && !s->was_full) {
        return true;
    }
    store_writers_cut_logs(s);
    s->was_full = false;
    need = needed(s, &v, bytes, n);
    left = look_at_disk(s, &v) ? (uint64_t)v.f_bavail * v.f_frsize : need;
    if (left >= need) {
        return true;
    }
    store_hurry(s);
    return err_set(err, ERR_SYSTEM,
                   "the disk is full: %s has %" PRIu64 " KiB left, and %" PRIu64 " are needed",
                   s->options.directory, left / 1024, need / 1024);
}

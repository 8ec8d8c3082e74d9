#include "store/writing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/blob.h"
#include "store/data.h"

/* Limit of the sets and series of a file whose rows are remembered. */
#define KNOWN_MAX 65536
/* Limit of the files of a stretch that are tried for one profile. Each file that fails is marked.
 */
#define TRIES_MAX 4
/* Seconds that a query waits for the batch that is being put. */
#define INDEX_WAIT_S 5

static void forget_known(struct writing *w)
{
    w->sets = map_free(w->sets, NULL);
    w->series = map_free(w->series, free);
}

bool writing_make_known(struct writing *w)
{
    if (w->sets != NULL && map_count(w->sets) + map_count(w->series) > KNOWN_MAX) {
        forget_known(w);
    }
    w->sets = w->sets == NULL ? map_new() : w->sets;
    w->series = w->series == NULL ? map_new() : w->series;
    return w->sets != NULL && w->series != NULL;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Commits the transaction, copies the log into the database and empties it, unless the file was
 * removed or replaced. */
static void cut_log(struct store *s, struct writing *w)
{
    pthread_mutex_lock(&s->lock);
    bool ours = !w->file->gone && w->file->fault == DB_FINE;
    pthread_mutex_unlock(&s->lock);
    if (ours && w->db.handle != NULL && writing_index(s, w, true, NULL)) {
        (void)db_copy_log(&w->db, DB_COPY_AND_CUT, NULL);
        store_log_note(s, w->file);
    }
}

static void writing_free(struct store *s, struct writing *w)
{
    cut_log(s, w);
    forget_known(w);
    buf_done(&w->blob);
    db_close(&w->db);
    store_log_note(s, w->file);
    if (w->count_fd >= 0) {
        close(w->count_fd);
    }
    if (w->data_fd >= 0) {
        close(w->data_fd);
    }
    store_file_unref(w->file);
    free(w);
}

void store_writers_cut_logs(struct store *s)
{
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        if (s->writers[i] != NULL) {
            cut_log(s, s->writers[i]);
        }
    }
}

uint64_t store_writers_cached(const struct store *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        int now = 0;
        int highest;
        if (s->writers[i] != NULL && s->writers[i]->transaction &&
            sqlite3_db_status(s->writers[i]->db.handle, SQLITE_DBSTATUS_CACHE_USED, &now, &highest,
                              0) == SQLITE_OK) {
            bytes += now > 0 ? (uint64_t)now : 0;
        }
    }
    return bytes;
}

static void close_place(struct store *s, size_t i)
{
    if (s->writers[i] != NULL) {
        writing_free(s, s->writers[i]);
        s->writers[i] = NULL;
    }
}

void store_writers_close(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->write_lock);
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        if (s->writers[i] != NULL && (f == NULL || s->writers[i]->file == f)) {
            close_place(s, i);
        }
    }
    pthread_mutex_unlock(&s->write_lock);
}

size_t store_writers_files(const struct store *s, struct store_file **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        if (s->writers[i] != NULL) {
            ret[n++] = store_file_ref(s->writers[i]->file);
        }
    }
    return n;
}

void store_writers_close_idle(struct store *s, int64_t now_ns, int64_t idle_ms)
{
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&s->write_lock);
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        const struct writing *w = s->writers[i];
        if (w != NULL && store_file_until_ns(w->file) < now_ns && now_ms - w->used_ms > idle_ms) {
            close_place(s, i);
        }
    }
    pthread_mutex_unlock(&s->write_lock);
}

static bool is_replaced(const struct writing *w)
{
    struct stat st;
    return stat(w->file->path, &st) != 0 || st.st_ino != w->inode;
}

/* Returns true if somebody has removed the log. The log is still open, so it is copied when the
 * file is closed. */
static bool has_lost_log(struct store *s, const struct writing *w)
{
    char name[4096];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%s-wal", w->file->path);
    if (stat(name, &st) == 0 || errno != ENOENT) {
        return false;
    }
    log_error(s->options.log, "the log of a file of the store was removed while it was open",
              LOG_STR("endpoint", s->options.name), LOG_STR("file", name));
    return true;
}

/* Returns true if somebody has removed or replaced the data file. */
static bool has_lost_data(struct store *s, const struct writing *w)
{
    char name[4096];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%s" DATA_SUFFIX, w->file->path);
    if ((stat(name, &st) == 0 && st.st_ino == w->data_inode) || errno != ENOENT) {
        return false;
    }
    log_error(s->options.log, "the data of a file of the store were removed while it was open",
              LOG_STR("endpoint", s->options.name), LOG_STR("file", name));
    store_file_unindexed(s, w->file);
    return true;
}

void writing_begin_batch(struct store *s)
{
    s->batch_start = s->uses;
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        struct writing *w = s->writers[i];
        if (w == NULL) {
            continue;
        }
        if (is_replaced(w)) {
            store_file_gone(s, w->file);
            close_place(s, i);
        } else if (w->stale) {
            close_place(s, i);
        } else if (w->db.read_only || has_lost_log(s, w) || has_lost_data(s, w)) {
            store_readers_close(s, w->file);
            close_place(s, i);
        } else {
            err_clear(&w->problem);
        }
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Returns true if its permissions, rather than its disk, keep us from writing to a file. */
static bool is_forbidden(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == EPERM);
}

/* Marks an existing file that we may not write. If the whole disk is read-only, the file is not
 * marked. */
static bool check_rights(struct store *s, struct store_file *f, struct err *err)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", DATA_SUFFIX};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char name[4096];
        (void)snprintf(name, sizeof(name), "%s%s", f->path, suffixes[i]);
        if (is_forbidden(name)) {
            (void)err_sys(err, "%s", name);
            store_file_unwritable(s, f, err->msg);
            return false;
        }
    }
    return true;
}

static bool open_database(struct store *s, struct writing *w, struct err *err)
{
    struct store_file *f = w->file;
    bool empty;
    struct stat st;
    if (!store_file_check(s, f)) {
        return err_set(err, ERR_INPUT, "it is damaged");
    }
    if (!check_rights(s, f, err)) {
        return false;
    }
    if (!db_open(&w->db, f->path, true, &empty, err) || stat(f->path, &st) != 0) {
        if (w->db.fault != DB_FINE && w->db.fault != DB_UNREADABLE) {
            store_file_fault(s, f, w->db.fault, err->msg);
        }
        s->was_full = s->was_full || w->db.full;
        return false;
    }
    if (db_is_read_only(&w->db)) {
        err_set(err, ERR_SYSTEM, "it is open for reading only");
        if (faccessat(AT_FDCWD, f->path, W_OK, AT_EACCESS) == 0) {
            store_file_unwritable(s, f, err->msg);
        }
        return false;
    }
    w->inode = st.st_ino;
    pthread_mutex_lock(&s->lock);
    f->version = w->db.version;
    pthread_mutex_unlock(&s->lock);
    return w->db.version == DB_VERSION ||
           err_set(err, ERR_SYSTEM, "it is of an earlier version, and takes no new profiles");
}

/* Takes a file for writing: then it cannot be frozen. False if it is frozen already. */
static bool unseal(struct store *s, struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    bool frozen = f->frozen;
    f->sealed = f->sealed && frozen;
    pthread_mutex_unlock(&s->lock);
    return !frozen;
}

static struct writing *writing_open(struct store *s, struct store_file *f, struct err *err)
{
    if (!unseal(s, f)) {
        err_set(err, ERR_SYSTEM, "%s must not change", f->path);
        return NULL;
    }
    struct writing *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        err_memory(err);
        return NULL;
    }
    w->file = store_file_ref(f);
    w->count_fd = w->data_fd = w->db.data_fd = -1;
    buf_init(&w->blob, STORE_BLOB_MAX + sizeof(int64_t));
    if (!open_database(s, w, err) || !tail_attach(s, w, err)) {
        err_wrap(err, "cannot write to %s", f->path);
        s->was_full = s->was_full || w->db.full;
        w->stale = true;
        writing_free(s, w);
        return NULL;
    }
    store_log_limit(s, &w->db);
    w->count_fd = store_count_open(f->path);
    (void)store_count_write(w->count_fd, w->committed);
    return w;
}

/* Returns the place for a further open file: a free one, or that of the file whose last use is the
 * oldest, if it has no part in the batch. Returns STORE_WRITERS_MAX if there is none. */
static size_t free_place(const struct store *s)
{
    size_t best = STORE_WRITERS_MAX;
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        if (s->writers[i] == NULL) {
            return i;
        }
        if (s->writers[i]->used <= s->batch_start &&
            (best == STORE_WRITERS_MAX || s->writers[i]->used < s->writers[best]->used)) {
            best = i;
        }
    }
    return best;
}

static struct writing *find_open(const struct store *s, const struct store_file *f)
{
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        if (s->writers[i] != NULL && s->writers[i]->file == f) {
            return s->writers[i];
        }
    }
    return NULL;
}

static bool is_marked(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    bool marked = f->fault != DB_FINE || f->unwritable || f->frozen || f->version == 1;
    pthread_mutex_unlock(&s->lock);
    return marked;
}

/* Tries the file that profiles of an instant belong to. *ret_marked: this file turned out to be
 * unusable and is marked, so that a further one can be tried. */
static struct writing *try_file(struct store *s, int64_t from_ns, bool *ret_no_place,
                                bool *ret_marked, struct err *err)
{
    struct store_file *f = store_file_for(s, from_ns, err);
    struct writing *w = f != NULL ? find_open(s, f) : NULL;
    size_t place = w == NULL && f != NULL ? free_place(s) : STORE_WRITERS_MAX;
    if (place < STORE_WRITERS_MAX) {
        close_place(s, place);
        w = s->writers[place] = writing_open(s, f, err);
    }
    *ret_no_place = w == NULL && f != NULL && place == STORE_WRITERS_MAX;
    *ret_marked = w == NULL && f != NULL && is_marked(s, f);
    store_file_unref(f);
    return w;
}

struct writing *writing_of(struct store *s, int64_t from_ns, bool *ret_no_place, struct err *err)
{
    struct writing *w = NULL;
    bool marked = true;
    for (int i = 0; w == NULL && marked && i < TRIES_MAX; i++) {
        err_clear(err);
        w = try_file(s, from_ns, ret_no_place, &marked, err);
    }
    if (w != NULL) {
        w->used = ++s->uses;
        w->used_ms = clock_mono_ms();
    }
    return w;
}

/* ---- the batch ------------------------------------------------------------------------------- */

static const struct writing_sum no_profiles = {.oldest_ns = INT64_MAX};

void writing_note(struct writing_sum *sum, int64_t time_ns)
{
    sum->profiles++;
    sum->oldest_ns = time_ns < sum->oldest_ns ? time_ns : sum->oldest_ns;
    sum->newest_ns = time_ns > sum->newest_ns ? time_ns : sum->newest_ns;
}

bool writing_begin(struct writing *w, struct err *err)
{
    if (w->open) {
        return true;
    }
    if (w->stale) {
        /* Another transaction would say that the tables have the profiles of the lost one. */
        return err_set(err, ERR_SYSTEM, "its last transaction was lost");
    }
    if (!w->transaction) {
        w->transaction = db_run(&w->db, SQL_BEGIN, err);
        w->tail = no_profiles;
        w->tail_start = w->data_end;
        w->tail_ms = clock_mono_ms();
    }
    w->open = w->transaction && db_run(&w->db, SQL_SAVE, err);
    w->batch = no_profiles;
    w->batch_start = w->data_end;
    return w->open;
}

int64_t writing_place(const struct writing *w, size_t facts_bytes)
{
    return w->data_end + DATA_HEAD_BYTES + (int64_t)facts_bytes;
}

bool writing_append(struct writing *w, struct sv facts, struct sv body, struct err *err)
{
    char head[DATA_HEAD_BYTES];
    data_put_head(facts, body.n, w->salt, w->data_end, head);
    struct iovec pieces[] = {{head, sizeof(head)},
                             {(char *)(uintptr_t)facts.p, facts.n},
                             {(char *)(uintptr_t)body.p, body.n}};
    struct iovec *at = pieces;
    int64_t end = w->data_end;
    for (int left = 3; left > 0;) {
        ssize_t n = pwritev(w->data_fd, at, left, (off_t)end);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            w->db.full = errno == ENOSPC || errno == EDQUOT;
            return err_sys(err, "cannot append to %s" DATA_SUFFIX, w->file->path);
        }
        end += n;
        for (; left > 0 && (size_t)n >= at->iov_len; left--, at++) {
            n -= (ssize_t)at->iov_len;
        }
        if (left > 0) {
            at->iov_base = (char *)at->iov_base + n;
            at->iov_len -= (size_t)n;
        }
    }
    w->data_end = end;
    return true;
}

static bool sync_data(const struct store *s, struct writing *w, struct err *err)
{
    if (fdatasync(w->data_fd) != 0) {
        return err_sys(err, "cannot sync %s" DATA_SUFFIX, w->file->path);
    }
    /* Some file systems cannot sync a directory. */
    w->named = w->named || s->directory_fd < 0 || fsync(s->directory_fd) == 0 || errno == EINVAL;
    return w->named || err_sys(err, "cannot sync %s", s->options.directory);
}

static void add_sum(struct writing_sum *to, const struct writing_sum *from)
{
    to->profiles += from->profiles;
    to->oldest_ns = from->oldest_ns < to->oldest_ns ? from->oldest_ns : to->oldest_ns;
    to->newest_ns = from->newest_ns > to->newest_ns ? from->newest_ns : to->newest_ns;
}

bool writing_commit(struct store *s, struct writing *w, struct err *err)
{
    if ((atomic_load(&s->limits.sync) && !sync_data(s, w, err)) || !db_run(&w->db, SQL_KEEP, err)) {
        return false;
    }
    w->open = false;
    w->committed += w->batch.profiles;
    (void)store_count_write(w->count_fd, w->committed);
    metric_inc(s->metrics.commits);
    add_sum(&w->tail, &w->batch);
    pthread_mutex_lock(&s->lock);
    struct store_file *f = w->file;
    f->profiles += w->batch.profiles;
    f->singles += w->batch.profiles;
    f->pending = true;
    f->oldest_ns = w->batch.oldest_ns < f->oldest_ns ? w->batch.oldest_ns : f->oldest_ns;
    f->newest_ns = w->batch.newest_ns > f->newest_ns ? w->batch.newest_ns : f->newest_ns;
    f->data_bytes += (uint64_t)(w->data_end - w->batch_start);
    pthread_mutex_unlock(&s->lock);
    if (w->data_end - w->tail_start >= WRITING_TAIL_BYTES ||
        clock_mono_ms() - w->tail_ms >= WRITING_TAIL_MS) {
        /* The batch is stored, whatever becomes of its rows now. */
        (void)writing_index(s, w, true, NULL);
    }
    return true;
}

/* The transaction is lost: the data file has its profiles. */
static void become_stale(struct store *s, struct writing *w)
{
    if (!sqlite3_get_autocommit(w->db.handle)) {
        (void)db_run(&w->db, SQL_ROLLBACK, NULL);
    }
    w->transaction = false;
    w->stale = true;
    store_file_unindexed(s, w->file);
}

void writing_give_up(struct store *s, struct writing *w, const struct err *err)
{
    w->problem = *err;
    err_wrap(&w->problem, "%s", w->file->path);
    s->was_full = s->was_full || w->db.full;
    w->db.full = false;
    forget_known(w);
    if (w->db.fault == DB_DAMAGED || w->db.fault == DB_FOREIGN) {
        store_file_fault(s, w->file, w->db.fault, err->msg);
    }
    w->db.fault = DB_FINE;
    bool undone = w->open && !sqlite3_get_autocommit(w->db.handle) &&
                  db_run(&w->db, SQL_UNDO, NULL) && db_run(&w->db, SQL_KEEP, NULL) &&
                  ftruncate(w->data_fd, (off_t)w->batch_start) == 0;
    bool begun = w->open || w->transaction;
    w->data_end = w->open ? w->batch_start : w->data_end;
    w->open = false;
    if (begun && !undone && !w->stale) {
        become_stale(s, w);
    }
}

/* ---- the transaction ------------------------------------------------------------------------- */

static bool commit_rows(struct writing *w, uint64_t *ret_bytes, struct err *err)
{
    sqlite3_stmt *st = db_statement(&w->db, SQL_NOTE_PUT, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, (int64_t)w->tail.profiles);
    sqlite3_bind_int64(st, 2, w->tail.oldest_ns);
    sqlite3_bind_int64(st, 3, w->tail.newest_ns);
    sqlite3_bind_int64(st, 4, (int64_t)w->salt);
    sqlite3_bind_int64(st, 5, w->data_end);
    return db_step(&w->db, st, err) == 0 && db_data_bytes(&w->db, ret_bytes, err) &&
           db_run(&w->db, SQL_COMMIT, err);
}

bool writing_index(struct store *s, struct writing *w, bool sync, struct err *err)
{
    uint64_t bytes = 0;
    struct err why = ERR_INIT;
    if (w->stale || !w->transaction) {
        return !w->stale || err_set(err, ERR_SYSTEM, "its last transaction was lost");
    }
    if ((sync && !sync_data(s, w, &why)) || !commit_rows(w, &bytes, &why)) {
        log_warn(s->options.log, "the index of a file of the store cannot be written",
                 LOG_STR("endpoint", s->options.name), LOG_STR("file", w->file->path),
                 LOG_ERR(&why));
        s->was_full = s->was_full || w->db.full;
        w->db.full = false;
        become_stale(s, w);
        return err_set(err, why.kind, "%s: %s", w->file->path, why.msg);
    }
    w->transaction = false;
    pthread_mutex_lock(&s->lock);
    w->file->pending = false;
    w->file->data_bytes = bytes + (uint64_t)w->data_end;
    pthread_mutex_unlock(&s->lock);
    if (store_log_is_large(s, w->file) && (sync || sync_data(s, w, NULL))) {
        (void)db_copy_log(&w->db, DB_COPY_ONLY, NULL);
    }
    return true;
}

/* ---- for readers ----------------------------------------------------------------------------- */

struct db *store_writers_db(const struct store *s, const struct store_file *f)
{
    struct writing *w = find_open(s, f);
    return w != NULL && !w->stale ? &w->db : NULL;
}

bool store_is_writing_locked(const struct store *s, const struct store_file *f)
{
    return find_open(s, f) != NULL;
}

bool store_is_writing(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->write_lock);
    bool writing = store_is_writing_locked(s, f);
    pthread_mutex_unlock(&s->write_lock);
    return writing;
}

void store_writers_index(struct store *s)
{
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        if (s->writers[i] != NULL) {
            (void)writing_index(s, s->writers[i], true, NULL);
        }
    }
}

static bool is_gone(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    bool gone = f->gone;
    pthread_mutex_unlock(&s->lock);
    return gone;
}

/* Opens a file whose tables lack profiles, which puts them there. */
static void recover(struct store *s, struct store_file *f)
{
    struct err err = ERR_INIT;
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        if (s->writers[i] != NULL &&
            (s->writers[i]->file == f || is_gone(s, s->writers[i]->file))) {
            close_place(s, i);
        }
    }
    size_t place = free_place(s);
    if (place < STORE_WRITERS_MAX) {
        close_place(s, place);
        s->writers[place] = writing_open(s, f, &err);
    }
    if (place < STORE_WRITERS_MAX && s->writers[place] == NULL) {
        log_warn(s->options.log,
                 "profiles of the store cannot be found, because its disk cannot "
                 "be written",
                 LOG_STR("endpoint", s->options.name), LOG_STR("file", f->path), LOG_ERR(&err));
    } else if (place < STORE_WRITERS_MAX) {
        s->writers[place]->used = ++s->uses;
        s->writers[place]->used_ms = clock_mono_ms();
        s->batch_start = s->uses;
    }
}

void store_index_file_locked(struct store *s, struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    bool pending = f->pending;
    bool unindexed =
        f->unindexed && f->fault == DB_FINE && !f->gone && !f->unwritable && !f->frozen;
    pthread_mutex_unlock(&s->lock);
    struct writing *w = find_open(s, f);
    if (unindexed) {
        recover(s, f);
    } else if (pending && w != NULL) {
        (void)writing_index(s, w, false, NULL);
    }
}

void store_index_file(struct store *s, struct store_file *f)
{
    struct timespec until;
    pthread_mutex_lock(&s->lock);
    bool needed = f->pending || f->unindexed;
    pthread_mutex_unlock(&s->lock);
    if (!needed) {
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += INDEX_WAIT_S;
    if (pthread_mutex_timedlock(&s->write_lock, &until) != 0) {
        log_warn(s->options.log,
                 "a query does not see the newest profiles of the store, because "
                 "its disk does not answer",
                 LOG_STR("endpoint", s->options.name), LOG_STR("file", f->path));
        return;
    }
    store_index_file_locked(s, f);
    pthread_mutex_unlock(&s->write_lock);
}

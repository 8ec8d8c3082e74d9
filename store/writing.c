#include "store/writing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/* Limit of the sets and series of a file whose rows are remembered. */
#define KNOWN_MAX 65536
/* Limit of the files of a stretch that are tried for one profile. Each file that fails is marked.
 */
#define TRIES_MAX 4

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

/* Copies the log into the database and empties it, unless the file was removed or replaced. */
static void cut_log(struct store *s, struct writing *w)
{
    pthread_mutex_lock(&s->lock);
    bool ours = !w->file->gone && w->file->fault == DB_FINE;
    pthread_mutex_unlock(&s->lock);
    if (ours && w->db.handle != NULL) {
        (void)db_copy_log(&w->db, DB_COPY_AND_CUT, NULL);
        store_log_note(s, w->file);
    }
}

static void writing_free(struct store *s, struct writing *w)
{
    cut_log(s, w);
    forget_known(w);
    db_close(&w->db);
    store_log_note(s, w->file);
    if (w->count_fd >= 0) {
        close(w->count_fd);
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
        } else if (w->db.read_only || has_lost_log(s, w)) {
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
    static const char *const suffixes[] = {"", "-wal", "-shm"};
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
    return true;
}

static struct writing *writing_open(struct store *s, struct store_file *f, struct err *err)
{
    struct writing *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        err_memory(err);
        return NULL;
    }
    w->file = store_file_ref(f);
    w->count_fd = -1;
    if (!open_database(s, w, err)) {
        err_wrap(err, "cannot write to %s", f->path);
        writing_free(s, w);
        return NULL;
    }
    store_log_limit(s, &w->db);
    pthread_mutex_lock(&s->lock);
    w->committed = f->profiles;
    pthread_mutex_unlock(&s->lock);
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
    bool marked = f->fault != DB_FINE || f->unwritable;
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

/* ---- the transaction ------------------------------------------------------------------------- */

bool writing_begin(struct writing *w, bool sync, struct err *err)
{
    if (w->open) {
        return true;
    }
    w->open = db_sync_commits(&w->db, sync, err) && db_run(&w->db, SQL_BEGIN, err);
    w->profiles = 0;
    w->oldest_ns = INT64_MAX;
    w->newest_ns = 0;
    return w->open;
}

static bool commit_rows(struct writing *w, struct err *err)
{
    if (w->profiles > 0) {
        sqlite3_stmt *st = db_statement(&w->db, SQL_NOTE_PUT, err);
        if (st == NULL) {
            return false;
        }
        sqlite3_bind_int64(st, 1, (int64_t)w->profiles);
        sqlite3_bind_int64(st, 2, w->oldest_ns);
        sqlite3_bind_int64(st, 3, w->newest_ns);
        if (db_step(&w->db, st, err) != 0) {
            return false;
        }
    }
    return db_data_bytes(&w->db, &w->data_bytes, err) && db_run(&w->db, SQL_COMMIT, err);
}

bool writing_commit(struct store *s, struct writing *w, struct err *err)
{
    if (!commit_rows(w, err)) {
        return false;
    }
    w->open = false;
    w->committed += w->profiles;
    (void)store_count_write(w->count_fd, w->committed);
    metric_inc(s->metrics.commits);
    pthread_mutex_lock(&s->lock);
    struct store_file *f = w->file;
    f->profiles += w->profiles;
    f->singles += w->profiles;
    f->oldest_ns = w->oldest_ns < f->oldest_ns ? w->oldest_ns : f->oldest_ns;
    f->newest_ns = w->newest_ns > f->newest_ns ? w->newest_ns : f->newest_ns;
    f->data_bytes = w->data_bytes;
    pthread_mutex_unlock(&s->lock);
    store_log_note(s, f);
    return true;
}

void writing_give_up(struct store *s, struct writing *w, const struct err *err)
{
    w->problem = *err;
    err_wrap(&w->problem, "%s", w->file->path);
    if (!sqlite3_get_autocommit(w->db.handle)) {
        (void)db_run(&w->db, SQL_ROLLBACK, NULL);
    }
    w->open = false;
    s->was_full = s->was_full || w->db.full;
    w->db.full = false;
    forget_known(w);
    if (w->db.fault == DB_DAMAGED || w->db.fault == DB_FOREIGN) {
        store_file_fault(s, w->file, w->db.fault, err->msg);
    }
    w->db.fault = DB_FINE;
}

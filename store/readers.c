/* Connections for reading. A few of them stay open. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "store/archive/archive.h"
#include "store/private.h"

static struct reader_conn *take_idle(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    struct reader_conn **at = &s->idle;
    while (*at != NULL && (*at)->file != f) {
        at = &(*at)->next;
    }
    struct reader_conn *c = *at;
    if (c != NULL) {
        *at = c->next;
    }
    pthread_mutex_unlock(&s->lock);
    return c;
}

/* Makes a connection whose database is still to be opened. NULL with err. */
static struct reader_conn *conn_new(struct store *s, struct store_file *f, struct err *err)
{
    struct reader_conn *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    c->file = store_file_ref(f);
    metric_inc(s->metrics.opened);
    return c;
}

static void conn_free(struct reader_conn *c)
{
    db_close(&c->db);
    store_file_unref(c->file);
    free(c);
}

static void conns_free(struct reader_conn *c)
{
    while (c != NULL) {
        struct reader_conn *next = c->next;
        conn_free(c);
        c = next;
    }
}

/* Returns false if the file does not exist: opening it would create it again. *ret_inode is 0 if
 * nothing is known of the file. */
static bool is_there(struct store *s, struct store_file *f, uint64_t *ret_inode)
{
    struct stat st;
    bool found = lstat(f->path, &st) == 0;
    *ret_inode = found ? (uint64_t)st.st_ino : 0;
    if (found || errno != ENOENT) {
        return true;
    }
    pthread_mutex_lock(&s->lock);
    /* A file that store_file_for() has returned may not exist on the disk yet. */
    bool made = f->profiles > 0;
    pthread_mutex_unlock(&s->lock);
    if (made) {
        store_file_gone(s, f);
    }
    return false;
}

/* Takes an idle connection to a file on disk. Connections to a file that was replaced by another
 * one of its name are closed. */
static struct reader_conn *take_idle_local(struct store *s, const struct store_file *f,
                                           uint64_t inode)
{
    struct reader_conn *c = take_idle(s, f);
    if (c != NULL && c->inode != inode) {
        conn_free(c);
        store_readers_close(s, f);
        return NULL;
    }
    return c;
}

/* Opens a file of the archive. NULL with err. */
static struct reader_conn *open_remote(struct store *s, struct store_file *f, struct err *err)
{
    struct reader_conn *c = conn_new(s, f, err);
    if (c == NULL) {
        return NULL;
    }
    if (!archive_open_db(f, &c->db, err)) {
        conn_free(c);
        return NULL;
    }
    return c;
}

/* Opens the database of a connection. False with *ret_skip, or with the reason in err. */
static bool open_conn(struct store *s, struct reader_conn *c, bool *ret_skip, struct err *err)
{
    struct err why = ERR_INIT;
    struct err ignored = ERR_INIT;
    const char *path = c->file->path;
    bool empty = false;
    if (db_open(&c->db, path, false, &empty, &why) && !empty) {
        return true;
    }
    if (!empty && c->db.fault == DB_FINE) {
        if (db_open_still(&c->db, path, &empty, &ignored) && !empty) {
            return true;
        }
        c->db.fault = DB_FINE;
    }
    *ret_skip = empty || c->db.fault != DB_FINE;
    if (c->db.fault != DB_FINE) {
        store_file_fault(s, c->file, c->db.fault, why.msg);
    } else if (!empty) {
        err_set(err, why.kind, "%s: %s", path, why.msg);
    }
    return false;
}

/* Opens a file on disk. NULL as store_reader_take(). */
static struct reader_conn *open_local(struct store *s, struct store_file *f, uint64_t inode,
                                      bool *ret_skip, struct err *err)
{
    if (!store_file_check(s, f)) {
        *ret_skip = true;
        return NULL;
    }
    struct reader_conn *c = conn_new(s, f, err);
    if (c == NULL) {
        return NULL;
    }
    c->inode = inode;
    if (!open_conn(s, c, ret_skip, err)) {
        conn_free(c);
        return NULL;
    }
    return c;
}

/* Returns true if a sum was removed, so that another one may have its name. */
static bool was_replaced(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    bool gone = f->gone;
    pthread_mutex_unlock(&s->lock);
    return gone;
}

/* Opens the sum of a day, which never changes. NULL with err. */
static struct reader_conn *open_sum(struct store *s, struct store_file *f, struct err *err)
{
    bool empty = false;
    struct reader_conn *c = conn_new(s, f, err);
    if (c == NULL) {
        return NULL;
    }
    if (!db_open_still(&c->db, f->path, &empty, err) || empty) {
        (void)(!empty || err_set(err, ERR_INPUT, "it is empty"));
        conn_free(c);
        return NULL;
    }
    if (was_replaced(s, f)) {
        err_set(err, ERR_INPUT, "it was replaced");
        conn_free(c);
        return NULL;
    }
    return c;
}

struct reader_conn *store_reader_take(struct store *s, struct store_file *f, bool *ret_skip,
                                      struct err *err)
{
    uint64_t inode = 0;
    *ret_skip = false;
    if (f->sum) {
        struct reader_conn *r = take_idle(s, f);
        return r != NULL ? r : open_sum(s, f, err);
    }
    if (f->object != NULL) {
        struct reader_conn *r = take_idle(s, f);
        return r != NULL ? r : open_remote(s, f, err);
    }
    *ret_skip = !is_there(s, f, &inode);
    struct reader_conn *c = *ret_skip ? NULL : take_idle_local(s, f, inode);
    return c != NULL || *ret_skip ? c : open_local(s, f, inode, ret_skip, err);
}

/* Takes those idle connections off the list that exceed a limit, which were not used for longest.
 * Returns them as a list. Under the lock. */
static struct reader_conn *take_surplus(struct store *s)
{
    size_t local = 0;
    size_t remote = 0;
    size_t bytes = 0;
    struct reader_conn *surplus = NULL;
    for (struct reader_conn **at = &s->idle; *at != NULL;) {
        struct reader_conn *c = *at;
        bool is_remote = c->file->object != NULL;
        size_t *n = is_remote ? &remote : &local;
        if (*n < (is_remote ? STORE_IDLE_REMOTE_MAX : STORE_IDLE_READERS_MAX) &&
            c->bytes <= STORE_IDLE_BYTES_MAX - bytes) {
            ++*n;
            bytes += c->bytes;
            at = &c->next;
        } else {
            *at = c->next;
            c->next = surplus;
            surplus = c;
        }
    }
    return surplus;
}

void store_reader_give(struct store *s, struct reader_conn *c, const struct err *err)
{
    if (c->db.still && !c->file->sum) {
        /* The connection was opened for a disk that cannot be written. The disk may be writable
         * again when the next query opens the file. */
        conn_free(c);
        return;
    }
    if (c->db.fault != DB_FINE) {
        if (c->file->object == NULL && !c->file->sum) {
            store_file_fault(s, c->file, c->db.fault, err->msg);
        }
        conn_free(c);
        return;
    }
    c->bytes = db_memory(&c->db);
    pthread_mutex_lock(&s->lock);
    bool keep = !c->file->gone && c->file->fault == DB_FINE;
    if (keep) {
        c->next = s->idle;
        s->idle = c;
    }
    struct reader_conn *surplus = take_surplus(s);
    pthread_mutex_unlock(&s->lock);
    if (!keep) {
        conn_free(c);
    }
    conns_free(surplus);
}

size_t store_readers_bytes(struct store *s)
{
    size_t bytes = 0;
    pthread_mutex_lock(&s->lock);
    for (const struct reader_conn *c = s->idle; c != NULL; c = c->next) {
        bytes += c->bytes;
    }
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

void store_readers_close(struct store *s, const struct store_file *f)
{
    struct reader_conn *closing = NULL;
    pthread_mutex_lock(&s->lock);
    struct reader_conn **at = &s->idle;
    while (*at != NULL) {
        struct reader_conn *c = *at;
        if (f == NULL || c->file == f) {
            *at = c->next;
            c->next = closing;
            closing = c;
        } else {
            at = &c->next;
        }
    }
    pthread_mutex_unlock(&s->lock);
    conns_free(closing);
}

void store_scan_begin(struct store *s, struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    while (f->merging) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    f->scans++;
    pthread_mutex_unlock(&s->lock);
}

void store_scan_end(struct store *s, struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    f->scans--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

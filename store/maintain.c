/* What the store does on its own thread: retention, checkpoints, and calling for merging. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/private.h"

#define ROUND_MS (30 * MS_PER_S)
/* After the start: what comes first is answering. */
#define FIRST_ROUND_MS (5 * MS_PER_S)
/* A file whose stretch is over is closed after so long without a profile. */
#define CLOSE_AFTER_MS (60 * MS_PER_S)

/* ---- pausing --------------------------------------------------------------------------------- */

bool store_pause(struct store *s, int64_t ms)
{
    struct timespec until;
    int64_t ns = clock_mono_ns() + ms * NS_PER_MS;
    until.tv_sec = (time_t)(ns / NS_PER_S);
    until.tv_nsec = (long)(ns % NS_PER_S);
    pthread_mutex_lock(&s->lock);
    int rc = 0;
    while (!s->stopping && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    }
    bool stopping = s->stopping;
    pthread_mutex_unlock(&s->lock);
    return !stopping;
}

/* ---- retention ------------------------------------------------------------------------------- */

enum removal { REMOVED_NONE, REMOVED_AGE, REMOVED_BYTES };

/* The file to remove next, with a reference, and why. Files with a fault are left where they are,
 * and count nowhere; the last file stays. */
static struct store_file *next_to_remove(struct store *s, int64_t now_ns, enum removal *ret_why)
{
    const int64_t max_age_ms = s->limits.max_age_ms;
    const uint64_t max_bytes = s->limits.max_bytes;
    struct store_file *oldest = NULL;
    uint64_t bytes = 0;
    size_t n = 0;
    *ret_why = REMOVED_NONE;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        if (f->fault == DB_FINE) {
            oldest = oldest == NULL ? f : oldest;
            bytes += max_bytes > 0 ? store_file_bytes(f) : 0;
            n++;
        }
    }
    if (oldest != NULL && max_age_ms > 0 &&
        store_file_until_ns(oldest) < now_ns - max_age_ms * NS_PER_MS) {
        *ret_why = REMOVED_AGE;
    } else if (n > 1 && max_bytes > 0 && bytes > max_bytes) {
        *ret_why = REMOVED_BYTES;
    }
    struct store_file *f = *ret_why != REMOVED_NONE ? store_file_ref(oldest) : NULL;
    pthread_mutex_unlock(&s->lock);
    return f;
}

static void retire(struct store *s, int64_t now_ns)
{
    static const char *const reasons[] = {[REMOVED_AGE] = "age", [REMOVED_BYTES] = "bytes"};
    struct err err = ERR_INIT;
    enum removal why;
    struct store_file *f;
    while ((f = next_to_remove(s, now_ns, &why)) != NULL) {
        bool ok = store_file_remove(s, f, &err);
        if (ok) {
            metric_inc(metric_cell(s->metrics.removed,
                                   (const char *const[]){s->options.name, reasons[why]}));
            log_info(s->options.log, "a file of the store was removed",
                     LOG_STR("endpoint", s->options.name), LOG_STR("file", f->path),
                     LOG_STR("reason", reasons[why]));
        } else {
            log_warn(s->options.log, "a file of the store cannot be removed",
                     LOG_STR("endpoint", s->options.name), LOG_ERR(&err));
        }
        store_file_unref(f);
        if (!ok) {
            break;
        }
    }
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

bool store_checkpoint(struct db *db, bool truncate, struct err *err)
{
    int rc = sqlite3_wal_checkpoint_v2(
        db->handle, NULL, truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, NULL,
        NULL);
    return rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED ||
           err_set(err, ERR_SYSTEM, "checkpoint: %s", sqlite3_errmsg(db->handle));
}

/* Copies what was committed into the databases, so that a loss of power costs no more than what
 * came since the last round. */
static void checkpoint_all(struct store *s)
{
    struct store_file *files[STORE_WRITERS_MAX];
    size_t n = store_writers_files(s, files);
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        bool skip;
        struct reader_conn *c = store_reader_take(s, files[i], &skip, &err);
        if (c != NULL) {
            (void)store_checkpoint(&c->db, false, &err);
            store_reader_give(s, c, &err);
        }
        store_file_unref(files[i]);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

void store_maintain(struct store *s, int64_t now_ns)
{
    pthread_mutex_lock(&s->maintain_lock);
    retire(s, now_ns);
    store_writers_close_idle(s, now_ns, CLOSE_AFTER_MS);
    checkpoint_all(s);
    store_merge_files(s, now_ns);
    pthread_mutex_unlock(&s->maintain_lock);
}

static void *store_background(void *arg)
{
    struct store *s = arg;
    int64_t wait_ms = FIRST_ROUND_MS;
    while (store_pause(s, wait_ms)) {
        store_maintain(s, clock_wall_ns());
        wait_ms = ROUND_MS;
    }
    return NULL;
}

bool store_background_start(struct store *s, struct err *err)
{
    s->has_thread = thread_start(&s->thread, "store", store_background, s, err);
    return s->has_thread;
}

void store_background_stop(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread) {
        pthread_join(s->thread, NULL);
        s->has_thread = false;
    }
}

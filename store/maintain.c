/* The background thread: it opens the store, and then runs a round every 30 seconds, which removes
 * old files, copies logs into databases, and merges profiles. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/archive/archive.h"
#include "store/private.h"
#include "store/sums.h"

#define ROUND_MS (30 * MS_PER_S)
/* Delay of the first round, so that queries right after the start find the disk idle. */
#define FIRST_ROUND_MS (5 * MS_PER_S)
/* A file whose stretch has ended is closed if no profile was put into it for this long. */
#define CLOSE_AFTER_MS (60 * MS_PER_S)

/* ---- pausing --------------------------------------------------------------------------------- */

bool store_pause(struct store *s, int64_t ms)
{
    const struct timespec until = clock_timespec(clock_mono_ms() + ms);
    pthread_mutex_lock(&s->lock);
    int rc = 0;
    while (!s->stopping && rc != ETIMEDOUT && !s->hurry) {
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    }
    bool stopping = s->stopping;
    pthread_mutex_unlock(&s->lock);
    return !stopping;
}

void store_hurry(struct store *s)
{
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&s->lock);
    if (s->hurried_ms == 0 || now_ms - s->hurried_ms >= MS_PER_S) {
        s->hurried_ms = now_ms;
        s->hurry = true;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- retention ------------------------------------------------------------------------------- */

enum removal { REMOVED_NONE, REMOVED_AGE, REMOVED_BYTES, REMOVED_UNARCHIVED };

/* The files without a fault: those with one are neither removed nor counted. */
struct holding {
    struct store_file *first;  /* the oldest */
    struct store_file *oldest; /* that may be removed: with an archive, one that the archive has */
    uint64_t bytes;
    size_t n;
};

/* Under the lock. */
static struct holding holding_of(const struct store *s)
{
    struct holding h = {.bytes = store_sums_bytes(s)};
    for (size_t i = 0; i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        if (f->fault == DB_FINE) {
            h.first = h.first == NULL ? f : h.first;
            h.oldest = h.oldest == NULL && (s->archive == NULL || archive_has(f)) ? f : h.oldest;
            h.bytes += f->data_bytes;
            h.n++;
        }
    }
    return h;
}

/* Returns the file to remove next, with a reference, and the reason. The last file is removed for
 * its age, too, but to keep max_bytes only if the disk is full. With an archive, only files that
 * the archive has are removed; if the disk is full and there is none, the oldest of the others is
 * given up, so that new profiles find room. */
static struct store_file *next_to_remove(struct store *s, int64_t now_ns, bool disk_is_full,
                                         enum removal *ret_why)
{
    const int64_t max_age_ms = s->limits.max_age_ms;
    const uint64_t max_bytes = store_max_bytes(s);
    *ret_why = REMOVED_NONE;
    pthread_mutex_lock(&s->lock);
    const struct holding h = holding_of(s);
    struct store_file *f = h.oldest != NULL ? h.oldest : h.first;
    if (h.oldest != NULL && max_age_ms > 0 &&
        store_file_until_ns(h.oldest) < now_ns - max_age_ms * NS_PER_MS) {
        *ret_why = REMOVED_AGE;
    } else if (h.n > (disk_is_full ? 0U : 1U) && max_bytes > 0 && h.bytes > max_bytes) {
        *ret_why = h.oldest != NULL ? REMOVED_BYTES
                   : disk_is_full   ? REMOVED_UNARCHIVED
                                    : REMOVED_NONE;
    }
    f = *ret_why != REMOVED_NONE ? store_file_ref(f) : NULL;
    pthread_mutex_unlock(&s->lock);
    return f;
}

static void retire(struct store *s, int64_t now_ns, bool disk_is_full)
{
    static const char *const reasons[] = {
        [REMOVED_AGE] = "age", [REMOVED_BYTES] = "bytes", [REMOVED_UNARCHIVED] = "unarchived"};
    struct err err = ERR_INIT;
    enum removal why;
    struct store_file *f;
    while ((f = next_to_remove(s, now_ns, disk_is_full, &why)) != NULL) {
        bool ok = store_file_remove(s, f, &err);
        if (ok && why == REMOVED_UNARCHIVED) {
            store_lost(s, f->path, f->profiles,
                       "the disk is full, and the archive has not taken the file");
        }
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

/* ---- the thread ------------------------------------------------------------------------------ */

/* Tries again to put the profiles of data files into their tables. */
static void index_files(struct store *s)
{
    struct store_file **files;
    size_t n;
    if (!store_files_in(s, INT64_MIN, INT64_MAX, &files, &n, NULL)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        store_index_file(s, files[i]);
    }
    store_files_free(files, n);
}

void store_maintain(struct store *s, int64_t now_ns)
{
    pthread_mutex_lock(&s->maintain_lock);
    pthread_mutex_lock(&s->lock);
    bool disk_is_full = s->hurry;
    s->hurry = false;
    pthread_mutex_unlock(&s->lock);
    store_disk_measure(s);
    store_retry_unreadable(s);
    retire(s, now_ns, disk_is_full);
    store_writers_close_idle(s, now_ns, CLOSE_AFTER_MS);
    /* After a loss of power, only the commits since the last round are missing. */
    pthread_mutex_lock(&s->write_lock);
    store_writers_index(s);
    pthread_mutex_unlock(&s->write_lock);
    index_files(s);
    store_logs_copy(s);
    store_merge_files(s, now_ns);
    store_sums_make(s, now_ns);
    store_bad_drop(s);
    if (s->archive != NULL) {
        archive_hurry(s->archive);
    }
    pthread_mutex_unlock(&s->maintain_lock);
}

/* Opens the store, and wakes all threads that wait for this. */
static void open_now(struct store *s)
{
    struct err err = ERR_INIT;
    bool ok = store_take_directory(s, &err);
    if (ok) {
        store_disk_measure(s);
        ok = store_list(s, &err);
    }
    if (ok) {
        archive_read_marks(s);
        store_convert_recordings(s);
    }
    pthread_mutex_lock(&s->lock);
    s->state = ok ? STORE_OPEN : STORE_UNOPENED;
    s->open_err = err;
    s->hurry = false;
    bool late = s->started;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (late && ok) {
        log_info(s->options.log, "the disk of the store answers",
                 LOG_STR("endpoint", s->options.name), LOG_STR("directory", s->options.directory));
    } else if (late) {
        log_error(s->options.log, "the store cannot be opened",
                  LOG_STR("endpoint", s->options.name), LOG_ERR(&err));
    }
}

static void *store_background(void *arg)
{
    struct store *s = arg;
    int64_t wait_ms = FIRST_ROUND_MS;
    open_now(s);
    while (store_pause(s, wait_ms)) {
        if (s->state == STORE_OPEN) {
            store_maintain(s, clock_wall_ns());
        } else {
            open_now(s);
        }
        wait_ms = ROUND_MS;
    }
    return NULL;
}

bool store_background_start(struct store *s, struct err *err)
{
    s->has_thread = thread_start(&s->thread, "store", store_background, s, err);
    return s->has_thread;
}

bool store_await_open(struct store *s, int64_t ms, struct err *err)
{
    const struct timespec until = clock_timespec(clock_mono_ms() + ms);
    pthread_mutex_lock(&s->lock);
    int rc = 0;
    while (s->state == STORE_OPENING && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    }
    bool failed = s->state == STORE_UNOPENED;
    bool hangs = s->state == STORE_OPENING;
    s->started = !failed;
    if (failed) {
        (void)err_set(err, s->open_err.kind, "%s", s->open_err.msg);
    }
    pthread_mutex_unlock(&s->lock);
    if (hangs) {
        log_error(s->options.log, "the disk of the store does not answer: profiles wait",
                  LOG_STR("endpoint", s->options.name), LOG_STR("directory", s->options.directory));
    }
    return !failed;
}

bool store_is_open(struct store *s, struct err *err)
{
    pthread_mutex_lock(&s->lock);
    while (s->state == STORE_OPENING && !s->stopping) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
    bool open = s->state == STORE_OPEN || err_set(err, ERR_SYSTEM, "the store is not open: %s",
                                                  s->stopping ? "profpull ends" : s->open_err.msg);
    pthread_mutex_unlock(&s->lock);
    if (!open) {
        store_hurry(s);
    }
    return open;
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

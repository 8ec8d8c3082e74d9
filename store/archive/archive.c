#include "store/archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/archive/private.h"

#define ID_FILE "archive-name"
#define CACHE_BYTES_DEFAULT (UINT64_C(128) * 1024 * 1024)

/* ---- the name of the writer ------------------------------------------------------------------ */

/* Returns true for the name of a pod of a StatefulSet: it ends with "-" and a number. */
static bool is_of_a_set(struct sv name)
{
    size_t digits = 0;
    while (digits < name.n && name.p[name.n - 1 - digits] >= '0' &&
           name.p[name.n - 1 - digits] <= '9') {
        digits++;
    }
    return digits > 0 && digits <= 5 && digits + 1 < name.n && name.p[name.n - 1 - digits] == '-' &&
           archive_is_writer(name);
}

static void random_id(char out[2 * sizeof(uint64_t) + 1])
{
    struct rng rng;
    rng_seed_random(&rng);
    (void)snprintf(out, 2 * sizeof(uint64_t) + 1, "%016" PRIx64, rng_next(&rng));
}

/* Reads the name that is kept in the directory, or makes one. */
static bool kept_name(const char *directory, char ret[64], struct err *err)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/" ID_FILE, directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0) {
        return err_sys(err, "cannot open %s", path);
    }
    ssize_t n = read(fd, ret, ARCHIVE_WRITER_SIZE - 1);
    struct sv name = sv_trim((struct sv){ret, n > 0 ? (size_t)n : 0});
    bool ok = true;
    if (archive_is_writer(name)) {
        memmove(ret, name.p, name.n);
        ret[name.n] = '\0';
    } else {
        random_id(ret);
        ok = (pwrite(fd, ret, strlen(ret), 0) == (ssize_t)strlen(ret) && fsync(fd) == 0) ||
             err_sys(err, "cannot write %s", path);
    }
    close(fd);
    return ok;
}

bool archive_writer(const char *given, const char *directory, char ret[64], struct err *err)
{
    char host[256] = "";
    (void)gethostname(host, sizeof(host) - 1);
    if (given != NULL) {
        (void)snprintf(ret, ARCHIVE_WRITER_SIZE, "%s", given);
        return archive_is_writer(sv_from(given)) ||
               err_set(err, ERR_INPUT,
                       "expected a name of letters, digits, \".\", \"_\" and \"-\"");
    }
    if (is_of_a_set(sv_from(host))) {
        (void)snprintf(ret, ARCHIVE_WRITER_SIZE, "%.63s", host);
        return true;
    }
    return kept_name(directory, ret, err);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void gauge(struct metrics_out *out, const char *endpoint, const char *name, const char *help,
                  enum metric_type type, double value)
{
    const char *const labels[][2] = {{"endpoint", endpoint}};
    metrics_out_family(out, name, help, type);
    metrics_out_sample(out, labels, 1, value);
}

/* Adds the numbers that are read from the archive. */
static void archive_collect(struct metrics_out *out, void *arg)
{
    struct archive *a = arg;
    const char *e = a->store->options.name;
    struct archive_stats stats;
    struct archive_cache_stats cache;
    archive_stats(a, &stats);
    archive_cache_stats(a->cache, &cache);
    gauge(out, e, "profpull_archive_waiting_files",
          "Files of the store that wait for their upload.", METRIC_GAUGE,
          (double)stats.waiting_files);
    gauge(out, e, "profpull_archive_waiting_bytes", "Bytes of these files.", METRIC_GAUGE,
          (double)stats.waiting_bytes);
    gauge(out, e, "profpull_archive_files", "Files of all writers in the archive.", METRIC_GAUGE,
          (double)stats.files);
    gauge(out, e, "profpull_archive_bytes", "Bytes of these files.", METRIC_GAUGE,
          (double)stats.bytes);
    gauge(out, e, "profpull_archive_up", "Whether the bucket has answered the last listing.",
          METRIC_GAUGE, stats.up ? 1 : 0);
    gauge(out, e, "profpull_archive_conflict",
          "Whether another process uses the name of this writer.", METRIC_GAUGE, stats.conflict);
    gauge(out, e, "profpull_archive_foreign_objects",
          "Objects under the prefix that do not belong to an archive.", METRIC_GAUGE,
          (double)stats.foreign);
    gauge(out, e, "profpull_archive_cache_hits_total", "Blocks that were read from the cache.",
          METRIC_COUNTER, (double)cache.hits);
    gauge(out, e, "profpull_archive_cache_misses_total", "Blocks that were read from the bucket.",
          METRIC_COUNTER, (double)cache.misses);
    gauge(out, e, "profpull_archive_cache_failures_total",
          "Blocks that were damaged on the disk, or could not be written there.", METRIC_COUNTER,
          (double)cache.disk_fails);
    gauge(out, e, "profpull_archive_cache_memory_bytes", "Bytes of blocks in memory.", METRIC_GAUGE,
          (double)cache.memory);
    gauge(out, e, "profpull_archive_cache_disk_bytes", "Bytes of blocks on the disk.", METRIC_GAUGE,
          (double)cache.disk);
}

static void make_metrics(struct archive *a)
{
    struct metrics *all = a->store->options.metrics;
    struct archive_metrics *m = &a->metrics;
    const char *e = a->store->options.name;
    m->uploads = metrics_family(all, METRIC_COUNTER, "profpull_archive_uploads_total",
                                "Uploads of files to the archive, by result: ok, failed.",
                                "endpoint", "result");
    m->failures = metrics_family(all, METRIC_COUNTER, "profpull_archive_failures_total",
                                 "Requests of the archive that have failed, by reason.", "endpoint",
                                 "reason");
    m->removed = metrics_family(all, METRIC_COUNTER, "profpull_archive_removed_total",
                                "Files that were removed from the archive, by reason: age, "
                                "abandoned, left_over, replaced.",
                                "endpoint", "reason");
    m->days = metrics_family(all, METRIC_COUNTER, "profpull_archive_days_total",
                             "Merges of the objects of a day into one, by result: ok, failed.",
                             "endpoint", "result");
    m->faults = metrics_family(all, METRIC_COUNTER, "profpull_archive_faults_total",
                               "Objects of the archive that were left alone from then on, by "
                               "reason: missing, damaged, newer; damaged catalogues, which are "
                               "not used: catalogue; and conflict.",
                               "endpoint", "reason");
    m->upload_bytes =
        metric_cell_of(metrics_family(all, METRIC_COUNTER, "profpull_archive_upload_bytes_total",
                                      "Bytes of the files that were uploaded.", "endpoint", NULL),
                       e);
}

/* ---- notes ----------------------------------------------------------------------------------- */

int64_t archive_deadline(void)
{
    return clock_mono_ms() + ARCHIVE_REQUEST_MS;
}

bool archive_is_stopping(struct archive *a)
{
    pthread_mutex_lock(&a->lock);
    bool stopping = a->stopping;
    pthread_mutex_unlock(&a->lock);
    return stopping;
}

bool archive_note(struct archive *a, const char *what, enum bucket_result result,
                  const struct err *err)
{
    const struct err none = ERR_INIT;
    pthread_mutex_lock(&a->lock);
    bool was_fine = a->problem.kind == ERR_NONE;
    bool same = !was_fine && strcmp(a->problem.msg, err->msg) == 0;
    bool stopping = a->stopping;
    if (result != BUCKET_OK) {
        a->problem = *err;
        a->problem.kind = err->kind != ERR_NONE ? err->kind : ERR_SYSTEM;
        a->round_has_failed = true;
    } else if (!a->round_has_failed) {
        a->problem = none;
    }
    pthread_mutex_unlock(&a->lock);
    if (result == BUCKET_OK) {
        return true;
    }
    metric_inc(metric_cell(a->metrics.failures, (const char *const[]){a->store->options.name,
                                                                      bucket_result_name(result)}));
    if (!same && !stopping) {
        log_warn(a->store->options.log, "a request of the archive has failed, and will be repeated",
                 LOG_STR("endpoint", a->store->options.name), LOG_STR("step", what),
                 LOG_STR("reason", bucket_result_name(result)), LOG_ERR(err));
    }
    return false;
}

bool archive_is_partial(struct archive *a, struct err *err)
{
    /* A listing that is late by a few rounds still has all but the newest objects, which their
     * writers have on disk. */
    const int64_t late_ms = 10 * ARCHIVE_LIST_MS;
    pthread_mutex_lock(&a->lock);
    bool partial = a->listed_ms == 0 || clock_mono_ms() - a->listed_ms > late_ms;
    if (partial) {
        err_set(err, ERR_SYSTEM, "the objects of %s %s%s%s", a->backend.url(a->backend.arg),
                a->listed_ms == 0 ? "have not been listed yet" : "cannot be listed",
                a->list_err.kind != ERR_NONE ? ": " : "",
                a->list_err.kind != ERR_NONE ? a->list_err.msg : "");
    }
    pthread_mutex_unlock(&a->lock);
    return partial;
}

void archive_stats(struct archive *a, struct archive_stats *ret)
{
    *ret = (struct archive_stats){.files = 0};
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n_files; i++) {
        ret->files++;
        ret->bytes += a->files[i]->object->name.bytes;
    }
    ret->waiting_files = a->waiting_files;
    ret->waiting_bytes = a->waiting_bytes;
    ret->listed_ms = a->listed_ms;
    ret->up = a->listed_ms != 0 && a->list_err.kind == ERR_NONE;
    ret->conflict = a->conflict;
    ret->foreign = a->foreign;
    if (a->problem.kind != ERR_NONE) {
        (void)snprintf(ret->problem, sizeof(ret->problem), "%s", a->problem.msg);
    }
    (void)snprintf(ret->writer, sizeof(ret->writer), "%s", a->writer);
    pthread_mutex_unlock(&a->lock);
    (void)snprintf(ret->url, sizeof(ret->url), "%s", a->backend.url(a->backend.arg));
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Chooses the name of this writer before the first round: it may be on the disk, which the start of
 * the process does not wait for. */
static bool choose_name(struct archive *a)
{
    char name[ARCHIVE_WRITER_SIZE] = "";
    struct err err = ERR_INIT;
    if (a->writer[0] != '\0') {
        return true;
    }
    if (!archive_writer(a->given_name, a->store->options.directory, name, &err)) {
        return archive_note(a, "name", BUCKET_FILE, &err);
    }
    pthread_mutex_lock(&a->lock);
    memcpy(a->writer, name, sizeof(a->writer));
    pthread_mutex_unlock(&a->lock);
    return true;
}

void archive_round(struct archive *a, int64_t now_ns)
{
    pthread_mutex_lock(&a->round_lock);
    pthread_mutex_lock(&a->lock);
    a->round_has_failed = false;
    pthread_mutex_unlock(&a->lock);
    bool ok = a->read_only || (choose_name(a) && archive_beat(a, now_ns));
    ok = ok && archive_list(a, now_ns);
    if (ok && !a->read_only) {
        archive_upload(a, now_ns);
        archive_days(a, now_ns);
        archive_expire(a, now_ns);
    }
    pthread_mutex_unlock(&a->round_lock);
}

void archive_hurry(struct archive *a)
{
    pthread_mutex_lock(&a->lock);
    a->hurry = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* Waits for the next round. False if the archive ends. */
static bool await_round(struct archive *a)
{
    const struct timespec until = clock_timespec(clock_mono_ms() + ARCHIVE_LIST_MS);
    pthread_mutex_lock(&a->lock);
    int rc = 0;
    while (!a->stopping && !a->hurry && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&a->changed, &a->lock, &until);
    }
    a->hurry = false;
    bool stopping = a->stopping;
    pthread_mutex_unlock(&a->lock);
    return !stopping;
}

static void *archive_thread(void *arg)
{
    struct archive *a = arg;
    /* The files on disk must be known before the first upload. */
    struct err err = ERR_INIT;
    bool open = a->read_only || store_is_open(a->store, &err);
    do {
        if (open) {
            archive_round(a, clock_wall_ns());
        } else {
            open = store_is_open(a->store, &err);
        }
    } while (await_round(a));
    return NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static bool open_bucket(struct archive *a, const struct archive_options *o, struct err *err)
{
    if (o->backend != NULL) {
        a->backend = *o->backend;
        return true;
    }
    struct bucket_options b = {.settings = o->bucket,
                               .name = a->store->options.name,
                               .log = a->store->options.log,
                               .metrics = a->store->options.metrics,
                               .contents = o->contents};
    struct bucket *bucket = bucket_new(&b, err);
    if (bucket == NULL) {
        return false;
    }
    a->backend = archive_backend_of(bucket);
    return true;
}

static bool open_cache(struct archive *a, const struct archive_options *o, struct err *err)
{
    struct archive_cache_options c = {.directory = o->cache_directory,
                                      .max_bytes =
                                          o->cache_bytes > 0 ? o->cache_bytes : CACHE_BYTES_DEFAULT,
                                      .log = a->store->options.log};
    a->cache = archive_cache_new(&c, err);
    struct archive_vfs_options v = {
        .cache = a->cache, .find = archive_find_source, .failed = archive_source_failed, .arg = a};
    a->vfs = a->cache != NULL ? archive_vfs_new(&v, err) : NULL;
    return a->vfs != NULL;
}

static bool start(struct archive *a, const struct archive_options *o, struct err *err)
{
    struct store *s = a->store;
    a->by_key = map_new();
    if (a->by_key == NULL) {
        return err_memory(err);
    }
    a->given_name = o->writer != NULL ? strdup(o->writer) : NULL;
    if (o->writer != NULL && a->given_name == NULL) {
        return err_memory(err);
    }
    make_metrics(a);
    if (!open_bucket(a, o, err) || !open_cache(a, o, err)) {
        return false;
    }
    if (s->options.metrics != NULL && !metrics_collector(s->options.metrics, archive_collect, a)) {
        return err_memory(err);
    }
    return true;
}

struct archive *archive_open(struct store *s, const struct archive_options *o, struct err *err)
{
    struct archive *a = calloc(1, sizeof(*a));
    if (a == NULL) {
        err_memory(err);
        return NULL;
    }
    a->store = s;
    a->read_only = s->options.read_only;
    a->opened_ms = clock_mono_ms();
    a->max_age_ms = o->max_age_ms;
    a->merge_ms = o->merge_ms;
    random_id(a->id);
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->round_lock, NULL);
    clock_cond_init(&a->changed);
    if (!start(a, o, err)) {
        return archive_free(a);
    }
    return a;
}

bool archive_start(struct archive *a, struct err *err)
{
    a->has_thread = thread_start(&a->thread, "archive", archive_thread, a, err);
    return a->has_thread;
}

void archive_stop(struct archive *a)
{
    if (a == NULL) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    a->stopping = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (a->backend.stop != NULL) {
        a->backend.stop(a->backend.arg);
    }
    if (a->has_thread) {
        pthread_join(a->thread, NULL);
        a->has_thread = false;
    }
}

struct archive *archive_free(struct archive *a)
{
    if (a == NULL) {
        return NULL;
    }
    store_files_free(a->files, a->n_files);
    map_free(a->by_key, NULL);
    free(a->given_name);
    archive_vfs_free(a->vfs);
    archive_cache_free(a->cache);
    if (a->backend.free != NULL) {
        a->backend.free(a->backend.arg);
    }
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->round_lock);
    pthread_mutex_destroy(&a->lock);
    free(a);
    return NULL;
}

void archive_configure(struct archive *a, const struct archive_options *o)
{
    a->max_age_ms = o->max_age_ms;
    a->merge_ms = o->merge_ms;
    archive_cache_limit(a->cache, o->cache_bytes > 0 ? o->cache_bytes : CACHE_BYTES_DEFAULT);
}

/* Merges the objects of each day that is over into one.
 *
 * The steps, each of which may be the last one before a crash:
 *
 *     1. build the database of the day in a temporary file (day.h)
 *     2. upload it, then its index, which names the objects that it replaces
 *     3. some hours later, remove these objects
 *
 * From the second step on, readers that know the index of the day leave the replaced objects out.
 * Each of them finds either the day or its parts, and never counts both: see replaced.c. What is
 * left of the first two steps after a crash is a database without an index, which the owner removes
 * as a left-over. Only the owner of the objects does this.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/archive/hash.h"
#include "store/archive/private.h"

#define DAY_FILE "archive-day.tmp"
/* Percent of a core that building may take, and the time between two pauses. */
#define CPU_PERCENT 25

struct sources {
    struct store_file *files[DAY_SOURCES_MAX]; /* references */
    struct db dbs[DAY_SOURCES_MAX];
    char *paths[DAY_SOURCES_MAX]; /* of those that are on disk */
    size_t n;
};

static void sources_done(struct sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        db_close(&s->dbs[i]);
        store_file_unref(s->files[i]);
        free(s->paths[i]);
    }
    free(s);
}

/* ---- choosing -------------------------------------------------------------------------------- */

static int64_t day_of(const struct store_file *f)
{
    return f->name.start_ms / MS_PER_DAY;
}

static bool is_of_a_day(const struct store_file *f)
{
    return f->name.start_ms >= 0 && f->name.start_ms % MS_PER_DAY + f->name.length_ms <= MS_PER_DAY;
}

/* Returns true if a day of the list has replaced an object that is still there. */
static bool is_replacing(struct archive *a, const struct store_file *f)
{
    const struct archive_object *o = f->object;
    for (size_t i = 0; i < o->n_replaces; i++) {
        if (archive_list_find(a, o->writer, &o->replaces[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Returns true if the object may be part of a merged day. */
static bool is_source(const struct archive *a, const struct store_file *f)
{
    return strcmp(f->object->writer, a->writer) == 0 && is_of_a_day(f) &&
           f->object->state == OBJECT_FINE && !f->object->apart;
}

/* Returns true if all readers know the object, and those that it replaces are gone. */
static bool is_settled(struct archive *a, const struct store_file *f, int64_t server_ns)
{
    bool whole = f->name.length_ms == MS_PER_DAY;
    return f->object->modified_ns + ARCHIVE_SETTLED_NS < server_ns &&
           (!whole || (f->object->known && !is_replacing(a, f)));
}

/* Lists the objects of the day that begins with file i. Returns their number; 0 if the day is not
 * to be merged. */
static size_t list_day(struct archive *a, size_t i, int64_t server_ns, struct store_file **ret)
{
    int64_t day = day_of(a->files[i]);
    bool fine = (day + 1) * MS_PER_DAY * NS_PER_MS + ARCHIVE_SETTLED_NS < server_ns;
    size_t n = 0;
    for (; i < a->n_files; i++) {
        struct store_file *f = a->files[i];
        if (!is_source(a, f)) {
            continue;
        }
        if (day_of(f) != day) {
            break;
        }
        fine = fine && is_settled(a, f, server_ns);
        if (n < DAY_SOURCES_MAX) {
            ret[n++] = f;
        }
    }
    return fine && n > 1 ? n : 0;
}

/* Chooses the objects of the first day that is to be merged. Returns their number. */
static size_t choose(struct archive *a, int64_t server_ns, struct store_file **ret)
{
    size_t n = 0;
    int64_t day = -1;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; n == 0 && i < a->n_files; i++) {
        if (is_source(a, a->files[i]) && day_of(a->files[i]) != day) {
            day = day_of(a->files[i]);
            n = list_day(a, i, server_ns, ret);
        }
    }
    for (size_t i = 0; i < n; i++) {
        store_file_ref(ret[i]);
    }
    pthread_mutex_unlock(&a->lock);
    return n;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Returns the path of the same file on this disk, for free(); NULL if it is not there. */
static char *path_on_disk(struct store *s, const struct store_file *object)
{
    char *path = NULL;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; path == NULL && i < s->n_files; i++) {
        const struct store_file *f = s->files[i];
        if (f->twin == object && f->frozen && f->fault == DB_FINE &&
            store_name_compare(&f->name, &object->name) == 0) {
            path = strdup(f->path);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return path;
}

static bool open_source(struct archive *a, struct sources *s, size_t i, struct arena *arena,
                        struct err *err)
{
    struct archive_index index;
    bool empty = false;
    s->paths[i] = path_on_disk(a->store, s->files[i]);
    if (s->paths[i] != NULL && db_open_still(&s->dbs[i], s->paths[i], &empty, err) && !empty) {
        return true;
    }
    db_close(&s->dbs[i]);
    err_clear(err);
    arena_reset(arena);
    return archive_read_index(s->files[i], arena, &index, err) &&
           archive_open_db(s->files[i], &s->dbs[i], err);
}

struct progress {
    struct archive *archive;
    int64_t paid_ns;
};

/* Keeps the thread within its share of a core, and the listing and the heartbeat up to date. */
static bool archive_day_goes_on(void *arg)
{
    struct progress *p = arg;
    struct archive *a = p->archive;
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    int64_t pause_ms =
        store_merge_pause_ms((int64_t)t.tv_sec * NS_PER_S + t.tv_nsec, CPU_PERCENT, &p->paid_ns);
    if (pause_ms > 0 && a->has_thread) {
        const struct timespec pause = clock_timespec(pause_ms);
        (void)nanosleep(&pause, NULL);
        (void)archive_beat(a, a->now_ns);
        (void)archive_list(a, a->now_ns);
    }
    return !archive_is_stopping(a) && !a->conflict;
}

static bool build(struct archive *a, struct sources *s, const char *path, struct day *ret,
                  struct err *err)
{
    struct db *dbs[DAY_SOURCES_MAX];
    struct arena *arena = arena_new(ARCHIVE_INDEX_ARENA_MAX);
    struct progress progress = {.archive = a};
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    progress.paid_ns = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
    bool ok = arena != NULL || err_memory(err);
    *ret = (struct day){.failed_source = SIZE_MAX};
    for (size_t i = 0; ok && i < s->n; i++) {
        dbs[i] = &s->dbs[i];
        ok = open_source(a, s, i, arena, err);
    }
    arena_free(arena);
    const struct day_options o = {.sources = dbs,
                                  .n_sources = s->n,
                                  .path = path,
                                  .merge_ms = a->merge_ms,
                                  .go_on = archive_day_goes_on,
                                  .arg = &progress};
    return ok && day_build(&o, ret, err);
}

/* ---- uploading ------------------------------------------------------------------------------- */

static bool add_name(struct archive_day *day, struct arena *arena, const struct archive_name *name)
{
    char key[ARCHIVE_KEY_SIZE];
    archive_data_key("w", name, key);
    struct sv text = sv_skip(sv_from(key), sizeof("w/" ARCHIVE_DATA) - 1);
    struct sv *replaces = (struct sv *)(uintptr_t)day->replaces;
    replaces[day->n_replaces] = (struct sv){arena_strndup(arena, text.p, text.n), text.n};
    return replaces[day->n_replaces++].p != NULL;
}

/* Lists the objects that the day replaces: its sources, and those that they have replaced, whose
 * files may still be on a disk. */
static bool list_replaced(struct archive *a, const struct sources *s, struct archive_day *day,
                          struct arena *arena)
{
    size_t n = 0;
    bool ok = true;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < s->n; i++) {
        n += 1 + s->files[i]->object->n_replaces;
    }
    day->replaces = arena_array(arena, n + 1, sizeof(day->replaces[0]));
    for (size_t i = 0; day->replaces != NULL && ok && i < s->n; i++) {
        const struct archive_object *o = s->files[i]->object;
        ok = add_name(day, arena, &o->name);
        for (size_t k = 0; ok && k < o->n_replaces; k++) {
            ok = add_name(day, arena, &o->replaces[k]);
        }
    }
    pthread_mutex_unlock(&a->lock);
    return ok && day->replaces != NULL;
}

static bool read_part(int fd, uint64_t at, size_t n, struct arena *arena, struct sv *ret,
                      struct err *err)
{
    char *part = arena_alloc(arena, n + 1);
    if (part == NULL) {
        return err_memory(err);
    }
    *ret = (struct sv){part, n};
    return pread(fd, part, n, (off_t)at) == (ssize_t)n || err_sys(err, "cannot read " DAY_FILE);
}

/* Reads the parts of the file that its index has: the beginning, and the blocks with the rows after
 * the bytes of profiles, unless they are many. */
static bool read_ends(int fd, uint64_t bytes, uint64_t rows_from, struct arena *arena,
                      struct archive_day *day, struct err *err)
{
    size_t n = bytes < ARCHIVE_HEAD_BYTES ? (size_t)bytes : ARCHIVE_HEAD_BYTES;
    if (!read_part(fd, 0, n, arena, &day->head, err)) {
        return false;
    }
    uint64_t at = rows_from - rows_from % ARCHIVE_BLOCK_BYTES;
    at = at < n ? n : at;
    if (at >= bytes || bytes - at > ARCHIVE_TAIL_MAX) {
        return true;
    }
    day->tail_at = at;
    return read_part(fd, at, (size_t)(bytes - at), arena, &day->tail, err);
}

/* Puts the day on the list, as the twin of its parts that are on this disk. */
static struct store_file *publish(struct archive *a, struct store_file *file)
{
    struct store *s = a->store;
    pthread_mutex_lock(&s->lock);
    pthread_mutex_lock(&a->lock);
    struct store_file *listed = archive_list_add(a, file);
    listed = listed != NULL ? store_file_ref(listed) : NULL;
    pthread_mutex_unlock(&a->lock);
    pthread_mutex_unlock(&s->lock);
    archive_know_days(a);
    return listed;
}

static enum bucket_result put_day(struct archive *a, const struct sources *s, const char *path,
                                  const struct day *built, struct arena *arena, struct err *err)
{
    struct archive_day day = {.ranges = built->ranges, .n_ranges = built->n_ranges};
    struct archive_upload u = {.archive = a, .path = path, .day = &day};
    struct store_file *file = NULL;
    struct stat st;
    u.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (u.fd < 0 || fstat(u.fd, &st) != 0) {
        err_sys(err, "cannot open %s", path);
        return BUCKET_FILE;
    }
    u.name = (struct archive_name){.stretch = {.start_ms = day_of(s->files[0]) * MS_PER_DAY,
                                               .length_ms = MS_PER_DAY,
                                               .generation = 1},
                                   .bytes = (uint64_t)st.st_size,
                                   .profiles = built->profiles};
    enum bucket_result result = BUCKET_FILE;
    if (list_replaced(a, s, &day, arena) &&
        read_ends(u.fd, u.name.bytes, built->rows_from, arena, &day, err) &&
        archive_hash_file(u.fd, u.name.bytes, u.name.hash, err)) {
        result = archive_put(&u, &file, err);
    }
    close(u.fd);
    if (result == BUCKET_OK) {
        store_file_unref(publish(a, file));
        log_info(a->store->options.log, "the objects of a day were merged",
                 LOG_STR("endpoint", a->store->options.name), LOG_STR("object", u.data_key),
                 LOG_INT("objects", (int64_t)s->n), LOG_INT("bytes", (int64_t)u.name.bytes));
    }
    return result;
}

/* Leaves an object out of later merges: something in it cannot be merged. */
static void set_apart(struct archive *a, struct store_file *f, const struct err *why)
{
    pthread_mutex_lock(&a->lock);
    f->object->apart = true;
    pthread_mutex_unlock(&a->lock);
    log_warn(a->store->options.log, "an object of the archive is not merged with those of its day",
             LOG_STR("endpoint", a->store->options.name), LOG_STR("object", f->object->data_key),
             LOG_ERR(why));
}

static bool merge_day(struct archive *a, struct sources *s)
{
    char path[4096];
    struct err err = ERR_INIT;
    struct day day;
    (void)snprintf(path, sizeof(path), "%s/" DAY_FILE, a->store->options.directory);
    struct arena *arena = arena_new(ARCHIVE_INDEX_ARENA_MAX);
    bool built = arena != NULL && build(a, s, path, &day, &err);
    enum bucket_result result = BUCKET_FILE;
    if (built) {
        result = put_day(a, s, path, &day, arena, &err);
        free(day.ranges);
    } else if (arena != NULL && day.failed_source < s->n &&
               s->dbs[day.failed_source].fault != DB_UNREADABLE) {
        set_apart(a, s->files[day.failed_source], &err);
    }
    (void)unlink(path);
    arena_free(arena);
    if (result != BUCKET_OK && archive_is_stopping(a)) {
        return false;
    }
    metric_inc(
        metric_cell(a->metrics.days, (const char *const[]){a->store->options.name,
                                                           result == BUCKET_OK ? "ok" : "failed"}));
    return archive_note(a, "merge", result, &err);
}

/* ---- removing -------------------------------------------------------------------------------- */

/* Returns true if the bucket has the database of a day as its index says. */
static bool is_complete(struct archive *a, const struct store_file *f)
{
    struct bucket_object o = {.size = 0};
    struct err err = ERR_INIT;
    return a->backend.head(a->backend.arg, f->object->data_key, archive_deadline(), &o, &err) ==
               BUCKET_OK &&
           o.size == f->object->name.bytes && strcmp(o.etag, f->object->data_etag) == 0;
}

/* Lists the days of this writer, whose indexes are known, and that have replaced objects which are
 * due. */
static size_t list_days(struct archive *a, int64_t server_ns, struct store_file ***ret)
{
    size_t n = 0;
    pthread_mutex_lock(&a->lock);
    struct store_file **files = calloc(a->n_files + 1, sizeof(void *));
    for (size_t i = 0; files != NULL && i < a->n_files; i++) {
        struct store_file *f = a->files[i];
        const struct archive_object *o = f->object;
        if (strcmp(o->writer, a->writer) == 0 && o->known && o->state == OBJECT_FINE &&
            o->modified_ns > 0 && o->modified_ns + ARCHIVE_REPLACED_NS < server_ns &&
            is_replacing(a, f)) {
            files[n++] = store_file_ref(f);
        }
    }
    pthread_mutex_unlock(&a->lock);
    *ret = files;
    return n;
}

static bool remove_replaced_by(struct archive *a, const struct store_file *day)
{
    const struct archive_object *o = day->object;
    bool ok = true;
    if (!is_complete(a, day)) {
        return true;
    }
    for (size_t i = 0; ok && i < o->n_replaces && !archive_is_stopping(a); i++) {
        pthread_mutex_lock(&a->lock);
        struct store_file *f = archive_list_find(a, o->writer, &o->replaces[i]);
        f = f != NULL && f != day ? store_file_ref(f) : NULL;
        pthread_mutex_unlock(&a->lock);
        ok = f == NULL || archive_remove_object(a, f, "replaced");
        store_file_unref(f);
    }
    return ok;
}

static bool remove_replaced(struct archive *a, int64_t server_ns)
{
    struct store_file **days;
    size_t n = list_days(a, server_ns, &days);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        ok = remove_replaced_by(a, days[i]);
    }
    store_files_free(days, n);
    return ok;
}

void archive_days(struct archive *a, int64_t now_ns)
{
    int64_t server_ns = archive_server_ns(a, now_ns);
    a->now_ns = now_ns;
    if (a->server_ns == 0 || !a->has_beaten || a->conflict || a->list_all_due_ms == 0 ||
        clock_mono_ms() < a->days_due_ms) {
        return;
    }
    archive_know_days(a);
    struct sources *s = calloc(1, sizeof(*s));
    bool ok = s != NULL && remove_replaced(a, server_ns);
    if (ok && a->merge_ms > 0 && (s->n = choose(a, server_ns, s->files)) > 0) {
        for (size_t i = 0; i < s->n; i++) {
            s->dbs[i].data_fd = -1;
        }
        ok = merge_day(a, s);
    }
    ok = ok && archive_put_catalogue(a);
    if (!ok) {
        a->days_due_ms = clock_mono_ms() + ARCHIVE_DAYS_MS;
    }
    if (s != NULL) {
        sources_done(s);
    }
}

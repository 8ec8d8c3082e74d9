#include "store/sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/blob.h"
#include "store/summing.h"

#define PATH_SIZE 4096
#define DB_SUFFIX ".db"
#define UNFINISHED_SUFFIX ".new"
/* Delay until a sum is tried again that could not be made. */
#define RETRY_MS (3600 * MS_PER_S)
/* A day counts as over this long after its end, because profiles may arrive late. */
#define GRACE_MS (10 * 60 * MS_PER_S)
/* A sum is made if the disk has room for half the bytes of its files, and a sixteenth of the disk
 * besides. */
#define ROOM_PART 2
#define DISK_PART 16

static int64_t day_of(int64_t ms)
{
    return ms >= 0 ? ms / MS_PER_DAY * MS_PER_DAY : (ms - MS_PER_DAY + 1) / MS_PER_DAY * MS_PER_DAY;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* A file as it counts in a key. */
struct key_part {
    int64_t start_ms;
    int64_t length_ms;
    uint64_t generation;
    struct series_version version;
};

/* Says whether a file can be part of a sum now. */
static bool is_steady(struct store *s, struct store_file *f)
{
    int64_t *bad = NULL;
    size_t n_bad = 0;
    pthread_mutex_lock(&s->lock);
    bool steady = f->object == NULL && f->slices == NULL && f->sealed && f->fault == DB_FINE &&
                  !f->gone && !f->pending && !f->unindexed && f->profiles > 0;
    pthread_mutex_unlock(&s->lock);
    /* The points of damaged profiles are about to be removed. */
    steady = steady && store_bad_of(s, f, &bad, &n_bad) && n_bad == 0;
    free(bad);
    return steady;
}

/* Lists the files that have profiles. A file is empty if the profile for it was found in an earlier
 * file of its stretch. Returns 0 if there are none, or too many for a sum. */
static size_t sources_of(struct store *s, struct store_file *const *files, size_t n,
                         struct store_file *ret[SUMMING_SOURCES_MAX])
{
    size_t k = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n && k <= SUMMING_SOURCES_MAX; i++) {
        struct store_file *f = files[i];
        if (f->object != NULL || f->slices != NULL || f->profiles > 0 || f->unindexed) {
            if (k < SUMMING_SOURCES_MAX) {
                ret[k] = f;
            }
            k++;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return k <= SUMMING_SOURCES_MAX ? k : 0;
}

/* Sets the key of files. False if they cannot be summed now. */
static bool key_of(struct store *s, struct store_file *const *files, size_t n, int64_t *ret)
{
    struct key_part parts[SUMMING_SOURCES_MAX];
    if (n == 0 || n > SUMMING_SOURCES_MAX) {
        return false;
    }
    memset(parts, 0, sizeof(parts));
    for (size_t i = 0; i < n; i++) {
        const struct store_name *name = &files[i]->name;
        parts[i].start_ms = name->start_ms;
        parts[i].length_ms = name->length_ms;
        parts[i].generation = name->generation;
        if (!is_steady(s, files[i]) || !series_version_of(files[i]->path, &parts[i].version)) {
            return false;
        }
    }
    *ret = (int64_t)blob_hash((struct sv){(const char *)parts, n * sizeof(parts[0])}, NULL, 0);
    return true;
}

static bool is_of_day(const struct store_file *f, int64_t day_ms)
{
    return f->name.start_ms >= day_ms &&
           f->name.start_ms + f->name.length_ms <= day_ms + MS_PER_DAY;
}

/* Returns how many files from `at` on are all those of a day. 0 if a file is of two days, or if
 * `at` is not the first one of its day. */
static size_t files_of_day(struct store_file *const *files, size_t n, size_t at)
{
    int64_t day_ms = day_of(files[at]->name.start_ms);
    size_t i = at;
    if (at > 0 && files[at - 1]->name.start_ms >= day_ms) {
        return 0;
    }
    for (size_t before = at;
         before-- > 0 && files[before]->name.start_ms > day_ms - STORE_STRETCH_MS_MAX;) {
        if (files[before]->name.start_ms + files[before]->name.length_ms > day_ms) {
            return 0;
        }
    }
    for (; i < n && files[i]->name.start_ms < day_ms + MS_PER_DAY; i++) {
        if (!is_of_day(files[i], day_ms)) {
            return 0;
        }
    }
    return i - at;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Returns the entry of a day; NULL if there is none. Under the lock. */
static struct store_sum *find(const struct store *s, int64_t day_ms)
{
    for (size_t i = 0; i < s->n_sums; i++) {
        if (s->sums[i].day_ms == day_ms) {
            return &s->sums[i];
        }
    }
    return NULL;
}

/* Returns the entry of a day, which is added if there is none; NULL if out of memory. Under the
 * lock. */
static struct store_sum *entry_of(struct store *s, int64_t day_ms)
{
    struct store_sum *sum = find(s, day_ms);
    if (sum != NULL) {
        return sum;
    }
    struct store_sum *sums = reallocarray(s->sums, s->n_sums + 1, sizeof(sums[0]));
    if (sums == NULL) {
        return NULL;
    }
    s->sums = sums;
    sums[s->n_sums] = (struct store_sum){.day_ms = day_ms};
    return &sums[s->n_sums++];
}

/* Takes the file of an entry off the list. Returns it with the reference. Under the lock. */
static struct store_file *take_file(struct store_sum *sum)
{
    struct store_file *f = sum->file;
    sum->file = NULL;
    sum->bytes = 0;
    if (f != NULL) {
        f->gone = true;
    }
    return f;
}

/* Closes the connections to a sum that is no longer on the list. */
static void let_go(struct store *s, struct store_file *f)
{
    if (f != NULL) {
        store_readers_close(s, f);
        store_file_unref(f);
    }
}

static struct store_file *file_new(struct store *s, int64_t day_ms)
{
    struct store_file *f = calloc(1, sizeof(*f));
    char db[STORE_NAME_SIZE];
    if (f == NULL) {
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->name = (struct store_name){.start_ms = day_ms, .length_ms = MS_PER_DAY, .generation = 1};
    f->sum = true;
    f->sealed = true;
    store_name_format(&f->name, db);
    (void)snprintf(f->text, sizeof(f->text), "%.*s" SUM_SUFFIX,
                   (int)(strlen(db) - sizeof(DB_SUFFIX) + 1), db);
    if (asprintf(&f->path, "%s/%s", s->options.directory, f->text) < 0) {
        free(f);
        return NULL;
    }
    return f;
}

/* Puts a sum on the list, in place of an earlier one of its day. Takes over the reference. */
static bool list(struct store *s, struct store_file *f, int64_t key)
{
    struct stat st;
    uint64_t bytes = stat(f->path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    pthread_mutex_lock(&s->lock);
    struct store_sum *sum = entry_of(s, f->name.start_ms);
    struct store_file *before = sum != NULL ? take_file(sum) : f;
    if (sum != NULL) {
        *sum =
            (struct store_sum){.file = f, .day_ms = f->name.start_ms, .key = key, .bytes = bytes};
    }
    pthread_mutex_unlock(&s->lock);
    let_go(s, before);
    return sum != NULL;
}

/* Removes a sum from the list and the disk. */
static void drop(struct store *s, int64_t day_ms)
{
    pthread_mutex_lock(&s->lock);
    struct store_sum *sum = find(s, day_ms);
    struct store_file *f = sum != NULL ? take_file(sum) : NULL;
    if (sum != NULL) {
        *sum = s->sums[--s->n_sums];
    }
    pthread_mutex_unlock(&s->lock);
    if (f != NULL) {
        (void)unlink(f->path);
    }
    let_go(s, f);
}

void store_sums_file_removed(struct store *s, const struct store_file *f)
{
    int64_t day_ms = day_of(f->name.start_ms);
    drop(s, day_ms);
    if (s->limits.merge_ms <= 0) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    struct store_sum *sum = entry_of(s, day_ms);
    if (sum != NULL) {
        sum->leaving = true;
    }
    pthread_mutex_unlock(&s->lock);
}

void store_sums_failed(struct store *s, const struct store_file *sum, const char *why)
{
    pthread_mutex_lock(&s->lock);
    bool listed = !sum->gone;
    pthread_mutex_unlock(&s->lock);
    if (!listed) {
        return; /* it was replaced or removed since the query has found it */
    }
    log_warn(s->options.log, "the sum of a day cannot be read, and is made again",
             LOG_STR("endpoint", s->options.name), LOG_STR("file", sum->path), LOG_STR("err", why));
    metric_inc(s->metrics.sum_failures);
    drop(s, sum->name.start_ms);
}

uint64_t store_sums_bytes(const struct store *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->n_sums; i++) {
        bytes += s->sums[i].bytes;
    }
    return bytes;
}

void store_sums_done(struct store *s)
{
    for (size_t i = 0; i < s->n_sums; i++) {
        store_file_unref(s->sums[i].file);
    }
    free(s->sums);
    s->sums = NULL;
    s->n_sums = 0;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Returns true if an entry is the name of a sum, finished or not. */
static bool parse_name(struct sv entry, bool *ret_finished, int64_t *ret_day_ms)
{
    char text[STORE_NAME_SIZE];
    struct store_name name;
    *ret_finished = !sv_ends_with(entry, SV(UNFINISHED_SUFFIX));
    entry.n -= *ret_finished ? 0 : sizeof(UNFINISHED_SUFFIX) - 1;
    if (!sv_ends_with(entry, SV(SUM_SUFFIX))) {
        return false;
    }
    entry.n -= sizeof(SUM_SUFFIX) - 1;
    (void)snprintf(text, sizeof(text), "%.*s" DB_SUFFIX, SV_ARG(entry));
    if (!store_name_parse(sv_from(text), &name) || name.length_ms != MS_PER_DAY ||
        day_of(name.start_ms) != name.start_ms) {
        return false;
    }
    *ret_day_ms = name.start_ms;
    return true;
}

void store_sums_found(struct store *s, const char *entry)
{
    struct err err = ERR_INIT;
    char path[PATH_SIZE];
    int64_t day_ms;
    int64_t key;
    bool finished;
    if (!parse_name(sv_from(entry), &finished, &day_ms)) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/%s", s->options.directory, entry);
    struct store_file *f = finished && summing_key(path, &key, &err) ? file_new(s, day_ms) : NULL;
    if (f == NULL || !list(s, f, key)) {
        (void)unlink(path);
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

/* A sum to be made. */
struct making {
    struct store *store;
    struct store_file *files[SUMMING_SOURCES_MAX];
    size_t n_files;
    int64_t day_ms;
    int64_t key;
    int64_t paid_ns; /* see store_merge_pause_ms() */
};

/* Sleeps as long as the thread's share of a core requires. Returns false if the store closes, or if
 * the disk is full: then retention comes first. */
static bool rest(void *arg)
{
    struct making *m = arg;
    struct store *s = m->store;
    bool open = store_merge_rest(s, &m->paid_ns);
    pthread_mutex_lock(&s->lock);
    bool hurry = s->hurry;
    pthread_mutex_unlock(&s->lock);
    return open && !hurry;
}

static bool has_room(struct making *m)
{
    struct statvfs v;
    uint64_t bytes = 0;
    pthread_mutex_lock(&m->store->lock);
    for (size_t i = 0; i < m->n_files; i++) {
        bytes += m->files[i]->data_bytes;
    }
    pthread_mutex_unlock(&m->store->lock);
    return statvfs(m->store->options.directory, &v) != 0 ||
           (uint64_t)v.f_bavail * v.f_frsize >=
               (uint64_t)v.f_blocks * v.f_frsize / DISK_PART + bytes / ROOM_PART;
}

/* Remembers that the sum of a day could not be made. If a limit is the reason, the same files
 * exceed it the next time as well. */
static void note_failure(struct making *m, const struct err *err)
{
    struct store *s = m->store;
    pthread_mutex_lock(&s->lock);
    struct store_sum *sum = entry_of(s, m->day_ms);
    struct store_file *before = sum != NULL ? take_file(sum) : NULL;
    if (sum != NULL) {
        sum->failed_ms = clock_mono_ms();
        sum->beyond_limit = err->kind == ERR_LIMIT;
        sum->key = m->key;
    }
    pthread_mutex_unlock(&s->lock);
    let_go(s, before);
    metric_inc(s->metrics.sum_failures);
    log_warn(s->options.log, "the sum of a day cannot be made: its flame graphs read each file",
             LOG_STR("endpoint", s->options.name), LOG_STR("first_file", m->files[0]->path),
             LOG_ERR(err));
}

/* Gives a sum that was built its name, unless the files have changed meanwhile. An earlier sum of
 * the day leaves the list first: a query that opens the name must not get another file than the one
 * whose series it knows. */
static bool publish(struct making *m, const char *built, struct err *err)
{
    int64_t key;
    if (!key_of(m->store, m->files, m->n_files, &key) || key != m->key) {
        (void)unlink(built);
        return true; /* it is made again when the files are sealed */
    }
    struct store_file *f = file_new(m->store, m->day_ms);
    if (f == NULL) {
        return err_memory(err);
    }
    drop(m->store, m->day_ms);
    if (rename(built, f->path) != 0) {
        err_sys(err, "cannot rename %s", built);
        store_file_unref(f);
        return false;
    }
    if (!list(m->store, f, m->key)) {
        return err_memory(err);
    }
    metric_inc(m->store->metrics.sums);
    return true;
}

static void make(struct making *m)
{
    struct err err = ERR_INIT;
    char built[PATH_SIZE];
    m->paid_ns = store_merge_cpu_ns();
    struct store_file *f = file_new(m->store, m->day_ms);
    if (f == NULL) {
        return;
    }
    (void)snprintf(built, sizeof(built), "%s" UNFINISHED_SUFFIX, f->path);
    store_file_unref(f);
    const struct summing_options o = {.files = m->files,
                                      .n_files = m->n_files,
                                      .path = built,
                                      .key = m->key,
                                      .go_on = rest,
                                      .arg = m};
    bool ok = summing_build(m->store, &o, &err) && publish(m, built, &err);
    if (!ok) {
        (void)unlink(built);
    }
    if (!ok && err.kind != ERR_NONE) {
        note_failure(m, &err);
    }
}

/* Returns true if the sum of a day is missing, and was not tried lately. A day of which retention
 * has begun to remove files gets none: each removal, mostly one an hour, would make another sum. */
static bool is_missing(struct making *m)
{
    pthread_mutex_lock(&m->store->lock);
    const struct store_sum *sum = find(m->store, m->day_ms);
    bool there = sum != NULL && sum->file != NULL && sum->key == m->key;
    bool failed =
        sum != NULL && sum->failed_ms != 0 &&
        (sum->beyond_limit ? sum->key == m->key : clock_mono_ms() - sum->failed_ms < RETRY_MS);
    bool leaving = sum != NULL && sum->leaving;
    pthread_mutex_unlock(&m->store->lock);
    return !there && !failed && !leaving;
}

static bool is_due(struct making *m, int64_t now_ns)
{
    return m->n_files > 0 && m->day_ms + MS_PER_DAY + GRACE_MS < now_ns / NS_PER_MS &&
           key_of(m->store, m->files, m->n_files, &m->key) && is_missing(m) && has_room(m);
}

/* Returns the day of the first sum from the i-th on that has no file on the list; INT64_MIN if
 * there is none. */
static int64_t next_orphan(struct store *s, struct store_file *const *files, size_t n, size_t *i)
{
    int64_t day_ms = INT64_MIN;
    pthread_mutex_lock(&s->lock);
    for (; day_ms == INT64_MIN && *i < s->n_sums; ++*i) {
        size_t k = 0;
        while (k < n && day_of(files[k]->name.start_ms) != s->sums[*i].day_ms) {
            k++;
        }
        day_ms = k == n ? s->sums[*i].day_ms : INT64_MIN;
    }
    pthread_mutex_unlock(&s->lock);
    return day_ms;
}

/* Removes the sums of days whose files somebody has removed. */
static void drop_orphans(struct store *s, struct store_file *const *files, size_t n)
{
    int64_t day_ms;
    for (size_t i = 0; (day_ms = next_orphan(s, files, n, &i)) != INT64_MIN; i = 0) {
        drop(s, day_ms);
    }
}

void store_sums_make(struct store *s, int64_t now_ns)
{
    struct store_file **files;
    size_t n;
    if (s->limits.merge_ms <= 0 || !store_files_in(s, INT64_MIN, INT64_MAX, &files, &n, NULL)) {
        return;
    }
    drop_orphans(s, files, n);
    for (size_t i = n; i-- > 0;) {
        struct making m = {.store = s, .day_ms = day_of(files[i]->name.start_ms)};
        m.n_files = sources_of(s, files + i, files_of_day(files, n, i), m.files);
        if (is_due(&m, now_ns)) {
            make(&m);
            break;
        }
    }
    store_files_free(files, n);
}

/* ---- using ----------------------------------------------------------------------------------- */

/* Returns true if the range has all profiles of the files. */
static bool is_within(struct store *s, struct store_file *const *files, size_t n,
                      const struct store_range *range)
{
    bool within = true;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++) {
        within = within && range->from_ns <= files[i]->oldest_ns &&
                 range->until_ns >= files[i]->newest_ns;
    }
    pthread_mutex_unlock(&s->lock);
    return within;
}

size_t store_sums_cover(struct store *s, struct store_file *const *files, size_t n, size_t at,
                        const struct store_range *range, struct store_file **ret)
{
    int64_t key;
    struct store_file *sources[SUMMING_SOURCES_MAX];
    int64_t day_ms = day_of(files[at]->name.start_ms);
    pthread_mutex_lock(&s->lock);
    const struct store_sum *sum = find(s, day_ms);
    bool there = sum != NULL && sum->file != NULL;
    pthread_mutex_unlock(&s->lock);
    size_t covered = there ? files_of_day(files, n, at) : 0;
    size_t n_sources = sources_of(s, files + at, covered, sources);
    if (!is_within(s, sources, n_sources, range) || !key_of(s, sources, n_sources, &key)) {
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    sum = find(s, day_ms);
    there = sum != NULL && sum->file != NULL && sum->key == key;
    *ret = there ? store_file_ref(sum->file) : NULL;
    pthread_mutex_unlock(&s->lock);
    return there ? covered : 0;
}

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/archive/archive.h"
#include "store/data.h"
#include "store/peering/gather.h"
#include "store/private.h"
#include "store/sums.h"

#define PATH_SIZE 4096
#define EXTENSION ".db"
#define TIME_LENGTH 16 /* "20261122T130000Z" */
#define FILES_MAX 100000
/* The name of a data file whose stretch is being removed. */
#define REMOVED_SUFFIX "-removed"

/* ---- names ----------------------------------------------------------------------------------- */

void store_name_format(const struct store_name *name, char out[STORE_NAME_SIZE])
{
    time_t seconds = (time_t)(name->start_ms / MS_PER_S);
    struct tm t;
    char length[32];
    char time[32];
    char generation[16] = "";
    gmtime_r(&seconds, &t);
    (void)strftime(time, sizeof(time), "%Y%m%dT%H%M%SZ", &t);
    format_duration_ms(name->length_ms, length, sizeof(length));
    if (name->generation > 1) {
        (void)snprintf(generation, sizeof(generation), ".%u", name->generation);
    }
    (void)snprintf(out, STORE_NAME_SIZE, "%s-%s%s" EXTENSION, time, length, generation);
}

static bool take_number(struct sv text, size_t at, size_t n, int *ret)
{
    uint64_t v;
    bool ok = parse_u64((struct sv){text.p + at, n}, 9999, &v);
    *ret = ok ? (int)v : 0;
    return ok;
}

static bool parse_time(struct sv text, int64_t *ret_ms)
{
    struct tm t = {.tm_isdst = 0};
    if (!take_number(text, 0, 4, &t.tm_year) || !take_number(text, 4, 2, &t.tm_mon) ||
        !take_number(text, 6, 2, &t.tm_mday) || !take_number(text, 9, 2, &t.tm_hour) ||
        !take_number(text, 11, 2, &t.tm_min) || !take_number(text, 13, 2, &t.tm_sec)) {
        return false;
    }
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    *ret_ms = (int64_t)timegm(&t) * MS_PER_S;
    return true;
}

bool store_name_parse(struct sv text, struct store_name *ret)
{
    char again[STORE_NAME_SIZE];
    struct sv length;
    struct sv rest;
    uint64_t generation = 1;
    if (text.n <= TIME_LENGTH + sizeof(EXTENSION) || !sv_ends_with(text, SV(EXTENSION)) ||
        !parse_time(text, &ret->start_ms)) {
        return false;
    }
    length = sv_skip(text, TIME_LENGTH + 1);
    length.n -= sizeof(EXTENSION) - 1;
    if (sv_cut(length, '.', &length, &rest) &&
        !parse_u64(rest, STORE_FILES_OF_A_STRETCH_MAX, &generation)) {
        return false;
    }
    ret->generation = (unsigned)generation;
    if (!parse_duration_ms(length, &ret->length_ms, NULL) || ret->length_ms <= 0) {
        return false;
    }
    /* Each file has exactly one name, so other spellings of it are rejected. */
    store_name_format(ret, again);
    return sv_eq_str(text, again);
}

int store_name_compare(const struct store_name *a, const struct store_name *b)
{
    if (a->start_ms != b->start_ms) {
        return a->start_ms < b->start_ms ? -1 : 1;
    }
    if (a->length_ms != b->length_ms) {
        return a->length_ms < b->length_ms ? -1 : 1;
    }
    return a->generation < b->generation ? -1 : a->generation > b->generation;
}

/* ---- one file -------------------------------------------------------------------------------- */

struct store_file *store_file_ref(struct store_file *f)
{
    atomic_fetch_add(&f->refs, 1);
    return f;
}

struct store_file *store_file_unref(struct store_file *f)
{
    if (f != NULL && atomic_fetch_sub(&f->refs, 1) == 1) {
        store_file_unref(f->twin);
        archive_object_free(f->object);
        peering_slices_free(f->slices);
        free(f->path);
        free(f);
    }
    return NULL;
}

int64_t store_file_from_ns(const struct store_file *f)
{
    return f->name.start_ms * NS_PER_MS;
}

int64_t store_file_until_ns(const struct store_file *f)
{
    return (f->name.start_ms + f->name.length_ms) * NS_PER_MS - 1;
}

static struct store_file *file_new(struct store *s, const struct store_name *name)
{
    struct store_file *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->name = *name;
    store_name_format(name, f->text);
    f->oldest_ns = INT64_MAX;
    if (asprintf(&f->path, "%s/%s", s->options.directory, f->text) < 0) {
        free(f);
        return NULL;
    }
    return f;
}

/* Adds a file to the list, which takes over the reference. Under the lock. */
static bool add(struct store *s, struct store_file *f)
{
    if (s->n_files == s->files_cap) {
        size_t cap = s->files_cap == 0 ? 64 : 2 * s->files_cap;
        struct store_file **files = reallocarray(s->files, cap, sizeof(void *));
        if (files == NULL) {
            return false;
        }
        s->files = files;
        s->files_cap = cap;
    }
    size_t at = s->n_files++;
    for (; at > 0 && store_name_compare(&s->files[at - 1]->name, &f->name) > 0; at--) {
        s->files[at] = s->files[at - 1];
    }
    s->files[at] = f;
    return true;
}

/* Takes a file off the list. Returns it with the reference that the list had; NULL if the file was
 * no longer on the list. Under the lock. */
static struct store_file *forget(struct store *s, struct store_file *f)
{
    f->gone = true;
    for (size_t i = 0; i < s->n_files; i++) {
        if (s->files[i] == f) {
            memmove(&s->files[i], &s->files[i + 1], (s->n_files - i - 1) * sizeof(void *));
            s->n_files--;
            return f;
        }
    }
    return NULL;
}

void store_file_fault(struct store *s, struct store_file *f, enum db_fault fault, const char *why)
{
    pthread_mutex_lock(&s->lock);
    /* A file that could not be read may turn out to be damaged later. */
    bool known = f->gone || f->fault == fault || (f->fault != DB_FINE && f->fault != DB_UNREADABLE);
    f->fault = fault;
    pthread_mutex_unlock(&s->lock);
    if (!known) {
        metric_inc(metric_cell(s->metrics.faults,
                               (const char *const[]){s->options.name, db_fault_name(fault)}));
        log_error(s->options.log, "a file of the store cannot be used, and is left where it is",
                  LOG_STR("endpoint", s->options.name), LOG_STR("file", f->path),
                  LOG_STR("reason", db_fault_name(fault)), LOG_STR("err", why));
    }
}

void store_file_unindexed(struct store *s, struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    f->unindexed = true;
    f->pending = false;
    pthread_mutex_unlock(&s->lock);
}

uint64_t store_file_data_size(const struct store_file *f)
{
    char name[PATH_SIZE];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%s" DATA_SUFFIX, f->path);
    return lstat(name, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size
                                                                          : 0;
}

void store_file_unwritable(struct store *s, struct store_file *f, const char *why)
{
    pthread_mutex_lock(&s->lock);
    bool known = f->fault != DB_FINE || f->unwritable || f->gone;
    f->unwritable = true;
    pthread_mutex_unlock(&s->lock);
    if (!known) {
        metric_inc(
            metric_cell(s->metrics.faults, (const char *const[]){s->options.name, "unwritable"}));
        log_error(
            s->options.log,
            "a file of the store cannot be written: profiles of its time go to a further file",
            LOG_STR("endpoint", s->options.name), LOG_STR("file", f->path), LOG_STR("err", why));
    }
}

bool store_file_check(struct store *s, struct store_file *f)
{
    char name[PATH_SIZE];
    struct stat st;
    struct stat log;
    const char *why = NULL;
    enum db_fault fault = DB_UNREADABLE;
    (void)snprintf(name, sizeof(name), "%s-wal", f->path);
    /* Read the size of the log first: a file that is being made has a page before it has a log. */
    bool has_log = stat(name, &log) == 0 && log.st_size > 0;
    if (stat(f->path, &st) != 0) {
        why = lstat(f->path, &st) == 0 && S_ISLNK(st.st_mode) ? "a link that leads nowhere" : NULL;
    } else if (!S_ISREG(st.st_mode)) {
        why = "no regular file";
        fault = DB_FOREIGN;
    } else if (st.st_size == 0 && has_log) {
        why = "the database is empty, and its log is not";
        fault = DB_DAMAGED;
    }
    if (why != NULL) {
        store_file_fault(s, f, fault, why);
    }
    return why == NULL;
}

/* Puts a file without a database on the list, whose data file has its profiles. */
static void list_again(struct store *s, const struct store_file *gone)
{
    struct store_file *f = file_new(s, &gone->name);
    pthread_mutex_lock(&s->lock);
    if (f != NULL) {
        f->unindexed = true;
    }
    if (f != NULL && !add(s, f)) {
        store_file_unref(f);
    }
    pthread_mutex_unlock(&s->lock);
}

void store_file_gone(struct store *s, struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    struct store_file *listed = forget(s, f);
    pthread_mutex_unlock(&s->lock);
    if (listed != NULL) {
        metric_inc(
            metric_cell(s->metrics.faults, (const char *const[]){s->options.name, "missing"}));
        log_error(s->options.log, "a file of the store is not there any more",
                  LOG_STR("endpoint", s->options.name), LOG_STR("file", listed->path),
                  LOG_INT("profiles", (int64_t)listed->profiles));
        store_readers_close(s, listed);
        if (store_file_data_size(listed) > DATA_HEADER_BYTES) {
            list_again(s, listed);
        } else {
            metric_add(s->metrics.lost, listed->profiles);
            store_count_remove(listed->path);
        }
    }
    store_file_unref(listed);
}

static bool remove_suffix(const char *path, const char *suffix, struct err *err)
{
    char name[PATH_SIZE];
    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    return unlink(name) == 0 || errno == ENOENT || err_sys(err, "cannot remove %s", name);
}

static bool rename_suffix(const char *path, const char *from, const char *to, struct err *err)
{
    char old[PATH_SIZE];
    char new[PATH_SIZE];
    (void)snprintf(old, sizeof(old), "%s%s", path, from);
    (void)snprintf(new, sizeof(new), "%s%s", path, to);
    return rename(old, new) == 0 || errno == ENOENT || err_sys(err, "cannot remove %s", old);
}

/* Removes what is left of a file whose data file was renamed. */
static bool remove_rest(const char *path, struct err *err)
{
    return remove_suffix(path, STORE_COUNT_SUFFIX, err) && remove_suffix(path, "-wal", err) &&
           remove_suffix(path, "-shm", err) && remove_suffix(path, "", err) &&
           remove_suffix(path, ARCHIVE_MARK_SUFFIX, err) &&
           remove_suffix(path, REMOVED_SUFFIX, err);
}

/* Removes a file. Its count is removed first, because a count without its file reports profiles as
 * lost. Its log is removed before the database: a database without its log is an earlier state of
 * it, but a log without its database would be used for the next file of this name. A data file
 * without its database makes a new one, so it gets another name first: if the process ends after
 * that, the next one removes the rest. */
bool store_file_remove(struct store *s, struct store_file *f, struct err *err)
{
    pthread_mutex_lock(&s->lock);
    struct store_file *listed = forget(s, f);
    pthread_mutex_unlock(&s->lock);
    if (listed == NULL) {
        return true;
    }
    store_writers_close(s, listed);
    store_readers_close(s, listed);
    bool ok = remove_suffix(f->path, STORE_COUNT_SUFFIX, err) &&
              remove_suffix(f->path, "-wal", err) &&
              rename_suffix(f->path, DATA_SUFFIX, REMOVED_SUFFIX, err) && remove_rest(f->path, err);
    store_sums_file_removed(s, f);
    if (!ok) {
        (void)rename_suffix(f->path, REMOVED_SUFFIX, DATA_SUFFIX, NULL);
        pthread_mutex_lock(&s->lock);
        f->gone = false;
        if (add(s, f)) {
            listed = NULL;
        }
        pthread_mutex_unlock(&s->lock);
    }
    store_file_unref(listed);
    return ok;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Takes over the state that the file has recorded. Returns false if the time of its profiles does
 * not fit its name. */
static bool take_state(struct store *s, struct store_file *f, const struct db *db, sqlite3_stmt *st,
                       uint64_t db_bytes)
{
    uint64_t data_bytes = store_file_data_size(f);
    int64_t indexed = sqlite3_column_int64(st, 5);
    pthread_mutex_lock(&s->lock);
    f->data_bytes = db_bytes + data_bytes;
    f->version = db->version;
    f->sealed = db->version > 1 && indexed == DB_SEALED && data_bytes == 0;
    f->unindexed = db->version > 1 && (uint64_t)(indexed == DB_SEALED ? 0 : indexed) != data_bytes;
    f->profiles = (uint64_t)sqlite3_column_int64(st, 0);
    f->oldest_ns = sqlite3_column_int64(st, 1);
    f->newest_ns = sqlite3_column_int64(st, 2);
    f->singles = (uint64_t)sqlite3_column_int64(st, 3);
    bool placed = f->profiles == 0 ||
                  (f->oldest_ns >= store_file_from_ns(f) && f->newest_ns <= store_file_until_ns(f));
    pthread_mutex_unlock(&s->lock);
    return placed;
}

static bool read_state(struct store *s, struct store_file *f, struct db *db, struct err *err)
{
    uint64_t data_bytes = 0;
    sqlite3_stmt *st = db_statement(db, SQL_STATE, err);
    int row = st == NULL ? -1 : db_step(db, st, err);
    if (row != 1) {
        return row == 0 && db_damaged(db, "no state", err);
    }
    bool ok = db_data_bytes(db, &data_bytes, err);
    if (ok && !take_state(s, f, db, st, data_bytes)) {
        db->fault = DB_MISPLACED;
        ok = err_set(err, ERR_INPUT, "its profiles are of another time than its name says");
    }
    sqlite3_reset(st);
    return ok;
}

enum look { LOOK_FAILED, LOOK_NOTHING, LOOK_FINE };

/* Reads the state of a file. LOOK_NOTHING: the file has no profiles, or has a fault, which has been
 * set. LOOK_FAILED: the read failed, with err. */
static enum look look_into(struct store *s, struct store_file *f, struct err *err)
{
    bool skip;
    struct reader_conn *c = store_reader_take(s, f, &skip, err);
    if (c == NULL) {
        return skip ? LOOK_NOTHING : LOOK_FAILED;
    }
    bool ok = read_state(s, f, &c->db, err);
    bool fault = c->db.fault != DB_FINE;
    store_reader_give(s, c, err);
    if (ok) {
        store_log_note(s, f);
        pthread_mutex_lock(&s->lock);
        f->sealed = f->sealed && f->log_bytes == 0;
        pthread_mutex_unlock(&s->lock);
    }
    /* Profiles that the tables lack are counted when they are there. */
    if (ok && !f->unindexed) {
        store_count_check(s, f);
    }
    return ok ? LOOK_FINE : fault ? LOOK_NOTHING : LOOK_FAILED;
}

/* Finds a database that is empty although its count says that it had profiles. */
static void check_empty(struct store *s, struct store_file *f)
{
    uint64_t committed = 0;
    if (f->fault == DB_FINE && f->profiles == 0 && !f->unindexed &&
        store_count_read(f->path, &committed) && committed > 0) {
        char why[128];
        (void)snprintf(why, sizeof(why), "the database is empty, and had %" PRIu64 " profiles",
                       committed);
        store_file_fault(s, f, DB_DAMAGED, why);
        metric_add(s->metrics.lost, committed);
    }
}

/* Returns true if an entry is a data file without a database. */
static bool is_orphan_data(struct store *s, struct sv entry)
{
    char path[PATH_SIZE];
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/%.*s", s->options.directory, SV_ARG(entry));
    return lstat(path, &st) != 0 && errno == ENOENT;
}

/* Adds a file found in the directory to the list. */
static bool take_entry(struct store *s, const char *entry, struct err *err)
{
    struct store_name name;
    struct sv text = sv_from(entry);
    bool is_data = sv_ends_with(text, SV(DATA_SUFFIX));
    text.n -= is_data ? sizeof(DATA_SUFFIX) - 1 : 0;
    if (!store_name_parse(text, &name) || (is_data && !is_orphan_data(s, text))) {
        store_sums_found(s, entry);
        return true;
    }
    struct store_file *f = file_new(s, &name);
    pthread_mutex_lock(&s->lock);
    bool full = s->n_files >= FILES_MAX;
    bool added = f != NULL && !full && add(s, f);
    pthread_mutex_unlock(&s->lock);
    if (!added) {
        store_file_unref(f);
        return full ? err_set(err, ERR_LIMIT, "more than %d files", FILES_MAX) : err_memory(err);
    }
    struct err why = ERR_INIT;
    if (!is_data && look_into(s, f, &why) == LOOK_FAILED) {
        store_file_fault(s, f, DB_UNREADABLE, why.msg);
    }
    /* An empty database is made again, as a missing one is. */
    f->unindexed = f->unindexed || (f->fault == DB_FINE && f->profiles == 0 &&
                                    store_file_data_size(f) > DATA_HEADER_BYTES);
    check_empty(s, f);
    return true;
}

/* Empties the list, so that opening can be tried again. */
static void forget_all(struct store *s)
{
    store_readers_close(s, NULL);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_files; i++) {
        store_file_unref(s->files[i]);
    }
    s->n_files = 0;
    store_sums_done(s); /* under the lock: statistics read the list while the store opens */
    pthread_mutex_unlock(&s->lock);
}

/* Returns the first file from the i-th on that could not be read, with a reference; NULL if there
 * is none. */
static struct store_file *next_unreadable(struct store *s, size_t *i)
{
    pthread_mutex_lock(&s->lock);
    while (*i < s->n_files && s->files[*i]->fault != DB_UNREADABLE) {
        ++*i;
    }
    struct store_file *f = *i < s->n_files ? store_file_ref(s->files[*i]) : NULL;
    ++*i;
    pthread_mutex_unlock(&s->lock);
    return f;
}

void store_retry_unreadable(struct store *s)
{
    size_t i = 0;
    struct store_file *f;
    while ((f = next_unreadable(s, &i)) != NULL) {
        struct err err = ERR_INIT;
        if (look_into(s, f, &err) == LOOK_FINE) {
            pthread_mutex_lock(&s->lock);
            f->fault = DB_FINE;
            pthread_mutex_unlock(&s->lock);
            log_info(s->options.log, "a file of the store can be read again",
                     LOG_STR("endpoint", s->options.name), LOG_STR("file", f->path));
        }
        store_file_unref(f);
    }
}

/* Returns true if an entry is the name of a file of the store with this suffix. path gets the path
 * of that file. */
static bool belongs_to(const struct store *s, const char *entry, const char *suffix,
                       char path[PATH_SIZE])
{
    struct sv text = sv_from(entry);
    struct store_name name;
    if (!sv_ends_with(text, sv_from(suffix))) {
        return false;
    }
    text.n -= strlen(suffix);
    (void)snprintf(path, PATH_SIZE, "%s/%.*s", s->options.directory, SV_ARG(text));
    return store_name_parse(text, &name);
}

/* Removes files whose database no longer exists: a log, which is left over if the process ended
 * while it removed the file, and a count. */
static bool remove_orphan(struct store *s, const char *entry, struct err *err)
{
    static const char *const companions[] = {"-wal", "-shm", ARCHIVE_MARK_SUFFIX};
    char path[PATH_SIZE];
    (void)err;
    if (belongs_to(s, entry, REMOVED_SUFFIX, path)) {
        (void)remove_rest(path, NULL);
    } else if (belongs_to(s, entry, STORE_COUNT_SUFFIX, path)) {
        store_count_orphan(s, path);
    }
    for (size_t i = 0; i < sizeof(companions) / sizeof(companions[0]); i++) {
        if (belongs_to(s, entry, companions[i], path) && access(path, F_OK) != 0 &&
            errno == ENOENT) {
            (void)snprintf(path, sizeof(path), "%s/%s", s->options.directory, entry);
            (void)unlink(path);
        }
    }
    return true;
}

/* Puts the profiles that tables lack into them, and removes the rows of profiles that data files
 * have lost. Copies are left as they are. */
static void recover_all(struct store *s)
{
    pthread_mutex_lock(&s->write_lock);
    for (size_t i = 0; i < s->n_files; i++) {
        if (s->files[i]->unindexed) {
            store_index_file_locked(s, s->files[i]);
        }
    }
    pthread_mutex_unlock(&s->write_lock);
}

static bool each_entry(struct store *s,
                       bool (*visit)(struct store *s, const char *entry, struct err *err),
                       struct err *err)
{
    DIR *d = opendir(s->options.directory);
    if (d == NULL) {
        return err_sys(err, "cannot read the directory %s", s->options.directory);
    }
    bool ok = true;
    const struct dirent *e;
    while (ok && (e = readdir(d)) != NULL) {
        ok = visit(s, e->d_name, err);
    }
    closedir(d);
    return ok;
}

bool store_list(struct store *s, struct err *err)
{
    if (!each_entry(s, remove_orphan, err) || !each_entry(s, take_entry, err)) {
        forget_all(s);
        return false;
    }
    store_find_copies(s);
    recover_all(s);
    return true;
}

/* ---- finding --------------------------------------------------------------------------------- */

static int64_t floor_to(int64_t ms, int64_t step)
{
    int64_t rest = ms % step;
    return ms - (rest < 0 ? rest + step : rest);
}

/* Returns the file of a stretch with the highest generation, or NULL. The search begins with the
 * latest stretch, since most profiles belong to it. Under the lock. */
static struct store_file *newest_of(struct store *s, const struct store_name *name)
{
    for (size_t i = s->n_files; i-- > 0 && s->files[i]->name.start_ms >= name->start_ms;) {
        const struct store_name *n = &s->files[i]->name;
        if (n->start_ms == name->start_ms && n->length_ms == name->length_ms) {
            return s->files[i];
        }
    }
    return NULL;
}

size_t store_files_at(struct store *s, int64_t time_ns, const struct store_file *except,
                      struct store_file *ret[STORE_FILES_OF_A_TIME_MAX])
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = s->n_files; i-- > 0 && n < STORE_FILES_OF_A_TIME_MAX;) {
        struct store_file *f = s->files[i];
        if (store_file_from_ns(f) + STORE_STRETCH_MS_MAX * NS_PER_MS <= time_ns) {
            break;
        }
        if (f != except && f->fault == DB_FINE && f->profiles > 0 && f->oldest_ns <= time_ns &&
            f->newest_ns >= time_ns) {
            ret[n++] = store_file_ref(f);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

struct store_file *store_file_for(struct store *s, int64_t from_ns, struct err *err)
{
    struct store_name name = {.length_ms = s->limits.stretch_ms, .generation = 1};
    name.start_ms = floor_to(from_ns / NS_PER_MS, name.length_ms);
    pthread_mutex_lock(&s->lock);
    struct store_file *f = newest_of(s, &name);
    if (f != NULL && (f->fault != DB_FINE || f->unwritable || f->frozen || f->version == 1 ||
                      store_file_is_full(s, f))) {
        name.generation = f->name.generation + 1;
        f = NULL;
    }
    if (f == NULL && name.generation <= STORE_FILES_OF_A_STRETCH_MAX) {
        f = file_new(s, &name);
        if (f != NULL && !add(s, f)) {
            f = store_file_unref(f);
        }
    }
    if (f != NULL) {
        store_file_ref(f);
    } else {
        err_memory(err);
    }
    pthread_mutex_unlock(&s->lock);
    return f;
}

bool store_files_in(struct store *s, int64_t from_ns, int64_t until_ns, struct store_file ***ret,
                    size_t *ret_n, struct err *err)
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    if (s->state != STORE_OPEN) {
        err_set(err, ERR_SYSTEM, "the store is not open: %s",
                s->state == STORE_OPENING ? "its disk does not answer" : s->open_err.msg);
        pthread_mutex_unlock(&s->lock);
        return false;
    }
    struct store_file **files = calloc(s->n_files + 1, sizeof(void *));
    for (size_t i = 0; files != NULL && i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        if (f->fault == DB_FINE && store_file_from_ns(f) <= until_ns &&
            store_file_until_ns(f) >= from_ns) {
            files[n++] = store_file_ref(f);
        }
    }
    pthread_mutex_unlock(&s->lock);
    *ret = files;
    *ret_n = n;
    return files != NULL || err_memory(err);
}

/* Marks the files of the archive whose twins on this disk are read instead. Under the lock. */
static void mark_twins(struct store *s)
{
    s->marks++;
    for (size_t i = 0; i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        if (f->fault == DB_FINE) {
            archive_mark_twin(s->archive, f, s->marks);
        }
    }
}

static int by_name(const void *a, const void *b)
{
    const struct store_file *x = *(struct store_file *const *)a;
    const struct store_file *y = *(struct store_file *const *)b;
    return store_name_compare(&x->name, &y->name);
}

bool store_files_to_read(struct store *s, int64_t from_ns, int64_t until_ns,
                         struct store_file ***ret, size_t *ret_n, struct err *err)
{
    if (s->archive == NULL) {
        return store_files_in(s, from_ns, until_ns, ret, ret_n, err);
    }
    pthread_mutex_lock(&s->lock);
    bool open = s->state == STORE_OPEN;
    size_t cap = s->n_files + archive_count(s->archive);
    struct store_file **files = open ? calloc(cap + 1, sizeof(void *)) : NULL;
    size_t n = 0;
    for (size_t i = 0; files != NULL && i < s->n_files; i++) {
        struct store_file *f = s->files[i];
        if (f->fault == DB_FINE && store_file_from_ns(f) <= until_ns &&
            store_file_until_ns(f) >= from_ns) {
            files[n++] = store_file_ref(f);
        }
    }
    if (files != NULL) {
        mark_twins(s);
        archive_add_files(s->archive, from_ns, until_ns, s->marks, files, &n, cap);
    }
    pthread_mutex_unlock(&s->lock);
    if (!open) {
        /* The error says why. */
        return store_files_in(s, from_ns, until_ns, ret, ret_n, err);
    }
    if (n > 0) {
        qsort((void *)files, n, sizeof(void *), by_name);
    }
    *ret = files;
    *ret_n = n;
    return files != NULL || err_memory(err);
}

void store_files_free(struct store_file **files, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        store_file_unref(files[i]);
    }
    free(files);
}

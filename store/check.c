#include "store/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "store/blob.h"
#include "store/data.h"
#include "store/private.h"

#define PATH_SIZE 4096
#define ARENA_BYTES ((size_t)16 * 1024 * 1024)

/* A check in progress. */
struct check {
    struct db db;
    const char *path;
    struct check_report *report;
    int64_t salt;    /* of the data file */
    int64_t indexed; /* the tables have the data file up to here; DB_SEALED: it has no profile */
};

static bool fault(struct check *c, enum db_fault fault, const char *why)
{
    c->report->fault = fault;
    (void)snprintf(c->report->why, sizeof(c->report->why), "%s", why);
    return false;
}

/* Reports an error of the database. */
static bool db_failed(struct check *c, const struct err *err)
{
    return fault(c, c->db.fault != DB_FINE ? c->db.fault : DB_UNREADABLE, err->msg);
}

static bool damaged(struct check *c, const char *what)
{
    return fault(c, DB_DAMAGED, what);
}

/* ---- opening --------------------------------------------------------------------------------- */

static uint64_t size_of(const char *path, const char *suffix)
{
    char name[PATH_SIZE];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    return lstat(name, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* Opens the database. False with a fault, or if there is nothing to be read. */
static bool open_db(struct check *c)
{
    struct stat st;
    struct err err = ERR_INIT;
    bool empty = false;
    if (lstat(c->path, &st) != 0) {
        (void)err_sys(&err, "cannot read it");
        return fault(c, DB_UNREADABLE, err.msg);
    }
    if (!S_ISREG(st.st_mode)) {
        return fault(c, DB_FOREIGN, "not a regular file");
    }
    c->report->bytes =
        (uint64_t)st.st_size + size_of(c->path, "-wal") + size_of(c->path, DATA_SUFFIX);
    bool ok = size_of(c->path, "-wal") > 0 ? db_open_reader(&c->db, c->path, &empty, &err)
                                           : db_open_still(&c->db, c->path, &empty, &err);
    if (!ok) {
        return db_failed(c, &err);
    }
    c->report->version = c->db.version;
    return !empty;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool read_state(struct check *c)
{
    struct err err = ERR_INIT;
    struct check_report *r = c->report;
    sqlite3_stmt *st = db_statement(&c->db, SQL_STATE, &err);
    int row = st != NULL ? db_step(&c->db, st, &err) : -1;
    if (row != 1) {
        return row == 0 ? damaged(c, "damaged: no state") : db_failed(c, &err);
    }
    r->profiles = (uint64_t)sqlite3_column_int64(st, 0);
    r->oldest_ns = r->profiles > 0 ? sqlite3_column_int64(st, 1) : 0;
    r->newest_ns = r->profiles > 0 ? sqlite3_column_int64(st, 2) : 0;
    c->salt = sqlite3_column_int64(st, 4);
    c->indexed = sqlite3_column_int64(st, 5);
    sqlite3_reset(st);
    r->sealed = c->indexed == DB_SEALED && size_of(c->path, DATA_SUFFIX) == 0 &&
                size_of(c->path, "-wal") == 0;
    return true;
}

/* Checks that the times fit the name of the file. */
static bool check_times(struct check *c)
{
    const char *slash = strrchr(c->path, '/');
    struct store_name name;
    const struct check_report *r = c->report;
    if (r->profiles == 0 ||
        !store_name_parse(sv_from(slash != NULL ? slash + 1 : c->path), &name)) {
        return true;
    }
    int64_t from_ns = name.start_ms * NS_PER_MS;
    bool fits = r->oldest_ns >= from_ns && r->newest_ns < from_ns + name.length_ms * NS_PER_MS;
    return fits || fault(c, DB_MISPLACED, "its profiles are of another time than its name says");
}

/* ---- the data file --------------------------------------------------------------------------- */

/* Counts the records that the tables do not have. Those that they have are read from the start on
 * only if the check is thorough. */
static bool walk(struct check *c, int fd, int64_t from, int64_t end)
{
    struct data_walk w;
    struct data_facts facts;
    struct sv body;
    struct err err = ERR_INIT;
    int64_t place;
    int row;
    data_walk_init(&w, fd, (uint64_t)c->salt, from, end);
    while ((row = data_walk_next(&w, &facts, &body, &place, &err)) == 1) {
        if (place >= c->indexed) {
            struct check_report *r = c->report;
            r->oldest_ns =
                r->profiles == 0 || facts.time_ns < r->oldest_ns ? facts.time_ns : r->oldest_ns;
            r->newest_ns = facts.time_ns > r->newest_ns ? facts.time_ns : r->newest_ns;
            r->profiles++;
        }
    }
    /* The bytes after the last record belong to one that is being written, or that a crash has cut
     * off: its sender has had no success. */
    int64_t inside = w.skipped - (end - w.at);
    uint64_t lost = w.damaged;
    data_walk_done(&w);
    if (row < 0) {
        return fault(c, DB_UNREADABLE, err.msg);
    }
    return (lost == 0 && inside <= 0) || damaged(c, "damaged: profiles of the data file");
}

/* Reads the head of the data file, and sets where its records begin that the tables may lack: at
 * `end` if there are none. The rules are those of the writer (tail.c). */
static bool read_head(struct check *c, int fd, int64_t end, int64_t *ret_from)
{
    char header[DATA_HEADER_BYTES];
    struct err err = ERR_INIT;
    uint64_t salt = 0;
    if (pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
        (void)err_sys(&err, "cannot read the data file");
        return fault(c, DB_UNREADABLE, err.msg);
    }
    if (!data_read_header(header, &salt)) {
        return damaged(c, "damaged: the head of the data file");
    }
    bool same = salt == (uint64_t)c->salt;
    if (c->indexed != DB_SEALED && !same) {
        return damaged(c, "damaged: the data file is that of another database");
    }
    /* A crash after sealing leaves a data file to which nothing refers. */
    *ret_from = c->indexed != DB_SEALED ? c->indexed : same ? end : DATA_HEADER_BYTES;
    c->salt = (int64_t)salt;
    return true;
}

static bool check_data(struct check *c, bool thorough)
{
    char name[PATH_SIZE];
    struct err err = ERR_INIT;
    int64_t end = (int64_t)size_of(c->path, DATA_SUFFIX);
    int64_t from = 0;
    if (c->db.version == 1 || end < DATA_HEADER_BYTES) {
        return c->indexed <= DATA_HEADER_BYTES || damaged(c, "damaged: the data file is missing");
    }
    (void)snprintf(name, sizeof(name), "%s" DATA_SUFFIX, c->path);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        (void)err_sys(&err, "cannot read the data file");
        return fault(c, DB_UNREADABLE, err.msg);
    }
    bool ok = read_head(c, fd, end, &from);
    if (ok && thorough && c->indexed != DB_SEALED) {
        from = DATA_HEADER_BYTES;
    }
    ok = ok && walk(c, fd, from, end);
    close(fd);
    return ok;
}

/* ---- pages and rows -------------------------------------------------------------------------- */

/* Calls fn with each row of a query. False with a fault. */
static bool each_row(struct check *c, const char *sql,
                     bool (*fn)(struct check *c, sqlite3_stmt *st))
{
    sqlite3_stmt *st = NULL;
    struct err err = ERR_INIT;
    bool ok = true;
    int row = -1;
    if (sqlite3_prepare_v2(c->db.handle, sql, -1, &st, NULL) != SQLITE_OK) {
        return damaged(c, sqlite3_errmsg(c->db.handle));
    }
    while (ok && (row = db_step(&c->db, st, &err)) == 1) {
        ok = fn(c, st);
    }
    sqlite3_finalize(st);
    return ok && (row == 0 || db_failed(c, &err));
}

static bool is_intact(struct check *c, sqlite3_stmt *st)
{
    const char *text = (const char *)sqlite3_column_text(st, 0);
    return (text != NULL && strcmp(text, "ok") == 0) ||
           damaged(c, text != NULL ? text : "damaged: its pages");
}

static bool set_is_fine(struct check *c, sqlite3_stmt *st)
{
    struct set set;
    struct arena *arena = arena_new(ARENA_BYTES);
    bool ok = arena != NULL && blob_read_set(db_blob(st, 0), arena, &set);
    arena_free(arena);
    return ok || damaged(c, "damaged: the labels of a series");
}

static bool series_is_fine(struct check *c, sqlite3_stmt *st)
{
    const struct label *labels;
    size_t n;
    struct arena *arena = arena_new(ARENA_BYTES);
    bool ok = arena != NULL && blob_read_labels(db_blob(st, 0), arena, &labels, &n);
    arena_free(arena);
    return ok || damaged(c, "damaged: the labels of samples");
}

static bool single_is_fine(struct check *c, sqlite3_stmt *st)
{
    const struct db_body b = {sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                              sqlite3_column_int64(st, 2)};
    struct sv data;
    struct err err = ERR_INIT;
    if (!db_body(&c->db, &b, &data, &err)) {
        return db_failed(c, &err);
    }
    bool ok = store_hash_fits(data, (uint64_t)sqlite3_column_int64(st, 3));
    db_body_done(&c->db);
    return ok || damaged(c, "damaged: the bytes of a profile");
}

static bool merge_is_fine(struct check *c, sqlite3_stmt *st)
{
    return blob_hash(db_blob(st, 0), NULL, 0) == (uint64_t)sqlite3_column_int64(st, 1) ||
           damaged(c, "damaged: the bytes of a merged profile");
}

static bool count_is_right(struct check *c, sqlite3_stmt *st)
{
    return (uint64_t)sqlite3_column_int64(st, 0) == c->report->profiles ||
           damaged(c, "damaged: it has another number of profiles than it says");
}

static bool check_rows(struct check *c)
{
    bool old = c->db.version == 1;
    return each_row(c, "PRAGMA integrity_check(1)", is_intact) &&
           each_row(c, "SELECT count(*) FROM profiles", count_is_right) &&
           each_row(c, "SELECT data FROM sets", set_is_fine) &&
           each_row(c, "SELECT labels FROM series", series_is_fine) &&
           each_row(c,
                    old ? "SELECT id, -1, size, hash FROM profiles WHERE merge <= 0"
                        : "SELECT id, place, size, hash FROM profiles WHERE merge <= 0",
                    single_is_fine) &&
           each_row(c, "SELECT data, hash FROM merges", merge_is_fine);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void check_file(const char *path, bool thorough, struct check_report *ret)
{
    struct check c = {.path = path, .report = ret, .db = {.data_fd = -1}};
    struct err err = ERR_INIT;
    *ret = (struct check_report){.fault = DB_FINE};
    /* One transaction reads all, since another process may be writing. */
    bool ok = open_db(&c) && (db_run(&c.db, SQL_BEGIN_READ, &err) || db_failed(&c, &err));
    if (ok) {
        ok = read_state(&c) && (!thorough || check_rows(&c)) && check_data(&c, thorough);
        (void)(ok && check_times(&c));
        (void)db_run(&c.db, SQL_ROLLBACK, NULL);
    }
    db_close(&c.db);
}

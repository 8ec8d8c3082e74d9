#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/data.h"

/* Bytes of a page. Profiles of many series change a page for each series, so small pages keep the
 * bytes that a commit writes low. */
#define PAGE_SIZE "4096"
#define LOG_BYTES_MAX "16777216"
/* Cache of pages of each connection, in KiB. */
#define CACHE_KIB "-4096"
/* Milliseconds that a statement waits while another connection writes. */
#define BUSY_MS 10000
/* SQLite's file system of databases in memory, whose bytes are in one piece. */
#define MEMORY_VFS "memdb"
#define URI_MAX ((size_t)16 * 1024)
/* Limit of one row. It is above the limit of a profile, which applies to the inflated bytes. */
#define ROW_BYTES_MAX (128 * 1024 * 1024)

const char *db_fault_name(enum db_fault f)
{
    static const char *const names[DB_FAULTS] = {
        [DB_FINE] = "fine",   [DB_DAMAGED] = "damaged",       [DB_FOREIGN] = "foreign",
        [DB_NEWER] = "newer", [DB_UNREADABLE] = "unreadable", [DB_MISPLACED] = "misplaced",
        [DB_COPY] = "copy"};
    return names[f];
}

/* ---- the schema ------------------------------------------------------------------------------ */

struct object {
    const char *name;
    const char *sql;
};

static const struct object schema[] = {
    {"sets", "CREATE TABLE sets(id INTEGER PRIMARY KEY, data BLOB NOT NULL UNIQUE)"},
    {"series", "CREATE TABLE series(id INTEGER PRIMARY KEY, set_id INTEGER NOT NULL, "
               "labels BLOB NOT NULL, columns INTEGER NOT NULL, UNIQUE(set_id, labels))"},
    {"profiles", "CREATE TABLE profiles(id INTEGER PRIMARY KEY, set_id INTEGER NOT NULL, "
                 "time INTEGER NOT NULL, until INTEGER NOT NULL, hash INTEGER NOT NULL, "
                 "format INTEGER NOT NULL, size INTEGER NOT NULL, merge INTEGER NOT NULL, "
                 "series BLOB NOT NULL, place INTEGER NOT NULL)"},
    {"points", "CREATE TABLE points(series INTEGER NOT NULL, time INTEGER NOT NULL, "
               "hash INTEGER NOT NULL, profile INTEGER NOT NULL, sums BLOB NOT NULL, "
               "PRIMARY KEY(series, time, hash)) WITHOUT ROWID"},
    {"bodies", "CREATE TABLE bodies(id INTEGER PRIMARY KEY, data BLOB NOT NULL)"},
    {"merges",
     "CREATE TABLE merges(id INTEGER PRIMARY KEY, set_id INTEGER NOT NULL, "
     "time INTEGER NOT NULL, until INTEGER NOT NULL, profile INTEGER NOT NULL, "
     "hash INTEGER NOT NULL, n INTEGER NOT NULL, series BLOB NOT NULL, data BLOB NOT NULL)"},
    {"state", "CREATE TABLE state(id INTEGER PRIMARY KEY, profiles INTEGER NOT NULL, "
              "oldest INTEGER NOT NULL, newest INTEGER NOT NULL, singles INTEGER NOT NULL, "
              "salt INTEGER NOT NULL, indexed INTEGER NOT NULL)"},
};
#define SCHEMA_OBJECTS (sizeof(schema) / sizeof(schema[0]))

/* The tables of version 1 that differ. */
static const struct object schema_v1[] = {
    {"profiles", "CREATE TABLE profiles(id INTEGER PRIMARY KEY, set_id INTEGER NOT NULL, "
                 "time INTEGER NOT NULL, until INTEGER NOT NULL, hash INTEGER NOT NULL, "
                 "format INTEGER NOT NULL, size INTEGER NOT NULL, merge INTEGER NOT NULL, "
                 "series BLOB NOT NULL)"},
    {"state", "CREATE TABLE state(id INTEGER PRIMARY KEY, profiles INTEGER NOT NULL, "
              "oldest INTEGER NOT NULL, newest INTEGER NOT NULL, singles INTEGER NOT NULL)"},
};

static const char *const statements[DB_STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_SAVE] = "SAVEPOINT batch",
    [SQL_KEEP] = "RELEASE batch",
    [SQL_UNDO] = "ROLLBACK TO batch",
    [SQL_FIND_SET] = "SELECT id FROM sets WHERE data = ?1",
    [SQL_ADD_SET] = "INSERT INTO sets(data) VALUES(?1)",
    [SQL_FIND_SERIES] = "SELECT id, columns FROM series WHERE set_id = ?1 AND labels = ?2",
    [SQL_ADD_SERIES] = "INSERT INTO series(set_id, labels, columns) VALUES(?1, ?2, ?3)",
    [SQL_SET_COLUMNS] = "UPDATE series SET columns = ?2 WHERE id = ?1",
    [SQL_FIND_POINT] = "SELECT profile FROM points WHERE series = ?1 AND time = ?2 AND hash = ?3",
    [SQL_ADD_PROFILE] = "INSERT INTO profiles(id, set_id, time, until, hash, format, size, merge, "
                        "series, place) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [SQL_ADD_BODY] = "INSERT INTO bodies(id, data) VALUES(?1, ?2)",
    [SQL_ADD_POINT] =
        "INSERT INTO points(series, time, hash, profile, sums) VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQL_STATE] = "SELECT profiles, oldest, newest, singles, salt, indexed FROM state WHERE id = 1",
    [SQL_NOTE_PUT] = "UPDATE state SET profiles = profiles + ?1, oldest = min(oldest, ?2), "
                     "newest = max(newest, ?3), singles = singles + ?1, salt = ?4, indexed = ?5 "
                     "WHERE id = 1",
    [SQL_NOTE_SEALED] = "UPDATE state SET indexed = -1 WHERE id = 1",
    [SQL_ALL_SERIES] = "SELECT s.id, s.columns, s.labels, t.data, t.id FROM series s "
                       "JOIN sets t ON t.id = s.set_id ORDER BY s.id",
    [SQL_SET] = "SELECT data FROM sets WHERE id = ?1",
    [SQL_POINTS] = "SELECT time, hash, profile, sums FROM points WHERE series = ?1 AND "
                   "(time, hash) > (?2, ?3) AND time <= ?4 ORDER BY time, hash LIMIT ?5",
    /* The same, with the end of the window: a left join keeps the order of the loops. */
    [SQL_TIMED_POINTS] =
        "SELECT p.time, p.hash, p.profile, p.sums, r.until FROM points p LEFT JOIN profiles r ON "
        "r.id = p.profile WHERE p.series = ?1 AND (p.time, p.hash) > (?2, ?3) AND p.time <= ?4 "
        "ORDER BY p.time, p.hash LIMIT ?5",
    [SQL_PROFILE] = "SELECT set_id, time, until, hash, format, merge, series, place, size "
                    "FROM profiles WHERE id = ?1",
    [SQL_FIND_PROFILE] = "SELECT id, time FROM profiles WHERE hash = ?1 AND time BETWEEN ?2 AND ?3",
    [SQL_PROFILES_AT] = "SELECT id, time, hash FROM profiles WHERE time BETWEEN ?1 AND ?2",
    [SQL_BODY] = "SELECT data FROM bodies WHERE id = ?1",
    [SQL_MERGED_BODY] = "SELECT set_id, time, until, profile, hash, series, data FROM merges "
                        "WHERE id = ?1",
    [SQL_SINGLES] = "SELECT id, set_id, time, until, series FROM profiles WHERE merge = 0",
    [SQL_ADD_MERGE] = "INSERT INTO merges(set_id, time, until, profile, hash, n, series, data) "
                      "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [SQL_SET_MERGE] = "UPDATE profiles SET merge = ?2, place = iif(?2 > 0, -1, place) "
                      "WHERE id = ?1 AND merge = 0",
    [SQL_DROP_BODY] = "DELETE FROM bodies WHERE id = ?1",
    [SQL_NOTE_MERGED] = "UPDATE state SET singles = max(singles - ?1, 0) WHERE id = 1",
    [SQL_ALL_PROFILES] = "SELECT p.time, p.hash, t.data FROM profiles p "
                         "JOIN sets t ON t.id = p.set_id ORDER BY p.id",
    [SQL_MEMBERS] = "SELECT id FROM profiles WHERE merge = ?1",
    [SQL_DROP_POINT] = "DELETE FROM points WHERE series = ?1 AND time = ?2 AND hash = ?3",
    [SQL_PAGES] = "PRAGMA page_count",
    [SQL_FREE_PAGES] = "PRAGMA freelist_count",
    [SQL_SHRINK] = "PRAGMA incremental_vacuum(256)",
    [SQL_NEXT_RECORDING] =
        "SELECT p.id, p.time, p.until, t.data, p.place, p.size FROM profiles p JOIN sets t ON "
        "t.id = p.set_id WHERE p.format = 1 AND p.id > ?1 ORDER BY p.id LIMIT 1",
    [SQL_PLACED] = "SELECT id, place, size FROM profiles WHERE place >= 0 AND id > ?1 "
                   "ORDER BY id LIMIT ?2",
    [SQL_UNPLACE] = "UPDATE profiles SET place = -1 WHERE id = ?1",
    [SQL_LOST] = "SELECT id, time, hash, merge, series FROM profiles "
                 "WHERE place + size > ?1 AND place >= 0 AND id > ?2 ORDER BY id LIMIT 1",
    [SQL_DROP_PROFILE] = "DELETE FROM profiles WHERE id = ?1",
    [SQL_NOTE_LOST] = "UPDATE state SET profiles = max(profiles - ?1, 0), "
                      "singles = max(singles - ?2, 0) WHERE id = 1",
    [SQL_DATA_END] = "SELECT max(place + size) FROM profiles WHERE place >= 0",
};

/* The statements of version 1 that differ. */
static const char *statement_of(const struct db *db, enum db_statement s)
{
    if (db->version != 1) {
        return statements[s];
    }
    switch (s) {
    case SQL_STATE:
        return "SELECT profiles, oldest, newest, singles, 0, -1 FROM state WHERE id = 1";
    case SQL_PROFILE:
        return "SELECT set_id, time, until, hash, format, merge, series, -1, size FROM profiles "
               "WHERE id = ?1";
    case SQL_NEXT_RECORDING:
        return "SELECT p.id, p.time, p.until, t.data, -1, p.size FROM profiles p JOIN sets t ON "
               "t.id = p.set_id WHERE p.format = 1 AND p.id > ?1 ORDER BY p.id LIMIT 1";
    case SQL_SET_MERGE:
        return "UPDATE profiles SET merge = ?2 WHERE id = ?1 AND merge = 0";
    default:
        return statements[s];
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

bool db_damaged(struct db *db, const char *what, struct err *err)
{
    db->fault = DB_DAMAGED;
    return err_set(err, ERR_INPUT, "damaged: %s", what);
}

static bool is_of_reading(int rc)
{
    return rc == SQLITE_IOERR || rc == SQLITE_IOERR_READ || rc == SQLITE_IOERR_SHORT_READ ||
           rc == SQLITE_IOERR_FSTAT || rc == SQLITE_IOERR_CORRUPTFS;
}

/* Sets an error with the text of SQLite and, if there is one, the error of the system. */
static bool set_with_cause(struct db *db, const char *text, struct err *err)
{
    errno = sqlite3_system_errno(db->handle);
    return errno != 0 ? err_sys(err, "%s", text) : err_set(err, ERR_SYSTEM, "%s", text);
}

static bool fail(struct db *db, int rc, struct err *err)
{
    const char *text = db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return err_memory(err);
    case SQLITE_NOTADB:
        db->fault = DB_FOREIGN;
        return err_set(err, ERR_INPUT, "%s", text);
    /* A row has values of the wrong kind, or larger ones than a row may have. */
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT:
        return db_damaged(db, text, err);
    case SQLITE_IOERR:
        /* A failed write is the fault of the disk, not of the file, and a later write may succeed.
         */
        db->fault = is_of_reading(rc) ? DB_UNREADABLE : db->fault;
        return set_with_cause(db, sqlite3_errstr(rc), err);
    case SQLITE_CANTOPEN:
        return set_with_cause(db, text, err);
    case SQLITE_READONLY:
        db->read_only = true;
        return err_set(err, ERR_SYSTEM, "%s", text);
    case SQLITE_FULL:
        db->full = true;
        return err_set(err, ERR_SYSTEM, "%s", text);
    default:
        return err_set(err, ERR_SYSTEM, "%s", text);
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

sqlite3_stmt *db_statement(struct db *db, enum db_statement s, struct err *err)
{
    sqlite3_stmt **st = &db->statements[s];
    if (*st == NULL) {
        int rc = sqlite3_prepare_v3(db->handle, statement_of(db, s), -1, SQLITE_PREPARE_PERSISTENT,
                                    st, NULL);
        if (rc != SQLITE_OK) {
            fail(db, rc, err);
            return NULL;
        }
    }
    return *st;
}

sqlite3_stmt *db_compile(struct db *db, const char *sql, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL);
    (void)(rc == SQLITE_OK || fail(db, rc, err));
    return st;
}

int db_step(struct db *db, sqlite3_stmt *st, struct err *err)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        return 1;
    }
    if (rc != SQLITE_DONE) {
        fail(db, rc, err);
    }
    sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : -1;
}

bool db_run(struct db *db, enum db_statement s, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, s, err);
    return st != NULL && db_step(db, st, err) == 0;
}

sqlite3_stmt *db_row_of(struct db *db, enum db_statement s, int64_t key, const char *missing,
                        struct err *err)
{
    sqlite3_stmt *st = db_statement(db, s, err);
    if (st == NULL) {
        return NULL;
    }
    sqlite3_bind_int64(st, 1, key);
    int row = db_step(db, st, err);
    if (row == 0) {
        db_damaged(db, missing, err);
    }
    return row == 1 ? st : NULL;
}

sqlite3_stmt *db_all_points(struct db *db, int64_t series, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_POINTS, err);
    if (st != NULL) {
        sqlite3_bind_int64(st, 1, series);
        sqlite3_bind_int64(st, 2, INT64_MIN);
        sqlite3_bind_int64(st, 3, INT64_MIN);
        sqlite3_bind_int64(st, 4, INT64_MAX);
        sqlite3_bind_int64(st, 5, -1);
    }
    return st;
}

void db_bind_blob(sqlite3_stmt *st, int i, struct sv v)
{
    (void)sqlite3_bind_blob64(st, i, v.n > 0 ? v.p : "", v.n, SQLITE_STATIC);
}

struct sv db_blob(sqlite3_stmt *st, int i)
{
    const char *p = sqlite3_column_blob(st, i);
    int n = sqlite3_column_bytes(st, i);
    return p != NULL && n > 0 ? (struct sv){p, (size_t)n} : SV("");
}

/* ---- bytes of profiles ----------------------------------------------------------------------- */

static bool open_data(struct db *db, struct err *err)
{
    char name[4096];
    if (db->data_fd < 0 && !db->remote) {
        (void)snprintf(name, sizeof(name), "%s" DATA_SUFFIX, db->path);
        db->data_fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (db->data_fd < 0 && errno != ENOENT && errno != ELOOP) {
            db->fault = DB_UNREADABLE;
            return err_sys(err, "cannot read %s", name);
        }
    }
    return true;
}

/* Makes room for the bytes, which are no more than the data file has after their place. */
static bool reserve_body(struct db *db, const struct db_body *b, struct err *err)
{
    struct stat st;
    if (b->size < 0 || b->size > ROW_BYTES_MAX || fstat(db->data_fd, &st) != 0 ||
        b->place > st.st_size || b->size > st.st_size - b->place) {
        return true; /* the bytes are lost */
    }
    if ((size_t)b->size + 1 > db->body_cap) {
        char *body = realloc(db->body, (size_t)b->size + 1);
        if (body == NULL) {
            return err_memory(err);
        }
        db->body = body;
        db->body_cap = (size_t)b->size + 1;
    }
    return true;
}

static bool read_data(struct db *db, const struct db_body *b, struct sv *ret, struct err *err)
{
    if (!open_data(db, err)) {
        return false;
    }
    if (db->data_fd < 0 || !reserve_body(db, b, err)) {
        return db->data_fd < 0;
    }
    size_t want = b->size > 0 ? (size_t)b->size : 0;
    size_t got = 0;
    while (got < want && want < db->body_cap) {
        ssize_t n = pread(db->data_fd, db->body + got, want - got, b->place + (off_t)got);
        if (n < 0 && errno != EINTR) {
            db->fault = DB_UNREADABLE;
            return err_sys(err, "cannot read the data of %s", db->path);
        }
        if (n == 0) {
            break;
        }
        got += n > 0 ? (size_t)n : 0;
    }
    *ret = got == want && got > 0 ? (struct sv){db->body, got} : SV("");
    return true;
}

bool db_body(struct db *db, const struct db_body *b, struct sv *ret, struct err *err)
{
    *ret = SV("");
    if (b->place >= 0) {
        return read_data(db, b, ret, err);
    }
    sqlite3_stmt *st =
        db_row_of(db, SQL_BODY, b->profile, "the bytes of a profile are missing", err);
    if (st != NULL) {
        *ret = db_blob(st, 0);
    }
    return st != NULL;
}

void db_body_done(struct db *db)
{
    sqlite3_reset(db->statements[SQL_BODY]);
}

bool db_data_bytes(struct db *db, uint64_t *ret, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_PAGES, err);
    if (st == NULL || db_step(db, st, err) != 1) {
        return false;
    }
    *ret = (uint64_t)sqlite3_column_int64(st, 0) * db->page_bytes;
    sqlite3_reset(st);
    return true;
}

static bool exec(struct db *db, const char *sql, struct err *err)
{
    int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK || fail(db, rc, err);
}

bool db_sync_commits(struct db *db, bool sync, struct err *err)
{
    if (db->syncs != sync &&
        !exec(db, sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", err)) {
        return false;
    }
    db->syncs = sync;
    return true;
}

void db_limit_log(struct db *db, uint64_t bytes)
{
    char sql[64];
    (void)sqlite3_snprintf(sizeof(sql), sql, "PRAGMA journal_size_limit = %lld", (long long)bytes);
    (void)exec(db, sql, NULL);
}

bool db_copy_log(struct db *db, enum db_copy mode, struct err *err)
{
    int rc = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc == SQLITE_OK && mode != DB_COPY_ONLY) {
        /* The first copy leaves little to be copied while the writer has to wait. */
        sqlite3_busy_timeout(db->handle, mode == DB_COPY_AND_CUT ? 0 : BUSY_MS);
        rc = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        sqlite3_busy_timeout(db->handle, BUSY_MS);
    }
    return rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED ||
           fail(db, rc, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool read_number(struct db *db, const char *sql, int64_t *ret, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
        *ret = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    }
    bool ok = rc == SQLITE_ROW || rc == SQLITE_DONE || fail(db, rc, err);
    sqlite3_finalize(st);
    return ok;
}

static const struct object *find_object(const char *name, int64_t version)
{
    for (size_t i = 0; version == 1 && i < sizeof(schema_v1) / sizeof(schema_v1[0]); i++) {
        if (strcmp(schema_v1[i].name, name) == 0) {
            return &schema_v1[i];
        }
    }
    for (size_t i = 0; i < SCHEMA_OBJECTS; i++) {
        if (strcmp(schema[i].name, name) == 0) {
            return &schema[i];
        }
    }
    return NULL;
}

/* Checks that the schema is exactly ours. Another schema could run code by triggers or views. */
static bool check_schema(struct db *db, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(
        db->handle, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL", -1, &st, NULL);
    size_t n = 0;
    bool ours = true;
    if (rc == SQLITE_OK) {
        while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
            const char *name = (const char *)sqlite3_column_text(st, 0);
            const char *sql = (const char *)sqlite3_column_text(st, 1);
            const struct object *o = name != NULL ? find_object(name, db->version) : NULL;
            ours = ours && o != NULL && sql != NULL && strcmp(o->sql, sql) == 0;
            n++;
        }
    }
    bool ok = rc == SQLITE_DONE || fail(db, rc, err);
    sqlite3_finalize(st);
    return ok &&
           ((ours && n == SCHEMA_OBJECTS) || db_damaged(db, "the schema is another one", err));
}

static bool make_schema(struct db *db, const char *set_up, struct err *err)
{
    if (!exec(db, set_up, err)) {
        return false;
    }
    for (size_t i = 0; i < SCHEMA_OBJECTS; i++) {
        if (!exec(db, schema[i].sql, err)) {
            return false;
        }
    }
    char ids[256];
    db->version = DB_VERSION;
    (void)sqlite3_snprintf(sizeof(ids), ids,
                           "INSERT INTO state VALUES(1, 0, 9223372036854775807, 0, 0, 0, -1);"
                           "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
                           DB_APPLICATION_ID, DB_VERSION);
    return exec(db, ids, err);
}

/* Checks the application id and the version of a file, and its schema. */
static bool check_ids(struct db *db, bool *ret_empty, struct err *err)
{
    int64_t id = 0;
    int64_t version = 0;
    int64_t objects = 0;
    /* All checks read in one transaction. A writer may be creating the schema at this moment, and
     * half of it would look like the schema of another program. */
    if (!exec(db, "BEGIN", err) || !read_number(db, "PRAGMA application_id", &id, err) ||
        !read_number(db, "PRAGMA user_version", &version, err) ||
        !read_number(db, "SELECT count(*) FROM sqlite_schema", &objects, err) ||
        !exec(db, "COMMIT", err)) {
        return false;
    }
    *ret_empty = id == 0 && version == 0 && objects == 0;
    if (*ret_empty) {
        return true;
    }
    if (id != DB_APPLICATION_ID) {
        db->fault = DB_FOREIGN;
        return err_set(err, ERR_INPUT, "a database of another program (application id %lld)",
                       (long long)id);
    }
    if (version > DB_VERSION) {
        db->fault = DB_NEWER;
        return err_set(err, ERR_INPUT, "written by a newer version (format %lld, expected %d)",
                       (long long)version, DB_VERSION);
    }
    db->version = version;
    return version >= 1 ? check_schema(db, err) : db_damaged(db, "format 0", err);
}

static bool set_up(struct db *db, bool make, bool *ret_empty, struct err *err)
{
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_busy_timeout(db->handle, BUSY_MS);
    sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, ROW_BYTES_MAX);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    if (!exec(db,
              "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
              "PRAGMA temp_store = MEMORY; PRAGMA cache_size = " CACHE_KIB
              "; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;"
              "PRAGMA journal_size_limit = " LOG_BYTES_MAX,
              err) ||
        !check_ids(db, ret_empty, err)) {
        return false;
    }
    if (*ret_empty && make) {
        *ret_empty = false;
        if (!make_schema(db,
                         "PRAGMA page_size = " PAGE_SIZE "; PRAGMA auto_vacuum = INCREMENTAL;"
                         "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE",
                         err)) {
            return false;
        }
    }
    int64_t page_bytes = 0;
    bool ok = read_number(db, "PRAGMA page_size", &page_bytes, err);
    db->page_bytes = page_bytes > 0 ? (uint64_t)page_bytes : 1;
    return ok;
}

static bool open_flags(struct db *db, const char *path, bool make, int flags, bool *ret_empty,
                       struct err *err)
{
    *db = (struct db){.path = path, .data_fd = -1};
    *ret_empty = false;
    int rc = sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX, NULL);
    bool ok = rc == SQLITE_OK ? set_up(db, make, ret_empty, err) : fail(db, rc, err);
    if (!ok) {
        db_close(db);
    }
    return ok;
}

bool db_open(struct db *db, const char *path, bool make, bool *ret_empty, struct err *err)
{
    return open_flags(db, path, make, SQLITE_OPEN_READWRITE | (make ? SQLITE_OPEN_CREATE : 0),
                      ret_empty, err);
}

bool db_open_reader(struct db *db, const char *path, bool *ret_empty, struct err *err)
{
    return open_flags(db, path, false, SQLITE_OPEN_READONLY, ret_empty, err);
}

bool db_make_whole(struct db *db, const char *path, unsigned page_bytes, struct err *err)
{
    char pragmas[256];
    bool empty;
    *db = (struct db){.path = path, .data_fd = -1};
    if (unlink(path) != 0 && errno != ENOENT) {
        return err_sys(err, "cannot remove %s", path);
    }
    int rc = sqlite3_open_v2(
        path, &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_CREATE, NULL);
    bool ok = rc == SQLITE_OK ? set_up(db, false, &empty, err) : fail(db, rc, err);
    (void)snprintf(pragmas, sizeof(pragmas),
                   "PRAGMA page_size = %u; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                   "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE",
                   page_bytes);
    ok = ok && make_schema(db, pragmas, err);
    db->page_bytes = page_bytes;
    if (!ok) {
        db_close(db);
    }
    return ok;
}

bool db_finish_whole(struct db *db, struct err *err)
{
    int fd = open(db->path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return ok || err_sys(err, "cannot write %s", db->path);
}

/* Appends a path. Characters with a meaning in a URI are escaped. */
static void put_escaped(struct buf *out, const char *path)
{
    for (const char *c = path; *c != '\0'; c++) {
        if (*c == '%' || *c == '?' || *c == '#') {
            buf_printf(out, "%%%02X", (unsigned)*c);
        } else {
            buf_putc(out, *c);
        }
    }
}

static bool has_log(const char *path)
{
    char name[4096];
    struct stat st;
    int n = snprintf(name, sizeof(name), "%s-wal", path);
    return n < 0 || (size_t)n >= sizeof(name) || (stat(name, &st) == 0 && st.st_size > 0);
}

/* Opens a database that does not change, in a file system of SQLite's (NULL: that of the system).
 */
static bool open_immutable(struct db *db, const char *path, const char *vfs, bool *ret_empty,
                           struct err *err)
{
    struct buf uri;
    *ret_empty = false;
    buf_init(&uri, URI_MAX);
    buf_puts(&uri, "file:");
    put_escaped(&uri, path);
    buf_puts(&uri, "?immutable=1");
    int rc =
        buf_ok(&uri)
            ? sqlite3_open_v2(uri.data, &db->handle,
                              SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, vfs)
            : SQLITE_NOMEM;
    buf_done(&uri);
    bool ok = rc == SQLITE_OK ? set_up(db, false, ret_empty, err) : fail(db, rc, err);
    if (!ok) {
        db_close(db);
    }
    return ok;
}

bool db_open_still(struct db *db, const char *path, bool *ret_empty, struct err *err)
{
    *db = (struct db){.path = path, .still = true, .data_fd = -1};
    *ret_empty = false;
    return has_log(path) ? err_set(err, ERR_SYSTEM, "its write-ahead log cannot be read")
                         : open_immutable(db, path, NULL, ret_empty, err);
}

bool db_open_remote(struct db *db, const char *vfs, const char *name, bool *ret_empty,
                    struct err *err)
{
    *db = (struct db){.path = name, .remote = true, .data_fd = -1};
    return open_immutable(db, name, vfs, ret_empty, err);
}

bool db_make_slice(struct db *db, uint64_t bytes_max, struct err *err)
{
    char sql[64];
    bool empty;
    *db = (struct db){.path = "slice", .data_fd = -1};
    int rc = sqlite3_open_v2("slice", &db->handle,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                             MEMORY_VFS);
    bool ok = rc == SQLITE_OK ? set_up(db, true, &empty, err) : fail(db, rc, err);
    if (ok) {
        uint64_t pages = bytes_max / db->page_bytes + 1;
        (void)sqlite3_snprintf(sizeof(sql), sql, "PRAGMA max_page_count = %llu",
                               (unsigned long long)pages);
        ok = exec(db, sql, err);
    }
    if (!ok) {
        db_close(db);
    }
    return ok;
}

struct sv db_slice_bytes(struct db *db)
{
    sqlite3_int64 n = 0;
    const unsigned char *p = sqlite3_serialize(db->handle, "main", &n, SQLITE_SERIALIZE_NOCOPY);
    return p != NULL && n > 0 ? (struct sv){(const char *)p, (size_t)n} : SV("");
}

bool db_open_slice(struct db *db, const char *name, void *bytes, size_t n, struct err *err)
{
    bool empty = false;
    *db = (struct db){.path = name, .remote = true, .data_fd = -1};
    int rc =
        sqlite3_open_v2(":memory:", &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) {
        sqlite3_free(bytes);
    } else {
        rc = sqlite3_deserialize(db->handle, "main", bytes, (sqlite3_int64)n, (sqlite3_int64)n,
                                 SQLITE_DESERIALIZE_READONLY | SQLITE_DESERIALIZE_FREEONCLOSE);
    }
    bool ok = rc == SQLITE_OK ? set_up(db, false, &empty, err) : fail(db, rc, err);
    if (ok && empty) {
        ok = db_damaged(db, "it is empty", err);
    }
    if (!ok) {
        db_close(db);
    }
    return ok;
}

bool db_is_read_only(const struct db *db)
{
    return sqlite3_db_readonly(db->handle, "main") == 1;
}

size_t db_memory(const struct db *db)
{
    static const int parts[] = {SQLITE_DBSTATUS_CACHE_USED, SQLITE_DBSTATUS_SCHEMA_USED,
                                SQLITE_DBSTATUS_STMT_USED};
    size_t bytes = db->body_cap;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        int now = 0;
        int most = 0;
        if (sqlite3_db_status(db->handle, parts[i], &now, &most, 0) == SQLITE_OK && now > 0) {
            bytes += (size_t)now;
        }
    }
    return bytes;
}

void db_close(struct db *db)
{
    for (size_t i = 0; i < DB_STATEMENTS; i++) {
        sqlite3_finalize(db->statements[i]);
        db->statements[i] = NULL;
    }
    sqlite3_close_v2(db->handle);
    db->handle = NULL;
    if (db->data_fd >= 0) {
        close(db->data_fd);
    }
    db->data_fd = -1;
    free(db->body);
    db->body = NULL;
    db->body_cap = 0;
}

/* A connection to one database file: its statements, and the fault of the file.
 *
 * The tables of a file:
 *
 *     sets      labels and sample types, which many profiles share
 *     series    a set with the labels of some samples, and the columns whose sum was not always 0
 *     profiles  one row for each profile, with the list of its series, and the place of its bytes
 *     points    the sums of each profile, by series and time
 *     bodies    the bytes of profiles that are neither merged nor in the data file, by profile
 *     merges    the bytes of merged profiles
 *     state     one row: the number of profiles, the first and last time, and what the tables have
 *               of the data file (store/data.h)
 *
 * In version 1 there is no data file: profiles have no place, and the state says nothing of it.
 * Files of version 1 are read and merged, but take no new profiles.
 *
 * A file carries an application id and a version, and exactly this schema. Any other database is
 * foreign or damaged. A connection belongs to one thread at a time.
 */
#ifndef PROFPULL_STORE_DB_H
#define PROFPULL_STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define DB_APPLICATION_ID 0x70667073 /* "pfps" in ASCII */
#define DB_VERSION 2
/* The place of a profile whose bytes are in the tables. */
#define DB_NO_PLACE (-1)
/* state.indexed of a sealed file, none of whose profiles is in a data file. */
#define DB_SEALED (-1)

enum db_fault {
    DB_FINE,
    DB_DAMAGED,    /* a page or a row is damaged */
    DB_FOREIGN,    /* the file is no database, or belongs to another program */
    DB_NEWER,      /* a later version has written it */
    DB_UNREADABLE, /* the system cannot open or read the file */
    DB_MISPLACED,  /* the time of its profiles does not fit its name */
    DB_COPY,       /* all of its profiles are in another file as well */
    DB_FAULTS
};
const char *db_fault_name(enum db_fault f); /* "damaged", ... */

enum db_statement {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVE,
    SQL_KEEP,
    SQL_UNDO,
    SQL_FIND_SET,
    SQL_ADD_SET,
    SQL_FIND_SERIES,
    SQL_ADD_SERIES,
    SQL_SET_COLUMNS,
    SQL_FIND_POINT,
    SQL_ADD_PROFILE,
    SQL_ADD_BODY,
    SQL_ADD_POINT,
    SQL_STATE,
    SQL_NOTE_PUT,
    SQL_NOTE_SEALED,
    SQL_ALL_SERIES,
    SQL_SET,
    SQL_POINTS,
    SQL_TIMED_POINTS,
    SQL_PROFILE,
    SQL_FIND_PROFILE,
    SQL_PROFILES_AT,
    SQL_BODY,
    SQL_MERGED_BODY,
    SQL_SINGLES,
    SQL_ADD_MERGE,
    SQL_SET_MERGE,
    SQL_DROP_BODY,
    SQL_NOTE_MERGED,
    SQL_ALL_PROFILES,
    SQL_MEMBERS,
    SQL_DROP_POINT,
    SQL_PAGES,
    SQL_FREE_PAGES,
    SQL_SHRINK,
    SQL_NEXT_RECORDING,
    SQL_PLACED,
    SQL_UNPLACE,
    SQL_LOST,
    SQL_DROP_PROFILE,
    SQL_NOTE_LOST,
    SQL_DATA_END,
    DB_STATEMENTS
};

struct db {
    sqlite3 *handle; /* NULL: closed */
    const char *path;
    int64_t version;
    enum db_fault fault;
    bool still;     /* opened by db_open_still() */
    bool remote;    /* opened by db_open_remote() or db_open_slice() */
    bool read_only; /* a statement has failed because the file cannot be written */
    bool full;      /* a statement has failed because the disk is full */
    bool syncs;     /* see db_sync_commits() */
    uint64_t page_bytes;
    sqlite3_stmt *statements[DB_STATEMENTS]; /* made on first use */
    int data_fd;                             /* for db_body(); -1: not open */
    char *body;
    size_t body_cap;
};

/* Opens a file of the store. If `make` is true, a missing or empty file is created. If it is false,
 * *ret_empty is set if the file has no schema, so nothing can be read from it. The path must stay
 * valid until db_close(). False with err; db->fault is set if the file is to blame. */
bool db_open(struct db *db, const char *path, bool make, bool *ret_empty, struct err *err);
/* Opens a database that nobody writes, for reading only, where SQLite cannot create its log and
 * index because the directory or the disk cannot be written. False if the file has a log, since its
 * commits would be missing. *ret_empty is as in db_open(). */
bool db_open_still(struct db *db, const char *path, bool *ret_empty, struct err *err);
/* Opens a database for reading only, with its log, while another process may write it. *ret_empty
 * is as in db_open(). */
bool db_open_reader(struct db *db, const char *path, bool *ret_empty, struct err *err);
/* Opens a database that is an object of an archive: `name` in a file system of SQLite's
 * (store/archive/vfs.h). It never changes. *ret_empty is as in db_open(). */
bool db_open_remote(struct db *db, const char *vfs, const char *name, bool *ret_empty,
                    struct err *err);
/* Makes an empty database in memory, which has the tables of a file, for a part of a file
 * (store/peering/slice.h). It can have bytes_max bytes; a statement that needs more fails, and sets
 * db->full. */
bool db_make_slice(struct db *db, uint64_t bytes_max, struct err *err);
/* Returns the bytes of such a database, which are valid until its next change. No transaction may
 * be open. Empty if there are none. */
struct sv db_slice_bytes(struct db *db);
/* Opens a database whose bytes came from outside, for reading only. The bytes, from
 * sqlite3_malloc64(), belong to the connection from then on, also on failure. `name` is for
 * messages, and must stay valid until db_close(). False with err; db->fault says why. */
bool db_open_slice(struct db *db, const char *name, void *bytes, size_t n, struct err *err);
/* Creates a database without a log, which is written once and complete only after
 * db_finish_whole(). An earlier file is replaced. page_bytes: a power of two from 512 to 65536;
 * large pages keep the trees of large files two levels deep. */
bool db_make_whole(struct db *db, const char *path, unsigned page_bytes, struct err *err);
/* Writes all of it to the disk. */
bool db_finish_whole(struct db *db, struct err *err);
void db_close(struct db *db); /* does nothing if it is closed already */
/* Returns true if SQLite has opened the file for reading only, because it cannot be written. */
bool db_is_read_only(const struct db *db);
/* Returns the bytes of memory that an open database holds. */
size_t db_memory(const struct db *db);

/* Returns a statement, ready for its parameters to be bound; NULL with err. */
sqlite3_stmt *db_statement(struct db *db, enum db_statement s, struct err *err);
/* Runs a statement to its next row. Returns 1 for a row, 0 at the end, -1 with err. If it returns 0
 * or -1, it has reset the statement. */
int db_step(struct db *db, sqlite3_stmt *st, struct err *err);
/* Runs a statement that has no parameters and no rows. */
bool db_run(struct db *db, enum db_statement s, struct err *err);

/* Runs a statement, whose only parameter is a key, to its row. NULL with err. If the row is
 * missing, the file is damaged, and the error has the text `missing`. */
sqlite3_stmt *db_row_of(struct db *db, enum db_statement s, int64_t key, const char *missing,
                        struct err *err);

/* Returns the statement of all points of a series (SQL_POINTS), to be stepped. NULL with err. */
sqlite3_stmt *db_all_points(struct db *db, int64_t series, struct err *err);

/* Compiles a statement that is not among those above; the caller finalizes it. NULL with err. */
sqlite3_stmt *db_compile(struct db *db, const char *sql, struct err *err);

/* Binds bytes to a parameter. The bytes must stay valid until the statement is reset. */
void db_bind_blob(sqlite3_stmt *st, int i, struct sv v);
/* Returns the bytes of a column. They are valid until the next step. */
struct sv db_blob(sqlite3_stmt *st, int i);

/* The bytes of a profile that is not merged. */
struct db_body {
    int64_t profile;
    int64_t place; /* DB_NO_PLACE, or the offset in the data file */
    int64_t size;
};
/* Reads the bytes of a profile, which are valid until db_body_done(). They are not checked: if the
 * data file has lost them, they are empty. False with err. */
bool db_body(struct db *db, const struct db_body *b, struct sv *ret, struct err *err);
void db_body_done(struct db *db);

/* Sets *ret to the bytes that the database has after its log is copied into it. */
bool db_data_bytes(struct db *db, uint64_t *ret, struct err *err);

/* Sets whether a commit waits until its log is synced. Must not be called within a transaction. */
bool db_sync_commits(struct db *db, bool sync, struct err *err);

/* Limits the size that the log file keeps after it was copied into the database. No commit copies
 * the log by itself: the bytes of profiles have to be synced first. */
void db_limit_log(struct db *db, uint64_t bytes);

enum db_copy {
    DB_COPY_ONLY,     /* the log file keeps its size, and nobody waits */
    DB_COPY_AND_CUT,  /* the log file is emptied as well, unless another connection uses it */
    DB_COPY_AND_WAIT, /* the log file is emptied after waiting for the other connections */
};
/* Copies the committed pages from the log into the database. */
bool db_copy_log(struct db *db, enum db_copy mode, struct err *err);

/* Sets db->fault to DB_DAMAGED, and err: `damaged: <what>`. Returns false. */
bool db_damaged(struct db *db, const char *what, struct err *err);

#endif

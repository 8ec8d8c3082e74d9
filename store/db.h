/* One database file: its connection, its statements, and what is wrong with it.
 *
 *     sets      what profiles have in common: labels as put, and sample types
 *     series    a set with the labels of some of its samples; columns: those whose sum was not 0
 *     profiles  one row each, with the list of its series
 *     points    by series and time, the sums of each profile
 *     bodies    the bytes of profiles that are not merged, by profile
 *     merges    the bytes of those that are
 *     state     one row: how many profiles, from when to when
 *
 * A file carries an application id and a version, and exactly this schema; another one is foreign.
 * A connection belongs to one thread at a time.
 */
#ifndef PROFPULL_STORE_DB_H
#define PROFPULL_STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define DB_APPLICATION_ID 0x70667073 /* "pfps" */
#define DB_VERSION 1

enum db_fault {
    DB_FINE,
    DB_DAMAGED,    /* pages or rows that cannot be right */
    DB_FOREIGN,    /* no database, or that of another program */
    DB_NEWER,      /* written by a later version */
    DB_UNREADABLE, /* the system fails to open or read it */
    DB_MISPLACED,  /* its profiles are of another time than its name */
    DB_COPY,       /* all of its profiles are in another file as well */
    DB_FAULTS
};
const char *db_fault_name(enum db_fault f); /* "damaged", ... */

enum db_statement {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
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
    SQL_ALL_SERIES,
    SQL_SET,
    SQL_POINTS,
    SQL_PROFILE,
    SQL_FIND_PROFILE,
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
    DB_STATEMENTS
};

struct db {
    sqlite3 *handle; /* NULL: closed */
    enum db_fault fault;
    bool still;     /* by db_open_still() */
    bool read_only; /* a statement has failed because the file cannot be written */
    bool full;      /* a statement has failed because the disk is full */
    bool syncs;     /* see db_sync_commits() */
    uint64_t page_bytes;
    sqlite3_stmt *statements[DB_STATEMENTS]; /* made on first use */
};

/* Opens a file of ours; with make, makes it if it is not there or empty. *ret_empty says that it
 * has no schema (only without make): nothing can be read from it. False with err; db->fault says
 * whether the file is to blame. */
bool db_open(struct db *db, const char *path, bool make, bool *ret_empty, struct err *err);
/* Opens a database that nobody writes, for reading, where SQLite cannot make the files that it
 * needs beside one: in a directory or on a disk that cannot be written. False if there is a log
 * beside it, which would be missed. *ret_empty as above. */
bool db_open_still(struct db *db, const char *path, bool *ret_empty, struct err *err);
void db_close(struct db *db); /* an already closed one too */
/* Returns true if SQLite has opened it for reading only, because the file cannot be written. */
bool db_is_read_only(const struct db *db);

/* A statement without parameters, ready to be bound; NULL with err. */
sqlite3_stmt *db_statement(struct db *db, enum db_statement s, struct err *err);
/* Runs it to its next row: 1 a row, 0 the end (and it is reset), -1 err (and it is reset). */
int db_step(struct db *db, sqlite3_stmt *st, struct err *err);
/* Runs a statement that has no parameters and no rows. */
bool db_run(struct db *db, enum db_statement s, struct err *err);

/* The statement with one parameter, at the row that has this key; NULL with err. That there is none
 * is damage, which `missing` words. */
sqlite3_stmt *db_row_of(struct db *db, enum db_statement s, int64_t key, const char *missing,
                        struct err *err);

/* Binds a view, which must live until the statement is reset. */
void db_bind_blob(sqlite3_stmt *st, int i, struct sv v);
/* Valid until the next step. */
struct sv db_blob(sqlite3_stmt *st, int i);

/* Bytes that the database takes when its log has been copied into it. */
bool db_data_bytes(struct db *db, uint64_t *ret, struct err *err);

/* Sets whether a commit waits until its log is synced. Not within a transaction. */
bool db_sync_commits(struct db *db, bool sync, struct err *err);

/* Sets how large the log may become before a commit copies it into the database. */
void db_limit_log(struct db *db, uint64_t bytes);

enum db_copy {
    DB_COPY_ONLY,     /* the log file keeps its size; nobody waits */
    DB_COPY_AND_CUT,  /* the log file is emptied as well, unless another connection uses it */
    DB_COPY_AND_WAIT, /* the same, after waiting for the other connections */
};
/* Copies what was committed from the log into the database. */
bool db_copy_log(struct db *db, enum db_copy mode, struct err *err);

/* Sets db->fault to DB_DAMAGED, and err: `damaged: <what>`. Returns false. */
bool db_damaged(struct db *db, const char *what, struct err *err);

#endif

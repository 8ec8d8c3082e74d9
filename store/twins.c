/* Finds the same profile in another file of its time. A stretch has several files if its first one
 * is large or has a fault; files of other lengths overlap it if `store.stretch` was changed. */
#include "store/private.h"

/* Reads the row that a statement with bound parameters finds. Returns false on failure. */
static bool find_row(struct db *db, sqlite3_stmt *st, int64_t *ret_row, bool *ret_found,
                     struct err *err)
{
    int row = db_step(db, st, err);
    *ret_found = row == 1;
    if (row == 1) {
        *ret_row = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
    }
    return row >= 0;
}

static bool find_set(struct db *db, const struct store_twin *t, int64_t *ret, bool *ret_found,
                     struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_FIND_SET, err);
    if (st == NULL) {
        return false;
    }
    db_bind_blob(st, 1, t->set);
    return find_row(db, st, ret, ret_found, err);
}

static bool find_series(struct db *db, const struct store_twin *t, int64_t set, int64_t *ret,
                        bool *ret_found, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_FIND_SERIES, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, set);
    db_bind_blob(st, 2, t->labels);
    return find_row(db, st, ret, ret_found, err);
}

static bool find_point(struct db *db, const struct store_twin *t, int64_t series, int64_t *ret,
                       bool *ret_found, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_FIND_POINT, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, series);
    sqlite3_bind_int64(st, 2, t->time_ns);
    sqlite3_bind_int64(st, 3, (int64_t)t->hash);
    return find_row(db, st, ret, ret_found, err);
}

static bool is_in_db(struct db *db, const struct store_twin *t, int64_t *ret_profile,
                     struct err *err)
{
    bool found = false;
    int64_t row = 0;
    return find_set(db, t, &row, &found, err) && found &&
           find_series(db, t, row, &row, &found, err) && found &&
           find_point(db, t, row, ret_profile, &found, err) && found;
}

/* Returns true if a file has the profile. A file that cannot be read has none; its fault is handled
 * as for any other reader. */
static bool is_in(struct store *s, struct store_file *f, const struct store_twin *t,
                  int64_t *ret_profile)
{
    struct err err = ERR_INIT;
    bool skip;
    struct db *db = store_writers_db(s, f);
    if (db != NULL) {
        return is_in_db(db, t, ret_profile, &err);
    }
    struct reader_conn *c = store_reader_take(s, f, &skip, &err);
    if (c == NULL) {
        return false;
    }
    bool found = is_in_db(&c->db, t, ret_profile, &err);
    store_reader_give(s, c, &err);
    return found;
}

bool store_find_twin(struct store *s, const struct store_twin *t, const struct store_file *except,
                     int64_t *ret_profile)
{
    struct store_file *files[STORE_FILES_OF_A_TIME_MAX];
    size_t n = store_files_at(s, t->time_ns, except, files);
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        found = found || is_in(s, files[i], t, ret_profile);
        store_file_unref(files[i]);
    }
    return found;
}

/* Seals files: then a stretch is one database, which changes only if late profiles arrive.
 *
 * The bytes of the profiles that are not merged are copied from the data file into the database.
 * The last transaction says that no profile is in the data file any more. It is synced, and only
 * then is the data file removed: a crash in between leaves a data file that nothing refers to,
 * which the next pass removes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/data.h"
#include "store/merging.h"

/* Profiles, and bytes, that one transaction copies. */
#define COPY_MAX 4096
#define COPY_BYTES ((int64_t)8 * 1024 * 1024)

/* Lists profiles after one whose bytes are in the data file. *ret_n is at most COPY_MAX. */
static bool list_placed(struct merging *m, int64_t after, struct db_body *ret, size_t *ret_n,
                        struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_PLACED, err);
    int64_t bytes = 0;
    int row = st == NULL ? -1 : 0;
    *ret_n = 0;
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, after);
    sqlite3_bind_int64(st, 2, COPY_MAX);
    while (*ret_n < COPY_MAX && bytes < COPY_BYTES && (row = db_step(&m->db, st, err)) == 1) {
        ret[*ret_n] = (struct db_body){sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                                       sqlite3_column_int64(st, 2)};
        bytes += ret[*ret_n].size;
        ++*ret_n;
    }
    sqlite3_reset(st);
    return row >= 0;
}

static bool copy_body(struct merging *m, const struct db_body *b, struct err *err)
{
    struct sv data;
    sqlite3_stmt *st = db_statement(&m->db, SQL_ADD_BODY, err);
    if (st == NULL || !db_body(&m->db, b, &data, err)) {
        return false;
    }
    sqlite3_bind_int64(st, 1, b->profile);
    db_bind_blob(st, 2, data);
    int row = db_step(&m->db, st, err);
    (void)sqlite3_clear_bindings(st);
    st = row == 0 ? db_statement(&m->db, SQL_UNPLACE, err) : NULL;
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, b->profile);
    return db_step(&m->db, st, err) == 0;
}

static bool write_bodies(struct merging *m, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < m->n_placed; i++) {
        ok = copy_body(m, &m->placed[i], err);
    }
    return ok;
}

/* Copies all bodies. False with err, or because the store closes. */
static bool copy_bodies(struct merging *m, struct err *err)
{
    int64_t after = 0;
    do {
        if (!list_placed(m, after, m->placed, &m->n_placed, err)) {
            return false;
        }
        if (m->n_placed > 0) {
            after = m->placed[m->n_placed - 1].profile;
            if (!merging_transaction(m, write_bodies, NULL, err) || !merging_rest(m)) {
                return false;
            }
        }
    } while (m->n_placed > 0);
    return true;
}

/* Returns true if the tables have all profiles of the data file. */
static bool is_complete(struct merging *m, bool *ret, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_STATE, err);
    size_t n = 0;
    if (st == NULL || db_step(&m->db, st, err) != 1) {
        return false;
    }
    int64_t indexed = sqlite3_column_int64(st, 5);
    sqlite3_reset(st);
    pthread_mutex_lock(&m->store->lock);
    *ret = !m->file->unindexed && !m->file->pending;
    pthread_mutex_unlock(&m->store->lock);
    *ret = *ret && (indexed == DB_SEALED || (uint64_t)indexed == store_file_data_size(m->file));
    if (*ret && !list_placed(m, 0, m->placed, &n, err)) {
        return false;
    }
    *ret = *ret && n == 0;
    return true;
}

/* Runs while nothing is put into the file and no scan reads it. If a profile was put since the
 * bodies were copied, the file is not sealed. */
static bool write_seal(struct merging *m, struct err *err)
{
    bool complete = false;
    if (store_is_writing_locked(m->store, m->file)) {
        return true;
    }
    if (!is_complete(m, &complete, err)) {
        return false;
    }
    m->sealed = complete; /* see remove_data() */
    return !complete || db_run(&m->db, SQL_NOTE_SEALED, err);
}

/* Removes the data file, to which nothing refers. Its readers are closed, so that none of them
 * reads it in place of a later one of the same name. The file counts as sealed when its log is
 * empty as well; otherwise the next pass tries again. */
static bool remove_data(struct merging *m, struct err *err)
{
    char name[4096];
    if (!m->sealed) {
        return true;
    }
    (void)snprintf(name, sizeof(name), "%s" DATA_SUFFIX, m->file->path);
    store_readers_close(m->store, m->file);
    if (unlink(name) != 0 && errno != ENOENT) {
        return err_sys(err, "cannot remove %s", name);
    }
    (void)db_copy_log(&m->db, DB_COPY_AND_CUT, NULL);
    store_log_note(m->store, m->file);
    pthread_mutex_lock(&m->store->lock);
    m->file->sealed = m->file->log_bytes == 0;
    pthread_mutex_unlock(&m->store->lock);
    return true;
}

bool sealing_seal(struct merging *m, struct err *err)
{
    if (m->db.version == 1 || store_is_writing(m->store, m->file)) {
        return true;
    }
    m->placed = calloc(COPY_MAX, sizeof(m->placed[0]));
    if (m->placed == NULL) {
        return err_memory(err);
    }
    bool ok = copy_bodies(m, err) && db_sync_commits(&m->db, true, err) &&
              merging_transaction(m, write_seal, remove_data, err);
    (void)db_sync_commits(&m->db, false, NULL);
    free(m->placed);
    m->placed = NULL;
    return ok;
}

/* The data file when a file is opened for writing: the tables may lack its last records, or have
 * rows of profiles that it has lost. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/blob.h"
#include "store/rows.h"

/* The state that the tables record. */
struct state {
    uint64_t profiles;
    int64_t oldest_ns;
    int64_t newest_ns;
    uint64_t singles;
    uint64_t salt;
    int64_t indexed;
};

static bool read_state(struct writing *w, struct state *ret, struct err *err)
{
    sqlite3_stmt *st = db_statement(&w->db, SQL_STATE, err);
    int row = st == NULL ? -1 : db_step(&w->db, st, err);
    if (row != 1) {
        return row == 0 && db_damaged(&w->db, "no state", err);
    }
    *ret = (struct state){.profiles = (uint64_t)sqlite3_column_int64(st, 0),
                          .oldest_ns = sqlite3_column_int64(st, 1),
                          .newest_ns = sqlite3_column_int64(st, 2),
                          .singles = (uint64_t)sqlite3_column_int64(st, 3),
                          .salt = (uint64_t)sqlite3_column_int64(st, 4),
                          .indexed = sqlite3_column_int64(st, 5)};
    sqlite3_reset(st);
    return ret->indexed == DB_SEALED || ret->indexed >= DATA_HEADER_BYTES ||
           db_damaged(&w->db, "the state of the data file", err);
}

/* ---- the header ------------------------------------------------------------------------------ */

static bool write_header(struct writing *w, struct err *err)
{
    char header[DATA_HEADER_BYTES];
    data_put_header(w->salt, header);
    if (pwrite(w->data_fd, header, sizeof(header), 0) == (ssize_t)sizeof(header)) {
        return true;
    }
    w->db.full = errno == ENOSPC || errno == EDQUOT;
    return err_sys(err, "cannot write to %s" DATA_SUFFIX, w->file->path);
}

/* Begins an empty data file. */
static bool start_data(struct writing *w, struct err *err)
{
    struct rng rng;
    rng_seed_random(&rng);
    w->salt = rng_next(&rng);
    w->data_end = DATA_HEADER_BYTES;
    if (ftruncate(w->data_fd, 0) != 0) {
        return err_sys(err, "cannot write to %s" DATA_SUFFIX, w->file->path);
    }
    return write_header(w, err);
}

/* Returns true if the data file begins with a record that has this salt: then only its header is
 * damaged. */
static bool begins_with_record(struct writing *w, uint64_t salt, int64_t size)
{
    struct data_walk walk;
    struct data_facts facts;
    struct sv body;
    int64_t place;
    data_walk_init(&walk, w->data_fd, salt, DATA_HEADER_BYTES, size);
    bool found = data_walk_next(&walk, &facts, &body, &place, NULL) == 1;
    data_walk_done(&walk);
    return found;
}

static bool is_foreign(struct writing *w, const char *why, struct err *err)
{
    w->db.fault = DB_DAMAGED;
    return err_set(err, ERR_INPUT, "%s", why);
}

/* Reads the salt of the data file, and decides from where on its records are put into the tables.
 */
static bool read_salt(struct writing *w, const struct state *st, int64_t size, int64_t *ret_from,
                      struct err *err)
{
    char header[DATA_HEADER_BYTES];
    *ret_from = st->indexed;
    if (pread(w->data_fd, header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
        return err_sys(err, "cannot read %s" DATA_SUFFIX, w->file->path);
    }
    if (!data_read_header(header, &w->salt)) {
        if (st->indexed < 0 || !begins_with_record(w, st->salt, size)) {
            return is_foreign(w, "its data file is damaged, or of another program", err);
        }
        w->salt = st->salt;
        return write_header(w, err);
    }
    if (w->salt != st->salt && st->indexed >= 0) {
        return is_foreign(w, "its data file belongs to another database", err);
    }
    if (st->indexed < 0) {
        *ret_from = w->salt == st->salt ? DB_SEALED : DATA_HEADER_BYTES;
    }
    return true;
}

/* ---- rows of lost profiles ------------------------------------------------------------------- */

struct lost_row {
    int64_t profile;
    int64_t time_ns;
    int64_t hash;
    int64_t merge;
    int64_t series[STORE_PARTS_MAX];
    size_t n_series;
};

/* Reads the first row after one whose bytes are not within the data file. Returns 1, 0 or -1. */
static int next_lost(struct db *db, int64_t size, int64_t after, struct lost_row *ret,
                     struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_LOST, err);
    if (st == NULL) {
        return -1;
    }
    sqlite3_bind_int64(st, 1, size);
    sqlite3_bind_int64(st, 2, after);
    int row = db_step(db, st, err);
    if (row == 1) {
        ret->profile = sqlite3_column_int64(st, 0);
        ret->time_ns = sqlite3_column_int64(st, 1);
        ret->hash = sqlite3_column_int64(st, 2);
        ret->merge = sqlite3_column_int64(st, 3);
        row = blob_read_ids(db_blob(st, 4), ret->series, &ret->n_series)
                  ? 1
                  : (db_damaged(db, "the series of a profile", err), -1);
        sqlite3_reset(st);
    }
    return row;
}

static bool drop_row(struct db *db, const struct lost_row *row, struct err *err)
{
    if (!rows_drop_points(db, row->series, row->n_series, row->time_ns, row->hash, err)) {
        return false;
    }
    sqlite3_stmt *st = db_statement(db, SQL_DROP_PROFILE, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, row->profile);
    return db_step(db, st, err) == 0;
}

/* Removes the rows of the profiles that the data file, which has so many bytes, has lost. Within a
 * transaction. */
static bool drop_lost(struct writing *w, int64_t size, struct state *state, struct err *err)
{
    struct lost_row row = {.profile = 0};
    uint64_t n = 0;
    uint64_t singles = 0;
    int more;
    while ((more = next_lost(&w->db, size, row.profile, &row, err)) == 1) {
        if (!drop_row(&w->db, &row, err)) {
            return false;
        }
        n++;
        singles += row.merge == 0;
    }
    sqlite3_stmt *st = more == 0 ? db_statement(&w->db, SQL_NOTE_LOST, err) : NULL;
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, (int64_t)n);
    sqlite3_bind_int64(st, 2, (int64_t)singles);
    state->profiles -= n < state->profiles ? n : state->profiles;
    state->singles -= singles < state->singles ? singles : state->singles;
    return db_step(&w->db, st, err) == 0;
}

/* Reads where the bytes of the last profile in the data file end. */
static bool read_end(struct writing *w, int64_t *ret, struct err *err)
{
    sqlite3_stmt *st = db_statement(&w->db, SQL_DATA_END, err);
    if (st == NULL || db_step(&w->db, st, err) != 1) {
        return false;
    }
    *ret = sqlite3_column_int64(st, 0);
    *ret = *ret < DATA_HEADER_BYTES ? DATA_HEADER_BYTES : *ret;
    sqlite3_reset(st);
    return true;
}

/* ---- records that the tables lack ------------------------------------------------------------ */

static bool has_row(struct writing *w, const struct data_facts *facts, bool *ret, struct err *err)
{
    sqlite3_stmt *st = db_statement(&w->db, SQL_PROFILE, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, facts->profile);
    int row = db_step(&w->db, st, err);
    *ret = row == 1;
    if (row == 1) {
        sqlite3_reset(st);
    }
    return row >= 0;
}

/* Puts a record into the tables, unless they have its profile. */
static bool add_record(struct writing *w, struct data_facts *facts, struct sv body, int64_t place,
                       struct err *err)
{
    struct rows rows;
    int64_t profile;
    bool taken;
    if (!rows_find(w, facts, &rows, err) ||
        !rows_find_twin(w, facts, &rows, facts->time_ns, &profile, err) ||
        !has_row(w, facts, &taken, err)) {
        return false;
    }
    if (profile > 0) {
        return true;
    }
    facts->profile = taken ? 0 : facts->profile;
    if (!rows_add(w, facts, &rows, place, body.n, &profile, err)) {
        return false;
    }
    writing_note(&w->tail, facts->time_ns);
    return true;
}

static bool add_records(struct writing *w, int64_t from, int64_t size, struct err *err)
{
    struct data_walk walk;
    struct data_facts facts;
    struct sv body;
    int64_t place;
    int more = 0;
    bool ok = true;
    data_walk_init(&walk, w->data_fd, w->salt, from, size);
    while (ok && (more = data_walk_next(&walk, &facts, &body, &place, err)) == 1) {
        ok = add_record(w, &facts, body, place, err);
    }
    w->data_end = walk.at;
    data_walk_done(&walk);
    return ok && more == 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool open_data(struct writing *w, int64_t *ret_size, struct err *err)
{
    char name[4096];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%s" DATA_SUFFIX, w->file->path);
    w->data_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (w->data_fd < 0 || fstat(w->data_fd, &st) != 0) {
        return err_sys(err, "cannot open %s", name);
    }
    if (!S_ISREG(st.st_mode)) {
        return is_foreign(w, "its data file is no regular file", err);
    }
    w->data_inode = st.st_ino;
    *ret_size = st.st_size;
    return true;
}

/* Makes the tables and the data file agree, within a transaction. *ret_changed: the tables were
 * changed. */
static bool agree(struct writing *w, struct state *state, int64_t size, bool *ret_changed,
                  struct err *err)
{
    int64_t from = DB_SEALED;
    bool exists = size >= DATA_HEADER_BYTES;
    if (exists && !read_salt(w, state, size, &from, err)) {
        return false;
    }
    if (!exists || from == DB_SEALED) {
        /* The file is new, or was sealed; or its data file was removed. */
        *ret_changed = state->indexed >= 0;
        return start_data(w, err) && (!*ret_changed || drop_lost(w, 0, state, err));
    }
    if (size < from) {
        *ret_changed = true;
        return drop_lost(w, size, state, err) && read_end(w, &w->data_end, err);
    }
    *ret_changed = size > from;
    w->data_end = size;
    return size == from || add_records(w, from, size, err);
}

static void take_over(struct store *s, struct writing *w, const struct state *state)
{
    struct store_file *f = w->file;
    pthread_mutex_lock(&s->lock);
    f->profiles = state->profiles + w->tail.profiles;
    f->singles = state->singles + w->tail.profiles;
    f->oldest_ns = state->oldest_ns < w->tail.oldest_ns ? state->oldest_ns : w->tail.oldest_ns;
    f->newest_ns = state->newest_ns > w->tail.newest_ns ? state->newest_ns : w->tail.newest_ns;
    f->unindexed = false;
    f->sealed = false;
    w->committed = f->profiles;
    pthread_mutex_unlock(&s->lock);
}

bool tail_attach(struct store *s, struct writing *w, struct err *err)
{
    struct state state = {.indexed = DB_SEALED};
    int64_t size = 0;
    bool changed = false;
    w->tail = (struct writing_sum){.oldest_ns = INT64_MAX};
    w->tail_ms = clock_mono_ms();
    bool ok = open_data(w, &size, err) && db_run(&w->db, SQL_BEGIN, err);
    w->transaction = ok;
    ok = ok && read_state(w, &state, err) && agree(w, &state, size, &changed, err);
    /* A record that was not finished is overwritten, and must not be found after a shorter one. */
    if (ok && ftruncate(w->data_fd, (off_t)w->data_end) != 0) {
        ok = err_sys(err, "cannot write to %s" DATA_SUFFIX, w->file->path);
    }
    if (!ok) {
        if (w->db.fault == DB_DAMAGED || w->db.fault == DB_FOREIGN) {
            store_file_fault(s, w->file, w->db.fault, err->msg);
        }
        return false;
    }
    w->tail_start = w->data_end;
    take_over(s, w, &state);
    store_count_check(s, w->file);
    if (!changed) {
        w->transaction = false;
        return db_run(&w->db, SQL_ROLLBACK, err);
    }
    return writing_index(s, w, true, err);
}

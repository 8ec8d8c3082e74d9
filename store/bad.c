/* Profiles whose bytes have changed on the disk.
 *
 * The sums of such a profile are intact, but no flame graph can show it, so timelines leave it out
 * as well: at once, by a list in memory, and for good, when the background thread has removed its
 * points. */
#include <stdlib.h>

#include "store/blob.h"
#include "store/private.h"
#include "store/rows.h"

/* Limit of the list. If it is full, a further profile is noted when it is read again after the
 * background thread has removed entries. */
#define BAD_MAX 4096

static bool is_listed(const struct store *s, const struct store_file *f, int64_t profile)
{
    for (size_t i = 0; i < s->n_bad; i++) {
        if (s->bad[i].file == f && s->bad[i].profile == profile) {
            return true;
        }
    }
    return false;
}

static void note(struct store *s, struct store_file *f, int64_t profile)
{
    pthread_mutex_lock(&s->lock);
    if (s->bad == NULL) {
        s->bad = calloc(BAD_MAX, sizeof(s->bad[0]));
    }
    if (s->bad != NULL && s->n_bad < BAD_MAX && !is_listed(s, f, profile)) {
        s->bad[s->n_bad++] = (struct store_bad){store_file_ref(f), profile};
    }
    pthread_mutex_unlock(&s->lock);
}

void store_bad_note(struct store *s, struct store_file *f, struct db *db, int64_t profile,
                    int64_t merge)
{
    struct err err = ERR_INIT;
    sqlite3_stmt *st = merge > 0 ? db_statement(db, SQL_MEMBERS, &err) : NULL;
    if (st == NULL) {
        note(s, f, profile);
        return;
    }
    sqlite3_bind_int64(st, 1, merge);
    while (db_step(db, st, &err) == 1) {
        note(s, f, sqlite3_column_int64(st, 0));
    }
    sqlite3_reset(st);
}

void store_bad_found(struct store *s, struct store_file *f, struct db *db, int64_t profile,
                     int64_t merge, const char *id)
{
    static const char what[] = "a profile of the store has changed on the disk";
    metric_inc(s->metrics.bad_rows);
    if (id != NULL) {
        log_warn(s->options.log, what, LOG_STR("endpoint", s->options.name),
                 LOG_STR("file", f->path), LOG_STR("id", id));
    } else {
        log_warn(s->options.log, what, LOG_STR("endpoint", s->options.name),
                 LOG_STR("file", f->path));
    }
    store_bad_note(s, f, db, profile, merge);
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

bool store_bad_has(const int64_t *profiles, size_t n, int64_t profile)
{
    return n > 0 && bsearch(&profile, profiles, n, sizeof(profiles[0]), by_number) != NULL;
}

bool store_bad_of(struct store *s, const struct store_file *f, int64_t **ret, size_t *ret_n)
{
    size_t n = 0;
    *ret = NULL;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_bad; i++) {
        n += s->bad[i].file == f;
    }
    *ret_n = n;
    *ret = n > 0 ? calloc(n, sizeof(**ret)) : NULL;
    for (size_t i = 0, k = 0; *ret != NULL && i < s->n_bad; i++) {
        if (s->bad[i].file == f) {
            (*ret)[k++] = s->bad[i].profile;
        }
    }
    pthread_mutex_unlock(&s->lock);
    if (*ret != NULL) {
        qsort(*ret, n, sizeof(**ret), by_number);
    }
    return n == 0 || *ret != NULL;
}

void store_bad_forget(struct store *s, const struct store_file *f)
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_bad; i++) {
        if (f == NULL || s->bad[i].file == f) {
            store_file_unref(s->bad[i].file);
        } else {
            s->bad[n++] = s->bad[i];
        }
    }
    s->n_bad = n;
    pthread_mutex_unlock(&s->lock);
}

/* ---- removing points ------------------------------------------------------------------------- */

struct row {
    int64_t time_ns;
    int64_t hash;
    int64_t merge;
    struct db_body body;
    int64_t series[STORE_PARTS_MAX];
    size_t n_series;
};

static bool read_row(struct db *db, int64_t profile, struct row *ret, struct err *err)
{
    sqlite3_stmt *st = db_row_of(db, SQL_PROFILE, profile, "a profile is missing", err);
    if (st == NULL) {
        return false;
    }
    ret->time_ns = sqlite3_column_int64(st, 1);
    ret->hash = sqlite3_column_int64(st, 3);
    ret->merge = sqlite3_column_int64(st, 5);
    bool ok = blob_read_ids(db_blob(st, 6), ret->series, &ret->n_series);
    ret->body = (struct db_body){profile, sqlite3_column_int64(st, 7), sqlite3_column_int64(st, 8)};
    sqlite3_reset(st);
    return ok || db_damaged(db, "the series of a profile", err);
}

/* Reads the bytes once more: a fault of the memory or of a cable may have passed. *ret is true if
 * they are still wrong. */
static bool is_still_bad(struct db *db, const struct row *row, bool *ret, struct err *err)
{
    if (row->merge > 0) {
        sqlite3_stmt *st =
            db_row_of(db, SQL_MERGED_BODY, row->merge, "a merged profile is missing", err);
        if (st == NULL) {
            return false;
        }
        *ret = !store_hash_fits(db_blob(st, 6), (uint64_t)sqlite3_column_int64(st, 4));
        sqlite3_reset(st);
        return true;
    }
    struct sv data;
    if (!db_body(db, &row->body, &data, err)) {
        return false;
    }
    *ret = !store_hash_fits(data, (uint64_t)row->hash);
    db_body_done(db);
    return true;
}

static bool drop_all(struct db *db, const int64_t *profiles, size_t n, struct err *err)
{
    struct row *row = malloc(sizeof(*row));
    if (row == NULL) {
        return err_memory(err);
    }
    bool ok = db_run(db, SQL_BEGIN, err);
    for (size_t i = 0; ok && i < n; i++) {
        bool bad = false;
        ok = read_row(db, profiles[i], row, err) && is_still_bad(db, row, &bad, err) &&
             (!bad ||
              rows_drop_points(db, row->series, row->n_series, row->time_ns, row->hash, err));
    }
    ok = ok && db_run(db, SQL_COMMIT, err);
    if (!ok && !sqlite3_get_autocommit(db->handle)) {
        (void)db_run(db, SQL_ROLLBACK, NULL);
    }
    free(row);
    return ok;
}

static void drop_of_file(struct store *s, struct store_file *f)
{
    struct err err = ERR_INIT;
    int64_t *profiles;
    size_t n;
    bool skip;
    struct reader_conn *c =
        store_bad_of(s, f, &profiles, &n) ? store_reader_take(s, f, &skip, &err) : NULL;
    /* If the file cannot be written, its entries stay on the list until the process ends. */
    pthread_mutex_lock(&s->lock);
    bool frozen = f->frozen;
    pthread_mutex_unlock(&s->lock);
    bool writable = c != NULL && !frozen && !c->db.still && !db_is_read_only(&c->db);
    /* No other transaction of the file may be open. */
    pthread_mutex_lock(&s->write_lock);
    store_index_file_locked(s, f);
    bool done = c == NULL || (writable && drop_all(&c->db, profiles, n, &err));
    pthread_mutex_unlock(&s->write_lock);
    if (writable) {
        pthread_mutex_lock(&s->lock);
        f->sealed = false; /* until its log is empty again */
        pthread_mutex_unlock(&s->lock);
        store_log_note(s, f);
    }
    bool fault = c != NULL && c->db.fault != DB_FINE;
    if (c != NULL) {
        store_reader_give(s, c, &err);
    }
    if (done || fault) {
        store_bad_forget(s, f);
    }
    free(profiles);
}

void store_bad_drop(struct store *s)
{
    struct store_file **files;
    size_t n;
    pthread_mutex_lock(&s->lock);
    bool any = s->n_bad > 0;
    pthread_mutex_unlock(&s->lock);
    if (!any || !store_files_in(s, INT64_MIN, INT64_MAX, &files, &n, NULL)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t *profiles;
        size_t n_profiles;
        bool known = store_bad_of(s, files[i], &profiles, &n_profiles);
        free(profiles);
        pthread_mutex_lock(&s->lock);
        known = known && !files[i]->frozen;
        pthread_mutex_unlock(&s->lock);
        if (known && n_profiles > 0) {
            drop_of_file(s, files[i]);
        }
    }
    store_files_free(files, n);
}

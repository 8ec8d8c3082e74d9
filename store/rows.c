#include "store/rows.h"

#include <stdlib.h>

#include "store/blob.h"

/* ---- sets and series ------------------------------------------------------------------------- */

static bool find_set(struct writing *w, struct sv blob, int64_t *ret, struct err *err)
{
    void *known = map_get(w->sets, blob);
    if (known != NULL) {
        *ret = (int64_t)(uintptr_t)known;
        return true;
    }
    sqlite3_stmt *st = db_statement(&w->db, SQL_FIND_SET, err);
    if (st == NULL) {
        return false;
    }
    db_bind_blob(st, 1, blob);
    int row = db_step(&w->db, st, err);
    if (row == 1) {
        *ret = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
    } else if (row == 0) {
        st = db_statement(&w->db, SQL_ADD_SET, err);
        if (st == NULL) {
            return false;
        }
        db_bind_blob(st, 1, blob);
        row = db_step(&w->db, st, err);
        *ret = sqlite3_last_insert_rowid(w->db.handle);
    }
    return row >= 0 && (map_put(w->sets, blob, (void *)(uintptr_t)*ret, NULL) || err_memory(err));
}

static bool find_series(struct writing *w, int64_t set, struct sv labels, uint64_t columns,
                        struct known_series *ret, struct err *err)
{
    struct db *db = &w->db;
    sqlite3_stmt *st = db_statement(db, SQL_FIND_SERIES, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, set);
    db_bind_blob(st, 2, labels);
    int row = db_step(db, st, err);
    if (row == 1) {
        *ret = (struct known_series){sqlite3_column_int64(st, 0),
                                     (uint64_t)sqlite3_column_int64(st, 1)};
        sqlite3_reset(st);
    } else if (row == 0) {
        st = db_statement(db, SQL_ADD_SERIES, err);
        if (st == NULL) {
            return false;
        }
        sqlite3_bind_int64(st, 1, set);
        db_bind_blob(st, 2, labels);
        sqlite3_bind_int64(st, 3, (int64_t)columns);
        row = db_step(db, st, err);
        *ret = (struct known_series){sqlite3_last_insert_rowid(db->handle), columns};
    }
    return row >= 0;
}

static bool note_columns(struct writing *w, struct known_series *k, uint64_t columns,
                         struct err *err)
{
    if ((k->columns | columns) == k->columns) {
        return true;
    }
    sqlite3_stmt *st = db_statement(&w->db, SQL_SET_COLUMNS, err);
    if (st == NULL) {
        return false;
    }
    k->columns |= columns;
    sqlite3_bind_int64(st, 1, k->row);
    sqlite3_bind_int64(st, 2, (int64_t)k->columns);
    return db_step(&w->db, st, err) == 0;
}

/* Finds or adds the row of the series of a part. */
static bool find_part(struct writing *w, int64_t set, const struct data_part *part,
                      size_t n_columns, int64_t *ret, struct err *err)
{
    uint64_t columns = 0;
    for (size_t c = 0; c < n_columns; c++) {
        columns |= (uint64_t)(part->sums[c] != 0) << c;
    }
    buf_clear(&w->blob);
    buf_append(&w->blob, &set, sizeof(set));
    if (!buf_append(&w->blob, part->labels.p, part->labels.n)) {
        return err_memory(err);
    }
    struct sv key = {w->blob.data, w->blob.len};
    struct known_series *known = map_get(w->series, key);
    if (known == NULL) {
        struct known_series found = {.row = 0};
        if (!find_series(w, set, part->labels, columns, &found, err)) {
            return false;
        }
        known = malloc(sizeof(*known));
        if (known == NULL || !map_put(w->series, key, known, NULL)) {
            free(known);
            return err_memory(err);
        }
        *known = found;
    }
    *ret = known->row;
    return note_columns(w, known, columns, err);
}

bool rows_find(struct writing *w, const struct data_facts *facts, struct rows *ret, struct err *err)
{
    struct sv rest = facts->parts;
    struct data_part part;
    if (!writing_make_known(w)) {
        return err_memory(err);
    }
    if (!find_set(w, facts->set, &ret->set, err)) {
        return false;
    }
    for (size_t i = 0; i < facts->n_parts; i++) {
        if (!data_next_part(facts, &rest, &part)) {
            return err_set(err, ERR_INPUT, "the facts of a profile are damaged");
        }
        if (!find_part(w, ret->set, &part, facts->n_columns, &ret->series[i], err)) {
            return false;
        }
    }
    return true;
}

bool rows_find_twin(struct writing *w, const struct data_facts *facts, const struct rows *rows,
                    int64_t time_ns, int64_t *ret_profile, struct err *err)
{
    *ret_profile = 0;
    if (facts->n_parts == 0) {
        return true;
    }
    sqlite3_stmt *st = db_statement(&w->db, SQL_FIND_POINT, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, rows->series[0]);
    sqlite3_bind_int64(st, 2, time_ns);
    sqlite3_bind_int64(st, 3, (int64_t)facts->hash);
    int row = db_step(&w->db, st, err);
    if (row == 1) {
        *ret_profile = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
    }
    return row >= 0;
}

/* ---- profiles -------------------------------------------------------------------------------- */

static bool add_profile(struct writing *w, const struct data_facts *facts, const struct rows *rows,
                        int64_t place, size_t size, struct err *err)
{
    struct db *db = &w->db;
    sqlite3_stmt *st = db_statement(db, SQL_ADD_PROFILE, err);
    buf_clear(&w->blob);
    if (st == NULL || !blob_put_ids(rows->series, facts->n_parts, &w->blob)) {
        return st != NULL && err_memory(err);
    }
    if (facts->profile > 0) {
        sqlite3_bind_int64(st, 1, facts->profile);
    } else {
        sqlite3_bind_null(st, 1);
    }
    sqlite3_bind_int64(st, 2, rows->set);
    sqlite3_bind_int64(st, 3, facts->time_ns);
    sqlite3_bind_int64(st, 4, facts->until_ns);
    sqlite3_bind_int64(st, 5, (int64_t)facts->hash);
    sqlite3_bind_int64(st, 6, facts->format);
    sqlite3_bind_int64(st, 7, (int64_t)size);
    sqlite3_bind_int64(st, 8, facts->mergeable ? 0 : -1);
    db_bind_blob(st, 9, (struct sv){w->blob.data, w->blob.len});
    sqlite3_bind_int64(st, 10, place);
    return db_step(db, st, err) == 0;
}

static bool add_points(struct writing *w, const struct data_facts *facts, const struct rows *rows,
                       int64_t profile, struct err *err)
{
    struct db *db = &w->db;
    sqlite3_stmt *st = db_statement(db, SQL_ADD_POINT, err);
    struct sv rest = facts->parts;
    struct data_part part;
    for (size_t i = 0; st != NULL && i < facts->n_parts && data_next_part(facts, &rest, &part);
         i++) {
        uint64_t of[] = {(uint64_t)rows->series[i], (uint64_t)facts->time_ns, facts->hash,
                         (uint64_t)profile};
        buf_clear(&w->blob);
        if (!blob_put_sums(part.sums, facts->n_columns, of, 4, &w->blob)) {
            return err_memory(err);
        }
        sqlite3_bind_int64(st, 1, rows->series[i]);
        sqlite3_bind_int64(st, 2, facts->time_ns);
        sqlite3_bind_int64(st, 3, (int64_t)facts->hash);
        sqlite3_bind_int64(st, 4, profile);
        db_bind_blob(st, 5, (struct sv){w->blob.data, w->blob.len});
        if (db_step(db, st, err) != 0) {
            return false;
        }
    }
    return st != NULL;
}

bool rows_add(struct writing *w, const struct data_facts *facts, const struct rows *rows,
              int64_t place, size_t size, int64_t *ret_profile, struct err *err)
{
    if (!add_profile(w, facts, rows, place, size, err)) {
        return false;
    }
    *ret_profile = sqlite3_last_insert_rowid(w->db.handle);
    if (*ret_profile > UINT32_MAX) {
        return err_set(err, ERR_LIMIT, "more than %u profiles", UINT32_MAX);
    }
    return add_points(w, facts, rows, *ret_profile, err);
}

bool rows_drop_points(struct db *db, const int64_t *series, size_t n_series, int64_t time_ns,
                      int64_t hash, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n_series; i++) {
        sqlite3_stmt *st = db_statement(db, SQL_DROP_POINT, err);
        if (st == NULL) {
            return false;
        }
        sqlite3_bind_int64(st, 1, series[i]);
        sqlite3_bind_int64(st, 2, time_ns);
        sqlite3_bind_int64(st, 3, hash);
        ok = db_step(db, st, err) == 0;
    }
    return ok;
}

#include "store/peering/slice.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

const char *slice_kind_name(enum slice_kind kind)
{
    static const char *const names[SLICE_KINDS] = {
        [SLICE_SERIES] = "series", [SLICE_POINTS] = "points", [SLICE_TIMED] = "timed",
        [SLICE_HEADS] = "heads",   [SLICE_BODIES] = "bodies", [SLICE_PROFILE] = "profile"};
    return names[kind];
}

bool slice_kind_find(struct sv name, enum slice_kind *ret)
{
    for (enum slice_kind k = 0; k < SLICE_KINDS; k++) {
        if (sv_eq_str(name, slice_kind_name(k))) {
            *ret = k;
            return true;
        }
    }
    return false;
}

/* ---- copying rows ---------------------------------------------------------------------------- */

/* The rows to copy: each has one or more numbers as parameters. Rows that the slice has are kept.
 */
enum copy { COPY_SET, COPY_SERIES, COPY_POINTS, COPY_PROFILE, COPY_MERGE, COPY_MERGE_HEAD, COPIES };

static const struct {
    const char *select;
    const char *select_v1; /* NULL: the same */
    const char *insert;
} copies[COPIES] = {
    [COPY_SET] = {"SELECT id, data FROM sets WHERE id = ?1", NULL,
                  "INSERT OR IGNORE INTO sets(id, data) VALUES(?1, ?2)"},
    [COPY_SERIES] = {"SELECT id, set_id, labels, columns FROM series WHERE set_id = ?1", NULL,
                     "INSERT OR IGNORE INTO series(id, set_id, labels, columns) "
                     "VALUES(?1, ?2, ?3, ?4)"},
    [COPY_POINTS] = {"SELECT series, time, hash, profile, sums FROM points WHERE series = ?1 AND "
                     "time BETWEEN ?2 AND ?3 ORDER BY time, hash",
                     NULL,
                     "INSERT OR IGNORE INTO points(series, time, hash, profile, sums) "
                     "VALUES(?1, ?2, ?3, ?4, ?5)"},
    [COPY_PROFILE] = {"SELECT id, set_id, time, until, hash, format, size, merge, series, place "
                      "FROM profiles WHERE id = ?1",
                      "SELECT id, set_id, time, until, hash, format, size, merge, series, -1 "
                      "FROM profiles WHERE id = ?1",
                      "INSERT OR IGNORE INTO profiles(id, set_id, time, until, hash, format, size, "
                      "merge, series, place) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, -1)"},
    [COPY_MERGE] = {"SELECT id, set_id, time, until, profile, hash, n, series, data FROM merges "
                    "WHERE id = ?1",
                    NULL,
                    "INSERT OR IGNORE INTO merges(id, set_id, time, until, profile, hash, n, "
                    "series, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
    [COPY_MERGE_HEAD] = {"SELECT id, set_id, time, until, profile, hash, n, series, x'' "
                         "FROM merges WHERE id = ?1",
                         NULL,
                         "INSERT OR IGNORE INTO merges(id, set_id, time, until, profile, hash, n, "
                         "series, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
};

struct slicing {
    struct db *from;
    struct db *slice;
    const struct slice_options *o;
    sqlite3_stmt *select[COPIES]; /* made on first use */
    sqlite3_stmt *insert[COPIES];
    const struct catalogue_row **wanted; /* of catalogue_by_set() */
    size_t n_wanted;
    struct map *merges; /* numbers of the merges that were copied */
};

static sqlite3_stmt *selecting(struct slicing *s, enum copy c, struct err *err)
{
    bool v1 = s->from->version == 1 && copies[c].select_v1 != NULL;
    if (s->select[c] == NULL) {
        s->select[c] = db_compile(s->from, v1 ? copies[c].select_v1 : copies[c].select, err);
    }
    return s->select[c];
}

/* Inserts the current row of a statement. The slice exceeds its limit if it has no room. */
static bool insert(struct slicing *s, enum copy c, sqlite3_stmt *row, struct err *err)
{
    struct err why = ERR_INIT;
    if (s->insert[c] == NULL) {
        s->insert[c] = db_compile(s->slice, copies[c].insert, err);
    }
    sqlite3_stmt *st = s->insert[c];
    if (st == NULL) {
        return false;
    }
    for (int i = 0; i < sqlite3_bind_parameter_count(st); i++) {
        (void)sqlite3_bind_value(st, i + 1, sqlite3_column_value(row, i));
    }
    int rc = db_step(s->slice, st, &why);
    (void)sqlite3_clear_bindings(st);
    if (rc < 0 && s->slice->full) {
        return err_set(err, ERR_LIMIT, "the profiles of one series take more than %llu bytes",
                       (unsigned long long)s->o->bytes_max);
    }
    return rc == 0 || err_set(err, why.kind, "%s", why.msg);
}

/* Copies the rows with a number. *ret_n, which may be NULL, counts those that the slice did not
 * have.
 */
static bool copy(struct slicing *s, enum copy c, int64_t id, size_t *ret_n, struct err *err)
{
    sqlite3_stmt *st = selecting(s, c, err);
    int row = -1;
    size_t n = 0;
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, id);
    while ((row = db_step(s->from, st, err)) == 1) {
        if (!insert(s, c, st, err)) {
            sqlite3_reset(st);
            return false;
        }
        n += (size_t)sqlite3_changes(s->slice->handle);
    }
    if (ret_n != NULL) {
        *ret_n = n;
    }
    return row == 0;
}

/* ---- profiles -------------------------------------------------------------------------------- */

static bool copy_body(struct slicing *s, const struct db_body *b, struct err *err)
{
    struct sv data;
    sqlite3_stmt *st = db_statement(s->slice, SQL_ADD_BODY, err);
    if (st == NULL || !db_body(s->from, b, &data, err)) {
        return false;
    }
    struct err why = ERR_INIT;
    sqlite3_bind_int64(st, 1, b->profile);
    db_bind_blob(st, 2, data);
    int row = db_step(s->slice, st, &why);
    (void)sqlite3_clear_bindings(st);
    db_body_done(s->from);
    if (row < 0 && s->slice->full) {
        return err_set(err, ERR_LIMIT, "the profiles of one series take more than %llu bytes",
                       (unsigned long long)s->o->bytes_max);
    }
    return row == 0 || err_set(err, why.kind, "%s", why.msg);
}

/* Copies a merge, and the row of its first profile, which gives it its id. */
static bool copy_merge(struct slicing *s, int64_t merge, struct err *err)
{
    struct sv key = {(const char *)&merge, sizeof(merge)};
    if (map_get(s->merges, key) != NULL) {
        return true;
    }
    sqlite3_stmt *st =
        db_row_of(s->from, SQL_MERGED_BODY, merge, "a merged profile is missing", err);
    if (st == NULL) {
        return false;
    }
    int64_t first = sqlite3_column_int64(st, 3);
    sqlite3_reset(st);
    return copy(s, s->o->kind == SLICE_HEADS ? COPY_MERGE_HEAD : COPY_MERGE, merge, NULL, err) &&
           copy(s, COPY_PROFILE, first, NULL, err) &&
           (map_put(s->merges, key, s, NULL) || err_memory(err));
}

/* Copies the row of a profile, and its bytes if the slice has them. A profile that several series
 * share is copied once. */
static bool copy_profile(struct slicing *s, int64_t profile, struct err *err)
{
    size_t n = 0;
    if (!copy(s, COPY_PROFILE, profile, &n, err)) {
        return false;
    }
    sqlite3_stmt *st = n > 0 && s->o->kind >= SLICE_HEADS
                           ? db_row_of(s->from, SQL_PROFILE, profile, "a profile is missing", err)
                           : NULL;
    if (st == NULL) {
        return n == 0 || s->o->kind < SLICE_HEADS;
    }
    int64_t merge = sqlite3_column_int64(st, 5);
    const struct db_body body = {profile, sqlite3_column_int64(st, 7), sqlite3_column_int64(st, 8)};
    sqlite3_reset(st);
    if (merge > 0) {
        return copy_merge(s, merge, err);
    }
    return s->o->kind == SLICE_HEADS || copy_body(s, &body, err);
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Reads which columns of a point are not 0. */
static bool read_columns(struct slicing *s, sqlite3_stmt *st, uint64_t *ret, struct err *err)
{
    uint64_t of[4];
    int64_t sums[SUMMARY_TYPES_MAX];
    size_t n;
    for (int i = 0; i < 4; i++) {
        of[i] = (uint64_t)sqlite3_column_int64(st, i);
    }
    if (!blob_read_sums(db_blob(st, 4), of, 4, sums, &n)) {
        return db_damaged(s->from, "the sums of a profile", err);
    }
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        *ret |= (uint64_t)(sums[i] != 0) << i;
    }
    return true;
}

/* Copies a point if the slice has it. *missing are the columns that have had no point yet, which
 * only the kind `series` uses. */
static bool take_point(struct slicing *s, sqlite3_stmt *st, uint64_t *missing, struct err *err)
{
    enum slice_kind kind = s->o->kind;
    int64_t profile = sqlite3_column_int64(st, 3);
    uint64_t columns = 0;
    bool is_all = kind == SLICE_POINTS || kind == SLICE_TIMED;
    if (store_bad_has(s->o->bad, s->o->n_bad, profile)) {
        return true;
    }
    if (!is_all && !read_columns(s, st, &columns, err)) {
        return false;
    }
    if (!is_all && (columns & *missing) == 0) {
        return true;
    }
    if (kind == SLICE_SERIES) {
        *missing &= ~columns;
    }
    return insert(s, COPY_POINTS, st, err) && (kind < SLICE_TIMED || copy_profile(s, profile, err));
}

static bool copy_points(struct slicing *s, const struct catalogue_row *w, struct err *err)
{
    sqlite3_stmt *st = selecting(s, COPY_POINTS, err);
    uint64_t missing = w->matched;
    int row = -1;
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, w->row);
    sqlite3_bind_int64(st, 2, s->o->from_ns);
    sqlite3_bind_int64(st, 3, s->o->until_ns);
    while (missing != 0 && (row = db_step(s->from, st, err)) == 1) {
        if (!take_point(s, st, &missing, err)) {
            row = -1;
            break;
        }
    }
    sqlite3_reset(st);
    return row >= 0;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Lists the matching rows of series after the set that the slice begins with. */
static bool list_wanted(struct slicing *s, struct err *err)
{
    const struct catalogue *c = s->o->catalogue;
    s->wanted = calloc(c->n_rows + 1, sizeof(void *));
    if (s->wanted == NULL) {
        return err_memory(err);
    }
    s->n_wanted = catalogue_by_set(c, s->o->after_set, s->wanted);
    return true;
}

/* Copies sets until the slice is large enough. */
static bool copy_sets(struct slicing *s, int64_t *ret_last, struct err *err)
{
    size_t i = 0;
    uint64_t bytes = 0;
    int64_t set = 0;
    while (i < s->n_wanted && bytes < s->o->bytes) {
        set = s->wanted[i]->set_id;
        if (!copy(s, COPY_SET, set, NULL, err) || !copy(s, COPY_SERIES, set, NULL, err)) {
            return false;
        }
        for (; i < s->n_wanted && s->wanted[i]->set_id == set; i++) {
            if (!copy_points(s, s->wanted[i], err)) {
                return false;
            }
        }
        if (!db_data_bytes(s->slice, &bytes, err)) {
            return false;
        }
    }
    *ret_last = i < s->n_wanted ? set : 0;
    return true;
}

/* Copies one profile with its set. A profile that the file does not have leaves the slice empty. */
static bool copy_one(struct slicing *s, struct err *err)
{
    sqlite3_stmt *st = db_statement(s->from, SQL_PROFILE, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, s->o->profile);
    int row = db_step(s->from, st, err);
    int64_t set = row == 1 ? sqlite3_column_int64(st, 0) : 0;
    bool fits = row == 1 &&
                store_id_fits(sqlite3_column_int64(st, 1), (uint64_t)sqlite3_column_int64(st, 3),
                              s->o->profile_ms, s->o->profile_hash);
    sqlite3_reset(st);
    return (row >= 0 && !fits) ||
           (row == 1 && copy(s, COPY_SET, set, NULL, err) && copy(s, COPY_SERIES, set, NULL, err) &&
            copy_profile(s, s->o->profile, err));
}

static void slicing_done(struct slicing *s)
{
    for (size_t i = 0; i < COPIES; i++) {
        sqlite3_finalize(s->select[i]);
        sqlite3_finalize(s->insert[i]);
    }
    free(s->wanted);
    map_free(s->merges, NULL);
}

bool slice_fill(struct db *from, const struct slice_options *o, struct db *slice, int64_t *ret_last,
                struct err *err)
{
    struct slicing s = {.from = from, .slice = slice, .o = o, .merges = map_new()};
    *ret_last = 0;
    bool ok = s.merges != NULL || err_memory(err);
    ok = ok && db_run(slice, SQL_BEGIN, err);
    if (ok && o->kind == SLICE_PROFILE) {
        ok = copy_one(&s, err);
    } else {
        ok = ok && list_wanted(&s, err) && copy_sets(&s, ret_last, err);
    }
    slicing_done(&s);
    return ok && db_run(slice, SQL_COMMIT, err);
}

/* Scans series, points and bodies, file by file.
 *
 * Points are read in pieces and bodies one by one, so that no statement stays open while a callback
 * runs for long. Therefore a scan never keeps the log of a file from being copied into it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/archive/archive.h"
#include "store/catalogue.h"

#define POINTS_PIECE 512

/* A scan, which visits one file after the other. */
struct scan {
    struct store *store;
    const struct store_range *range;
    struct catalogue catalogue;
    struct arena *index_arena; /* for the index of a file of the archive */
    bool stopped;              /* a callback has ended the scan */
    bool any;                  /* also visit files without a series that matches */
    /* The members below describe the file that is being visited. */
    struct store_file *file;
    uint64_t file_number;
    struct db *db;
    int64_t *bad; /* profiles of the file whose bytes have changed: they are not counted */
    size_t n_bad;
    bool (*visit_file)(struct scan *c, struct err *err);
    void *job; /* the argument of visit_file */
};

static int64_t range_from(const struct scan *c)
{
    int64_t from = c->range->from_ns;
    return from > 0 ? from : 0;
}

/* Visits a file of the archive whose index has a match. */
static bool visit_remote(struct scan *c, struct store_file *f, struct err *err)
{
    struct err why = ERR_INIT;
    bool skip;
    struct reader_conn *r = store_reader_take(c->store, f, &skip, &why);
    if (r == NULL) {
        partial_note(c->range->partial, "%s: %s", f->path, why.msg);
        return why.kind != ERR_MEMORY || err_memory(err);
    }
    c->db = &r->db;
    bool ok = c->visit_file(c, &why);
    if (!ok && r->db.fault == DB_FINE) {
        err_set(err, why.kind, "%s: %s", f->path, why.msg);
    } else if (!ok) {
        archive_read_failed(f, r->db.fault, &why);
        partial_note(c->range->partial, "%s: %s", f->path, why.msg);
        ok = true;
    }
    store_reader_give(c->store, r, &why);
    return ok;
}

/* Visits a file of the archive. If it cannot be read, it is skipped, and the answer is partial. */
static bool scan_remote(struct scan *c, struct store_file *f, struct err *err)
{
    struct err why = ERR_INIT;
    struct archive_index index;
    c->file = f;
    c->file_number++;
    arena_reset(c->index_arena);
    if (!archive_read_index(f, c->index_arena, &index, &why)) {
        partial_note(c->range->partial, "%s: %s", f->path, why.msg);
        return why.kind != ERR_MEMORY || err_memory(err);
    }
    if (!catalogue_read_index(&c->catalogue, &index, &why)) {
        if (why.kind != ERR_INPUT) {
            return err_set(err, why.kind, "%s: %s", f->path, why.msg);
        }
        archive_read_failed(f, DB_DAMAGED, &why);
        partial_note(c->range->partial, "%s: %s", f->path, why.msg);
        return true;
    }
    return (c->catalogue.n_matches == 0 && !c->any) || visit_remote(c, f, err);
}

/* Returns the file of the archive that replaces one that was removed from the disk, with a
 * reference; NULL if there is none. */
static struct store_file *twin_of(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    struct store_file *twin = f->gone && f->twin != NULL ? store_file_ref(f->twin) : NULL;
    pthread_mutex_unlock(&s->lock);
    return twin;
}

/* Visits a file. If the file turns out to be damaged, it is skipped, and the scan continues. */
static bool scan_local(struct scan *c, struct store_file *f, struct err *err)
{
    struct err why = ERR_INIT;
    bool skip;
    store_index_file(c->store, f);
    store_scan_begin(c->store, f);
    struct reader_conn *r = store_reader_take(c->store, f, &skip, err);
    bool ok = r != NULL || skip;
    if (r != NULL) {
        c->file = f;
        c->file_number++;
        c->db = &r->db;
        ok = (store_bad_of(c->store, f, &c->bad, &c->n_bad) || err_memory(&why)) &&
             catalogue_read(&c->catalogue, c->db, &why) &&
             ((c->catalogue.n_matches == 0 && !c->any) || c->visit_file(c, &why));
        if (!ok && r->db.fault == DB_FINE) {
            err_set(err, why.kind, "%s: %s", f->path, why.msg);
        }
        ok = ok || r->db.fault != DB_FINE;
        store_reader_give(c->store, r, &why);
        free(c->bad);
        c->bad = NULL;
    }
    store_scan_end(c->store, f);
    struct store_file *twin = r == NULL && skip && ok ? twin_of(c->store, f) : NULL;
    if (twin != NULL) {
        ok = scan_remote(c, twin, err);
        store_file_unref(twin);
    }
    return ok;
}

static bool scan_file(struct scan *c, struct store_file *f, struct err *err)
{
    return f->object != NULL ? scan_remote(c, f, err) : scan_local(c, f, err);
}

/* Gets ready to read the archive. */
static bool prepare(struct scan *c, struct store_file *const *files, size_t n, struct err *err)
{
    struct err why = ERR_INIT;
    if (c->store->archive == NULL) {
        return true;
    }
    if (archive_is_partial(c->store->archive, &why)) {
        partial_note(c->range->partial, "%s", why.msg);
    }
    archive_prepare(c->store->archive, files, n);
    c->index_arena = arena_new(ARCHIVE_INDEX_ARENA_MAX);
    return c->index_arena != NULL || err_memory(err);
}

static bool scan_files(struct scan *c, bool backwards, struct err *err)
{
    struct store_file **files;
    size_t n;
    if (!store_files_to_read(c->store, range_from(c), c->range->until_ns, &files, &n, err)) {
        return false;
    }
    bool ok = prepare(c, files, n, err);
    for (size_t i = 0; ok && i < n && !c->stopped; i++) {
        ok = scan_file(c, files[backwards ? n - 1 - i : i], err);
    }
    arena_free(c->index_arena);
    store_files_free(files, n);
    return ok;
}

static bool scan_run(struct scan *c, bool backwards, struct err *err)
{
    if (!catalogue_init(&c->catalogue, c->range->selector, err)) {
        return false;
    }
    bool ok = scan_files(c, backwards, err);
    catalogue_done(&c->catalogue);
    return ok;
}

/* ---- points ---------------------------------------------------------------------------------- */

struct raw_point {
    int64_t time_ns;
    int64_t until_ns; /* 0 unless the range is with_windows */
    uint64_t hash;
    int64_t profile;
    int64_t sums[SUMMARY_TYPES_MAX];
    size_t n_sums;
};

/* Reads the points of a series row piece by piece. */
struct piece {
    int64_t row;
    int64_t after_ns; /* the last point that was read */
    int64_t after_hash;
    struct raw_point *at; /* POINTS_PIECE elements */
    size_t n;
};

static bool read_point(struct scan *c, int64_t row, sqlite3_stmt *st, struct raw_point *p,
                       struct err *err)
{
    p->time_ns = sqlite3_column_int64(st, 0);
    p->hash = (uint64_t)sqlite3_column_int64(st, 1);
    p->profile = sqlite3_column_int64(st, 2);
    p->until_ns = c->range->with_windows ? sqlite3_column_int64(st, 4) : 0;
    uint64_t of[] = {(uint64_t)row, (uint64_t)p->time_ns, p->hash, (uint64_t)p->profile};
    if (!blob_read_sums(db_blob(st, 3), of, 4, p->sums, &p->n_sums)) {
        return db_damaged(c->db, "the sums of a profile", err);
    }
    if (store_bad_has(c->bad, c->n_bad, p->profile)) {
        p->n_sums = 0;
    }
    return true;
}

/* Reads the next points. At the end, p->n is 0. */
static bool next_piece(struct scan *c, struct piece *p, struct err *err)
{
    sqlite3_stmt *st =
        db_statement(c->db, c->range->with_windows ? SQL_TIMED_POINTS : SQL_POINTS, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, p->row);
    sqlite3_bind_int64(st, 2, p->after_ns);
    sqlite3_bind_int64(st, 3, p->after_hash);
    sqlite3_bind_int64(st, 4, c->range->until_ns);
    sqlite3_bind_int64(st, 5, POINTS_PIECE);
    int row = 0;
    p->n = 0;
    while (p->n < POINTS_PIECE && (row = db_step(c->db, st, err)) == 1) {
        if (!read_point(c, p->row, st, &p->at[p->n], err)) {
            row = -1;
            break;
        }
        p->after_ns = p->at[p->n].time_ns;
        p->after_hash = (int64_t)p->at[p->n].hash;
        p->n++;
    }
    sqlite3_reset(st);
    return row >= 0;
}

static bool piece_init(struct piece *p, struct err *err)
{
    *p = (struct piece){.at = malloc(POINTS_PIECE * sizeof(p->at[0]))};
    return p->at != NULL || err_memory(err);
}

static void piece_start(const struct scan *c, struct piece *p, int64_t row)
{
    p->row = row;
    p->after_ns = range_from(c) - 1;
    p->after_hash = INT64_MAX;
    p->n = 0;
}

static int64_t value_of(const struct raw_point *p, size_t column)
{
    return column < p->n_sums ? p->sums[column] : 0;
}

struct points_job {
    bool (*visit)(void *arg, const struct store_point *point);
    void *arg;
};

static bool visit_points(struct scan *c, const struct piece *p, const struct store_series *series)
{
    const struct points_job *job = c->job;
    const struct catalogue_row *row = catalogue_row(&c->catalogue, p->row);
    char id[STORE_ID_LENGTH + 1] = "";
    for (size_t i = 0; i < p->n && !c->stopped; i++) {
        const struct raw_point *raw = &p->at[i];
        struct store_point point = {.series = series,
                                    .time_ns = raw->time_ns,
                                    .until_ns = raw->until_ns,
                                    .value = value_of(raw, series->column),
                                    .id = id,
                                    .shared = row->shared,
                                    .file = c->file_number};
        if (raw->n_sums == 0 || (point.value == 0 && !c->range->with_zeros)) {
            continue;
        }
        if (!c->range->without_ids) {
            store_id_format(raw->time_ns, raw->hash, raw->profile, id);
        }
        c->stopped = !job->visit(job->arg, &point);
    }
    return !c->stopped;
}

static bool points_of_file(struct scan *c, struct err *err)
{
    struct piece p;
    bool ok = piece_init(&p, err);
    for (size_t i = 0; ok && i < c->catalogue.n_matches && !c->stopped; i++) {
        const struct catalogue_match *m = &c->catalogue.matches[i];
        piece_start(c, &p, m->row);
        do {
            ok = next_piece(c, &p, err);
        } while (ok && visit_points(c, &p, m->series) && p.n == POINTS_PIECE);
    }
    free(p.at);
    return ok;
}

bool store_each_point(struct store *s, const struct store_range *range,
                      bool (*visit)(void *arg, const struct store_point *point), void *arg,
                      struct err *err)
{
    struct points_job job = {visit, arg};
    struct scan c = {.store = s, .range = range, .visit_file = points_of_file, .job = &job};
    return scan_run(&c, false, err);
}

/* ---- series ---------------------------------------------------------------------------------- */

struct series_job {
    /* One of the two. */
    bool (*visit)(void *arg, const struct store_series *series);
    bool (*visit_start)(void *arg, const struct store_series *series, int64_t time_ns);
    void *arg;
    struct map *seen; /* ids of the series that were visited */
};

/* Finds the first point of a column that is not 0, and its time. */
static bool has_point(struct scan *c, struct piece *p, size_t column, bool *ret, int64_t *ret_ns,
                      struct err *err)
{
    do {
        if (!next_piece(c, p, err)) {
            return false;
        }
        for (size_t i = 0; i < p->n && !*ret; i++) {
            *ret = value_of(&p->at[i], column) != 0;
            *ret_ns = p->at[i].time_ns;
        }
    } while (!*ret && p->n == POINTS_PIECE);
    return true;
}

/* Returns true if the range covers all profiles of the file. */
static bool is_within(const struct scan *c)
{
    pthread_mutex_lock(&c->store->lock);
    bool within =
        c->range->from_ns <= c->file->oldest_ns && c->range->until_ns >= c->file->newest_ns;
    pthread_mutex_unlock(&c->store->lock);
    return within;
}

static bool visit_series(struct scan *c, const struct store_series *series, int64_t time_ns,
                         struct err *err)
{
    struct series_job *job = c->job;
    struct sv key = {(const char *)&series->id, sizeof(series->id)};
    if (!map_put(job->seen, key, (void *)(uintptr_t)1, NULL)) {
        return err_memory(err);
    }
    c->stopped = job->visit != NULL ? !job->visit(job->arg, series)
                                    : !job->visit_start(job->arg, series, time_ns);
    return true;
}

static bool series_of_file(struct scan *c, struct err *err)
{
    struct series_job *job = c->job;
    struct piece p;
    bool within = job->visit != NULL && is_within(c);
    bool ok = piece_init(&p, err);
    for (size_t i = 0; ok && i < c->catalogue.n_matches && !c->stopped; i++) {
        const struct catalogue_match *m = &c->catalogue.matches[i];
        struct sv key = {(const char *)&m->series->id, sizeof(m->series->id)};
        bool found = within;
        int64_t time_ns = 0;
        if (map_get(job->seen, key) != NULL) {
            continue;
        }
        piece_start(c, &p, m->row);
        ok = found || has_point(c, &p, m->series->column, &found, &time_ns, err);
        ok = ok && (!found || visit_series(c, m->series, time_ns, err));
    }
    free(p.at);
    return ok;
}

static bool scan_series(struct store *s, const struct store_range *range, struct series_job *job,
                        struct err *err)
{
    struct scan c = {.store = s, .range = range, .visit_file = series_of_file, .job = job};
    job->seen = map_new();
    bool ok = job->seen != NULL ? scan_run(&c, false, err) : err_memory(err);
    map_free(job->seen, NULL);
    return ok;
}

bool store_each_series(struct store *s, const struct store_range *range,
                       bool (*visit)(void *arg, const struct store_series *series), void *arg,
                       struct err *err)
{
    struct series_job job = {.visit = visit, .arg = arg};
    return scan_series(s, range, &job, err);
}

bool store_each_start(struct store *s, const struct store_range *range,
                      bool (*visit)(void *arg, const struct store_series *series, int64_t time_ns),
                      void *arg, struct err *err)
{
    struct series_job job = {.visit_start = visit, .arg = arg};
    return scan_series(s, range, &job, err);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* A profile to visit. */
struct found {
    int64_t time_ns;
    int64_t profile;
    int64_t series; /* the first series row that leads to the profile */
};

struct bodies_job {
    const struct store_scan *scan;
    bool (*visit)(void *arg, const struct store_body *body);
    void *arg;
    size_t visited;
    int64_t names_until_ms; /* see struct store_body; 0: no names are wanted */
    /* The members below describe the file that is being visited. */
    struct found *found;
    size_t n_found;
    size_t cap;
    struct map *merges; /* the merges that were visited already */
    struct arena *arena;
    int64_t set_id; /* the set that was read last; 0: none */
    struct set set;
    const struct store_series **series;
};

static bool add_found(struct bodies_job *job, const struct piece *p, uint64_t columns,
                      struct err *err)
{
    for (size_t i = 0; i < p->n; i++) {
        uint64_t has = 0;
        for (size_t k = 0; k < p->at[i].n_sums; k++) {
            has |= (uint64_t)(p->at[i].sums[k] != 0) << k;
        }
        if ((has & columns) == 0) {
            continue;
        }
        if (job->n_found == job->cap) {
            size_t cap = job->cap == 0 ? 256 : 2 * job->cap;
            struct found *found = reallocarray(job->found, cap, sizeof(found[0]));
            if (found == NULL) {
                return err_memory(err);
            }
            job->found = found;
            job->cap = cap;
        }
        job->found[job->n_found++] = (struct found){p->at[i].time_ns, p->at[i].profile, p->row};
    }
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct found *x = a;
    const struct found *y = b;
    if (x->time_ns != y->time_ns) {
        return x->time_ns < y->time_ns ? -1 : 1;
    }
    if (x->profile != y->profile) {
        return x->profile < y->profile ? -1 : 1;
    }
    return x->series < y->series ? -1 : x->series > y->series;
}

static int by_series(const void *a, const void *b)
{
    const struct found *x = a;
    const struct found *y = b;
    return x->series != y->series ? (x->series < y->series ? -1 : 1) : by_time(a, b);
}

/* Sorts the profiles in the order that the scan asks for, and removes duplicates. */
static void sort_found(struct bodies_job *job)
{
    size_t n = 0;
    if (job->n_found == 0) {
        return;
    }
    qsort(job->found, job->n_found, sizeof(job->found[0]), by_time);
    for (size_t i = 0; i < job->n_found; i++) {
        if (n == 0 || job->found[n - 1].profile != job->found[i].profile) {
            job->found[n++] = job->found[i];
        }
    }
    job->n_found = n;
    if (job->scan->by_series) {
        qsort(job->found, n, sizeof(job->found[0]), by_series);
    }
}

/* Lists the profiles of the file that have a matching series. */
static bool find_profiles(struct scan *c, struct bodies_job *job, struct err *err)
{
    struct piece p;
    bool ok = piece_init(&p, err);
    job->n_found = 0;
    for (size_t i = 0; ok && i < c->catalogue.n_rows; i++) {
        const struct catalogue_row *row = &c->catalogue.rows[i];
        piece_start(c, &p, row->row);
        while (ok && row->matched != 0) {
            ok = next_piece(c, &p, err) && add_found(job, &p, row->matched, err);
            if (p.n < POINTS_PIECE) {
                break;
            }
        }
    }
    free(p.at);
    sort_found(job);
    return ok;
}

/* A row of the table of profiles, or of the table of merges. */
struct body_row {
    int64_t set_id;
    int64_t from_ns;
    int64_t until_ns;
    int64_t merge;
    int64_t profile; /* the profile itself, or the first one of the merge */
    int64_t first_ns;
    uint64_t hash; /* hash of the bytes */
    uint64_t id_hash;
    enum profile_format format;
    struct db_body body; /* where the bytes of a single profile are */
    int64_t series[STORE_PARTS_MAX];
    size_t n_series;
};

static bool read_profile_row(struct scan *c, int64_t profile, struct body_row *r, bool *ret_found,
                             struct err *err)
{
    sqlite3_stmt *st = db_statement(c->db, SQL_PROFILE, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, profile);
    int row = db_step(c->db, st, err);
    *ret_found = row == 1;
    if (row != 1) {
        return row == 0;
    }
    r->set_id = sqlite3_column_int64(st, 0);
    r->first_ns = r->from_ns = sqlite3_column_int64(st, 1);
    r->until_ns = sqlite3_column_int64(st, 2);
    r->id_hash = r->hash = (uint64_t)sqlite3_column_int64(st, 3);
    r->format = sqlite3_column_int64(st, 4) == PROFILE_JFR ? PROFILE_JFR : PROFILE_PPROF;
    r->merge = sqlite3_column_int64(st, 5);
    r->profile = profile;
    bool ok = blob_read_ids(db_blob(st, 6), r->series, &r->n_series);
    r->body = (struct db_body){profile, sqlite3_column_int64(st, 7), sqlite3_column_int64(st, 8)};
    sqlite3_reset(st);
    return ok || db_damaged(c->db, "the series of a profile", err);
}

/* Reads the columns of a merge into r. Its statement stays open at the row, so that *ret_data is
 * valid. */
static sqlite3_stmt *open_merge(struct scan *c, struct body_row *r, struct sv *ret_data,
                                struct err *err)
{
    sqlite3_stmt *st =
        db_row_of(c->db, SQL_MERGED_BODY, r->merge, "a merged profile is missing", err);
    if (st == NULL) {
        return NULL;
    }
    int64_t merge = r->merge;
    struct body_row first;
    bool found;
    int64_t profile = sqlite3_column_int64(st, 3);
    if (!read_profile_row(c, profile, &first, &found, err) || !found ||
        !blob_read_ids(db_blob(st, 5), r->series, &r->n_series)) {
        if (c->db->fault == DB_FINE) {
            db_damaged(c->db, "a merged profile", err);
        }
        sqlite3_reset(st);
        return NULL;
    }
    r->merge = merge;
    r->set_id = sqlite3_column_int64(st, 0);
    r->from_ns = sqlite3_column_int64(st, 1);
    r->until_ns = sqlite3_column_int64(st, 2);
    r->profile = profile;
    r->first_ns = first.first_ns;
    r->id_hash = first.id_hash;
    r->hash = (uint64_t)sqlite3_column_int64(st, 4);
    *ret_data = db_blob(st, 6);
    return st;
}

static bool read_set(struct scan *c, struct bodies_job *job, int64_t set_id, struct err *err)
{
    if (job->set_id == set_id) {
        return true;
    }
    sqlite3_stmt *st = db_statement(c->db, SQL_SET, err);
    if (st == NULL) {
        return false;
    }
    arena_reset(job->arena);
    sqlite3_bind_int64(st, 1, set_id);
    int row = db_step(c->db, st, err);
    bool ok = row == 1 && blob_read_set(db_blob(st, 0), job->arena, &job->set);
    sqlite3_reset(st);
    job->set_id = ok ? set_id : 0;
    return ok || (row >= 0 && db_damaged(c->db, "the labels of a profile", err));
}

/* Gathers the matching series of a body, and sets body->whole. */
static bool gather_series(struct scan *c, struct bodies_job *job, const struct body_row *r,
                          struct store_body *body, struct err *err)
{
    const struct catalogue *k = &c->catalogue;
    uint64_t columns = 0;
    size_t n = 0;
    free(job->series);
    job->series = calloc(r->n_series * SUMMARY_TYPES_MAX + 1, sizeof(void *));
    if (job->series == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < r->n_series; i++) {
        const struct catalogue_row *row = catalogue_row(k, r->series[i]);
        columns |= row != NULL ? row->matched : 0;
        for (size_t m = catalogue_first_match(k, r->series[i]);
             m < k->n_matches && k->matches[m].row == r->series[i]; m++) {
            job->series[n++] = k->matches[m].series;
        }
    }
    body->whole = true;
    for (size_t i = 0; i < r->n_series; i++) {
        const struct catalogue_row *row = catalogue_row(k, r->series[i]);
        body->whole = body->whole && row != NULL && (row->columns & columns & ~row->matched) == 0;
    }
    body->series = job->series;
    body->n_series = n;
    return true;
}

/* Checks the bytes of a body. If they have changed on the disk, the body is counted, logged, and
 * left out of all later answers. */
static bool is_intact(struct scan *c, const struct body_row *r, struct sv data, const char *id)
{
    if (store_hash_fits(data, r->hash)) {
        return true;
    }
    metric_inc(c->store->metrics.bad_rows);
    log_warn(c->store->options.log, "a profile of the store has changed on the disk",
             LOG_STR("endpoint", c->store->options.name), LOG_STR("file", c->file->path),
             LOG_STR("id", id));
    store_bad_note(c->store, c->file, c->db, r->profile, r->merge);
    return false;
}

static bool visit_body(struct scan *c, struct bodies_job *job, struct body_row *r, struct err *err)
{
    struct store_body body = {.format = r->format};
    struct sv data = SV("");
    char id[STORE_ID_LENGTH + 1];
    sqlite3_stmt *st = NULL;
    bool with_data = job->scan == NULL || job->scan->with_data;
    if (r->merge > 0) {
        st = open_merge(c, r, &data, err);
    }
    if (r->merge > 0 ? st == NULL : with_data && !db_body(c->db, &r->body, &data, err)) {
        return false;
    }
    store_id_format(r->first_ns, r->id_hash, r->profile, id);
    bool ok = read_set(c, job, r->set_id, err) && gather_series(c, job, r, &body, err);
    if (ok && (!with_data || is_intact(c, r, data, id))) {
        body.id = id;
        body.data = with_data ? data : SV("");
        body.from_ns = r->from_ns;
        body.until_ns = r->until_ns;
        body.labels = job->set.labels;
        body.n_labels = job->set.n_labels;
        body.names = job->names_until_ms != 0 ? c->store->options.names : NULL;
        body.names_until_ms = job->names_until_ms;
        c->stopped = !job->visit(job->arg, &body);
        job->visited++;
    }
    sqlite3_reset(st);
    db_body_done(c->db);
    return ok;
}

/* Sets *ret to true if the profile has no merge, or if the scan has not visited its merge yet.
 * Notes the merge as visited. */
static bool is_first(struct bodies_job *job, const struct body_row *r, bool *ret, struct err *err)
{
    struct sv key = {(const char *)&r->merge, sizeof(r->merge)};
    *ret = r->merge <= 0 || map_get(job->merges, key) == NULL;
    return !*ret || r->merge <= 0 || map_put(job->merges, key, (void *)(uintptr_t)1, NULL) ||
           err_memory(err);
}

static bool bodies_of_file(struct scan *c, struct err *err)
{
    struct bodies_job *job = c->job;
    job->set_id = 0;
    map_free(job->merges, NULL);
    job->merges = map_new();
    if (job->merges == NULL) {
        return err_memory(err);
    }
    bool ok = find_profiles(c, job, err);
    for (size_t i = 0; ok && i < job->n_found && !c->stopped; i++) {
        size_t at = job->scan->newest_first ? job->n_found - 1 - i : i;
        struct body_row r;
        bool found;
        bool first = false;
        ok = read_profile_row(c, job->found[at].profile, &r, &found, err) &&
             (!found || is_first(job, &r, &first, err)) && (!first || visit_body(c, job, &r, err));
        c->stopped = c->stopped || (job->scan->limit > 0 && job->visited >= job->scan->limit);
    }
    return ok;
}

static void job_done(struct bodies_job *job)
{
    free(job->found);
    free(job->series);
    map_free(job->merges, NULL);
    arena_free(job->arena);
}

/* Returns the time until which the profiles of a scan that begins now may wait for names; 0: no
 * names are wanted. */
static int64_t names_until_ms(const struct store *s)
{
    const struct store_names *names = s->options.names;
    return names != NULL && names->wanted(names->arg) ? clock_mono_ms() + names->wait_ms : 0;
}

bool store_each_body(struct store *s, const struct store_scan *scan,
                     bool (*visit)(void *arg, const struct store_body *body), void *arg,
                     struct err *err)
{
    struct bodies_job job = {.scan = scan,
                             .visit = visit,
                             .arg = arg,
                             .arena = arena_new(STORE_BLOB_MAX * 4),
                             .names_until_ms = names_until_ms(s)};
    struct scan c = {.store = s, .range = &scan->range, .visit_file = bodies_of_file, .job = &job};
    bool ok = job.arena != NULL ? scan_run(&c, scan->newest_first, err) : err_memory(err);
    job_done(&job);
    return ok;
}

/* ---- one profile ----------------------------------------------------------------------------- */

struct get_job {
    struct bodies_job bodies;
    int64_t time_ms;
    uint64_t hash;
    int64_t profile;
    bool found;
};

static bool get_from_file(struct scan *c, struct err *err)
{
    struct get_job *get = c->job;
    struct body_row r;
    bool found;
    get->bodies.set_id = 0;
    if (!read_profile_row(c, get->profile, &r, &found, err)) {
        return false;
    }
    if (!found || !store_id_fits(r.first_ns, r.hash, get->time_ms, get->hash)) {
        return true;
    }
    size_t before = get->bodies.visited;
    bool ok = visit_body(c, &get->bodies, &r, err);
    get->found = get->bodies.visited > before;
    c->stopped = c->stopped || get->found;
    return ok;
}

bool store_get(struct store *s, struct sv id, bool *ret_found,
               bool (*visit)(void *arg, const struct store_body *body), void *arg, struct err *err)
{
    return store_get_partial(s, id, NULL, ret_found, visit, arg, err);
}

bool store_get_partial(struct store *s, struct sv id, struct partial *partial, bool *ret_found,
                       bool (*visit)(void *arg, const struct store_body *body), void *arg,
                       struct err *err)
{
    struct get_job get = {
        .bodies = {.visit = visit, .arg = arg, .names_until_ms = names_until_ms(s)}};
    *ret_found = false;
    if (!store_id_parse(id, &get.time_ms, &get.hash, &get.profile)) {
        return true;
    }
    struct store_range range = {.from_ns = get.time_ms * NS_PER_MS,
                                .until_ns = get.time_ms * NS_PER_MS + NS_PER_MS - 1,
                                .partial = partial};
    struct scan c = {
        .store = s, .range = &range, .any = true, .visit_file = get_from_file, .job = &get};
    get.bodies.arena = arena_new(STORE_BLOB_MAX * 4);
    bool ok = get.bodies.arena != NULL ? scan_run(&c, false, err) : err_memory(err);
    *ret_found = get.found;
    job_done(&get.bodies);
    return ok;
}

/* ---- the id of a profile --------------------------------------------------------------------- */

struct find_job {
    uint64_t hash;
    bool found;
    char *id;
};

static bool find_in_file(struct scan *c, struct err *err)
{
    struct find_job *find = c->job;
    sqlite3_stmt *st = db_statement(c->db, SQL_FIND_PROFILE, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, (int64_t)find->hash);
    sqlite3_bind_int64(st, 2, c->range->from_ns);
    sqlite3_bind_int64(st, 3, c->range->until_ns);
    int row = db_step(c->db, st, err);
    if (row == 1) {
        store_id_format(sqlite3_column_int64(st, 1), find->hash, sqlite3_column_int64(st, 0),
                        find->id);
        find->found = true;
        c->stopped = true;
        sqlite3_reset(st);
    }
    return row >= 0;
}

bool store_find(struct store *s, uint32_t second, uint64_t hash, bool *ret_found,
                char ret_id[STORE_ID_LENGTH + 1], struct err *err)
{
    struct find_job find = {.hash = hash, .id = ret_id};
    struct store_range range = {.from_ns = second * NS_PER_S,
                                .until_ns = second * NS_PER_S + NS_PER_S - 1};
    struct scan c = {
        .store = s, .range = &range, .any = true, .visit_file = find_in_file, .job = &find};
    bool ok = scan_run(&c, false, err);
    *ret_found = find.found;
    return ok;
}

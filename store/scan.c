/* Scans series and points, file by file. */
#include "store/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/archive/archive.h"
#include "store/sums.h"

static int64_t range_from(const struct scan *c)
{
    int64_t from = c->range->from_ns;
    return from > 0 ? from : 0;
}

/* Visits an open file, or one that need not be opened. */
static bool visit_open(struct scan *c, struct db *db, struct err *err)
{
    c->db = db;
    return (c->catalogue.n_matches == 0 && !c->any) || c->visit_file(c, err);
}

/* Returns true if nothing has to be read from the file, whose catalogue is known. */
static bool is_in_memory(struct scan *c)
{
    return !c->any && (c->catalogue.n_matches == 0 || (c->needs_file != NULL && !c->needs_file(c)));
}

/* ---- files of the archive -------------------------------------------------------------------- */

/* Opens and visits a file of the archive. */
static bool visit_remote(struct scan *c, struct store_file *f, struct err *err)
{
    struct err why = ERR_INIT;
    bool skip;
    struct reader_conn *r = store_reader_take(c->store, f, &skip, &why);
    if (r == NULL) {
        partial_note(c->range->partial, "%s: %s", f->path, why.msg);
        return why.kind != ERR_MEMORY || err_memory(err);
    }
    bool ok = visit_open(c, &r->db, &why);
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

static bool scan_wants_row(void *arg, size_t row)
{
    const struct scan *c = arg;
    return c->catalogue.rows[row].matched != 0;
}

/* Visits a file of the archive. If it cannot be read, it is skipped, and the answer is partial. */
static bool scan_remote(struct scan *c, struct store_file *f, struct err *err)
{
    struct err why = ERR_INIT;
    c->file = f;
    c->file_number++;
    arena_reset(c->index_arena);
    const struct series_list *list = archive_series(f, c->index_arena, &why);
    if (list == NULL) {
        partial_note(c->range->partial, "%s: %s", f->path, why.msg);
        return why.kind != ERR_MEMORY || err_memory(err);
    }
    bool ok = catalogue_read_list(&c->catalogue, list, &why);
    if (ok && !is_in_memory(c)) {
        archive_prefetch(f, list, scan_wants_row, c);
    }
    series_lists_release(c->store->series, list);
    if (!ok) {
        if (why.kind != ERR_INPUT) {
            return err_set(err, why.kind, "%s: %s", f->path, why.msg);
        }
        archive_read_failed(f, DB_DAMAGED, &why);
        partial_note(c->range->partial, "%s: %s", f->path, why.msg);
        return true;
    }
    return is_in_memory(c) ? visit_open(c, NULL, err) : visit_remote(c, f, err);
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

/* Visits the twin of a file that was removed meanwhile. A day has other files as well, which the
 * scan may have visited. */
static bool scan_twin(struct scan *c, const struct store_file *f, struct err *err)
{
    struct store_file *twin = twin_of(c->store, f);
    bool ok = true;
    if (twin != NULL && store_name_compare(&twin->name, &f->name) != 0) {
        partial_note(c->range->partial, "%s: it was removed meanwhile: ask again", f->path);
    } else if (twin != NULL) {
        ok = scan_remote(c, twin, err);
    }
    store_file_unref(twin);
    return ok;
}

/* ---- files on disk --------------------------------------------------------------------------- */

/* Sets the version of a sealed file. False if the file is not sealed. */
static bool sealed_version(struct scan *c, struct store_file *f, struct series_version *ret)
{
    pthread_mutex_lock(&c->store->lock);
    bool sealed = f->sealed && f->fault == DB_FINE && !f->gone;
    pthread_mutex_unlock(&c->store->lock);
    return sealed && series_version_of(f->path, ret);
}

/* Reads the catalogue of a file from memory. Sets *ret to false if it has to be read from the file.
 */
static bool read_known(struct scan *c, struct store_file *f, bool *ret, struct err *err)
{
    struct series_version version;
    struct err why = ERR_INIT;
    const struct series_list *list = sealed_version(c, f, &version)
                                         ? series_lists_get(c->store->series, f->path, &version)
                                         : NULL;
    *ret = list != NULL && catalogue_read_list(&c->catalogue, list, &why);
    series_lists_release(c->store->series, list);
    return *ret || why.kind == ERR_NONE || why.kind == ERR_INPUT ||
           err_set(err, why.kind, "%s: %s", f->path, why.msg);
}

/* Reads the catalogue of an open file. The list of a sealed one is kept, unless the file has
 * changed meanwhile. */
static bool read_catalogue(struct scan *c, struct store_file *f, struct db *db, struct err *err)
{
    struct series_version before;
    struct series_version after;
    if (!sealed_version(c, f, &before)) {
        return catalogue_read(&c->catalogue, db, err);
    }
    struct series_list *list = catalogue_list_of(c->store->series, db, err);
    if (list == NULL) {
        return false;
    }
    struct err why = ERR_INIT;
    bool ok = catalogue_read_list(&c->catalogue, list, &why);
    if (!ok && why.kind == ERR_INPUT) {
        db_damaged(db, "the labels of a series", err);
    } else if (!ok) {
        err_set(err, why.kind, "%s", why.msg);
    } else if (sealed_version(c, f, &after) && memcmp(&before, &after, sizeof(before)) == 0) {
        series_lists_add(c->store->series, list, f->path, &after);
    }
    series_lists_release(c->store->series, list);
    return ok;
}

/* Opens and visits a file. *ret_skip is set if it has nothing to read. */
static bool visit_local(struct scan *c, struct store_file *f, bool known, bool *ret_skip,
                        struct err *err)
{
    struct err why = ERR_INIT;
    struct reader_conn *r = store_reader_take(c->store, f, ret_skip, err);
    if (r == NULL) {
        return *ret_skip;
    }
    bool ok = (known || read_catalogue(c, f, &r->db, &why)) && visit_open(c, &r->db, &why);
    if (!ok && r->db.fault == DB_FINE) {
        err_set(err, why.kind, "%s: %s", f->path, why.msg);
    }
    ok = ok || r->db.fault != DB_FINE;
    store_reader_give(c->store, r, &why);
    return ok;
}

/* Visits a file. If the file turns out to be damaged, it is skipped, and the scan continues. */
static bool scan_local(struct scan *c, struct store_file *f, struct err *err)
{
    bool skip = false;
    bool known = false;
    c->file = f;
    c->file_number++;
    store_index_file(c->store, f);
    store_scan_begin(c->store, f);
    bool ok = (store_bad_of(c->store, f, &c->bad, &c->n_bad) || err_memory(err)) &&
              read_known(c, f, &known, err);
    if (ok && known && is_in_memory(c)) {
        ok = visit_open(c, NULL, err);
    } else if (ok) {
        ok = visit_local(c, f, known, &skip, err);
    }
    free(c->bad);
    c->bad = NULL;
    c->n_bad = 0; /* sums, and files of the archive and of peers, have none */
    store_scan_end(c->store, f);
    return ok && (!skip || scan_twin(c, f, err));
}

/* ---- files of peers -------------------------------------------------------------------------- */

/* Visits a slice of a file of a peer. If it is damaged, it is skipped, and the answer is partial.
 */
static bool scan_slice(struct scan *c, struct store_file *f, struct db *db, bool *more,
                       struct err *err)
{
    struct err why = ERR_INIT;
    c->file_number++;
    bool ok = catalogue_read(&c->catalogue, db, &why) && visit_open(c, db, &why);
    if (!ok && db->fault == DB_FINE) {
        return err_set(err, why.kind, "%s: %s", f->path, why.msg);
    }
    if (!ok) {
        *more = false;
        peering_slice_bad(f, &why);
        partial_note(c->range->partial, "%s: %s", f->path, why.msg);
    }
    return true;
}

/* Visits a file of a peer, slice by slice. */
static bool scan_peer(struct scan *c, struct store_file *f, struct err *err)
{
    bool ok = true;
    c->file = f;
    for (bool more = true; ok && more && !c->stopped;) {
        struct err why = ERR_INIT;
        struct db db;
        if (!peering_next_slice(f, &db, &more, &why)) {
            partial_note(c->range->partial, "%s", why.msg);
            return why.kind != ERR_MEMORY || err_memory(err);
        }
        ok = scan_slice(c, f, &db, &more, err);
        db_close(&db);
    }
    return ok;
}

/* Adds the files of peers, if the range has any. */
static bool add_peers(struct scan *c, struct store_file ***files, size_t *n, struct err *err)
{
    const struct store_peers *peers = &c->range->peers;
    c->peers.from_ns = range_from(c);
    c->peers.until_ns = c->range->until_ns;
    c->peers.selector = c->range->selector;
    return peers->peering == NULL ||
           peering_add_files(peers, c->store, &c->peers, files, n, c->range->partial, err);
}

/* ---- sums of days ---------------------------------------------------------------------------- */

/* Visits the sum of a day. *ret_done is false if the sum cannot be read, and nothing was visited:
 * the files of the day are to be read. A sum that turns out to be damaged later ends the scan. */
static bool scan_sum(struct scan *c, struct store_file *f, bool *ret_done, struct err *err)
{
    struct err why = ERR_INIT;
    bool known = false;
    bool skip;
    c->file = f;
    c->file_number++;
    *ret_done = true;
    metric_inc(c->store->metrics.sum_reads);
    if (!read_known(c, f, &known, err)) {
        return false;
    }
    if (known && is_in_memory(c)) {
        return visit_open(c, NULL, err);
    }
    struct reader_conn *r = store_reader_take(c->store, f, &skip, &why);
    *ret_done = r != NULL && (known || read_catalogue(c, f, &r->db, &why));
    bool ok = *ret_done && visit_open(c, &r->db, &why);
    bool fault = r == NULL || r->db.fault != DB_FINE;
    if (r != NULL) {
        store_reader_give(c->store, r, &why);
    }
    if (fault) {
        store_sums_failed(c->store, f, why.msg);
    }
    if (ok || (fault && !*ret_done)) {
        return true;
    }
    *ret_done = true;
    return err_set(err, why.kind, "%s: %s%s", f->path, why.msg,
                   fault ? ": the file was removed: ask again" : "");
}

/* Visits the sum of the day whose files begin at *i, if there is one, and sets *i to the file after
 * them. */
static bool scan_day(struct scan *c, struct store_file **files, size_t n, size_t *i,
                     struct err *err)
{
    struct store_file *sum = NULL;
    bool done = false;
    size_t covered = c->with_sums && c->range->peers.peering == NULL
                         ? store_sums_cover(c->store, files, n, *i, c->range, &sum)
                         : 0;
    bool ok = covered == 0 || scan_sum(c, sum, &done, err);
    store_file_unref(sum);
    *i += done ? covered : 0;
    return ok;
}

/* ---- all files ------------------------------------------------------------------------------- */

static bool scan_file(struct scan *c, struct store_file *f, struct err *err)
{
    if (store_file_until_ns(f) < c->floor_ns) {
        return true;
    }
    if (f->slices != NULL) {
        return scan_peer(c, f, err);
    }
    return f->object != NULL ? scan_remote(c, f, err) : scan_local(c, f, err);
}

/* Gets ready to read the archive. */
static bool prepare(struct scan *c, struct store_file **files, size_t *n, struct err *err)
{
    struct err why = ERR_INIT;
    if (c->store->archive == NULL) {
        return true;
    }
    if (archive_is_partial(c->store->archive, &why)) {
        partial_note(c->range->partial, "%s", why.msg);
    }
    archive_prepare(c->store->archive, files, *n);
    c->index_arena = arena_new(ARCHIVE_INDEX_ARENA_MAX);
    return c->index_arena != NULL ? archive_drop_replaced(c->store->archive, files, n,
                                                          c->index_arena, c->range->partial, err)
                                  : err_memory(err);
}

static bool scan_files(struct scan *c, bool backwards, struct err *err)
{
    struct store_file **files;
    size_t n;
    if (!store_files_to_read(c->store, range_from(c), c->range->until_ns, &files, &n, err)) {
        return false;
    }
    bool ok = add_peers(c, &files, &n, err) && prepare(c, files, &n, err);
    for (size_t i = 0; ok && i < n && !c->stopped;) {
        size_t before = i;
        ok = backwards || scan_day(c, files, n, &i, err);
        if (ok && i == before) {
            ok = scan_file(c, files[backwards ? n - 1 - i : i], err);
            i++;
        }
    }
    arena_free(c->index_arena);
    store_files_free(files, n);
    return ok;
}

bool scan_is_within(const struct scan *c)
{
    pthread_mutex_lock(&c->store->lock);
    bool within =
        c->range->from_ns <= c->file->oldest_ns && c->range->until_ns >= c->file->newest_ns;
    pthread_mutex_unlock(&c->store->lock);
    return within;
}

bool scan_run(struct scan *c, bool backwards, struct err *err)
{
    if (!catalogue_init(&c->catalogue, c->range->selector, err)) {
        return false;
    }
    c->catalogue.wants_shared = c->wants_shared;
    bool ok = scan_files(c, backwards, err);
    catalogue_done(&c->catalogue);
    return ok;
}

/* ---- points ---------------------------------------------------------------------------------- */

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

bool piece_next(struct scan *c, struct piece *p, struct err *err)
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
    sqlite3_bind_int64(st, 5, SCAN_PIECE);
    int row = 0;
    p->n = 0;
    while (p->n < SCAN_PIECE && (row = db_step(c->db, st, err)) == 1) {
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

bool piece_init(struct piece *p, struct err *err)
{
    *p = (struct piece){.at = malloc(SCAN_PIECE * sizeof(p->at[0]))};
    return p->at != NULL || err_memory(err);
}

void piece_start(const struct scan *c, struct piece *p, int64_t row)
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
            ok = piece_next(c, &p, err);
        } while (ok && visit_points(c, &p, m->series) && p.n == SCAN_PIECE);
    }
    free(p.at);
    return ok;
}

bool store_each_point(struct store *s, const struct store_range *range,
                      bool (*visit)(void *arg, const struct store_point *point), void *arg,
                      struct err *err)
{
    struct points_job job = {visit, arg};
    struct scan c = {.store = s,
                     .range = range,
                     .wants_shared = true,
                     .peers = {.kind = range->with_windows ? SLICE_TIMED : SLICE_POINTS},
                     .visit_file = points_of_file,
                     .job = &job};
    return scan_run(&c, false, err);
}

/* ---- series ---------------------------------------------------------------------------------- */

struct series_job {
    /* One of the two. */
    bool (*visit)(void *arg, const struct store_series *series);
    bool (*visit_start)(void *arg, const struct store_series *series, int64_t time_ns);
    void *arg;
    char *seen; /* by id of a series: 1 if it was visited */
    size_t cap;
};

/* Makes room for all series that the scan has found so far. */
static bool reserve_seen(const struct scan *c, struct series_job *job, struct err *err)
{
    size_t n = map_count(c->catalogue.series) + 1;
    if (n <= job->cap) {
        return true;
    }
    char *seen = realloc(job->seen, 2 * n);
    if (seen == NULL) {
        return err_memory(err);
    }
    memset(seen + job->cap, 0, 2 * n - job->cap);
    job->seen = seen;
    job->cap = 2 * n;
    return true;
}

/* Finds the first point of a column that is not 0, and its time. */
static bool has_point(struct scan *c, struct piece *p, size_t column, bool *ret, int64_t *ret_ns,
                      struct err *err)
{
    do {
        if (!piece_next(c, p, err)) {
            return false;
        }
        for (size_t i = 0; i < p->n && !*ret; i++) {
            *ret = value_of(&p->at[i], column) != 0;
            *ret_ns = p->at[i].time_ns;
        }
    } while (!*ret && p->n == SCAN_PIECE);
    return true;
}

static void visit_series(struct scan *c, const struct store_series *series, int64_t time_ns)
{
    struct series_job *job = c->job;
    job->seen[series->id] = 1;
    c->stopped = job->visit != NULL ? !job->visit(job->arg, series)
                                    : !job->visit_start(job->arg, series, time_ns);
}

/* Visits all series of a file whose profiles are all in the range: each of them has a point. */
static bool visit_all(struct scan *c)
{
    const struct series_job *job = c->job;
    for (size_t i = 0; i < c->catalogue.n_matches && !c->stopped; i++) {
        const struct store_series *series = c->catalogue.matches[i].series;
        if (!job->seen[series->id]) {
            visit_series(c, series, 0);
        }
    }
    return true;
}

static bool series_needs_file(struct scan *c)
{
    const struct series_job *job = c->job;
    return job->visit == NULL || !scan_is_within(c);
}

static bool series_of_file(struct scan *c, struct err *err)
{
    struct series_job *job = c->job;
    struct piece p;
    if (!reserve_seen(c, job, err)) {
        return false;
    }
    if (c->db == NULL || !series_needs_file(c)) {
        return visit_all(c);
    }
    bool ok = piece_init(&p, err);
    for (size_t i = 0; ok && i < c->catalogue.n_matches && !c->stopped; i++) {
        const struct catalogue_match *m = &c->catalogue.matches[i];
        bool found = false;
        int64_t time_ns = 0;
        if (job->seen[m->series->id]) {
            continue;
        }
        piece_start(c, &p, m->row);
        ok = has_point(c, &p, m->series->column, &found, &time_ns, err);
        if (ok && found) {
            visit_series(c, m->series, time_ns);
        }
    }
    free(p.at);
    return ok;
}

static bool scan_series(struct store *s, const struct store_range *range, struct series_job *job,
                        struct err *err)
{
    struct scan c = {.store = s,
                     .range = range,
                     .peers = {.kind = SLICE_SERIES},
                     .needs_file = series_needs_file,
                     .visit_file = series_of_file,
                     .job = job};
    bool ok = scan_run(&c, false, err);
    free(job->seen);
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

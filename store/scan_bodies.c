/* Scans the bodies of profiles, and finds profiles by their ids. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/scan.h"

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
    /* How many profiles of the first instant of the range are visited, if the newest of all files
     * are: the others of that time are beyond the limit. */
    size_t ties;
    int64_t names_until_ms; /* see struct store_body; 0: no names are wanted */
    struct piece piece;     /* working memory; made on first use */
    /* The members below describe the file that is being visited. */
    const struct catalogue_row **rows; /* of catalogue_by_set() */
    size_t n_rows;
    size_t rows_cap;
    /* The profiles to visit next: those of one set if the scan is by_series, otherwise all. */
    struct found *found;
    size_t n_found;
    size_t cap;
    struct map *merges; /* those that were visited already; a merge has profiles of one set */
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

/* Lists the matching rows of the file, in order of sets. No profile is listed yet. */
static bool list_rows(const struct scan *c, struct bodies_job *job, struct err *err)
{
    size_t n = c->catalogue.n_rows;
    job->n_found = 0;
    if (n > job->rows_cap) {
        void *rows = reallocarray(job->rows, n, sizeof(void *));
        if (rows == NULL) {
            return err_memory(err);
        }
        job->rows = rows;
        job->rows_cap = n;
    }
    job->n_rows = catalogue_by_set(&c->catalogue, INT64_MIN, job->rows);
    return true;
}

/* Lists the profiles of the rows from i on: of those of one set if `of_set`, otherwise of all.
 * *ret_next is the index of the first row that is left. A file may have millions of profiles, but a
 * set has some thousands. */
static bool find_profiles(struct scan *c, struct bodies_job *job, size_t i, bool of_set,
                          size_t *ret_next, struct err *err)
{
    struct piece *p = &job->piece;
    bool ok = p->at != NULL || piece_init(p, err);
    int64_t set_id = job->rows[i]->set_id;
    job->n_found = 0;
    for (; ok && i < job->n_rows && (!of_set || job->rows[i]->set_id == set_id); i++) {
        piece_start(c, p, job->rows[i]->row);
        do {
            ok = piece_next(c, p, err) && add_found(job, p, job->rows[i]->matched, err);
        } while (ok && p->n == SCAN_PIECE);
    }
    *ret_next = i;
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
    if (c->file->sum) {
        return false; /* see visit_body() */
    }
    if (c->file->slices != NULL) {
        return false; /* a matter of the peer, which notes it when it reads the profile itself */
    }
    store_bad_found(c->store, c->file, c->db, r->profile, r->merge, id);
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
    bool intact = ok && (!with_data || is_intact(c, r, data, id));
    if (ok && !intact && c->file->sum) {
        ok = db_damaged(c->db, "the bytes of a profile", err);
    }
    if (intact) {
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

/* Forgets the merges that were visited. */
static bool forget_merges(struct bodies_job *job, struct err *err)
{
    if (job->merges == NULL || map_count(job->merges) > 0) {
        map_free(job->merges, NULL);
        job->merges = map_new();
    }
    return job->merges != NULL || err_memory(err);
}

/* Returns false if the profile is as old as the oldest of the newest ones, and there are enough of
 * this time. Files that are visited first would otherwise use up the limit with them, although
 * later ones have newer profiles. */
static bool is_among_newest(struct bodies_job *job, const struct found *f)
{
    if (job->ties == SIZE_MAX || f->time_ns != job->scan->range.from_ns) {
        return true;
    }
    bool left = job->ties > 0;
    job->ties -= left;
    return left;
}

/* Visits the profiles that were listed last. */
static bool visit_found(struct scan *c, struct bodies_job *job, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < job->n_found && !c->stopped; i++) {
        size_t at = job->scan->newest_first ? job->n_found - 1 - i : i;
        struct body_row r;
        bool found;
        bool first = false;
        ok = read_profile_row(c, job->found[at].profile, &r, &found, err) &&
             (!found || is_first(job, &r, &first, err)) &&
             (!first || !is_among_newest(job, &job->found[at]) || visit_body(c, job, &r, err));
        c->stopped = c->stopped || (job->scan->limit > 0 && job->visited >= job->scan->limit);
    }
    return ok;
}

static bool bodies_of_file(struct scan *c, struct err *err)
{
    struct bodies_job *job = c->job;
    job->set_id = 0;
    bool ok = list_rows(c, job, err);
    for (size_t i = 0; ok && i < job->n_rows && !c->stopped;) {
        ok = forget_merges(job, err) && find_profiles(c, job, i, job->scan->by_series, &i, err) &&
             visit_found(c, job, err);
    }
    return ok;
}

static void job_done(struct bodies_job *job)
{
    free(job->rows);
    free(job->piece.at);
    free(job->found);
    free(job->series);
    map_free(job->merges, NULL);
    arena_free(job->arena);
}

/* ---- the newest profiles --------------------------------------------------------------------- */

/* The times of the newest bodies of a scan: a heap whose first element is the oldest of them. */
struct newest {
    struct bodies_job bodies;
    int64_t *times;
    size_t n;
    size_t cap;
    size_t max;
};

static void swap(int64_t *a, int64_t *b)
{
    int64_t v = *a;
    *a = *b;
    *b = v;
}

/* Moves the first element to its place. */
static void sift_down(int64_t *heap, size_t n)
{
    for (size_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[i] <= heap[child]) {
            break;
        }
        swap(&heap[i], &heap[child]);
    }
}

static bool add_time(struct newest *k, int64_t time_ns, struct err *err)
{
    if (k->n == k->max) {
        k->times[0] = time_ns > k->times[0] ? time_ns : k->times[0];
        sift_down(k->times, k->n);
        return true;
    }
    if (k->n == k->cap) {
        size_t cap = k->cap == 0 ? 256 : 2 * k->cap;
        int64_t *times = reallocarray(k->times, cap, sizeof(times[0]));
        if (times == NULL) {
            return err_memory(err);
        }
        k->times = times;
        k->cap = cap;
    }
    k->times[k->n++] = time_ns;
    for (size_t i = k->n - 1; i > 0 && k->times[i] < k->times[(i - 1) / 2]; i = (i - 1) / 2) {
        swap(&k->times[i], &k->times[(i - 1) / 2]);
    }
    return true;
}

/* Adds the bodies of a file that are among the newest. */
static bool newest_of_file(struct scan *c, struct err *err)
{
    struct newest *k = c->job;
    size_t next;
    bool ok = forget_merges(&k->bodies, err) && list_rows(c, &k->bodies, err) &&
              (k->bodies.n_rows == 0 || find_profiles(c, &k->bodies, 0, false, &next, err));
    for (size_t i = k->bodies.n_found; ok && i-- > 0;) {
        const struct found *f = &k->bodies.found[i];
        struct body_row r;
        bool found;
        bool first = false;
        if (k->n == k->max && f->time_ns <= k->times[0]) {
            break;
        }
        ok = read_profile_row(c, f->profile, &r, &found, err) &&
             (!found || is_first(&k->bodies, &r, &first, err)) &&
             (!first || add_time(k, f->time_ns, err));
    }
    c->floor_ns = k->n == k->max ? k->times[0] : 0;
    return ok;
}

/* Returns how many of the newest bodies are as old as the oldest of them. */
static size_t count_ties(const struct newest *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->n; i++) {
        n += k->times[i] == k->times[0];
    }
    return n;
}

/* Moves the beginning of the range, so that as many bodies are left as the limit of the scan says:
 * the newest ones of all files. Files of several writers cover the same time, so the newest ones of
 * one file are not the newest of all. *ret_ties is the number of those at the beginning of the
 * range; SIZE_MAX if the range was not cut. */
static bool cut_range(struct store *s, struct store_scan *scan, size_t *ret_ties, struct err *err)
{
    struct store_scan heads = {.range = scan->range};
    struct newest k = {.bodies = {.scan = &heads, .ties = SIZE_MAX}, .max = scan->limit};
    struct scan c = {.store = s,
                     .range = &heads.range,
                     .peers = {.kind = SLICE_HEADS},
                     .visit_file = newest_of_file,
                     .job = &k};
    heads.range.partial = NULL; /* the visits note what cannot be read */
    bool ok = scan_run(&c, true, err);
    if (ok && k.n == k.max) {
        scan->range.from_ns = k.times[0];
        *ret_ties = count_ties(&k);
    }
    free(k.times);
    job_done(&k.bodies);
    return ok;
}

/* ---- all bodies ------------------------------------------------------------------------------ */

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
    struct store_scan all = *scan;
    size_t ties = SIZE_MAX;
    if (scan->newest_first && scan->limit > 0 && !cut_range(s, &all, &ties, err)) {
        return false;
    }
    struct bodies_job job = {.scan = &all,
                             .ties = ties,
                             .visit = visit,
                             .arg = arg,
                             .arena = arena_new(STORE_BLOB_MAX * 4),
                             .names_until_ms = names_until_ms(s)};
    struct scan c = {.store = s,
                     .range = &all.range,
                     .peers = {.kind = scan->with_data ? SLICE_BODIES : SLICE_HEADS},
                     .with_sums = scan->with_sums,
                     .visit_file = bodies_of_file,
                     .job = &job};
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

/* Finds the row of a profile by its time and hash. *ret is 0 if the file does not have it. */
static bool find_row(struct scan *c, const struct get_job *get, int64_t *ret, struct err *err)
{
    sqlite3_stmt *st = db_statement(c->db, SQL_PROFILES_AT, err);
    int row = -1;
    *ret = 0;
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, c->range->from_ns);
    sqlite3_bind_int64(st, 2, c->range->until_ns);
    while (*ret == 0 && (row = db_step(c->db, st, err)) == 1) {
        bool fits = store_id_fits(sqlite3_column_int64(st, 1),
                                  (uint64_t)sqlite3_column_int64(st, 2), get->time_ms, get->hash);
        *ret = fits ? sqlite3_column_int64(st, 0) : 0;
    }
    sqlite3_reset(st);
    return row >= 0;
}

static bool get_from_file(struct scan *c, struct err *err)
{
    struct get_job *get = c->job;
    struct body_row r;
    bool found;
    get->bodies.set_id = 0;
    if (!read_profile_row(c, get->profile, &r, &found, err)) {
        return false;
    }
    found = found && store_id_fits(r.first_ns, r.hash, get->time_ms, get->hash);
    /* An id that is older than the day of the archive has another row. */
    if (!found && c->file->object != NULL && c->file->name.length_ms >= MS_PER_DAY) {
        int64_t row;
        if (!find_row(c, get, &row, err) ||
            (row > 0 && !read_profile_row(c, row, &r, &found, err))) {
            return false;
        }
    }
    if (!found) {
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
    return store_get_partial(s, id, NULL, NULL, ret_found, visit, arg, err);
}

bool store_get_partial(struct store *s, struct sv id, const struct store_peers *peers,
                       struct partial *partial, bool *ret_found,
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
    if (peers != NULL) {
        range.peers = *peers;
    }
    struct scan c = {.store = s,
                     .range = &range,
                     .any = true,
                     .peers = {.kind = SLICE_PROFILE,
                               .profile = get.profile,
                               .profile_ms = get.time_ms,
                               .profile_hash = get.hash},
                     .visit_file = get_from_file,
                     .job = &get};
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

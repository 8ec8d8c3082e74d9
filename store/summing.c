#include "store/summing.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/merge.h"
#include "store/archive/day_sets.h"
#include "store/blob.h"

/* Memory for one merge, and for its result. A query has to read the result with the memory that it
 * has for one profile, so this is below the limit of a profile that is put. */
#define MERGE_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define RESULT_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define PAGE_BYTES 4096
/* Limit of the profiles of a day that cannot be merged: a sum has them as they are. */
#define COPIES_MAX 1024
/* Pages that a source keeps in memory, in KiB: a body is read once only. */
#define SOURCE_CACHE "PRAGMA cache_size = -256"

/* A profile of the sum: the merge of some profiles of a set. */
struct part {
    int64_t row;
    int64_t from_ns;
    int64_t until_ns;
    uint64_t hash;
    size_t size;
    int64_t *sums; /* SUMMARY_TYPES_MAX for each series */
};

/* A part that grows. */
struct growing {
    struct merge *merge; /* NULL: there is none */
    size_t part;         /* its index */
    size_t n_merged;
};

struct summing {
    struct store *store;
    const struct summing_options *o;
    struct db *sources;
    size_t n_sources;
    struct db db;
    struct day_sets sets;
    int64_t set_id;
    int64_t series_n; /* rows of series that were written */
    int64_t profiles_n;
    int64_t oldest_ns;
    int64_t newest_ns;
    /* The members below belong to the set that is being summed. */
    int64_t first_series; /* its rows of series follow this one */
    size_t n_series;
    struct map *known; /* place of a body -> 1 + index of its part */
    struct part *parts;
    size_t n_parts;
    size_t parts_cap;
    /* Profiles that belong to the series without labels alone are merged with each other only: they
     * may have more sets of labels than a profile is split by, and a merge with others would not be
     * split either. */
    struct growing labelled;
    struct growing unlabelled;
    struct buf no_labels; /* the labels of that series */
    size_t n_copies;      /* of all sets */
    struct buf out;
    struct buf blob;
};

/* ---- bodies of the sources ------------------------------------------------------------------- */

/* Where the bytes of a profile are: in a merge, or on their own. */
struct place {
    uint64_t source;
    int64_t merge; /* 0: on their own */
    int64_t profile;
};

struct source_row {
    struct place place;
    int64_t time_ns;
    int64_t until_ns;
    uint64_t hash;
    int64_t format;
    int64_t size;
    bool alone;      /* it cannot be merged */
    bool unlabelled; /* it belongs to the series without labels alone */
};

/* Notes if a body belongs to one series only, that of the point, and this has no labels. */
static bool note_labels(struct summing *m, const struct day_series *s, struct sv ids,
                        struct source_row *r, struct err *err)
{
    int64_t series[STORE_PARTS_MAX];
    size_t n;
    if (!blob_read_ids(ids, series, &n)) {
        return db_damaged(&m->sources[s->source], "the series of a profile", err);
    }
    r->unlabelled = n == 1 && sv_eq(s->labels, (struct sv){m->no_labels.data, m->no_labels.len});
    return true;
}

static bool read_row(struct summing *m, const struct day_series *s, int64_t profile,
                     struct source_row *ret, struct err *err)
{
    size_t source = s->source;
    sqlite3_stmt *st =
        db_row_of(&m->sources[source], SQL_PROFILE, profile, "a profile is missing", err);
    if (st == NULL) {
        return false;
    }
    int64_t merge = sqlite3_column_int64(st, 5);
    *ret = (struct source_row){.place = {source, merge > 0 ? merge : 0, merge > 0 ? 0 : profile},
                               .time_ns = sqlite3_column_int64(st, 1),
                               .until_ns = sqlite3_column_int64(st, 2),
                               .hash = (uint64_t)sqlite3_column_int64(st, 3),
                               .format = sqlite3_column_int64(st, 4),
                               .size = sqlite3_column_int64(st, 8),
                               .alone = merge < 0};
    /* The row of a merge has the series of all of its profiles. */
    bool ok =
        merge > 0 || ret->format == PROFILE_JFR || note_labels(m, s, db_blob(st, 6), ret, err);
    sqlite3_reset(st);
    return ok;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool write_body(struct summing *m, struct part *part, struct sv data, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_ADD_BODY, err);
    if (st == NULL) {
        return false;
    }
    /* The salt keeps copies of the same bytes and time apart. */
    part->hash = store_hash(data, (uint16_t)part->row);
    part->size = data.n;
    sqlite3_bind_int64(st, 1, part->row);
    db_bind_blob(st, 2, data);
    bool ok = db_step(&m->db, st, err) == 0;
    (void)sqlite3_clear_bindings(st);
    return ok;
}

/* Writes the bytes of a part that grows, if there is one. */
static bool finish_part(struct summing *m, struct growing *g, struct err *err)
{
    if (g->merge == NULL) {
        return true;
    }
    buf_clear(&m->out);
    /* Nothing is merged if the first profile was too large: it is a part of its own. */
    bool ok = g->n_merged == 0 || merge_write(g->merge, &m->out, err);
    g->merge = merge_free(g->merge);
    const struct sv data = {m->out.data, m->out.len};
    return ok && (data.n == 0 || write_body(m, &m->parts[g->part], data, err));
}

static bool add_part(struct summing *m, struct err *err)
{
    if (m->n_parts == m->parts_cap) {
        size_t cap = m->parts_cap == 0 ? 4 : 2 * m->parts_cap;
        struct part *parts = reallocarray(m->parts, cap, sizeof(parts[0]));
        if (parts == NULL) {
            return err_memory(err);
        }
        m->parts = parts;
        m->parts_cap = cap;
    }
    int64_t *sums = calloc(m->n_series, SUMMARY_TYPES_MAX * sizeof(sums[0]));
    if (sums == NULL) {
        return err_memory(err);
    }
    m->parts[m->n_parts++] = (struct part){
        .row = ++m->profiles_n, .from_ns = INT64_MAX, .until_ns = INT64_MIN, .sums = sums};
    return true;
}

static bool begin_merge(struct summing *m, struct growing *g, struct err *err)
{
    const struct merge_options o = {.bytes_max = MERGE_BYTES_MAX, .mode = MERGE_SUM};
    if (!add_part(m, err)) {
        return false;
    }
    g->part = m->n_parts - 1;
    g->n_merged = 0;
    g->merge = merge_new(&o, err);
    return g->merge != NULL;
}

/* Makes bytes a part of their own. */
static bool copy_bytes(struct summing *m, struct sv data, size_t *ret_part, struct err *err)
{
    if (++m->n_copies > COPIES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d profiles cannot be merged", COPIES_MAX);
    }
    *ret_part = m->n_parts;
    return add_part(m, err) && write_body(m, &m->parts[*ret_part], data, err);
}

/* Merges bytes into a part that grows. If they do not fit into it, they begin the next one. */
static bool merge_bytes_of(struct summing *m, struct growing *g, struct sv data, size_t *ret_part,
                           struct err *err)
{
    struct err why = ERR_INIT;
    if (g->merge == NULL && !begin_merge(m, g, err)) {
        return false;
    }
    *ret_part = g->part;
    if (merge_add(g->merge, data, &why)) {
        g->n_merged++;
        return true;
    }
    if (why.kind == ERR_LIMIT && g->n_merged > 0) {
        return finish_part(m, g, err) && merge_bytes_of(m, g, data, ret_part, err);
    }
    return why.kind == ERR_MEMORY ? err_memory(err) : copy_bytes(m, data, ret_part, err);
}

/* Adds bytes, if they are as they were put. */
static bool add_bytes(struct summing *m, const struct source_row *r, struct sv data, uint64_t hash,
                      size_t *ret_part, struct err *err)
{
    if (!store_hash_fits(data, hash)) {
        struct store_file *f = m->o->files[r->place.source];
        store_bad_found(m->store, f, &m->sources[r->place.source], r->place.profile, r->place.merge,
                        NULL);
        return err_set(err, ERR_INPUT, "%s: a profile has changed on the disk", f->path);
    }
    return r->alone ? copy_bytes(m, data, ret_part, err)
                    : merge_bytes_of(m, r->unlabelled ? &m->unlabelled : &m->labelled, data,
                                     ret_part, err);
}

/* Adds the body of a row, which no part has yet. */
static bool add_body(struct summing *m, const struct day_series *s, struct source_row *r,
                     size_t *ret_part, struct err *err)
{
    struct db *db = &m->sources[r->place.source];
    struct sv data = SV("");
    bool ok;
    if (r->place.merge > 0) {
        sqlite3_stmt *st =
            db_row_of(db, SQL_MERGED_BODY, r->place.merge, "a merged profile is missing", err);
        ok = st != NULL && note_labels(m, s, db_blob(st, 5), r, err) &&
             add_bytes(m, r, db_blob(st, 6), (uint64_t)sqlite3_column_int64(st, 4), ret_part, err);
        sqlite3_reset(st);
    } else {
        const struct db_body body = {r->place.profile, DB_NO_PLACE, r->size};
        ok = db_body(db, &body, &data, err) && add_bytes(m, r, data, r->hash, ret_part, err);
    }
    db_body_done(db);
    return ok;
}

/* Returns the part that has the body of a row, which is added if no part has it. NULL with err. */
static struct part *part_of(struct summing *m, const struct day_series *s, struct source_row *r,
                            struct err *err)
{
    const struct sv key = {(const char *)&r->place, sizeof(r->place)};
    size_t known = (size_t)(uintptr_t)map_get(m->known, key);
    if (known == 0) {
        size_t part = 0;
        if (!m->o->go_on(m->o->arg) || !add_body(m, s, r, &part, err)) {
            return NULL;
        }
        known = part + 1;
        if (!map_put(m->known, key, (void *)(uintptr_t)known, NULL)) {
            err_memory(err);
            return NULL;
        }
    }
    return &m->parts[known - 1];
}

/* ---- points ---------------------------------------------------------------------------------- */

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Adds a point of a source to the part that has its body. */
static bool add_point(struct summing *m, const struct day_series *s, sqlite3_stmt *st,
                      struct err *err)
{
    int64_t sums[SUMMARY_TYPES_MAX];
    size_t n = 0;
    struct source_row r;
    int64_t profile = sqlite3_column_int64(st, 2);
    const uint64_t of[] = {(uint64_t)s->id, (uint64_t)sqlite3_column_int64(st, 0),
                           (uint64_t)sqlite3_column_int64(st, 1), (uint64_t)profile};
    if (!blob_read_sums(db_blob(st, 3), of, 4, sums, &n)) {
        return db_damaged(&m->sources[s->source], "the sums of a profile", err);
    }
    if (!read_row(m, s, profile, &r, err)) {
        return false;
    }
    if (r.format == PROFILE_JFR) {
        return true; /* no query reads it */
    }
    struct part *part = part_of(m, s, &r, err);
    if (part == NULL) {
        return false;
    }
    int64_t *to = part->sums + (size_t)(s->row - m->first_series - 1) * SUMMARY_TYPES_MAX;
    for (size_t i = 0; i < n; i++) {
        to[i] = plus(to[i], sums[i]);
    }
    part->from_ns = r.time_ns < part->from_ns ? r.time_ns : part->from_ns;
    part->until_ns = r.until_ns > part->until_ns ? r.until_ns : part->until_ns;
    return true;
}

static bool add_points(struct summing *m, const struct day_series *s, struct err *err)
{
    struct db *db = &m->sources[s->source];
    sqlite3_stmt *st = db_all_points(db, s->id, err);
    int row = -1;
    while (st != NULL && (row = db_step(db, st, err)) == 1) {
        if (!add_point(m, s, st, err)) {
            sqlite3_reset(st);
            return false;
        }
    }
    return row == 0;
}

/* ---- rows of the sum ------------------------------------------------------------------------- */

static bool write_series(struct summing *m, const struct day_series *s, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_ADD_SERIES, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, m->set_id);
    db_bind_blob(st, 2, s->labels);
    sqlite3_bind_int64(st, 3, (int64_t)s->columns);
    return db_step(&m->db, st, err) == 0;
}

/* Writes the set and its series: equal series of several sources become one. */
static bool write_set(struct summing *m, const struct day_set *set, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_ADD_SET, err);
    if (st == NULL) {
        return false;
    }
    db_bind_blob(st, 1, set->blob);
    bool ok = db_step(&m->db, st, err) == 0;
    m->set_id = sqlite3_last_insert_rowid(m->db.handle);
    m->first_series = m->series_n;
    for (struct day_series *s = set->series; ok && s != NULL; s = s->next) {
        if (s->row != 0) {
            continue;
        }
        day_series_number(s, ++m->series_n);
        m->n_series = (size_t)(m->series_n - m->first_series);
        ok = m->n_series <= STORE_PARTS_MAX
                 ? write_series(m, s, err)
                 : err_set(err, ERR_LIMIT,
                           "profiles of a day have more than %d sets of labels of "
                           "samples",
                           STORE_PARTS_MAX);
    }
    return ok;
}

static bool write_point(struct summing *m, const struct part *part, int64_t row,
                        const int64_t *sums, struct err *err)
{
    const uint64_t of[] = {(uint64_t)row, (uint64_t)part->from_ns, part->hash, (uint64_t)part->row};
    size_t n = SUMMARY_TYPES_MAX;
    while (n > 0 && sums[n - 1] == 0) {
        n--;
    }
    sqlite3_stmt *st = db_statement(&m->db, SQL_ADD_POINT, err);
    buf_clear(&m->blob);
    if (st == NULL || !blob_put_sums(sums, n, of, 4, &m->blob)) {
        return st != NULL && err_memory(err);
    }
    sqlite3_bind_int64(st, 1, row);
    sqlite3_bind_int64(st, 2, part->from_ns);
    sqlite3_bind_int64(st, 3, (int64_t)part->hash);
    sqlite3_bind_int64(st, 4, part->row);
    db_bind_blob(st, 5, (struct sv){m->blob.data, m->blob.len});
    return db_step(&m->db, st, err) == 0;
}

static bool has_sums(const int64_t *sums)
{
    for (size_t i = 0; i < SUMMARY_TYPES_MAX; i++) {
        if (sums[i] != 0) {
            return true;
        }
    }
    return false;
}

/* Writes the row of a part and its points: those of the series that it has samples of. */
static bool write_part(struct summing *m, const struct part *part, struct err *err)
{
    int64_t rows[STORE_PARTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < m->n_series; i++) {
        const int64_t *sums = part->sums + i * SUMMARY_TYPES_MAX;
        if (has_sums(sums)) {
            rows[n] = m->first_series + (int64_t)i + 1;
            if (!write_point(m, part, rows[n++], sums, err)) {
                return false;
            }
        }
    }
    sqlite3_stmt *st = n > 0 ? db_statement(&m->db, SQL_ADD_PROFILE, err) : NULL;
    buf_clear(&m->blob);
    if (st == NULL || !blob_put_ids(rows, n, &m->blob)) {
        return n == 0 || (st != NULL && err_memory(err));
    }
    sqlite3_bind_int64(st, 1, part->row);
    sqlite3_bind_int64(st, 2, m->set_id);
    sqlite3_bind_int64(st, 3, part->from_ns);
    sqlite3_bind_int64(st, 4, part->until_ns);
    sqlite3_bind_int64(st, 5, (int64_t)part->hash);
    sqlite3_bind_int64(st, 6, PROFILE_PPROF);
    sqlite3_bind_int64(st, 7, (int64_t)part->size);
    sqlite3_bind_int64(st, 8, -1);
    db_bind_blob(st, 9, (struct sv){m->blob.data, m->blob.len});
    sqlite3_bind_int64(st, 10, DB_NO_PLACE);
    m->oldest_ns = part->from_ns < m->oldest_ns ? part->from_ns : m->oldest_ns;
    m->newest_ns = part->from_ns > m->newest_ns ? part->from_ns : m->newest_ns;
    return db_step(&m->db, st, err) == 0;
}

/* Forgets the set that was summed last. */
static bool begin_set(struct summing *m, struct err *err)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        free(m->parts[i].sums);
    }
    m->n_parts = 0;
    m->labelled.merge = merge_free(m->labelled.merge);
    m->unlabelled.merge = merge_free(m->unlabelled.merge);
    map_free(m->known, NULL);
    m->known = map_new();
    return m->known != NULL || err_memory(err);
}

static bool sum_set(struct summing *m, const struct day_set *set, struct err *err)
{
    bool ok = begin_set(m, err) && write_set(m, set, err);
    for (const struct day_series *s = set->series; ok && s != NULL; s = s->next) {
        ok = add_points(m, s, err);
    }
    ok = ok && finish_part(m, &m->labelled, err) && finish_part(m, &m->unlabelled, err);
    for (size_t i = 0; ok && i < m->n_parts; i++) {
        ok = m->parts[i].size == 0 || write_part(m, &m->parts[i], err);
    }
    return ok;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool write_state(struct summing *m, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_NOTE_PUT, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, m->profiles_n);
    sqlite3_bind_int64(st, 2, m->oldest_ns);
    sqlite3_bind_int64(st, 3, m->newest_ns);
    sqlite3_bind_int64(st, 4, m->o->key);
    sqlite3_bind_int64(st, 5, DB_SEALED);
    return db_step(&m->db, st, err) == 0;
}

static bool open_sources(struct summing *m, struct err *err)
{
    m->sources = calloc(m->o->n_files, sizeof(m->sources[0]));
    if (m->sources == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < m->o->n_files; i++) {
        struct db *db = &m->sources[i];
        bool empty = false;
        bool failed = false;
        if (!db_open_still(db, m->o->files[i]->path, &empty, err)) {
            return err_wrap(err, "%s", m->o->files[i]->path);
        }
        m->n_sources++;
        if (empty || sqlite3_exec(db->handle, SOURCE_CACHE, NULL, NULL, NULL) != SQLITE_OK) {
            return err_set(err, ERR_INPUT, "%s: it cannot be read", m->o->files[i]->path);
        }
        if (!day_sets_add(&m->sets, db, i, &failed, err)) {
            return err_wrap(err, "%s", m->o->files[i]->path);
        }
    }
    day_sets_sort(&m->sets);
    return true;
}

static bool build_all(struct summing *m, struct err *err)
{
    bool ok = open_sources(m, err) && db_run(&m->db, SQL_BEGIN, err);
    for (size_t i = 0; ok && i < m->sets.n; i++) {
        ok = sum_set(m, m->sets.at[i], err);
    }
    return ok && write_state(m, err) && db_run(&m->db, SQL_COMMIT, err);
}

static void summing_done(struct summing *m)
{
    db_close(&m->db);
    for (size_t i = 0; i < m->n_sources; i++) {
        db_close(&m->sources[i]);
    }
    free(m->sources);
    day_sets_done(&m->sets);
    for (size_t i = 0; i < m->n_parts; i++) {
        free(m->parts[i].sums);
    }
    free(m->parts);
    merge_free(m->labelled.merge);
    merge_free(m->unlabelled.merge);
    map_free(m->known, NULL);
    buf_done(&m->no_labels);
    buf_done(&m->out);
    buf_done(&m->blob);
}

bool summing_build(struct store *s, const struct summing_options *o, struct err *err)
{
    struct summing m = {.store = s, .o = o, .oldest_ns = INT64_MAX, .db = {.data_fd = -1}};
    buf_init(&m.out, RESULT_BYTES_MAX);
    buf_init(&m.blob, STORE_BLOB_MAX);
    buf_init(&m.no_labels, STORE_BLOB_MAX);
    bool ok =
        day_sets_init(&m.sets) ? db_make_whole(&m.db, o->path, PAGE_BYTES, err) : err_memory(err);
    ok = ok && (blob_put_labels(NULL, 0, &m.no_labels) || err_memory(err));
    ok = ok && build_all(&m, err) && db_finish_whole(&m.db, err);
    summing_done(&m);
    return ok;
}

bool summing_key(const char *path, int64_t *ret, struct err *err)
{
    struct db db;
    bool empty = false;
    if (!db_open_still(&db, path, &empty, err)) {
        return false;
    }
    sqlite3_stmt *st = empty ? NULL : db_statement(&db, SQL_STATE, err);
    bool ok = st != NULL && db_step(&db, st, err) == 1;
    if (ok) {
        *ret = sqlite3_column_int64(st, 4);
        sqlite3_reset(st);
    }
    db_close(&db);
    return ok || (empty && err_set(err, ERR_INPUT, "it is empty"));
}

#include "store/archive/day.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"
#include "pprof/merge.h"
#include "store/archive/day_extents.h"
#include "store/archive/day_sets.h"
#include "store/blob.h"
#include "store/private.h"
#include "store/unsplit.h"

/* Memory for one merge, and for its result. */
#define MERGE_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define RESULT_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define PAGE_BYTES 65536

/* A profile of a source. */
struct member {
    size_t source;
    int64_t id;
    int64_t time_ns;
    int64_t until_ns;
    uint64_t hash;
    int64_t format;
    int64_t size;
    int64_t merge; /* in the source */
    int64_t row;   /* in the new file */
    int64_t new_merge;
    bool unlabelled; /* it belongs to the series without labels alone */
};

/* The bytes of a member, or of a merge of members. */
struct item {
    size_t first; /* index of the first member */
    size_t n;     /* members */
    int64_t until_ns;
    struct sv data; /* valid until the next item is read */
    uint64_t hash;
};

struct building {
    const struct day_options *o;
    struct day *ret;
    struct db db;
    struct day_sets sets;
    struct unsplit unsplit;
    /* The members below belong to the set that is being written. */
    struct member *members; /* in order of time */
    size_t n_members;
    size_t cap;
    struct map *known; /* source and id -> 1 + index of the member */
    int64_t *merge_of; /* by row of the profile: its merge, or -1 */
    size_t merge_of_cap;
    /* Counters of rows. */
    int64_t series_n;
    int64_t series_written;
    int64_t profiles_n;
    int64_t merges_n;
    struct day_extents extents;
    uint64_t singles;
    int64_t oldest_ns;
    int64_t newest_ns;
    struct buf blob;
    struct buf out;
    struct buf copy;
};

static bool source_failed(struct building *b, size_t source)
{
    b->ret->failed_source = source;
    return false;
}

static bool go_on(struct building *b)
{
    return b->o->go_on == NULL || b->o->go_on(b->o->arg);
}

/* ---- members --------------------------------------------------------------------------------- */

struct member_key {
    uint64_t source;
    int64_t id;
};

static size_t find_member(const struct building *b, size_t source, int64_t id)
{
    const struct member_key key = {source, id};
    return (size_t)(uintptr_t)map_get(b->known, (struct sv){(const char *)&key, sizeof(key)});
}

static bool note_member(struct building *b, size_t i)
{
    const struct member_key key = {b->members[i].source, b->members[i].id};
    return map_put(b->known, (struct sv){(const char *)&key, sizeof(key)},
                   (void *)(uintptr_t)(i + 1), NULL);
}

/* Adds the profile of a point of a series, if it was not added yet. */
static bool add_member(struct building *b, const struct day_series *s, int64_t id, struct err *err)
{
    size_t source = s->source;
    struct db *db = b->o->sources[source];
    int64_t series[STORE_PARTS_MAX];
    size_t n_series = 0;
    if (find_member(b, source, id) > 0) {
        return true;
    }
    if (b->n_members == b->cap) {
        size_t cap = b->cap == 0 ? 1024 : 2 * b->cap;
        struct member *members = reallocarray(b->members, cap, sizeof(members[0]));
        if (members == NULL) {
            return err_memory(err);
        }
        b->members = members;
        b->cap = cap;
    }
    sqlite3_stmt *st = db_row_of(db, SQL_PROFILE, id, "a profile is missing", err);
    if (st == NULL) {
        return source_failed(b, source);
    }
    bool one = blob_read_ids(db_blob(st, 6), series, &n_series) && n_series == 1;
    b->members[b->n_members] = (struct member){.source = source,
                                               .id = id,
                                               .time_ns = sqlite3_column_int64(st, 1),
                                               .until_ns = sqlite3_column_int64(st, 2),
                                               .hash = (uint64_t)sqlite3_column_int64(st, 3),
                                               .format = sqlite3_column_int64(st, 4),
                                               .size = sqlite3_column_int64(st, 8),
                                               .merge = sqlite3_column_int64(st, 5)};
    b->members[b->n_members].unlabelled = one && unsplit_no_labels(&b->unsplit, s->labels);
    sqlite3_reset(st);
    return note_member(b, b->n_members++) || err_memory(err);
}

/* Calls fn with each point of a series. */
static bool each_point(struct building *b, const struct day_series *s,
                       bool (*fn)(struct building *b, const struct day_series *s, sqlite3_stmt *st,
                                  struct err *err),
                       struct err *err)
{
    struct db *db = b->o->sources[s->source];
    sqlite3_stmt *st = db_all_points(db, s->id, err);
    int row = -1;
    while (st != NULL && (row = db_step(db, st, err)) == 1) {
        if (!fn(b, s, st, err)) {
            sqlite3_reset(st);
            return false;
        }
    }
    return row == 0 || source_failed(b, s->source);
}

static bool gather_point(struct building *b, const struct day_series *s, sqlite3_stmt *st,
                         struct err *err)
{
    return add_member(b, s, sqlite3_column_int64(st, 2), err);
}

static int by_time(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;
    if (x->time_ns != y->time_ns) {
        return x->time_ns < y->time_ns ? -1 : 1;
    }
    if (x->source != y->source) {
        return x->source < y->source ? -1 : 1;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Lists the profiles of a set in order of time, and numbers their rows. */
static bool gather_members(struct building *b, const struct day_set *set, struct err *err)
{
    b->n_members = 0;
    map_free(b->known, NULL);
    b->known = map_new();
    if (b->known == NULL) {
        return err_memory(err);
    }
    for (const struct day_series *s = set->series; s != NULL; s = s->next) {
        if (!each_point(b, s, gather_point, err)) {
            return false;
        }
    }
    if (b->n_members > 0) {
        qsort(b->members, b->n_members, sizeof(b->members[0]), by_time);
    }
    for (size_t i = 0; i < b->n_members; i++) {
        b->members[i].row = ++b->profiles_n;
        if (!note_member(b, i)) {
            return err_memory(err);
        }
    }
    return true;
}

/* ---- writing rows ---------------------------------------------------------------------------- */

static bool write_set(struct building *b, const struct day_set *set, struct err *err)
{
    sqlite3_stmt *st = db_statement(&b->db, SQL_ADD_SET, err);
    if (st == NULL) {
        return false;
    }
    db_bind_blob(st, 1, set->blob);
    day_extents_add(&b->extents, set->blob.n);
    return db_step(&b->db, st, err) == 0;
}

/* Numbers the rows of the series of a set: equal ones of several sources become one. */
static void number_series(struct building *b, struct day_set *set)
{
    for (struct day_series *s = set->series; s != NULL; s = s->next) {
        if (s->row == 0) {
            day_series_number(s, ++b->series_n);
        }
    }
}

/* Writes the series of a set, in order of their numbers. */
static bool write_series(struct building *b, const struct day_set *set, struct err *err)
{
    for (const struct day_series *s = set->series; s != NULL; s = s->next) {
        if (s->row <= b->series_written) {
            continue; /* equal to one before it */
        }
        sqlite3_stmt *st = db_statement(&b->db, SQL_ADD_SERIES, err);
        if (st == NULL) {
            return false;
        }
        sqlite3_bind_int64(st, 1, b->extents.set_id);
        db_bind_blob(st, 2, s->labels);
        sqlite3_bind_int64(st, 3, (int64_t)s->columns);
        if (db_step(&b->db, st, err) != 0) {
            return false;
        }
        b->series_written = s->row;
        day_extents_add(&b->extents, s->labels.n);
    }
    return true;
}

/* Adds the rows of a list of series of a source to others. */
static bool add_rows(const struct day_set *set, size_t source, struct sv blob,
                     int64_t rows[STORE_PARTS_MAX], size_t *n)
{
    int64_t ids[STORE_PARTS_MAX];
    size_t n_ids = 0;
    if (!blob_read_ids(blob, ids, &n_ids)) {
        return false;
    }
    for (size_t i = 0; i < n_ids; i++) {
        const struct day_series *s = set->series;
        while (s != NULL && (s->source != source || s->id != ids[i])) {
            s = s->next;
        }
        size_t k = 0;
        while (s != NULL && k < *n && rows[k] != s->row) {
            k++;
        }
        if (s == NULL || k == STORE_PARTS_MAX) {
            return false;
        }
        rows[k] = s->row;
        *n = k == *n ? k + 1 : *n;
    }
    return true;
}

static bool write_profile(struct building *b, const struct day_set *set, const struct member *m,
                          struct err *err)
{
    int64_t rows[STORE_PARTS_MAX];
    size_t n = 0;
    struct db *db = b->o->sources[m->source];
    sqlite3_stmt *from = db_row_of(db, SQL_PROFILE, m->id, "a profile is missing", err);
    sqlite3_stmt *st = from != NULL ? db_statement(&b->db, SQL_ADD_PROFILE, err) : NULL;
    if (st == NULL) {
        return from == NULL ? source_failed(b, m->source) : false;
    }
    bool ok = add_rows(set, m->source, db_blob(from, 6), rows, &n);
    sqlite3_reset(from);
    if (!ok) {
        db_damaged(db, "the series of a profile", err);
        return source_failed(b, m->source);
    }
    buf_clear(&b->blob);
    if (!blob_put_ids(rows, n, &b->blob)) {
        return err_memory(err);
    }
    sqlite3_bind_int64(st, 1, m->row);
    sqlite3_bind_int64(st, 2, b->extents.set_id);
    sqlite3_bind_int64(st, 3, m->time_ns);
    sqlite3_bind_int64(st, 4, m->until_ns);
    sqlite3_bind_int64(st, 5, (int64_t)m->hash);
    sqlite3_bind_int64(st, 6, m->format);
    sqlite3_bind_int64(st, 7, m->size);
    sqlite3_bind_int64(st, 8, m->new_merge);
    db_bind_blob(st, 9, (struct sv){b->blob.data, b->blob.len});
    sqlite3_bind_int64(st, 10, DB_NO_PLACE);
    day_extents_add(&b->extents, b->blob.len + 40);
    b->oldest_ns = m->time_ns < b->oldest_ns ? m->time_ns : b->oldest_ns;
    b->newest_ns = m->time_ns > b->newest_ns ? m->time_ns : b->newest_ns;
    return db_step(&b->db, st, err) == 0;
}

static bool write_point(struct building *b, const struct day_series *s, sqlite3_stmt *from,
                        struct err *err)
{
    int64_t sums[SUMMARY_TYPES_MAX];
    size_t n = 0;
    int64_t time_ns = sqlite3_column_int64(from, 0);
    uint64_t hash = (uint64_t)sqlite3_column_int64(from, 1);
    int64_t profile = sqlite3_column_int64(from, 2);
    const uint64_t of[] = {(uint64_t)s->id, (uint64_t)time_ns, hash, (uint64_t)profile};
    size_t i = find_member(b, s->source, profile);
    if (i == 0 || !blob_read_sums(db_blob(from, 3), of, 4, sums, &n)) {
        db_damaged(b->o->sources[s->source], "the sums of a profile", err);
        return source_failed(b, s->source);
    }
    const struct member *m = &b->members[i - 1];
    const uint64_t new_of[] = {(uint64_t)s->row, (uint64_t)time_ns, hash, (uint64_t)m->row};
    sqlite3_stmt *st = db_statement(&b->db, SQL_ADD_POINT, err);
    buf_clear(&b->blob);
    if (st == NULL || !blob_put_sums(sums, n, new_of, 4, &b->blob)) {
        return st != NULL && err_memory(err);
    }
    sqlite3_bind_int64(st, 1, s->row);
    sqlite3_bind_int64(st, 2, time_ns);
    sqlite3_bind_int64(st, 3, (int64_t)hash);
    sqlite3_bind_int64(st, 4, m->row);
    db_bind_blob(st, 5, (struct sv){b->blob.data, b->blob.len});
    day_extents_add(&b->extents, b->blob.len + 30);
    return db_step(&b->db, st, err) == 0;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Copies the bytes of a member, or of the merge that it belongs to, to b->copy. */
static bool read_bytes(struct building *b, const struct member *m, struct item *ret,
                       struct err *err)
{
    struct db *db = b->o->sources[m->source];
    struct sv data = SV("");
    sqlite3_stmt *st = NULL;
    const struct db_body body = {m->id, DB_NO_PLACE, m->size};
    ret->hash = m->hash;
    if (m->merge > 0) {
        st = db_row_of(db, SQL_MERGED_BODY, m->merge, "a merged profile is missing", err);
        if (st == NULL) {
            return source_failed(b, m->source);
        }
        ret->hash = (uint64_t)sqlite3_column_int64(st, 4);
        data = db_blob(st, 6);
    } else if (!db_body(db, &body, &data, err)) {
        return source_failed(b, m->source);
    }
    buf_clear(&b->copy);
    bool ok = buf_append(&b->copy, data.p, data.n);
    sqlite3_reset(st);
    db_body_done(db);
    ret->data = (struct sv){b->copy.data, b->copy.len};
    if (ok && !store_hash_fits(ret->data, ret->hash)) {
        db_damaged(db, "the bytes of a profile have changed", err);
        return source_failed(b, m->source);
    }
    return ok || err_memory(err);
}

static bool write_body(struct building *b, const struct member *m, const struct item *item,
                       struct err *err)
{
    sqlite3_stmt *st = db_statement(&b->db, SQL_ADD_BODY, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, m->row);
    db_bind_blob(st, 2, item->data);
    bool ok = db_step(&b->db, st, err) == 0;
    (void)sqlite3_clear_bindings(st);
    day_extents_add(&b->extents, item->data.n);
    b->singles++;
    return ok;
}

/* Gathers the series of the members of a new merge. */
static bool series_of_merge(struct building *b, const struct day_set *set, int64_t merge,
                            struct err *err)
{
    int64_t rows[STORE_PARTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < b->n_members; i++) {
        const struct member *m = &b->members[i];
        if (m->new_merge != merge) {
            continue;
        }
        struct db *db = b->o->sources[m->source];
        sqlite3_stmt *st = db_row_of(db, SQL_PROFILE, m->id, "a profile is missing", err);
        if (st == NULL) {
            return source_failed(b, m->source);
        }
        bool ok = add_rows(set, m->source, db_blob(st, 6), rows, &n);
        sqlite3_reset(st);
        if (!ok) {
            return err_set(err, ERR_LIMIT, "too many series");
        }
    }
    buf_clear(&b->blob);
    return blob_put_ids(rows, n, &b->blob) || err_memory(err);
}

/* Writes a merge, whose members have its number already. */
static bool write_merge(struct building *b, const struct day_set *set, const struct item *item,
                        struct sv data, uint64_t hash, struct err *err)
{
    const struct member *first = &b->members[item->first];
    if (!series_of_merge(b, set, b->merges_n, err)) {
        return false;
    }
    sqlite3_stmt *st = db_statement(&b->db, SQL_ADD_MERGE, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, b->extents.set_id);
    sqlite3_bind_int64(st, 2, first->time_ns);
    sqlite3_bind_int64(st, 3, item->until_ns);
    sqlite3_bind_int64(st, 4, first->row);
    sqlite3_bind_int64(st, 5, (int64_t)hash);
    sqlite3_bind_int64(st, 6, (int64_t)item->n);
    db_bind_blob(st, 7, (struct sv){b->blob.data, b->blob.len});
    db_bind_blob(st, 8, data);
    bool ok = db_step(&b->db, st, err) == 0;
    (void)sqlite3_clear_bindings(st);
    day_extents_add(&b->extents, b->blob.len + data.n);
    return ok;
}

/* Gives the members of the merge that m belongs to, or m alone, the number of a new merge, and adds
 * them to the item. */
static void take_members(struct building *b, size_t i, int64_t merge, struct item *item)
{
    const struct member of = b->members[i];
    size_t until = of.merge > 0 ? b->n_members : i + 1;
    for (; i < until; i++) {
        struct member *m = &b->members[i];
        if (m->source == of.source && m->merge == of.merge && m->new_merge == 0) {
            m->new_merge = merge;
            item->n++;
            item->until_ns = m->until_ns > item->until_ns ? m->until_ns : item->until_ns;
        }
    }
}

static bool same_cell(const struct building *b, const struct member *x, const struct member *y)
{
    int64_t merge_ns = b->o->merge_ms * NS_PER_MS;
    return merge_ns > 0 && x->time_ns / merge_ns == y->time_ns / merge_ns;
}

/* Returns the next member from i on whose bytes are not written yet and can be merged, or the
 * number of members. */
static size_t next_open(const struct building *b, size_t i)
{
    while (i < b->n_members && (b->members[i].new_merge != 0 || b->members[i].merge < 0)) {
        i++;
    }
    return i;
}

/* Copies the bytes of the members of a merge that has no sample left: it is not written. */
static bool write_apart(struct building *b, int64_t merge, struct err *err)
{
    struct item one;
    bool ok = true;
    for (size_t i = 0; ok && i < b->n_members; i++) {
        struct member *m = &b->members[i];
        if (m->new_merge == merge) {
            m->new_merge = -1;
            ok = read_bytes(b, m, &one, err) && write_body(b, m, &one, err);
        }
    }
    b->merges_n--;
    return ok;
}

/* Writes the merge of n items; of a single one, the bytes that it has. */
static bool write_merged(struct building *b, const struct day_set *set, struct merge *merge,
                         size_t n, struct item *item, struct err *err)
{
    struct item one;
    buf_clear(&b->out);
    if (n > 1) {
        bool ok = merge_write(merge, &b->out, err);
        struct sv data = {b->out.data, b->out.len};
        return ok && (data.n == 0 ? write_apart(b, b->merges_n, err)
                                  : write_merge(b, set, item, data, blob_hash(data, NULL, 0), err));
    }
    if (n == 0) {
        take_members(b, item->first, b->merges_n, item);
    }
    const struct member *first = &b->members[item->first];
    if (first->merge <= 0) {
        return write_apart(b, b->merges_n, err);
    }
    return read_bytes(b, first, &one, err) && write_merge(b, set, item, one.data, one.hash, err);
}

/* Returns true if a cell may have unsplit profiles beside others: some of it, and not all, belong
 * to the series without labels alone. */
static bool is_mixed(const struct building *b, size_t i)
{
    const struct member first = b->members[i];
    bool unlabelled = false;
    bool others = false;
    while (i > 0 && same_cell(b, &first, &b->members[i - 1])) {
        i--;
    }
    for (; i < b->n_members && same_cell(b, &first, &b->members[i]); i++) {
        unlabelled = unlabelled || b->members[i].unlabelled;
        others = others || !b->members[i].unlabelled;
    }
    return unlabelled && others;
}

/* Reads the bytes of a member of a cell, and whether they are unsplit among others. */
static bool read_of_cell(struct building *b, const struct member *m, bool mixed, struct item *ret,
                         bool *ret_unsplit, struct err *err)
{
    *ret_unsplit = false;
    return go_on(b) && read_bytes(b, m, ret, err) &&
           (!mixed || !m->unlabelled || unsplit_read(&b->unsplit, ret->data, ret_unsplit, err));
}

/* Merges the profiles of the cell that begins with a member: all that are unsplit if this is, or
 * all others. If there is only one, its bytes are copied. */
static bool write_cell(struct building *b, const struct day_set *set, size_t i, struct err *err)
{
    struct merge_options mo = {.bytes_max = MERGE_BYTES_MAX, .mode = MERGE_SUM};
    struct merge *merge = merge_new(&mo, err);
    struct item item = {.first = i};
    struct item one;
    size_t n = 0;
    int64_t number = ++b->merges_n;
    const struct member first = b->members[i];
    bool mixed = is_mixed(b, i);
    bool first_unsplit = false;
    bool ok = merge != NULL;
    if (mixed) {
        unsplit_take_set(&b->unsplit, set->blob);
    }
    for (; ok && i < b->n_members && (n == 0 || same_cell(b, &first, &b->members[i]));
         i = next_open(b, i + 1)) {
        struct err why = ERR_INIT;
        bool unsplit;
        ok = read_of_cell(b, &b->members[i], mixed, &one, &unsplit, err);
        first_unsplit = n == 0 ? unsplit : first_unsplit;
        if (ok && unsplit != first_unsplit) {
            continue;
        }
        if (!ok || !merge_add(merge, one.data, &why)) {
            break; /* it begins a merge of its own */
        }
        n++;
        take_members(b, i, number, &item);
    }
    ok = ok && write_merged(b, set, merge, n, &item, err);
    merge_free(merge);
    return ok;
}

/* Writes the bytes of all profiles of a set. */
static bool write_bytes(struct building *b, const struct day_set *set, struct err *err)
{
    struct item one;
    bool ok = true;
    for (size_t i = 0; ok && i < b->n_members; i++) {
        struct member *m = &b->members[i];
        if (m->merge < 0 && m->new_merge == 0) {
            ok = go_on(b) && read_bytes(b, m, &one, err) && write_body(b, m, &one, err);
            m->new_merge = -1;
        } else if (m->new_merge == 0) {
            ok = write_cell(b, set, i, err);
        }
    }
    return ok;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Keeps the merges of the members, which are known when their bytes are written. */
static bool keep_merges(struct building *b, struct err *err)
{
    size_t n = (size_t)b->profiles_n;
    if (n > b->merge_of_cap) {
        int64_t *merge_of = reallocarray(b->merge_of, 2 * n, sizeof(merge_of[0]));
        if (merge_of == NULL) {
            return err_memory(err);
        }
        b->merge_of = merge_of;
        b->merge_of_cap = 2 * n;
    }
    for (size_t i = 0; i < b->n_members; i++) {
        b->merge_of[b->members[i].row - 1] = b->members[i].new_merge;
    }
    return true;
}

static bool write_bytes_of_set(struct building *b, struct day_set *set, struct err *err)
{
    number_series(b, set);
    return day_extents_begin(&b->extents, &b->db, err) && gather_members(b, set, err) &&
           write_bytes(b, set, err) && keep_merges(b, err) &&
           day_extents_end(&b->extents, &b->db, err);
}

static bool write_rows_of_set(struct building *b, const struct day_set *set, int64_t profiles,
                              struct err *err)
{
    if (!day_extents_begin(&b->extents, &b->db, err) || !write_set(b, set, err) ||
        !write_series(b, set, err) || !gather_members(b, set, err)) {
        return false;
    }
    if (b->profiles_n > profiles) {
        return err_set(err, ERR_INPUT, "a file has changed while its day was built");
    }
    for (size_t i = 0; i < b->n_members; i++) {
        b->members[i].new_merge = b->merge_of[b->members[i].row - 1];
        if (!go_on(b) || !write_profile(b, set, &b->members[i], err)) {
            return false;
        }
    }
    bool ok = true;
    for (const struct day_series *s = set->series; ok && s != NULL; s = s->next) {
        ok = go_on(b) && each_point(b, s, write_point, err);
    }
    return ok && day_extents_end(&b->extents, &b->db, err);
}

/* Writes the bytes of all sets, then all other rows. If the rows of a set followed its bytes,
 * SQLite would scatter them: it moves the first rows of a table to the end of the file when they
 * fill a page, and later rows fill up pages that began far before. */
static bool write_sets(struct building *b, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < b->sets.n; i++) {
        ok = write_bytes_of_set(b, b->sets.at[i], err);
    }
    int64_t profiles = b->profiles_n;
    b->profiles_n = 0;
    ok = ok && day_extents_take(&b->extents, false, b->ret, err) &&
         db_data_bytes(&b->db, &b->ret->rows_from, err);
    for (size_t i = 0; ok && i < b->sets.n; i++) {
        ok = write_rows_of_set(b, b->sets.at[i], profiles, err);
    }
    return ok && day_extents_take(&b->extents, true, b->ret, err);
}

static bool write_state(struct building *b, struct err *err)
{
    sqlite3_stmt *st = db_statement(&b->db, SQL_NOTE_PUT, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, b->profiles_n);
    sqlite3_bind_int64(st, 2, b->oldest_ns);
    sqlite3_bind_int64(st, 3, b->newest_ns);
    sqlite3_bind_int64(st, 4, 0);
    sqlite3_bind_int64(st, 5, DB_SEALED);
    if (db_step(&b->db, st, err) != 0) {
        return false;
    }
    st = db_statement(&b->db, SQL_NOTE_MERGED, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, b->profiles_n - (int64_t)b->singles);
    return db_step(&b->db, st, err) == 0;
}

/* Checks that the new file has as many profiles as its sources. A source with profiles that no
 * series has, such as recordings of an earlier version, is at fault: its file stays as it is. */
static bool check_source(struct building *b, size_t source, uint64_t *total, struct err *err)
{
    struct db *db = b->o->sources[source];
    sqlite3_stmt *st = db_statement(db, SQL_STATE, err);
    if (st == NULL || db_step(db, st, err) != 1) {
        return source_failed(b, source);
    }
    *total += (uint64_t)sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return true;
}

static bool build_all(struct building *b, struct err *err)
{
    uint64_t total = 0;
    for (size_t i = 0; i < b->o->n_sources; i++) {
        bool failed;
        if (!day_sets_add(&b->sets, b->o->sources[i], i, &failed, err)) {
            return failed ? source_failed(b, i) : false;
        }
        if (!check_source(b, i, &total, err)) {
            return false;
        }
    }
    day_sets_sort(&b->sets);
    if (!db_run(&b->db, SQL_BEGIN, err) || !write_sets(b, err)) {
        return false;
    }
    if ((uint64_t)b->profiles_n != total) {
        return err_set(err, ERR_INPUT, "%lld of %llu profiles have series",
                       (long long)b->profiles_n, (unsigned long long)total);
    }
    b->ret->profiles = total;
    return write_state(b, err) && db_run(&b->db, SQL_COMMIT, err);
}

bool day_build(const struct day_options *o, struct day *ret, struct err *err)
{
    struct building b = {.o = o, .ret = ret, .oldest_ns = INT64_MAX, .db = {.data_fd = -1}};
    *ret = (struct day){.failed_source = SIZE_MAX};
    buf_init(&b.blob, STORE_BLOB_MAX);
    buf_init(&b.out, RESULT_BYTES_MAX);
    buf_init(&b.copy, RESULT_BYTES_MAX + MERGE_BYTES_MAX);
    bool ok =
        day_sets_init(&b.sets) ? db_make_whole(&b.db, o->path, PAGE_BYTES, err) : err_memory(err);
    ok = unsplit_init(&b.unsplit, err) && ok && build_all(&b, err) && db_finish_whole(&b.db, err);
    unsplit_done(&b.unsplit);
    db_close(&b.db);
    day_sets_done(&b.sets);
    map_free(b.known, NULL);
    free(b.members);
    free(b.merge_of);
    free(b.extents.at);
    buf_done(&b.blob);
    buf_done(&b.out);
    buf_done(&b.copy);
    if (!ok) {
        free(ret->ranges);
        ret->ranges = NULL;
        ret->n_ranges = 0;
    }
    return ok;
}

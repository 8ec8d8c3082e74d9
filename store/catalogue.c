#include "store/catalogue.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define ROW_BYTES_MAX ((size_t)16 * 1024 * 1024)
/* The computed labels: __name__, __type__, __unit__, __period_type__, __period_unit__,
 * __profile_type__, __service_name__, and service_name if the profile has none. */
#define COMPUTED_MAX 8
#define NO_SERVICE "unknown_service"

bool catalogue_init(struct catalogue *c, const struct selector *selector, struct err *err)
{
    struct rng rng;
    rng_seed_random(&rng);
    *c = (struct catalogue){.selector = selector,
                            .arena = arena_new(CATALOGUE_BYTES_MAX),
                            .series = map_new(),
                            .known = map_new(),
                            .seeds = {rng_next(&rng), rng_next(&rng)},
                            .row_arena = arena_new(ROW_BYTES_MAX)};
    if (c->arena == NULL || c->series == NULL || c->known == NULL || c->row_arena == NULL) {
        catalogue_done(c);
        return err_memory(err);
    }
    return true;
}

void catalogue_done(struct catalogue *c)
{
    arena_free(c->arena);
    arena_free(c->row_arena);
    map_free(c->series, NULL);
    map_free(c->known, NULL);
    map_free(c->sets, NULL);
    free(c->rows);
    free(c->matches);
    *c = (struct catalogue){.selector = NULL};
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* A row of the table of series. */
struct row {
    int64_t id;
    uint64_t columns;
    int64_t set_id;
    uint64_t set_hash;
    struct set set;
    const struct label *sample;
    size_t n_sample;
};

struct label_list {
    struct label *at;
    size_t n;
};

/* Adds a label unless there is one of this name. */
static void add(struct label_list *l, struct sv name, struct sv value)
{
    size_t at = l->n;
    while (at > 0 && sv_cmp(l->at[at - 1].name, name) > 0) {
        at--;
    }
    if (value.n == 0 || (at > 0 && sv_eq(l->at[at - 1].name, name))) {
        return;
    }
    memmove(&l->at[at + 1], &l->at[at], (l->n - at) * sizeof(l->at[0]));
    l->at[at] = (struct label){name, value};
    l->n++;
}

/* Returns true for labels that Pyroscope does not show. */
static bool is_hidden(struct sv name)
{
    return sv_eq_str(name, LABEL_DELTA) || sv_eq_str(name, "__session_id__");
}

static struct sv printed(char *text)
{
    return sv_from(text);
}

/* Adds the computed labels. They come first, because the first label of a name wins. */
static void add_computed(struct label_list *l, const struct row *r, size_t column,
                         struct arena *arena)
{
    const struct set *set = &r->set;
    const struct set_type *t = &set->types[column];
    struct sv name = label_value(set->labels, set->n_labels, SV(LABEL_NAME));
    struct sv service = label_value(set->labels, set->n_labels, SV(LABEL_SERVICE_NAME));
    if (service.n == 0) {
        service = label_value(r->sample, r->n_sample, SV(LABEL_SERVICE_NAME));
    }
    service = service.n == 0 ? SV(NO_SERVICE) : service;
    add(l, SV("__type__"), t->type);
    add(l, SV("__unit__"), t->unit);
    add(l, SV("__period_type__"), set->period.type);
    add(l, SV("__period_unit__"), set->period.unit);
    add(l, SV("__profile_type__"),
        printed(arena_printf(arena, "%.*s:%.*s:%.*s:%.*s:%.*s", SV_ARG(name), SV_ARG(t->type),
                             SV_ARG(t->unit), SV_ARG(set->period.type), SV_ARG(set->period.unit))));
    add(l, SV("__service_name__"), service);
    add(l, SV(LABEL_SERVICE_NAME), service);
}

static bool is_computed(struct sv name)
{
    static const char *const names[] = {"__type__",        "__unit__",         "__period_type__",
                                        "__period_unit__", "__profile_type__", "__service_name__"};
    return sv_in(name, names, sizeof(names) / sizeof(names[0]));
}

static void add_given(struct label_list *l, const struct label *labels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_hidden(labels[i].name) && !is_computed(labels[i].name)) {
            add(l, labels[i].name, labels[i].value);
        }
    }
}

/* Makes all labels of a series, in memory of the arena. */
static bool make_labels(const struct row *r, size_t column, struct arena *arena,
                        struct label_list *ret)
{
    size_t max = r->set.n_labels + r->n_sample + COMPUTED_MAX;
    *ret = (struct label_list){.at = arena_array(arena, max, sizeof(ret->at[0]))};
    if (ret->at == NULL) {
        return false;
    }
    add_computed(ret, r, column, arena);
    add_given(ret, r->set.labels, r->set.n_labels);
    add_given(ret, r->sample, r->n_sample);
    return true;
}

/* ---- series ---------------------------------------------------------------------------------- */

static struct sv copy(struct arena *arena, struct sv text, bool *ok)
{
    const char *p = arena_strndup(arena, text.p, text.n);
    *ok = *ok && p != NULL;
    return (struct sv){p, text.n};
}

static const struct label *copy_labels(struct arena *arena, const struct label *labels, size_t n,
                                       bool *ok)
{
    struct label *copies = arena_array(arena, n + 1, sizeof(copies[0]));
    *ok = *ok && copies != NULL;
    for (size_t i = 0; *ok && i < n; i++) {
        copies[i].name = copy(arena, labels[i].name, ok);
        copies[i].value = copy(arena, labels[i].value, ok);
    }
    return copies;
}

static struct store_series *new_series(struct catalogue *c, const struct row *r, size_t column,
                                       const struct label_list *l)
{
    bool ok = true;
    struct store_series *s = arena_alloc(c->arena, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    *s = (struct store_series){.id = map_count(c->series) + 1,
                               .set = r->set_hash,
                               .labels = copy_labels(c->arena, l->at, l->n, &ok),
                               .n_labels = l->n,
                               .n_sample_labels = r->n_sample,
                               .column = column};
    s->sample_labels = ok ? copy_labels(c->arena, r->sample, r->n_sample, &ok) : NULL;
    return ok ? s : NULL;
}

/* Hashes the parts that make series differ: labels, labels of samples, and column. */
static void hash_series(const struct catalogue *c, const struct row *r, size_t column,
                        const struct label_list *l, uint64_t ret[2])
{
    const struct {
        const struct label *at;
        size_t n;
    } lists[] = {{l->at, l->n}, {r->sample, r->n_sample}};
    for (size_t h = 0; h < 2; h++) {
        uint64_t hash = hash_bytes(&column, sizeof(column), c->seeds[h]);
        for (size_t k = 0; k < 2; k++) {
            hash = hash_bytes(&lists[k].n, sizeof(lists[k].n), hash);
            for (size_t i = 0; i < lists[k].n; i++) {
                hash = hash_bytes(lists[k].at[i].name.p, lists[k].at[i].name.n, hash);
                hash = hash_bytes(lists[k].at[i].value.p, lists[k].at[i].value.n, hash);
            }
        }
        ret[h] = hash;
    }
}

static const struct store_series *find_series(struct catalogue *c, const struct row *r,
                                              size_t column, const struct label_list *l,
                                              struct err *err)
{
    uint64_t hash[2];
    hash_series(c, r, column, l, hash);
    struct sv key = {(const char *)hash, sizeof(hash)};
    struct store_series *s = map_get(c->series, key);
    if (s != NULL) {
        return s;
    }
    s = new_series(c, r, column, l);
    if (s == NULL || !map_put(c->series, key, s, NULL)) {
        err_set(err, ERR_LIMIT, "more series match than fit in %zu bytes", CATALOGUE_BYTES_MAX);
        return NULL;
    }
    return s;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool grow(void **p, size_t *cap, size_t n, size_t size, struct err *err)
{
    if (n < *cap) {
        return true;
    }
    size_t more = *cap == 0 ? 64 : 2 * *cap;
    void *bigger = reallocarray(*p, more, size);
    if (bigger == NULL) {
        return err_memory(err);
    }
    *p = bigger;
    *cap = more;
    return true;
}

/* Finds the series of a column; NULL if it does not match the selector. */
static bool match_column(struct catalogue *c, const struct row *r, size_t column,
                         const struct store_series **ret, struct err *err)
{
    struct label_list l;
    *ret = NULL;
    if (!make_labels(r, column, c->row_arena, &l)) {
        return err_memory(err);
    }
    if (c->selector != NULL && !selector_matches(c->selector, l.at, l.n)) {
        return true;
    }
    *ret = find_series(c, r, column, &l, err);
    return *ret != NULL;
}

static bool add_match(struct catalogue *c, int64_t row, const struct store_series *series,
                      struct err *err)
{
    void *matches = c->matches;
    bool ok = grow(&matches, &c->matches_cap, c->n_matches, sizeof(c->matches[0]), err);
    c->matches = matches;
    if (ok) {
        c->matches[c->n_matches++] = (struct catalogue_match){row, series};
    }
    return ok;
}

/* Returns true if the selector asks for one service, as nearly all queries do, and the row belongs
 * to another service. */
static bool is_other_service(const struct catalogue *c, const struct row *r)
{
    const struct sv *want =
        c->selector != NULL ? selector_equal(c->selector, LABEL_SERVICE_NAME) : NULL;
    struct sv own = label_value(r->set.labels, r->set.n_labels, SV(LABEL_SERVICE_NAME));
    return want != NULL && own.n > 0 && !sv_eq(own, *want);
}

/* If the last row and an earlier row of the same set both have matches, marks the last row and the
 * first such row as shared. Comparing with the first one is enough, because every further row of
 * the set does. */
static bool note_set(struct catalogue *c, int64_t set_id, struct err *err)
{
    struct catalogue_row *row = &c->rows[c->n_rows - 1];
    struct sv key = {(const char *)&set_id, sizeof(set_id)};
    if (!c->wants_shared || row->matched == 0) {
        return true;
    }
    size_t first = (size_t)(uintptr_t)map_get(c->sets, key);
    if (first > 0) {
        c->rows[first - 1].shared = true;
        row->shared = true;
    }
    return first > 0 || map_put(c->sets, key, (void *)(uintptr_t)c->n_rows, NULL) ||
           err_memory(err);
}

static bool add_row(struct catalogue *c, const struct catalogue_row *row, struct err *err)
{
    void *rows = c->rows;
    bool ok = grow(&rows, &c->rows_cap, c->n_rows, sizeof(c->rows[0]), err);
    c->rows = rows;
    if (!ok) {
        return false;
    }
    c->rows[c->n_rows++] = *row;
    return note_set(c, row->set_id, err);
}

static bool take_row(struct catalogue *c, const struct row *r, struct err *err)
{
    struct catalogue_row row = {.row = r->id, .set_id = r->set_id, .columns = r->columns};
    for (size_t column = 0; column < r->set.n_types && !is_other_service(c, r); column++) {
        const struct store_series *series = NULL;
        if ((r->columns >> column & 1) == 0) {
            continue;
        }
        if (!match_column(c, r, column, &series, err) ||
            (series != NULL && !add_match(c, r->id, series, err))) {
            return false;
        }
        row.matched |= (uint64_t)(series != NULL) << column;
    }
    return add_row(c, &row, err);
}

static bool read_row(struct catalogue *c, struct db *db, sqlite3_stmt *st, struct row *r,
                     struct err *err)
{
    r->id = sqlite3_column_int64(st, 0);
    r->columns = (uint64_t)sqlite3_column_int64(st, 1);
    r->set_id = sqlite3_column_int64(st, 4);
    struct sv set = db_blob(st, 3);
    r->set_hash = hash_bytes(set.p, set.n, 0);
    return (blob_read_labels(db_blob(st, 2), c->row_arena, &r->sample, &r->n_sample) &&
            blob_read_set(db_blob(st, 3), c->row_arena, &r->set)) ||
           db_damaged(db, "the labels of a series", err);
}

/* Forgets the file that was read last. */
static bool begin_file(struct catalogue *c, struct err *err)
{
    c->n_rows = 0;
    c->n_matches = 0;
    if (!c->wants_shared) {
        return true;
    }
    map_free(c->sets, NULL);
    c->sets = map_new();
    return c->sets != NULL || err_memory(err);
}

/* The series of a text, which many files have: they are made once. */
struct known_text {
    uint64_t done; /* bit i: the series of column i is known */
    size_t n_types;
    const struct store_series *series[]; /* by column; NULL: it does not match */
};

static struct known_text *new_known(struct catalogue *c, const struct series_text *text,
                                    const struct row *r, struct err *err)
{
    size_t n = r->set.n_types;
    struct sv key = {(const char *)&text->number, sizeof(text->number)};
    struct known_text *k = arena_alloc(c->arena, sizeof(*k) + n * sizeof(void *));
    if (k == NULL || !map_put(c->known, key, k, NULL)) {
        err_memory(err);
        return NULL;
    }
    *k = (struct known_text){.n_types = n, .done = is_other_service(c, r) ? UINT64_MAX : 0};
    for (size_t i = 0; i < n; i++) {
        k->series[i] = NULL;
    }
    return k;
}

/* Returns the series of a row's text, at least for the columns of the row. */
static struct known_text *know(struct catalogue *c, const struct series_row *from, struct err *err)
{
    struct sv key = {(const char *)&from->text->number, sizeof(from->text->number)};
    struct known_text *k = map_get(c->known, key);
    struct row r = {.id = from->id, .columns = from->columns, .set_id = from->set_id};
    if (k != NULL && (from->columns & ~k->done) == 0) {
        return k;
    }
    arena_reset(c->row_arena);
    if (!blob_read_labels(from->text->labels, c->row_arena, &r.sample, &r.n_sample) ||
        !blob_read_set(from->text->set, c->row_arena, &r.set)) {
        err_set(err, ERR_INPUT, "damaged: the labels of a series");
        return NULL;
    }
    r.set_hash = hash_bytes(from->text->set.p, from->text->set.n, 0);
    k = k != NULL ? k : new_known(c, from->text, &r, err);
    for (size_t i = 0; k != NULL && i < k->n_types; i++) {
        bool wanted = (from->columns & ~k->done) >> i & 1;
        if (wanted && !match_column(c, &r, i, &k->series[i], err)) {
            return NULL;
        }
    }
    if (k != NULL) {
        k->done |= from->columns;
    }
    return k;
}

bool catalogue_read_list(struct catalogue *c, const struct series_list *list, struct err *err)
{
    bool ok = begin_file(c, err);
    for (size_t i = 0; ok && i < list->n; i++) {
        const struct series_row *from = &list->rows[i];
        const struct known_text *k = know(c, from, err);
        struct catalogue_row row = {
            .row = from->id, .set_id = from->set_id, .columns = from->columns};
        for (size_t col = 0; k != NULL && ok && col < k->n_types; col++) {
            if ((from->columns >> col & 1) != 0 && k->series[col] != NULL) {
                row.matched |= UINT64_C(1) << col;
                ok = add_match(c, from->id, k->series[col], err);
            }
        }
        ok = ok && k != NULL && add_row(c, &row, err);
    }
    return ok;
}

struct series_list *catalogue_list_of(struct series_lists *lists, struct db *db, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_ALL_SERIES, err);
    struct series_list *l = series_list_new();
    int row = -1;
    if (l == NULL) {
        err_memory(err);
        return NULL;
    }
    while (st != NULL && (row = db_step(db, st, err)) == 1) {
        if (!series_lists_add_row(lists, l, sqlite3_column_int64(st, 0),
                                  (uint64_t)sqlite3_column_int64(st, 1),
                                  sqlite3_column_int64(st, 4), db_blob(st, 3), db_blob(st, 2))) {
            row = -1;
            err_memory(err);
            sqlite3_reset(st);
            break;
        }
    }
    if (row != 0) {
        series_lists_release(lists, l);
        return NULL;
    }
    return l;
}

bool catalogue_read(struct catalogue *c, struct db *db, struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_ALL_SERIES, err);
    int row = -1;
    if (!begin_file(c, err)) {
        return false;
    }
    while (st != NULL && (row = db_step(db, st, err)) == 1) {
        struct row r;
        arena_reset(c->row_arena);
        if (!read_row(c, db, st, &r, err) || !take_row(c, &r, err)) {
            sqlite3_reset(st);
            return false;
        }
    }
    return row == 0;
}

static int by_set(const void *a, const void *b)
{
    const struct catalogue_row *x = *(const struct catalogue_row *const *)a;
    const struct catalogue_row *y = *(const struct catalogue_row *const *)b;
    if (x->set_id != y->set_id) {
        return x->set_id < y->set_id ? -1 : 1;
    }
    return x->row < y->row ? -1 : x->row > y->row;
}

size_t catalogue_by_set(const struct catalogue *c, int64_t after_set,
                        const struct catalogue_row **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        if (c->rows[i].matched != 0 && c->rows[i].set_id > after_set) {
            ret[n++] = &c->rows[i];
        }
    }
    if (n > 1) {
        qsort(ret, n, sizeof(void *), by_set);
    }
    return n;
}

const struct catalogue_row *catalogue_row(const struct catalogue *c, int64_t row)
{
    size_t lo = 0;
    size_t hi = c->n_rows;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->rows[mid].row < row) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < c->n_rows && c->rows[lo].row == row ? &c->rows[lo] : NULL;
}

size_t catalogue_first_match(const struct catalogue *c, int64_t row)
{
    size_t lo = 0;
    size_t hi = c->n_matches;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->matches[mid].row < row) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < c->n_matches && c->matches[lo].row == row ? lo : c->n_matches;
}

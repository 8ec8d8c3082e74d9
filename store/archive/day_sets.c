#include "store/archive/day_sets.h"

#include <stdlib.h>

#include "base/labels.h"
#include "store/blob.h"
#include "store/private.h"

/* Memory for the labels of all series. */
#define TEXTS_MAX ((size_t)256 * 1024 * 1024)
/* Memory for those of one set, as numbers and texts. */
#define SCRATCH_MAX (16 * STORE_BLOB_MAX)

bool day_sets_init(struct day_sets *sets)
{
    *sets = (struct day_sets){
        .texts = arena_new(TEXTS_MAX), .scratch = arena_new(SCRATCH_MAX), .by_blob = map_new()};
    return sets->texts != NULL && sets->scratch != NULL && sets->by_blob != NULL;
}

void day_sets_done(struct day_sets *sets)
{
    arena_free(sets->texts);
    arena_free(sets->scratch);
    map_free(sets->by_blob, NULL);
    free((void *)sets->at);
}

static struct sv keep(struct day_sets *sets, struct sv text)
{
    return (struct sv){arena_strndup(sets->texts, text.p, text.n), text.n};
}

static bool has_room(struct day_sets *sets)
{
    if (sets->n < sets->cap) {
        return true;
    }
    size_t cap = sets->cap == 0 ? 256 : 2 * sets->cap;
    struct day_set **at = reallocarray((void *)sets->at, cap, sizeof(struct day_set *));
    if (at != NULL) {
        sets->at = at;
        sets->cap = cap;
    }
    return at != NULL;
}

/* Reads the labels that decide the place of a set. A damaged one has none: whoever reads the new
 * file reports it. */
static bool read_place(struct day_sets *sets, struct day_set *set)
{
    struct set labels;
    arena_reset(sets->scratch);
    if (!blob_read_set(set->blob, sets->scratch, &labels)) {
        set->service = SV("");
        set->type = SV("");
        return true;
    }
    set->service = keep(sets, label_value(labels.labels, labels.n_labels, SV(LABEL_SERVICE_NAME)));
    set->type = keep(sets, label_value(labels.labels, labels.n_labels, SV(LABEL_NAME)));
    return set->service.p != NULL && set->type.p != NULL;
}

/* NULL if out of memory. */
static struct day_set *find_set(struct day_sets *sets, struct sv blob)
{
    struct day_set *set = map_get(sets->by_blob, blob);
    if (set != NULL) {
        return set;
    }
    set = arena_alloc(sets->texts, sizeof(*set));
    struct sv copy = keep(sets, blob);
    if (set == NULL || copy.p == NULL || !has_room(sets)) {
        return NULL;
    }
    *set = (struct day_set){.blob = copy, .number = sets->n};
    set->last = &set->series;
    if (!read_place(sets, set) || !map_put(sets->by_blob, blob, set, NULL)) {
        return NULL;
    }
    sets->at[sets->n++] = set;
    return set;
}

static bool add_series(struct day_sets *sets, size_t source, sqlite3_stmt *st)
{
    struct day_set *set = find_set(sets, db_blob(st, 3));
    struct day_series *s = set != NULL ? arena_alloc(sets->texts, sizeof(*s)) : NULL;
    if (s == NULL) {
        return false;
    }
    *s = (struct day_series){.source = source,
                             .id = sqlite3_column_int64(st, 0),
                             .columns = (uint64_t)sqlite3_column_int64(st, 1),
                             .labels = keep(sets, db_blob(st, 2))};
    *set->last = s;
    set->last = &s->next;
    return s->labels.p != NULL;
}

bool day_sets_add(struct day_sets *sets, struct db *db, size_t source, bool *ret_failed,
                  struct err *err)
{
    sqlite3_stmt *st = db_statement(db, SQL_ALL_SERIES, err);
    int row = -1;
    *ret_failed = false;
    while (st != NULL && (row = db_step(db, st, err)) == 1) {
        if (!add_series(sets, source, st)) {
            sqlite3_reset(st);
            return err_memory(err);
        }
    }
    *ret_failed = row != 0;
    return row == 0;
}

void day_series_number(struct day_series *s, int64_t row)
{
    s->row = row;
    for (struct day_series *other = s->next; other != NULL; other = other->next) {
        if (other->row == 0 && sv_eq(other->labels, s->labels)) {
            other->row = row;
            s->columns |= other->columns;
        }
    }
}

static int by_place(const void *a, const void *b)
{
    const struct day_set *x = *(struct day_set *const *)a;
    const struct day_set *y = *(struct day_set *const *)b;
    int order = sv_cmp(x->service, y->service);
    order = order != 0 ? order : sv_cmp(x->type, y->type);
    return order != 0 ? order : x->number < y->number ? -1 : x->number > y->number;
}

void day_sets_sort(struct day_sets *sets)
{
    if (sets->n > 1) {
        qsort((void *)sets->at, sets->n, sizeof(struct day_set *), by_place);
    }
}

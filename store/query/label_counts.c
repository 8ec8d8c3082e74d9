#include "store/query/label_counts.h"

#include <stdlib.h>
#include <string.h>

#include "store/query/query_private.h"

/* Number of series between two checks of the deadline. */
#define SERIES_A_LOOK 1024

struct counting {
    const struct query *q;
    struct budget budget;
    struct table names;
    struct table pairs; /* the number of the name, then the value */
    struct buf key;
    uint64_t *series; /* of each pair */
    size_t cap;
    size_t visited;
    bool is_cut;
    struct err err;
};

/* ---- counting -------------------------------------------------------------------------------- */

static bool add_label(struct counting *c, const struct label *l)
{
    uint32_t name;
    uint32_t i;
    size_t before = c->pairs.n;
    uint64_t *series =
        budget_grow(&c->budget, c->series, &c->cap, before + 1, sizeof(*series), &c->err);
    if (series == NULL) {
        return false;
    }
    c->series = series;
    buf_clear(&c->key);
    if (!merge_table_add(&c->names, &c->budget, l->name.p, l->name.n, l->name.n, &name, &c->err)) {
        return false;
    }
    buf_append(&c->key, (const char *)&name, sizeof(name));
    if (!buf_append(&c->key, l->value.p, l->value.n)) {
        return err_memory(&c->err);
    }
    if (!merge_table_add(&c->pairs, &c->budget, c->key.data, c->key.len, c->key.len, &i, &c->err)) {
        return false;
    }
    if (c->pairs.n > QUERY_LABEL_PAIRS_MAX) {
        merge_table_truncate(&c->pairs, before);
        c->is_cut = true;
        return true;
    }
    series[i] = c->pairs.n > before ? 1 : series[i] + 1;
    return true;
}

static bool counts_on_series(void *arg, const struct store_series *s)
{
    struct counting *c = arg;
    bool ok = c->visited++ % SERIES_A_LOOK != 0 || query_alive(c->q, &c->err);
    for (size_t i = 0; ok && i < s->n_labels; i++) {
        const struct label *l = &s->labels[i];
        bool is_hidden =
            sv_starts_with(l->name, SV("__")) || sv_eq_str(l->name, LABEL_SERVICE_NAME);
        ok = is_hidden || add_label(c, l);
    }
    return ok;
}

/* ---- results --------------------------------------------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
    const struct query_label_value *x = a;
    const struct query_label_value *y = b;
    if (x->series != y->series) {
        return x->series < y->series ? 1 : -1;
    }
    return sv_cmp(x->value, y->value);
}

static int compare_names(const void *a, const void *b)
{
    return sv_cmp(((const struct query_label_count *)a)->name,
                  ((const struct query_label_count *)b)->name);
}

static uint32_t name_of_pair(const struct counting *c, uint32_t i, struct sv *ret_value)
{
    uint32_t name;
    size_t n;
    const char *p = merge_table_get(&c->pairs, i, &n);
    memcpy(&name, p, sizeof(name));
    *ret_value = (struct sv){p + sizeof(name), n - sizeof(name)};
    return name;
}

/* Makes room for all values of each name. */
static bool make_names(const struct counting *c, struct query_label_counts *ret)
{
    struct arena *arena = c->q->arena;
    struct sv value;
    ret->n = c->names.n;
    ret->at = arena_array(arena, ret->n + 1, sizeof(*ret->at));
    for (uint32_t i = 0; ret->at != NULL && i < c->pairs.n; i++) {
        ret->at[name_of_pair(c, i, &value)].n_all++;
    }
    for (uint32_t i = 0; ret->at != NULL && i < ret->n; i++) {
        size_t n;
        const char *p = merge_table_get(&c->names, i, &n);
        struct query_label_count *name = &ret->at[i];
        name->name = (struct sv){arena_strndup(arena, p, n), n};
        name->at = arena_array(arena, name->n_all + 1, sizeof(*name->at));
        if (name->name.p == NULL || name->at == NULL) {
            return false;
        }
    }
    return ret->at != NULL;
}

/* Sorts the values of a name, and copies those that are listed. */
static bool list_values(const struct counting *c, size_t values_max, struct query_label_count *name)
{
    if (name->n > 0) {
        qsort(name->at, name->n, sizeof(*name->at), compare_values);
    }
    name->n = name->n < values_max ? name->n : values_max;
    for (size_t i = 0; i < name->n; i++) {
        struct sv *value = &name->at[i].value;
        value->p = arena_strndup(c->q->arena, value->p, value->n);
        if (value->p == NULL) {
            return false;
        }
    }
    return true;
}

static bool write_counts(const struct counting *c, size_t values_max,
                         struct query_label_counts *ret, struct err *err)
{
    *ret = (struct query_label_counts){.is_cut = c->is_cut};
    if (!make_names(c, ret)) {
        return query_no_room(err);
    }
    for (uint32_t i = 0; i < c->pairs.n; i++) {
        struct sv value;
        struct query_label_count *name = &ret->at[name_of_pair(c, i, &value)];
        name->at[name->n++] = (struct query_label_value){value, c->series[i]};
    }
    for (size_t i = 0; i < ret->n; i++) {
        if (!list_values(c, values_max, &ret->at[i])) {
            return query_no_room(err);
        }
    }
    qsort(ret->at, ret->n, sizeof(*ret->at), compare_names);
    return true;
}

bool query_label_counts(const struct query *q, const struct query_range *r, size_t values_max,
                        struct query_label_counts *ret, struct err *err)
{
    struct counting c = {.q = q, .budget.max = q->bytes_max / 2};
    struct query_scope scope;
    if (!query_scope_init(q, &scope, r, NULL, err)) {
        return false;
    }
    merge_table_init(&c.names, query_seed());
    merge_table_init(&c.pairs, query_seed());
    buf_init(&c.key, LABELS_BYTES_MAX + sizeof(uint32_t));
    bool ok = store_each_series(q->store, &scope.range, counts_on_series, &c, err);
    query_scope_done(&scope);
    ok = query_ended(ok, &c.err, err) && write_counts(&c, values_max, ret, err);
    merge_table_done(&c.names);
    merge_table_done(&c.pairs);
    buf_done(&c.key);
    free(c.series);
    return ok;
}

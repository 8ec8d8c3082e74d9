/* Names and values of labels, distinct sets of labels, and the ids of profile types. */
#include <stdlib.h>

#include "store/query/query_private.h"

/* Number of series between two checks of the deadline. */
#define SERIES_A_LOOK 1024

/* The texts or projections that a scan has found. */
struct finding {
    const struct query *q;
    struct sv name; /* the label whose values are wanted; empty: names of labels are wanted */
    struct budget budget;
    struct table texts;
    struct projections sets;
    size_t visited;
    struct err err;
};

static bool look(struct finding *f)
{
    return f->visited++ % SERIES_A_LOOK != 0 || query_alive(f->q, &f->err);
}

static bool add_text(struct finding *f, struct sv text)
{
    uint32_t i;
    return merge_table_add(&f->texts, &f->budget, text.p, text.n, text.n, &i, &f->err);
}

static bool labels_on_names(void *arg, const struct store_series *series)
{
    struct finding *f = arg;
    bool ok = look(f);
    for (size_t i = 0; ok && i < series->n_labels; i++) {
        ok = add_text(f, series->labels[i].name);
    }
    return ok;
}

static bool labels_on_values(void *arg, const struct store_series *series)
{
    struct finding *f = arg;
    bool ok = look(f);
    for (size_t i = 0; ok && i < series->n_labels; i++) {
        ok = !sv_eq(series->labels[i].name, f->name) || add_text(f, series->labels[i].value);
    }
    return ok;
}

static bool labels_on_series(void *arg, const struct store_series *series)
{
    struct finding *f = arg;
    uint32_t i;
    return look(f) && projections_add(&f->sets, series->labels, series->n_labels, &i, &f->err);
}

static int compare_texts(const void *a, const void *b)
{
    return sv_cmp(*(const struct sv *)a, *(const struct sv *)b);
}

static bool sort_texts(const struct finding *f, struct query_strings *ret, struct err *err)
{
    struct arena *arena = f->q->arena;
    ret->n = f->texts.n;
    ret->at = arena_array(arena, ret->n + 1, sizeof(*ret->at));
    if (ret->at == NULL) {
        return query_no_room(err);
    }
    for (uint32_t i = 0; i < ret->n; i++) {
        size_t n;
        const char *p = merge_table_get(&f->texts, i, &n);
        ret->at[i] = (struct sv){arena_strndup(arena, p, n), n};
        if (ret->at[i].p == NULL) {
            return query_no_room(err);
        }
    }
    qsort(ret->at, ret->n, sizeof(*ret->at), compare_texts);
    return true;
}

static int compare_sets(const void *a, const void *b)
{
    return query_labels_cmp(a, b);
}

static bool sort_sets(const struct finding *f, struct query_label_sets *ret, struct err *err)
{
    ret->n = f->sets.table.n;
    ret->at = arena_array(f->q->arena, ret->n + 1, sizeof(*ret->at));
    if (ret->at == NULL) {
        return query_no_room(err);
    }
    for (uint32_t i = 0; i < ret->n; i++) {
        if (!projections_get(&f->sets, i, f->q->arena, &ret->at[i], err)) {
            return false;
        }
    }
    qsort(ret->at, ret->n, sizeof(*ret->at), compare_sets);
    return true;
}

static bool find(struct finding *f, const struct query_range *r,
                 bool (*visit)(void *arg, const struct store_series *series), struct err *err)
{
    struct query_scope scope;
    if (!query_scope_init(f->q, &scope, r, NULL, err)) {
        return false;
    }
    bool ok = store_each_series(f->q->store, &scope.range, visit, f, err);
    query_scope_done(&scope);
    return query_ended(ok, &f->err, err);
}

static bool find_texts(const struct query *q, const struct query_range *r, struct sv name,
                       bool (*visit)(void *arg, const struct store_series *series),
                       struct query_strings *ret, struct err *err)
{
    struct finding f = {.q = q, .name = name, .budget.max = q->bytes_max};
    merge_table_init(&f.texts, query_seed());
    bool ok = find(&f, r, visit, err) && sort_texts(&f, ret, err);
    merge_table_done(&f.texts);
    return ok;
}

bool query_label_names(const struct query *q, const struct query_range *r,
                       struct query_strings *ret, struct err *err)
{
    return find_texts(q, r, SV(""), labels_on_names, ret, err);
}

bool query_label_values(const struct query *q, const struct query_range *r, struct sv name,
                        struct query_strings *ret, struct err *err)
{
    return find_texts(q, r, name, labels_on_values, ret, err);
}

bool query_series(const struct query *q, const struct query_range *r, const struct sv *names,
                  size_t n_names, struct query_label_sets *ret, struct err *err)
{
    struct finding f = {.q = q, .budget.max = q->bytes_max};
    const struct projection what = {names, n_names, n_names == 0};
    projections_init(&f.sets, &what, &f.budget);
    bool ok = find(&f, r, labels_on_series, err) && sort_sets(&f, ret, err);
    projections_done(&f.sets);
    /* If no series has any of the labels, the only set is an empty one. */
    if (ok && n_names > 0 && ret->n == 1 && ret->at[0].n == 0) {
        ret->n = 0;
    }
    return ok;
}

bool profile_type_parse(struct sv text, struct profile_type *ret, struct err *err)
{
    enum { PARTS = 5, WITH_DELTA };
    struct sv parts[WITH_DELTA] = {{NULL, 0}};
    struct sv rest = text;
    size_t n = 1;
    size_t end = text.n;
    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == ':';
        end = n == WITH_DELTA && end == text.n ? i : end;
    }
    if (n != PARTS && n != WITH_DELTA) {
        return err_set(err, ERR_INPUT,
                       "profile-type selection must be of the form <name>:<sample-type>:"
                       "<sample-unit>:<period-type>:<period-unit>(:delta), got(%zu): \"%.*s\"",
                       n, SV_ARG(text));
    }
    for (size_t i = 0; i < n; i++) {
        if (!sv_cut(rest, ':', &parts[i], &rest)) {
            parts[i] = rest;
        }
    }
    *ret = (struct profile_type){
        .id = {text.p, end},
        .name = parts[0],
        .sample_type = parts[1],
        .sample_unit = parts[2],
        .period_type = parts[3],
        .period_unit = parts[4],
    };
    return true;
}

/* Visits the profiles whose bytes a query needs: all of a range, or the listed ones. */
#include <stdlib.h>
#include <string.h>

#include "store/query/bodies.h"

struct visiting {
    const struct query *q;
    const struct query_scope *scope;
    bool (*visit)(void *arg, const struct store_body *body, struct err *err);
    void *arg;
    const struct store_series **series; /* series of a listed profile that match */
    size_t series_cap;
    char (*seen)[STORE_ID_LENGTH + 1]; /* ids of the listed profiles that were visited */
    size_t n_seen;
    struct err err;
};

static bool visit(struct visiting *v, const struct store_body *body)
{
    if (!query_alive(v->q, &v->err)) {
        return false;
    }
    if (body->format != PROFILE_PPROF || v->visit(v->arg, body, &v->err)) {
        return true;
    }
    if (v->err.kind == ERR_INPUT) {
        query_count_damaged(v->q);
        err_clear(&v->err);
        return true;
    }
    return err_wrap(&v->err, "profile %s", body->id);
}

static bool bodies_on_body(void *arg, const struct store_body *body)
{
    return visit(arg, body);
}

/* ---- listed profiles ------------------------------------------------------------------------- */

/* Remembers the id of a visited profile. False if it was visited before: several ids may stand for
 * one merged profile. */
static bool note_seen(struct visiting *v, const char *id)
{
    for (size_t i = 0; i < v->n_seen; i++) {
        if (strcmp(v->seen[i], id) == 0) {
            return false;
        }
    }
    (void)strncpy(v->seen[v->n_seen++], id, STORE_ID_LENGTH);
    return true;
}

static bool grow_series(struct visiting *v, size_t n)
{
    if (n > v->series_cap) {
        const struct store_series **series = reallocarray(v->series, n, sizeof(void *));
        if (series == NULL) {
            return err_memory(&v->err);
        }
        v->series = series;
        v->series_cap = n;
    }
    return true;
}

static bool bodies_on_listed(void *arg, const struct store_body *body)
{
    struct visiting *v = arg;
    const struct store_range *range = &v->scope->range;
    struct store_body part = *body;
    /* A merged profile covers the time from its first to its last profile: it counts if any of that
     * is in the range. */
    if (body->from_ns > range->until_ns ||
        (body->from_ns < range->from_ns && body->until_ns < range->from_ns) ||
        !note_seen(v, body->id)) {
        return true;
    }
    if (!grow_series(v, body->n_series)) {
        return false;
    }
    part.series = v->series;
    part.n_series = 0;
    for (size_t i = 0; i < body->n_series; i++) {
        const struct store_series *series = body->series[i];
        if (selector_matches(v->scope->selector, series->labels, series->n_labels)) {
            v->series[part.n_series++] = series;
        }
    }
    /* If all series of the body match, all samples of each column are selected, provided that the
     * body was whole. */
    part.whole = body->whole && part.n_series == body->n_series;
    return part.n_series == 0 || visit(v, &part);
}

static bool each_listed(struct visiting *v, const struct query_stacks *which, struct err *err)
{
    bool ok = true;
    v->seen = calloc(which->n_profile_ids, sizeof(*v->seen));
    if (v->seen == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; ok && i < which->n_profile_ids; i++) {
        bool found;
        ok = store_get_partial(v->q->store, which->profile_ids[i], &v->q->peers, v->q->partial,
                               &found, bodies_on_listed, v, err) &&
             v->err.kind == ERR_NONE;
    }
    free(v->seen);
    free(v->series);
    return query_ended(ok, &v->err, err);
}

bool query_each_body(const struct query *q, const struct query_scope *scope,
                     const struct query_stacks *which,
                     bool (*visit_body)(void *arg, const struct store_body *body, struct err *err),
                     void *arg, struct err *err)
{
    struct visiting v = {.q = q, .scope = scope, .visit = visit_body, .arg = arg};
    if (which->n_profile_ids > 0) {
        return each_listed(&v, which, err);
    }
    const struct store_scan scan = {.range = scope->range,
                                    .with_data = true,
                                    .by_series = scope->by_series,
                                    .with_sums = scope->with_sums};
    bool ok = store_each_body(q->store, &scan, bodies_on_body, &v, err);
    return query_ended(ok, &v.err, err);
}

bool query_each_head(const struct query *q, const struct query_scope *scope,
                     bool (*visit_body)(void *arg, const struct store_body *body, struct err *err),
                     void *arg, struct err *err)
{
    struct visiting v = {.q = q, .scope = scope, .visit = visit_body, .arg = arg};
    const struct store_scan scan = {.range = scope->range};
    bool ok = store_each_body(q->store, &scan, bodies_on_body, &v, err);
    return query_ended(ok, &v.err, err);
}

bool query_next_column(const struct store_body *body, size_t *column)
{
    size_t from = *column;
    bool found = false;
    for (size_t i = 0; i < body->n_series; i++) {
        size_t c = body->series[i]->column;
        if (c >= from && (!found || c < *column)) {
            *column = c;
            found = true;
        }
    }
    return found;
}

/* Timelines: the sums of profiles by step of time and group of series. */
#include <stdlib.h>
#include <string.h>

#include "store/query/bodies.h"
#include "store/query/cells.h"
#include "store/query/stacks.h"
#include "store/query/tree_private.h"

/* Number of points between two checks of the deadline. */
#define POINTS_A_LOOK 4096

struct summing {
    const struct query *q;
    const struct query_steps *o;
    struct grid grid;
    struct cells cells;
    struct stacks *stacks; /* NULL unless a call site is selected */
    size_t visited;        /* number of points or bodies visited */
    struct err err;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Adds a profile to its cell. A profile after the last instant of the grid is not shown. */
static bool series_observe(void *arg, const struct observation *o, struct err *err)
{
    struct summing *s = arg;
    const struct cell_key key = {.group = o->group, .edge_ms = grid_edge(&s->grid, o->time_ns)};
    return key.edge_ms > s->grid.end_ms || cells_add(&s->cells, &key, o, err);
}

static bool add_piece(struct summing *s, const struct piece *piece, struct err *err)
{
    const struct observer observer = {series_observe, s};
    return piece->value <= 0 || pieces_add(&s->cells.pieces, piece, &observer, err);
}

static bool series_on_point(void *arg, const struct store_point *p)
{
    struct summing *s = arg;
    const struct piece piece = {.series = p->series,
                                .time_ns = p->time_ns,
                                .value = p->value,
                                .id = p->id,
                                .shared = p->shared,
                                .batch = p->file};
    return (s->visited++ % POINTS_A_LOOK != 0 || query_alive(s->q, &s->err)) &&
           add_piece(s, &piece, &s->err);
}

/* Adds up the stacks of each series of a body separately. */
static bool series_on_body(void *arg, const struct store_body *body, struct err *err)
{
    struct summing *s = arg;
    s->visited++;
    for (size_t i = 0; i < body->n_series; i++) {
        struct store_body part = *body;
        struct piece piece = {.series = body->series[i],
                              .time_ns = body->from_ns,
                              .id = body->id,
                              .shared = body->n_series > 1,
                              .batch = s->visited};
        part.series = &body->series[i];
        part.n_series = 1;
        part.whole = body->whole && body->n_series == 1;
        if (!stacks_add(s->stacks, &part, body->series[i]->column, &piece.value, err) ||
            !add_piece(s, &piece, err)) {
            return false;
        }
    }
    return true;
}

static bool sum_stacks(struct summing *s, const struct query_scope *scope,
                       const struct query_stacks *which, struct err *err)
{
    const struct query_stacks site = {.call_site = which->call_site,
                                      .n_call_site = which->n_call_site,
                                      .as_recorded = which->as_recorded};
    struct tree *t = tree_new(s->q->bytes_max / 4, err);
    s->stacks = t == NULL ? NULL : stacks_new(t, &site, s->q->bytes_max / 4, err);
    bool ok = s->stacks != NULL && query_each_body(s->q, scope, &site, series_on_body, s, err);
    stacks_free(s->stacks);
    tree_free(t);
    return ok;
}

static bool sum_up(struct summing *s, const struct query_range *r, const struct profile_type *type,
                   const struct query_stacks *which, struct err *err)
{
    struct query_scope scope;
    struct query_range longer = *r;
    /* The first step begins one step before the start of the range. */
    longer.start_ms = r->start_ms > s->grid.step_ms ? r->start_ms - s->grid.step_ms : 0;
    if (!query_scope_init(s->q, &scope, &longer, type, err)) {
        return false;
    }
    bool ok;
    if (which != NULL && which->n_call_site > 0) {
        ok = sum_stacks(s, &scope, which, err);
    } else {
        ok = store_each_point(s->q->store, &scope.range, series_on_point, s, err);
        ok = query_ended(ok, &s->err, err);
    }
    query_scope_done(&scope);
    const struct observer observer = {series_observe, s};
    return ok && pieces_flush(&s->cells.pieces, &observer, err);
}

/* ---- results --------------------------------------------------------------------------------- */

struct ordered {
    struct query_time_series series;
    double total;
};

static int compare_series(const void *a, const void *b)
{
    const struct ordered *x = a;
    const struct ordered *y = b;
    if (x->total != y->total) {
        return x->total < y->total ? 1 : -1;
    }
    return query_labels_cmp(&x->series.labels, &y->series.labels);
}

static bool write_point(const struct summing *s, const struct cell_place *place,
                        struct query_point *ret, struct err *err)
{
    const struct cell *cell = place->cell;
    ret->time_ms = place->key.edge_ms;
    ret->value = (double)cell->sum;
    if (s->o->aggregation == QUERY_AVERAGE) {
        ret->value /= (double)cell->count;
    }
    if (s->o->exemplars == QUERY_NO_EXEMPLARS) {
        return true;
    }
    struct query_exemplar *exemplar = arena_alloc(s->q->arena, sizeof(*exemplar));
    ret->exemplar = exemplar;
    return exemplar != NULL ? cells_exemplar(&s->cells, cell, s->q->arena, exemplar, err)
                            : query_no_room(err);
}

static bool write_series(const struct summing *s, const struct cell_place *places, size_t n,
                         struct ordered *ret, struct err *err)
{
    struct query_time_series *series = &ret->series;
    series->n_points = n;
    series->points = arena_array(s->q->arena, n, sizeof(*series->points));
    if (series->points == NULL) {
        return query_no_room(err);
    }
    for (size_t i = 0; i < n; i++) {
        if (!write_point(s, &places[i], &series->points[i], err)) {
            return false;
        }
        ret->total += series->points[i].value;
    }
    return projections_get(&s->cells.pieces.groups, places[0].key.group, s->q->arena,
                           &series->labels, err);
}

static bool write_all(const struct summing *s, struct query_time_series_list *ret, struct err *err)
{
    struct arena *arena = s->q->arena;
    struct cell_place *places;
    size_t n;
    size_t groups = s->cells.pieces.groups.table.n;
    struct ordered *ordered = arena_array(arena, groups + 1, sizeof(*ordered));
    ret->at = arena_array(arena, groups + 1, sizeof(*ret->at));
    if (ordered == NULL || ret->at == NULL) {
        return query_no_room(err);
    }
    if (!cells_sort(&s->cells, arena, &places, &n, err)) {
        return false;
    }
    ret->n = 0;
    for (size_t i = 0, end; i < n; i = end) {
        end = i;
        while (end < n && places[end].key.group == places[i].key.group) {
            end++;
        }
        if (!write_series(s, places + i, end - i, &ordered[ret->n++], err)) {
            return false;
        }
    }
    qsort(ordered, ret->n, sizeof(*ordered), compare_series);
    ret->n = s->o->limit > 0 && s->o->limit < ret->n ? s->o->limit : ret->n;
    for (size_t i = 0; i < ret->n; i++) {
        ret->at[i] = ordered[i].series;
    }
    return true;
}

bool query_time_series(const struct query *q, const struct query_range *r,
                       const struct profile_type *type, const struct query_steps *o,
                       const struct query_stacks *stacks, struct query_time_series_list *ret,
                       struct err *err)
{
    struct summing s = {.q = q, .o = o};
    if (!grid_init(&s.grid, r, o->step_s, err)) {
        return false;
    }
    cells_init(&s.cells, o, q->bytes_max / 2);
    bool ok = sum_up(&s, r, type, stacks, err) && write_all(&s, ret, err);
    cells_done(&s.cells);
    return ok;
}

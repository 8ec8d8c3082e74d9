#include "store/query/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/query/tree_private.h"

/* ---- the grid -------------------------------------------------------------------------------- */

bool grid_init(struct grid *g, const struct query_range *r, double step_s, struct err *err)
{
    /* Steps beyond the age of the universe are one step. */
    double step_ms = step_s * MS_PER_S;
    if (!(step_ms >= 1)) {
        return err_set(err, ERR_INPUT, "step must be >= 1ms");
    }
    int64_t step_max = INT64_C(1) << 60;
    *g = (struct grid){
        .start_ms = r->start_ms > 0 ? r->start_ms : 0,
        .end_ms = r->end_ms,
        .step_ms = step_ms < (double)step_max ? (int64_t)step_ms : step_max,
    };
    return true;
}

int64_t grid_edge(const struct grid *g, int64_t time_ns)
{
    int64_t time_ms = time_ns / NS_PER_MS;
    if (time_ms <= g->start_ms) {
        return g->start_ms;
    }
    int64_t steps = (time_ms - g->start_ms - 1) / g->step_ms + 1;
    int64_t edge;
    if (__builtin_mul_overflow(steps, g->step_ms, &edge)) {
        return INT64_MAX;
    }
    return tree_plus(g->start_ms, edge);
}

/* ---- cells ----------------------------------------------------------------------------------- */

void cells_init(struct cells *c, const struct query_steps *o, size_t bytes_max)
{
    const struct projection groups = {o->group_by, o->n_group_by, false};
    const struct projection others = {o->group_by, o->n_group_by, true};
    *c = (struct cells){.budget.max = bytes_max};
    projections_init(&c->groups, &groups, &c->budget);
    projections_init(&c->others, &others, &c->budget);
    merge_table_init(&c->keys, query_seed());
}

void cells_done(struct cells *c)
{
    projections_done(&c->groups);
    projections_done(&c->others);
    merge_table_done(&c->keys);
    free(c->at);
    c->at = NULL;
}

bool cells_group(struct cells *c, const struct store_series *series, uint32_t *ret_group,
                 struct err *err)
{
    if (!c->has_last || c->last_series != series->id) {
        if (!projections_add(&c->groups, series->labels, series->n_labels, &c->last_group, err) ||
            !projections_add(&c->others, series->labels, series->n_labels, &c->last_labels, err)) {
            return false;
        }
        c->last_series = series->id;
        c->has_last = true;
    }
    *ret_group = c->last_group;
    return true;
}

bool cells_add(struct cells *c, const struct cell_key *key, int64_t time_ns, int64_t value,
               const char *id, struct err *err)
{
    size_t before = c->keys.n;
    uint32_t i;
    struct cell *at = budget_grow(&c->budget, c->at, &c->cap, before + 1, sizeof(*at), err);
    if (at == NULL) {
        return false;
    }
    c->at = at;
    if (!merge_table_add(&c->keys, &c->budget, key, sizeof(*key), sizeof(*key), &i, err)) {
        return false;
    }
    struct cell *cell = &at[i];
    if (i == before) {
        *cell = (struct cell){.best = INT64_MIN};
    }
    cell->sum = tree_plus(cell->sum, value);
    cell->count++;
    if (value > cell->best) {
        cell->best = value;
        cell->best_ms = time_ns / NS_PER_MS;
        cell->best_labels = c->last_labels;
        (void)strncpy(cell->best_id, id, STORE_ID_LENGTH);
    }
    return true;
}

/* ---- results --------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    const struct cell_key *x = &((const struct cell_place *)a)->key;
    const struct cell_key *y = &((const struct cell_place *)b)->key;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    if (x->edge_ms != y->edge_ms) {
        return x->edge_ms < y->edge_ms ? -1 : 1;
    }
    return (x->row > y->row) - (x->row < y->row);
}

bool cells_sort(const struct cells *c, struct arena *arena, struct cell_place **ret, size_t *ret_n,
                struct err *err)
{
    size_t n = c->keys.n;
    struct cell_place *at = arena_array(arena, n + 1, sizeof(*at));
    if (at == NULL) {
        return query_no_room(err);
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t size;
        memcpy(&at[i].key, merge_table_get(&c->keys, i, &size), sizeof(at[i].key));
        at[i].cell = &c->at[i];
    }
    qsort(at, n, sizeof(*at), compare_places);
    *ret = at;
    *ret_n = n;
    return true;
}

bool cells_exemplar(const struct cells *c, const struct cell *cell, struct arena *arena,
                    struct query_exemplar *ret, struct err *err)
{
    *ret = (struct query_exemplar){
        .time_ms = cell->best_ms,
        .id = arena_strdup(arena, cell->best_id),
        .value = cell->best,
    };
    if (ret->id == NULL) {
        return query_no_room(err);
    }
    return projections_get(&c->others, cell->best_labels, arena, &ret->labels, err);
}

#include "store/query/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/query/tree_private.h"

/* ---- the grid -------------------------------------------------------------------------------- */

bool grid_init(struct grid *g, const struct query_range *r, double step_s, struct err *err)
{
    /* Limits the step, so that the sum of a few steps fits into an int64_t. */
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
    *c = (struct cells){.budget.max = bytes_max};
    pieces_init(&c->pieces, o, &c->budget);
    merge_table_init(&c->keys, query_seed());
}

void cells_done(struct cells *c)
{
    pieces_done(&c->pieces);
    merge_table_done(&c->keys);
    free(c->at);
    c->at = NULL;
}

bool cells_add(struct cells *c, const struct cell_key *key, const struct observation *o,
               struct err *err)
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
    cell->sum = tree_plus(cell->sum, o->value);
    cell->count++;
    if (o->value > cell->best) {
        cell->best = o->value;
        cell->best_ms = o->time_ns / NS_PER_MS;
        cell->best_labels = o->labels;
        memcpy(cell->best_id, o->id, sizeof(cell->best_id));
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

/* Splits the id of an observation: an id of 36 characters is that of a profile, any other one that
 * of a span. */
static bool copy_id(struct sv id, struct arena *arena, struct query_exemplar *ret)
{
    bool is_span = id.n != STORE_ID_LENGTH;
    size_t n = is_span ? QUERY_SPAN_ID_LENGTH : 0;
    ret->id = arena_strdup(arena, is_span ? "" : id.p);
    ret->span_id = arena_strndup(arena, id.p, n);
    ret->trace_id = arena_strndup(arena, id.p + n, is_span ? id.n - n : 0);
    return ret->id != NULL && ret->span_id != NULL && ret->trace_id != NULL;
}

bool cells_exemplar(const struct cells *c, const struct cell *cell, struct arena *arena,
                    struct query_exemplar *ret, struct err *err)
{
    *ret = (struct query_exemplar){.time_ms = cell->best_ms, .value = cell->best};
    return copy_id(sv_from(cell->best_id), arena, ret)
               ? projections_get(&c->pieces.others, cell->best_labels, arena, &ret->labels, err)
               : query_no_room(err);
}

/* Heatmaps: the number of profiles, or of spans, by total and step of time. All are read twice:
 * first to find the least and the greatest total, which determine the rows, then to count. */
#include <stdlib.h>
#include <string.h>

#include "store/query/cells.h"
#include "store/query/spans.h"

#define ROWS QUERY_HEATMAP_ROWS
/* Number of points between two checks of the deadline. */
#define POINTS_A_LOOK 4096

struct counting {
    const struct query *q;
    const struct query_steps *o;
    enum query_counted counted;
    struct grid grid;
    struct cells cells;
    struct observer observer; /* the observer of the present reading */
    bool any;
    int64_t min;
    int64_t max;
    size_t visited;
    struct err err;
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool heatmap_find_extremes(void *arg, const struct observation *o, struct err *err)
{
    struct counting *c = arg;
    (void)err;
    c->min = !c->any || o->value < c->min ? o->value : c->min;
    c->max = !c->any || o->value > c->max ? o->value : c->max;
    c->any = true;
    return true;
}

/* Returns the total at which a row begins. */
static int64_t row_start(const struct counting *c, size_t row)
{
    /* The product may need more than 64 bits, because totals can be near the limit. */
    __extension__ typedef __int128 wide;
    return c->min + (int64_t)((wide)(c->max - c->min) * (wide)row / ROWS);
}

/* Returns the row of a total; the greatest total is in the last row. A total that was stored
 * between the two readings may be outside all rows: it counts in the first or the last one. */
static uint32_t row_of(const struct counting *c, int64_t value)
{
    uint32_t row = ROWS - 1;
    while (row > 0 && value < row_start(c, row)) {
        row--;
    }
    return row;
}

static bool heatmap_count(void *arg, const struct observation *o, struct err *err)
{
    struct counting *c = arg;
    const struct cell_key key = {
        .group = o->group, .row = row_of(c, o->value), .edge_ms = grid_edge(&c->grid, o->time_ns)};
    return cells_add(&c->cells, &key, o, err);
}

static bool heatmap_on_point(void *arg, const struct store_point *p)
{
    struct counting *c = arg;
    const struct piece piece = {.series = p->series,
                                .time_ns = p->time_ns,
                                .value = p->value,
                                .id = p->id,
                                .shared = p->shared,
                                .batch = p->file};
    return (c->visited++ % POINTS_A_LOOK != 0 || query_alive(c->q, &c->err)) &&
           (p->value <= 0 || pieces_add(&c->cells.pieces, &piece, &c->observer, &c->err));
}

/* Calls observe for each profile or span. */
static bool read_all(struct counting *c, const struct query_scope *scope,
                     bool (*observe)(void *arg, const struct observation *o, struct err *err),
                     struct err *err)
{
    c->observer = (struct observer){observe, c};
    if (c->counted == QUERY_SPANS) {
        return spans_each(c->q, scope, &c->cells.pieces, &c->observer, c->q->bytes_max / 2, err);
    }
    bool ok = store_each_point(c->q->store, &scope->range, heatmap_on_point, c, err);
    return query_ended(ok, &c->err, err) && pieces_flush(&c->cells.pieces, &c->observer, err);
}

static bool count(struct counting *c, const struct query_range *r, const struct profile_type *type,
                  struct err *err)
{
    struct query_scope scope;
    struct query_range longer = *r;
    /* The first step begins one step before the start of the range. */
    longer.start_ms = r->start_ms > c->grid.step_ms ? r->start_ms - c->grid.step_ms : 0;
    if (!query_scope_init(c->q, &scope, &longer, type, err)) {
        return false;
    }
    bool ok = read_all(c, &scope, heatmap_find_extremes, err);
    if (ok && c->any) {
        c->max = c->max == c->min ? c->min + (c->min < INT64_MAX) : c->max;
        ok = read_all(c, &scope, heatmap_count, err);
    }
    query_scope_done(&scope);
    return ok;
}

/* ---- results --------------------------------------------------------------------------------- */

struct ordered {
    struct query_heatmap_series series;
    uint64_t count;
};

static int compare_series(const void *a, const void *b)
{
    const struct ordered *x = a;
    const struct ordered *y = b;
    if (x->count != y->count) {
        return x->count < y->count ? 1 : -1;
    }
    return query_labels_cmp(&x->series.labels, &y->series.labels);
}

/* Writes a slot from the n cells of one instant. */
static bool write_slot(const struct counting *c, const struct cell_place *places, size_t n,
                       struct query_slot *ret, struct err *err)
{
    struct query_exemplar *exemplars = NULL;
    if (c->o->exemplars != QUERY_NO_EXEMPLARS) {
        exemplars = arena_array(c->q->arena, n, sizeof(*exemplars));
        if (exemplars == NULL) {
            return query_no_room(err);
        }
        ret->exemplars = exemplars;
        ret->n_exemplars = n;
    }
    ret->time_ms = places[0].key.edge_ms;
    for (size_t row = 0; row < ROWS; row++) {
        ret->y_min[row] = (double)row_start(c, row);
    }
    for (size_t i = 0; i < n; i++) {
        const struct cell *cell = places[i].cell;
        ret->counts[places[i].key.row] = cell->count < INT32_MAX ? (int32_t)cell->count : INT32_MAX;
        if (exemplars != NULL &&
            !cells_exemplar(&c->cells, cell, c->q->arena, &exemplars[i], err)) {
            return false;
        }
    }
    return true;
}

/* Returns the end of the run of cells that have the same group, and, if by_edge is set, the same
 * instant. */
static size_t run_end(const struct cell_place *places, size_t n, size_t i, bool by_edge)
{
    size_t end = i;
    while (end < n && places[end].key.group == places[i].key.group &&
           (!by_edge || places[end].key.edge_ms == places[i].key.edge_ms)) {
        end++;
    }
    return end;
}

static bool write_series(const struct counting *c, const struct cell_place *places, size_t n,
                         struct ordered *ret, struct err *err)
{
    struct query_heatmap_series *series = &ret->series;
    size_t slots = 0;
    for (size_t i = 0; i < n; i = run_end(places, n, i, true)) {
        slots++;
    }
    series->slots = arena_array(c->q->arena, slots, sizeof(*series->slots));
    if (series->slots == NULL) {
        return query_no_room(err);
    }
    for (size_t i = 0, end; i < n; i = end) {
        end = run_end(places, n, i, true);
        if (!write_slot(c, places + i, end - i, &series->slots[series->n_slots++], err)) {
            return false;
        }
    }
    for (size_t i = 0; i < n; i++) {
        ret->count += places[i].cell->count;
    }
    return projections_get(&c->cells.pieces.groups, places[0].key.group, c->q->arena,
                           &series->labels, err);
}

static bool write_all(const struct counting *c, struct query_heatmap *ret, struct err *err)
{
    struct arena *arena = c->q->arena;
    struct cell_place *places;
    size_t n;
    size_t groups = c->cells.pieces.groups.table.n;
    struct ordered *ordered = arena_array(arena, groups + 1, sizeof(*ordered));
    ret->at = arena_array(arena, groups + 1, sizeof(*ret->at));
    if (ordered == NULL || ret->at == NULL) {
        return query_no_room(err);
    }
    if (!cells_sort(&c->cells, arena, &places, &n, err)) {
        return false;
    }
    ret->n = 0;
    for (size_t i = 0, end; i < n; i = end) {
        end = run_end(places, n, i, false);
        if (!write_series(c, places + i, end - i, &ordered[ret->n++], err)) {
            return false;
        }
    }
    qsort(ordered, ret->n, sizeof(*ordered), compare_series);
    ret->n = c->o->limit > 0 && c->o->limit < ret->n ? c->o->limit : ret->n;
    for (size_t i = 0; i < ret->n; i++) {
        ret->at[i] = ordered[i].series;
    }
    return true;
}

bool query_heatmap(const struct query *q, const struct query_range *r,
                   const struct profile_type *type, const struct query_steps *o,
                   enum query_counted counted, struct query_heatmap *ret, struct err *err)
{
    struct counting c = {.q = q, .o = o, .counted = counted};
    if (!grid_init(&c.grid, r, o->step_s, err)) {
        return false;
    }
    cells_init(&c.cells, o, counted == QUERY_SPANS ? q->bytes_max / 2 : q->bytes_max);
    bool ok = count(&c, r, type, err) && write_all(&c, ret, err);
    cells_done(&c.cells);
    return ok;
}

/* Private to timelines and heatmaps: sums of profiles by group of series and step of time.
 *
 * A grid is start, start + step, ... A profile belongs to the first instant of the grid that is not
 * before the profile; a profile before the start belongs to the start. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_CELLS_H
#define PROFPULL_STORE_QUERY_CELLS_H

#include "store/query/pieces.h"

struct grid {
    int64_t start_ms;
    int64_t end_ms;
    int64_t step_ms;
};
/* Makes the grid of a range. ERR_INPUT for a step below a millisecond. */
bool grid_init(struct grid *g, const struct query_range *r, double step_s, struct err *err);
/* Returns the instant of the grid that a time belongs to, which may be after the end. */
int64_t grid_edge(const struct grid *g, int64_t time_ns);

struct cell_key {
    uint32_t group;
    uint32_t row; /* the row of a heatmap; 0 in a timeline */
    int64_t edge_ms;
};

struct cell {
    int64_t sum;
    uint64_t count;
    /* The profile or span with the greatest value, for the exemplar; of equal values the first one.
     */
    int64_t best;
    int64_t best_ms;
    uint32_t best_labels;
    char best_id[OBSERVATION_ID_MAX + 1];
};

struct cells {
    struct budget budget;
    struct pieces pieces;
    struct table keys; /* keys are struct cell_key */
    struct cell *at;
    size_t cap;
};

void cells_init(struct cells *c, const struct query_steps *o, size_t bytes_max);
void cells_done(struct cells *c);
/* Adds a profile or a span to a cell. */
bool cells_add(struct cells *c, const struct cell_key *key, const struct observation *o,
               struct err *err);

/* A cell with its key, for sorting by group, edge and row. */
struct cell_place {
    struct cell_key key;
    const struct cell *cell;
};
/* Lists all cells in this order, in memory of the arena. */
bool cells_sort(const struct cells *c, struct arena *arena, struct cell_place **ret, size_t *ret_n,
                struct err *err);
/* Makes the exemplar of a cell, in memory of the arena. */
bool cells_exemplar(const struct cells *c, const struct cell *cell, struct arena *arena,
                    struct query_exemplar *ret, struct err *err);

#endif

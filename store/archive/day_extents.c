#include "store/archive/day_extents.h"

#include <stdlib.h>

/* Size of a page, and the limits of the bytes of a row that are on it: the format of SQLite,
 * "B-tree Pages". */
#define PAGE_BYTES (UINT64_C(64) * 1024)
#define CELL_MAX (PAGE_BYTES - 35)
#define CELL_MIN ((PAGE_BYTES - 12) * 32 / 255 - 23)
/* A row may be on a page with rows of other sets, and SQLite moves rows to a new page when one is
 * full. So a range has the neighbours of a set up to so many bytes of rows. The rows of points and
 * profiles are on pages by turns, those of points up to two pages away. */
#define BODIES_AROUND PAGE_BYTES
#define ROWS_AROUND (4 * PAGE_BYTES)
/* Limit of the neighbours on either side, as bytes of the file: large bytes of profiles have pages
 * of their own. */
#define AROUND_MAX (8 * PAGE_BYTES)

bool day_extents_begin(struct day_extents *e, struct db *db, struct err *err)
{
    if (e->n == e->cap) {
        size_t cap = e->cap == 0 ? 64 : 2 * e->cap;
        struct day_extent *at = reallocarray(e->at, cap, sizeof(at[0]));
        if (at == NULL) {
            return err_memory(err);
        }
        e->at = at;
        e->cap = cap;
    }
    struct day_extent *x = &e->at[e->n++];
    e->set_id = (int64_t)e->n;
    *x = (struct day_extent){.rows_before = e->row_bytes};
    return db_data_bytes(db, &x->from, err);
}

/* The rest of a large row has pages of its own. */
void day_extents_add(struct day_extents *e, uint64_t row)
{
    uint64_t local = row <= CELL_MAX ? row : CELL_MIN + (row - CELL_MIN) % (PAGE_BYTES - 4);
    e->row_bytes += local <= CELL_MAX ? local : CELL_MIN;
}

bool day_extents_end(struct day_extents *e, struct db *db, struct err *err)
{
    struct day_extent *x = &e->at[e->n - 1];
    x->rows_after = e->row_bytes;
    return db_data_bytes(db, &x->until, err);
}

static uint64_t limited(uint64_t bytes)
{
    return bytes < AROUND_MAX ? bytes : AROUND_MAX;
}

/* Widens the extent of each set by its neighbours. */
bool day_extents_take(struct day_extents *e, bool of_rows, struct day *ret, struct err *err)
{
    const struct day_extent *x = e->at;
    uint64_t around = of_rows ? ROWS_AROUND : BODIES_AROUND;
    size_t first = 0;
    size_t last = 0;
    if (ret->ranges == NULL && (ret->ranges = calloc(e->n + 1, sizeof(ret->ranges[0]))) == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < e->n; i++) {
        while (first < i && x[i].rows_before - x[first].rows_after >= around) {
            first++;
        }
        while (last < i || (last + 1 < e->n && x[last].rows_after - x[i].rows_after < around)) {
            last++;
        }
        struct day_range *r = &ret->ranges[i];
        uint64_t from = x[i].from - limited(x[i].from - x[first].from);
        uint64_t until = x[i].until + limited(x[last].until - x[i].until);
        r->set_id = (int64_t)i + 1;
        *(of_rows ? &r->rows_from : &r->from) = from;
        *(of_rows ? &r->rows_until : &r->until) = until;
    }
    ret->n_ranges = e->n;
    e->n = 0;
    e->row_bytes = 0;
    return true;
}

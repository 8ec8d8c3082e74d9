/* The places of the rows of each set in the file of a day, while day.c builds it.
 *
 * Owned by one thread. The caller frees `at`.
 */
#ifndef PROFPULL_STORE_ARCHIVE_DAY_EXTENTS_H
#define PROFPULL_STORE_ARCHIVE_DAY_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/archive/day.h"
#include "store/db.h"

/* The place of the rows that were written for a set. */
struct day_extent {
    uint64_t from; /* bytes of the file */
    uint64_t until;
    uint64_t rows_before; /* bytes of the rows of all sets before this one */
    uint64_t rows_after;  /* and of this one as well */
};

struct day_extents {
    int64_t set_id; /* the set that was begun last; they are numbered from 1 on */
    uint64_t row_bytes;
    struct day_extent *at;
    size_t n;
    size_t cap;
};

/* Begins the next set. False with err. */
bool day_extents_begin(struct day_extents *e, struct db *db, struct err *err);
/* Counts a row of so many bytes that was written for the set. */
void day_extents_add(struct day_extents *e, uint64_t row);
/* Ends the set. False with err. */
bool day_extents_end(struct day_extents *e, struct db *db, struct err *err);
/* Sets the ranges of all sets in ret->ranges, which is allocated if it is NULL: the rows_ members
 * or the others. Then begins with the first set again. False with err if out of memory. */
bool day_extents_take(struct day_extents *e, bool of_rows, struct day *ret, struct err *err);

#endif

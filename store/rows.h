/* Adds profiles to the tables of a file that is open for writing.
 *
 * The facts of a profile come from a put, or from the data file when its records are put into the
 * tables again. Under the store's lock for writing, within a transaction of the file.
 */
#ifndef PROFPULL_STORE_ROWS_H
#define PROFPULL_STORE_ROWS_H

#include "store/blob.h"
#include "store/data.h"
#include "store/writing.h"

/* The rows that a profile refers to. */
struct rows {
    int64_t set;
    int64_t series[STORE_PARTS_MAX]; /* facts->n_parts elements */
};

/* Finds or adds the rows of the set and of the series of a profile. False with err. */
bool rows_find(struct writing *w, const struct data_facts *facts, struct rows *ret,
               struct err *err);
/* Finds a profile at an instant that has the same bytes, salt and first series. False with err.
 * *ret_profile is its row, or 0 if there is none. */
bool rows_find_twin(struct writing *w, const struct data_facts *facts, const struct rows *rows,
                    int64_t time_ns, int64_t *ret_profile, struct err *err);
/* Adds a profile, whose bytes are in the data file, and its points. If facts->profile is 0, the
 * next free row is used. *ret_profile is its row. False with err. */
bool rows_add(struct writing *w, const struct data_facts *facts, const struct rows *rows,
              int64_t place, size_t size, int64_t *ret_profile, struct err *err);
/* Removes the points of a profile from its series. Within a transaction. False with err. */
bool rows_drop_points(struct db *db, const int64_t *series, size_t n_series, int64_t time_ns,
                      int64_t hash, struct err *err);

#endif

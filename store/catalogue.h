/* Reads the series of files in the form that queries need, and selects those that match.
 *
 * A scan gathers the series of all its files. A series that several files have is made once. A
 * catalogue belongs to one thread.
 */
#ifndef PROFPULL_STORE_CATALOGUE_H
#define PROFPULL_STORE_CATALOGUE_H

#include "store/blob.h"
#include "store/private.h"
#include "store/series_lists.h"

/* Memory for the series of one scan. */
#define CATALOGUE_BYTES_MAX ((size_t)256 * 1024 * 1024)

/* A series row of a file. */
struct catalogue_row {
    int64_t row;
    int64_t set_id;
    uint64_t columns; /* bit i: the sum of sample type i was not always 0 */
    uint64_t matched; /* bit i: the series of sample type i matches the selector */
    bool shared;      /* another row of the same set has a match, too */
};
/* A series that matches the selector. */
struct catalogue_match {
    int64_t row;
    const struct store_series *series;
};

struct catalogue {
    const struct selector *selector; /* NULL: all series match */
    bool wants_shared;               /* catalogue_row.shared is to be set; off after the start */
    struct arena *arena;
    struct map *series; /* hash -> struct store_series */
    uint64_t seeds[2];
    struct map *known;       /* number of a text -> its series */
    struct arena *row_arena; /* memory for the row that is being read */
    /* The members below describe the file that was read last. Rows are in order of their numbers;
     * matches are in order of rows, then of columns. */
    struct map *sets; /* id of a set -> 1 + the index of its first row that has a match */
    struct catalogue_row *rows;
    size_t n_rows;
    size_t rows_cap;
    struct catalogue_match *matches;
    size_t n_matches;
    size_t matches_cap;
};

bool catalogue_init(struct catalogue *c, const struct selector *selector, struct err *err);
void catalogue_done(struct catalogue *c);
/* Reads the series of a file. False with err, which is ERR_LIMIT if there are too many series;
 * db->fault says whether the file is to blame. */
bool catalogue_read(struct catalogue *c, struct db *db, struct err *err);
/* Reads the series of a file from its list. The error is ERR_INPUT if the list is damaged. */
bool catalogue_read_list(struct catalogue *c, const struct series_list *list, struct err *err);
/* Makes the list of a file, which the caller adds or releases. NULL with err; db->fault says
 * whether the file is to blame. */
struct series_list *catalogue_list_of(struct series_lists *lists, struct db *db, struct err *err);
/* Lists the rows that have a match and whose set comes after `after_set`, in order of sets, then of
 * rows. `ret` has room for n_rows elements. Returns their number. */
size_t catalogue_by_set(const struct catalogue *c, int64_t after_set,
                        const struct catalogue_row **ret);
/* Returns the row with a number; NULL if there is none. */
const struct catalogue_row *catalogue_row(const struct catalogue *c, int64_t row);
/* Returns the index of the first match of a row; the other matches of the row follow it. Returns
 * n_matches if the row has none. */
size_t catalogue_first_match(const struct catalogue *c, int64_t row);

#endif

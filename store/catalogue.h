/* The series of a file as queries see them, and which of them match.
 *
 * A scan gathers the series of all its files: each is made once, whatever files it is in. One
 * thread.
 */
#ifndef PROFPULL_STORE_CATALOGUE_H
#define PROFPULL_STORE_CATALOGUE_H

#include "store/blob.h"
#include "store/private.h"

/* Memory for the series of one scan. */
#define CATALOGUE_BYTES_MAX ((size_t)256 * 1024 * 1024)

/* A series row of a file. */
struct catalogue_row {
    int64_t row;
    uint64_t columns; /* whose sum is not always 0 */
    uint64_t matched; /* those of them that match */
    bool shared;      /* another row of the same set has a match */
};
/* A series that matches. */
struct catalogue_match {
    int64_t row;
    const struct store_series *series;
};

struct catalogue {
    const struct selector *selector; /* NULL: all */
    struct arena *arena;
    struct map *series; /* hash -> struct store_series */
    uint64_t seeds[2];
    struct arena *row_arena; /* for the row at hand */
    /* Of the file that was read last, in order of rows; matches also by column. */
    struct map *sets; /* number of a set -> number + 1 of the first row of it that has a match */
    struct catalogue_row *rows;
    size_t n_rows;
    size_t rows_cap;
    struct catalogue_match *matches;
    size_t n_matches;
    size_t matches_cap;
};

bool catalogue_init(struct catalogue *c, const struct selector *selector, struct err *err);
void catalogue_done(struct catalogue *c);
/* Reads the series of a file. False with err: ERR_LIMIT if there are too many; see db->fault. */
bool catalogue_read(struct catalogue *c, struct db *db, struct err *err);
/* The row with a number, or NULL. */
const struct catalogue_row *catalogue_row(const struct catalogue *c, int64_t row);
/* The first match of a row; the others follow. n_matches if there is none. */
size_t catalogue_first_match(const struct catalogue *c, int64_t row);

#endif

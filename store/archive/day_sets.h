/* The sets of labels of the sources of a day, and the series of each, which day.c writes.
 *
 * The sets are in order of service and type. So the rows and bytes of a service are neighbours in
 * the file, and a query of it reads one range. Owned by one thread; all memory is the arena's.
 */
#ifndef PROFPULL_STORE_ARCHIVE_DAY_SETS_H
#define PROFPULL_STORE_ARCHIVE_DAY_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "store/db.h"

/* A series of a source, and its row in the new file. */
struct day_series {
    size_t source;
    int64_t id;
    uint64_t columns;
    struct sv labels;
    int64_t row;             /* 0: it has none yet */
    struct day_series *next; /* of the same set */
};

struct day_set {
    struct sv blob;
    struct sv service;
    struct sv type;
    size_t number; /* counts the sets in the order in which they were found */
    struct day_series *series;
    struct day_series **last;
};

struct day_sets {
    struct arena *texts;   /* has the texts, and the sets */
    struct arena *scratch; /* the labels of one set */
    struct map *by_blob;
    struct day_set **at;
    size_t n;
    size_t cap;
};

/* Starts without sets. False if out of memory; then day_sets_done() is needed, too. */
bool day_sets_init(struct day_sets *sets);
void day_sets_done(struct day_sets *sets);
/* Adds the series of a source, which is database number `source`. False with err; then
 * *ret_failed is true if the database is at fault. */
bool day_sets_add(struct day_sets *sets, struct db *db, size_t source, bool *ret_failed,
                  struct err *err);
/* Gives a row to a series, and to the equal ones after it in its set. */
void day_series_number(struct day_series *s, int64_t row);
/* Brings the sets into their order. */
void day_sets_sort(struct day_sets *sets);

#endif

/* Builds one database from the databases of a day.
 *
 * The result has all profiles of its sources, with their times, sums and hashes; so timelines do
 * not change. The bytes of profiles that can be merged are merged to one for each series and
 * `merge_ms`. The bytes of all sets of labels come first, set after set; then come the other rows
 * of all sets, in the same order. So one range of the bytes and one of the rows have what a query
 * of one service reads. Rows get new numbers, so profiles get new ids.
 *
 * Blocks on the disk and on the sources, which may be remote. One thread.
 */
#ifndef PROFPULL_STORE_ARCHIVE_DAY_H
#define PROFPULL_STORE_ARCHIVE_DAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/db.h"

/* Limit of the sources of one database: all of them are open at the same time. */
#define DAY_SOURCES_MAX 64

/* The ranges of the file that have the bytes of the profiles of a set, and its other rows; and
 * perhaps some of its neighbours. */
struct day_range {
    int64_t set_id;
    uint64_t from;
    uint64_t until;
    uint64_t rows_from;
    uint64_t rows_until;
};

struct day_options {
    struct db *const *sources;
    size_t n_sources; /* 1 to DAY_SOURCES_MAX */
    const char *path; /* of the new file; an earlier file of this name is replaced */
    int64_t merge_ms; /* a merged profile covers this much time; 0: nothing is merged */
    /* Called often. Returns false to give up: day_build() then fails without an error. */
    bool (*go_on)(void *arg);
    void *arg;
};

struct day {
    uint64_t profiles;
    struct day_range *ranges; /* in order of set ids, for free() */
    size_t n_ranges;
    uint64_t rows_from;   /* the bytes of profiles end here */
    size_t failed_source; /* index of the source that is at fault; SIZE_MAX: none is */
};

/* Builds the database, which is complete and closed afterwards. False with err; then the file may
 * exist and be incomplete. */
bool day_build(const struct day_options *o, struct day *ret, struct err *err);

#endif

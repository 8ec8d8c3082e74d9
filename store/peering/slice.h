/* Makes a slice: a database in memory with those rows of a file that a scan of another process
 * needs.
 *
 * A slice has the tables of a file, and its rows have the numbers that they have in the file. A
 * scan of the slice therefore finds the same series, points, bodies and ids as a scan of the file.
 * The bytes of profiles are in the tables, also those that the file has in its data file.
 *
 * A slice has all rows of whole sets, in order of the numbers of sets. Profiles are merged only
 * with profiles of their set, so a large file can be read in several slices, even while it is being
 * merged. The calling thread owns both connections.
 */
#ifndef PROFPULL_STORE_PEERING_SLICE_H
#define PROFPULL_STORE_PEERING_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "store/catalogue.h"
#include "store/db.h"

/* The rows that a slice has, beside those of sets and series. */
enum slice_kind {
    SLICE_SERIES,  /* for each series the first point that is not 0 */
    SLICE_POINTS,  /* all points */
    SLICE_TIMED,   /* and the rows of profiles, which say when windows end */
    SLICE_HEADS,   /* points that are not 0, rows of profiles, and merges without bytes */
    SLICE_BODIES,  /* the same, with all bytes */
    SLICE_PROFILE, /* one profile, with its bytes */
    SLICE_KINDS
};
/* Returns "series", "points", "timed", "heads", "bodies" or "profile". */
const char *slice_kind_name(enum slice_kind kind);
bool slice_kind_find(struct sv name, enum slice_kind *ret);

struct slice_options {
    enum slice_kind kind;
    int64_t from_ns; /* the range of points, both ends inclusive */
    int64_t until_ns;
    int64_t profile;       /* SLICE_PROFILE: the row of the profile, */
    int64_t profile_ms;    /* and the time */
    uint64_t profile_hash; /* and hash in its id */
    int64_t after_set;     /* sets with greater numbers are taken; 0: all of them */
    uint64_t bytes;        /* no further set is added when the slice has so many bytes */
    uint64_t bytes_max;
    const struct catalogue *catalogue; /* of the file: its matches are taken */
    const int64_t *bad;                /* profiles that are left out, sorted */
    size_t n_bad;
};

/* Fills an empty slice (db_make_slice()) from a file. Call it within a transaction of `from`, in
 * which the catalogue was read, so that both have the same rows. *ret_last is the last set of the
 * slice if sets are missing, and 0 if it has all of them. False with err; if the file is to blame,
 * from->fault is set. */
bool slice_fill(struct db *from, const struct slice_options *o, struct db *slice, int64_t *ret_last,
                struct err *err);

#endif

/* A scan over files, and reading the points of one of them: declarations that the sources of the
 * scan share.
 *
 * Points are read in pieces and bodies one by one, so that no statement stays open while a callback
 * runs for long. Therefore a scan never keeps the log of a file from being copied into it. A scan
 * belongs to one thread.
 */
#ifndef PROFPULL_STORE_SCAN_H
#define PROFPULL_STORE_SCAN_H

#include "store/catalogue.h"
#include "store/peering/gather.h"

#define SCAN_PIECE 512

/* A scan, which visits one file after the other. */
struct scan {
    struct store *store;
    const struct store_range *range;
    struct catalogue catalogue;
    struct arena *index_arena; /* for the index of a file of the archive */
    bool stopped;              /* a callback has ended the scan */
    bool any;                  /* also visit files without a series that matches */
    bool wants_shared;         /* see catalogue.wants_shared */
    bool with_sums;            /* see struct store_scan */
    int64_t floor_ns;          /* files that end before are left out; visit_file may raise it */
    struct peering_scan peers; /* the rows that peers are asked for */
    /* The members below describe the file that is being visited. */
    struct store_file *file;
    uint64_t file_number;
    struct db *db; /* NULL: the file is not open, see needs_file */
    int64_t *bad;  /* profiles of the file whose bytes have changed: they are not counted */
    size_t n_bad;
    /* Returns false if visit_file reads the catalogue only, so that the file need not be opened.
     * NULL: files are always opened. */
    bool (*needs_file)(struct scan *c);
    bool (*visit_file)(struct scan *c, struct err *err);
    void *job; /* the argument of visit_file */
};

/* Visits the files of the range. False with err on failure. */
bool scan_run(struct scan *c, bool backwards, struct err *err);
/* Returns true if the range covers all profiles of the file. */
bool scan_is_within(const struct scan *c);

/* ---- points of a file ------------------------------------------------------------------------ */

struct raw_point {
    int64_t time_ns;
    int64_t until_ns; /* 0 unless the range is with_windows */
    uint64_t hash;
    int64_t profile;
    int64_t sums[SUMMARY_TYPES_MAX];
    size_t n_sums;
};

/* Reads the points of a series row piece by piece. */
struct piece {
    int64_t row;
    int64_t after_ns; /* the last point that was read */
    int64_t after_hash;
    struct raw_point *at; /* SCAN_PIECE elements, for free() */
    size_t n;
};

bool piece_init(struct piece *p, struct err *err);
void piece_start(const struct scan *c, struct piece *p, int64_t row);
/* Reads the next points. At the end, p->n is below SCAN_PIECE. */
bool piece_next(struct scan *c, struct piece *p, struct err *err);

#endif

/* One pass of merging over a file, and the sealing of the file at its end. */
#ifndef PROFPULL_STORE_MERGING_H
#define PROFPULL_STORE_MERGING_H

#include "base/buf.h"
#include "pprof/merge.h"
#include "store/blob.h"
#include "store/private.h"
#include "store/unsplit.h"

/* A profile that is not merged. */
struct single {
    int64_t set;
    int64_t cell; /* the time of the profile divided by the time that a merge covers */
    int64_t time_ns;
    int64_t until_ns;
    int64_t profile;
    int64_t only; /* its only series; 0: it has several */
    bool unsplit; /* it is merged with others of its kind only: see unsplit.h */
};

/* The merge of a cell, or of as many profiles of the cell as fit into memory. */
struct group {
    struct merge *merge; /* NULL: none yet */
    const struct single *first;
    const struct single **members;
    size_t n;
    int64_t until_ns;
    uint64_t bytes;
    int64_t series[STORE_PARTS_MAX];
    size_t n_series;
};

/* A profile whose row is to be changed. */
struct changed {
    int64_t profile;
    size_t done; /* index of its merge in merging.done */
};

/* A merge that was made and is to be written; or, without data, a profile that is never merged. */
struct merged {
    struct single first;
    int64_t until_ns;
    uint64_t bytes; /* of its members */
    int64_t merge;  /* its row, when it was written; -1: it has no data */
    size_t n_members;
    size_t data_at; /* in merging.out */
    size_t data_n;
    size_t series_at; /* in merging.blob */
    size_t series_n;
};

struct merging {
    struct store *store;
    struct store_file *file;
    struct db db; /* the connection for reading and writing */
    struct unsplit unsplit;
    struct single *at;
    size_t n;
    struct group group;
    /* The members below, up to blob, are written by the next transaction. */
    struct merged *done;
    size_t n_done;
    size_t done_cap;
    struct changed *members; /* profiles of all of them */
    size_t n_members;
    size_t members_cap;
    struct buf out;         /* the data of all of them */
    struct buf blob;        /* the lists of series of all of them */
    struct db_body *placed; /* profiles that are copied into the database */
    size_t n_placed;
    bool sealed;      /* no profile is in the data file any more */
    int64_t paid_ns;  /* see store_merge_pause_ms() */
    uint64_t left;    /* profiles of the file that are not merged, as this pass counts them */
    int64_t merge_ms; /* the setting at the start of the pass; 0: the file is only sealed */
};

/* Sleeps as long as the thread's share of a core requires. Returns false if the store closes. */
bool merging_rest(struct merging *m);
/* Writes in one transaction, while no scan reads the file and no profile is put into it. `after`,
 * which may be NULL, is called when it was committed, before scans and puts go on. Returns false,
 * with err unless the store closes. */
bool merging_transaction(struct merging *m, bool (*write)(struct merging *m, struct err *err),
                         bool (*after)(struct merging *m, struct err *err), struct err *err);

/* Seals a file that is merged, unless it is open for writing: copies the bytes of the profiles that
 * are left in the data file into the database, and removes the data file. False with err. */
bool sealing_seal(struct merging *m, struct err *err);

#endif

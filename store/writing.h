/* The files that are open for writing. Each has a connection, a data file, and the rows that are
 * known.
 *
 * A batch of profiles is appended to the data file, and then counts as stored. Their rows are made
 * in a transaction that stays open over many batches, because a commit writes whole pages: many
 * profiles share them. Within it, each batch is a savepoint. The transaction is committed when it
 * is old or large, when a query reads the file, and when the file is closed. If it is lost, the
 * data file has the profiles, and their rows are made again when the file is opened (tail.c).
 *
 * At most STORE_WRITERS_MAX are open at the same time. One thread at a time, under the store's lock
 * for writing.
 */
#ifndef PROFPULL_STORE_WRITING_H
#define PROFPULL_STORE_WRITING_H

#include <sys/types.h>

#include "base/buf.h"
#include "store/private.h"

/* A transaction that has more than this, or is older, is committed. */
#define WRITING_TAIL_BYTES (INT64_C(32) * 1024 * 1024)
#define WRITING_TAIL_MS (30 * MS_PER_S)

struct known_series {
    int64_t row;
    uint64_t columns;
};

/* Profiles that were added. */
struct writing_sum {
    uint64_t profiles;
    int64_t oldest_ns;
    int64_t newest_ns;
};

struct writing {
    struct store_file *file;
    struct db db;
    ino_t inode;
    int count_fd;       /* descriptor of the count of commits; -1: none */
    uint64_t committed; /* profiles committed to the file */
    struct map *sets;   /* blob -> row, as a pointer */
    struct map *series; /* set and labels -> struct known_series */
    struct buf blob;    /* memory for one blob */
    uint64_t used;      /* number of its last use; the file with the lowest one is closed first */
    int64_t used_ms;
    int data_fd; /* descriptor of the data file; -1: none */
    ino_t data_inode;
    uint64_t salt;
    int64_t data_end; /* end of the last record */
    bool named;       /* the entry of the data file in the directory was synced */
    /* The members below describe the transaction. */
    bool transaction;
    struct writing_sum tail; /* profiles of the batches that were committed to it */
    int64_t tail_start;      /* data_end when it began */
    int64_t tail_ms;         /* when it began */
    bool stale;              /* it was lost: the file has to be opened again */
    /* The members below describe the batch. */
    bool open; /* the file has a part in it */
    /* the reason why it failed; then all further puts of the batch fail as well */
    struct err problem;
    struct writing_sum batch;
    int64_t batch_start; /* data_end when it began */
};

/* Prepares for a batch: closes files that somebody has removed or replaced and files that turned
 * out not to be writable, and clears the errors of the last batch. */
void writing_begin_batch(struct store *s);

/* Returns the file for profiles of a time, and opens it if necessary. A file that cannot be written
 * is only read from then on, and a further file of its stretch takes its place. NULL with err; then
 * *ret_no_place says whether all files that may be open have a part in the batch. */
struct writing *writing_of(struct store *s, int64_t from_ns, bool *ret_no_place, struct err *err);

/* Begins the part of a file in the batch, unless it has begun. */
bool writing_begin(struct writing *w, struct err *err);
/* Returns the place that the bytes of a profile will have if its facts have so many bytes. */
int64_t writing_place(const struct writing *w, size_t facts_bytes);
/* Appends a record to the data file. */
bool writing_append(struct writing *w, struct sv facts, struct sv body, struct err *err);
/* Counts a profile that was added. */
void writing_note(struct writing_sum *sum, int64_t time_ns);
/* Commits the batch: its profiles are stored from then on. False with err; then the batch has not
 * ended. */
bool writing_commit(struct store *s, struct writing *w, struct err *err);
/* Takes back the batch and everything that was put in it. */
void writing_give_up(struct store *s, struct writing *w, const struct err *err);
/* Commits the transaction, if there is one, so that readers see all profiles. Syncs the data file
 * first if `sync` is set, and then copies the log if it is large. False with err; then the file is
 * stale, and its profiles are put into the tables again when it is opened the next time. */
bool writing_index(struct store *s, struct writing *w, bool sync, struct err *err);

/* Creates the maps of known rows, or empties them when they are large. */
bool writing_make_known(struct writing *w);

/* ---- the data file (tail.c) ------------------------------------------------------------------ */

/* Opens or creates the data file of a file whose database is open. Puts the records that the tables
 * do not have into them, and removes the rows of profiles that the data file has lost. False with
 * err; if the file is to blame, its fault is set and logged. */
bool tail_attach(struct store *s, struct writing *w, struct err *err);

#endif

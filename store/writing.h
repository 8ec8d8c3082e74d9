/* The files that are open for writing. Each has a connection, and the rows of it that are known.
 *
 * At most STORE_WRITERS_MAX are open at the same time. One thread at a time, under the store's lock
 * for writing.
 */
#ifndef PROFPULL_STORE_WRITING_H
#define PROFPULL_STORE_WRITING_H

#include <sys/types.h>

#include "store/private.h"

struct known_series {
    int64_t row;
    uint64_t columns;
};

struct writing {
    struct store_file *file;
    struct db db;
    ino_t inode;
    int count_fd;       /* descriptor of the count of commits; -1: none */
    uint64_t committed; /* profiles committed to the file */
    struct map *sets;   /* blob -> row, as a pointer */
    struct map *series; /* set and labels -> struct known_series */
    uint64_t used;      /* number of its last use; the file with the lowest one is closed first */
    int64_t used_ms;
    /* The members below describe the transaction. */
    bool open;
    /* the reason why it failed; then all further puts of the batch fail as well */
    struct err problem;
    uint64_t profiles;
    int64_t oldest_ns;
    int64_t newest_ns;
    uint64_t data_bytes; /* size of the database after the transaction */
};

/* Prepares for a batch: closes files that somebody has removed or replaced and files that turned
 * out not to be writable, and clears the errors of the last batch. */
void writing_begin_batch(struct store *s);

/* Returns the file for profiles of a time, and opens it if necessary. A file that cannot be written
 * is only read from then on, and a further file of its stretch takes its place. NULL with err; then
 * *ret_no_place says whether all files that may be open have a part in the batch. */
struct writing *writing_of(struct store *s, int64_t from_ns, bool *ret_no_place, struct err *err);

/* Begins the transaction of a file, unless it has begun. */
bool writing_begin(struct writing *w, bool sync, struct err *err);
/* Commits the transaction. False with err; then the transaction has not ended. */
bool writing_commit(struct store *s, struct writing *w, struct err *err);
/* Rolls back the transaction and everything that was put in it. */
void writing_give_up(struct store *s, struct writing *w, const struct err *err);

/* Creates the maps of known rows, or empties them when they are large. */
bool writing_make_known(struct writing *w);

#endif

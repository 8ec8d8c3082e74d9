/* The files that are written: each has a connection, and what is known of its rows.
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
    int count_fd;       /* of the count of commits; -1: none */
    uint64_t committed; /* profiles */
    struct map *sets;   /* blob -> row, as a pointer */
    struct map *series; /* set and labels -> struct known_series */
    uint64_t used;      /* when, for choosing which to close */
    int64_t used_ms;
    /* The transaction. */
    bool open;
    struct err problem; /* why it failed; all further puts of the batch fail as well */
    uint64_t profiles;
    int64_t oldest_ns;
    int64_t newest_ns;
    uint64_t data_bytes; /* of the database after it */
};

/* Before a batch: closes the files that somebody has removed or replaced, and those that turned out
 * not to be writable, and forgets the problems of the last batch. */
void writing_begin_batch(struct store *s);

/* Returns the file for profiles of a time, and opens it if necessary. A file that cannot be written
 * is left to readers, and a further file of its stretch takes its place. NULL with err;
 * *ret_no_place says that as many files as may be open have a part in the batch. */
struct writing *writing_of(struct store *s, int64_t from_ns, bool *ret_no_place, struct err *err);

/* Begins the transaction, if it has not begun. */
bool writing_begin(struct writing *w, bool sync, struct err *err);
/* Commits it. False with err; it has not ended then. */
bool writing_commit(struct store *s, struct writing *w, struct err *err);
/* Gives up the transaction, with all that was put in it. */
void writing_give_up(struct store *s, struct writing *w, const struct err *err);

/* Makes the maps of known rows, and empties them when they are large. */
bool writing_make_known(struct writing *w);

#endif

/* The inside of the store; for write/spool/store*.c only.
 *
 *   store.c       opening, listing, appending, syncing, loading
 *   store_missing.c  files that somebody has removed
 *   store_done.c  acknowledgements, removal, room, and reading segments of earlier processes
 */
#ifndef PROFPULL_WRITE_SPOOL_STORE_PRIVATE_H
#define PROFPULL_WRITE_SPOOL_STORE_PRIVATE_H

#include "base/buf.h"
#include "base/clock.h"
#include "write/spool/store.h"

/* A file that is kept open because it will be used again. */
struct spool_file {
    int fd; /* -1: none */
    struct spool_segment *segment;
    bool dirty; /* written to since the last sync */
};

struct spool_store {
    const struct spool_options *options;
    char *directory; /* the directory of the endpoint */
    bool sync;       /* false: fsync(2) is never called */
    int dir;         /* -1: not open now */
    int lock;        /* the descriptor of the lock file; -1: the lock is not held now */
    bool dir_locked; /* the directory itself is locked as well */
    bool listed;
    bool forbidden;                     /* the directory could not be opened for want of rights */
    struct spool_segment_list segments; /* the segments in the order of their ids */
    struct spool_entry_list orphans;    /* entries whose segment is gone */
    uint64_t next_id;
    uint64_t segment_bytes;
    struct rng rng;

    struct spool_file active; /* the file to which records are appended */
    struct spool_file reading;
    struct spool_file acking;
    bool dir_dirty;
    bool unsafe; /* a file could not be synced before it was closed */

    /* The segment that is being read, of an earlier process. */
    struct spool_segment *walking;
    struct spool_walk walk;
    struct spool_numbers acked;
    struct spool_entry *unplaced; /* an entry that was found when there was no room */

    /* The records that others replace are known before any record of an earlier process is handed
     * over. */
    struct {
        bool done;
        uint64_t id; /* the segment that is being walked, or was walked last */
        struct spool_walk walk;
        struct spool_numbers replaced; /* place_number() of the records, sorted when done */
        bool out_of_memory;
    } scan;

    struct labels_builder *builder;
    struct buf head; /* the head of the record that is being written, and its labels */
    struct spool_counts counts;
};

/* Counts a failed system call, and puts it into *err. Returns false. */
bool spool_store_failed(struct spool_store *s, enum spool_error what, const char *name,
                        struct err *err);
/* Writes all bytes of two parts. Returns -1 on failure. */
int spool_write_full(int fd, const void *a, size_t a_size, const void *b, size_t b_size,
                     uint64_t offset);
void spool_store_close_file(struct spool_store *s, struct spool_file *f);
/* Ends appending to the active segment; the next append begins another. */
void spool_store_seal(struct spool_store *s);
struct spool_segment *spool_store_add_segment(struct spool_store *s, uint64_t id);
void spool_store_free_segment(struct spool_store *s, struct spool_segment *g);
/* Takes an entry off its list and frees it. */
void spool_store_free_entry(struct spool_entry_list *list, struct spool_entry *e);
enum spool_room { SPOOL_ROOM_MADE, SPOOL_ROOM_NONE, SPOOL_ROOM_FAILED };
/* Drops the oldest segments until n more bytes fit. NONE, also with an error: no further segment
 * may be dropped. */
enum spool_room spool_store_make_room(struct spool_store *s, uint64_t n, struct err *err);
/* Removes a segment if it has no live records and no more will be written to it. */
bool spool_store_retire(struct spool_store *s, struct spool_segment *g, struct err *err);
void spool_store_end_walk(struct spool_store *s);
/* Takes the lock of the open directory. Returns false with errno on failure. */
bool spool_store_lock(struct spool_store *s);
/* Closes the directory, which has to be opened and listed again. */
void spool_store_close_directory(struct spool_store *s);
/* Marks the segments that have no file; present is sorted. Returns true if there is such a segment.
 */
bool spool_store_mark_missing(struct spool_store *s, const struct spool_numbers *present);

#endif

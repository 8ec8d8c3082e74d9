/* What the files of the store share: its files, connections and the writer. */
#ifndef PROFPULL_STORE_PRIVATE_H
#define PROFPULL_STORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "pprof/scratch.h"
#include "store/db.h"
#include "store/store.h"

/* ---- files (files.c) ------------------------------------------------------------------------- */

/* A name is "20261122T130000Z-1h.db", or with ".2", ".3", ... before ".db": further files of the
 * same stretch, because the one before is damaged or large. */
#define STORE_NAME_SIZE 96
#define STORE_FILES_OF_A_STRETCH_MAX 9999

struct store_name {
    int64_t start_ms;
    int64_t length_ms;
    unsigned generation; /* from 1 */
};
void store_name_format(const struct store_name *name, char out[STORE_NAME_SIZE]);
bool store_name_parse(struct sv text, struct store_name *ret);

/* One file. Reference-counted; what follows the lock's comment is guarded by the store's lock. */
struct store_file {
    atomic_uint refs;
    struct store_name name;
    char text[STORE_NAME_SIZE];
    char *path;
    /* guarded */
    bool gone;           /* removed, or not there any more */
    enum db_fault fault; /* it is left alone */
    uint64_t profiles;
    uint64_t singles; /* of them not merged */
    int64_t oldest_ns;
    int64_t newest_ns;
    uint64_t left;  /* singles after the last merging */
    unsigned scans; /* that read it */
    bool merging;   /* its bodies are being replaced: scans wait */
};

struct store_file *store_file_ref(struct store_file *f);
struct store_file *store_file_unref(struct store_file *f);

/* The first and last instant that may be in it, inclusive, in ns. */
int64_t store_file_from_ns(const struct store_file *f);
int64_t store_file_until_ns(const struct store_file *f);
/* Bytes on the disk, its log included. */
uint64_t store_file_bytes(const struct store_file *f);

/* Makes the directory and takes its lock, if that is not done yet or the directory was removed. */
bool store_take_directory(struct store *s, struct err *err);
/* Lists the directory and looks into each file. */
bool store_list(struct store *s, struct err *err);
/* The file for a stretch, which the caller unrefs; NULL with err. */
struct store_file *store_file_for(struct store *s, int64_t from_ns, struct err *err);
/* References to the files that overlap a range, in order of time; the caller frees the array. */
bool store_files_in(struct store *s, int64_t from_ns, int64_t until_ns, struct store_file ***ret,
                    size_t *ret_n, struct err *err);
void store_files_free(struct store_file **files, size_t n);
/* What is wrong with a file was found out: it is counted, logged and left alone from now on. */
void store_file_fault(struct store *s, struct store_file *f, enum db_fault fault, const char *why);
/* It was removed by somebody. */
void store_file_gone(struct store *s, struct store_file *f);
/* Unlinks a file and forgets it. */
bool store_file_remove(struct store *s, struct store_file *f, struct err *err);

/* ---- connections for reading (readers.c) ----------------------------------------------------- */

#define STORE_IDLE_READERS_MAX 16

struct reader_conn {
    struct store_file *file; /* a reference */
    struct db db;
    bool empty;
    struct reader_conn *next;
};
/* NULL with err; *ret_skip: the file has nothing to read, or its fault has been dealt with. */
struct reader_conn *store_reader_take(struct store *s, struct store_file *f, bool *ret_skip,
                                      struct err *err);
/* Gives it back; one with a fault is closed and its file marked. */
void store_reader_give(struct store *s, struct reader_conn *c, const struct err *err);
/* Closes idle ones of a file, or all (NULL). */
void store_readers_close(struct store *s, const struct store_file *f);

/* A scan of a file and the replacing of its bodies exclude each other. */
void store_scan_begin(struct store *s, struct store_file *f);
void store_scan_end(struct store *s, struct store_file *f);

/* ---- the writer (put.c) ---------------------------------------------------------------------- */

/* Stretches that are written at the same time: late profiles go to earlier ones. */
#define STORE_WRITERS_MAX 4

void store_writers_close(struct store *s, const struct store_file *f); /* NULL: all */
/* The id of a profile: when it was, a part of the hash of its bytes, and its row. */
void store_id_format(int64_t time_ns, uint64_t hash, int64_t row, char out[STORE_ID_LENGTH + 1]);
bool store_id_parse(struct sv text, int64_t *ret_time_ms, uint64_t *ret_hash, int64_t *ret_row);
bool store_id_fits(int64_t time_ns, uint64_t hash, int64_t time_ms, uint64_t id_hash);
/* Whether bytes have a hash, whatever their salt is. */
bool store_hash_fits(struct sv data, uint64_t hash);

/* The files that are written, with references; at most STORE_WRITERS_MAX. */
size_t store_writers_files(struct store *s, struct store_file **ret);
/* Closes those whose stretch is over and that nothing came for in so long. */
void store_writers_close_idle(struct store *s, int64_t now_ns, int64_t idle_ms);

/* ---- on the store's own thread (maintain.c, merging.c) --------------------------------------- */

bool store_background_start(struct store *s, struct err *err);
void store_background_stop(struct store *s);
/* One round of all of it, as of a wall time; also for tests. */
void store_maintain(struct store *s, int64_t now_ns);
void store_merge_files(struct store *s, int64_t now_ns);
/* How long merging pauses when its thread has used so much of a core, of which it may have so many
 * percent (1 to 100). *paid_ns: how much of that pauses have made up for; what is less than a
 * millisecond of pause stays owed. */
int64_t store_merge_pause_ms(int64_t used_ns, unsigned percent, int64_t *paid_ns);
/* Copies the log of a file into it; truncate: waits for readers, and empties it. */
bool store_checkpoint(struct db *db, bool truncate, struct err *err);
/* False if the store closes meanwhile. */
bool store_pause(struct store *s, int64_t ms);

/* ---- the store ------------------------------------------------------------------------------- */

struct store_metrics {
    struct metric *puts;   /* by result */
    struct metric *faults; /* by reason */
    struct metric_cell *commits;
    struct metric_cell *commit_seconds;
    struct metric_cell *put_bytes;
    struct metric_cell *duplicates;
    struct metric_cell *unsplit;
    struct metric_cell *bad_rows;
    struct metric *removed; /* by reason */
    struct metric_cell *merged;
    struct metric_cell *merged_bytes;
    struct metric_cell *merges_bytes;
    struct metric_cell *unmergeable;
    struct metric_cell *merge_failures;
};

/* What store_configure() changes, of the options. */
struct store_limits {
    _Atomic int64_t stretch_ms;
    _Atomic int64_t max_age_ms;
    _Atomic uint64_t max_bytes;
    _Atomic int64_t merge_ms;
    atomic_uint merge_cpu;
};

struct store {
    struct store_options options; /* name and directory are copies; see limits */
    struct store_limits limits;
    struct store_metrics metrics;
    int lock_fd;
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* monotonic */
    bool stopping;
    struct store_file **files; /* in order of names */
    size_t n_files;
    size_t files_cap;
    struct reader_conn *idle;
    size_t n_idle;
    /* of the writing thread; under its own lock, because retention closes them too */
    pthread_mutex_t write_lock;
    struct writing *writers[STORE_WRITERS_MAX];
    struct scratch *scratch;
    uint64_t uses; /* of files by puts */
    uint64_t batch_start;
    pthread_mutex_t maintain_lock; /* one round at a time */
    pthread_t thread;
    bool has_thread;
};

#endif

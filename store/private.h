/* Declarations that the sources of the store share: files, connections, the writer, the background.
 */
#ifndef PROFPULL_STORE_PRIVATE_H
#define PROFPULL_STORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "pprof/scratch.h"
#include "store/db.h"
#include "store/store.h"

/* ---- files (files.c) ------------------------------------------------------------------------- */

/* The name of a file: start and length of its stretch, as in "20261122T130000Z-1h.db". A stretch
 * gets further files (".2.db", ".3.db", ...) when the one before is damaged, cannot be written, or
 * is large. */
#define STORE_NAME_SIZE 96
#define STORE_FILES_OF_A_STRETCH_MAX 9999

struct store_name {
    int64_t start_ms;
    int64_t length_ms;
    unsigned generation; /* from 1 */
};
void store_name_format(const struct store_name *name, char out[STORE_NAME_SIZE]);
bool store_name_parse(struct sv text, struct store_name *ret);

/* One file, with a count of references. The store's lock guards the members below "guarded". */
struct store_file {
    atomic_uint refs;
    struct store_name name;
    char text[STORE_NAME_SIZE];
    char *path;
    /* guarded */
    bool gone;           /* the file was removed, by us or by somebody else */
    enum db_fault fault; /* if not DB_FINE, the file is left alone */
    bool unwritable;     /* the file is only read; its stretch gets a further file */
    uint64_t profiles;
    uint64_t singles; /* profiles that are not merged */
    int64_t oldest_ns;
    int64_t newest_ns;
    uint64_t left;  /* singles after the last pass of merging */
    unsigned scans; /* running scans of the file */
    bool merging;   /* a merge replaces bodies: new scans wait */
    /* Bytes of the database when its log has been copied into it, and of the file of its log. */
    uint64_t data_bytes;
    uint64_t log_bytes;
};

struct store_file *store_file_ref(struct store_file *f);
struct store_file *store_file_unref(struct store_file *f);

/* The first and the last instant of the file's stretch, both inclusive. */
int64_t store_file_from_ns(const struct store_file *f);
int64_t store_file_until_ns(const struct store_file *f);
/* Reads the directory and the state of each file in it. */
bool store_list(struct store *s, struct err *err);
/* Returns the file for profiles of an instant, with a reference; NULL with err. */
struct store_file *store_file_for(struct store *s, int64_t from_ns, struct err *err);
/* Returns references to the files that overlap a range, in order of time. The caller frees them
 * with store_files_free(). False with err if the store is not open, or out of memory. */
bool store_files_in(struct store *s, int64_t from_ns, int64_t until_ns, struct store_file ***ret,
                    size_t *ret_n, struct err *err);
void store_files_free(struct store_file **files, size_t n);
/* Returns how many files, except one, have profiles both at or before and at or after an instant,
 * with references in ret. */
#define STORE_FILES_OF_A_TIME_MAX 64
size_t store_files_at(struct store *s, int64_t time_ns, const struct store_file *except,
                      struct store_file *ret[STORE_FILES_OF_A_TIME_MAX]);
/* Counts and logs the fault of a file, and leaves the file alone from now on. */
void store_file_fault(struct store *s, struct store_file *f, enum db_fault fault, const char *why);
/* Counts and logs that a file cannot be written, and only reads it from now on. */
void store_file_unwritable(struct store *s, struct store_file *f, const char *why);
/* Checks what the system says of a file before SQLite opens it: a link that leads nowhere, no
 * regular file, or an empty one whose log SQLite would remove. Returns false if it has a fault,
 * which is set. A file that does not exist has none. */
bool store_file_check(struct store *s, struct store_file *f);
/* Looks again into the files that could not be read. */
void store_retry_unreadable(struct store *s);
/* Forgets a file that somebody has removed: counts and logs it. */
void store_file_gone(struct store *s, struct store_file *f);
/* Unlinks a file and forgets it. */
bool store_file_remove(struct store *s, struct store_file *f, struct err *err);

/* ---- copies (copies.c) ----------------------------------------------------------------------- */

/* Leaves files alone whose profiles are all in another file of the same time: somebody has copied
 * it, and they would count twice. */
void store_find_copies(struct store *s);

/* ---- counts of commits (count.c) ------------------------------------------------------------- */

#define STORE_COUNT_SUFFIX "-count"

/* Opens or makes the count of the database with a path; -1 with errno. */
int store_count_open(const char *path);
bool store_count_write(int fd, uint64_t n);
/* Returns false if there is no intact count. */
bool store_count_read(const char *path, uint64_t *ret);
/* Names the profiles that were committed to a file and are not in it any more, once. A file without
 * a count gets one. Before the file is written. */
void store_count_check(struct store *s, const struct store_file *f);
/* Removes the count of a database that does not exist, and names its profiles. */
void store_count_orphan(struct store *s, const char *path);
void store_count_remove(const char *path);
/* Counts and logs n profiles that are lost. */
void store_lost(struct store *s, const char *path, uint64_t n, const char *why);

/* ---- the directory (directory.c) ------------------------------------------------------------- */

/* Makes the directory and takes its locks, if that is not done yet, or if the directory or the file
 * with the lock was removed. If the process may not do that any more, as in its sandbox, the store
 * is cut off, which is logged once. Under the lock for writing, or while the store opens. */
bool store_take_directory(struct store *s, struct err *err);
void store_leave_directory(struct store *s);

/* ---- room on the disk (room.c) --------------------------------------------------------------- */

/* The log of a file (`-wal`) takes whole pages for each commit, some 64 KiB for a small profile. It
 * does not count towards retention.max_bytes, which databases alone count for, but it has a limit:
 * a 64th of max_bytes, from 1 to 16 MiB. A commit that exceeds it copies the log, and the
 * background empties all logs in each round. A disk must always have room to copy the logs: a batch
 * that would take this room is refused, so that a full disk recovers when files are removed. */

/* Measures the disk: a smaller one than max_bytes stands for max_bytes. */
void store_disk_measure(struct store *s);
/* Bytes that the databases may take together; 0: no limit. */
uint64_t store_max_bytes(const struct store *s);
void store_log_limit(const struct store *s, struct db *db);
/* Returns true if a file is so large that its stretch gets a further one. Under the lock. */
bool store_file_is_full(const struct store *s, const struct store_file *f);
/* Reads how large the log of a file is. */
void store_log_note(struct store *s, struct store_file *f);
/* Copies the logs of all files into their databases, and empties those that nobody uses. */
void store_logs_copy(struct store *s);
/* Returns true if the disk has room for a batch of n profiles; if not, after emptying the logs, it
 * sets err. Under the lock for writing. */
bool store_has_room(struct store *s, uint64_t bytes, size_t n, struct err *err);

/* ---- connections for reading (readers.c) ----------------------------------------------------- */

#define STORE_IDLE_READERS_MAX 16

struct reader_conn {
    struct store_file *file; /* a reference */
    struct db db;
    bool empty;
    struct reader_conn *next;
};
/* Takes a connection to a file, an idle or a new one. NULL with err, or with *ret_skip if the file
 * has nothing to read or has a fault, which is counted and logged by then. */
struct reader_conn *store_reader_take(struct store *s, struct store_file *f, bool *ret_skip,
                                      struct err *err);
/* Gives a connection back. If it has a fault, it is closed, and err becomes the fault of its file.
 */
void store_reader_give(struct store *s, struct reader_conn *c, const struct err *err);
/* Closes the idle connections to a file, or to all files (NULL). */
void store_readers_close(struct store *s, const struct store_file *f);

/* Begins and ends a scan. A scan of a file and a merge that replaces bodies in it exclude each
 * other. */
void store_scan_begin(struct store *s, struct store_file *f);
void store_scan_end(struct store *s, struct store_file *f);

/* Puts the profiles that are in recordings which an earlier version has stored, once for a
 * directory. Before anything else reads or writes the store. */
void store_convert_recordings(struct store *s);
/* store_put() while the store is being opened. */
bool store_put_opening(struct store *s, struct store_put *profiles, size_t n);

/* ---- the writer (put.c, writing.c, twins.c) -------------------------------------------------- */

/* Stretches that are written at the same time: late profiles go to earlier ones. */
#define STORE_WRITERS_MAX 4

/* Closes the connection that writes to a file, or all of them (NULL). */
void store_writers_close(struct store *s, const struct store_file *f);
/* Closes those whose stretch had ended at now_ns and that nothing was put into for idle_ms. */
void store_writers_close_idle(struct store *s, int64_t now_ns, int64_t idle_ms);
/* The files that are written, with references; at most STORE_WRITERS_MAX. Under the lock for
 * writing. */
size_t store_writers_files(const struct store *s, struct store_file **ret);
/* Copies the logs of the files that are written and empties them. Under the lock for writing. */
void store_writers_cut_logs(struct store *s);

/* A profile, as files find it. */
struct store_twin {
    struct sv set;    /* the blob of its labels and types */
    struct sv labels; /* the blob of the labels of its first series */
    int64_t time_ns;
    uint64_t hash;
};
/* Returns true if a file, but one, has the profile; *ret_profile is its row. */
bool store_find_twin(struct store *s, const struct store_twin *t, const struct store_file *except,
                     int64_t *ret_profile);

/* ---- damaged profiles (bad.c) ---------------------------------------------------------------- */

struct store_bad {
    struct store_file *file; /* a reference */
    int64_t profile;
};
/* Notes a profile whose bytes have changed, or all that were merged into a merge (over 0). */
void store_bad_note(struct store *s, struct store_file *f, struct db *db, int64_t profile,
                    int64_t merge);
/* The noted profiles of a file, sorted; the caller frees them. False if out of memory. */
bool store_bad_of(struct store *s, const struct store_file *f, int64_t **ret, size_t *ret_n);
bool store_bad_has(const int64_t *profiles, size_t n, int64_t profile);
/* Forgets those of a file, or all (NULL). */
void store_bad_forget(struct store *s, const struct store_file *f);
/* Removes the points of the noted profiles from their files, so that nothing counts them. */
void store_bad_drop(struct store *s);

/* ---- ids (id.c) ------------------------------------------------------------------------------ */

/* Formats the id of a profile: its time, a part of the hash of its bytes, and its row. */
void store_id_format(int64_t time_ns, uint64_t hash, int64_t row, char out[STORE_ID_LENGTH + 1]);
bool store_id_parse(struct sv text, int64_t *ret_time_ms, uint64_t *ret_hash, int64_t *ret_row);
bool store_id_fits(int64_t time_ns, uint64_t hash, int64_t time_ms, uint64_t id_hash);
/* Returns true if bytes have a hash, whatever their salt is. */
bool store_hash_fits(struct sv data, uint64_t hash);

/* ---- on the store's own thread (maintain.c, merging.c) --------------------------------------- */

/* Starts the thread, which opens the store first. */
bool store_background_start(struct store *s, struct err *err);
/* Waits for so long until the store is open. False with err if that failed. If the disk does not
 * answer by then, the store opens when it does. */
bool store_await_open(struct store *s, int64_t ms, struct err *err);
/* Waits as long as it takes. False with err if opening has failed: the background tries again. */
bool store_is_open(struct store *s, struct err *err);
void store_background_stop(struct store *s);
/* Runs one round of the background for a wall time. Tests call it, too. */
void store_maintain(struct store *s, int64_t now_ns);
void store_merge_files(struct store *s, int64_t now_ns);
/* Returns how long merging has to pause after its thread has used used_ns of a core, of which it
 * may have `percent` (1 to 100). *paid_ns is the part of used_ns that earlier pauses have paid for;
 * less than a millisecond of pause stays owed. */
int64_t store_merge_pause_ms(int64_t used_ns, unsigned percent, int64_t *paid_ns);
/* Sleeps, or until store_hurry(). Returns false if the store closes meanwhile. */
bool store_pause(struct store *s, int64_t ms);
/* Starts the next round of the background at once: the disk is full, and retention may make room.
 * At most once a second. */
void store_hurry(struct store *s);

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
    struct metric_cell *lost;
    struct metric *removed; /* by reason */
    struct metric_cell *merged;
    struct metric_cell *merged_bytes;
    struct metric_cell *merges_bytes;
    struct metric_cell *unmergeable;
    struct metric_cell *merge_failures;
};

/* The options that store_configure() changes. */
struct store_limits {
    _Atomic int64_t stretch_ms;
    _Atomic int64_t max_age_ms;
    _Atomic uint64_t max_bytes;
    _Atomic int64_t merge_ms;
    atomic_uint merge_cpu;
    atomic_bool sync;
};

struct store {
    struct store_options options; /* name and directory are copies; see limits */
    struct store_limits limits;
    atomic_bool cut_off;         /* the directory cannot be used until a restart */
    _Atomic uint64_t disk_bytes; /* of the whole disk; 0: not known */
    struct store_metrics metrics;
    int directory_fd; /* it and lock_fd hold the locks; -1: none */
    int lock_fd;
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* monotonic */
    bool stopping;
    enum { STORE_OPENING, STORE_OPEN, STORE_UNOPENED } state;
    struct err open_err; /* why it is not open */
    bool started;        /* store_open() has returned it, or is about to */
    bool hurry;          /* the next round begins at once */
    int64_t hurried_ms;
    struct store_file **files; /* in order of names */
    size_t n_files;
    size_t files_cap;
    struct reader_conn *idle;
    size_t n_idle;
    struct store_bad *bad;
    size_t n_bad;
    /* Members of the writing thread. They have a lock of their own, because retention closes
     * writers, too. */
    pthread_mutex_t write_lock;
    struct writing *writers[STORE_WRITERS_MAX];
    struct scratch *scratch;
    uint64_t uses; /* counts the uses of files by puts */
    uint64_t batch_start;
    bool was_full;                 /* the last batch has failed because the disk was full */
    pthread_mutex_t maintain_lock; /* held during a round */
    pthread_t thread;
    bool has_thread;
};

#endif

/* Declarations that the sources of the store share: files, connections, the writer, the background
 * thread.
 */
#ifndef PROFPULL_STORE_PRIVATE_H
#define PROFPULL_STORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "pprof/scratch.h"
#include "store/db.h"
#include "store/series_lists.h"
#include "store/store.h"

/* ---- files (files.c) ------------------------------------------------------------------------- */

/* The name of a file: start and length of its stretch, as in "20261122T130000Z-1h.db". A stretch
 * gets further files (".2.db", ".3.db", ...) when the one before is damaged, cannot be written, or
 * is large. */
#define STORE_NAME_SIZE 96
#define STORE_FILES_OF_A_STRETCH_MAX 9999
/* The longest `store.stretch`. */
#define STORE_STRETCH_MS_MAX (INT64_C(7) * 24 * 3600 * 1000)

struct store_name {
    int64_t start_ms;
    int64_t length_ms;
    unsigned generation; /* 1 for the first file of a stretch */
};
void store_name_format(const struct store_name *name, char out[STORE_NAME_SIZE]);
bool store_name_parse(struct sv text, struct store_name *ret);
/* Orders names by start, length and generation. */
int store_name_compare(const struct store_name *a, const struct store_name *b);

/* One file, with a count of references. The lock of the store guards the members after the comment
 * "guarded". */
struct store_file {
    atomic_uint refs;
    struct store_name name;
    char text[STORE_NAME_SIZE];
    char *path;
    /* guarded: the members below */
    bool gone;           /* the file was removed, by us or by somebody else */
    enum db_fault fault; /* if it is not DB_FINE, the file is neither read nor written */
    bool unwritable; /* the file is only read; a further file of its stretch takes new profiles */
    uint64_t profiles;
    uint64_t singles; /* profiles that are not merged */
    int64_t oldest_ns;
    int64_t newest_ns;
    uint64_t left;   /* the value of singles after the last complete pass of merging */
    unsigned scans;  /* running scans of the file */
    bool merging;    /* a merge replaces bodies, so new scans wait */
    int64_t version; /* of its format; 0: not known yet */
    /* pending: the open transaction of the file has profiles. unindexed: its data file has profiles
     * that no transaction has; the file has to be opened for writing. See store_index_file(). */
    bool pending;
    bool unindexed;
    bool sealed; /* merged, all of it is in the database, and it is not open for writing */
    bool frozen; /* it must not change: late profiles go to a further file of its stretch */
    bool sum;    /* not guarded: it is the sum of a day (sums.h), and not on the list of files */
    /* data_bytes: the size of the data file, and of the database after its log is copied into it;
     * log_bytes: the size of its log file. */
    uint64_t data_bytes;
    uint64_t log_bytes;
    /* Members of the archive (archive/archive.h): */
    bool outdated; /* older than the archive keeps */
    char hash[33]; /* of a frozen file; "": unknown */
    /* A reference to the same file in the archive, or to the day that has replaced it there; NULL:
     * not there. */
    struct store_file *twin;
    uint64_t mark;                 /* see store_files_to_read() */
    struct archive_object *object; /* not guarded; NULL: the file is not of the archive */
    struct peering_slices *slices; /* not guarded, of one scan; NULL: the file is not of a peer */
};

struct store_file *store_file_ref(struct store_file *f);
struct store_file *store_file_unref(struct store_file *f);

/* Return the first and the last instant of the file's stretch, both inclusive. */
int64_t store_file_from_ns(const struct store_file *f);
int64_t store_file_until_ns(const struct store_file *f);
/* Reads the names in the directory, and the state of each file. */
bool store_list(struct store *s, struct err *err);
/* Returns the file that profiles of an instant are put into, with a reference; NULL with err. */
struct store_file *store_file_for(struct store *s, int64_t from_ns, struct err *err);
/* Lists the files that overlap a range, in order of time, with references; the caller frees the
 * list with store_files_free(). False with err if the store is not open, or out of memory. */
bool store_files_in(struct store *s, int64_t from_ns, int64_t until_ns, struct store_file ***ret,
                    size_t *ret_n, struct err *err);
/* Lists the files to be read for a range as store_files_in() does, with those of the archive that
 * are not on this disk. */
bool store_files_to_read(struct store *s, int64_t from_ns, int64_t until_ns,
                         struct store_file ***ret, size_t *ret_n, struct err *err);
void store_files_free(struct store_file **files, size_t n);
/* Finds the files, except one, whose oldest profile is not after an instant and whose newest one is
 * not before it. Returns their number; ret has references to them. */
#define STORE_FILES_OF_A_TIME_MAX 64
size_t store_files_at(struct store *s, int64_t time_ns, const struct store_file *except,
                      struct store_file *ret[STORE_FILES_OF_A_TIME_MAX]);
/* Counts and logs the fault of a file, which is neither read nor written from then on. */
void store_file_fault(struct store *s, struct store_file *f, enum db_fault fault, const char *why);
/* Counts and logs that a file cannot be written; it is only read from then on. */
void store_file_unwritable(struct store *s, struct store_file *f, const char *why);
/* Checks the file in the file system before SQLite opens it. A link that leads nowhere, something
 * that is not a regular file, and an empty file whose log SQLite would remove are faults: the fault
 * is set, and false is returned. A file that does not exist has no fault. */
bool store_file_check(struct store *s, struct store_file *f);
/* Notes that the data file has profiles that the tables do not have. */
void store_file_unindexed(struct store *s, struct store_file *f);
/* Returns the size of the data file; 0 if there is none. */
uint64_t store_file_data_size(const struct store_file *f);
/* Tries again to read the files that could not be read. */
void store_retry_unreadable(struct store *s);
/* Takes a file that somebody has removed off the list; counts and logs it. */
void store_file_gone(struct store *s, struct store_file *f);
/* Removes a file from the disk and takes it off the list. */
bool store_file_remove(struct store *s, struct store_file *f, struct err *err);

/* ---- copies (copies.c) ----------------------------------------------------------------------- */

/* Finds files whose profiles are all in another file of the same time, because somebody has copied
 * them, and gives them the fault DB_COPY: otherwise their profiles would count twice. */
void store_find_copies(struct store *s);

/* ---- counts of commits (count.c) ------------------------------------------------------------- */

#define STORE_COUNT_SUFFIX "-count"

/* Opens or creates the count of the database with this path. Returns -1 with errno on failure. */
int store_count_open(const char *path);
bool store_count_write(int fd, uint64_t n);
/* Reads a count. False if there is none, or if it is damaged. */
bool store_count_read(const char *path, uint64_t *ret);
/* Compares a file with its count, and reports once the profiles that were committed to it and are
 * missing. A file without a count gets one. Call it before the file is written. */
void store_count_check(struct store *s, const struct store_file *f);
/* Removes the count of a database that no longer exists, and reports its profiles as lost. */
void store_count_orphan(struct store *s, const char *path);
void store_count_remove(const char *path);
/* Counts and logs n profiles that are lost. */
void store_lost(struct store *s, const char *path, uint64_t n, const char *why);

/* ---- the directory (directory.c) ------------------------------------------------------------- */

/* Creates the directory and takes its locks, if that has not been done, or if somebody has removed
 * the directory or the file `lock`. If the process is no longer allowed to do this, as in its
 * sandbox, the store is cut off, which is logged once. Under the lock for writing, or while the
 * store opens. */
bool store_take_directory(struct store *s, struct err *err);
void store_leave_directory(struct store *s);

/* ---- room on the disk (room.c) --------------------------------------------------------------- */

/* The log of a file (`-wal`) has whole pages for each commit. Only databases and data files count
 * towards retention.max_bytes. Logs have a limit of their own: a 64th of max_bytes for each, from 1
 * to 16 MiB. A commit that exceeds it copies the log into the database, and the background thread
 * empties all logs in each round. The disk must always have room for committing the open
 * transactions and for copying the logs. A batch that would take this room is refused, so that a
 * full disk recovers when files are removed. */

/* Measures the disk. If it is smaller than max_bytes, the usable part of the disk replaces
 * max_bytes. */
void store_disk_measure(struct store *s);
/* Returns the limit in bytes of all databases together; 0: no limit. */
uint64_t store_max_bytes(const struct store *s);
void store_log_limit(const struct store *s, struct db *db);
/* Returns true if a file is so large that its stretch gets a further file. Under the lock. */
bool store_file_is_full(const struct store *s, const struct store_file *f);
/* Records the size of the log of a file. */
void store_log_note(struct store *s, struct store_file *f);
/* Does the same, and returns true if the log exceeds its limit: then it is copied into the
 * database, when the profiles that it refers to were synced. */
bool store_log_is_large(struct store *s, struct store_file *f);
/* Copies the logs of all files into their databases, and empties the logs that nobody uses. */
void store_logs_copy(struct store *s);
/* Returns true if the disk has room for a batch of n profiles. If it has not, empties the logs and
 * checks again; if that does not help, sets err and returns false. Under the lock for writing. */
bool store_has_room(struct store *s, uint64_t bytes, size_t n, struct err *err);

/* ---- connections for reading (readers.c) ----------------------------------------------------- */

/* Limits of the connections that stay open. One to a file on the disk holds up to four descriptors.
 * One to an object of an archive holds none, and a query of some months reads an object for each
 * day. All together hold at most STORE_IDLE_BYTES_MAX, most of which are cached pages. */
#define STORE_IDLE_READERS_MAX 16
#define STORE_IDLE_REMOTE_MAX 128
#define STORE_IDLE_BYTES_MAX ((size_t)64 * 1024 * 1024)

struct reader_conn {
    struct store_file *file; /* a reference to the file */
    struct db db;
    uint64_t inode; /* of a file on disk: it shows whether another file has replaced it */
    bool empty;
    size_t bytes; /* memory that it holds while it is idle */
    struct reader_conn *next;
};
/* Takes an idle connection to a file, or opens a new one. Returns NULL with err. Returns NULL with
 * *ret_skip if the file has nothing to read, or has a fault, which has been counted and logged. */
struct reader_conn *store_reader_take(struct store *s, struct store_file *f, bool *ret_skip,
                                      struct err *err);
/* Gives a connection back. If the connection has a fault, it is closed, and its file gets the
 * fault, with err as the reason. */
void store_reader_give(struct store *s, struct reader_conn *c, const struct err *err);
/* Returns the memory of all idle connections in bytes. */
size_t store_readers_bytes(struct store *s);
/* Closes the idle connections to a file, or to all files (NULL). */
void store_readers_close(struct store *s, const struct store_file *f);

/* Begin and end a scan of a file. While a file is scanned, no merge replaces bodies in it, and vice
 * versa. */
void store_scan_begin(struct store *s, struct store_file *f);
void store_scan_end(struct store *s, struct store_file *f);

/* Converts recordings that an earlier version has stored: puts the profiles in them, once for each
 * directory. Call it before anything else reads or writes the store. */
void store_convert_recordings(struct store *s);
/* Does what store_put() does, while the store is being opened. */
bool store_put_opening(struct store *s, struct store_put *profiles, size_t n);

/* ---- the writer (put.c, writing.c, twins.c) -------------------------------------------------- */

/* Limit of the files that are open for writing: late profiles go to earlier stretches. */
#define STORE_WRITERS_MAX 4

/* Closes the connection that writes to a file, or all such connections (NULL). */
void store_writers_close(struct store *s, const struct store_file *f);
/* Closes the writing connections of stretches that had ended at now_ns, if no profile was put into
 * them for idle_ms. */
void store_writers_close_idle(struct store *s, int64_t now_ns, int64_t idle_ms);
/* Returns the files that are open for writing, with references; at most STORE_WRITERS_MAX. Under
 * the lock for writing. */
size_t store_writers_files(const struct store *s, struct store_file **ret);
/* Returns the most bytes that committing the open transactions can take. Under the lock for
 * writing. */
uint64_t store_writers_cached(const struct store *s);
/* Commits the open transactions, copies the logs of the files that are open for writing into their
 * databases, and empties them. Under the lock for writing. */
void store_writers_cut_logs(struct store *s);

/* Returns the connection that writes to a file, which sees its open transaction; NULL if there is
 * none. Under the lock for writing. */
struct db *store_writers_db(const struct store *s, const struct store_file *f);
/* Returns true if a file is open for writing. */
bool store_is_writing(struct store *s, const struct store_file *f);
/* Does the same under the lock for writing. */
bool store_is_writing_locked(const struct store *s, const struct store_file *f);
/* Commits the open transactions of all files. Under the lock for writing. */
void store_writers_index(struct store *s);
/* Makes all stored profiles of a file visible to readers: commits its open transaction, or opens
 * the file if its tables lack profiles. If the disk is full or does not answer, logs that and
 * returns, and readers miss the profiles of the last seconds. */
void store_index_file(struct store *s, struct store_file *f);
/* Does the same under the lock for writing. */
void store_index_file_locked(struct store *s, struct store_file *f);

/* A profile to look for in other files. */
struct store_twin {
    struct sv set;    /* the blob of its labels and types */
    struct sv labels; /* the blob of the labels of its first series */
    int64_t time_ns;
    uint64_t hash;
};
/* Returns true if a file other than `except` has the profile; *ret_profile is its row there. */
bool store_find_twin(struct store *s, const struct store_twin *t, const struct store_file *except,
                     int64_t *ret_profile);

/* ---- damaged profiles (bad.c) ---------------------------------------------------------------- */

struct store_bad {
    struct store_file *file; /* a reference to the file */
    int64_t profile;
};
/* Counts and logs a profile whose bytes have changed, and notes it. id: of the profile; NULL: the
 * log does not say it. */
void store_bad_found(struct store *s, struct store_file *f, struct db *db, int64_t profile,
                     int64_t merge, const char *id);
/* Notes a profile whose bytes have changed. If merge is above 0, notes all profiles of this merge.
 */
void store_bad_note(struct store *s, struct store_file *f, struct db *db, int64_t profile,
                    int64_t merge);
/* Lists the noted profiles of a file, sorted; the caller frees the list. False if out of memory. */
bool store_bad_of(struct store *s, const struct store_file *f, int64_t **ret, size_t *ret_n);
bool store_bad_has(const int64_t *profiles, size_t n, int64_t profile);
/* Removes the notes of a file, or all notes (NULL). */
void store_bad_forget(struct store *s, const struct store_file *f);
/* Removes the points of the noted profiles from their files, so that nothing counts these profiles
 * any more. */
void store_bad_drop(struct store *s);

/* ---- ids (id.c) ------------------------------------------------------------------------------ */

/* Formats the id of a profile: its time, a part of the hash of its bytes, and its row. */
void store_id_format(int64_t time_ns, uint64_t hash, int64_t row, char out[STORE_ID_LENGTH + 1]);
bool store_id_parse(struct sv text, int64_t *ret_time_ms, uint64_t *ret_hash, int64_t *ret_row);
bool store_id_fits(int64_t time_ns, uint64_t hash, int64_t time_ms, uint64_t id_hash);
/* Returns true if a hash is that of the bytes, whatever salt it has. */
bool store_hash_fits(struct sv data, uint64_t hash);

/* ---- on the store's own thread (maintain.c, merging.c) --------------------------------------- */

/* Starts the background thread, which opens the store first. */
bool store_background_start(struct store *s, struct err *err);
/* Waits at most ms until the store is open. False with err if opening has failed. If the disk does
 * not answer in time, returns true, and the store opens when the disk answers. */
bool store_await_open(struct store *s, int64_t ms, struct err *err);
/* Waits without a limit until the store is open. False with err if opening has failed; the
 * background thread tries again. */
bool store_is_open(struct store *s, struct err *err);
void store_background_stop(struct store *s);
/* Runs one round of the background thread, for a given wall time. Tests call it as well. */
void store_maintain(struct store *s, int64_t now_ns);
void store_merge_files(struct store *s, int64_t now_ns);
/* Returns how long merging has to pause after its thread has used used_ns of a core, of which it
 * may have `percent` (1 to 100). *paid_ns is the part of used_ns that earlier pauses have paid for;
 * less than a millisecond of pause stays owed. */
int64_t store_merge_pause_ms(int64_t used_ns, unsigned percent, int64_t *paid_ns);
/* Returns the time of a core that the calling thread has used. */
int64_t store_merge_cpu_ns(void);
/* Sleeps as long as `store.merge_cpu` requires of the calling thread. *paid_ns: as above; begin
 * with store_merge_cpu_ns(). Returns false if the store closes. */
bool store_merge_rest(struct store *s, int64_t *paid_ns);
/* Sleeps for ms, or until store_hurry() is called. Returns false if the store closes meanwhile. */
bool store_pause(struct store *s, int64_t ms);
/* Starts the next round of the background thread at once, because the disk is full and retention
 * may make room. Has an effect at most once a second. */
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
    struct metric_cell *opened;
    struct metric_cell *sums;
    struct metric_cell *sum_failures;
    struct metric_cell *sum_reads;
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
    struct store_options options; /* name and directory are copies; limits has what may change */
    struct store_limits limits;
    atomic_bool cut_off;         /* the directory cannot be used until the process is restarted */
    _Atomic uint64_t disk_bytes; /* size of the whole disk; 0: unknown */
    struct store_metrics metrics;
    int directory_fd; /* directory_fd and lock_fd hold the locks; -1: not open */
    int lock_fd;
    pthread_mutex_t lock;   /* guards the members below, up to write_lock */
    pthread_cond_t changed; /* uses the monotonic clock */
    bool stopping;
    enum { STORE_OPENING, STORE_OPEN, STORE_UNOPENED } state;
    struct err open_err; /* the reason why the store is not open */
    bool started;        /* store_open() has returned the store, or is about to */
    bool hurry;          /* the next round is to begin at once */
    int64_t hurried_ms;
    struct store_file **files; /* in order of names */
    size_t n_files;
    size_t files_cap;
    struct store_sum *sums; /* sums.h */
    size_t n_sums;
    struct series_lists *series; /* of the files that do not change; has a lock of its own */
    struct reader_conn *idle;    /* the one that was used last comes first */
    struct store_bad *bad;
    size_t n_bad;
    /* The members below are used by the thread that puts. They have a lock of their own, because
     * retention closes writers as well. */
    pthread_mutex_t write_lock;
    struct writing *writers[STORE_WRITERS_MAX];
    struct scratch *scratch;
    uint64_t uses; /* counts the uses of files by puts */
    uint64_t batch_start;
    bool was_full;                 /* the last batch has failed because the disk was full */
    pthread_mutex_t maintain_lock; /* held during a round */
    pthread_t thread;
    bool has_thread;
    struct archive *archive; /* NULL: there is none */
    uint64_t marks;          /* counts the lists of files to read; guarded by lock */
};

#endif

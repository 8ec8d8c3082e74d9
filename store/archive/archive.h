/* The archive of a store: its sealed files as objects in a bucket, and those of all other writers
 * with the same prefix.
 *
 * Each writer owns the objects under its own name, which never change. A sealed file of the store
 * is uploaded first, then the small object that makes it known (index.h): a crash in between leaves
 * nothing that anybody reads. Only then may retention remove the file from the disk. An object
 * whose file is still on this disk is not read, so nothing counts twice.
 *
 * A thread of the archive uploads, lists the objects of all writers every minute, writes the
 * heartbeat of this writer, and removes what is older than max_age. Objects of writers whose
 * heartbeat has stopped a week ago are removed by any other writer. Ages are computed on the clock
 * of the bucket. Objects that do not belong to an archive, or to a later version of it, are
 * reported and left alone.
 *
 * Queries read objects by ranges (vfs.h) on their own threads. Any thread may call these functions.
 */
#ifndef PROFPULL_STORE_ARCHIVE_ARCHIVE_H
#define PROFPULL_STORE_ARCHIVE_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/partial.h"
#include "http/contents.h"
#include "store/archive/backend.h"
#include "store/archive/index.h"
#include "store/series_lists.h"

struct archive;
struct store;
struct store_file;
struct store_name;

struct archive_options {
    const struct bucket_settings *bucket; /* must live as long as the archive */
    /* Credentials that are not in files; may be NULL. */
    struct http_contents *contents;
    const char *writer; /* NULL: see archive_writer() */
    int64_t merge_ms; /* a merged profile of a day covers this much time; 0: days are not merged */
    int64_t max_age_ms;          /* objects whose stretch ended longer ago are removed; 0: never */
    const char *cache_directory; /* NULL: the cache is in memory */
    uint64_t cache_bytes;
    /* For tests: a backend instead of a bucket, which is copied, and no thread. */
    const struct archive_backend *backend;
    bool without_thread;
};

/* Opens the archive of a store. Asks the bucket for nothing. NULL with err. */
struct archive *archive_open(struct store *s, const struct archive_options *o, struct err *err);
/* Starts the thread, which waits until the store is open. */
bool archive_start(struct archive *a, struct err *err);
/* Ends the thread and all requests. Accepts NULL. */
void archive_stop(struct archive *a);
/* Frees a stopped archive, after all connections were closed. Accepts NULL, returns NULL. */
struct archive *archive_free(struct archive *a);
/* Takes over the times and limits of other options. */
void archive_configure(struct archive *a, const struct archive_options *o);
/* Chooses the name of a writer: the given one, else the host's name if it ends like that of a pod
 * of a StatefulSet ("profpull-0"), else a random one that is kept in the directory. */
bool archive_writer(const char *given, const char *directory, char ret[64], struct err *err);

/* ---- the disk -------------------------------------------------------------------------------- */

/* The suffix of the mark of a file that is or was uploaded (mark.h). */
#define ARCHIVE_MARK_SUFFIX "-archive"
/* Reads the marks of all files of a store that was just listed: a file with a mark is frozen.
 * Before anything is put. */
void archive_read_marks(struct store *s);
/* Returns true if retention may remove the file: its objects are complete. Under the lock of the
 * store. */
bool archive_has(const struct store_file *f);
/* Runs one round of the thread for a wall time. Tests call it as well. */
void archive_round(struct archive *a, int64_t now_ns);
/* Starts the next round at once. */
void archive_hurry(struct archive *a);

/* ---- reading --------------------------------------------------------------------------------- */

/* archive_count() returns the number of files. archive_add_files() appends those that overlap a
 * range, in order of names and with references, to the *n files of a list with room for cap. Files
 * that are marked with `mark` are left out. Under the lock of the store. */
size_t archive_count(struct archive *a);
void archive_add_files(struct archive *a, int64_t from_ns, int64_t until_ns, uint64_t mark,
                       struct store_file **files, size_t *n, size_t cap);
/* Reads the indexes of those files that were not read before, several at a time, so that a scan
 * finds them in the cache. */
void archive_prepare(struct archive *a, struct store_file *const *files, size_t n);
/* Reads the index of a file into memory of the arena. False with the reason in err. */
bool archive_read_index(struct store_file *f, struct arena *arena, struct archive_index *ret,
                        struct err *err);
/* Drops from a list of files those that a day in it replaces (replaced.c). False if out of memory.
 */
bool archive_drop_replaced(struct archive *a, struct store_file **files, size_t *n,
                           struct arena *arena, struct partial *partial, struct err *err);
/* Returns true if a file is a day, whose index was read, that replaces the file of a writer. */
bool archive_day_has(const struct store_file *day, struct sv writer, const struct store_name *name,
                     struct sv hash);
/* Reads ahead what the file has of some sets, if its index says where that is. */
void archive_prefetch(struct store_file *f, const struct series_list *list,
                      bool (*wants)(void *arg, size_t row), void *arg);
/* Returns the series of a file, for series_lists_release(); from memory if they were read before.
 * NULL with the reason in err. */
const struct series_list *archive_series(struct store_file *f, struct arena *arena,
                                         struct err *err);
/* Opens the database of a file, whose index was read. False with the reason in err. */
bool archive_open_db(struct store_file *f, struct db *db, struct err *err);
/* Says why reading a database has failed: sets err to the reason that the bucket gave, if it gave
 * one. A damaged file is counted and logged once, and not read again. */
void archive_read_failed(struct store_file *f, enum db_fault fault, struct err *err);
/* Marks the object of a file on disk, if there is one. Under the lock of the store. */
void archive_mark_twin(struct archive *a, const struct store_file *f, uint64_t mark);
/* Says why the list of objects may be incomplete; false if it is complete. */
bool archive_is_partial(struct archive *a, struct err *err);

/* ---- for peers (recent.c) ---------------------------------------------------------------------
 */

/* Copies the name of this writer; "" for a reader, or if it is not known yet. */
void archive_own_name(struct archive *a, char ret[64]);
/* Visits the files of this writer in the archive that overlap a range and were added to the list
 * less than two hours ago, with the time since then: processes that list seldom may not know them.
 */
void archive_each_recent(struct archive *a, int64_t from_ns, int64_t until_ns,
                         void (*visit)(void *arg, const char *name, const char *hash,
                                       int64_t age_ms),
                         void *arg);
/* Returns the time since the archive was opened if it has not listed its objects yet, else -1. */
int64_t archive_unlisted_ms(struct archive *a);
/* Returns true if a file is the object of this writer that has this hash. */
bool archive_is_object(const struct store_file *f, struct sv writer, struct sv hash);
/* Waits until a listing of all objects has ended that began at since_ms or later. False if it has
 * not ended at deadline_ms, or if it has failed. Both are monotonic. */
bool archive_refresh(struct archive *a, int64_t since_ms, int64_t deadline_ms);

struct archive_object;
void archive_object_free(struct archive_object *o);

/* Numbers for status and pages. */
struct archive_stats {
    uint64_t files;            /* objects of all writers */
    uint64_t bytes;            /* of these */
    uint64_t waiting_files;    /* files that are to be uploaded */
    uint64_t waiting_bytes;    /* of these */
    int64_t listed_ms;         /* monotonic time of the last listing; 0: none yet */
    bool up;                   /* the last listing has succeeded */
    bool conflict;             /* another process writes under the same name */
    uint64_t foreign;          /* objects that do not belong to an archive */
    char problem[ERR_MSG_MAX]; /* the last failure; "" if the last request has succeeded */
    char url[512];
    char writer[64];
};
void archive_stats(struct archive *a, struct archive_stats *ret);

#endif

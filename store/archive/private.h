/* Declarations that the sources of the archive share. */
#ifndef PROFPULL_STORE_ARCHIVE_PRIVATE_H
#define PROFPULL_STORE_ARCHIVE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/map.h"
#include "store/archive/archive.h"
#include "store/archive/cache.h"
#include "store/archive/names.h"
#include "store/archive/vfs.h"
#include "store/private.h"

/* The time between two heartbeats of this writer. */
#define ARCHIVE_BEAT_MS (5 * 60 * MS_PER_S)
/* The time between two listings of all writers: of new objects, and of all objects. */
#define ARCHIVE_LIST_MS (60 * MS_PER_S)
#define ARCHIVE_LIST_ALL_MS (60 * 60 * MS_PER_S)
/* Pause between two rounds of removal. */
#define ARCHIVE_EXPIRE_MS (60 * 60 * MS_PER_S)
/* The objects of a writer whose heartbeat is older may be removed by others. */
#define ARCHIVE_DEAD_NS (7 * 24 * 3600 * NS_PER_S)
/* A file without an index is left over from a crash when it is this old. */
#define ARCHIVE_LEFT_OVER_NS (3600 * NS_PER_S)
/* The objects of a day are merged when the day has ended, and its newest object is in the bucket,
 * for this long. */
#define ARCHIVE_SETTLED_NS (6 * 3600 * NS_PER_S)
/* Objects that a day replaces stay for this long: readers list all objects once an hour. */
#define ARCHIVE_REPLACED_NS (2 * 3600 * NS_PER_S)
/* Pause after a failure of merging a day. */
#define ARCHIVE_DAYS_MS (60 * 60 * MS_PER_S)
/* The beginning of the database of a day, which its index has: the roots of its tables. */
#define ARCHIVE_HEAD_BYTES (3 * ARCHIVE_BLOCK_BYTES)
/* Limit of the rows at the end of it, which its index has as well: those of some 30,000 profiles.
 * The catalogue has room for a month of less than half of it. */
#define ARCHIVE_TAIL_MAX (16 * ARCHIVE_BLOCK_BYTES)
/* Deadline of a request for a small object or a range. */
#define ARCHIVE_REQUEST_MS (20 * MS_PER_S)
/* After a failure that may pass, nothing is read for this long: a query of many files would
 * otherwise wait for each of them. */
#define ARCHIVE_DOWN_MS (5 * MS_PER_S)

enum object_state {
    OBJECT_FINE,
    OBJECT_GONE,    /* it was removed from the bucket */
    OBJECT_DAMAGED, /* its index or its database is damaged, or they do not fit each other */
    OBJECT_NEWER,   /* a later version has written it */
};

/* A file of the archive: its index and its database in the bucket. */
struct archive_object {
    struct archive *archive;
    uint64_t number;  /* counts the objects that were added to the list */
    int64_t added_ms; /* monotonic time at which it was added */
    char writer[ARCHIVE_WRITER_SIZE];
    struct archive_name name;
    char *index_key;
    char *data_key;
    char index_etag[BUCKET_ETAG_SIZE];
    int64_t modified_ns; /* when the bucket got the index; 0: not known */
    struct archive_source index;
    /* The lock of the archive guards the members below. */
    bool known; /* the index was read; the members up to n_ranges do not change any more */
    struct archive_source data;
    char data_etag[BUCKET_ETAG_SIZE];
    struct archive_name *replaces; /* only of a day: the objects of the writer that it replaces */
    size_t n_replaces;
    struct day_range *ranges;
    size_t n_ranges;
    bool apart; /* it cannot be merged with others */
    enum object_state state;
    struct err why; /* of the state, or of the last failure */
};

struct archive_metrics {
    struct metric *uploads;  /* by result */
    struct metric *failures; /* by reason */
    struct metric *removed;  /* by reason */
    struct metric *faults;   /* by reason */
    struct metric *days;     /* by result */
    struct metric_cell *upload_bytes;
};

struct archive {
    struct store *store;
    struct archive_backend backend;
    bool read_only;
    char *given_name;                 /* NULL: the name is chosen */
    char writer[ARCHIVE_WRITER_SIZE]; /* "" for a reader, and before the first round */
    char id[2 * sizeof(uint64_t) + 1];
    struct archive_cache *cache;
    struct archive_vfs *vfs;
    struct archive_metrics metrics;
    _Atomic int64_t max_age_ms;
    _Atomic int64_t merge_ms;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards the members up to round_lock; taken after that of the store */
    pthread_cond_t changed;
    bool stopping;
    bool hurry;
    struct store_file **files; /* in order of names */
    size_t n_files;
    size_t files_cap;
    uint64_t objects;      /* that were added so far */
    struct map *by_key;    /* names of databases -> their files, which the list holds */
    int64_t opened_ms;     /* monotonic, as all times that end in _ms */
    int64_t listed_ms;     /* monotonic time of the last listing; 0: none yet */
    int64_t listed_all_ms; /* monotonic time at which the last listing of all objects began */
    bool refresh;          /* all objects are to be listed in the next round */
    struct err list_err;   /* of the last listing; ERR_NONE if it has succeeded */
    int64_t down_until_ms; /* nothing is read until then */
    struct err down_err;
    bool conflict;
    struct err problem;     /* the last failure of the thread */
    bool round_has_failed;  /* a step of this round: later steps do not clear the problem */
    uint64_t waiting_files; /* to be uploaded */
    uint64_t waiting_bytes;
    uint64_t foreign;       /* objects under the prefix that do not belong to an archive */
    uint64_t bad_catalogue; /* key and version of the last damaged one, as a hash; 0: none */
    /* The members below belong to the thread, or to the caller of archive_round(). */
    pthread_mutex_t round_lock;
    int64_t list_due_ms;
    int64_t list_all_due_ms;
    int64_t beat_due_ms;
    int64_t expire_due_ms;
    int64_t days_due_ms;
    uint64_t catalogue_hash; /* of the days in the catalogue; 0: not known */
    int64_t now_ns;          /* wall time of the round */
    bool has_beaten;         /* this process has written the heartbeat */
    int64_t server_ns;       /* the bucket's time at mono_ns; 0: unknown */
    int64_t server_mono_ns;
    bool cleaned; /* left-overs were removed since the start */
    bool reported_foreign;
};

/* ---- the thread (archive.c) ------------------------------------------------------------------ */

/* Notes the result of a request of the thread: counts and, at the first of several, logs a failure.
 * Returns true if the result is BUCKET_OK. */
bool archive_note(struct archive *a, const char *what, enum bucket_result result,
                  const struct err *err);
/* Returns the time of the bucket, or `now_ns` if it is not known. */
int64_t archive_server_ns(const struct archive *a, int64_t now_ns);
bool archive_is_stopping(struct archive *a);
/* Returns the deadline of a small request that begins now. */
int64_t archive_deadline(void);

/* ---- objects (object.c) ---------------------------------------------------------------------- */

/* Makes the file of an object; NULL with err. */
struct store_file *archive_file_new(struct archive *a, const char *writer,
                                    const struct archive_name *name, const char *index_etag,
                                    uint64_t index_bytes, struct err *err);
/* Adds a file to the list, which takes over the reference, unless the same one is listed. Returns
 * the listed file; NULL if out of memory. Under the lock of the archive. */
struct store_file *archive_list_add(struct archive *a, struct store_file *f);
/* Takes a file off the list. Under the lock of the archive. */
void archive_list_remove(struct archive *a, struct store_file *f);
/* Returns the listed file of a writer with this name, or NULL. Under the lock of the archive. */
struct store_file *archive_list_find(struct archive *a, const char *writer,
                                     const struct archive_name *name);
/* Reads the bytes of an index. False with the reason in err. */
bool archive_index_bytes(struct archive_object *o, struct buf *out, struct err *err);
const struct archive_source *archive_find_source(void *arg, const char *name);
void archive_source_failed(void *arg, const char *name, enum archive_read why,
                           const struct err *err);

/* ---- listing (listing.c) --------------------------------------------------------------------- */

/* Lists the objects of all writers, if that is due. False if the bucket has failed. */
bool archive_list(struct archive *a, int64_t now_ns);

/* Returns true once for each time that archive_refresh() wants a listing (recent.c). */
bool archive_takes_refresh(struct archive *a);

/* ---- the owner (owner.c) --------------------------------------------------------------------- */

/* Writes the heartbeat, if that is due, and learns the time of the bucket and whether another
 * process uses the same name. False if the bucket has failed. */
bool archive_beat(struct archive *a, int64_t now_ns);
/* Removes what is too old, and what a crash has left over, if that is due. */
void archive_expire(struct archive *a, int64_t now_ns);

/* Removes an object of this writer or of one that is gone. False if the bucket has failed. */
bool archive_remove_object(struct archive *a, struct store_file *f, const char *why);

/* ---- catalogues (catalogue.c) ---------------------------------------------------------------- */

/* Writes the catalogue of this writer if its days have changed. False if the bucket has failed. */
bool archive_put_catalogue(struct archive *a);
/* Reads the catalogue of a writer into the cache. A damaged one is counted and logged. Failures of
 * the request are left to those who read the indexes. */
void archive_read_catalogue(struct archive *a, const char *writer);

/* ---- days (days.c, replaced.c) --------------------------------------------------------------- */

/* Merges the objects of one day that is over into one, if there is such a day, and removes objects
 * that a day has replaced. */
void archive_days(struct archive *a, int64_t now_ns);
/* Reads the index of an object, if it was not read before. arena: emptied first; for its fields.
 * Returns false with err if it is damaged, if a later version has written it, or if the bucket has
 * failed. */
bool archive_know(struct store_file *f, struct arena *arena, struct err *err);
/* Reads the indexes of the days of this writer. Failures are left to the next time. */
void archive_know_days(struct archive *a);
/* Returns the listed day of this writer that has replaced an object with this name, or NULL. Under
 * the lock of the archive. */
struct store_file *archive_find_day(struct archive *a, const struct archive_name *name);

/* ---- uploads (upload.c) ---------------------------------------------------------------------- */

/* Uploads the sealed files that the archive does not have. */
void archive_upload(struct archive *a, int64_t now_ns);
/* Sets the twins of the files on disk from the list, after a listing of all objects. */
void archive_match(struct archive *a);

/* An upload of a database and its index. */
struct archive_upload {
    struct archive *archive;
    const char *path;
    int fd;
    struct archive_name name;
    const struct archive_day *day; /* NULL: it is not a day */
    char data_key[ARCHIVE_KEY_SIZE];
    char index_key[ARCHIVE_KEY_SIZE];
    char data_etag[BUCKET_ETAG_SIZE];
};
/* Uploads the database, then its index, and makes the file of the object. */
enum bucket_result archive_put(struct archive_upload *u, struct store_file **ret, struct err *err);
/* Sets the twin of a file, which takes over the reference. Under the lock of the store. */
void archive_set_twin(struct store_file *f, struct store_file *twin);

#endif

/* The directory of a spool: manages its segments and the records in them that are not done, and
 * reads records back. Calls block on the disk and belong to one thread (that of spool.c).
 *
 * Nothing here waits, retries or logs: a function that fails leaves everything as it was and can be
 * called again when the disk works. Foreign files and those of a later version are counted and not
 * touched. */
#ifndef PROFPULL_WRITE_SPOOL_STORE_H
#define PROFPULL_WRITE_SPOOL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "model/profile.h"
#include "write/spool/io.h"
#include "write/spool/walk.h"

/* A new segment is begun when one reaches this size, or a sixteenth of the spool if that is less:
 * room is made by dropping a whole segment. */
#define SPOOL_SEGMENT_BYTES (UINT64_C(16) * 1024 * 1024)
#define SPOOL_SEGMENT_BYTES_MIN (UINT64_C(64) * 1024)
/* The most segments of a spool. Further files are counted and not touched. */
#define SPOOL_SEGMENTS_MAX ((size_t)65536)

struct spool_segment;

/* A profile that is on disk, or will be. Made and freed through spool.h. */
struct spool_entry {
    TAILQ_ENTRY(spool_entry) link; /* in one of the lists of spool.c */
    /* In its segment, or among the orphans, whose segment is gone. */
    TAILQ_ENTRY(spool_entry) in_segment;
    struct spool_segment *segment; /* NULL: not on disk */
    uint32_t offset;               /* the offset in the file; head.offset identifies the record */
    struct spool_head head;  /* the part of the profile that stays in memory once it is on disk */
    struct profile *profile; /* until it is written */
    int64_t scraped_ms;      /* monotonic */
    void *owner;             /* the endpoint's item; guarded by the endpoint's lock */
    /* Entries that this one replaces. They are done as soon as this one is on disk, and not before.
     */
    struct spool_entry *parts;
    struct spool_entry *next_part;
    struct spool_entry *whole; /* the one that this is a part of */
    uint8_t state;             /* spool.c */
    uint8_t wants;             /* spool.c */
};
TAILQ_HEAD(spool_entry_list, spool_entry);

struct spool_segment {
    TAILQ_ENTRY(spool_segment) link;
    uint64_t id;
    uint64_t salt;
    uint64_t size;
    uint64_t ack_size; /* where the next acknowledgement is written; 0: there is no file yet */
    uint64_t live;     /* the number of records that are known and not done */
    struct spool_entry_list entries; /* the entries of these records */
    struct spool_entry_list unacked; /* entries that are done, but not yet acknowledged on disk */
    bool read;                       /* all its records are known */
    bool removal_failed;             /* its file could not be removed so far */
    bool missing;                    /* somebody has removed its file */
    int kept_fd; /* the descriptor of the missing file, if it was open; else -1 */
};
TAILQ_HEAD(spool_segment_list, spool_segment);

enum spool_error {
    SPOOL_ERR_OPEN,
    SPOOL_ERR_WRITE,
    SPOOL_ERR_SYNC,
    SPOOL_ERR_READ,
    SPOOL_ERR_ACK,
    SPOOL_ERR_REMOVE,
    SPOOL_ERRORS
};
enum spool_skip { SPOOL_SKIP_FOREIGN, SPOOL_SKIP_NEWER, SPOOL_SKIP_MANY, SPOOL_SKIPS };

struct spool_counts {
    uint64_t bytes; /* the bytes of all segments, without their acknowledgements */
    uint64_t segments;
    uint64_t unread_bytes; /* bytes of an earlier process that were not read yet */
    uint64_t profiles;     /* profiles on disk that are not done, as far as they are known */
    uint64_t dropped_segments;
    uint64_t damaged; /* places */
    uint64_t damaged_bytes;
    uint64_t lost_acks;
    uint64_t errors[SPOOL_ERRORS];
    uint64_t skipped[SPOOL_SKIPS];
    uint64_t skipped_segment; /* the number of the last one that was skipped */
};

/* The result of reading a profile back. GONE: its segment has been dropped or removed. FAILED: the
 * disk. */
enum spool_load {
    SPOOL_LOADED,
    SPOOL_LOAD_GONE,
    SPOOL_LOAD_DAMAGED,
    SPOOL_LOAD_FAILED,
    SPOOL_LOAD_MEMORY
};

/* The events. Each is called on the thread of the call that caused it, which is the spool's thread,
 * with no lock of the spool held.
 */
struct spool_events {
    void *arg;
    /* A profile of an earlier process is on disk. Returns false if there is no room for it now; the
     * event is repeated then. labels are those of a delta, if they can be read; they have not been
     * checked for damage. */
    bool (*found)(void *arg, struct spool_entry *e, struct labels *labels);
    /* A profile was lost before it was reported as found: spool full, or out of memory. */
    void (*unread_lost)(void *arg, bool for_memory);
    /* The profile is on disk, and synced as configured. */
    void (*written)(void *arg, struct spool_entry *e);
    /* Returns true if the copy on disk of a pushed profile may be removed to make room, because its
     * bytes are in memory or nobody needs it any more; from then on the profile does not count as
     * being on disk. Returns false if its sender relies on this copy. */
    bool (*give_up)(void *arg, struct spool_entry *e);
    /* The profile is not on disk any more: the spool was full and it was among the oldest, or
     * somebody has removed its file. */
    void (*lost)(void *arg, struct spool_entry *e, bool removed);
    /* Returns a new reference to the profile if its bytes are in memory, else NULL. */
    struct profile *(*profile)(void *arg, struct spool_entry *e);
    /* Answers spool_load(); the reference of p is the receiver's. p is NULL unless LOADED. */
    void (*loaded)(void *arg, struct spool_entry *e, enum spool_load result, struct profile *p,
                   int64_t now_ms);
    /* n profiles that were released with `hold` are now acknowledged on disk. */
    void (*acknowledged)(void *arg, unsigned n);
    void *wake_arg; /* the argument of the next two events */
    /* Called once a round, after the other events: the queue may have something to do. */
    void (*changed)(void *arg);
    /* Answers spool_flush(). */
    void (*flushed)(void *arg);
};

struct spool_options {
    /* The endpoint, of which name and the members spool_* are used. */
    const struct config_endpoint *config;
    uint64_t flush_threshold; /* as soon as so many bytes wait, they are written */
    struct intern *intern;
    struct log *log; /* may be NULL */
    struct spool_events events;
    uint64_t seed; /* the seed of the salts */
};

struct spool_store;

/* Makes a store, without touching the disk; NULL if out of memory, or if the path is too long. o
 * outlives the store.
 */
struct spool_store *spool_store_new(const struct spool_options *o, struct err *err);
/* Makes the endpoint's directory and takes its lock. Returns false with an error when another
 * process has it, or if the place cannot be right (no rights, no directory). A disk that is full,
 * read-only or fails now is no error: the store has no directory then, and spool_store_list() tries
 * again. */
bool spool_store_open(struct spool_store *s, struct err *err);
/* Applies the limits of a configuration that has changed. */
void spool_store_configure(struct spool_store *s);
/* Removes files without live records, closes the others and frees all entries. Accepts NULL,
 * returns NULL. */
struct spool_store *spool_store_close(struct spool_store *s);

/* Finds the segments in the directory. Must have succeeded before anything else is written. */
bool spool_store_list(struct spool_store *s, struct err *err);
bool spool_store_is_listed(const struct spool_store *s);
/* Returns true if spool_store_list() failed because the process may not make or open the directory:
 * in the sandbox, one that was removed cannot be used again. */
bool spool_store_is_forbidden(const struct spool_store *s);

enum spool_read { SPOOL_READ_MORE, SPOOL_READ_ALL, SPOOL_READ_NO_ROOM, SPOOL_READ_FAILED };
/* Reads the heads of at most n records of earlier processes, oldest first. wall_offset_ns: wall
 * clock minus monotonic clock, from which the age of a record follows. */
enum spool_read spool_store_read(struct spool_store *s, size_t n, int64_t wall_offset_ns,
                                 struct err *err);

/* Leaves a segment that cannot be read to the next process, and continues with the next segment. */
void spool_store_give_up(struct spool_store *s);

/* The result of appending an entry e. TOO_LARGE: e will never be on disk, but still needs
 * spool_store_done(). FULL: there is no room until other entries are done, because only profiles
 * that senders rely on could be dropped.
 */
enum spool_append {
    SPOOL_APPENDED,
    SPOOL_APPEND_TOO_LARGE,
    SPOOL_APPEND_FULL,
    SPOOL_APPEND_FAILED,
};
/* Writes e->profile. Makes room by dropping the oldest segments, except those with a pushed profile
 * that is nowhere else. The profile stays with e. The record names the records that it replaces, so
 * that after a crash either these are read or it is; the caller acknowledges them afterwards. */
enum spool_append spool_store_append(struct spool_store *s, struct spool_entry *e,
                                     int64_t wall_offset_ns, struct err *err);
/* Syncs the records that were appended since the last call. After a failure, it is unknown which of
 * them are safe. */
bool spool_store_sync(struct spool_store *s, struct err *err);

/* Reads a profile back. */
enum spool_load spool_store_load(struct spool_store *s, struct spool_entry *e,
                                 struct profile **ret_profile, struct err *err);

/* Acknowledges e, which is freed now or later. Returns false if that could not be written:
 * spool_store_retry() writes it, or the next process sends the profile again. */
bool spool_store_done(struct spool_store *s, struct spool_entry *e, struct err *err);
/* Repeats the acknowledgements and removals that failed. */
bool spool_store_retry(struct spool_store *s, struct err *err);

/* Checks that all files that are known to exist do; with `segments`, also those that nothing is
 * appended to. False, with an error, if somebody has removed something: nothing is written there
 * any more. Call spool_store_list() if it is not listed now, then spool_store_recover(). */
bool spool_store_check(struct spool_store *s, bool segments, struct err *err);
/* Writes again the profiles of files that are gone, as far as their bytes can still be read, and
 * reports the others as lost. To be repeated if it fails. */
bool spool_store_recover(struct spool_store *s, int64_t wall_offset_ns, struct err *err);

const struct spool_counts *spool_store_counts(const struct spool_store *s);
/* Return "open", "write", ..., and "foreign", ... Static storage. */
const char *spool_error_name(unsigned e);
const char *spool_skip_name(unsigned k);

#endif

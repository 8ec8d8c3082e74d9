/* Keeps profiles on disk, in one directory: one SQLite database for each stretch of time, beside it
 * a data file (data.h) until the profiles of the stretch are merged.
 *
 * The time of a profile decides which stretch (an hour by default), and so which file, keeps it.
 * This time is the one inside the profile, which other destinations are sent as well. If it is
 * missing or wrong, the beginning of the profile's window stands in for it. The file keeps the time
 * of each profile, so a reader never works it out again, and profiles that earlier versions stored
 * keep theirs.
 *
 * One thread at a time writes (store_put()). Any number of threads read, each from a snapshot of
 * its own (SQLite's write-ahead log). Before a query reads a file, it commits what was put into the
 * file's tables, which the writer waits for. Retention removes whole files. A file that is damaged,
 * belongs to another program, or comes from a newer version is counted, named in the log, and left
 * where it is; all other files stay in use.
 *
 * Putting a profile computes its labels, the string labels of its samples, its sample types, and
 * the sum of each sample type. Queries for labels and timelines therefore open no profile. A
 * background thread merges the profiles of a series in closed stretches into one for each five
 * minutes; the times and sums of the single profiles stay.
 *
 * All functions may be called from any thread, unless their comment says otherwise.
 */
#ifndef PROFPULL_STORE_STORE_H
#define PROFPULL_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/partial.h"
#include "base/str.h"
#include "model/profile.h"
#include "model/selector.h"

struct archive_options;
struct archive_stats;
struct peering;
struct store;
struct buf;

/* Adds names to stored profiles whose addresses have none, when they are read. */
struct store_names {
    /* Returns true if names may be found at all. */
    bool (*wanted)(void *arg);
    /* Appends a plain profile with names to out, which is empty. It may wait for names until
     * until_ms (monotonic). Returns false if nothing is to be changed. Any thread that reads the
     * store. */
    bool (*name)(void *arg, struct sv plain, int64_t until_ms, struct buf *out);
    void *arg;
    int64_t wait_ms; /* how long all profiles of one scan may wait for names together */
};

struct store_options {
    const char *name;      /* the name of the destination, for the log and metrics */
    const char *directory; /* created if it does not exist */
    int64_t stretch_ms;    /* the time that one file covers */
    int64_t max_age_ms;    /* files whose stretch ended longer ago are removed; 0: never */
    uint64_t max_bytes;    /* limit of all databases together; 0: no limit */
    int64_t merge_ms;      /* a merged profile covers this much time; 0: no merging */
    unsigned merge_cpu;    /* percent of one core that merging may take; 0: 25 */
    bool sync;             /* each commit is synced to disk before store_put() returns */
    /* NULL: there is no archive. Only store_open() and store_configure() read it. */
    const struct archive_options *archive;
    /* Only the archive is read: the directory is neither created nor locked nor read. */
    bool read_only;
    struct log *log;
    struct metrics *metrics; /* may be NULL */
    /* NULL: profiles are read as they were put. Must live as long as the store. */
    const struct store_names *names;
};

/* Opens or creates the directory and locks it, because only one process may write. Damaged files
 * are no error. NULL with err if the directory cannot be used. If its disk does not answer within
 * STORE_OPEN_MS, the store is returned nevertheless, and opens when the disk answers; until then
 * queries fail and store_put() waits. */
#define STORE_OPEN_MS 5000
struct store *store_open(const struct store_options *options, struct err *err);
struct store *store_close(struct store *s); /* accepts NULL, returns NULL */
/* Takes over the times and limits of other options. They apply from the next put, merge and round
 * of retention. */
void store_configure(struct store *s, const struct store_options *options);
/* Returns false with err if the process can no longer use the directory: somebody has removed it,
 * and the sandbox does not allow it to be created again. After a restart it is created. */
bool store_healthy(const struct store *s, struct err *err);
/* Returns the directory. Callers may keep files of their own in it. */
const char *store_directory(const struct store *s);

/* ---- writing --------------------------------------------------------------------------------- */

/* Length of an id, which is a UUID as text. */
#define STORE_ID_LENGTH 36

enum store_taken {
    STORE_TAKEN,   /* committed, and visible to queries that start now */
    STORE_REFUSED, /* will never be taken: the profile is damaged or too large */
    STORE_FAILED,  /* not committed, for example because the disk is full; try again */
};

struct writing;

struct store_put {
    /* in order of names, which are unique; `__name__` is the name of the type */
    const struct label *labels;
    size_t n_labels;
    struct sv data; /* gzip or plain */
    enum profile_format format;
    uint16_t salt; /* different salts keep profiles with equal bytes apart */
    /* The window of the profile, in wall time. A profile counts at the time inside it. If that is
     * more than an hour before the window, or more than ten minutes after it, the profile counts at
     * from_ns. */
    int64_t from_ns;
    int64_t until_ns;
    /* Results: */
    enum store_taken taken;
    char id[STORE_ID_LENGTH + 1]; /* if the profile was taken */
    char problem[ERR_MSG_MAX];    /* if the profile was not taken */
    struct writing *writing;      /* private */
};

/* Puts n profiles in one transaction for each file; blocks on the disk. Returns false if any of
 * them was not taken. A profile that the store already has, with the same labels, time, bytes and
 * salt, is taken and not stored twice. One thread at a time. */
bool store_put(struct store *s, struct store_put *profiles, size_t n);

/* ---- reading --------------------------------------------------------------------------------- */

/* A series as queries see it: the profiles of one label set that have one sample type. A profile
 * belongs to several series: one for each of its sample types and each set of string labels that
 * its samples have (except span_id, trace_id and profile_id, and names that the profile's own
 * labels have). A sample type whose sum is 0 makes no series; samples with a negative value do not
 * count towards it. */
struct store_series {
    uint64_t id; /* the same for a series in all files of a scan */
    /* Equal for all series of the profiles that have the same labels and sample types, in all files
     * and scans. */
    uint64_t set;
    /* All labels in byte order of names: those of the profile, those of its samples (if both have a
     * name, the profile's label counts), and the computed `__name__`, `__type__`, `__unit__`,
     * `__period_type__`, `__period_unit__`, `__profile_type__` and `__service_name__`. */
    const struct label *labels;
    size_t n_labels;
    const struct label *sample_labels; /* samples with these labels belong to the series */
    size_t n_sample_labels;
    size_t column; /* index of its sample type in the profiles */
};

/* The other processes that a scan asks for what only their disks have (store/peering/peering.h). */
struct store_peers {
    struct peering *peering; /* NULL: none are asked */
    int64_t deadline_ms;     /* monotonic; peers have at most half of the time; 0: no deadline */
    uint64_t bytes_max;      /* memory for what they send */
};

/* The profiles that a scan visits: those whose time is between two instants, both inclusive. */
struct store_range {
    int64_t from_ns;
    int64_t until_ns;
    const struct selector *selector; /* NULL: all series */
    /* Points of the value 0 are visited as well. A profile without samples has one in the series
     * without labels of samples, if there is such a series. */
    bool with_zeros;
    bool without_ids;  /* points have the id "", which saves the time of printing it */
    bool with_windows; /* points say when their windows end; costs a look-up for each */
    /* Counts the files of the archive and of peers that could not be read, and were left out; may
     * be NULL. */
    struct partial *partial;
    struct store_peers peers;
};

/* A callback of a scan returns false to end the scan. Its arguments are valid until it returns. */

/* Visits each series once that has a profile in the range. A file counts as a whole: a series may
 * also be visited if its profiles are only near the ends of the range. False with err on failure; a
 * scan that a callback has ended is no failure. */
bool store_each_series(struct store *s, const struct store_range *range,
                       bool (*visit)(void *arg, const struct store_series *series), void *arg,
                       struct err *err);

/* Visits each series once that has a point in the range, with the time of its first one there. */
bool store_each_start(struct store *s, const struct store_range *range,
                      bool (*visit)(void *arg, const struct store_series *series, int64_t time_ns),
                      void *arg, struct err *err);

/* One profile of a series, without its bytes. */
struct store_point {
    const struct store_series *series; /* the same pointer for all points of a series in one scan */
    int64_t time_ns;
    /* The end of the window of the profile if the range is with_windows, and 0 otherwise. A profile
     * of CPU time ends at its time and its duration; any other one at the end it was put with. */
    int64_t until_ns;
    int64_t value; /* the sum of its sample type over the samples of the series */
    const char *id;
    /* True if other matching series may have points of the same profile, because its samples have
     * different string labels. All points of a profile come from one file. */
    bool shared;
    uint64_t file; /* number of the file within the scan, from 1 */
};
/* Visits every profile of the range, except those of the value 0 unless the range is with_zeros:
 * file by file in order of time, and within a file by series, then by time. So the points of one
 * series come in order of time, but points of other series come between them. */
bool store_each_point(struct store *s, const struct store_range *range,
                      bool (*visit)(void *arg, const struct store_point *point), void *arg,
                      struct err *err);

/* The bytes of a profile, and those of the matching series that it belongs to. A merged profile
 * represents all profiles in it: it is visited if any of them is in the range. */
struct store_body {
    const char *id; /* id of the profile; of a merged one: id of the first profile in it */
    struct sv data; /* gzip or plain */
    enum profile_format format;
    int64_t from_ns;  /* the time of the profile; of a merged one: of the first profile in it */
    int64_t until_ns; /* the end of the window */
    const struct label *labels; /* as the profile was put */
    size_t n_labels;
    const struct store_series *const *series; /* the matching ones */
    size_t n_series;
    /* True if, for each column among the series, all sets of string labels of its samples matched:
     * then samples need not be distinguished. */
    bool whole;
    /* Adds names to the data, which has the bytes as they were put: see store/query/named.h. NULL:
     * no names are wanted. */
    const struct store_names *names;
    int64_t names_until_ms; /* for names->name() */
};
/* Visits each profile of the range that has a matching series once, file by file, and within a file
 * in order of time unless by_series is set. Files of several writers may cover the same time.
 * Without with_data, data is empty, and no bytes are read from the disk. */
struct store_scan {
    struct store_range range;
    bool with_data;
    /* The newest file comes first, and so does the newest profile of each file. */
    bool newest_first;
    /* Number of profiles to visit; 0: all. With newest_first, they are the newest of all files. */
    size_t limit;
    /* Within a file, visit by series, then by time: what profiles have in common is then still in
     * the caches of the processor, and the profiles of one set at a time are listed in memory. */
    bool by_series;
    /* One profile of each series may stand for a whole day of the range, if the store has summed
     * it: for callers that only sum up stacks. */
    bool with_sums;
};
bool store_each_body(struct store *s, const struct store_scan *scan,
                     bool (*visit)(void *arg, const struct store_body *body), void *arg,
                     struct err *err);

/* Visits one profile by its id, with its bytes. If the profile was merged, visits the merged
 * profile. *ret_found is false if no profile has the id. */
bool store_get(struct store *s, struct sv id, bool *ret_found,
               bool (*visit)(void *arg, const struct store_body *body), void *arg, struct err *err);
/* Does the same, and asks peers, which may be NULL. Notes the files that could not be read: the
 * profile may be in one of them. */
bool store_get_partial(struct store *s, struct sv id, const struct store_peers *peers,
                       struct partial *partial, bool *ret_found,
                       bool (*visit)(void *arg, const struct store_body *body), void *arg,
                       struct err *err);

/* Returns the hash by which the store identifies bytes with a salt. */
uint64_t store_hash(struct sv data, uint16_t salt);
/* Finds the id of a profile whose time is in this second (wall time) and that has this hash.
 * *ret_found is false if there is none. Reads all profiles of the file of that time. */
bool store_find(struct store *s, uint32_t second, uint64_t hash, bool *ret_found,
                char ret_id[STORE_ID_LENGTH + 1], struct err *err);

/* Totals of all files. If there is no profile, the times are 0. */
struct store_stats {
    bool open;
    uint64_t files;
    uint64_t profiles;
    uint64_t singles; /* profiles that are not merged */
    uint64_t bytes;   /* databases, logs, and sums of days */
    int64_t oldest_ns;
    int64_t newest_ns;
};
void store_stats(struct store *s, struct store_stats *ret);

/* Describes the archive (store/archive/archive.h). False if there is none. */
bool store_archive_stats(struct store *s, struct archive_stats *ret);
/* Returns true if the store takes no profiles. */
bool store_is_read_only(const struct store *s);

#endif

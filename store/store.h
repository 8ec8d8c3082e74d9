/* Profiles kept on disk: one SQLite database for each stretch of time, in one directory.
 *
 * A stretch (an hour by default) is the file that a profile's time falls into. The time of a
 * profile is the one inside it, as other destinations are sent it; the beginning of its window
 * stands in for a missing or wrong one. The file keeps the time of each profile, so a reader never
 * works it out again, and profiles that earlier versions stored keep theirs. One thread at a
 * time writes (store_put()), any number read, each from a snapshot of its own (WAL): readers never
 * delay the writer. Retention removes whole files. A file that is damaged, of another program, or
 * of a newer version costs itself alone: it is counted, named in the log, and left where it is.
 *
 * What the store knows of a profile beside its bytes was computed when it was put: its labels with
 * the string labels of its samples, its sample types, and the sum of each sample type. So labels
 * and timelines are answered without opening a profile. The background merges the profiles of a
 * series in closed stretches to one for each five minutes; times and sums of the single ones stay.
 *
 * Any thread, unless said otherwise.
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
#include "base/str.h"
#include "model/profile.h"
#include "store/selector.h"

struct store;

struct store_options {
    const char *name;      /* of the destination, for the log and metrics */
    const char *directory; /* made if it is not there */
    int64_t stretch_ms;    /* of one file */
    int64_t max_age_ms;    /* 0: for ever */
    uint64_t max_bytes;    /* of all files; 0: any number */
    int64_t merge_ms;      /* profiles of closed stretches are merged to one for each; 0: never */
    unsigned merge_cpu;    /* percent of one core that merging may take; 0: 25 */
    bool sync;             /* each commit is synced to disk before store_put() returns */
    struct log *log;
    struct metrics *metrics; /* may be NULL */
};

/* Opens or makes the directory and takes a lock on it, since only one process may write. Damaged
 * files are no error. NULL and err if the directory cannot be used. If its disk does not answer
 * within STORE_OPEN_MS, the store is returned nevertheless, and opens when it does: until then
 * queries fail and store_put() waits. */
#define STORE_OPEN_MS 5000
struct store *store_open(const struct store_options *options, struct err *err);
struct store *store_close(struct store *s); /* accepts NULL, returns NULL */
/* Takes over the times and bytes of other options, for what is put, merged and removed from then
 * on.
 */
void store_configure(struct store *s, const struct store_options *options);
/* Returns false with err if the process has lost the directory for good: somebody has removed it,
 * and the sandbox does not let it be made again. A restart makes it. */
bool store_healthy(const struct store *s, struct err *err);
/* Where it is; other files than databases may be kept there too. */
const char *store_directory(const struct store *s);

/* ---- writing --------------------------------------------------------------------------------- */

/* A UUID as text. */
#define STORE_ID_LENGTH 36

enum store_taken {
    STORE_TAKEN,   /* committed, and visible to queries that start now */
    STORE_REFUSED, /* will never be taken: damaged, or not what it says */
    STORE_FAILED,  /* not committed: the disk is full, for example; try again */
};

struct writing;

struct store_put {
    const struct label *labels; /* in order of unique names; `__name__` is the name of the type */
    size_t n_labels;
    struct sv data; /* gzip or plain */
    enum profile_format format;
    uint16_t salt; /* keeps equal profiles apart */
    /* The window of the profile, by the wall clock. A profile counts at the time inside it, if that
     * is at most an hour before the window and ten minutes after it, and else at from_ns. */
    int64_t from_ns;
    int64_t until_ns;
    /* Results: */
    enum store_taken taken;
    char id[STORE_ID_LENGTH + 1]; /* of a profile that was taken */
    char problem[ERR_MSG_MAX];    /* of one that was not */
    struct writing *writing;      /* private */
};

/* Puts n profiles in one transaction. False if any of them was not taken. One thread at a time; it
 * blocks on the disk. A profile that is there already, with the same labels, time, bytes and salt,
 * is taken and not kept twice. */
bool store_put(struct store *s, struct store_put *profiles, size_t n);

/* ---- reading --------------------------------------------------------------------------------- */

/* A series as queries see it: the profiles of one label set that have one sample type. One pushed
 * profile belongs to several: one for each of its sample types and each set of string labels that
 * its samples have (except span_id, trace_id and profile_id, and names that the profile's own
 * labels have). A sample type whose sum is 0 makes no series, as samples with a negative value
 * count nowhere. */
struct store_series {
    uint64_t id; /* equal for the same series in all files of one scan */
    /* All labels in byte order of names: those of the profile, those of its samples (the profile's
     * win), and the computed `__name__`, `__type__`, `__unit__`, `__period_type__`,
     * `__period_unit__`, `__profile_type__` and `__service_name__`. */
    const struct label *labels;
    size_t n_labels;
    const struct label *sample_labels; /* which samples of a profile belong to it */
    size_t n_sample_labels;
    size_t column; /* of its sample type in the profiles */
};

/* What a scan visits. Both instants are inclusive, and count for the time of a profile. */
struct store_range {
    int64_t from_ns;
    int64_t until_ns;
    const struct selector *selector; /* NULL: all */
};

/* The callbacks of scans return false to end them. What they are given is valid until they return.
 */

/* Visits each series once that has a profile in the range (or near its ends: a file's resolution is
 * enough). False with err on failure, not when a callback has ended it. */
bool store_each_series(struct store *s, const struct store_range *range,
                       bool (*visit)(void *arg, const struct store_series *series), void *arg,
                       struct err *err);

/* One profile of a series, without its bytes. */
struct store_point {
    const struct store_series *series; /* the same pointer for the same series in one scan */
    int64_t time_ns;
    int64_t value; /* the sum of its sample type over the samples of the series */
    const char *id;
    /* Other series that match may have points of the same profile, because its samples have
     * different string labels. All points of a profile come from one file. */
    bool shared;
    uint64_t file; /* the number of its file in the scan, from 1 on */
};
/* Visits every profile of the range: file by file in order of time, and in each by series and time.
 * So the points of a series come in order of time, with those of others between them. */
bool store_each_point(struct store *s, const struct store_range *range,
                      bool (*visit)(void *arg, const struct store_point *point), void *arg,
                      struct err *err);

/* The bytes of a profile, and the series that matched and that it is a part of. Merged profiles
 * stand for all that they were made of: one is visited if any of those is in the range. */
struct store_body {
    const char *id; /* of a merged one: that of the first profile in it */
    struct sv data; /* gzip or plain */
    enum profile_format format;
    int64_t from_ns;  /* the time of the profile; of a merged one: of the first profile in it */
    int64_t until_ns; /* the end of the window */
    const struct label *labels; /* as it was put */
    size_t n_labels;
    const struct store_series *const *series; /* those that matched */
    size_t n_series;
    /* Every string label set of its samples matched, for each column among the series: samples need
     * not be distinguished. */
    bool whole;
};
/* Visits the profiles of the range that have a series which matches, each once, in order of time
 * unless by_series says otherwise.
 * with_data: else data is empty and nothing of it is read from the disk. newest_first and limit
 * (0: none) are for lists. */
struct store_scan {
    struct store_range range;
    bool with_data;
    bool newest_first;
    size_t limit;
    /* Within a file by series, then by time: what profiles have in common is found again while it
     * is in the caches of the processor. */
    bool by_series;
};
bool store_each_body(struct store *s, const struct store_scan *scan,
                     bool (*visit)(void *arg, const struct store_body *body), void *arg,
                     struct err *err);

/* Visits one profile by its id (that of one that was merged: the result of the merge), with its
 * bytes. *ret_found says whether there is one. */
bool store_get(struct store *s, struct sv id, bool *ret_found,
               bool (*visit)(void *arg, const struct store_body *body), void *arg, struct err *err);

/* What the store knows the bytes of a profile by, with its salt. */
uint64_t store_hash(struct sv data, uint16_t salt);
/* The id of a profile whose time is in this second (of the wall clock) and that has this hash.
 * *ret_found says whether there is one; it looks at all profiles of the file. */
bool store_find(struct store *s, uint32_t second, uint64_t hash, bool *ret_found,
                char ret_id[STORE_ID_LENGTH + 1], struct err *err);

/* Of all files. Without a profile the times are 0. */
struct store_stats {
    bool open;
    uint64_t files;
    uint64_t profiles;
    uint64_t singles; /* of them not merged */
    uint64_t bytes;
    int64_t oldest_ns;
    int64_t newest_ns;
};
void store_stats(struct store *s, struct store_stats *ret);

#endif

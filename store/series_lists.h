/* The series of files that do not change, kept in memory, so that a query finds the files that have
 * a matching series without opening any.
 *
 * A list has the series rows of one file: a sealed file of the store, or an object of its archive.
 * The labels and types of a row are the same in nearly all files, so lists share them as texts. All
 * lists together take at most SERIES_LISTS_BYTES_MAX; beyond that, those that were not used for
 * longest are forgotten. A list is found by the path of its file and by a version of it: whoever
 * changes the file gives it another version. Any thread may call these functions.
 */
#ifndef PROFPULL_STORE_SERIES_LISTS_H
#define PROFPULL_STORE_SERIES_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define SERIES_LISTS_BYTES_MAX ((size_t)64 * 1024 * 1024)

struct series_text {
    uint64_t number;  /* differs from that of all other texts of the process */
    struct sv set;    /* blob of the set: labels and sample types */
    struct sv labels; /* blob of the labels of samples */
};

struct series_row {
    int64_t id;
    uint64_t columns;
    int64_t set_id;
    const struct series_text *text;
};

/* Members do not change after series_lists_add(). */
struct series_list {
    struct series_row *rows; /* in order of ids */
    size_t n;
};

struct series_lists;
struct series_lists *series_lists_new(size_t bytes_max);        /* NULL if out of memory */
struct series_lists *series_lists_free(struct series_lists *s); /* accepts and returns NULL */
size_t series_lists_bytes(struct series_lists *s);

/* Says which version of a file a list belongs to. */
struct series_version {
    uint64_t parts[4];
};
/* Reads the version of a database on disk from its inode, size and time of change. False if it has
 * none: the file does not exist, is not a regular one, or has a log with commits of its own. */
bool series_version_of(const char *path, struct series_version *ret);

/* Returns the list of a file, which the caller releases; NULL if there is none of this version. */
const struct series_list *series_lists_get(struct series_lists *s, const char *path,
                                           const struct series_version *version);
void series_lists_release(struct series_lists *s, const struct series_list *l);

/* Begins a list. NULL if out of memory. */
struct series_list *series_list_new(void);
/* Adds a row; copies its texts, unless another list has them. False if out of memory. */
bool series_lists_add_row(struct series_lists *s, struct series_list *l, int64_t id,
                          uint64_t columns, int64_t set_id, struct sv set, struct sv labels);
/* Makes the list that of a file, in place of an earlier one. The caller still has to release it.
 * If memory is short, the list belongs to the caller only. */
void series_lists_add(struct series_lists *s, struct series_list *l, const char *path,
                      const struct series_version *version);

#endif

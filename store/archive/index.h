/* The small object that makes a file of an archive known, and in which queries find the series of
 * the file without opening it.
 *
 * The object begins with a line of text that has the version of the format. Then come the
 * compressed fields, and a checksum. The fields are: ETag and size of the file, its numbers, and
 * the rows of its tables of series and sets. The index of a day has more: the names of the objects
 * that it replaces, where the file has what belongs to a set, the beginning of the file, and its
 * end, unless that is large. The bytes come from outside; a reader trusts none of them. Any thread.
 */
#ifndef PROFPULL_STORE_ARCHIVE_INDEX_H
#define PROFPULL_STORE_ARCHIVE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/archive/day.h"
#include "store/db.h"

/* The version of heartbeats and of the indexes of files. */
#define ARCHIVE_VERSION 1
/* The version of the indexes of days, which have more fields. */
#define ARCHIVE_DAY_VERSION 2
/* Ceilings of an index, compressed and as memory. The series of one file take some 200 bytes each
 * before compression. */
#define ARCHIVE_INDEX_MAX ((size_t)32 * 1024 * 1024)
#define ARCHIVE_INDEX_PLAIN_MAX ((size_t)256 * 1024 * 1024)
/* Memory for reading one index. */
#define ARCHIVE_INDEX_ARENA_MAX (2 * ARCHIVE_INDEX_PLAIN_MAX)

struct archive_row {
    int64_t id;
    uint64_t columns;
    struct sv labels; /* blob of the labels of samples */
    struct sv set;    /* blob of the set */
    int64_t set_id;
};

/* The further fields of the index of a day. */
struct archive_day {
    const struct sv *replaces; /* names of data objects, after "WRITER/data/" */
    size_t n_replaces;
    const struct day_range *ranges; /* in order of set ids */
    size_t n_ranges;
    struct sv head;   /* the first bytes of the file */
    struct sv tail;   /* the last bytes of the file, or empty */
    uint64_t tail_at; /* offset of the tail */
};

struct archive_index {
    struct sv etag; /* ETag of the file */
    uint64_t bytes;
    uint64_t profiles;
    int64_t oldest_ns;
    int64_t newest_ns;
    const struct archive_row *rows; /* in order of ids */
    size_t n_rows;
    struct archive_day day; /* empty unless it is the index of a day */
};

enum archive_verdict {
    ARCHIVE_INDEX_FINE,
    ARCHIVE_INDEX_NEWER,   /* a later version has written it */
    ARCHIVE_INDEX_DAMAGED, /* or it belongs to another program */
    ARCHIVE_INDEX_MEMORY,  /* out of memory */
};

/* Appends the index of an open database to out; `day` is NULL if it is not that of a day. False
 * with err. */
bool archive_index_write(struct db *db, const char *etag, uint64_t bytes,
                         const struct archive_day *day, struct buf *out, struct err *err);
/* Checks the version and the checksum of an index, without reading its fields. If it is not fine,
 * err has the reason. */
enum archive_verdict archive_index_check(struct sv bytes, struct err *err);
/* Reads an index into memory of the arena. If it is not fine, err has the reason. */
enum archive_verdict archive_index_read(struct sv bytes, struct arena *arena,
                                        struct archive_index *ret, struct err *err);

#endif

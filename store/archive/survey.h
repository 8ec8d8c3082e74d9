/* Lists and checks the objects of an archive without a store: for tools. Nothing is changed.
 * Blocking; any thread, one at a time for each survey.
 */
#ifndef PROFPULL_STORE_ARCHIVE_SURVEY_H
#define PROFPULL_STORE_ARCHIVE_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/archive/backend.h"
#include "store/archive/names.h"

enum survey_state {
    SURVEY_FINE,
    SURVEY_UNFINISHED, /* a database without an index: its upload is in progress, or left over */
    SURVEY_MISSING,    /* an index without its database */
    SURVEY_DAMAGED,
    SURVEY_NEWER,    /* a later version has written it */
    SURVEY_FOREIGN,  /* an object that does not belong to an archive */
    SURVEY_REPLACED, /* a day has all of it, so that queries leave it out */
    SURVEY_FAILED,   /* it could not be read */
    SURVEY_STATES,
};
const char *survey_state_name(enum survey_state s); /* "fine", "unfinished", ... */

/* A file of an archive: its database and its index; or a foreign object. */
struct survey_file {
    char *key;                        /* of the database; of the object if it is foreign */
    char writer[ARCHIVE_WRITER_SIZE]; /* "" if it is foreign */
    struct archive_name name;
    bool has_data;
    bool has_index;
    uint64_t data_bytes;
    uint64_t index_bytes;
    char data_etag[BUCKET_ETAG_SIZE];
    int64_t modified_ns; /* of the newer object; 0: unknown */
    enum survey_state state;
};

struct survey {
    struct survey_file *at; /* in order of stretches, then writers; foreign objects come last */
    size_t n;
    size_t cap;
};

/* Limits what a survey keeps: files of a writer (NULL: all), whose stretch overlaps a range.
 * Foreign objects are kept only without a limit. */
struct survey_limits {
    const char *writer;
    int64_t from_ns;
    int64_t until_ns; /* inclusive */
};

/* Lists all objects under the prefix of an archive. Call survey_done() in any case. */
enum bucket_result survey_list(const struct archive_backend *b, const struct survey_limits *limits,
                               struct survey *ret, struct err *err);
void survey_done(struct survey *s);
/* Reads the indexes of the days among the files, and sets the state of those that they have
 * replaced. A day whose index cannot be read gets the state that says so. */
void survey_find_replaced(const struct archive_backend *b, struct survey *s);

/* Downloads the database of a file to an empty file, and compares its hash with its name. Calls
 * on_bytes (NULL: nobody) with the number of bytes of each range that has arrived. Returns
 * SURVEY_FINE, or another state with the reason. */
enum survey_state survey_download(const struct archive_backend *b, const struct survey_file *f,
                                  int fd, void (*on_bytes)(void *arg, uint64_t n), void *arg,
                                  struct err *err);
/* Computes the beginning of the SHA-256 of a file, as names have it. */
bool survey_hash(const char *path, char ret[ARCHIVE_HASH_DIGITS + 1], struct err *err);
/* Checks that the index of a file is intact, and that it fits the database, which was downloaded to
 * `path`; the database is checked as well. */
enum survey_state survey_check(const struct archive_backend *b, const struct survey_file *f,
                               const char *path, struct err *err);

#endif

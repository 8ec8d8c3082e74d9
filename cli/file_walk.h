/* Walks the files named on a command line: names, directories (recursively, sorted by name) and "-"
 * for standard input.
 *
 * Used by one thread at a time. Blocks on the disk: not for a loop's thread.
 */
#ifndef PROFPULL_CLI_FILE_WALK_H
#define PROFPULL_CLI_FILE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct file_walk;

/* paths must outlive the object. Returns NULL if out of memory. */
struct file_walk *file_walk_new(char *const *paths, size_t n);
struct file_walk *file_walk_free(struct file_walk *w); /* accepts NULL, returns NULL */

struct file_found {
    const char *path; /* valid until the next call; "standard input" for "-" */
    const char *open; /* the path to open; NULL: standard input */
    bool named;       /* the file was given by name, not found in a directory */
};

/* Finds the next regular file, or anything that was given by name. WALK_ERROR: err names what
 * cannot be read, and why; the walk can go on. Symbolic links are followed only if they are given
 * by name. */
enum walk_result { WALK_FILE, WALK_ERROR, WALK_END };
enum walk_result file_walk_next(struct file_walk *w, struct file_found *ret, struct err *err);

/* Reads a whole file into out. ERR_LIMIT if the file exceeds the limit of out. The error does not
 * name the file. *ret_mtime_ns is the time of the last write of a regular file, else 0. */
bool file_walk_read(const struct file_found *f, struct buf *out, int64_t *ret_mtime_ns,
                    struct err *err);

#endif

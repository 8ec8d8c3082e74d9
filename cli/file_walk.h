/* The files that a command is given: names, directories (with all below them, in order of names)
 * and "-" for standard input.
 *
 * One thread at a time. Blocks on the disk, so not on a loop's thread.
 */
#ifndef PROFPULL_CLI_FILE_WALK_H
#define PROFPULL_CLI_FILE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct file_walk;

/* paths must outlive the walk. NULL if out of memory. */
struct file_walk *file_walk_new(char *const *paths, size_t n);
struct file_walk *file_walk_free(struct file_walk *w); /* accepts NULL, returns NULL */

struct file_found {
    const char *path; /* until the next call; "standard input" for "-" */
    const char *open; /* what to open; NULL: standard input */
    bool named;       /* given by name, not found in a directory */
};

/* The next regular file, or whatever was given by name. WALK_ERROR: err says which name or
 * directory cannot be read and why; the walk goes on. Symbolic links are followed where they were
 * given by name, not below. */
enum walk_result { WALK_FILE, WALK_ERROR, WALK_END };
enum walk_result file_walk_next(struct file_walk *w, struct file_found *ret, struct err *err);

/* Reads a whole file into out, which has its own ceiling: ERR_LIMIT if there is more. The error has
 * no name in it. *ret_mtime_ns is 0 for what is no regular file. */
bool file_walk_read(const struct file_found *f, struct buf *out, int64_t *ret_mtime_ns,
                    struct err *err);

#endif

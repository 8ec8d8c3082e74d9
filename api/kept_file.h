/* A small file that a service of the API keeps beside the store. It is read once and replaced as a
 * whole. Its owner has the lock.
 */
#ifndef PROFPULL_API_KEPT_FILE_H
#define PROFPULL_API_KEPT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct kept_file {
    char *path; /* NULL: nothing is kept */
    char *temporary;
};

/* Prepares the file `name` of a directory; reads nothing. directory NULL: nothing is kept, and
 * reading gives nothing. Returns false if out of memory; call kept_file_done() even then. */
bool kept_file_init(struct kept_file *f, const char *directory, const char *name);
void kept_file_done(struct kept_file *f);
/* Appends the content; nothing if there is no file. Blocks on the disk. False with err: ERR_LIMIT
 * if out is too small. */
bool kept_file_read(const struct kept_file *f, struct buf *out, struct err *err);
/* Replaces the file, synced. Blocks on the disk. False with err, and the former file stays. */
bool kept_file_write(const struct kept_file *f, const struct buf *content, struct err *err);

#endif

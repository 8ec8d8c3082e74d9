/* Reading a small file whole. */
#ifndef PROFPULL_CONFIG_FILE_H
#define PROFPULL_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the rest of an open file to out. Blocks. */
bool file_read_fd(int fd, size_t max, struct buf *out, struct err *err);
/* Appends the content of a regular file (or the output of a pipe) to out. The error does not name
 * the file: the caller does. Blocks. */
bool file_read(const char *path, size_t max, struct buf *out, struct err *err);

#endif

/* Reads a small file as a whole. */
#ifndef PROFPULL_CONFIG_FILE_H
#define PROFPULL_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the rest of an open file to out. Blocks. */
bool file_read_fd(int fd, size_t max, struct buf *out, struct err *err);
/* The longest time that a pipe may stay without its first byte, in milliseconds. */
#define FILE_PIPE_WAIT_MS 10000

/* Appends the content of a regular file (or the output of a pipe) to out. The error does not name
 * the file: the caller does. Blocks. */
bool file_read(const char *path, size_t max, struct buf *out, struct err *err);

/* Reads like file_read(), but waits at most wait_ms for the first byte of a pipe. */
bool file_read_within(const char *path, int wait_ms, size_t max, struct buf *out, struct err *err);

#endif

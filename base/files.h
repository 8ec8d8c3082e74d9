/* Functions for files and directories. They block; any thread may call them. */
#ifndef PROFPULL_BASE_FILES_H
#define PROFPULL_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Makes a directory and all missing directories above it. A directory that exists is no error. On
 * failure both errno and err, which may be NULL, have the reason. */
bool make_directories(const char *path, mode_t mode, struct err *err);

/* Writes all n bytes at the file's position. Returns false with errno on failure. */
bool write_all(int fd, const void *data, size_t n);

#endif

/* Files and directories. Blocking; any thread. */
#ifndef PROFPULL_BASE_FILES_H
#define PROFPULL_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Makes a directory and those above it; one that exists already is no error. On failure errno says
 * why as well as err, which may be NULL. */
bool make_directories(const char *path, mode_t mode, struct err *err);

/* Writes all n bytes at the file's position. False with errno. */
bool write_all(int fd, const void *data, size_t n);

#endif

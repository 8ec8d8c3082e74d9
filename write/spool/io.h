/* The system calls of the spool. The linker replaces them in tests that make each of them fail.
 *
 * Every function returns what the system call of its name does, -1 with errno on failure. Names are
 * relative to a directory and never followed if they are symbolic links.
 */
#ifndef PROFPULL_WRITE_SPOOL_IO_H
#define PROFPULL_WRITE_SPOOL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum spool_open {
    SPOOL_OPEN_READ,
    SPOOL_OPEN_CREATE, /* reading and writing; must not be there */
    SPOOL_OPEN_MAKE,   /* reading and writing; made if it is not there */
};

/* mkdir -p. */
int spool_io_make_directory(const char *path);
int spool_io_open_directory(const char *path);
/* A regular file; everything else fails with ENOTSUP. *ret_size gets its size; may be NULL. */
int spool_io_open(int dir, const char *name, enum spool_open how, uint64_t *ret_size);
ssize_t spool_io_read(int fd, void *p, size_t n, uint64_t offset);
ssize_t spool_io_write(int fd, const struct iovec *parts, int n, uint64_t offset);
int spool_io_truncate(int fd, uint64_t size);
int spool_io_sync(int fd);
int spool_io_remove(int dir, const char *name);
/* Whether an open file still has a name, and whether a path leads to an open directory. True if
 * that cannot be found out. */
bool spool_io_is_linked(int fd);
bool spool_io_is_directory(const char *path, int dir);
/* Calls fn for each name except "." and ".."; it returns false to stop. */
int spool_io_list(int dir, bool (*fn)(void *arg, const char *name), void *arg);
/* Locks until fd is closed; EAGAIN if another process holds the lock. */
int spool_io_lock(int fd, bool exclusive);
/* True if a process that writes holds the lock, found out without taking it. */
bool spool_io_is_locked(int fd);

#endif

/* The system calls of the spool. The linker replaces them in tests that make each of them fail.
 *
 * Every function returns the result of the system call that it is named after, -1 with errno on
 * failure. Names are relative to a directory and never followed if they are symbolic links. */
#ifndef PROFPULL_WRITE_SPOOL_IO_H
#define PROFPULL_WRITE_SPOOL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum spool_open {
    SPOOL_OPEN_READ,
    SPOOL_OPEN_CREATE, /* reading and writing; a new file */
    SPOOL_OPEN_MAKE,   /* reading and writing; a new file if there is none */
};

/* Makes a directory and its parents, as mkdir -p does. */
int spool_io_make_directory(const char *path);
int spool_io_open_directory(const char *path);
/* Opens a regular file; anything else fails with ENOTSUP. *ret_size (may be NULL) gets its size. */
int spool_io_open(int dir, const char *name, enum spool_open how, uint64_t *ret_size);
ssize_t spool_io_read(int fd, void *p, size_t n, uint64_t offset);
ssize_t spool_io_write(int fd, const struct iovec *parts, int n, uint64_t offset);
int spool_io_truncate(int fd, uint64_t size);
int spool_io_sync(int fd);
int spool_io_remove(int dir, const char *name);
/* Returns true if an open file still has a name, or if that is unknown. */
bool spool_io_is_linked(int fd);
/* Returns true if a path leads to an open directory, or if that is unknown. */
bool spool_io_is_directory(const char *path, int dir);
/* Calls fn for each name except "." and "..". fn returns false to stop. */
int spool_io_list(int dir, bool (*fn)(void *arg, const char *name), void *arg);
/* Locks a file until fd is closed; EAGAIN if another process holds the lock. */
int spool_io_lock(int fd, bool exclusive);
/* Locks a directory until dir is closed; EAGAIN if another process holds the lock, any other error
 * if the file system cannot lock directories (NFS). */
int spool_io_lock_directory(int dir, bool exclusive);
/* Returns true if a process that writes holds the lock of a file; does not take it. */
bool spool_io_is_locked(int fd);

#endif

/* The system calls of the spool, in a table so that tests can make each of them fail in turn.
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

struct spool_io {
    void *arg;
    /* mkdir -p. */
    int (*make_directory)(void *arg, const char *path);
    int (*open_directory)(void *arg, const char *path);
    /* A regular file; everything else fails with ENOTSUP. *ret_size gets its size. */
    int (*open)(void *arg, int dir, const char *name, enum spool_open how, uint64_t *ret_size);
    ssize_t (*read)(void *arg, int fd, void *p, size_t n, uint64_t offset);
    ssize_t (*write)(void *arg, int fd, const struct iovec *parts, int n, uint64_t offset);
    int (*truncate)(void *arg, int fd, uint64_t size);
    int (*sync)(void *arg, int fd);
    int (*remove)(void *arg, int dir, const char *name);
    /* Calls fn for each name except "." and ".."; it returns false to stop. */
    int (*list)(void *arg, int dir, bool (*fn)(void *fn_arg, const char *name), void *fn_arg);
    /* Locks until fd is closed; EAGAIN if another process holds the lock. */
    int (*lock)(void *arg, int fd, bool exclusive);
    void (*close)(void *arg, int fd);
};

/* The real ones. */
extern const struct spool_io spool_io_posix;

/* True if a process that writes holds the lock, found out without taking it. */
bool spool_io_is_locked(int fd);

/* Reads n bytes, or fewer at the end of the file; -1 on failure. */
ssize_t spool_io_read_full(const struct spool_io *io, int fd, void *p, size_t n, uint64_t offset);
/* Writes all of two parts, or -1. */
int spool_io_write_full(const struct spool_io *io, int fd, const void *a, size_t a_size,
                        const void *b, size_t b_size, uint64_t offset);

#endif

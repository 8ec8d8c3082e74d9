#include "write/spool/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

int spool_io_make_directory(const char *path)
{
    /* Profiles show the inside of programs: not for everybody. */
    return make_directories(path, 0700, NULL) ? 0 : -1;
}

int spool_io_open_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int spool_io_open(int dir, const char *name, enum spool_open how, uint64_t *ret_size)
{
    static const int flags[] = {
        [SPOOL_OPEN_READ] = O_RDONLY,
        [SPOOL_OPEN_CREATE] = O_RDWR | O_CREAT | O_EXCL,
        [SPOOL_OPEN_MAKE] = O_RDWR | O_CREAT,
    };
    struct stat st;
    /* Not blocking, because the name may be a FIFO's. */
    int fd = openat(dir, name, flags[how] | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        errno = ENOTSUP;
        return -1;
    }
    if (ret_size != NULL) {
        *ret_size = (uint64_t)st.st_size;
    }
    return fd;
}

ssize_t spool_io_read(int fd, void *p, size_t n, uint64_t offset)
{
    return pread(fd, p, n, (off_t)offset);
}

ssize_t spool_io_write(int fd, const struct iovec *parts, int n, uint64_t offset)
{
    return pwritev(fd, parts, n, (off_t)offset);
}

int spool_io_truncate(int fd, uint64_t size)
{
    return ftruncate(fd, (off_t)size);
}

int spool_io_sync(int fd)
{
    return fdatasync(fd);
}

int spool_io_remove(int dir, const char *name)
{
    return unlinkat(dir, name, 0);
}

bool spool_io_is_linked(int fd)
{
    struct stat st;
    return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

bool spool_io_is_directory(const char *path, int dir)
{
    struct stat here;
    struct stat there;
    if (fstat(dir, &here) != 0) {
        return true;
    }
    if (stat(path, &there) != 0) {
        return errno != ENOENT && errno != ENOTDIR;
    }
    return here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

int spool_io_list(int dir, bool (*fn)(void *arg, const char *name), void *arg)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    const struct dirent *e;
    bool more = true;
    errno = 0;
    while (more && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            more = fn(arg, e->d_name);
        }
        errno = 0;
    }
    int failed = errno;
    closedir(d);
    errno = failed;
    return failed == 0 ? 0 : -1;
}

/* The lock belongs to the open file, not to the process: it holds between two spools of one process
 * too, and unlike flock(2) it can be asked for without being taken. */
int spool_io_lock(int fd, bool exclusive)
{
    struct flock l = {.l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &l) == 0) {
        return 0;
    }
    if (errno == EACCES) {
        errno = EAGAIN;
    }
    return -1;
}

int spool_io_lock_directory(int dir, bool exclusive)
{
    return flock(dir, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
}

bool spool_io_is_locked(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

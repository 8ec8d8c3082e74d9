#include "write/spool/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

static int io_make_directory(void *arg, const char *path)
{
    (void)arg;
    /* Profiles show the inside of programs: not for everybody. */
    return make_directories(path, 0700, NULL) ? 0 : -1;
}

static int io_open_directory(void *arg, const char *path)
{
    (void)arg;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int io_open(void *arg, int dir, const char *name, enum spool_open how, uint64_t *ret_size)
{
    static const int flags[] = {
        [SPOOL_OPEN_READ] = O_RDONLY,
        [SPOOL_OPEN_CREATE] = O_RDWR | O_CREAT | O_EXCL,
        [SPOOL_OPEN_MAKE] = O_RDWR | O_CREAT,
    };
    struct stat st;
    (void)arg;
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

static ssize_t io_read(void *arg, int fd, void *p, size_t n, uint64_t offset)
{
    (void)arg;
    return pread(fd, p, n, (off_t)offset);
}

static ssize_t io_write(void *arg, int fd, const struct iovec *parts, int n, uint64_t offset)
{
    (void)arg;
    return pwritev(fd, parts, n, (off_t)offset);
}

static int io_truncate(void *arg, int fd, uint64_t size)
{
    (void)arg;
    return ftruncate(fd, (off_t)size);
}

static int io_sync(void *arg, int fd)
{
    (void)arg;
    return fdatasync(fd);
}

static int io_remove(void *arg, int dir, const char *name)
{
    (void)arg;
    return unlinkat(dir, name, 0);
}

static int io_list(void *arg, int dir, bool (*fn)(void *fn_arg, const char *name), void *fn_arg)
{
    (void)arg;
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
            more = fn(fn_arg, e->d_name);
        }
        errno = 0;
    }
    int failed = errno;
    closedir(d);
    errno = failed;
    return failed == 0 ? 0 : -1;
}

/* A lock of the open file, not of the process: it holds between two spools of one process too, and
 * unlike flock(2) it can be asked for without being taken. */
static int io_lock(void *arg, int fd, bool exclusive)
{
    struct flock l = {.l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    (void)arg;
    if (fcntl(fd, F_OFD_SETLK, &l) == 0) {
        return 0;
    }
    if (errno == EACCES) {
        errno = EAGAIN;
    }
    return -1;
}

bool spool_io_is_locked(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

static void io_close(void *arg, int fd)
{
    (void)arg;
    close(fd);
}

const struct spool_io spool_io_posix = {
    .make_directory = io_make_directory,
    .open_directory = io_open_directory,
    .open = io_open,
    .read = io_read,
    .write = io_write,
    .truncate = io_truncate,
    .sync = io_sync,
    .remove = io_remove,
    .list = io_list,
    .lock = io_lock,
    .close = io_close,
};

ssize_t spool_io_read_full(const struct spool_io *io, int fd, void *p, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = io->read(io->arg, fd, (char *)p + done, n - done, offset + done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int spool_io_write_full(const struct spool_io *io, int fd, const void *a, size_t a_size,
                        const void *b, size_t b_size, uint64_t offset)
{
    while (a_size + b_size > 0) {
        struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)a, .iov_len = a_size},
                                 {.iov_base = (void *)(uintptr_t)b, .iov_len = b_size}};
        ssize_t got = io->write(io->arg, fd, parts, 2, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            /* A disk that takes nothing and gives no reason is full. */
            errno = got == 0 ? ENOSPC : errno;
            return -1;
        }
        size_t n = (size_t)got;
        offset += n;
        size_t of_a = n < a_size ? n : a_size;
        a = (const char *)a + of_a;
        a_size -= of_a;
        b = (const char *)b + (n - of_a);
        b_size -= n - of_a;
    }
    return 0;
}

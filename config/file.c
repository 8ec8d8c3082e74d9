#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/file.h"

bool file_read_fd(int fd, size_t max, struct buf *out, struct err *err)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_sys(err, "cannot read the file");
        }
        if (n == 0) {
            break;
        }
        if (out->len + (size_t)n > max) {
            return err_set(err, ERR_LIMIT, "larger than %zu bytes", max);
        }
        buf_append(out, chunk, (size_t)n);
    }
    return buf_ok(out) ? true : err_set(err, ERR_MEMORY, "not enough memory for this file");
}

/* Waits for the first byte of a pipe, which was opened without blocking: open() would wait for a
 * writer, for ever if there is none. */
static bool wait_for_pipe(int fd, int wait_ms, struct err *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do {
        n = poll(&p, 1, wait_ms);
    } while (n < 0 && errno == EINTR);
    if (n == 0) {
        return err_set(err, ERR_INPUT, "is a pipe that nobody has written to for %d ms", wait_ms);
    }
    return fcntl(fd, F_SETFL, 0) == 0 || err_sys(err, "cannot read the pipe");
}

bool file_read(const char *path, size_t max, struct buf *out, struct err *err)
{
    return file_read_within(path, FILE_PIPE_WAIT_MS, max, out, err);
}

bool file_read_within(const char *path, int wait_ms, size_t max, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_sys(err, "cannot open the file");
    }
    struct stat st;
    bool ok = fstat(fd, &st) == 0 || err_sys(err, "cannot read the file");
    if (ok && S_ISDIR(st.st_mode)) {
        ok = err_set(err, ERR_INPUT, "is a directory");
    } else if (ok && S_ISFIFO(st.st_mode) && !wait_for_pipe(fd, wait_ms, err)) {
        ok = false;
    } else if (ok) {
        ok = file_read_fd(fd, max, out, err);
    }
    close(fd);
    return ok;
}

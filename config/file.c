#include <errno.h>
#include <fcntl.h>
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

bool file_read(const char *path, size_t max, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(err, "cannot open the file");
    }
    struct stat st;
    bool ok;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        ok = err_set(err, ERR_INPUT, "is a directory");
    } else {
        ok = file_read_fd(fd, max, out, err);
    }
    close(fd);
    return ok;
}

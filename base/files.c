#include "base/files.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool make_directories(const char *path, mode_t mode, struct err *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof(part)) {
        err_set(err, ERR_INPUT, "the path has more than %d bytes", PATH_MAX - 1);
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        part[i] = '\0';
        if (mkdir(part, mode) != 0 && errno != EEXIST) {
            int failed = errno;
            err_sys(err, "cannot make the directory %s", part);
            errno = failed;
            return false;
        }
        part[i] = path[i];
    }
    return true;
}

bool write_all(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno != EINTR) {
            return false;
        }
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return true;
}

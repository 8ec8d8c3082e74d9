#include "cli/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

bool output_is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Writes a file. A pipe, or a device such as /dev/null, is written directly, because there is no
 * file to replace. */
static bool write_file(const char *path, struct sv body, struct err *err)
{
    struct stat st;
    char temp[4096];
    bool in_place = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    int n = snprintf(temp, sizeof(temp), "%s.%ld.tmp", path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(temp)) {
        return err_set(err, ERR_INPUT, "the name of the output file is too long");
    }
    const char *name = in_place ? path : temp;
    int fd = open(name, O_WRONLY | O_CLOEXEC | (in_place ? 0 : O_CREAT | O_EXCL), 0666);
    if (fd < 0) {
        return err_sys(err, "%s", name);
    }
    bool ok = write_all(fd, body.p, body.n) || err_sys(err, "%s", name);
    if (close(fd) != 0 && ok) {
        ok = err_sys(err, "%s", name);
    }
    if (ok && !in_place && rename(temp, path) != 0) {
        ok = err_sys(err, "%s", path);
    }
    if (!ok && !in_place) {
        unlink(temp);
    }
    return ok;
}

bool output_write(const char *path, struct sv body, struct err *err)
{
    if (output_is_stdout(path)) {
        fflush(stdout);
        return write_all(STDOUT_FILENO, body.p, body.n) || err_sys(err, "standard output");
    }
    return write_file(path, body, err);
}

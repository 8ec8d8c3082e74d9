#include "api/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"

bool kept_file_init(struct kept_file *f, const char *directory, const char *name)
{
    *f = (struct kept_file){.path = NULL};
    if (directory == NULL) {
        return true;
    }
    if (asprintf(&f->path, "%s/%s", directory, name) < 0) {
        f->path = NULL;
        return false;
    }
    if (asprintf(&f->temporary, "%s.new", f->path) < 0) {
        f->temporary = NULL;
        return false;
    }
    return true;
}

void kept_file_done(struct kept_file *f)
{
    free(f->path);
    free(f->temporary);
    *f = (struct kept_file){.path = NULL};
}

bool kept_file_read(const struct kept_file *f, struct buf *out, struct err *err)
{
    char piece[4096];
    ssize_t n = 0;
    if (f->path == NULL) {
        return true;
    }
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT || err_sys(err, "open %s", f->path);
    }
    while ((n = read(fd, piece, sizeof(piece))) > 0 && buf_append(out, piece, (size_t)n)) {
    }
    bool ok = n == 0 || err_sys(err, "read %s", f->path);
    if (!buf_ok(out)) {
        ok = err_set(err, ERR_LIMIT, "%s is larger than %zu bytes", f->path, out->max);
    }
    close(fd);
    return ok;
}

bool kept_file_write(const struct kept_file *f, const struct buf *content, struct err *err)
{
    if (f->path == NULL) {
        return true;
    }
    int fd = open(f->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_sys(err, "open %s", f->temporary);
    }
    bool ok = (write_all(fd, content->data, content->len) && fsync(fd) == 0) ||
              err_sys(err, "write %s", f->temporary);
    ok = (close(fd) == 0 || err_sys(err, "close %s", f->temporary)) && ok;
    return ok && (rename(f->temporary, f->path) == 0 || err_sys(err, "rename to %s", f->path));
}

#include "cli/secret_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/file_names.h"

static void secret_files_on_name(void *arg, const struct file_name *n)
{
    size_t *missing = arg;
    int fd = open(n->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        close(fd);
        return;
    }
    int failed = errno;
    if (n->pos.line > 0) {
        fprintf(stderr, "%s:%d:%d", n->pos.file, n->pos.line, n->pos.column);
    } else {
        fprintf(stderr, "%s", n->pos.file);
    }
    fprintf(stderr, ": warning: %s of the %s \"%s\": cannot open %s: %s\n", n->key, n->kind,
            n->owner, n->file, strerror(failed));
    ++*missing;
}

size_t secret_files_check(const struct config *config)
{
    size_t missing = 0;
    config_file_names(config, secret_files_on_name, &missing);
    return missing;
}

#include "store/archive/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "store/archive/archive.h"

#define MARK_SIZE (ARCHIVE_HASH_DIGITS + 1)

static void mark_path(const char *path, char out[4096])
{
    (void)snprintf(out, 4096, "%s" ARCHIVE_MARK_SUFFIX, path);
}

static bool is_hash(const char *text)
{
    for (size_t i = 0; i < ARCHIVE_HASH_DIGITS; i++) {
        if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f')) {
            return false;
        }
    }
    return text[ARCHIVE_HASH_DIGITS] == '\n';
}

bool mark_read(const char *path, char ret_hash[ARCHIVE_HASH_DIGITS + 1])
{
    char name[4096];
    char text[MARK_SIZE + 1];
    mark_path(path, name);
    ret_hash[0] = '\0';
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        /* If the mark cannot be read, it may exist. */
        return errno != ENOENT && errno != ENOTDIR;
    }
    if (read(fd, text, sizeof(text)) == MARK_SIZE && is_hash(text)) {
        memcpy(ret_hash, text, ARCHIVE_HASH_DIGITS);
        ret_hash[ARCHIVE_HASH_DIGITS] = '\0';
    }
    close(fd);
    return true;
}

static bool sync_directory(const char *path)
{
    char name[4096];
    const char *slash = strrchr(path, '/');
    (void)snprintf(name, sizeof(name), "%.*s", slash != NULL ? (int)(slash - path) : 1,
                   slash != NULL ? path : ".");
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

bool mark_write(const char *path, const char *hash, struct err *err)
{
    char name[4096];
    char text[MARK_SIZE + 1];
    mark_path(path, name);
    (void)snprintf(text, sizeof(text), "%s\n", hash);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0) {
        return err_sys(err, "cannot write %s", name);
    }
    bool ok = write_all(fd, text, strlen(text)) && fsync(fd) == 0;
    (void)(ok || err_sys(err, "cannot write %s", name));
    if (close(fd) != 0 && ok) {
        ok = err_sys(err, "cannot write %s", name);
    }
    return ok && (sync_directory(path) || err_sys(err, "cannot sync the directory of %s", name));
}

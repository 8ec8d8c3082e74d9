/* The directory of a store, and the locks that keep other processes from writing to it.
 *
 * The store holds two locks: one on the file `lock`, which has the number of the process, and one
 * on the directory itself, which cannot be removed separately as the file can. Where directories
 * cannot be locked, as on NFS, the lock on the file has to suffice. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "store/private.h"

#define LOCK_NAME "lock"
#define PATH_SIZE 4096

static void lock_path(const struct store *s, char out[PATH_SIZE])
{
    (void)snprintf(out, PATH_SIZE, "%s/" LOCK_NAME, s->options.directory);
}

/* Reads the number of the process that holds the lock, as text; "" if it is unknown. */
static void read_holder(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? pread(fd, out, size - 1, 0) : 0;
    size_t digits = 0;
    while (n > 0 && digits < (size_t)n && out[digits] >= '0' && out[digits] <= '9') {
        digits++;
    }
    out[digits] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

static bool is_held(const struct store *s, struct err *err)
{
    char path[PATH_SIZE];
    char pid[32];
    lock_path(s, path);
    read_holder(path, pid, sizeof(pid));
    return err_set(err, ERR_SYSTEM,
                   "another process%s%s%s writes to the directory %s: it holds the lock on %s",
                   pid[0] != '\0' ? " (" : "", pid, pid[0] != '\0' ? ")" : "", s->options.directory,
                   access(path, F_OK) == 0 ? path : s->options.directory);
}

/* Locks the directory itself. *ret_fd is the descriptor that holds the lock. */
static bool lock_directory(const struct store *s, int *ret_fd, struct err *err)
{
    int fd = open(s->options.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(err, "cannot open the directory %s", s->options.directory);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return is_held(s, err);
    }
    *ret_fd = fd;
    return true;
}

/* Creates and locks the file. *ret_fd is the descriptor that holds the lock. */
static bool lock_file(const struct store *s, int *ret_fd, struct err *err)
{
    char path[PATH_SIZE];
    char pid[32];
    lock_path(s, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        return err_sys(err, "cannot open %s", path);
    }
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &l) != 0) {
        bool held = errno == EAGAIN || errno == EACCES;
        (void)(held ? is_held(s, err) : err_sys(err, "cannot lock %s", path));
        close(fd);
        return false;
    }
    int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    /* The number is only for people, so the lock also holds without it. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)n, 0) != n) {
        log_debug(s->options.log, "cannot write to the lock of the store", LOG_STR("file", path));
    }
    *ret_fd = fd;
    return true;
}

/* Returns true if fd is open and refers to the file that has this name now. */
static bool is_still(int fd, const char *path)
{
    struct stat there;
    struct stat ours;
    return fd >= 0 && stat(path, &there) == 0 && fstat(fd, &ours) == 0 &&
           there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

static void replace(int *fd, int by)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = by;
}

static bool take(struct store *s, struct err *err)
{
    char path[PATH_SIZE];
    int fd = -1;
    lock_path(s, path);
    if (!is_still(s->directory_fd, s->options.directory)) {
        if (!make_directories(s->options.directory, 0777, err) || !lock_directory(s, &fd, err)) {
            return false;
        }
        replace(&s->directory_fd, fd);
    }
    if (!is_still(s->lock_fd, path)) {
        if (!lock_file(s, &fd, err)) {
            return false;
        }
        replace(&s->lock_fd, fd);
    }
    return true;
}

/* Logs once that the process may not use the directory any more, or that it can again. The sandbox
 * refers to the directory that existed at the start: a new one of the same name is another
 * directory. */
static void note_cut_off(struct store *s, bool cut_off, const struct err *why)
{
    if (cut_off && !atomic_exchange(&s->cut_off, true)) {
        log_error(s->options.log,
                  "the directory of the store may not be made or opened again: restart profpull",
                  LOG_STR("endpoint", s->options.name), LOG_STR("directory", s->options.directory),
                  LOG_ERR(why));
    } else if (!cut_off && atomic_exchange(&s->cut_off, false)) {
        log_info(s->options.log, "the directory of the store can be used again",
                 LOG_STR("endpoint", s->options.name), LOG_STR("directory", s->options.directory));
    }
}

bool store_take_directory(struct store *s, struct err *err)
{
    errno = 0;
    bool ok = take(s, err);
    bool forbidden = !ok && (errno == EACCES || errno == EPERM);
    pthread_mutex_lock(&s->lock);
    /* During the start, store_open() returns the error, so it is not logged. */
    bool started = s->started;
    pthread_mutex_unlock(&s->lock);
    if (started && (ok || forbidden)) {
        note_cut_off(s, forbidden, err);
    }
    return ok;
}

void store_leave_directory(struct store *s)
{
    replace(&s->lock_fd, -1);
    replace(&s->directory_fd, -1);
}

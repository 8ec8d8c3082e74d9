#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/private.h"

/* What tells one content of a file from another. Kubernetes swaps a symbolic link, so the inode
 * changes; an editor changes the time. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    int64_t mtime_ns;
    int64_t ctime_ns;
};

struct entry {
    struct http_file *content; /* the last good one; NULL if there never was one */
    struct stamp stamp;        /* of what was read last, good or bad */
    bool stamped;
    bool bad;          /* what was read last was no good */
    struct err reason; /* why, if bad */
    int64_t checked_ms;
};

struct http_files {
    struct log *log;
    struct metric_cell *failures;
    struct map *entries; /* path -> struct entry */
};

struct http_file *http_file_unref(struct http_file *file)
{
    if (file == NULL || --file->refs > 0) {
        return NULL;
    }
    explicit_bzero(file->data, file->len);
    free(file);
    return NULL;
}

static void entry_free(void *arg)
{
    struct entry *e = arg;
    http_file_unref(e->content);
    free(e);
}

struct http_files *http_files_new(struct log *log, struct metric_cell *failures)
{
    struct http_files *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return NULL;
    }
    f->log = log;
    f->failures = failures;
    f->entries = map_new();
    return f->entries != NULL ? f : http_files_free(f);
}

struct http_files *http_files_free(struct http_files *f)
{
    if (f == NULL) {
        return NULL;
    }
    map_free(f->entries, entry_free);
    free(f);
    return NULL;
}

static struct entry *find(struct http_files *f, const char *path)
{
    struct entry *e = map_get(f->entries, sv_from(path));
    if (e != NULL) {
        return e;
    }
    e = calloc(1, sizeof(*e));
    if (e != NULL && !map_put(f->entries, sv_from(path), e, NULL)) {
        free(e);
        return NULL;
    }
    return e;
}

static struct stamp stamp_of(const struct stat *st)
{
    return (struct stamp){
        .device = st->st_dev,
        .inode = st->st_ino,
        .size = st->st_size,
        .mtime_ns = (int64_t)st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec,
        .ctime_ns = (int64_t)st->st_ctim.tv_sec * NS_PER_S + st->st_ctim.tv_nsec,
    };
}

static bool stamp_equal(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static ssize_t read_full(int fd, char *out, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, out + len, size - len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -1;
        }
        if (n == 0) {
            break;
        }
        len += (size_t)n;
    }
    return (ssize_t)len;
}

/* A file that is only half there, or something else altogether, would break every connection. */
static bool check(const struct http_file *file, const char *path, const struct http_file_rule *rule,
                  struct err *err)
{
    if (rule->check == NULL || rule->check((struct sv){file->data, file->len}, err)) {
        return true;
    }
    err_wrap(err, "%s", path);
    return false;
}

/* All of an open file. The size in *st is a hint: the file may be changing. */
static struct http_file *read_content(int fd, const char *path, const struct http_file_rule *rule,
                                      const struct stat *st, struct err *err)
{
    size_t max = rule->max;
    if (!S_ISREG(st->st_mode)) {
        err_set(err, ERR_INPUT, "%s: expected a regular file", path);
        return NULL;
    }
    size_t size = (size_t)st->st_size < max ? (size_t)st->st_size + 1 : max + 1;
    struct http_file *file = malloc(sizeof(*file) + size + 1);
    if (file == NULL) {
        err_set(err, ERR_MEMORY, "%s: out of memory", path);
        return NULL;
    }
    *file = (struct http_file){.refs = 1};
    ssize_t n = read_full(fd, file->data, size);
    file->len = n > 0 ? (size_t)n : 0;
    file->data[file->len] = '\0';
    if (n < 0) {
        err_sys(err, "%s: cannot read", path);
    } else if (file->len > max) {
        err_set(err, ERR_LIMIT, "%s: expected at most %zu bytes", path, max);
    } else if (sv_trim((struct sv){file->data, file->len}).n == 0) {
        err_set(err, ERR_INPUT, "%s: the file is empty", path);
    } else if (memchr(file->data, '\0', file->len) != NULL) {
        err_set(err, ERR_INPUT, "%s: expected text, found a zero byte", path);
    } else if (check(file, path, rule, err)) {
        return file;
    }
    return http_file_unref(file);
}

static struct http_file *read_file(struct entry *e, const char *path,
                                   const struct http_file_rule *rule, struct err *err)
{
    struct stat st;
    /* Without O_NONBLOCK a FIFO in place of the file would stop the loop. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        err_sys(err, "%s: cannot open", path);
        e->stamped = false;
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    struct http_file *file = read_content(fd, path, rule, &st, err);
    e->stamp = stamp_of(&st);
    e->stamped = true;
    close(fd);
    return file;
}

static bool is_unchanged(const struct entry *e, const char *path)
{
    struct stat st;
    if (!e->stamped || stat(path, &st) != 0) {
        return false;
    }
    struct stamp now = stamp_of(&st);
    return stamp_equal(&now, &e->stamp);
}

static void refresh(struct http_files *f, struct entry *e, const char *path,
                    const struct http_file_rule *rule)
{
    if (is_unchanged(e, path)) {
        return;
    }
    bool was_bad = e->bad;
    err_clear(&e->reason);
    struct http_file *fresh = read_file(e, path, rule, &e->reason);
    e->bad = fresh == NULL;
    /* Not the file's fault: the same file may be good the next time. */
    if (fresh == NULL && e->reason.kind != ERR_INPUT && e->reason.kind != ERR_LIMIT) {
        e->stamped = false;
    }
    if (fresh == NULL && e->reason.kind == ERR_MEMORY) {
        e->checked_ms = 0;
    }
    if (fresh == NULL && !was_bad) {
        metric_inc(f->failures);
    }
    if (fresh != NULL) {
        http_file_unref(e->content);
        e->content = fresh;
    } else if (e->content != NULL && !was_bad) {
        log_warn(f->log, "cannot re-read a file, keeping its old content", LOG_STR("file", path),
                 LOG_ERR(&e->reason));
    }
}

struct http_file *http_files_get(struct http_files *f, const char *path,
                                 const struct http_file_rule *rule, int64_t now_ms, struct err *err)
{
    struct entry *e = find(f, path);
    if (e == NULL) {
        err_set(err, ERR_MEMORY, "%s: out of memory", path);
        return NULL;
    }
    if (e->checked_ms == 0 || now_ms - e->checked_ms >= HTTP_FILE_CHECK_MS) {
        e->checked_ms = now_ms;
        refresh(f, e, path, rule);
    }
    if (e->content == NULL) {
        err_set(err, e->reason.kind, "%s", e->reason.msg);
        return NULL;
    }
    e->content->refs++;
    return e->content;
}

void http_files_forget(struct http_files *f, const char *path)
{
    struct entry *e = map_get(f->entries, sv_from(path));
    if (e == NULL) {
        return;
    }
    e->checked_ms = 0;
    e->stamped = false;
}

#include "http/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "http/contents.h"

struct entry {
    struct http_file *content; /* the last valid one; NULL if there never was one */
    struct stat stamp;         /* of the last content that was read, valid or not */
    bool stamped;
    uint64_t version;  /* the version of the content in http_contents; 0: not read */
    struct err reason; /* why the last content was not valid, or could not be read */
    int64_t checked_ms;
};

struct http_files {
    struct log *log;
    struct metric_cell *failures;
    struct http_contents *contents; /* NULL: there are none */
    struct map *entries;            /* path -> struct entry */
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

struct http_files *http_files_new(struct log *log, struct metric_cell *failures,
                                  struct http_contents *contents)
{
    struct http_files *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return NULL;
    }
    *f = (struct http_files){log, failures, contents, map_new()};
    return f->entries != NULL ? f : http_files_free(f);
}

struct http_files *http_files_free(struct http_files *f)
{
    if (f != NULL) {
        map_free(f->entries, entry_free);
        free(f);
    }
    return NULL;
}

/* Returns NULL if out of memory. */
static struct entry *find_or_add(struct http_files *f, const char *path)
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

/* Checks a new content, because an incomplete or wrong file would break every connection. */
static bool check_content(const struct http_file *file, const struct http_file_rule *rule,
                          struct err *err)
{
    struct sv text = {file->data, file->len};
    if (text.n > rule->max) {
        return err_set(err, ERR_LIMIT, "expected at most %zu bytes", rule->max);
    }
    if (sv_trim(text).n == 0) {
        return err_set(err, ERR_INPUT, "the file is empty");
    }
    if (memchr(text.p, '\0', text.n) != NULL) {
        return err_set(err, ERR_INPUT, "expected text, found a zero byte");
    }
    return rule->check == NULL || rule->check(text, err);
}

/* Reads a whole open file. The size in *st is a hint: the file may be changing. */
static struct http_file *read_content(int fd, const struct http_file_rule *rule,
                                      const struct stat *st, struct err *err)
{
    size_t size = ((size_t)st->st_size < rule->max ? (size_t)st->st_size : rule->max) + 1;
    if (!S_ISREG(st->st_mode)) {
        err_set(err, ERR_INPUT, "expected a regular file");
        return NULL;
    }
    struct http_file *file = malloc(sizeof(*file) + size + 1);
    if (file == NULL) {
        err_memory(err);
        return NULL;
    }
    ssize_t n = read_full(fd, file->data, size);
    *file = (struct http_file){.refs = 1, .len = n > 0 ? (size_t)n : 0};
    file->data[file->len] = '\0';
    bool ok = n < 0 ? err_sys(err, "cannot read") : check_content(file, rule, err);
    return ok ? file : http_file_unref(file);
}

static struct http_file *read_file(struct entry *e, const char *path,
                                   const struct http_file_rule *rule, struct err *err)
{
    struct http_file *file = NULL;
    /* O_NONBLOCK: a FIFO in place of the file would stop the loop. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    e->stamped = fd >= 0 && fstat(fd, &e->stamp) == 0;
    if (e->stamped) {
        file = read_content(fd, rule, &e->stamp, err);
    } else {
        err_sys(err, "cannot open");
    }
    if (fd >= 0) {
        close(fd);
    }
    if (file == NULL) {
        err_wrap(err, "%s", path);
    }
    return file;
}

/* Reads a content of http_contents. */
static struct http_file *read_other(struct http_files *f, struct entry *e, const char *name,
                                    const struct http_file_rule *rule, struct err *err)
{
    struct http_file *file = http_contents_copy(f->contents, name, &e->version, err);
    if (file != NULL && !check_content(file, rule, err)) {
        file = http_file_unref(file);
    }
    if (file == NULL) {
        err_wrap(err, "%s", name);
    }
    return file;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Returns true if the file has not changed. Kubernetes swaps a symbolic link, which changes the
 * inode; an editor changes the time. */
static bool is_unchanged(struct http_files *f, const struct entry *e, const char *path)
{
    struct stat now;
    if (http_content_named(path)) {
        return e->version != 0 && http_contents_version(f->contents, path) == e->version;
    }
    return e->stamped && stat(path, &now) == 0 && now.st_dev == e->stamp.st_dev &&
           now.st_ino == e->stamp.st_ino && now.st_size == e->stamp.st_size &&
           same_time(now.st_mtim, e->stamp.st_mtim) && same_time(now.st_ctim, e->stamp.st_ctim);
}

static void refresh(struct http_files *f, struct entry *e, const char *path,
                    const struct http_file_rule *rule)
{
    if (is_unchanged(f, e, path)) {
        return;
    }
    bool was_bad = e->reason.kind != ERR_NONE;
    err_clear(&e->reason);
    struct http_file *fresh = http_content_named(path) ? read_other(f, e, path, rule, &e->reason)
                                                       : read_file(e, path, rule, &e->reason);
    if (fresh != NULL) {
        http_file_unref(e->content);
        e->content = fresh;
        return;
    }
    /* Other errors are not about the content: the same file may be fine the next time. */
    if (e->reason.kind != ERR_INPUT && e->reason.kind != ERR_LIMIT) {
        e->stamped = false;
    }
    if (e->reason.kind == ERR_MEMORY) {
        e->checked_ms = 0;
    }
    if (was_bad) {
        return;
    }
    metric_inc(f->failures);
    if (e->content != NULL) {
        log_warn(f->log, "cannot re-read a file, keeping its old content", LOG_STR("file", path),
                 LOG_ERR(&e->reason));
    }
}

struct http_file *http_files_get(struct http_files *f, const char *path,
                                 const struct http_file_rule *rule, int64_t now_ms, struct err *err)
{
    struct entry *e = find_or_add(f, path);
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

bool http_files_secret(struct http_files *f, const char *path, char **ret, struct err *err)
{
    static const struct http_file_rule rule = {HTTP_SECRET_FILE_MAX, NULL};
    *ret = NULL;
    if (path == NULL) {
        return true;
    }
    struct http_file *file = http_files_get(f, path, &rule, clock_mono_ms(), err);
    if (file == NULL) {
        return false;
    }
    struct sv text = sv_trim((struct sv){file->data, file->len});
    *ret = strndup(text.p, text.n);
    http_file_unref(file);
    return *ret != NULL || err_memory(err);
}

void http_files_forget(struct http_files *f, const char *path)
{
    struct entry *e = path != NULL ? map_get(f->entries, sv_from(path)) : NULL;
    if (e != NULL) {
        e->checked_ms = 0;
        e->stamped = false;
    }
    if (f->contents != NULL && http_content_named(path)) {
        http_contents_refuse(f->contents, path);
    }
}

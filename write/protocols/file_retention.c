#include "write/protocols/file_retention.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

/* The longest line of the index, with all labels; a longer one is kept as it is. */
#define LINE_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define TEMPORARY ".tmp-index"
/* If the files exceed max_bytes, so many percent of max_bytes are removed in addition, so that such
 * rounds are rare. */
#define SLACK_PERCENT 10

struct entry {
    json_t *json; /* NULL: the line describes no file */
    const char *path;
    int64_t until_ns;
    uint64_t bytes;
};

/* Returns true for a path of three parts, none of which is hidden, "." or "..". */
static bool is_path(struct sv path)
{
    size_t parts = 0;
    struct sv part;
    struct sv rest = path;
    while (sv_cut(rest, '/', &part, &rest)) {
        if (part.n == 0 || part.p[0] == '.') {
            return false;
        }
        parts++;
    }
    return parts == 2 && rest.n > 0 && rest.p[0] != '.';
}

static struct entry entry_of(const char *line, size_t n)
{
    struct entry e = {.json = n <= LINE_BYTES_MAX ? json_loadb(line, n, 0, NULL) : NULL};
    const char *until = json_string_value(json_object_get(e.json, "until"));
    struct sv time = sv_from(until);
    e.path = json_string_value(json_object_get(e.json, "file"));
    json_int_t bytes = json_integer_value(json_object_get(e.json, "size"));
    if (e.path == NULL || !is_path(sv_from(e.path)) || bytes < 0 ||
        !clock_take_rfc3339(&time, 9, &e.until_ns)) {
        json_decref(e.json);
        return (struct entry){.json = NULL};
    }
    e.bytes = (uint64_t)bytes;
    return e;
}

static int open_part(int parent, const char *path, size_t n)
{
    char name[256];
    if (n >= sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, path, n);
    name[n] = '\0';
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes a file, and the directories above it that are empty then. */
static bool remove_file(const struct file_retention *r, const char *path, struct err *err)
{
    const char *type = strchr(path, '/') + 1;
    const char *name = strchr(type, '/') + 1;
    char above[512];
    int service = open_part(r->root, path, (size_t)(type - path - 1));
    int dir = service >= 0 ? open_part(service, type, (size_t)(name - type - 1)) : -1;
    int rc = dir >= 0 ? unlinkat(dir, name, 0) : -1;
    int failed = rc == 0 ? 0 : errno;
    if (dir >= 0) {
        close(dir);
        (void)snprintf(above, sizeof(above), "%.*s", (int)(name - type - 1), type);
        (void)unlinkat(service, above, AT_REMOVEDIR);
    }
    if (service >= 0) {
        close(service);
        (void)snprintf(above, sizeof(above), "%.*s", (int)(type - path - 1), path);
        (void)unlinkat(r->root, above, AT_REMOVEDIR);
    }
    errno = failed;
    return failed == 0 || failed == ENOENT || err_sys(err, "cannot remove %s", path);
}

/* ---- passes over the index ------------------------------------------------------------------- */

struct pass {
    const struct file_retention *r;
    struct file_retention_result *result;
    uint64_t surplus; /* bytes that have to be removed, from the first line on */
    FILE *out;        /* the new index; NULL: only add up */
    struct err *err;
};

/* Handles one line of the index. Returns false on failure. */
static bool take_line(struct pass *p, const char *line, size_t n)
{
    struct entry e = entry_of(line, n);
    bool old = e.json != NULL && e.until_ns < p->r->oldest_ns;
    bool ok = true;
    bool keep = true;
    if (p->out != NULL && e.json != NULL && (old || p->surplus > 0)) {
        ok = remove_file(p->r, e.path, p->err);
        keep = false;
        p->surplus -= p->surplus < e.bytes ? p->surplus : e.bytes;
        p->result->removed += ok;
    } else if (e.json != NULL) {
        p->result->bytes += e.bytes;
        p->result->removed += p->out == NULL && old;
    }
    if (ok && keep && p->out != NULL && fwrite(line, 1, n, p->out) != n) {
        ok = err_sys(p->err, "cannot write to " TEMPORARY);
    }
    json_decref(e.json);
    return ok;
}

static bool each_line(struct pass *p)
{
    int fd = openat(p->r->root, p->r->index, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *in = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (in == NULL) {
        bool none = fd < 0 && errno == ENOENT;
        if (fd >= 0) {
            close(fd);
        }
        return none || err_sys(p->err, "cannot read %s", p->r->index);
    }
    bool ok = true;
    while (ok && (n = getline(&line, &cap, in)) >= 0) {
        ok = take_line(p, line, (size_t)n);
    }
    ok = ok && (ferror(in) == 0 || err_sys(p->err, "cannot read %s", p->r->index));
    free(line);
    (void)fclose(in);
    return ok;
}

static bool replace_index(struct pass *p)
{
    int fd =
        openat(p->r->root, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    p->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (p->out == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return err_sys(p->err, "cannot make " TEMPORARY);
    }
    bool ok = each_line(p);
    if (fclose(p->out) != 0 && ok) {
        ok = err_sys(p->err, "cannot write to " TEMPORARY);
    }
    if (ok && renameat(p->r->root, TEMPORARY, p->r->root, p->r->index) != 0) {
        ok = err_sys(p->err, "cannot replace %s", p->r->index);
    }
    if (!ok) {
        (void)unlinkat(p->r->root, TEMPORARY, 0);
    }
    return ok;
}

bool file_retention_run(const struct file_retention *r, struct file_retention_result *ret,
                        struct err *err)
{
    struct pass p = {.r = r, .result = ret, .err = err};
    *ret = (struct file_retention_result){.removed = 0};
    if (!each_line(&p)) {
        return false;
    }
    bool old = ret->removed > 0;
    if (r->max_bytes > 0 && ret->bytes > r->max_bytes) {
        p.surplus = ret->bytes - r->max_bytes + r->max_bytes / 100 * SLACK_PERCENT;
    }
    ret->removed = 0;
    if (!old && p.surplus == 0) {
        return true;
    }
    ret->bytes = 0;
    return replace_index(&p);
}

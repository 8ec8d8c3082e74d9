#include "cli/file_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define CHUNK ((size_t)256 * 1024)

struct file_walk {
    char *const *paths;
    size_t n;
    size_t next;
    FTS *fts; /* the walk below paths[next - 1]; NULL: the next path is to be opened */
};

struct file_walk *file_walk_new(char *const *paths, size_t n)
{
    struct file_walk *w = calloc(1, sizeof(*w));
    if (w != NULL) {
        w->paths = paths;
        w->n = n;
    }
    return w;
}

struct file_walk *file_walk_free(struct file_walk *w)
{
    if (w != NULL && w->fts != NULL) {
        fts_close(w->fts);
    }
    free(w);
    return NULL;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static enum walk_result fail(int number, const char *path, struct err *err)
{
    errno = number;
    err_sys(err, "%s", path);
    return WALK_ERROR;
}

static enum walk_result found(const FTSENT *e, struct file_found *ret)
{
    *ret = (struct file_found){
        .path = e->fts_path, .open = e->fts_path, .named = e->fts_level == FTS_ROOTLEVEL};
    return WALK_FILE;
}

/* Returns the next file below the current path; WALK_END if there is no further one. */
static enum walk_result next_below(struct file_walk *w, struct file_found *ret, struct err *err)
{
    FTSENT *e;
    while ((e = fts_read(w->fts)) != NULL) {
        switch (e->fts_info) {
        case FTS_F:
            return found(e, ret);
        case FTS_DEFAULT: /* a pipe or a device is read only if it is given by name */
            if (e->fts_level == FTS_ROOTLEVEL) {
                return found(e, ret);
            }
            break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
        case FTS_SLNONE:
            return fail(e->fts_errno != 0 ? e->fts_errno : ENOENT, e->fts_path, err);
        default:
            break;
        }
    }
    return WALK_END;
}

enum walk_result file_walk_next(struct file_walk *w, struct file_found *ret, struct err *err)
{
    for (;;) {
        if (w->fts != NULL) {
            enum walk_result r = next_below(w, ret, err);
            if (r != WALK_END) {
                return r;
            }
            fts_close(w->fts);
            w->fts = NULL;
        }
        if (w->next == w->n) {
            return WALK_END;
        }
        char *path = w->paths[w->next++];
        if (strcmp(path, "-") == 0) {
            *ret = (struct file_found){.path = "standard input", .named = true};
            return WALK_FILE;
        }
        char *one[] = {path, NULL};
        w->fts = fts_open(one, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
        if (w->fts == NULL) {
            return fail(errno, path[0] == '\0' ? "\"\"" : path, err);
        }
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_all(int fd, struct buf *out, struct err *err)
{
    char *chunk = malloc(CHUNK);
    ssize_t n = 0;
    bool ok = chunk != NULL;
    while (ok && (n = TEMP_FAILURE_RETRY(read(fd, chunk, CHUNK))) > 0) {
        ok = buf_append(out, chunk, (size_t)n);
    }
    free(chunk);
    if (n < 0) {
        return err_sys(err, "cannot read it");
    }
    if (buf_too_big(out)) {
        return err_set(err, ERR_LIMIT, "larger than the limit");
    }
    return ok || err_memory(err);
}

bool file_walk_read(const struct file_found *f, struct buf *out, int64_t *ret_mtime_ns,
                    struct err *err)
{
    struct stat st;
    int fd = f->open == NULL ? STDIN_FILENO : open(f->open, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    *ret_mtime_ns = 0;
    if (fd < 0) {
        return err_sys(err, "cannot open it");
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        *ret_mtime_ns = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
        /* The size is only a hint that saves copying; the limit of out still applies. */
        buf_reserve(out, (size_t)st.st_size + 1);
    }
    bool ok = read_all(fd, out, err);
    if (fd != STDIN_FILENO) {
        close(fd);
    }
    return ok;
}

#include "symbols/depot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "symbols/saved.h"

/* Build ids of fewer digits are chosen by hand, and not unique. */
#define BUILD_ID_MIN 16
#define FILE_NAME_MAX (SYMBOL_BUILD_ID_MAX + 32)
#define PATH_BYTES_MAX 4096
/* The most files that are listed at a time. */
#define FILES_MAX 4096
/* Files of processes that have ended in the middle of a download are removed after an hour. */
#define STALE_S (60 * 60)

#define SUFFIX_FILE ".debug"
/* Files under way have the id of their process, since several may share the directory. */
#define SUFFIX_PART ".part"
#define SUFFIX_NAMES ".names1"

struct symbol_depot {
    char *directory;
    uint64_t bytes_max;
};

bool symbol_build_id(struct sv text, char ret[SYMBOL_BUILD_ID_MAX + 1])
{
    if (text.n < BUILD_ID_MIN || text.n > SYMBOL_BUILD_ID_MAX || text.n % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        c = c >= 'A' && c <= 'F' ? (char)(c | 0x20) : c;
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
        ret[i] = c;
    }
    ret[text.n] = '\0';
    return true;
}

struct symbol_depot *symbol_depot_new(const char *directory, uint64_t bytes_max)
{
    struct symbol_depot *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return NULL;
    }
    d->bytes_max = bytes_max;
    d->directory = strdup(directory);
    return d->directory != NULL ? d : symbol_depot_free(d);
}

struct symbol_depot *symbol_depot_free(struct symbol_depot *d)
{
    if (d != NULL) {
        free(d->directory);
        free(d);
    }
    return NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Writes the path of a file of the depot. Returns false if it is too long. */
static bool path_of(const struct symbol_depot *d, const char *build_id, const char *suffix,
                    char out[PATH_BYTES_MAX])
{
    int n = snprintf(out, PATH_BYTES_MAX, "%s/%s%s", d->directory, build_id, suffix);
    return n > 0 && n < PATH_BYTES_MAX;
}

static bool part_path_of(const struct symbol_depot *d, const char *build_id, const char *suffix,
                         char out[PATH_BYTES_MAX])
{
    char part[64];
    (void)snprintf(part, sizeof(part), "%s.%ld" SUFFIX_PART, suffix, (long)getpid());
    return path_of(d, build_id, part, out);
}

/* Opens a regular file for reading. */
static int open_regular(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

int symbol_depot_open(struct symbol_depot *d, const char *build_id)
{
    char path[PATH_BYTES_MAX];
    int fd = path_of(d, build_id, SUFFIX_FILE, path) ? open_regular(path) : -1;
    if (fd >= 0) {
        (void)futimens(fd, NULL); /* its time is that of its last use */
    }
    return fd;
}

int symbol_directory_open(const char *directory, const char *build_id)
{
    static const char *const suffixes[] = {".debug", ""};
    char path[PATH_BYTES_MAX];
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        int n = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s%s", directory, build_id,
                         build_id + 2, suffixes[i]);
        fd = n > 0 && n < (int)sizeof(path) ? open_regular(path) : -1;
    }
    return fd;
}

static int create(struct symbol_depot *d, const char *build_id, const char *suffix, struct err *err)
{
    char path[PATH_BYTES_MAX];
    if (!make_directories(d->directory, 0700, err)) {
        return -1;
    }
    int fd = part_path_of(d, build_id, suffix, path)
                 ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)
                 : -1;
    if (fd < 0) {
        err_sys(err, "%s", d->directory);
    }
    return fd;
}

/* Gives a file under way its name (keep), or removes it. */
static bool finish(struct symbol_depot *d, const char *build_id, const char *suffix, bool keep,
                   struct err *err)
{
    char from[PATH_BYTES_MAX];
    char to[PATH_BYTES_MAX];
    if (!part_path_of(d, build_id, suffix, from) || !path_of(d, build_id, suffix, to)) {
        return err_set(err, ERR_INPUT, "%s: the path is too long", d->directory);
    }
    if (!keep) {
        (void)unlink(from);
        return true;
    }
    return rename(from, to) == 0 || err_sys(err, "%s", to);
}

int symbol_depot_create(struct symbol_depot *d, const char *build_id, struct err *err)
{
    return create(d, build_id, SUFFIX_FILE, err);
}

bool symbol_depot_finish(struct symbol_depot *d, const char *build_id, int fd, bool keep,
                         struct err *err)
{
    close(fd);
    return finish(d, build_id, SUFFIX_FILE, keep, err);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool read_whole(int fd, struct buf *out, struct err *err)
{
    char chunk[16 * 1024];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
        buf_append(out, chunk, (size_t)n);
    }
    if (n < 0) {
        return err_sys(err, "read");
    }
    return buf_ok(out) || err_set(err, ERR_INPUT, "saved names: too large");
}

bool symbol_depot_load(struct symbol_depot *d, const char *build_id, struct symbol_table *t,
                       struct err *err)
{
    char path[PATH_BYTES_MAX];
    int fd = path_of(d, build_id, SUFFIX_NAMES, path) ? open_regular(path) : -1;
    if (fd < 0) {
        return false;
    }
    struct buf bytes;
    struct err reason = ERR_INIT;
    buf_init(&bytes, SYMBOL_SAVED_MAX);
    bool ok = read_whole(fd, &bytes, &reason) &&
              symbol_saved_read(t, (struct sv){bytes.data, bytes.len}, &reason);
    if (ok) {
        (void)futimens(fd, NULL);
    } else if (reason.kind == ERR_INPUT) {
        (void)unlink(path);
    }
    if (!ok) {
        err_set(err, reason.kind, "%s: %s", path, reason.msg);
    }
    buf_done(&bytes);
    close(fd);
    return ok;
}

bool symbol_depot_save(struct symbol_depot *d, const char *build_id, struct symbol_table *t,
                       struct err *err)
{
    struct buf bytes;
    buf_init(&bytes, SYMBOL_SAVED_MAX);
    int fd = -1;
    bool ok = symbol_saved_write(t, &bytes) ||
              err_set(err, ERR_LIMIT, "names of %s: too large to be saved", build_id);
    if (ok) {
        fd = create(d, build_id, SUFFIX_NAMES, err);
    }
    if (fd >= 0) {
        bool written = write_all(fd, bytes.data, bytes.len) || err_sys(err, "%s", d->directory);
        close(fd);
        ok = finish(d, build_id, SUFFIX_NAMES, written, err) && written;
    }
    buf_done(&bytes);
    return ok && fd >= 0;
}

/* ---- the limit ------------------------------------------------------------------------------- */

struct found {
    char name[FILE_NAME_MAX];
    uint64_t bytes;
    struct timespec used;
};

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct found *)a)->used;
    const struct timespec *y = &((const struct found *)b)->used;
    if (x->tv_sec != y->tv_sec) {
        return x->tv_sec < y->tv_sec ? -1 : 1;
    }
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Returns true for the names that this file gives. */
static bool is_ours(struct sv name)
{
    char id[SYMBOL_BUILD_ID_MAX + 1];
    struct sv head;
    struct sv rest;
    return sv_cut(name, '.', &head, &rest) && symbol_build_id(head, id) &&
           (sv_starts_with(rest, SV("debug")) || sv_starts_with(rest, SV("names1")));
}

static size_t list_files(int dir_fd, struct found *files, uint64_t *ret_sum)
{
    DIR *dir = fdopendir(dir_fd);
    size_t n = 0;
    struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of this thread alone */
    while (dir != NULL && n < FILES_MAX && (entry = readdir(dir)) != NULL) {
        struct stat st;
        size_t length = strlen(entry->d_name);
        if (length < FILE_NAME_MAX && is_ours((struct sv){entry->d_name, length}) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode)) {
            struct found *f = &files[n++];
            memcpy(f->name, entry->d_name, length + 1);
            f->bytes = (uint64_t)st.st_blocks * 512;
            f->used = st.st_mtim;
            *ret_sum += f->bytes;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    } else {
        close(dir_fd);
    }
    return n;
}

static bool is_stale(const struct found *f, const struct timespec *now)
{
    return sv_ends_with(sv_from(f->name), SV(SUFFIX_PART)) &&
           now->tv_sec - f->used.tv_sec > STALE_S;
}

uint64_t symbol_depot_trim(struct symbol_depot *d)
{
    uint64_t sum = 0;
    struct timespec now = {.tv_sec = 0};
    struct found *files = calloc(FILES_MAX, sizeof(*files));
    int fd = files != NULL ? open(d->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) {
        free(files);
        return 0;
    }
    size_t n = list_files(fd, files, &sum);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    qsort(files, n, sizeof(*files), by_use);
    for (size_t i = 0; i < n; i++) {
        char path[PATH_BYTES_MAX];
        bool part = sv_ends_with(sv_from(files[i].name), SV(SUFFIX_PART));
        bool goes = is_stale(&files[i], &now) || (sum > d->bytes_max && !part);
        if (goes && path_of(d, files[i].name, "", path) && unlink(path) == 0) {
            sum -= files[i].bytes;
        }
    }
    free(files);
    return sum;
}

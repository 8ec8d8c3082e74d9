#include "write/protocols/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/files.h"
#include "http/url.h"
#include "write/protocols/file_names.h"
#include "write/protocols/file_retention.h"
#include "write/protocols/table.h"

#define PATH_BYTES_MAX 4096
#define LINE_BYTES_MAX ((size_t)8 * 1024 * 1024) /* all labels, every byte escaped */
#define CHUNK 65536
/* A disk that has not answered after this time is taken to hang. */
#define HANGING_MS 5000
#define NAME_SIZE (FILE_STEM_SIZE + 32)

struct file_sink {
    struct sink sink; /* the first member */
    atomic_uint_fast64_t next_temporary;
    char *directory;
    pthread_mutex_t lock; /* held to name a file and append to the index */
    int64_t max_age_ms;   /* 0: no limit */
    uint64_t max_bytes;   /* 0: no limit */
    /* Under the lock. */
    uint64_t bytes; /* the bytes of the files, as far as they are known */
    /* Monotonic: when the next round of retention is due; 0: there was none yet. */
    int64_t next_round_ms;
};

/* One profile on its way to the disk. */
struct writing {
    struct file_sink *sink;
    const struct series *series;
    const struct profile *profile;
    int root; /* the endpoint's directory */
    int dir;  /* the file's */
    char service[FILE_PART_MAX + 1];
    char type[FILE_PART_MAX + 1];
    char temporary[64];
    char name[NAME_SIZE];
    uint64_t bytes; /* the bytes of the file */
};

/* ---- the sink -------------------------------------------------------------------------------- */

static int open_root(const struct file_sink *s, struct err *err)
{
    int fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* The directory may have been removed. */
    if (fd < 0 && errno == ENOENT && make_directories(s->directory, 0777, err)) {
        fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0) {
        err_sys(err, "cannot open the directory %s", s->directory);
    }
    return fd;
}

static void file_sink_free(struct sink *sink)
{
    struct file_sink *s = (struct file_sink *)sink;
    pthread_mutex_destroy(&s->lock);
    free(s->directory);
    free(s);
}

static bool open_sink(struct file_sink *s, const char *url, struct err *err)
{
    struct buf directory;
    buf_init(&directory, PATH_BYTES_MAX);
    bool ok = url_to_directory(sv_from(url), &directory, err);
    s->directory = ok ? buf_take(&directory, NULL) : NULL;
    buf_done(&directory);
    if (s->directory == NULL) {
        return ok && err_memory(err);
    }
    /* If the disk hangs, the start does not wait for it: file_deliver() opens the directory. */
    if (!disk_answers(s->directory, HANGING_MS)) {
        return true;
    }
    int fd = make_directories(s->directory, 0777, err) ? open_root(s, err) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

struct sink *file_open(const struct config_endpoint *endpoint, struct err *err)
{
    struct file_sink *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    sink_init(&s->sink, file_sink_free);
    pthread_mutex_init(&s->lock, NULL);
    s->max_age_ms = endpoint->retention_max_age_ms;
    s->max_bytes = endpoint->retention_max_bytes;
    return open_sink(s, endpoint->url, err) ? &s->sink : sink_unref(&s->sink);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes a plain profile compressed. Returns false with errno on failure. */
static bool write_compressed(int fd, const struct profile *p)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* gzclose() closes it */
    gzFile z = copy >= 0 ? gzdopen(copy, "wb") : NULL;
    if (z == NULL) {
        if (copy >= 0) {
            close(copy);
            errno = ENOMEM;
        }
        return false;
    }
    (void)gzbuffer(z, CHUNK);
    errno = ENOMEM;
    bool ok = gzfwrite(p->data, 1, p->size, z) == p->size;
    return gzclose(z) == Z_OK && ok;
}

static bool write_profile(struct writing *w, struct err *err)
{
    uint64_t number = atomic_fetch_add(&w->sink->next_temporary, 1);
    (void)snprintf(w->temporary, sizeof(w->temporary), ".tmp-%ld-%" PRIu64, (long)getpid(), number);
    int fd =
        openat(w->dir, w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        return err_sys(err, "cannot make a file in %s/%s/%s", w->sink->directory, w->service,
                       w->type);
    }
    const struct profile *p = w->profile;
    /* Plain pprof is compressed, as tools expect of such files. A recording stays as it is. */
    bool compress = file_is_plain(p);
    bool ok = compress ? write_compressed(fd, p) : write_all(fd, p->data, p->size);
    int failed = errno;
    w->bytes = (uint64_t)lseek(fd, 0, SEEK_CUR);
    if (close(fd) != 0 && ok) {
        failed = errno;
        ok = false;
    }
    errno = failed;
    if (!ok) {
        err_sys(err, "cannot write to a file in %s/%s/%s", w->sink->directory, w->service, w->type);
        (void)unlinkat(w->dir, w->temporary, 0);
    }
    return ok;
}

/* Renames a file without replacing another one. If the file system cannot do that, checks first
 * that no file has the name. */
static int rename_new(int dir, const char *from, const char *to)
{
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return -1;
    }
    if (faccessat(dir, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return renameat(dir, from, dir, to);
}

/* Gives the complete file its name. Called under the sink's lock. */
static bool give_name(struct writing *w, struct err *err)
{
    char stem[FILE_STEM_SIZE];
    file_stem(w->series, w->profile, stem);
    for (int i = 1; i <= FILE_SAME_NAME_MAX; i++) {
        char suffix[16] = "";
        if (i > 1) {
            (void)snprintf(suffix, sizeof(suffix), "-%d", i);
        }
        (void)snprintf(w->name, sizeof(w->name), "%s%s.%s", stem, suffix,
                       file_extension(w->profile));
        if (rename_new(w->dir, w->temporary, w->name) == 0) {
            return true;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return err_sys(err, "cannot name a file %s/%s/%s/%s", w->sink->directory, w->service, w->type,
                   w->name);
}

/* ---- the index ------------------------------------------------------------------------------- */

static bool format_line(const struct writing *w, struct buf *line)
{
    /* The parts of the path hold nothing that JSON would escape. */
    buf_printf(line, "{\"file\":\"%s/%s/%s\"", w->service, w->type, w->name);
    file_put_times(w->profile, line);
    buf_printf(line, ",\"size\":%" PRIu64, w->bytes);
    file_put_labels(w->series, line);
    return buf_puts(line, "}\n");
}

/* Appends a line to the index, which is opened each time, because people may move it away. Called
 * under the sink's lock. */
static bool append_line(struct writing *w, const struct buf *line, struct err *err)
{
    int fd = openat(w->root, FILE_INDEX, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        return err_sys(err, "cannot open %s/" FILE_INDEX, w->sink->directory);
    }
    struct stat before;
    bool known = fstat(fd, &before) == 0;
    bool ok = write_all(fd, line->data, line->len);
    if (!ok) {
        err_sys(err, "cannot append to %s/" FILE_INDEX, w->sink->directory);
        /* Half a line would spoil the next one. */
        if (known && ftruncate(fd, before.st_size) != 0) {
            err_wrap(err, "a line is left incomplete");
        }
    }
    close(fd);
    return ok;
}

static bool append_index(struct writing *w, struct err *err)
{
    struct buf line;
    buf_init(&line, LINE_BYTES_MAX);
    bool ok = format_line(w, &line)
                  ? append_line(w, &line, err)
                  : err_set(err, ERR_MEMORY, "out of memory for a line of " FILE_INDEX);
    buf_done(&line);
    return ok;
}

/* ---- retention ------------------------------------------------------------------------------- */

#define ROUND_MS (5 * 60 * MS_PER_S)

/* Removes files beyond the retention, from time to time. Under the sink's lock. */
static bool retain(struct writing *w, struct err *err)
{
    struct file_sink *s = w->sink;
    int64_t now_ms = clock_mono_ms();
    bool due = s->next_round_ms == 0 || now_ms >= s->next_round_ms;
    s->bytes += w->bytes;
    if ((s->max_age_ms == 0 && s->max_bytes == 0) ||
        (!due && (s->max_bytes == 0 || s->bytes <= s->max_bytes))) {
        return true;
    }
    struct file_retention_result result;
    struct file_retention r = {
        .root = w->root,
        .index = FILE_INDEX,
        .oldest_ns = s->max_age_ms > 0 ? clock_wall_ns() - s->max_age_ms * NS_PER_MS : INT64_MIN,
        .max_bytes = s->max_bytes};
    bool ok = file_retention_run(&r, &result, err);
    if (ok) {
        s->bytes = result.bytes;
    }
    s->next_round_ms = now_ms + ROUND_MS;
    return ok;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int open_below(int parent, const char *name)
{
    if (mkdirat(parent, name, 0777) != 0 && errno != EEXIST) {
        return -1;
    }
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool open_directory(struct writing *w, struct err *err)
{
    file_path_part(w->series->service, w->service);
    file_path_part(w->series->type, w->type);
    int service = open_below(w->root, w->service);
    w->dir = service;
    if (service >= 0) {
        w->dir = open_below(service, w->type);
        int saved = errno;
        close(service);
        errno = saved;
    }
    if (w->dir < 0) {
        return err_sys(err, "cannot make the directory %s/%s/%s", w->sink->directory, w->service,
                       w->type);
    }
    return true;
}

/* Adds the name and the line in the index, or neither. */
static bool publish(struct writing *w, struct err *err)
{
    pthread_mutex_lock(&w->sink->lock);
    bool named = give_name(w, err);
    bool ok = named && append_index(w, err);
    if (!ok) {
        (void)unlinkat(w->dir, named ? w->name : w->temporary, 0);
    } else {
        /* The profile is stored. If files cannot be removed now, the next round tries again. */
        (void)retain(w, NULL);
    }
    pthread_mutex_unlock(&w->sink->lock);
    return ok;
}

void file_deliver(struct sink *sink, const struct series *s, const struct profile *p,
                  struct answer *ret_answer)
{
    struct err err = ERR_INIT;
    struct writing w = {.sink = (struct file_sink *)sink, .series = s, .profile = p};
    w.root = open_root(w.sink, &err);
    bool ok = false;
    if (w.root >= 0 && open_directory(&w, &err)) {
        ok = write_profile(&w, &err) && publish(&w, &err);
        close(w.dir);
    }
    if (w.root >= 0) {
        close(w.root);
    }
    *ret_answer = (struct answer){.class = ok ? ANSWER_SENT : ANSWER_RETRY};
    if (!ok) {
        (void)snprintf(ret_answer->text, sizeof(ret_answer->text), "%s", err.msg);
    }
}

/* ---- reading back ---------------------------------------------------------------------------- */

static bool directory_of(const char *url, struct sv service, struct sv type, struct buf *out)
{
    char service_part[FILE_PART_MAX + 1];
    char type_part[FILE_PART_MAX + 1];
    file_path_part(service, service_part);
    file_path_part(type, type_part);
    return url_to_directory(sv_from(url), out, NULL) &&
           buf_printf(out, "/%s/%s", service_part, type_part);
}

const struct readback readback_file = {.directory = directory_of};

/* ---- the row --------------------------------------------------------------------------------- */

const struct protocol protocol_file = {
    .config = {.name = "file", .scheme = "file", .takes_jfr = true},
    .labels = {.names = SERIES_NAMES_ALL, .unlimited = true},
    .open = file_open,
    .deliver = file_deliver,
    .readback = &readback_file,
};

#include "write/spool/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "write/spool/crc32c.h"
#include "write/spool/store_private.h"

#define DIRECTORY_BYTES_MAX ((size_t)4096)

const char *spool_error_name(unsigned e)
{
    static const char *const names[SPOOL_ERRORS] = {
        [SPOOL_ERR_OPEN] = "open", [SPOOL_ERR_WRITE] = "write", [SPOOL_ERR_SYNC] = "sync",
        [SPOOL_ERR_READ] = "read", [SPOOL_ERR_ACK] = "ack",     [SPOOL_ERR_REMOVE] = "remove",
    };
    return names[e];
}

const char *spool_skip_name(unsigned k)
{
    static const char *const names[SPOOL_SKIPS] = {
        [SPOOL_SKIP_FOREIGN] = "foreign",
        [SPOOL_SKIP_NEWER] = "newer",
        [SPOOL_SKIP_MANY] = "too_many",
    };
    return names[k];
}

const struct spool_counts *spool_store_counts(const struct spool_store *s)
{
    return &s->counts;
}

bool spool_store_failed(struct spool_store *s, enum spool_error what, const char *name,
                        struct err *err)
{
    int failed = errno;
    s->counts.errors[what]++;
    err_sys(err, "spool %s: cannot %s %s", s->directory,
            what == SPOOL_ERR_ACK ? "write" : spool_error_name(what), name);
    errno = failed;
    return false;
}

void spool_store_close_file(struct spool_store *s, struct spool_file *f)
{
    if (f->fd >= 0) {
        if (f->dirty && s->sync && spool_io_sync(f->fd) != 0) {
            s->counts.errors[SPOOL_ERR_SYNC]++;
            s->unsafe = s->unsafe || f == &s->active;
        }
        close(f->fd);
    }
    *f = (struct spool_file){.fd = -1};
}

int spool_write_full(int fd, const void *a, size_t a_size, const void *b, size_t b_size,
                     uint64_t offset)
{
    while (a_size + b_size > 0) {
        struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)a, .iov_len = a_size},
                                 {.iov_base = (void *)(uintptr_t)b, .iov_len = b_size}};
        ssize_t got = spool_io_write(fd, parts, 2, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            /* A disk that writes nothing and reports no error is taken to be full. */
            errno = got == 0 ? ENOSPC : errno;
            return -1;
        }
        size_t n = (size_t)got;
        offset += n;
        size_t of_a = n < a_size ? n : a_size;
        a = (const char *)a + of_a;
        a_size -= of_a;
        b = (const char *)b + (n - of_a);
        b_size -= n - of_a;
    }
    return 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* In order of id: mostly the last; after the directory came back, one may belong between others. */
static void insert_segment(struct spool_segment_list *list, struct spool_segment *g)
{
    struct spool_segment *after = NULL;
    struct spool_segment *at = TAILQ_LAST(list, spool_segment_list);
    while (at != NULL && at->id > g->id) {
        after = at;
        at = TAILQ_PREV(at, spool_segment_list, link);
    }
    if (after != NULL) {
        TAILQ_INSERT_BEFORE(after, g, link);
    } else {
        TAILQ_INSERT_TAIL(list, g, link);
    }
}

struct spool_segment *spool_store_add_segment(struct spool_store *s, uint64_t id)
{
    struct spool_segment *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return NULL;
    }
    g->id = id;
    g->kept_fd = -1;
    TAILQ_INIT(&g->entries);
    TAILQ_INIT(&g->unacked);
    insert_segment(&s->segments, g);
    s->counts.segments++;
    return g;
}

void spool_store_free_entry(struct spool_entry_list *list, struct spool_entry *e)
{
    TAILQ_REMOVE(list, e, in_segment);
    profile_unref(e->profile);
    free(e);
}

static void free_entries(struct spool_entry_list *list)
{
    while (!TAILQ_EMPTY(list)) {
        /* The analyzer does not see that it takes itself off the list. */
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        spool_store_free_entry(list, TAILQ_FIRST(list));
    }
}

void spool_store_free_segment(struct spool_store *s, struct spool_segment *g)
{
    struct spool_file *const files[] = {&s->active, &s->reading, &s->acking};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (files[i]->segment != g) {
            continue;
        }
        files[i]->dirty = false; /* it will not be read again */
        spool_store_close_file(s, files[i]);
    }
    if (s->walking == g) {
        spool_store_end_walk(s);
    }
    s->counts.bytes -= g->size;
    s->counts.segments--;
    if (!g->read) {
        s->counts.unread_bytes -= g->size;
    }
    if (g->kept_fd >= 0) {
        close(g->kept_fd);
    }
    TAILQ_REMOVE(&s->segments, g, link);
    free_entries(&g->unacked);
    free_entries(&g->entries);
    free(g);
}

void spool_store_seal(struct spool_store *s)
{
    struct spool_segment *g = s->active.segment;
    if (g != NULL && g->live == 0) {
        s->active.dirty = false;
    }
    spool_store_close_file(s, &s->active);
    if (g != NULL) {
        (void)spool_store_retire(s, g, NULL);
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

void spool_store_close_directory(struct spool_store *s)
{
    if (s->lock >= 0) {
        close(s->lock);
    }
    if (s->dir >= 0) {
        close(s->dir);
    }
    s->lock = s->dir = -1;
    s->listed = s->dir_locked = false;
}

static int open_lock(struct spool_store *s, bool *ret_exclusive)
{
    *ret_exclusive = true;
    int fd = spool_io_open(s->dir, SPOOL_LOCK_NAME, SPOOL_OPEN_MAKE, NULL);
    if (fd < 0 && errno == EROFS) {
        /* On a read-only disk the profiles can still be read. */
        *ret_exclusive = false;
        fd = spool_io_open(s->dir, SPOOL_LOCK_NAME, SPOOL_OPEN_READ, NULL);
        errno = fd < 0 ? EROFS : errno;
    }
    return fd;
}

/* The lock file can be removed while it is locked; then another process would make and lock a new
 * one. So the directory is locked as well, if its file system can do that. */
bool spool_store_lock(struct spool_store *s)
{
    bool exclusive;
    s->lock = open_lock(s, &exclusive);
    if (s->lock < 0 || spool_io_lock(s->lock, exclusive) != 0) {
        return false;
    }
    s->dir_locked = s->dir_locked || spool_io_lock_directory(s->dir, exclusive) == 0;
    return s->dir_locked || errno != EAGAIN;
}

static bool open_directory(struct spool_store *s, struct err *err)
{
    if (spool_io_make_directory(s->directory) != 0) {
        return spool_store_failed(s, SPOOL_ERR_OPEN, "the directory", err);
    }
    s->dir = spool_io_open_directory(s->directory);
    if (s->dir < 0) {
        return spool_store_failed(s, SPOOL_ERR_OPEN, "the directory", err);
    }
    if (spool_store_lock(s)) {
        return true;
    }
    int failed = errno;
    bool busy = s->lock >= 0 && failed == EAGAIN;
    spool_store_close_directory(s);
    s->counts.errors[SPOOL_ERR_OPEN]++;
    errno = failed;
    if (busy) {
        err_set(err, ERR_INPUT, "spool %s: another process uses this directory", s->directory);
        errno = EAGAIN;
        return false;
    }
    return err_sys(err, "spool %s: cannot open and lock %s", s->directory, SPOOL_LOCK_NAME);
}

/* Returns true for errors that may pass by themselves. All others are mistakes that somebody has to
 * repair. */
static bool is_transient_errno(int failed)
{
    return failed == ENOSPC || failed == EDQUOT || failed == EIO || failed == EROFS ||
           failed == ENOMEM || failed == EMFILE || failed == ENFILE || failed == ESTALE ||
           failed == ENOLCK;
}

/* Makes the path of the endpoint's directory in that of all spools. */
static bool make_path(struct spool_store *s, struct err *err)
{
    const struct config_endpoint *c = s->options->config;
    struct buf path;
    buf_init(&path, DIRECTORY_BYTES_MAX);
    bool ok = (buf_puts(&path, c->spool_directory) && buf_putc(&path, '/') &&
               spool_directory_name(c->name, &path)) ||
              err_set(err, ERR_INPUT, "the name of the spool's directory is too long");
    s->directory = ok ? buf_take(&path, NULL) : NULL;
    buf_done(&path);
    return s->directory != NULL;
}

void spool_store_configure(struct spool_store *s)
{
    uint64_t share = s->options->config->spool_max_bytes / 16;
    s->sync = s->options->config->spool_fsync_ms != CONFIG_FSYNC_NEVER;
    s->segment_bytes = share > SPOOL_SEGMENT_BYTES       ? SPOOL_SEGMENT_BYTES
                       : share < SPOOL_SEGMENT_BYTES_MIN ? SPOOL_SEGMENT_BYTES_MIN
                                                         : share;
}

struct spool_store *spool_store_new(const struct spool_options *o, struct err *err)
{
    struct spool_store *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    s->options = o;
    spool_store_configure(s);
    s->dir = s->lock = s->active.fd = s->reading.fd = s->acking.fd = s->walk.fd = s->scan.walk.fd =
        -1;
    s->next_id = 1;
    rng_seed(&s->rng, o->seed);
    TAILQ_INIT(&s->segments);
    TAILQ_INIT(&s->orphans);
    buf_init(&s->head, SPOOL_HEAD_SIZE + (size_t)SPOOL_LABELS_MAX);
    s->builder = labels_builder_new(o->intern);
    if (s->builder == NULL) {
        err_memory(err);
        return spool_store_close(s);
    }
    return make_path(s, err) ? s : spool_store_close(s);
}

bool spool_store_open(struct spool_store *s, struct err *err)
{
    return s->dir >= 0 || open_directory(s, err) || is_transient_errno(errno);
}

struct spool_store *spool_store_close(struct spool_store *s)
{
    if (s == NULL) {
        return NULL;
    }
    if (s->listed) {
        spool_store_seal(s);
        (void)spool_store_retry(s, NULL);
    }
    while (!TAILQ_EMPTY(&s->segments)) {
        /* The segment takes itself off the list, which the analyzer does not see. */
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        spool_store_free_segment(s, TAILQ_FIRST(&s->segments));
    }
    free_entries(&s->orphans);
    spool_store_close_directory(s);
    buf_done(&s->head);
    labels_builder_free(s->builder);
    spool_walk_close(&s->scan.walk);
    free(s->scan.replaced.at);
    free(s->unplaced);
    free(s->directory);
    free(s);
    return NULL;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
    struct spool_numbers segments;
    struct spool_numbers acks;
    uint64_t highest;
    uint64_t skipped[SPOOL_SKIPS];
    bool out_of_memory;
};

static bool store_on_name(void *arg, const char *name)
{
    struct listing *l = arg;
    uint64_t id = 0;
    enum spool_name kind = spool_name_parse(name, &id);
    if (kind == SPOOL_NAME_OTHER || kind == SPOOL_NAME_LOCK) {
        l->skipped[SPOOL_SKIP_FOREIGN] += kind == SPOOL_NAME_OTHER;
        return true;
    }
    struct spool_numbers *ids = kind == SPOOL_NAME_SEGMENT ? &l->segments : &l->acks;
    l->highest = id > l->highest ? id : l->highest;
    if (ids->n >= SPOOL_SEGMENTS_MAX) {
        l->skipped[SPOOL_SKIP_MANY] += kind == SPOOL_NAME_SEGMENT;
        return true;
    }
    l->out_of_memory = !spool_numbers_add(ids, id);
    return !l->out_of_memory;
}

static bool is_known(const struct spool_store *s, uint64_t id)
{
    const struct spool_segment *g = NULL;
    TAILQ_FOREACH(g, &s->segments, link)
    {
        if (g->id == id) {
            return true;
        }
    }
    return false;
}

/* Adds a segment of an earlier process with its size; its records are read later. */
static bool take_segment(struct spool_store *s, uint64_t id)
{
    char name[SPOOL_NAME_SIZE];
    uint64_t size = 0;
    spool_name_format(name, id, false);
    int fd = spool_io_open(s->dir, name, SPOOL_OPEN_READ, &size);
    if (fd < 0) {
        /* A link, a directory, a FIFO, or unreadable: left alone. */
        s->counts.skipped[SPOOL_SKIP_FOREIGN]++;
        s->counts.skipped_segment = id;
        return true;
    }
    close(fd);
    struct spool_segment *g = spool_store_add_segment(s, id);
    if (g == NULL) {
        return false;
    }
    g->size = size;
    s->counts.bytes += size;
    s->counts.unread_bytes += size;
    return true;
}

/* Removes acknowledgements whose segment is gone: a process was killed between removing the one and
 * the other. */
static void remove_lone_acks(struct spool_store *s, const struct listing *l)
{
    for (size_t i = 0; i < l->acks.n; i++) {
        uint8_t header[SPOOL_ACK_HEADER_SIZE];
        char name[SPOOL_NAME_SIZE];
        uint64_t segment;
        if (spool_numbers_have(&l->segments, l->acks.at[i])) {
            continue;
        }
        spool_name_format(name, l->acks.at[i], true);
        int fd = spool_io_open(s->dir, name, SPOOL_OPEN_READ, NULL);
        bool ours = fd >= 0 &&
                    spool_read_full(fd, header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
                    spool_ack_header_parse(header, &segment);
        if (fd >= 0) {
            close(fd);
        }
        if (!ours) {
            s->counts.skipped[SPOOL_SKIP_FOREIGN]++;
        } else if (spool_io_remove(s->dir, name) != 0) {
            s->counts.errors[SPOOL_ERR_REMOVE]++;
        }
    }
}

static bool take_listing(struct spool_store *s, struct listing *l)
{
    bool ok = true;
    spool_numbers_sort(&l->segments);
    memcpy(s->counts.skipped, l->skipped, sizeof(l->skipped));
    bool fresh = TAILQ_EMPTY(&s->segments);
    (void)spool_store_mark_missing(s, &l->segments);
    for (size_t i = 0; ok && i < l->segments.n; i++) {
        if (fresh || !is_known(s, l->segments.at[i])) {
            ok = take_segment(s, l->segments.at[i]);
        }
    }
    if (ok) {
        remove_lone_acks(s, l);
    }
    if (l->highest >= s->next_id) {
        s->next_id = l->highest + 1;
    }
    return ok;
}

bool spool_store_is_listed(const struct spool_store *s)
{
    return s->listed;
}

bool spool_store_is_forbidden(const struct spool_store *s)
{
    return s->forbidden;
}

bool spool_store_list(struct spool_store *s, struct err *err)
{
    struct listing l = {.highest = 0};
    bool open = s->dir >= 0 || open_directory(s, err);
    s->forbidden = !open && (errno == EACCES || errno == EPERM);
    if (!open) {
        return false;
    }
    bool ok = spool_io_list(s->dir, store_on_name, &l) == 0;
    if (!ok) {
        spool_store_failed(s, SPOOL_ERR_READ, "the directory", err);
    } else if (l.out_of_memory || !take_listing(s, &l)) {
        ok = err_set(err, ERR_MEMORY, "spool %s: out of memory", s->directory);
    }
    s->listed = ok;
    s->scan.done = s->scan.done && !ok;
    free(l.segments.at);
    free(l.acks.at);
    return ok;
}

/* ---- appending ------------------------------------------------------------------------------- */

static bool begin_segment(struct spool_store *s, struct err *err)
{
    char name[SPOOL_NAME_SIZE];
    uint8_t bytes[SPOOL_HEADER_SIZE];
    struct spool_header h = {.segment = s->next_id, .created_ns = clock_wall_ns()};
    h.salt = rng_next(&s->rng);
    const char *endpoint = s->options->config->name;
    memcpy(h.endpoint, endpoint, strnlen(endpoint, SPOOL_ENDPOINT_MAX));
    spool_header_encode(&h, bytes);
    spool_name_format(name, h.segment, false);
    int fd = spool_io_open(s->dir, name, SPOOL_OPEN_CREATE, NULL);
    if (fd < 0) {
        bool gone = errno == ENOENT || errno == ESTALE;
        spool_store_failed(s, SPOOL_ERR_OPEN, name, err);
        /* The directory has been removed: it is made again at the next attempt. */
        if (gone) {
            spool_store_close_directory(s);
        }
        return false;
    }
    s->next_id++;
    bool ok = spool_write_full(fd, bytes, sizeof(bytes), "", 0, 0) == 0 ||
              spool_store_failed(s, SPOOL_ERR_WRITE, name, err);
    struct spool_segment *g = ok ? spool_store_add_segment(s, h.segment) : NULL;
    if (g == NULL) {
        if (ok) {
            err_set(err, ERR_MEMORY, "spool %s: out of memory", s->directory);
        }
        close(fd);
        (void)spool_io_remove(s->dir, name);
        return false;
    }
    g->salt = h.salt;
    g->size = SPOOL_HEADER_SIZE;
    g->read = true;
    s->counts.bytes += g->size;
    s->active = (struct spool_file){.fd = fd, .segment = g, .dirty = true};
    s->dir_dirty = true;
    return true;
}

/* Makes the parts of the parts direct parts of the entry. */
static void flatten_parts(struct spool_entry *e)
{
    for (struct spool_entry *p = e->parts; p != NULL; p = p->next_part) {
        struct spool_entry *last = p->parts;
        if (last == NULL) {
            continue;
        }
        while (last->next_part != NULL) {
            last = last->next_part;
        }
        last->next_part = p->next_part;
        p->next_part = p->parts;
        p->parts = NULL;
    }
}

/* Appends the places of the records that the entry replaces, as far as these are on disk; *ret_any
 * is false if none is. */
static bool encode_parts(struct spool_store *s, struct spool_entry *e, bool *ret_any)
{
    size_t n = 0;
    flatten_parts(e);
    for (const struct spool_entry *p = e->parts; p != NULL; p = p->next_part) {
        n += p->segment != NULL;
    }
    *ret_any = n > 0;
    struct spool_place *places = n > 0 ? calloc(n, sizeof(*places)) : NULL;
    if (n == 0 || places == NULL) {
        return n == 0;
    }
    size_t i = 0;
    for (const struct spool_entry *p = e->parts; p != NULL; p = p->next_part) {
        if (p->segment != NULL) {
            places[i++] = (struct spool_place){p->segment->id, (uint32_t)p->head.offset};
        }
    }
    bool ok = spool_places_encode(places, n, &s->head);
    free(places);
    return ok;
}

/* Fills s->head with labels and leaves room for the head in front of them. */
static bool encode_labels(struct spool_store *s, struct spool_entry *e, bool *ret_replaces)
{
    static const uint8_t room[SPOOL_HEAD_SIZE];
    buf_clear(&s->head);
    return buf_append(&s->head, room, sizeof(room)) &&
           spool_labels_encode(e->profile->labels, &s->head) && encode_parts(s, e, ret_replaces);
}

static bool write_record(struct spool_store *s, struct spool_entry *e, struct err *err)
{
    struct spool_segment *g = s->active.segment;
    const struct profile *p = e->profile;
    char name[SPOOL_NAME_SIZE];
    e->head.salt = g->salt;
    e->head.offset = g->size;
    spool_head_encode(&e->head, (uint8_t *)s->head.data);
    if (spool_write_full(s->active.fd, s->head.data, s->head.len, p->data, p->size, g->size) == 0) {
        s->active.dirty = true;
        return true;
    }
    int failed = errno;
    /* No part of the record may stay in the file, because the next record is written to the same
     * place. */
    if (spool_io_truncate(s->active.fd, g->size) != 0) {
        spool_store_seal(s);
    }
    errno = failed;
    spool_name_format(name, s->next_id - 1, false);
    return spool_store_failed(s, SPOOL_ERR_WRITE, name, err);
}

static enum spool_append write_entry(struct spool_store *s, struct spool_entry *e, uint64_t size,
                                     struct err *err)
{
    const struct spool_segment *g = s->active.segment;
    if (g != NULL && g->size > SPOOL_HEADER_SIZE && g->size + size > s->segment_bytes) {
        spool_store_seal(s);
    }
    enum spool_room room = spool_store_make_room(s, size + SPOOL_HEADER_SIZE, err);
    if (room != SPOOL_ROOM_MADE) {
        return room == SPOOL_ROOM_NONE ? SPOOL_APPEND_FULL : SPOOL_APPEND_FAILED;
    }
    bool ok = (s->active.fd >= 0 || begin_segment(s, err)) && write_record(s, e, err);
    return ok ? SPOOL_APPENDED : SPOOL_APPEND_FAILED;
}

/* Keeps an entry that will never be on disk among the orphans. */
static enum spool_append refuse_entry(struct spool_store *s, struct spool_entry *e)
{
    TAILQ_INSERT_TAIL(&s->orphans, e, in_segment);
    return SPOOL_APPEND_TOO_LARGE;
}

enum spool_append spool_store_append(struct spool_store *s, struct spool_entry *e,
                                     int64_t wall_offset_ns, struct err *err)
{
    const struct profile *p = e->profile;
    bool replaces = false;
    if (!encode_labels(s, e, &replaces)) {
        if (buf_too_big(&s->head)) {
            return refuse_entry(s, e);
        }
        err_set(err, ERR_MEMORY, "spool %s: out of memory", s->directory);
        return SPOOL_APPEND_FAILED;
    }
    uint64_t size = (uint64_t)s->head.len + p->size;
    if (p->size > SPOOL_DATA_MAX ||
        size + SPOOL_HEADER_SIZE > s->options->config->spool_max_bytes) {
        return refuse_entry(s, e);
    }
    const char *labels = s->head.data + SPOOL_HEAD_SIZE;
    e->head = (struct spool_head){
        .format = (uint8_t)p->format,
        .flags = (uint8_t)((p->is_delta ? SPOOL_FLAG_DELTA : 0) |
                           (p->is_pushed ? SPOOL_FLAG_PUSHED : 0) |
                           (replaces ? SPOOL_FLAG_REPLACES : 0)),
        .labels_size = (uint32_t)(s->head.len - SPOOL_HEAD_SIZE),
        .data_size = (uint32_t)p->size,
        .from_ns = p->from_ns,
        .until_ns = p->until_ns,
        .scraped_ns = p->scraped_ms * NS_PER_MS + wall_offset_ns,
    };
    e->head.body_crc = crc32c(crc32c(0, labels, e->head.labels_size), p->data, p->size);
    enum spool_append result = write_entry(s, e, size, err);
    if (result != SPOOL_APPENDED) {
        return result;
    }
    struct spool_segment *g = s->active.segment;
    e->segment = g;
    e->offset = (uint32_t)g->size;
    g->size += size;
    g->live++;
    TAILQ_INSERT_TAIL(&g->entries, e, in_segment);
    s->counts.bytes += size;
    s->counts.profiles++;
    return SPOOL_APPENDED;
}

bool spool_store_sync(struct spool_store *s, struct err *err)
{
    bool ok = !s->unsafe;
    s->unsafe = false;
    if (!s->sync) {
        return true;
    }
    if (s->active.fd >= 0 && s->active.dirty) {
        s->active.dirty = false;
        if (spool_io_sync(s->active.fd) != 0) {
            ok = spool_store_failed(s, SPOOL_ERR_SYNC, "the newest segment", err);
            /* The kernel may have dropped the pages that it could not write, so nothing more is
             * written to this file. */
            spool_store_seal(s);
        }
    } else if (!ok) {
        err_set(err, ERR_SYSTEM, "spool %s: cannot sync a segment", s->directory);
    }
    if (s->acking.fd >= 0 && s->acking.dirty) {
        s->acking.dirty = false;
        if (spool_io_sync(s->acking.fd) != 0) {
            s->counts.errors[SPOOL_ERR_SYNC]++;
        }
    }
    if (s->dir_dirty && s->dir >= 0) {
        s->dir_dirty = false;
        if (spool_io_sync(s->dir) != 0) {
            ok = ok && spool_store_failed(s, SPOOL_ERR_SYNC, "the directory", err);
        }
    }
    return ok;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Returns a descriptor of the segment's file; -1 if it cannot be opened. */
static int open_for_reading(struct spool_store *s, struct spool_segment *g)
{
    char name[SPOOL_NAME_SIZE];
    if (g->kept_fd >= 0) {
        return g->kept_fd;
    }
    if (s->reading.segment == g) {
        return s->reading.fd;
    }
    spool_store_close_file(s, &s->reading);
    spool_name_format(name, g->id, false);
    int fd = s->dir < 0 ? -1 : spool_io_open(s->dir, name, SPOOL_OPEN_READ, NULL);
    if (fd >= 0) {
        s->reading = (struct spool_file){.fd = fd, .segment = g};
    }
    return fd;
}

static struct profile *make_profile(const struct spool_entry *e, const uint8_t *labels, char *data,
                                    struct labels_builder *builder, enum spool_load *ret_result)
{
    bool memory = false;
    struct labels *l = NULL;
    /* A profile of an unknown format cannot be sent. */
    if (e->head.format <= PROFILE_JFR) {
        l = spool_labels_parse(labels, e->head.labels_size, builder, &memory);
    }
    *ret_result = l != NULL || memory ? SPOOL_LOAD_MEMORY : SPOOL_LOAD_DAMAGED;
    if (l == NULL) {
        free(data);
        return NULL;
    }
    struct profile *p = profile_new(l, data, e->head.data_size);
    if (p != NULL) {
        p->from_ns = e->head.from_ns;
        p->until_ns = e->head.until_ns;
        p->scraped_ms = e->scraped_ms;
        p->format = (enum profile_format)e->head.format;
        p->is_delta = (e->head.flags & SPOOL_FLAG_DELTA) != 0;
        p->is_pushed = (e->head.flags & SPOOL_FLAG_PUSHED) != 0;
    }
    return p;
}

enum spool_load spool_store_load(struct spool_store *s, struct spool_entry *e,
                                 struct profile **ret_profile, struct err *err)
{
    uint8_t *labels = NULL;
    char *data = NULL;
    enum spool_load result;
    if (e->segment == NULL) {
        return SPOOL_LOAD_GONE;
    }
    int fd = open_for_reading(s, e->segment);
    if (fd < 0) {
        bool gone = s->dir >= 0 && errno == ENOENT;
        spool_store_failed(s, SPOOL_ERR_READ, "a segment", err);
        return gone ? SPOOL_LOAD_GONE : SPOOL_LOAD_FAILED;
    }
    switch (spool_body_read(fd, e->offset, &e->head, &labels, &data)) {
    case SPOOL_BODY_OK:
        break;
    case SPOOL_BODY_DAMAGED:
        s->counts.damaged++;
        s->counts.damaged_bytes += spool_record_size(&e->head);
        return SPOOL_LOAD_DAMAGED;
    case SPOOL_BODY_FAILED:
        spool_store_failed(s, SPOOL_ERR_READ, "a segment", err);
        spool_store_close_file(s, &s->reading);
        return SPOOL_LOAD_FAILED;
    case SPOOL_BODY_MEMORY:
    default:
        return SPOOL_LOAD_MEMORY;
    }
    *ret_profile = make_profile(e, labels, data, s->builder, &result);
    free(labels);
    if (*ret_profile != NULL) {
        return SPOOL_LOADED;
    }
    if (result == SPOOL_LOAD_DAMAGED) {
        s->counts.damaged++;
    }
    return result;
}

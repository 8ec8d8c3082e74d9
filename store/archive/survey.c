#include "store/archive/survey.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/map.h"
#include "store/archive/hash.h"
#include "store/archive/index.h"
#include "store/archive/private.h"
#include "store/check.h"

#define RANGE_BYTES ((size_t)4 * 1024 * 1024)
/* Deadline of one range: that of a small request, and the time of its bytes at 64 KiB/s. */
#define RANGE_MS (ARCHIVE_REQUEST_MS + INT64_C(64) * MS_PER_S)
#define FILES_MAX 1000000

const char *survey_state_name(enum survey_state s)
{
    static const char *const names[SURVEY_STATES] = {
        [SURVEY_FINE] = "fine",         [SURVEY_UNFINISHED] = "unfinished",
        [SURVEY_MISSING] = "missing",   [SURVEY_DAMAGED] = "damaged",
        [SURVEY_NEWER] = "newer",       [SURVEY_FOREIGN] = "foreign",
        [SURVEY_REPLACED] = "replaced", [SURVEY_FAILED] = "failed"};
    return names[s];
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
    struct survey *survey;
    const struct survey_limits *limits;
    struct map *by_key; /* keys of databases -> index in the list, plus 1 */
    struct err err;
};

static bool is_wanted(const struct survey_limits *l, const char *writer,
                      const struct archive_name *name)
{
    int64_t from_ns = name->stretch.start_ms * NS_PER_MS;
    int64_t until_ns = from_ns + name->stretch.length_ms * NS_PER_MS - 1;
    return (l->writer == NULL || strcmp(l->writer, writer) == 0) && from_ns <= l->until_ns &&
           until_ns >= l->from_ns;
}

/* Appends a file; NULL with the error of the listing. */
static struct survey_file *append(struct listing *l, const char *key)
{
    struct survey *s = l->survey;
    if (s->n == FILES_MAX) {
        err_set(&l->err, ERR_LIMIT, "more than %d objects", FILES_MAX);
        return NULL;
    }
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 256 : 2 * s->cap;
        struct survey_file *at = reallocarray(s->at, cap, sizeof(at[0]));
        if (at == NULL) {
            err_memory(&l->err);
            return NULL;
        }
        s->at = at;
        s->cap = cap;
    }
    struct survey_file *f = &s->at[s->n];
    *f = (struct survey_file){.key = strdup(key)};
    if (f->key == NULL) {
        err_memory(&l->err);
        return NULL;
    }
    s->n++;
    return f;
}

/* Returns the file with the key of a database, which is added if it is new. */
static struct survey_file *file_of(struct listing *l, const char *writer,
                                   const struct archive_name *name)
{
    char key[ARCHIVE_KEY_SIZE];
    archive_data_key(writer, name, key);
    void *known = map_get(l->by_key, sv_from(key));
    if (known != NULL) {
        return &l->survey->at[(uintptr_t)known - 1];
    }
    struct survey_file *f = append(l, key);
    /* The key of the file lives as long as the map. */
    if (f != NULL && !map_put(l->by_key, sv_from(f->key), (void *)(uintptr_t)l->survey->n, NULL)) {
        err_memory(&l->err);
        return NULL;
    }
    if (f != NULL) {
        (void)snprintf(f->writer, sizeof(f->writer), "%s", writer);
        f->name = *name;
    }
    return f;
}

static void take_index(struct survey_file *f, const struct archive_name *name,
                       const struct bucket_object *o)
{
    f->has_index = true;
    f->name = *name;
    f->index_bytes = o->size;
}

static void take_data(struct survey_file *f, const struct bucket_object *o)
{
    f->has_data = true;
    f->data_bytes = o->size;
    memcpy(f->data_etag, o->etag, sizeof(f->data_etag));
}

static bool take_foreign(struct listing *l, const struct bucket_object *o)
{
    if (l->limits->writer != NULL || l->limits->from_ns != INT64_MIN ||
        l->limits->until_ns != INT64_MAX) {
        return true;
    }
    struct survey_file *f = append(l, o->key);
    if (f != NULL) {
        f->state = SURVEY_FOREIGN;
        f->data_bytes = o->size;
        f->modified_ns = o->modified_ns;
    }
    return f != NULL;
}

static bool survey_on_object(void *arg, const struct bucket_object *o)
{
    struct listing *l = arg;
    struct sv writer;
    struct sv rest;
    struct archive_name name;
    char text[ARCHIVE_WRITER_SIZE];
    if (!sv_cut(sv_from(o->key), '/', &writer, &rest) || !archive_is_writer(writer)) {
        return take_foreign(l, o);
    }
    (void)snprintf(text, sizeof(text), "%.*s", SV_ARG(writer));
    bool index = sv_starts_with(rest, SV(ARCHIVE_INDEX)) &&
                 archive_index_parse(sv_skip(rest, sizeof(ARCHIVE_INDEX) - 1), &name);
    bool data = !index && sv_starts_with(rest, SV(ARCHIVE_DATA)) &&
                archive_data_parse(sv_skip(rest, sizeof(ARCHIVE_DATA) - 1), &name);
    if (!index && !data) {
        return sv_eq_str(rest, ARCHIVE_HEARTBEAT) || sv_eq_str(rest, ARCHIVE_CATALOGUE) ||
               take_foreign(l, o);
    }
    if (!is_wanted(l->limits, text, &name)) {
        return true;
    }
    struct survey_file *f = file_of(l, text, &name);
    if (f != NULL && index) {
        take_index(f, &name, o);
    } else if (f != NULL) {
        take_data(f, o);
    }
    if (f != NULL && o->modified_ns > f->modified_ns) {
        f->modified_ns = o->modified_ns;
    }
    return f != NULL;
}

/* Sets the state that the list shows. */
static void judge(struct survey_file *f)
{
    if (f->state == SURVEY_FOREIGN) {
        return;
    }
    if (!f->has_index) {
        f->state = SURVEY_UNFINISHED;
        f->name.bytes = f->data_bytes;
    } else if (!f->has_data) {
        f->state = SURVEY_MISSING;
    } else if (f->data_bytes != f->name.bytes) {
        f->state = SURVEY_DAMAGED;
    }
}

static int survey_compare(const void *a, const void *b)
{
    const struct survey_file *x = a;
    const struct survey_file *y = b;
    bool foreign = x->state == SURVEY_FOREIGN;
    if (foreign != (y->state == SURVEY_FOREIGN)) {
        return foreign ? 1 : -1;
    }
    int order = foreign ? 0 : store_name_compare(&x->name.stretch, &y->name.stretch);
    return order != 0 ? order : strcmp(x->key, y->key);
}

enum bucket_result survey_list(const struct archive_backend *b, const struct survey_limits *limits,
                               struct survey *ret, struct err *err)
{
    struct listing l = {.survey = ret, .limits = limits, .by_key = map_new()};
    char prefix[ARCHIVE_KEY_SIZE];
    struct bucket_list all = {.prefix = NULL};
    *ret = (struct survey){.n = 0};
    if (limits->writer != NULL) {
        (void)snprintf(prefix, sizeof(prefix), "%s/", limits->writer);
        all.prefix = prefix;
    }
    enum bucket_result result = BUCKET_MEMORY;
    if (l.by_key != NULL) {
        result = b->list(b->arg, &all, survey_on_object, &l, 0, err);
    } else {
        err_memory(err);
    }
    if (result == BUCKET_OK && l.err.kind != ERR_NONE) {
        err_set(err, l.err.kind, "%s: %s", b->url(b->arg), l.err.msg);
        result = l.err.kind == ERR_MEMORY ? BUCKET_MEMORY : BUCKET_LIMIT;
    }
    map_free(l.by_key, NULL);
    for (size_t i = 0; i < ret->n; i++) {
        judge(&ret->at[i]);
    }
    if (ret->n > 0) {
        qsort(ret->at, ret->n, sizeof(ret->at[0]), survey_compare);
    }
    return result;
}

void survey_done(struct survey *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->at[i].key);
    }
    free(s->at);
    *s = (struct survey){.n = 0};
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum survey_state state_of(enum bucket_result result)
{
    switch (result) {
    case BUCKET_OK:
        return SURVEY_FINE;
    case BUCKET_NOT_FOUND:
        return SURVEY_MISSING;
    case BUCKET_CHANGED:
        return SURVEY_DAMAGED;
    default:
        return SURVEY_FAILED;
    }
}

/* Reads a range, all of which must exist. */
static enum survey_state read_range(const struct archive_backend *b, const char *key,
                                    const char *etag, uint64_t offset, size_t n, void *into,
                                    struct err *err)
{
    struct bucket_range r = {
        .offset = offset, .len = n, .into = into, .etag = *etag != '\0' ? etag : NULL};
    struct bucket_read got = {.len = 0};
    enum bucket_result result = b->get(b->arg, key, &r, clock_mono_ms() + RANGE_MS, &got, err);
    if (result == BUCKET_OK && got.len != n) {
        err_set(err, ERR_INPUT, "%s/%s: it has %llu bytes, fewer than its name says",
                b->url(b->arg), key, (unsigned long long)got.total);
        return SURVEY_DAMAGED;
    }
    return state_of(result);
}

/* Copies all ranges into the file, and hashes them. */
static enum survey_state copy_ranges(const struct archive_backend *b, const struct survey_file *f,
                                     int fd, EVP_MD_CTX *md, char *part,
                                     void (*on_bytes)(void *arg, uint64_t n), void *arg,
                                     struct err *err)
{
    enum survey_state state = SURVEY_FINE;
    for (uint64_t at = 0; state == SURVEY_FINE && at < f->name.bytes;) {
        size_t n = f->name.bytes - at < RANGE_BYTES ? (size_t)(f->name.bytes - at) : RANGE_BYTES;
        state = read_range(b, f->key, f->data_etag, at, n, part, err);
        if (state == SURVEY_FINE && EVP_DigestUpdate(md, part, n) != 1) {
            (void)err_memory(err);
            state = SURVEY_FAILED;
        }
        if (state == SURVEY_FINE && !write_all(fd, part, n)) {
            (void)err_sys(err, "cannot write");
            state = SURVEY_FAILED;
        }
        if (state == SURVEY_FINE && on_bytes != NULL) {
            on_bytes(arg, n);
        }
        at += n;
    }
    return state;
}

enum survey_state survey_download(const struct archive_backend *b, const struct survey_file *f,
                                  int fd, void (*on_bytes)(void *arg, uint64_t n), void *arg,
                                  struct err *err)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    char *part = malloc(RANGE_BYTES);
    unsigned char sum[EVP_MAX_MD_SIZE];
    char hash[ARCHIVE_HASH_DIGITS + 1] = "";
    enum survey_state state = SURVEY_FAILED;
    if (md == NULL || part == NULL || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1) {
        (void)err_memory(err);
    } else {
        state = copy_ranges(b, f, fd, md, part, on_bytes, arg, err);
    }
    if (state == SURVEY_FINE && EVP_DigestFinal_ex(md, sum, NULL) == 1) {
        archive_hash_format(sum, hash);
    }
    if (state == SURVEY_FINE && strcmp(hash, f->name.hash) != 0) {
        err_set(err, ERR_INPUT, "%s/%s: damaged: the hash of its bytes is %s", b->url(b->arg),
                f->key, hash);
        state = SURVEY_DAMAGED;
    }
    EVP_MD_CTX_free(md);
    free(part);
    return state;
}

bool survey_hash(const char *path, char ret[ARCHIVE_HASH_DIGITS + 1], struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return err_sys(err, "cannot read %s", path);
    }
    bool ok = fstat(fd, &st) == 0 ? archive_hash_file(fd, (uint64_t)st.st_size, ret, err)
                                  : err_sys(err, "cannot read it");
    close(fd);
    return ok || err_wrap(err, "%s", path);
}

/* ---- checking -------------------------------------------------------------------------------- */

static bool differs(struct err *err, const char *what)
{
    return err_set(err, ERR_INPUT, "damaged: %s of the index is not that of the database", what);
}

/* Compares the index with the one that the database gives now. */
static bool same_index(const struct archive_index *is, const struct archive_index *want,
                       struct err *err)
{
    if (!sv_eq(is->etag, want->etag)) {
        return differs(err, "the ETag");
    }
    if (is->bytes != want->bytes || is->profiles != want->profiles) {
        return differs(err, is->bytes != want->bytes ? "the size" : "the number of profiles");
    }
    if (is->profiles > 0 &&
        (is->oldest_ns != want->oldest_ns || is->newest_ns != want->newest_ns)) {
        return differs(err, "the range of time");
    }
    bool same = is->n_rows == want->n_rows;
    for (size_t i = 0; same && i < is->n_rows; i++) {
        const struct archive_row *x = &is->rows[i];
        const struct archive_row *y = &want->rows[i];
        same = x->id == y->id && x->columns == y->columns && x->set_id == y->set_id &&
               sv_eq(x->labels, y->labels) && sv_eq(x->set, y->set);
    }
    return same || differs(err, "the list of series");
}

static enum survey_state state_of_verdict(enum archive_verdict verdict)
{
    switch (verdict) {
    case ARCHIVE_INDEX_FINE:
        return SURVEY_FINE;
    case ARCHIVE_INDEX_NEWER:
        return SURVEY_NEWER;
    case ARCHIVE_INDEX_MEMORY:
        return SURVEY_FAILED;
    default:
        return SURVEY_DAMAGED;
    }
}

/* Reads the stored index into memory of the arena. */
static enum survey_state read_stored(const struct archive_backend *b, const struct survey_file *f,
                                     struct arena *arena, struct archive_index *ret,
                                     struct err *err)
{
    char key[ARCHIVE_KEY_SIZE];
    archive_index_key(f->writer, &f->name, key);
    if (f->index_bytes == 0 || f->index_bytes > ARCHIVE_INDEX_MAX) {
        err_set(err, ERR_INPUT, "%s/%s: damaged: the size of the index", b->url(b->arg), key);
        return SURVEY_DAMAGED;
    }
    char *text = malloc(f->index_bytes);
    enum survey_state state = SURVEY_FAILED;
    if (text == NULL) {
        (void)err_memory(err);
    } else {
        state = read_range(b, key, "", 0, f->index_bytes, text, err);
    }
    if (state == SURVEY_FINE) {
        state = state_of_verdict(
            archive_index_read((struct sv){text, f->index_bytes}, arena, ret, err));
        if (state != SURVEY_FINE) {
            (void)err_wrap(err, "%s/%s", b->url(b->arg), key);
        }
    }
    free(text);
    return state;
}

/* Marks the file that a day has replaced. by_key: keys of files that are fine -> the file. */
static void set_replaced(const struct map *by_key, const char *writer, struct sv name)
{
    char key[ARCHIVE_KEY_SIZE];
    (void)snprintf(key, sizeof(key), "%s/" ARCHIVE_DATA "%.*s", writer, SV_ARG(name));
    struct survey_file *f = map_get(by_key, sv_from(key));
    if (f != NULL && f->state == SURVEY_FINE) {
        f->state = SURVEY_REPLACED;
    }
}

/* Returns the files that are fine, by their keys; NULL: out of memory. */
static struct map *fine_by_key(struct survey *s)
{
    struct map *by_key = map_new();
    for (size_t i = 0; by_key != NULL && i < s->n; i++) {
        struct survey_file *f = &s->at[i];
        if (f->state == SURVEY_FINE && !map_put(by_key, sv_from(f->key), f, NULL)) {
            by_key = map_free(by_key, NULL);
        }
    }
    return by_key;
}

void survey_find_replaced(const struct archive_backend *b, struct survey *s)
{
    struct arena *arena = arena_new(ARCHIVE_INDEX_ARENA_MAX);
    struct map *by_key = fine_by_key(s);
    for (size_t i = 0; arena != NULL && by_key != NULL && i < s->n; i++) {
        struct survey_file *f = &s->at[i];
        struct archive_index index;
        struct err err = ERR_INIT;
        if (f->state != SURVEY_FINE || f->name.stretch.length_ms != MS_PER_DAY) {
            continue;
        }
        arena_reset(arena);
        f->state = read_stored(b, f, arena, &index, &err);
        for (size_t k = 0; f->state == SURVEY_FINE && k < index.day.n_replaces; k++) {
            set_replaced(by_key, f->writer, index.day.replaces[k]);
        }
    }
    map_free(by_key, NULL);
    arena_free(arena);
}

/* Makes the index of the database again, and compares. */
static bool compare(const struct survey_file *f, const char *path, const struct archive_index *is,
                    struct arena *arena, struct err *err)
{
    struct db db;
    struct buf text;
    struct archive_index want;
    bool empty = false;
    buf_init(&text, ARCHIVE_INDEX_MAX);
    if (!db_open_still(&db, path, &empty, err)) {
        return false;
    }
    bool ok = archive_index_write(&db, f->data_etag, f->data_bytes, NULL, &text, err) &&
              archive_index_read((struct sv){text.data, text.len}, arena, &want, err) ==
                  ARCHIVE_INDEX_FINE &&
              same_index(is, &want, err);
    db_close(&db);
    buf_done(&text);
    return ok;
}

static enum survey_state check_database(const char *path, struct err *err)
{
    struct check_report report;
    check_file(path, true, &report);
    if (report.fault == DB_FINE && !report.sealed && report.version > 1) {
        err_set(err, ERR_INPUT, "damaged: it is not complete");
        return SURVEY_DAMAGED;
    }
    if (report.fault != DB_FINE) {
        err_set(err, ERR_INPUT, "%s", report.why);
    }
    return report.fault == DB_FINE    ? SURVEY_FINE
           : report.fault == DB_NEWER ? SURVEY_NEWER
                                      : SURVEY_DAMAGED;
}

enum survey_state survey_check(const struct archive_backend *b, const struct survey_file *f,
                               const char *path, struct err *err)
{
    struct archive_index stored;
    struct arena *arena = arena_new(ARCHIVE_INDEX_ARENA_MAX);
    if (arena == NULL) {
        (void)err_memory(err);
        return SURVEY_FAILED;
    }
    enum survey_state state = check_database(path, err);
    if (state != SURVEY_FINE) {
        (void)err_wrap(err, "%s/%s", b->url(b->arg), f->key);
    } else {
        state = read_stored(b, f, arena, &stored, err);
        if (state == SURVEY_FINE && !compare(f, path, &stored, arena, err)) {
            (void)err_wrap(err, "%s/%s", b->url(b->arg), f->key);
            state = SURVEY_DAMAGED;
        }
    }
    arena_free(arena);
    return state;
}

/* A bucket in memory, which counts requests and fails on demand, and a store with an archive in it.
 */
#ifndef PROFPULL_TESTS_ARCHIVE_FAKE_H
#define PROFPULL_TESTS_ARCHIVE_FAKE_H

#include <pthread.h>
#include <unistd.h>

#include "store/archive/private.h"
#include "tests/unit/lib/store_rig.h"

#define FAKE_OBJECTS_MAX 512

struct fake_object {
    char *key;
    char *data;
    size_t n;
    unsigned version;
    int64_t modified_ns;
};

struct fake {
    pthread_mutex_t lock;
    struct fake_object at[FAKE_OBJECTS_MAX]; /* in order of keys */
    size_t n;
    unsigned versions;
    int64_t now_ns; /* the clock of the bucket */
    unsigned requests;
    unsigned gets;
    unsigned puts;
    unsigned removals;
    unsigned lists;
    unsigned aborts;
    unsigned fail_after;       /* all requests after so many fail; 0: none */
    enum bucket_result result; /* how they fail */
    const char *fail_key;      /* requests whose key contains this fail; NULL: all */
    /* A request that fails has its effect nevertheless: the answer was lost. */
    bool effective;
};

static inline void fake_init(struct fake *f)
{
    *f = (struct fake){.now_ns = RIG_T0, .result = BUCKET_TIMEOUT};
    pthread_mutex_init(&f->lock, NULL);
}

static inline void fake_done(struct fake *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->at[i].key);
        free(f->at[i].data);
    }
    pthread_mutex_destroy(&f->lock);
}
SCOPED_VALUE(fake, fake_done)

static inline struct fake_object *fake_find(struct fake *f, const char *key)
{
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->at[i].key, key) == 0) {
            return &f->at[i];
        }
    }
    return NULL;
}

/* The first object whose key contains a text. */
static inline struct fake_object *fake_like(struct fake *f, const char *text)
{
    for (size_t i = 0; i < f->n; i++) {
        if (strstr(f->at[i].key, text) != NULL) {
            return &f->at[i];
        }
    }
    return NULL;
}

static inline size_t fake_count(struct fake *f, const char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        n += strstr(f->at[i].key, text) != NULL;
    }
    return n;
}

/* Copies key and data, which may be the object's own. */
static inline void fake_set(struct fake *f, const char *key, const void *data, size_t n)
{
    void *copy = testing_memory(n + 1);
    memcpy(copy, data, n);
    struct fake_object *o = fake_find(f, key);
    if (o == NULL) {
        size_t at = f->n++;
        assert_true(f->n < FAKE_OBJECTS_MAX);
        for (; at > 0 && strcmp(f->at[at - 1].key, key) > 0; at--) {
            f->at[at] = f->at[at - 1];
        }
        o = &f->at[at];
        *o = (struct fake_object){.key = strdup(key)};
    }
    free(o->data);
    o->data = copy;
    o->n = n;
    o->version = ++f->versions;
    o->modified_ns = f->now_ns;
}

static inline void fake_drop(struct fake *f, const char *key)
{
    struct fake_object *o = fake_find(f, key);
    if (o != NULL) {
        free(o->key);
        free(o->data);
        size_t i = (size_t)(o - f->at);
        memmove(o, o + 1, (f->n - i - 1) * sizeof(*o));
        f->n--;
    }
}

/* Counts a request. Returns true if it fails. */
static inline bool fake_fails(struct fake *f, const char *key, struct err *err)
{
    f->requests++;
    if (f->fail_after == 0 || f->requests < f->fail_after ||
        (f->fail_key != NULL && strstr(key, f->fail_key) == NULL)) {
        return false;
    }
    err_set(err, ERR_SYSTEM, "fake://%s: the bucket answers %s", key,
            bucket_result_name(f->result));
    return true;
}

static inline void fake_etag(const struct fake_object *o, char out[BUCKET_ETAG_SIZE])
{
    (void)snprintf(out, BUCKET_ETAG_SIZE, "\"v%u\"", o->version);
}

static inline const char *fake_url(void *arg)
{
    (void)arg;
    return "s3://fake/profiles";
}

static inline enum bucket_result fake_list(void *arg, const struct bucket_list *l,
                                           bool (*fn)(void *fn_arg, const struct bucket_object *o),
                                           void *fn_arg, int64_t deadline_ms, struct err *err)
{
    struct fake *f = arg;
    char last[ARCHIVE_KEY_SIZE] = "";
    (void)deadline_ms;
    pthread_mutex_lock(&f->lock);
    bool fails = fake_fails(f, l->prefix != NULL ? l->prefix : "", err);
    f->lists++;
    const char *prefix = l->prefix != NULL ? l->prefix : "";
    bool more = true;
    for (size_t i = 0; !fails && more && i < f->n; i++) {
        const char *key = f->at[i].key;
        struct bucket_object o = {.key = key, .size = f->at[i].n};
        if (strncmp(key, prefix, strlen(prefix)) != 0 ||
            (l->start_after != NULL && strcmp(key, l->start_after) <= 0)) {
            continue;
        }
        const char *slash = l->delimiter != 0 ? strchr(key + strlen(prefix), l->delimiter) : NULL;
        char common[ARCHIVE_KEY_SIZE];
        if (slash != NULL) {
            (void)snprintf(common, sizeof(common), "%.*s", (int)(slash - key + 1), key);
            if (strcmp(common, last) == 0) {
                continue;
            }
            (void)snprintf(last, sizeof(last), "%s", common);
            o = (struct bucket_object){.key = common, .is_prefix = true};
        } else {
            fake_etag(&f->at[i], o.etag);
            o.modified_ns = f->at[i].modified_ns;
        }
        more = fn(fn_arg, &o);
    }
    enum bucket_result result = fails ? f->result : BUCKET_OK;
    pthread_mutex_unlock(&f->lock);
    return result;
}

static inline enum bucket_result fake_missing(const char *key, struct err *err)
{
    err_set(err, ERR_SYSTEM, "fake://%s: no such object", key);
    return BUCKET_NOT_FOUND;
}

static inline enum bucket_result fake_head(void *arg, const char *key, int64_t deadline_ms,
                                           struct bucket_object *ret, struct err *err)
{
    struct fake *f = arg;
    (void)deadline_ms;
    pthread_mutex_lock(&f->lock);
    enum bucket_result result = BUCKET_OK;
    const struct fake_object *o = fake_find(f, key);
    if (fake_fails(f, key, err)) {
        result = f->result;
    } else if (o == NULL) {
        result = fake_missing(key, err);
    } else {
        *ret = (struct bucket_object){.key = key, .size = o->n, .modified_ns = o->modified_ns};
        fake_etag(o, ret->etag);
    }
    pthread_mutex_unlock(&f->lock);
    return result;
}

static inline enum bucket_result fake_get(void *arg, const char *key, const struct bucket_range *r,
                                          int64_t deadline_ms, struct bucket_read *ret,
                                          struct err *err)
{
    struct fake *f = arg;
    char etag[BUCKET_ETAG_SIZE];
    (void)deadline_ms;
    pthread_mutex_lock(&f->lock);
    enum bucket_result result = BUCKET_OK;
    const struct fake_object *o = fake_find(f, key);
    f->gets++;
    if (fake_fails(f, key, err)) {
        result = f->result;
    } else if (o == NULL) {
        result = fake_missing(key, err);
    } else {
        fake_etag(o, etag);
        if (r->etag != NULL && strcmp(r->etag, etag) != 0) {
            err_set(err, ERR_SYSTEM, "fake://%s: it has changed", key);
            result = BUCKET_CHANGED;
        } else if (r->offset >= o->n) {
            err_set(err, ERR_SYSTEM, "fake://%s: no such range", key);
            result = BUCKET_REFUSED;
        } else {
            ret->len = o->n - r->offset < r->len ? o->n - (size_t)r->offset : r->len;
            ret->total = o->n;
            memcpy(ret->etag, etag, sizeof(etag));
            memcpy(r->into, o->data + r->offset, ret->len);
        }
    }
    pthread_mutex_unlock(&f->lock);
    return result;
}

static inline enum bucket_result fake_put(void *arg, const char *key, const void *data, size_t len,
                                          int64_t deadline_ms, struct err *err)
{
    struct fake *f = arg;
    (void)deadline_ms;
    pthread_mutex_lock(&f->lock);
    bool fails = fake_fails(f, key, err);
    if (!fails || (f->effective && f->requests == f->fail_after)) {
        fake_set(f, key, data, len);
        f->puts++;
    }
    enum bucket_result result = fails ? f->result : BUCKET_OK;
    pthread_mutex_unlock(&f->lock);
    return result;
}

static inline enum bucket_result fake_put_file(void *arg, const char *key, int fd, uint64_t offset,
                                               uint64_t len, int64_t deadline_ms, struct err *err)
{
    char *data = testing_memory((size_t)len + 1);
    assert_int_equal(pread(fd, data, (size_t)len, (off_t)offset), len);
    enum bucket_result result = fake_put(arg, key, data, (size_t)len, deadline_ms, err);
    free(data);
    return result;
}

static inline enum bucket_result fake_remove(void *arg, const char *key, int64_t deadline_ms,
                                             struct err *err)
{
    struct fake *f = arg;
    (void)deadline_ms;
    pthread_mutex_lock(&f->lock);
    bool fails = fake_fails(f, key, err);
    if (!fails || (f->effective && f->requests == f->fail_after)) {
        fake_drop(f, key);
        f->removals++;
    }
    enum bucket_result result = fails ? f->result : BUCKET_OK;
    pthread_mutex_unlock(&f->lock);
    return result;
}

static inline enum bucket_result fake_abort(void *arg, const char *prefix, int64_t before_ns,
                                            int64_t deadline_ms, size_t *ret_n, struct err *err)
{
    struct fake *f = arg;
    (void)before_ns;
    (void)deadline_ms;
    (void)ret_n;
    pthread_mutex_lock(&f->lock);
    bool fails = fake_fails(f, prefix, err);
    f->aborts++;
    enum bucket_result result = fails ? f->result : BUCKET_OK;
    pthread_mutex_unlock(&f->lock);
    return result;
}

static inline struct archive_backend fake_backend(struct fake *f)
{
    return (struct archive_backend){.arg = f,
                                    .url = fake_url,
                                    .list = fake_list,
                                    .head = fake_head,
                                    .get = fake_get,
                                    .put = fake_put,
                                    .put_file = fake_put_file,
                                    .remove = fake_remove,
                                    .abort_uploads = fake_abort};
}

/* ---- a store with an archive ----------------------------------------------------------------- */

struct archive_rig {
    struct store_rig store;
    struct archive_options options;
    struct archive_backend backend;
};

/* Opens a store whose archive runs only in archive_rig_round(). */
static inline void archive_rig_init(struct archive_rig *r, struct fake *f, const char *writer)
{
    store_rig_init(&r->store);
    r->backend = fake_backend(f);
    r->options =
        (struct archive_options){.writer = writer, .backend = &r->backend, .without_thread = true};
    r->store.options.archive = &r->options;
    r->store.options.merge_ms = 5 * 60 * MS_PER_S;
    r->store.options.merge_cpu = 100;
    store_rig_reopen(&r->store);
}

/* Opens a reader, which has nothing on disk. */
static inline void archive_rig_reader(struct archive_rig *r, struct fake *f)
{
    archive_rig_init(r, f, NULL);
    r->store.options.read_only = true;
    store_rig_reopen(&r->store);
}

static inline void archive_rig_done(struct archive_rig *r)
{
    store_rig_done(&r->store);
}
SCOPED_VALUE(archive_rig, archive_rig_done)

/* Removes all that is on the disk. */
static inline void archive_rig_wipe(struct archive_rig *r)
{
    r->store.store = store_close(r->store.store);
    testing_rmdir(r->store.directory);
    store_rig_reopen(&r->store);
}

/* Runs a round, in which everything is due, without the merging and sealing that come before it. */
static inline void archive_rig_round(struct archive_rig *r, struct fake *f)
{
    struct archive *a = r->store.store->archive;
    a->list_due_ms = a->beat_due_ms = a->list_all_due_ms = a->expire_due_ms = 0;
    a->down_until_ms = a->days_due_ms = 0;
    archive_round(a, f->now_ns);
}

/* Moves the clock, maintains the store, and runs a round. */
static inline void archive_rig_at(struct archive_rig *r, struct fake *f, int64_t seconds)
{
    f->now_ns = RIG_T0 + seconds * RIG_SECOND;
    store_maintain(r->store.store, f->now_ns);
    archive_rig_round(r, f);
}

/* All that a store answers, as text, for free(). */
static inline char *archive_rig_text(struct archive_rig *r, struct partial *partial)
{
    struct err err = ERR_INIT;
    struct rig_text t;
    struct store_scan scan = {
        .range = {.from_ns = RIG_T0, .until_ns = RIG_T0 + 1000 * RIG_HOUR, .partial = partial},
        .with_data = true,
    };
    rig_text_init(&t, NULL);
    struct store *s = r->store.store;
    assert_true(store_each_series(s, &scan.range, rig_on_series, &t, &err) &&
                store_each_point(s, &scan.range, rig_on_point, &t, &err) &&
                store_each_body(s, &scan, rig_on_body, &t, &err));
    return buf_take(&t.out, NULL);
}

#endif

#include "store/series_lists.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"

struct text {
    struct series_text shown; /* the first member */
    size_t refs;
    size_t n;
    char bytes[]; /* the key: length of the set, set, labels */
};

struct list {
    struct series_list shown; /* the first member */
    size_t cap;
    size_t refs; /* of its users, and one of the table */
    char *path;  /* NULL: it is not in the table */
    struct series_version version;
    TAILQ_ENTRY(list) used; /* in the order of use */
};

struct series_lists {
    pthread_mutex_t lock; /* guards the rest, except the bytes of texts and the rows of lists */
    size_t bytes_max;
    size_t bytes;
    uint64_t numbers;
    struct map *texts;                 /* key -> struct text */
    struct map *by_path;               /* path -> struct list */
    TAILQ_HEAD(list_order, list) used; /* the first one was not used for longest */
    struct buf key;                    /* working memory */
};

struct series_lists *series_lists_new(size_t bytes_max)
{
    struct series_lists *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    TAILQ_INIT(&s->used);
    s->bytes_max = bytes_max;
    s->texts = map_new();
    s->by_path = map_new();
    buf_init(&s->key, bytes_max);
    return s->texts != NULL && s->by_path != NULL ? s : series_lists_free(s);
}

/* ---- texts; all under the lock --------------------------------------------------------------- */

static size_t size_of_text(const struct text *t)
{
    return sizeof(*t) + t->n;
}

static void release_text(struct series_lists *s, struct text *t)
{
    if (--t->refs == 0) {
        s->bytes -= size_of_text(t);
        (void)map_remove(s->texts, (struct sv){t->bytes, t->n});
        free(t);
    }
}

static bool write_key(struct series_lists *s, struct sv set, struct sv labels)
{
    buf_clear(&s->key);
    return buf_append(&s->key, &set.n, sizeof(set.n)) && buf_append(&s->key, set.p, set.n) &&
           buf_append(&s->key, labels.p, labels.n);
}

/* Returns the text with a further reference; NULL if out of memory. */
static struct text *find_text(struct series_lists *s, struct sv set, struct sv labels)
{
    if (!write_key(s, set, labels)) {
        return NULL;
    }
    struct sv key = {s->key.data, s->key.len};
    struct text *t = map_get(s->texts, key);
    if (t != NULL) {
        t->refs++;
        return t;
    }
    t = malloc(sizeof(*t) + key.n);
    if (t == NULL || !map_put(s->texts, key, t, NULL)) {
        free(t);
        return NULL;
    }
    *t = (struct text){.refs = 1, .n = key.n};
    memcpy(t->bytes, key.p, key.n);
    t->shown.number = ++s->numbers;
    t->shown.set = (struct sv){t->bytes + sizeof(set.n), set.n};
    t->shown.labels = (struct sv){t->bytes + sizeof(set.n) + set.n, labels.n};
    s->bytes += size_of_text(t);
    return t;
}

/* ---- lists; all under the lock --------------------------------------------------------------- */

static size_t size_of_list(const struct list *l)
{
    return sizeof(*l) + l->cap * sizeof(l->shown.rows[0]);
}

static void release(struct series_lists *s, struct list *l)
{
    if (--l->refs > 0) {
        return;
    }
    for (size_t i = 0; i < l->shown.n; i++) {
        release_text(s, (struct text *)(uintptr_t)l->shown.rows[i].text);
    }
    free(l->shown.rows);
    free(l->path);
    free(l);
}

/* Takes a list out of the table. */
static void forget(struct series_lists *s, struct list *l)
{
    TAILQ_REMOVE(&s->used, l, used);
    (void)map_remove(s->by_path, sv_from(l->path));
    s->bytes -= size_of_list(l);
    release(s, l);
}

struct series_lists *series_lists_free(struct series_lists *s)
{
    if (s == NULL) {
        return NULL;
    }
    while (!TAILQ_EMPTY(&s->used)) {
        forget(s, TAILQ_FIRST(&s->used));
    }
    map_free(s->texts, NULL);
    map_free(s->by_path, NULL);
    buf_done(&s->key);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

size_t series_lists_bytes(struct series_lists *s)
{
    pthread_mutex_lock(&s->lock);
    size_t bytes = s->bytes;
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

bool series_version_of(const char *path, struct series_version *ret)
{
    char name[4096];
    struct stat st;
    struct stat log;
    (void)snprintf(name, sizeof(name), "%s-wal", path);
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        (stat(name, &log) == 0 && log.st_size > 0)) {
        return false;
    }
    *ret = (struct series_version){
        {(uint64_t)st.st_ino, (uint64_t)st.st_size,
         (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec,
         (uint64_t)st.st_ctim.tv_sec * NS_PER_S + (uint64_t)st.st_ctim.tv_nsec}};
    return true;
}

const struct series_list *series_lists_get(struct series_lists *s, const char *path,
                                           const struct series_version *version)
{
    pthread_mutex_lock(&s->lock);
    struct list *l = map_get(s->by_path, sv_from(path));
    if (l != NULL && memcmp(&l->version, version, sizeof(*version)) != 0) {
        forget(s, l);
        l = NULL;
    }
    if (l != NULL) {
        TAILQ_REMOVE(&s->used, l, used);
        TAILQ_INSERT_TAIL(&s->used, l, used);
        l->refs++;
    }
    pthread_mutex_unlock(&s->lock);
    return l != NULL ? &l->shown : NULL;
}

void series_lists_release(struct series_lists *s, const struct series_list *l)
{
    if (l != NULL) {
        pthread_mutex_lock(&s->lock);
        release(s, (struct list *)(uintptr_t)l);
        pthread_mutex_unlock(&s->lock);
    }
}

struct series_list *series_list_new(void)
{
    struct list *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return NULL;
    }
    l->refs = 1;
    return &l->shown;
}

bool series_lists_add_row(struct series_lists *s, struct series_list *shown, int64_t id,
                          uint64_t columns, int64_t set_id, struct sv set, struct sv labels)
{
    struct list *l = (struct list *)shown;
    if (shown->n == l->cap) {
        size_t cap = l->cap == 0 ? 32 : 2 * l->cap;
        struct series_row *rows = reallocarray(shown->rows, cap, sizeof(rows[0]));
        if (rows == NULL) {
            return false;
        }
        shown->rows = rows;
        l->cap = cap;
    }
    pthread_mutex_lock(&s->lock);
    struct text *t = find_text(s, set, labels);
    pthread_mutex_unlock(&s->lock);
    if (t != NULL) {
        shown->rows[shown->n++] = (struct series_row){id, columns, set_id, &t->shown};
    }
    return t != NULL;
}

void series_lists_add(struct series_lists *s, struct series_list *shown, const char *path,
                      const struct series_version *version)
{
    struct list *l = (struct list *)shown;
    l->path = strdup(path);
    if (l->path == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    struct list *earlier = map_get(s->by_path, sv_from(path));
    if (earlier != NULL) {
        forget(s, earlier);
    }
    if (map_put(s->by_path, sv_from(path), l, NULL)) {
        l->version = *version;
        l->refs++;
        TAILQ_INSERT_TAIL(&s->used, l, used);
        s->bytes += size_of_list(l);
        struct list *first = TAILQ_FIRST(&s->used);
        while (s->bytes > s->bytes_max && first != l) {
            /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): l is the last one, so there is a next */
            forget(s, first);
            first = TAILQ_FIRST(&s->used);
        }
        if (s->bytes > s->bytes_max) {
            forget(s, l);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

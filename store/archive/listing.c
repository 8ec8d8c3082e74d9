/* The list of the objects of all writers. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/archive/private.h"

/* Limits of what a prefix may have. */
#define WRITERS_MAX 10000
#define OBJECTS_MAX 1000000
/* Between two listings of all objects, only those of the last days are listed. */
#define RECENT_NS (2 * 24 * 3600 * NS_PER_S)

struct listing {
    struct archive *archive;
    char **writers;
    size_t n_writers;
    size_t cap;
    const char *writer; /* whose objects are being listed */
    uint64_t foreign;
    char example[256]; /* the first foreign key */
    struct map *seen;  /* keys of the indexes that were listed */
    struct err err;    /* of a callback */
};

static void note_foreign(struct listing *l, const char *key)
{
    if (l->foreign++ == 0) {
        (void)snprintf(l->example, sizeof(l->example), "%s", key);
    }
}

/* ---- writers --------------------------------------------------------------------------------- */

static bool add_writer(struct listing *l, struct sv name)
{
    if (l->n_writers == WRITERS_MAX) {
        return err_set(&l->err, ERR_LIMIT, "more than %d writers", WRITERS_MAX);
    }
    if (l->n_writers == l->cap) {
        size_t cap = l->cap == 0 ? 16 : 2 * l->cap;
        char **writers = reallocarray((void *)l->writers, cap, sizeof(char *));
        if (writers == NULL) {
            return err_memory(&l->err);
        }
        l->writers = writers;
        l->cap = cap;
    }
    l->writers[l->n_writers] = strndup(name.p, name.n);
    return l->writers[l->n_writers] != NULL ? ++l->n_writers > 0 : err_memory(&l->err);
}

static bool archive_on_writer(void *arg, const struct bucket_object *o)
{
    struct listing *l = arg;
    struct sv name = sv_from(o->key);
    if (o->is_prefix && sv_ends_with(name, SV("/"))) {
        name.n--;
        if (archive_is_writer(name)) {
            return add_writer(l, name);
        }
    }
    note_foreign(l, o->key);
    return true;
}

/* ---- objects --------------------------------------------------------------------------------- */

static bool add_object(struct listing *l, const struct archive_name *name,
                       const struct bucket_object *o)
{
    struct archive *a = l->archive;
    struct store_file *f = archive_file_new(a, l->writer, name, o->etag, o->size, &l->err);
    if (f == NULL) {
        return false;
    }
    f->object->modified_ns = o->modified_ns;
    pthread_mutex_lock(&a->lock);
    bool ok = a->n_files < OBJECTS_MAX
                  ? archive_list_add(a, f) != NULL || err_memory(&l->err)
                  : err_set(&l->err, ERR_LIMIT, "more than %d objects", OBJECTS_MAX);
    if (a->n_files >= OBJECTS_MAX && !ok) {
        store_file_unref(f);
    }
    pthread_mutex_unlock(&a->lock);
    return ok;
}

static bool archive_on_object(void *arg, const struct bucket_object *o)
{
    struct listing *l = arg;
    struct archive_name name;
    struct sv key = sv_from(o->key);
    struct sv rest = sv_skip(key, strlen(l->writer) + 1);
    if (sv_starts_with(rest, SV(ARCHIVE_INDEX)) &&
        archive_index_parse(sv_skip(rest, sizeof(ARCHIVE_INDEX) - 1), &name)) {
        if (l->seen != NULL && !map_put(l->seen, key, l, NULL)) {
            return err_memory(&l->err);
        }
        return add_object(l, &name, o);
    }
    if (!sv_eq_str(rest, ARCHIVE_HEARTBEAT) && !sv_eq_str(rest, ARCHIVE_CATALOGUE) &&
        !(sv_starts_with(rest, SV(ARCHIVE_DATA)) &&
          archive_data_parse(sv_skip(rest, sizeof(ARCHIVE_DATA) - 1), &name))) {
        note_foreign(l, o->key);
    }
    return true;
}

/* Writes the key after which the recent objects of a writer come. */
static void recent_key(const char *writer, int64_t now_ns, char out[ARCHIVE_KEY_SIZE])
{
    struct store_name name = {.start_ms = (now_ns - RECENT_NS) / NS_PER_MS, .length_ms = 1000};
    char text[STORE_NAME_SIZE];
    store_name_format(&name, text);
    text[sizeof("20261122T") - 1] = '\0';
    (void)snprintf(out, ARCHIVE_KEY_SIZE, "%s/" ARCHIVE_INDEX "%s", writer, text);
}

static enum bucket_result list_writer(struct listing *l, int64_t recent_from_ns, struct err *err)
{
    struct archive *a = l->archive;
    char prefix[ARCHIVE_KEY_SIZE];
    char after[ARCHIVE_KEY_SIZE];
    /* A listing of all objects also finds those that do not belong to an archive. */
    (void)snprintf(prefix, sizeof(prefix), "%s/%s", l->writer,
                   recent_from_ns > 0 ? ARCHIVE_INDEX : "");
    struct bucket_list what = {.prefix = prefix};
    if (recent_from_ns > 0) {
        recent_key(l->writer, recent_from_ns, after);
        what.start_after = after;
    }
    return a->backend.list(a->backend.arg, &what, archive_on_object, l, 0, err);
}

/* Takes the files off the list that a listing of all objects did not have. Files that were uploaded
 * or listed since it began stay: they have a newer number. */
static void forget_unseen(struct listing *l, uint64_t number)
{
    struct archive *a = l->archive;
    pthread_mutex_lock(&a->lock);
    for (size_t i = a->n_files; i-- > 0;) {
        struct store_file *f = a->files[i];
        if (f->object->number <= number &&
            map_get(l->seen, sv_from(f->object->index_key)) == NULL) {
            archive_list_remove(a, f);
        }
    }
    pthread_mutex_unlock(&a->lock);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void report_foreign(struct listing *l)
{
    struct archive *a = l->archive;
    pthread_mutex_lock(&a->lock);
    a->foreign = l->foreign;
    pthread_mutex_unlock(&a->lock);
    if (l->foreign > 0 && !a->reported_foreign) {
        log_warn(a->store->options.log,
                 "objects under the prefix of the archive do not belong to it, and are left alone",
                 LOG_STR("endpoint", a->store->options.name),
                 LOG_STR("url", a->backend.url(a->backend.arg)), LOG_STR("object", l->example),
                 LOG_INT("objects", (int64_t)l->foreign));
    }
    a->reported_foreign = l->foreign > 0;
}

static enum bucket_result list_all(struct listing *l, int64_t recent_from_ns, struct err *err)
{
    struct archive *a = l->archive;
    struct bucket_list top = {.delimiter = '/'};
    enum bucket_result result = a->backend.list(a->backend.arg, &top, archive_on_writer, l, 0, err);
    for (size_t i = 0; result == BUCKET_OK && l->err.kind == ERR_NONE && i < l->n_writers; i++) {
        l->writer = l->writers[i];
        result = list_writer(l, recent_from_ns, err);
    }
    if (result == BUCKET_OK && l->err.kind != ERR_NONE) {
        err_set(err, l->err.kind, "%s: %s", a->backend.url(a->backend.arg), l->err.msg);
        return l->err.kind == ERR_MEMORY ? BUCKET_MEMORY : BUCKET_LIMIT;
    }
    return result;
}

static void finish(struct archive *a, enum bucket_result result, const struct err *err, bool all,
                   int64_t began_ms)
{
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&a->lock);
    if (result == BUCKET_OK) {
        a->listed_ms = now_ms;
        a->listed_all_ms = all ? began_ms : a->listed_all_ms;
        a->list_err = (struct err){0};
    } else {
        a->list_err = *err;
    }
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (result == BUCKET_OK) {
        a->list_due_ms = now_ms + ARCHIVE_LIST_MS;
        a->list_all_due_ms = all ? now_ms + ARCHIVE_LIST_ALL_MS : a->list_all_due_ms;
    }
}

bool archive_list(struct archive *a, int64_t now_ns)
{
    int64_t now_ms = clock_mono_ms();
    bool all = now_ms >= a->list_all_due_ms || archive_takes_refresh(a);
    struct listing l = {.archive = a};
    struct err err = ERR_INIT;
    if (!all && now_ms < a->list_due_ms) {
        return true;
    }
    pthread_mutex_lock(&a->lock);
    uint64_t number = a->objects;
    pthread_mutex_unlock(&a->lock);
    l.seen = all ? map_new() : NULL;
    enum bucket_result result = BUCKET_MEMORY;
    if (!all || l.seen != NULL) {
        result = list_all(&l, all ? 0 : archive_server_ns(a, now_ns), &err);
    }
    if (result == BUCKET_OK && all) {
        forget_unseen(&l, number);
        report_foreign(&l);
    }
    finish(a, result, &err, all, now_ms);
    if (result == BUCKET_OK && all && !a->read_only) {
        archive_know_days(a);
        archive_match(a);
    }
    for (size_t i = 0; i < l.n_writers; i++) {
        free(l.writers[i]);
    }
    free((void *)l.writers);
    map_free(l.seen, NULL);
    return archive_note(a, "list", result, &err);
}

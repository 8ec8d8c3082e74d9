/* The duties of a writer besides uploading: its heartbeat, and removing objects. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/archive/heartbeat.h"
#include "store/archive/private.h"

/* The clocks of this machine and of the bucket may differ by this much without a warning. */
#define SKEW_NS (15 * 60 * NS_PER_S)

/* ---- the heartbeat --------------------------------------------------------------------------- */

static void heartbeat_key(const char *writer, char out[ARCHIVE_KEY_SIZE])
{
    (void)snprintf(out, ARCHIVE_KEY_SIZE, "%s/" ARCHIVE_HEARTBEAT, writer);
}

enum beat_kind { BEAT_NONE, BEAT_OURS, BEAT_OTHER, BEAT_FOREIGN };

/* Reads the heartbeat of a writer. BEAT_FOREIGN: the object is no heartbeat, or a later version has
 * written it. */
static enum bucket_result read_beat(struct archive *a, const char *writer, enum beat_kind *ret,
                                    struct err *err)
{
    char key[ARCHIVE_KEY_SIZE];
    char text[HEARTBEAT_MAX];
    struct bucket_range r = {.len = sizeof(text), .into = text};
    struct bucket_read got = {.len = 0};
    uint64_t version = 0;
    struct sv id = SV("");
    heartbeat_key(writer, key);
    enum bucket_result result =
        a->backend.get(a->backend.arg, key, &r, archive_deadline(), &got, err);
    *ret = BEAT_NONE;
    if (result == BUCKET_NOT_FOUND) {
        err_clear(err);
        return BUCKET_OK;
    }
    /* An empty object has no first byte, so that asking for it is refused. */
    if (result == BUCKET_OK || result == BUCKET_REFUSED) {
        bool fine = result == BUCKET_OK &&
                    heartbeat_parse((struct sv){text, got.len}, &version, &id) &&
                    version <= ARCHIVE_VERSION;
        *ret = !fine ? BEAT_FOREIGN : sv_eq_str(id, a->id) ? BEAT_OURS : BEAT_OTHER;
        err_clear(err);
        return BUCKET_OK;
    }
    return result;
}

static void set_conflict(struct archive *a, bool conflict, const char *why)
{
    pthread_mutex_lock(&a->lock);
    bool was = a->conflict;
    a->conflict = conflict;
    pthread_mutex_unlock(&a->lock);
    if (conflict && !was) {
        metric_inc(metric_cell(a->metrics.faults,
                               (const char *const[]){a->store->options.name, "conflict"}));
        log_error(a->store->options.log, "the archive removes nothing until this is solved",
                  LOG_STR("endpoint", a->store->options.name),
                  LOG_STR("url", a->backend.url(a->backend.arg)), LOG_STR("writer", a->writer),
                  LOG_STR("err", why));
    } else if (!conflict && was) {
        log_info(a->store->options.log, "no other process uses the name of this writer any more",
                 LOG_STR("endpoint", a->store->options.name), LOG_STR("writer", a->writer));
    }
}

static void judge(struct archive *a, enum beat_kind kind)
{
    if (kind == BEAT_FOREIGN) {
        set_conflict(a, true,
                     "the object \"heartbeat\" of this writer is from a newer version, or from "
                     "another program: set store.archive.name to another name");
    } else if (kind == BEAT_OTHER && a->has_beaten) {
        set_conflict(a, true,
                     "another process writes under the same name: set store.archive.name to "
                     "different names");
    } else {
        set_conflict(a, false, NULL);
    }
}

static void learn_time(struct archive *a, int64_t server_ns, int64_t now_ns)
{
    int64_t skew = server_ns - now_ns;
    if (server_ns <= 0) {
        return;
    }
    if (a->server_ns == 0 && (skew > SKEW_NS || skew < -SKEW_NS)) {
        log_warn(a->store->options.log, "the clocks of this machine and of the bucket differ",
                 LOG_STR("endpoint", a->store->options.name), LOG_INT("seconds", skew / NS_PER_S));
    }
    a->server_ns = server_ns;
    a->server_mono_ns = clock_mono_ns();
}

int64_t archive_server_ns(const struct archive *a, int64_t now_ns)
{
    return a->server_ns != 0 ? a->server_ns + (clock_mono_ns() - a->server_mono_ns) : now_ns;
}

bool archive_beat(struct archive *a, int64_t now_ns)
{
    char key[ARCHIVE_KEY_SIZE];
    char text[HEARTBEAT_MAX];
    struct err err = ERR_INIT;
    struct bucket_object object = {.size = 0};
    enum beat_kind kind;
    if (clock_mono_ms() < a->beat_due_ms) {
        return true;
    }
    enum bucket_result result = read_beat(a, a->writer, &kind, &err);
    if (result != BUCKET_OK) {
        return archive_note(a, "heartbeat", result, &err);
    }
    judge(a, kind);
    if (kind != BEAT_FOREIGN) {
        heartbeat_key(a->writer, key);
        size_t n = heartbeat_format(a->id, text);
        result = a->backend.put(a->backend.arg, key, text, n, archive_deadline(), &err);
        if (result == BUCKET_OK) {
            result = a->backend.head(a->backend.arg, key, archive_deadline(), &object, &err);
        }
    }
    if (result == BUCKET_OK) {
        a->has_beaten = kind != BEAT_FOREIGN;
        a->beat_due_ms = clock_mono_ms() + ARCHIVE_BEAT_MS;
        learn_time(a, object.modified_ns, now_ns);
    }
    return archive_note(a, "heartbeat", result, &err);
}

/* ---- removing -------------------------------------------------------------------------------- */

/* Removes the index, so that nobody finds the database any more, then the database. A crash in
 * between leaves a database that remove_left_overs() removes. */
bool archive_remove_object(struct archive *a, struct store_file *f, const char *why)
{
    struct err err = ERR_INIT;
    const struct archive_object *o = f->object;
    enum bucket_result result =
        a->backend.remove(a->backend.arg, o->index_key, archive_deadline(), &err);
    if (result == BUCKET_OK) {
        pthread_mutex_lock(&a->lock);
        archive_list_remove(a, f);
        pthread_mutex_unlock(&a->lock);
        result = a->backend.remove(a->backend.arg, o->data_key, archive_deadline(), &err);
    }
    if (result == BUCKET_OK) {
        metric_inc(
            metric_cell(a->metrics.removed, (const char *const[]){a->store->options.name, why}));
        log_info(a->store->options.log, "an object of the archive was removed",
                 LOG_STR("endpoint", a->store->options.name), LOG_STR("object", o->data_key),
                 LOG_STR("reason", why));
    }
    return archive_note(a, "remove", result, &err);
}

/* Lists the files of one writer that are older than max_age, with references. */
static size_t too_old(struct archive *a, const char *writer, int64_t server_ns,
                      struct store_file ***ret)
{
    int64_t before_ns = server_ns - a->max_age_ms * NS_PER_MS;
    size_t n = 0;
    pthread_mutex_lock(&a->lock);
    struct store_file **files = calloc(a->n_files + 1, sizeof(void *));
    for (size_t i = 0; files != NULL && i < a->n_files; i++) {
        struct store_file *f = a->files[i];
        if (store_file_until_ns(f) < before_ns && f->object->state == OBJECT_FINE &&
            strcmp(f->object->writer, writer) == 0) {
            files[n++] = store_file_ref(f);
        }
    }
    pthread_mutex_unlock(&a->lock);
    *ret = files;
    return n;
}

/* Reads the index of an object, unless somebody has read it already. *ret_fine is false if it is
 * damaged, or a later version has written it: such an object is reported and left alone. False with
 * err if the bucket has failed. */
static bool check_index(struct archive *a, struct store_file *f, struct arena *arena,
                        bool *ret_fine, struct err *err)
{
    bool ok = archive_know(f, arena, err);
    pthread_mutex_lock(&a->lock);
    *ret_fine = f->object->state == OBJECT_FINE;
    pthread_mutex_unlock(&a->lock);
    return ok || !*ret_fine;
}

static bool remove_one(struct archive *a, struct store_file *f, struct arena *arena,
                       const char *why)
{
    struct err err = ERR_INIT;
    bool fine = false;
    if (!check_index(a, f, arena, &fine, &err)) {
        return archive_note(a, "remove", BUCKET_NETWORK, &err);
    }
    return !fine || archive_remove_object(a, f, why);
}

static bool remove_old(struct archive *a, const char *writer, int64_t server_ns, const char *why)
{
    struct store_file **files;
    size_t n = too_old(a, writer, server_ns, &files);
    struct arena *arena = arena_new(ARCHIVE_INDEX_ARENA_MAX);
    bool ok = arena != NULL;
    for (size_t i = 0; ok && i < n && !archive_is_stopping(a); i++) {
        ok = remove_one(a, files[i], arena, why);
    }
    arena_free(arena);
    store_files_free(files, n);
    return ok;
}

/* Copies the name of the first writer in the list, except this one, that comes after a name. */
static bool next_writer(struct archive *a, char name[ARCHIVE_WRITER_SIZE])
{
    const char *next = NULL;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n_files; i++) {
        const char *w = a->files[i]->object->writer;
        if (strcmp(w, a->writer) != 0 && strcmp(w, name) > 0 &&
            (next == NULL || strcmp(w, next) < 0)) {
            next = w;
        }
    }
    if (next != NULL) {
        (void)snprintf(name, ARCHIVE_WRITER_SIZE, "%s", next);
    }
    pthread_mutex_unlock(&a->lock);
    return next != NULL;
}

/* Returns true if the heartbeat of a writer has stopped long ago. A writer without a heartbeat
 * counts as alive. */
static bool is_dead(struct archive *a, const char *writer, int64_t server_ns)
{
    char key[ARCHIVE_KEY_SIZE];
    struct err err = ERR_INIT;
    struct bucket_object o = {.size = 0};
    enum beat_kind kind = BEAT_NONE;
    heartbeat_key(writer, key);
    return a->backend.head(a->backend.arg, key, archive_deadline(), &o, &err) == BUCKET_OK &&
           o.modified_ns > 0 && o.modified_ns < server_ns - ARCHIVE_DEAD_NS &&
           read_beat(a, writer, &kind, &err) == BUCKET_OK && kind == BEAT_OTHER;
}

static bool remove_of_the_dead(struct archive *a, int64_t server_ns)
{
    char writer[ARCHIVE_WRITER_SIZE] = "";
    bool ok = true;
    while (ok && next_writer(a, writer) && !archive_is_stopping(a)) {
        struct store_file **files;
        size_t n = too_old(a, writer, server_ns, &files);
        store_files_free(files, n);
        ok = n == 0 || !is_dead(a, writer, server_ns) ||
             remove_old(a, writer, server_ns, "abandoned");
    }
    return ok;
}

struct left_overs {
    struct archive *archive;
    int64_t before_ns;
    char **keys;
    size_t n;
};

/* Gathers at most LEFT_OVERS_MAX databases of this writer that no index makes known. */
#define LEFT_OVERS_MAX 1000
static bool archive_on_data(void *arg, const struct bucket_object *o)
{
    struct left_overs *l = arg;
    struct archive *a = l->archive;
    size_t skip = strlen(a->writer) + sizeof("/" ARCHIVE_DATA) - 1;
    struct archive_name name;
    if (o->modified_ns <= 0 || o->modified_ns >= l->before_ns ||
        !archive_data_parse(sv_skip(sv_from(o->key), skip), &name)) {
        return true;
    }
    pthread_mutex_lock(&a->lock);
    bool known = map_get(a->by_key, sv_from(o->key)) != NULL;
    pthread_mutex_unlock(&a->lock);
    if (!known && (l->keys[l->n] = strdup(o->key)) != NULL) {
        l->n++;
    }
    return l->n < LEFT_OVERS_MAX;
}

/* Removes the databases and the parts of uploads that a crash has left over. The list of objects
 * must be complete. */
static bool remove_left_overs(struct archive *a, int64_t server_ns)
{
    struct err err = ERR_INIT;
    char prefix[ARCHIVE_KEY_SIZE];
    struct left_overs l = {.archive = a,
                           .before_ns = server_ns - ARCHIVE_LEFT_OVER_NS,
                           .keys = calloc(LEFT_OVERS_MAX, sizeof(char *))};
    if (l.keys == NULL) {
        return false;
    }
    (void)snprintf(prefix, sizeof(prefix), "%s/" ARCHIVE_DATA, a->writer);
    struct bucket_list what = {.prefix = prefix};
    enum bucket_result result =
        a->backend.list(a->backend.arg, &what, archive_on_data, &l, 0, &err);
    for (size_t i = 0; i < l.n; i++) {
        if (result == BUCKET_OK) {
            result = a->backend.remove(a->backend.arg, l.keys[i], archive_deadline(), &err);
        }
        if (result == BUCKET_OK) {
            metric_inc(metric_cell(a->metrics.removed,
                                   (const char *const[]){a->store->options.name, "left_over"}));
        }
        free(l.keys[i]);
    }
    free((void *)l.keys);
    if (result == BUCKET_OK) {
        result = a->backend.abort_uploads(a->backend.arg, prefix, l.before_ns, archive_deadline(),
                                          NULL, &err);
    }
    return archive_note(a, "remove", result, &err);
}

void archive_expire(struct archive *a, int64_t now_ns)
{
    int64_t server_ns = archive_server_ns(a, now_ns);
    /* Nothing is removed on a wrong clock, under a name that another process uses, or by a list
     * that is incomplete. */
    if (clock_mono_ms() < a->expire_due_ms || a->server_ns == 0 || !a->has_beaten || a->conflict ||
        a->list_all_due_ms == 0) {
        return;
    }
    if (!a->cleaned) {
        a->cleaned = remove_left_overs(a, server_ns);
    }
    if (a->max_age_ms > 0 &&
        (!remove_old(a, a->writer, server_ns, "age") || !remove_of_the_dead(a, server_ns))) {
        return;
    }
    if (a->cleaned) {
        a->expire_due_ms = clock_mono_ms() + ARCHIVE_EXPIRE_MS;
    }
}

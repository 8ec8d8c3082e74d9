#include "store/archive/push.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/archive/heartbeat.h"
#include "store/archive/private.h"

/* The id in the heartbeat of a writer that a push has made. */
#define PUSH_ID "push-"
/* A writer whose heartbeat is younger lives: it writes one every five minutes. */
#define ALIVE_NS (15 * 60 * NS_PER_S)
/* An hour for which all stretches are over. */
#define FAR_NS (INT64_MAX / 2)

struct push {
    const struct archive_push *options;
    struct archive_backend inner; /* that of the options */
    struct store *store;
    struct archive *archive;
    uint64_t files; /* that are left */
    uint64_t bytes;
    uint64_t uploaded;
};

/* ---- a backend that counts ------------------------------------------------------------------- */

static const char *push_url(void *arg)
{
    const struct push *p = arg;
    return p->inner.url(p->inner.arg);
}

static enum bucket_result push_list(void *arg, const struct bucket_list *l,
                                    bool (*fn)(void *fn_arg, const struct bucket_object *o),
                                    void *fn_arg, int64_t deadline_ms, struct err *err)
{
    const struct push *p = arg;
    return p->inner.list(p->inner.arg, l, fn, fn_arg, deadline_ms, err);
}

static enum bucket_result push_head(void *arg, const char *key, int64_t deadline_ms,
                                    struct bucket_object *ret, struct err *err)
{
    const struct push *p = arg;
    return p->inner.head(p->inner.arg, key, deadline_ms, ret, err);
}

static enum bucket_result push_get(void *arg, const char *key, const struct bucket_range *r,
                                   int64_t deadline_ms, struct bucket_read *ret, struct err *err)
{
    const struct push *p = arg;
    return p->inner.get(p->inner.arg, key, r, deadline_ms, ret, err);
}

static enum bucket_result push_put(void *arg, const char *key, const void *data, size_t len,
                                   int64_t deadline_ms, struct err *err)
{
    const struct push *p = arg;
    return p->inner.put(p->inner.arg, key, data, len, deadline_ms, err);
}

static enum bucket_result push_put_file(void *arg, const char *key, int fd, uint64_t offset,
                                        uint64_t len, int64_t deadline_ms, struct err *err)
{
    struct push *p = arg;
    enum bucket_result result =
        p->inner.put_file(p->inner.arg, key, fd, offset, len, deadline_ms, err);
    if (result == BUCKET_OK && p->files > 0) {
        p->files--;
        p->uploaded++;
        p->bytes -= len < p->bytes ? len : p->bytes;
        if (p->options->on_progress != NULL) {
            p->options->on_progress(p->options->arg, p->files, p->bytes);
        }
    }
    return result;
}

static void push_stop(void *arg)
{
    const struct push *p = arg;
    if (p->inner.stop != NULL) {
        p->inner.stop(p->inner.arg);
    }
}

/* Nothing is removed, so the backend cannot. */
static struct archive_backend counting(struct push *p)
{
    return (struct archive_backend){.arg = p,
                                    .url = push_url,
                                    .list = push_list,
                                    .head = push_head,
                                    .get = push_get,
                                    .put = push_put,
                                    .put_file = push_put_file,
                                    .stop = push_stop};
}

/* ---- the writer's name ----------------------------------------------------------------------- */

static enum bucket_result read_beat(struct push *p, char text[HEARTBEAT_MAX], size_t *ret_n,
                                    int64_t *ret_ns, struct err *err)
{
    char key[ARCHIVE_KEY_SIZE];
    struct bucket_object o = {.size = 0};
    struct bucket_range r = {.len = HEARTBEAT_MAX, .into = text};
    struct bucket_read got = {.len = 0};
    (void)snprintf(key, sizeof(key), "%s/" ARCHIVE_HEARTBEAT, p->options->writer);
    *ret_n = 0;
    /* The response to GET says why a request is refused; that to HEAD has no body. */
    enum bucket_result result = p->inner.get(p->inner.arg, key, &r, archive_deadline(), &got, err);
    if (result == BUCKET_REFUSED) {
        return BUCKET_OK; /* an empty object has no first byte */
    }
    if (result == BUCKET_OK) {
        result = p->inner.head(p->inner.arg, key, archive_deadline(), &o, err);
    }
    *ret_n = got.len;
    *ret_ns = o.modified_ns;
    return result;
}

/* Returns false with err if the name belongs to a process that lives, or to another program. */
static bool name_is_free(struct push *p, struct err *err)
{
    char text[HEARTBEAT_MAX];
    size_t n;
    int64_t ns = 0;
    uint64_t version = 0;
    struct sv id = SV("");
    struct err why = ERR_INIT;
    const char *url = p->inner.url(p->inner.arg);
    const char *writer = p->options->writer;
    enum bucket_result result = read_beat(p, text, &n, &ns, &why);
    if (result == BUCKET_NOT_FOUND) {
        return true;
    }
    if (result != BUCKET_OK) {
        return err_set(err, ERR_SYSTEM, "%s", why.msg);
    }
    if (!heartbeat_parse((struct sv){text, n}, &version, &id) || version > ARCHIVE_VERSION) {
        return err_set(err, ERR_INPUT,
                       "%s/%s/" ARCHIVE_HEARTBEAT
                       ": from a newer version, or from another program: push under another name",
                       url, writer);
    }
    bool lives = clock_wall_ns() - ns < ALIVE_NS && !sv_starts_with(id, SV(PUSH_ID));
    return !lives || err_set(err, ERR_INPUT,
                             "%s/%s: a process that runs writes under this name: push under "
                             "another one, or stop that process and wait 15 minutes",
                             url, writer);
}

/* Writes a heartbeat, so that other writers remove the objects when they are too old. */
static bool beat(struct push *p, struct err *err)
{
    char key[ARCHIVE_KEY_SIZE];
    char text[HEARTBEAT_MAX];
    char id[HEARTBEAT_ID_MAX];
    (void)snprintf(key, sizeof(key), "%s/" ARCHIVE_HEARTBEAT, p->options->writer);
    (void)snprintf(id, sizeof(id), PUSH_ID "%s", p->archive->id);
    size_t n = heartbeat_format(id, text);
    return p->inner.put(p->inner.arg, key, text, n, archive_deadline(), err) == BUCKET_OK;
}

/* ---- the files ------------------------------------------------------------------------------- */

/* Counts a file that the archive does not have. */
static void count_left(struct push *p, const struct store_file *f, struct archive_pushed *ret)
{
    if (ret->left++ == 0) {
        (void)snprintf(ret->why, sizeof(ret->why), "%s: %s", f->path,
                       f->fault != DB_FINE ? db_fault_name(f->fault)
                       : f->sealed         ? "not uploaded"
                                           : "it could not be completed");
    }
    p->files++;
    p->bytes += f->data_bytes;
}

/* Counts the files that the archive has, and the others. */
static void count(struct push *p, struct archive_pushed *ret)
{
    struct store *s = p->store;
    *ret = (struct archive_pushed){.uploaded = p->uploaded};
    p->files = p->bytes = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_files; i++) {
        const struct store_file *f = s->files[i];
        if (f->twin != NULL) {
            ret->files++;
            ret->profiles += f->profiles;
            ret->bytes += f->data_bytes;
        } else if (f->fault != DB_FINE || f->profiles > 0 || f->unindexed) {
            count_left(p, f, ret);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

static bool open_store(struct push *p, struct err *err)
{
    struct archive_backend backend = counting(p);
    struct archive_options archive = {
        .writer = p->options->writer, .backend = &backend, .without_thread = true};
    struct store_options o = {.name = "push",
                              .directory = p->options->directory,
                              .stretch_ms = 3600 * MS_PER_S,
                              .merge_cpu = 100,
                              .archive = &archive,
                              .log = p->options->log};
    struct stat st;
    /* store_open() would create the directory. */
    if (stat(p->options->directory, &st) != 0) {
        err_sys(err, "%s", p->options->directory);
        return false;
    }
    p->store = store_open(&o, err);
    if (p->store == NULL) {
        err_append(err, "; a profpull that runs uploads its store itself: set store.archive there");
        return false;
    }
    p->archive = p->store->archive;
    return store_is_open(p->store, err);
}

static bool upload(struct push *p, struct archive_pushed *ret, struct err *err)
{
    struct archive *a = p->archive;
    int64_t now_ns = clock_wall_ns();
    (void)snprintf(a->writer, sizeof(a->writer), "%s", p->options->writer);
    store_maintain(p->store, FAR_NS);
    if (!archive_list(a, now_ns)) {
        return err_set(err, a->problem.kind, "%s", a->problem.msg);
    }
    count(p, ret);
    if (p->options->on_progress != NULL) {
        p->options->on_progress(p->options->arg, p->files, p->bytes);
    }
    archive_upload(a, now_ns);
    count(p, ret);
    if (ret->left > 0 && a->problem.kind != ERR_NONE) {
        return err_set(err, a->problem.kind, "%s", a->problem.msg);
    }
    return ret->files == 0 || beat(p, err);
}

bool archive_push(const struct archive_push *options, struct archive_pushed *ret, struct err *err)
{
    struct push p = {.options = options, .inner = options->backend};
    *ret = (struct archive_pushed){.files = 0};
    bool ok =
        archive_is_writer(sv_from(options->writer)) ||
        err_set(err, ERR_INPUT, "%s: expected a name of letters, digits, \".\", \"_\" and \"-\"",
                options->writer);
    ok = ok && name_is_free(&p, err) && open_store(&p, err) && upload(&p, ret, err);
    store_close(p.store);
    if (p.inner.free != NULL) {
        p.inner.free(p.inner.arg);
    }
    return ok;
}

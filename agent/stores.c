#include "agent/stores.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/url.h"
#include "store/archive/archive.h"
#include "store/changes/watch.h"
#include "store/store.h"
#include "write/protocol.h"

#define PATH_BYTES_MAX 4096

/* A store, which stays open when its endpoint is removed, because queries may read it. */
struct kept {
    char *name; /* the endpoint that it belongs to, or belonged to last */
    struct store *store;
    bool in_use; /* an endpoint delivers into it */
    /* A reference to the configuration that the settings of the archive's bucket belong to; NULL:
     * there is no archive. */
    const struct config *config;
    const char *archive; /* the URL of the archive */
};

struct stores {
    struct log *log;
    struct metrics *metrics;
    const struct store_names *names;
    struct http_contents *contents;
    pthread_mutex_t lock; /* guards the rest */
    struct kept at[CONFIG_ENDPOINTS_MAX];
    size_t n;
    struct changes_watch *watch; /* of the first store, which queries read */
};

struct stores *stores_new(struct log *log, struct metrics *metrics, const struct store_names *names)
{
    struct stores *s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->log = log;
        s->metrics = metrics;
        s->names = names;
        pthread_mutex_init(&s->lock, NULL);
    }
    return s;
}

struct stores *stores_free(struct stores *s)
{
    if (s == NULL) {
        return NULL;
    }
    s->watch = changes_watch_free(s->watch);
    for (size_t i = 0; i < s->n; i++) {
        store_close(s->at[i].store);
        config_unref(s->at[i].config);
        free(s->at[i].name);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

void stores_use_contents(struct stores *s, struct http_contents *contents)
{
    s->contents = contents;
}

struct store *stores_get(struct stores *s, const char *endpoint)
{
    struct store *found = NULL;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n && found == NULL; i++) {
        bool meant = endpoint == NULL || strcmp(s->at[i].name, endpoint) == 0;
        found = meant && s->at[i].in_use ? s->at[i].store : NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

bool stores_healthy(struct stores *s, struct err *err)
{
    bool healthy = true;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n && healthy; i++) {
        healthy = !s->at[i].in_use || store_healthy(s->at[i].store, err);
    }
    pthread_mutex_unlock(&s->lock);
    return healthy;
}

/* ---- delivering ------------------------------------------------------------------------------ */

struct store_sink {
    struct sink sink; /* the first member */
    struct stores *stores;
    struct store *store; /* NULL: none yet */
};

static void store_sink_free(struct sink *sink)
{
    struct store_sink *s = (struct store_sink *)sink;
    pthread_mutex_lock(&s->stores->lock);
    for (size_t i = 0; i < s->stores->n; i++) {
        struct kept *k = &s->stores->at[i];
        k->in_use = k->in_use && k->store != s->store;
    }
    pthread_mutex_unlock(&s->stores->lock);
    free(sink);
}

/* Copies the labels of all profiles into one array, for free(). */
static struct label *copy_labels(struct delivery *const *all, size_t n)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += all[i]->series->n;
    }
    struct label *labels = calloc(total + 1, sizeof(labels[0]));
    size_t at = 0;
    for (size_t i = 0; labels != NULL && i < n; i++) {
        for (size_t k = 0; k < all[i]->series->n; k++) {
            const struct series_label *l = &all[i]->series->at[k];
            labels[at++] = (struct label){l->name, l->value};
        }
    }
    return labels;
}

static void set_answer(struct answer *a, enum answer_class class, const char *text)
{
    *a = (struct answer){.class = class};
    (void)snprintf(a->text, sizeof(a->text), "%s", text);
}

static void answer_all(struct delivery *const *all, const struct store_put *puts, size_t n)
{
    static const enum answer_class classes[] = {[STORE_TAKEN] = ANSWER_SENT,
                                                [STORE_REFUSED] = ANSWER_REJECTED,
                                                [STORE_FAILED] = ANSWER_RETRY};
    for (size_t i = 0; i < n; i++) {
        set_answer(all[i]->answer, classes[puts[i].taken], puts[i].problem);
    }
}

static void store_sink_deliver_all(struct sink *sink, struct delivery *const *all, size_t n)
{
    struct store_sink *s = (struct store_sink *)sink;
    struct store_put *puts = calloc(n, sizeof(puts[0]));
    struct label *labels = copy_labels(all, n);
    if (puts == NULL || labels == NULL) {
        for (size_t i = 0; i < n; i++) {
            set_answer(all[i]->answer, ANSWER_RETRY, "out of memory");
        }
    } else {
        struct label *next = labels;
        for (size_t i = 0; i < n; i++) {
            const struct profile *p = all[i]->profile;
            puts[i] = (struct store_put){.labels = next,
                                         .n_labels = all[i]->series->n,
                                         .data = {p->data, p->size},
                                         .format = p->format,
                                         .salt = p->salt,
                                         .from_ns = p->from_ns,
                                         .until_ns = p->until_ns};
            next += all[i]->series->n;
        }
        (void)store_put(s->store, puts, n);
        answer_all(all, puts, n);
    }
    free(labels);
    free(puts);
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct archive_options archive_of(const struct stores *s, const struct config_endpoint *e)
{
    return (struct archive_options){.bucket = &e->archive.bucket,
                                    .contents = s->contents,
                                    .writer = e->archive.name,
                                    .max_age_ms = e->archive.max_age_ms,
                                    .merge_ms = e->archive.merge_ms,
                                    .cache_directory = e->archive.cache_directory,
                                    .cache_bytes = e->archive.cache_max_bytes};
}

/* Returns the options of a store; those of its archive are kept in *archive. */
static struct store_options options_of(const struct stores *s, const struct config_endpoint *e,
                                       const char *directory, struct archive_options *archive)
{
    *archive = archive_of(s, e);
    return (struct store_options){.name = e->name,
                                  .directory = directory,
                                  .stretch_ms = e->store_stretch_ms,
                                  .max_age_ms = e->retention_max_age_ms,
                                  .max_bytes = e->retention_max_bytes,
                                  .merge_ms = e->store_merge_ms,
                                  .merge_cpu = e->store_merge_cpu,
                                  .sync = e->store_sync,
                                  .archive = e->archive.url != NULL ? archive : NULL,
                                  .read_only = e->store_read_only,
                                  .log = s->log,
                                  .metrics = s->metrics,
                                  .names = s->names};
}

/* Returns the store in a directory; NULL if it has not been opened. Under the lock. */
static struct kept *find_kept(struct stores *s, const char *directory)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(store_directory(s->at[i].store), directory) == 0) {
            return &s->at[i];
        }
    }
    return NULL;
}

static struct kept *open_kept(struct stores *s, const struct config_endpoint *e,
                              const struct store_options *o, struct err *err)
{
    if (s->n == CONFIG_ENDPOINTS_MAX) {
        err_set(err, ERR_LIMIT,
                "%d stores have been opened since the start, and stay open: restart profpull",
                CONFIG_ENDPOINTS_MAX);
        return NULL;
    }
    struct store *store = store_open(o, err);
    if (store == NULL) {
        return NULL;
    }
    if (s->metrics != NULL && s->watch == NULL) {
        s->watch = changes_watch_new(store, s->log, s->metrics, err);
        if (s->watch == NULL) {
            store_close(store);
            return NULL;
        }
    }
    s->at[s->n] = (struct kept){.store = store};
    if (o->archive != NULL) {
        s->at[s->n].config = e->config != NULL ? config_ref(e->config) : NULL;
        s->at[s->n].archive = e->archive.url;
    }
    return &s->at[s->n++];
}

/* Logs that another archive is used after a restart. */
static void check_archive(const struct stores *s, const struct kept *k,
                          const struct config_endpoint *e)
{
    const char *was = k->archive != NULL ? k->archive : "";
    const char *is = e->archive.url != NULL ? e->archive.url : "";
    if (strcmp(was, is) != 0 || store_is_read_only(k->store) != e->store_read_only) {
        log_warn(s->log, "an open store keeps its archive: restart to use another one",
                 LOG_STR("endpoint", e->name), LOG_STR("archive", was));
    }
}

/* Gives an endpoint the store of its directory, opened before or now, under the lock. Returns NULL
 * with an error. */
static struct store *use(struct stores *s, const struct config_endpoint *e, const char *directory,
                         struct err *err)
{
    struct archive_options archive;
    struct store_options options = options_of(s, e, directory, &archive);
    struct kept *k = find_kept(s, directory);
    if (k != NULL && k->in_use) {
        err_set(err, ERR_INPUT,
                "the directory is that of endpoint \"%s\": remove that one first, or restart",
                k->name);
        return NULL;
    }
    char *name = strdup(e->name);
    bool is_new = k == NULL;
    k = name == NULL ? NULL : is_new ? open_kept(s, e, &options, err) : k;
    if (k == NULL) {
        free(name);
        (void)(name == NULL && err_memory(err));
        return NULL;
    }
    if (!is_new) {
        check_archive(s, k, e);
        store_configure(k->store, &options);
    }
    free(k->name);
    k->name = name;
    k->in_use = true;
    return k->store;
}

static struct store *use_store(struct stores *s, const struct config_endpoint *e, struct err *err)
{
    struct buf directory;
    struct store *store = NULL;
    buf_init(&directory, PATH_BYTES_MAX);
    if (url_to_directory(sv_from(e->url), &directory, err)) {
        pthread_mutex_lock(&s->lock);
        store = use(s, e, directory.data, err);
        pthread_mutex_unlock(&s->lock);
    }
    buf_done(&directory);
    return store;
}

struct sink *stores_open_sink(void *arg, const struct config_endpoint *endpoint, struct err *err)
{
    struct stores *s = arg;
    struct store_sink *sink = calloc(1, sizeof(*sink));
    if (sink == NULL) {
        err_memory(err);
        return NULL;
    }
    sink_init(&sink->sink, store_sink_free);
    sink->sink.deliver_all = store_sink_deliver_all;
    sink->stores = s;
    sink->store = use_store(s, endpoint, err);
    return sink->store != NULL ? &sink->sink : sink_unref(&sink->sink);
}

void stores_configure(struct stores *s, const struct config *config)
{
    for (size_t i = 0; i < config->n_endpoints; i++) {
        const struct config_endpoint *e = &config->endpoints[i];
        bool is_store = e->protocol != NULL && e->protocol->is_store;
        struct store *store = is_store ? stores_get(s, e->name) : NULL;
        if (store != NULL) {
            struct archive_options archive;
            const struct store_options options = options_of(s, e, NULL, &archive);
            store_configure(store, &options);
        }
    }
}

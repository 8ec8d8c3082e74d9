#include "agent/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/url.h"
#include "store/store.h"
#include "write/protocol.h"

#define PATH_BYTES_MAX 4096

struct stores {
    struct log *log;
    struct metrics *metrics;
    struct {
        const char *name; /* the configuration's */
        struct store *store;
    } at[CONFIG_ENDPOINTS_MAX];
    size_t n;
};

struct stores *stores_new(struct log *log, struct metrics *metrics)
{
    struct stores *s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->log = log;
        s->metrics = metrics;
    }
    return s;
}

struct stores *stores_free(struct stores *s)
{
    for (size_t i = 0; s != NULL && i < s->n; i++) {
        store_close(s->at[i].store);
    }
    free(s);
    return NULL;
}

struct store *stores_get(const struct stores *s, const char *endpoint)
{
    for (size_t i = 0; i < s->n; i++) {
        if (endpoint == NULL || strcmp(s->at[i].name, endpoint) == 0) {
            return s->at[i].store;
        }
    }
    return NULL;
}

/* ---- delivering ------------------------------------------------------------------------------ */

struct store_sink {
    struct sink sink; /* the first member */
    struct store *store;
};

static void store_sink_free(struct sink *sink)
{
    free(sink);
}

/* The labels of all profiles one after the other, for free(). */
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

static struct store *open_store(const struct stores *s, const struct config_endpoint *e,
                                struct err *err)
{
    struct buf directory;
    struct store *store = NULL;
    buf_init(&directory, PATH_BYTES_MAX);
    if (url_to_directory(sv_from(e->url), &directory, err)) {
        struct store_options options = {.name = e->name,
                                        .directory = directory.data,
                                        .stretch_ms = e->store_stretch_ms,
                                        .max_age_ms = e->retention_max_age_ms,
                                        .max_bytes = e->retention_max_bytes,
                                        .merge_ms = e->store_merge_ms,
                                        .merge_cpu = e->store_merge_cpu,
                                        .log = s->log,
                                        .metrics = s->metrics};
        store = store_open(&options, err);
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
    sink->store = open_store(s, endpoint, err);
    if (sink->store == NULL) {
        return sink_unref(&sink->sink);
    }
    s->at[s->n].name = endpoint->name;
    s->at[s->n++].store = sink->store;
    return &sink->sink;
}

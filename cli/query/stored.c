/* Profiles in a directory of profpull's own store, read without a running process. */
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/labels.h"
#include "cli/query/args.h"
#include "cli/query/source.h"
#include "cli/query/stored.h"
#include "store/query/query.h"

#define BYTES_MAX ((size_t)1024 * 1024 * 1024)
#define TYPE_LABEL "__profile_type__"

struct store *query_open_store(const char *directory, struct err *err)
{
    struct stat st;
    struct store_options options = {
        .name = "query", .directory = directory, .stretch_ms = 3600 * MS_PER_S};
    /* store_open() would create the directory. */
    if (stat(directory, &st) != 0) {
        err_sys(err, "--store %s", directory);
        return NULL;
    }
    struct store *store = store_open(&options, err);
    if (store == NULL) {
        err_wrap(err, "--store");
        err_append(err,
                   "; ask the profpull that is running with --url instead of --store: " QUERY_URL
                   ", or the address of its server.listen");
    }
    return store;
}

/* A query with everything that it borrows. */
struct work {
    struct query query;
    struct query_range range;
    struct selector *selector;
};

static bool work_init(struct work *w, struct query_peer *p, const struct query_ask *ask,
                      struct err *err)
{
    *w = (struct work){
        .query = {.store = p->store, .bytes_max = BYTES_MAX, .arena = arena_new(BYTES_MAX)},
        .range = {.start_ms = ask->from_ns / NS_PER_MS, .end_ms = ask->until_ns / NS_PER_MS},
        .selector = selector_new(err),
    };
    w->range.selector = w->selector;
    if (w->query.arena == NULL || w->selector == NULL) {
        return err_memory(err);
    }
    bool ok = ask->service == NULL || selector_add(w->selector, SV(LABEL_SERVICE_NAME), MATCH_EQUAL,
                                                   sv_from(ask->service), err);
    for (size_t i = 0; i < ask->labels->n && ok; i++) {
        const struct flag_pair *label = &ask->labels->at[i];
        ok = selector_add(w->selector, label->name, MATCH_EQUAL, sv_from(label->value), err);
    }
    return ok;
}

static void work_done(struct work *w)
{
    arena_free(w->query.arena);
    selector_free(w->selector);
}

static json_t *list_values(struct query_peer *p, const struct query_ask *ask, const char *label,
                           struct err *err)
{
    struct work w;
    struct query_strings values;
    json_t *list = NULL;
    if (work_init(&w, p, ask, err) &&
        query_label_values(&w.query, &w.range, sv_from(label), &values, err)) {
        list = json_array();
        bool ok = list != NULL;
        for (size_t i = 0; i < values.n && ok; i++) {
            ok = json_array_append_new(list, json_stringn(values.at[i].p, values.at[i].n)) == 0;
        }
        if (!ok) {
            err_memory(err);
            json_decref(list);
            list = NULL;
        }
    }
    work_done(&w);
    return list;
}

static json_t *stored_services(struct query_peer *p, const struct query_ask *ask, struct err *err)
{
    return list_values(p, ask, LABEL_SERVICE_NAME, err);
}

static json_t *stored_types(struct query_peer *p, const struct query_ask *ask, struct err *err)
{
    return list_values(p, ask, TYPE_LABEL, err);
}

/* Appends the id of the type that is asked for; nothing if there are no profiles. */
static bool put_type(struct query_peer *p, const struct query_ask *ask, struct buf *out,
                     struct err *err)
{
    if (strchr(ask->type, ':') != NULL) {
        return buf_puts(out, ask->type) || err_memory(err);
    }
    json_t *ids = stored_types(p, ask, err);
    bool ok =
        ids != NULL && (json_array_size(ids) == 0 || query_choose_type(ids, ask->type, out, err));
    json_decref(ids);
    return ok;
}

static bool stored_merge(struct query_peer *p, const struct query_ask *ask, struct buf *ret,
                         struct err *err)
{
    struct work w;
    struct buf id;
    struct profile_type type;
    const struct query_profile_options options = {.max_nodes = 0};
    buf_init(&id, SELECTOR_BYTES_MAX);
    buf_init(ret, REMOTE_BODY_MAX);
    bool ok = work_init(&w, p, ask, err) && put_type(p, ask, &id, err);
    if (ok && id.len > 0) {
        ok = profile_type_parse((struct sv){id.data, id.len}, &type, err) &&
             query_profile(&w.query, &w.range, &type, &options, ret, err);
    }
    work_done(&w);
    buf_done(&id);
    if (!ok) {
        buf_done(ret);
    }
    return ok;
}

const struct query_source query_stored = {
    .name = "store",
    .services = stored_services,
    .types = stored_types,
    .merge = stored_merge,
};

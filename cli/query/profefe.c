/* profefe's API: GET /api/0/services, /api/0/profiles and /api/0/profiles/merge. */
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "cli/query/source.h"
#include "http/url.h"
#include "write/protocols/profefe.h"

#define QUERY_MAX ((size_t)32 * 1024)

static json_t *profefe_services(struct query_peer *p, const struct query_ask *ask, struct err *err)
{
    (void)ask;
    struct remote_request q = {.path = "/api/0/services", .nothing_is_404 = true};
    json_t *root = remote_fetch_json(p->remote, &q, err);
    json_t *list = json_object_get(root, "body");
    json_t *names = json_is_array(list) ? json_incref(list) : NULL;
    if (root != NULL && names == NULL) {
        err_set(err, ERR_REFUSED, "%s%s: the answer has no list \"body\"", p->name, q.path);
    } else if (root == NULL && err->kind == ERR_NONE && (names = json_array()) == NULL) {
        err_memory(err);
    }
    json_decref(root);
    return names;
}

/* Appends a time as whole seconds, in UTC without a zone. */
static void put_time(const char *name, int64_t ns, struct buf *out)
{
    char text[32];
    clock_format_rfc3339(ns, text, sizeof(text));
    buf_printf(out, "&%s=", name);
    url_encode((struct sv){text, strlen("2026-11-21T03:23:34")}, out);
}

/* Appends the labels, encoded twice, because the server decodes them twice. */
static void put_labels(const struct flag_pairs *labels, struct buf *out)
{
    struct buf once;
    buf_init(&once, QUERY_MAX);
    for (size_t i = 0; i < labels->n; i++) {
        buf_puts(&once, i > 0 ? "," : "");
        url_encode_pair(labels->at[i].name, sv_from(labels->at[i].value), &once);
    }
    buf_puts(out, "&labels=");
    url_encode((struct sv){once.data, once.len}, out);
    buf_done(&once);
}

/* Appends the query. The end is inclusive and in whole seconds, so it is rounded up. */
static bool put_query(const struct query_ask *ask, const char *type, struct buf *out,
                      struct err *err)
{
    buf_puts(out, "service=");
    url_encode(sv_from(ask->service), out);
    if (type != NULL) {
        buf_puts(out, "&type=");
        url_encode(sv_from(type), out);
    }
    put_time("from", ask->from_ns, out);
    put_time("to", ask->until_ns + NS_PER_S - 1, out);
    if (ask->labels->n > 0) {
        put_labels(ask->labels, out);
    }
    return buf_ok(out) || err_set(err, ERR_LIMIT, "the query has more than %zu bytes", QUERY_MAX);
}

static bool need_service(const struct query_ask *ask, struct err *err)
{
    return ask->service != NULL || err_set(err, ERR_INPUT, "profefe needs a --service");
}

/* Adds the type of a profile to those that were seen; false if out of memory. */
static bool add_type(json_t *types, const char *type)
{
    bool known = type == NULL;
    for (size_t i = 0; i < json_array_size(types) && !known; i++) {
        known = strcmp(json_string_value(json_array_get(types, i)), type) == 0;
    }
    return known || json_array_append_new(types, json_string(type)) == 0;
}

/* Returns the types of the stored profiles. The API has no list of types, so the list of profiles
 * is read. */
static json_t *profefe_types(struct query_peer *p, const struct query_ask *ask, struct err *err)
{
    struct buf query;
    struct err failed = ERR_INIT;
    json_t *root = NULL;
    buf_init(&query, QUERY_MAX);
    if (need_service(ask, &failed) && put_query(ask, NULL, &query, &failed)) {
        struct remote_request q = {
            .path = PROFEFE_PATH, .query = {query.data, query.len}, .nothing_is_404 = true};
        root = remote_fetch_json(p->remote, &q, &failed);
    }
    buf_done(&query);
    json_t *types = failed.kind == ERR_NONE ? json_array() : NULL;
    json_t *list = json_object_get(root, "body");
    bool ok = types != NULL;
    for (size_t i = 0; i < json_array_size(list) && ok; i++) {
        ok = add_type(types, json_string_value(json_object_get(json_array_get(list, i), "type")));
    }
    if (failed.kind != ERR_NONE) {
        *err = failed;
    } else if (!ok) {
        err_memory(err);
        json_decref(types);
        types = NULL;
    }
    json_decref(root);
    return types;
}

static bool profefe_merge(struct query_peer *p, const struct query_ask *ask, struct buf *ret,
                          struct err *err)
{
    struct buf query;
    buf_init(&query, QUERY_MAX);
    const struct config_type_name *row = config_type_name_find(sv_from(ask->type));
    const char *type = row == NULL ? NULL : config_builtin_type_find(sv_from(row->key))->profefe;
    bool ok =
        need_service(ask, err) && put_query(ask, type == NULL ? ask->type : type, &query, err);
    struct remote_request q = {
        .path = PROFEFE_PATH "/merge", .query = {query.data, query.len}, .nothing_is_404 = true};
    ok = ok && remote_fetch(p->remote, &q, ret, err);
    buf_done(&query);
    return ok;
}

const struct query_source query_profefe = {
    .name = "profefe",
    .services = profefe_services,
    .types = profefe_types,
    .merge = profefe_merge,
};

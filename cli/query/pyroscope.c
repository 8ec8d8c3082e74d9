/* querier.v1 of Pyroscope, and of profpull itself. Lists are requested as JSON. Profiles are
 * requested as protobuf, because then the message is the file. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/labels.h"
#include "cli/query/source.h"
#include "pprof/put.h"

#define QUERIER "/querier.v1.QuerierService/"
#define TYPE_LABEL "__profile_type__"
#define SELECTOR_MAX ((size_t)64 * 1024)
/* Fields of SelectMergeProfileRequest. */
enum { FIELD_TYPE = 1, FIELD_SELECTOR = 2, FIELD_START = 3, FIELD_END = 4, FIELD_STACKS = 6 };
/* Fields of StackTraceSelector and GoPGO. */
enum { FIELD_GO_PGO = 2, FIELD_KEEP_LOCATIONS = 1, FIELD_AGGREGATE_CALLEES = 2 };
#define PGO_LOCATIONS 5

static void put_matcher(struct sv name, const char *value, struct buf *out)
{
    buf_puts(out, out->len > 1 ? "," : "");
    buf_append(out, name.p, name.n);
    buf_putc(out, '=');
    json_quote(sv_from(value), out);
}

/* Appends a selector: {service_name="cart",pod="a"}. */
static bool put_selector(const struct query_ask *ask, struct buf *out, struct err *err)
{
    buf_putc(out, '{');
    if (ask->service != NULL) {
        put_matcher(SV(LABEL_SERVICE_NAME), ask->service, out);
    }
    for (size_t i = 0; i < ask->labels->n; i++) {
        put_matcher(ask->labels->at[i].name, ask->labels->at[i].value, out);
    }
    buf_putc(out, '}');
    return buf_ok(out) || err_memory(err);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static json_t *label_values(struct remote *r, const struct query_ask *ask, const char *label,
                            struct err *err)
{
    struct buf selector;
    struct buf body;
    json_t *names = NULL;
    buf_init(&selector, SELECTOR_MAX);
    buf_init(&body, SELECTOR_MAX * 8);
    if (put_selector(ask, &selector, err)) {
        buf_printf(&body, "{\"name\":\"%s\",\"matchers\":[", label);
        json_quote((struct sv){selector.data, selector.len}, &body);
        buf_printf(&body, "],\"start\":\"%" PRId64 "\",\"end\":\"%" PRId64 "\"}",
                   ask->from_ns / NS_PER_MS, ask->until_ns / NS_PER_MS);
        struct remote_request q = {.path = QUERIER "LabelValues",
                                   .content_type = "application/json",
                                   .body = {body.data, body.len}};
        json_t *root = remote_fetch_json(r, &q, err);
        if (root != NULL) {
            /* Pyroscope leaves the list out if it is empty. */
            json_t *list = json_object_get(root, "names");
            names = json_is_array(list) ? json_incref(list) : json_array();
        }
        json_decref(root);
    }
    buf_done(&selector);
    buf_done(&body);
    if (names == NULL && err->kind == ERR_NONE) {
        err_memory(err);
    }
    return names;
}

static json_t *pyroscope_services(struct query_peer *p, const struct query_ask *ask,
                                  struct err *err)
{
    return label_values(p->remote, ask, LABEL_SERVICE_NAME, err);
}

static json_t *pyroscope_types(struct query_peer *p, const struct query_ask *ask, struct err *err)
{
    return label_values(p->remote, ask, TYPE_LABEL, err);
}

/* ---- types ----------------------------------------------------------------------------------- */

/* Returns true if a type is the name (first part) or the sample type (second part) of an id. */
static bool is_called(struct sv id, const char *type)
{
    struct sv name;
    struct sv rest;
    struct sv sample_type;
    struct sv unit;
    return sv_cut(id, ':', &name, &rest) && sv_cut(rest, ':', &sample_type, &unit) &&
           (sv_eq_str(name, type) || sv_eq_str(sample_type, type));
}

static void list_ids(const json_t *ids, const char *type, struct buf *out)
{
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        if (id != NULL && (type == NULL || is_called(sv_from(id), type))) {
            buf_printf(out, "%s%s", out->len > 0 ? ", " : "", id);
        }
    }
}

static bool fail_type(const json_t *ids, const char *type, size_t found, struct err *err)
{
    struct buf list;
    buf_init(&list, ERR_MSG_MAX);
    list_ids(ids, found > 0 ? type : NULL, &list);
    if (found > 0) {
        (void)err_set(err, ERR_INPUT, "several types are called \"%s\": %s", type,
                      buf_ok(&list) ? list.data : "");
    } else {
        (void)err_set(err, ERR_INPUT, "no type is called \"%s\" in this time%s%s", type,
                      list.len > 0 ? ", only " : "", buf_ok(&list) ? list.data : "");
    }
    buf_done(&list);
    return false;
}

/* Returns true if an id begins with these parts. */
static bool begins(struct sv id, const char *parts)
{
    size_t n = strlen(parts);
    return sv_starts_with(id, sv_from(parts)) && id.n > n && id.p[n] == ':';
}

/* Finds the ids that a type means: by the table of names (parts), or by their own parts. Returns
 * their number and the last one. */
static size_t find_ids(const json_t *ids, const char *type, const char *parts,
                       const char **ret_chosen)
{
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        if (id != NULL &&
            (parts != NULL ? begins(sv_from(id), parts) : is_called(sv_from(id), type))) {
            *ret_chosen = id;
            found++;
        }
    }
    return found;
}

bool query_choose_type(const json_t *ids, const char *type, struct buf *out, struct err *err)
{
    const char *chosen = NULL;
    const struct config_type_name *row = config_type_name_find(sv_from(type));
    size_t found = row == NULL ? 0 : find_ids(ids, type, row->query, &chosen);
    if (found != 1) {
        found = find_ids(ids, type, NULL, &chosen);
    }
    if (found != 1) {
        return fail_type(ids, type, found, err);
    }
    return buf_puts(out, chosen) || err_memory(err);
}

/* Finds the id of a type. A type with colons is an id; any other type is looked up in the types of
 * the service. */
static bool find_type(struct remote *r, const struct query_ask *ask, struct buf *out,
                      struct err *err)
{
    if (strchr(ask->type, ':') != NULL) {
        return buf_puts(out, ask->type) || err_memory(err);
    }
    json_t *ids = label_values(r, ask, TYPE_LABEL, err);
    bool ok =
        ids != NULL && (json_array_size(ids) == 0 || query_choose_type(ids, ask->type, out, err));
    json_decref(ids);
    return ok;
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void put_stacks(struct buf *out)
{
    char bytes[32];
    struct buf pgo;
    buf_init(&pgo, sizeof(bytes));
    wire_put_number(&pgo, FIELD_KEEP_LOCATIONS, PGO_LOCATIONS);
    wire_put_number(&pgo, FIELD_AGGREGATE_CALLEES, 1);
    wire_put_head(out, FIELD_STACKS, wire_bytes_size(pgo.len));
    wire_put_bytes(out, FIELD_GO_PGO, pgo.data, pgo.len);
    buf_done(&pgo);
}

static bool select_merge(struct remote *r, const struct query_ask *ask, struct sv type, bool pgo,
                         struct buf *ret, struct err *err)
{
    struct buf selector;
    struct buf body;
    buf_init(&selector, SELECTOR_MAX);
    buf_init(&body, SELECTOR_MAX * 2);
    bool ok = put_selector(ask, &selector, err);
    wire_put_bytes(&body, FIELD_TYPE, type.p, type.n);
    wire_put_bytes(&body, FIELD_SELECTOR, selector.data, selector.len);
    wire_put_number(&body, FIELD_START, (uint64_t)(ask->from_ns / NS_PER_MS));
    wire_put_number(&body, FIELD_END, (uint64_t)(ask->until_ns / NS_PER_MS));
    if (pgo) {
        put_stacks(&body);
    }
    struct remote_request q = {.path = QUERIER "SelectMergeProfile",
                               .content_type = "application/proto",
                               .body = {body.data, body.len}};
    ok = ok && (buf_ok(&body) || err_memory(err)) && remote_fetch(r, &q, ret, err);
    buf_done(&selector);
    buf_done(&body);
    return ok;
}

static bool merge(struct remote *r, const struct query_ask *ask, bool pgo, struct buf *ret,
                  struct err *err)
{
    struct buf type;
    buf_init(&type, SELECTOR_MAX);
    bool ok = find_type(r, ask, &type, err);
    if (ok && type.len == 0) {
        buf_init(ret, 0); /* no profile was found */
    } else if (ok) {
        ok = select_merge(r, ask, (struct sv){type.data, type.len}, pgo, ret, err);
    }
    buf_done(&type);
    return ok;
}

static bool pyroscope_merge(struct query_peer *p, const struct query_ask *ask, struct buf *ret,
                            struct err *err)
{
    return merge(p->remote, ask, false, ret, err);
}

bool query_pyroscope_pgo(struct remote *r, const struct query_ask *ask, struct buf *ret,
                         struct err *err)
{
    return merge(r, ask, true, ret, err);
}

const struct query_source query_pyroscope = {
    .name = "pyroscope",
    .services = pyroscope_services,
    .types = pyroscope_types,
    .merge = pyroscope_merge,
};

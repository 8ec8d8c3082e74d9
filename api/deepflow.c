#include "api/deepflow.h"

#include <jansson.h>
#include <string.h>

#include "api/deepflow_reply.h"
#include "api/deepflow_tree.h"
#include "api/pprof_reply.h"
#include "api/served.h"
#include "base/clock.h"

#define STATUS_BAD 400
/* The latest time in seconds that fits into int64_t nanoseconds. */
#define SECONDS_MAX (INT64_MAX / NS_PER_S)

/* ---- the envelope ---------------------------------------------------------------------------- */

static void put_envelope(struct exchange *x, const char *status, struct sv description)
{
    buf_printf(&x->reply, "{\"OPT_STATUS\":\"%s\"", status);
    json_member("DESCRIPTION", description, &x->reply);
    buf_puts(&x->reply, ",\"result\":");
    x->content_type = "application/json; charset=utf-8";
}

static void end_envelope(struct exchange *x, bool debug)
{
    buf_puts(&x->reply, debug ? ",\"debug\":{\"querier_debug\":[],\"format_time\":\"\"}}"
                              : ",\"debug\":null}");
}

static void fail(struct exchange *x, int status, const char *name, const struct err *err)
{
    buf_clear(&x->reply);
    put_envelope(x, name, sv_from(err->msg));
    buf_puts(&x->reply, "null");
    end_envelope(x, false);
    x->status = status;
}

/* Clients know only status 500 with FAIL. Errors of our limits have statuses of their own. */
static void fail_query(struct exchange *x, const struct err *err)
{
    fail(x, query_error_status(err), "FAIL", err);
}

/* ---- the question ---------------------------------------------------------------------------- */

static bool read_text(const json_t *root, const char *name, bool required, struct sv *ret,
                      struct err *err)
{
    const json_t *value = json_object_get(root, name);
    if (value != NULL && !json_is_null(value) && !json_is_string(value)) {
        return err_set(err, ERR_INPUT, "%s: expected a string", name);
    }
    *ret = (struct sv){json_string_value(value), json_string_length(value)};
    return ret->n > 0 || !required || err_set(err, ERR_INPUT, "%s is required", name);
}

static bool read_int(const json_t *root, const char *name, int64_t *ret, struct err *err)
{
    const json_t *value = json_object_get(root, name);
    if (value != NULL && !json_is_null(value) && !json_is_integer(value)) {
        return err_set(err, ERR_INPUT, "%s: expected an integer", name);
    }
    *ret = json_integer_value(value);
    return true;
}

/* Reads seconds since 1970. DeepFlow takes 0 for a missing time. */
static bool read_time(const json_t *root, const char *name, int64_t *ret_s, struct err *err)
{
    if (!read_int(root, name, ret_s, err)) {
        return false;
    }
    if (*ret_s == 0) {
        return err_set(err, ERR_INPUT, "%s is required", name);
    }
    return (*ret_s > 0 && *ret_s < SECONDS_MAX) ||
           err_set(err, ERR_INPUT, "%s: expected seconds since 1970, got %lld", name,
                   (long long)*ret_s);
}

static bool read_bool(const json_t *root, const char *name, bool *ret, struct err *err)
{
    const json_t *value = json_object_get(root, name);
    *ret = json_is_true(value);
    return value == NULL || json_is_null(value) || json_is_boolean(value) ||
           err_set(err, ERR_INPUT, "%s: expected true or false", name);
}

/* Checks the types of the members that have no effect. */
static bool read_unused(const json_t *root, struct err *err)
{
    struct sv group_by;
    int64_t depth;
    return read_text(root, "group_by", false, &group_by, err) &&
           read_int(root, "max_kernel_stack_depth", &depth, err);
}

static bool read_question(const json_t *root, struct deepflow_question *q, struct sv *ret_filter,
                          bool *ret_debug, struct err *err)
{
    int64_t from_s = 0;
    int64_t until_s = 0;
    if (!json_is_object(root)) {
        return err_set(err, ERR_INPUT, "expected an object");
    }
    if (!read_text(root, "app_service", false, &q->service, err) ||
        !read_text(root, "profile_event_type", true, &q->event, err) ||
        !read_text(root, "profile_language_type", true, &q->language, err) ||
        !read_text(root, "tag_filter", false, ret_filter, err) ||
        !read_time(root, "time_start", &from_s, err) ||
        !read_time(root, "time_end", &until_s, err) || !read_bool(root, "debug", ret_debug, err) ||
        !read_unused(root, err)) {
        return false;
    }
    q->from_ns = from_s * NS_PER_S;
    q->until_ns = until_s * NS_PER_S + NS_PER_S - 1;
    return true;
}

static json_t *read_body(const struct exchange *x, struct err *err)
{
    struct buf inflated;
    struct sv body = SV("");
    json_error_t problem;
    json_t *root = NULL;
    buf_init(&inflated, DEEPFLOW_BODY_MAX);
    if (exchange_inflate(x, &inflated, &body, err)) {
        root = json_loadb(body.p, body.n, 0, &problem);
        if (root == NULL) {
            (void)err_set(err, ERR_INPUT, "line %d, column %d: %s", problem.line, problem.column,
                          problem.text);
        }
    }
    buf_done(&inflated);
    return root;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Appends the name of the root: the service that is asked for, or the services that the filter
 * leaves. */
static bool name_root(const struct exchange *x, const struct deepflow_question *q, struct buf *ret,
                      struct err *err)
{
    size_t n = 0;
    if (q->service.n > 0) {
        return buf_append(ret, q->service.p, q->service.n) || err_memory(err);
    }
    if (!deepflow_services(x, q, ret, &n, err)) {
        return false;
    }
    return (n > 0 && n <= DEEPFLOW_SERVICES_MAX) ||
           err_set(err, ERR_INPUT, "app_service count %zu is invalid", n);
}

static bool put_result(struct exchange *x, const struct deepflow_question *q, struct sv root,
                       struct err *err)
{
    struct tree *t = deepflow_tree(x, q, err);
    struct arena *arena = arena_new(x->bytes_max);
    bool ok = t != NULL && (arena != NULL || err_memory(err));
    if (ok && sv_eq_str(request_param(x->request, "format"), "list")) {
        ok = deepflow_put_list(t, root, &x->reply, err);
    } else if (ok) {
        ok = deepflow_put_columns(t, root, q->event, arena, &x->reply, err);
    }
    arena_free(arena);
    tree_free(t);
    return ok;
}

static void answer(struct exchange *x, const struct deepflow_question *q, bool debug)
{
    struct err err = ERR_INIT;
    struct buf root;
    buf_init(&root, DEEPFLOW_BODY_MAX);
    put_envelope(x, "SUCCESS", SV(""));
    bool ok =
        name_root(x, q, &root, &err) && put_result(x, q, (struct sv){root.data, root.len}, &err);
    buf_done(&root);
    if (!ok) {
        fail_query(x, &err);
        return;
    }
    end_envelope(x, debug);
    exchange_deflate(x);
}

static void deepflow_tracing(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct deepflow_question q = {.filter = NULL};
    struct sv filter = SV("");
    bool debug = false;
    json_t *root = read_body(x, &err);
    if (root == NULL || !read_question(root, &q, &filter, &debug, &err)) {
        fail(x, STATUS_BAD, "INVALID_POST_DATA", &err);
    } else if (x->options->served->store == NULL) {
        (void)err_set(&err, ERR_SYSTEM, "no profiles are stored here: no destination is a store");
        fail_query(x, &err);
    } else if ((q.filter = tag_filter_parse(filter, &err)) == NULL) {
        fail(x, STATUS_INTERNAL, "FAIL", &err);
    } else {
        answer(x, &q, debug);
    }
    tag_filter_free(q.filter);
    json_decref(root);
}

const struct route deepflow_routes[] = {
    {.path = "/v1/profile/ProfileTracing",
     .set = ROUTE_QUERY,
     .methods = ROUTE_POST,
     .work = deepflow_tracing},
    {.path = NULL},
};

#include "api/profefe.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/ask.h"
#include "api/pprof_reply.h"
#include "api/profefe_merge.h"
#include "api/profefe_params.h"
#include "api/route_errors.h"
#include "api/served.h"
#include "base/clock.h"
#include "write/protocols/profefe.h"

#define STATUS_BAD 400
#define STATUS_NO_METHOD 405
#define NOTHING "nothing found"
#define PROFILES_BELOW PROFEFE_PATH "/"
#define TEXT_MAX ((size_t)64 * 1024)

/* ---- the question ---------------------------------------------------------------------------- */

/* The parameters of a list or a merge. */
struct question {
    struct sv service;
    /* one of profefe's types; NULL: an unknown type, or none, which in a list means all types */
    const char *type;
    struct store_range range;
    size_t limit; /* 0: no limit */
    struct selector *selector;
    struct label *labels;
    size_t n_labels;
};

static const char *known_type(struct sv text)
{
    static const char *const types[] = {"cpu",       "heap",         "block", "mutex",
                                        "goroutine", "threadcreate", "other", "trace"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sv_eq_str(text, types[i])) {
            return types[i];
        }
    }
    return NULL;
}

/* Formats a time as Go prints it: "2026-11-22 02:30:00.5 +0000 UTC". */
static void format_time(int64_t ns, char *out, size_t size)
{
    char fraction[16] = "";
    char seconds[32] = "";
    struct tm tm;
    time_t s = (time_t)(ns / NS_PER_S);
    int64_t rest = ns % NS_PER_S;
    if (rest != 0) {
        int n = snprintf(fraction, sizeof(fraction), ".%09" PRId64, rest);
        while (n > 0 && fraction[n - 1] == '0') {
            fraction[--n] = '\0';
        }
    }
    if (gmtime_r(&s, &tm) != NULL) {
        (void)strftime(seconds, sizeof(seconds), "%Y-%m-%d %H:%M:%S", &tm);
    }
    (void)snprintf(out, size, "%s%s +0000 UTC", seconds, fraction);
}

static bool read_time(const struct request *r, const char *name, int64_t *ret_ns, struct err *err)
{
    struct sv text = request_param(r, name);
    if (text.n == 0) {
        return err_set(err, ERR_INPUT, "missing \"%s\"", name);
    }
    return profefe_time(text, ret_ns, err) || profefe_wrap(err, name, " timestamp", text);
}

static bool read_range(const struct request *r, struct store_range *ret, struct err *err)
{
    char from[64];
    char until[64];
    if (!read_time(r, "from", &ret->from_ns, err) || !read_time(r, "to", &ret->until_ns, err)) {
        return false;
    }
    if (ret->from_ns <= ret->until_ns) {
        return true;
    }
    format_time(ret->from_ns, from, sizeof(from));
    format_time(ret->until_ns, until, sizeof(until));
    return err_set(err, ERR_INPUT, "CreatedAtMin after CreatedAtMax: %s, %s", from, until);
}

/* Reads `limit`, a decimal integer as Go's strconv.Atoi parses it. Values below 1 mean "no limit".
 */
static bool read_limit(const struct request *r, size_t *ret, struct err *err)
{
    struct sv text = request_param(r, "limit");
    bool negative = text.n > 0 && text.p[0] == '-';
    bool sign = negative || (text.n > 0 && text.p[0] == '+');
    uint64_t value = 0;
    if (text.n > 0 && !parse_u64(sv_skip(text, sign ? 1 : 0), INT64_MAX, &value)) {
        return err_set(err, ERR_INPUT,
                       "bad \"limit\" \"%.*s\": strconv.Atoi: parsing \"%.*s\": invalid syntax",
                       SV_ARG(text), SV_ARG(text));
    }
    *ret = negative ? 0 : (size_t)value;
    return true;
}

/* Adds a matcher for the values of `__name__` that belong to one of profefe's types. */
static bool select_type(struct selector *s, const char *type, struct err *err)
{
    struct buf names;
    bool other = strcmp(type, "other") == 0;
    buf_init(&names, TEXT_MAX);
    bool ok = profefe_names(other ? NULL : type, &names) || err_memory(err);
    ok = ok && selector_add(s, SV(LABEL_NAME), other ? MATCH_NOT_REGEX : MATCH_REGEX,
                            (struct sv){names.data, names.len}, err);
    buf_done(&names);
    return ok;
}

static bool make_selector(struct question *q, struct err *err)
{
    q->selector = selector_new(err);
    q->range.selector = q->selector;
    bool ok = q->selector != NULL &&
              selector_add(q->selector, SV(LABEL_SERVICE_NAME), MATCH_EQUAL, q->service, err);
    for (size_t i = 0; i < q->n_labels && ok; i++) {
        ok = selector_add(q->selector, q->labels[i].name, MATCH_EQUAL, q->labels[i].value, err);
    }
    return ok && (q->type == NULL || select_type(q->selector, q->type, err));
}

/* Reads the question. The error is the text that follows "bad request: ". */
static bool read_question(const struct exchange *x, struct arena *arena, struct question *q,
                          struct err *err)
{
    const struct request *r = x->request;
    struct sv labels = request_param(r, "labels");
    *q = (struct question){.service = request_param(r, "service")};
    q->type = known_type(sv_trim(request_param(r, "type")));
    if (q->service.n == 0) {
        return err_set(err, ERR_INPUT, "missing \"service\"");
    }
    if (!read_range(r, &q->range, err) || !read_limit(r, &q->limit, err)) {
        return false;
    }
    return profefe_labels(labels, arena, &q->labels, &q->n_labels, err) ||
           profefe_wrap(err, "labels", "", labels);
}

static void fail_question(struct exchange *x, const struct err *err)
{
    if (err->kind == ERR_INPUT) {
        profefe_fail(x, STATUS_BAD, "bad request: %s", err->msg);
    } else {
        profefe_fail(x, query_error_status(err), "%s", err->msg);
    }
}

static void fail_query(struct exchange *x, const struct err *err)
{
    profefe_fail(x, query_error_status(err), "%s", err->msg);
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct item {
    int64_t time_ns;
    size_t number; /* in the order of the scan */
    struct sv text;
};

struct list {
    const struct exchange *x;
    const struct question *question;
    struct arena *arena;
    struct item *items; /* max + 1 elements: one more than is shown says that there are more */
    size_t n;
    size_t max;
    struct err *err;
    bool failed;
};

static bool add_item(struct list *l, const struct store_body *body)
{
    struct buf text;
    struct sv name = SV("");
    for (size_t i = 0; i < body->n_labels; i++) {
        if (sv_eq_str(body->labels[i].name, LABEL_NAME)) {
            name = body->labels[i].value;
        }
    }
    struct profefe_profile p = {
        .id = sv_from(body->id),
        .type = profefe_type(name),
        .service = l->question->service,
        .labels = body->labels,
        .n_labels = body->n_labels,
        .time_ns = body->from_ns,
    };
    buf_init(&text, l->x->bytes_max);
    bool ok = profefe_put_profile(&p, &text);
    const char *copy = ok ? arena_strndup(l->arena, text.data, text.len) : NULL;
    l->items[l->n] = (struct item){p.time_ns, l->n, {copy, text.len}};
    buf_done(&text);
    return copy != NULL;
}

static bool profefe_on_body(void *arg, const struct store_body *body)
{
    struct list *l = arg;
    if (exchange_is_over(l->x, l->err)) {
        l->failed = true;
        return false;
    }
    l->failed = !add_item(l, body);
    if (l->failed) {
        (void)err_set(l->err, ERR_LIMIT, "the list needs more memory than query.max_bytes");
        return false;
    }
    l->n++;
    return true;
}

/* The oldest comes first. Of the same time, that is the one that the scan has visited last. */
static int by_age(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    if (x->time_ns != y->time_ns) {
        return x->time_ns < y->time_ns ? -1 : 1;
    }
    return x->number > y->number ? -1 : x->number < y->number;
}

static bool collect(struct list *l, struct err *err)
{
    size_t limit = l->question->limit;
    l->max = limit > 0 && limit < PROFEFE_LIST_MAX ? limit : PROFEFE_LIST_MAX;
    l->items = arena_array(l->arena, l->max + 1, sizeof(*l->items));
    if (l->items == NULL) {
        return err_memory(err);
    }
    struct store_scan scan = {
        .range = l->question->range, .newest_first = true, .limit = l->max + 1};
    scan.range.partial = l->x->partial;
    scan.range.peers = ask_peers(l->x, l->x->deadline_ms);
    bool ok =
        store_each_body(l->x->options->served->store, &scan, profefe_on_body, l, err) && !l->failed;
    if (ok && l->n > 0) {
        qsort(l->items, l->n, sizeof(l->items[0]), by_age);
    }
    return ok;
}

static void put_list(struct exchange *x, const struct list *l)
{
    buf_puts(&x->reply, "{\"code\":200,\"body\":[");
    bool more = l->n > l->max;
    for (size_t i = more ? 1 : 0; i < l->n; i++) {
        buf_append(&x->reply, l->items[i].text.p, l->items[i].text.n);
        buf_puts(&x->reply, i + 1 < l->n ? "," : "");
    }
    buf_puts(&x->reply, "]}\n");
    x->content_type = "application/json";
    /* A list that ends at the limit of the client is not truncated: the client expects no more. */
    if (more && l->max != l->question->limit) {
        buf_puts(&x->headers, "X-Profpull-Truncated: true\r\n");
        metric_inc(metrics_single(x->options->metrics, METRIC_COUNTER,
                                  "profpull_query_lists_truncated_total",
                                  "Lists of profefe's API with only the newest 10,000 profiles of "
                                  "more"));
    }
    exchange_deflate(x);
}

static void reply_list(struct exchange *x, struct arena *arena)
{
    struct err err = ERR_INIT;
    struct question q;
    struct list l = {.x = x, .question = &q, .arena = arena, .err = &err};
    if (!read_question(x, arena, &q, &err)) {
        fail_question(x, &err);
        return;
    }
    if (!make_selector(&q, &err) || !collect(&l, &err)) {
        fail_query(x, &err);
    } else if (l.n == 0) {
        profefe_fail(x, STATUS_NOT_FOUND, NOTHING);
    } else {
        put_list(x, &l);
    }
    selector_free(q.selector);
}

/* ---- merges and single profiles -------------------------------------------------------------- */

static void reply_merge(struct exchange *x, struct arena *arena)
{
    struct err err = ERR_INIT;
    struct question q;
    if (!read_question(x, arena, &q, &err)) {
        fail_question(x, &err);
    } else if (q.type == NULL || strcmp(q.type, "trace") == 0) {
        profefe_fail(x, STATUS_NO_METHOD, "can't merge profiles of %s type",
                     q.type == NULL ? "unknown" : q.type);
    } else {
        size_t n = 0;
        bool ok = make_selector(&q, &err) && profefe_merge_range(x, &q.range, q.limit, &n, &err);
        if (!ok) {
            fail_query(x, &err);
        } else if (n == 0) {
            profefe_fail(x, STATUS_NOT_FOUND, NOTHING);
        }
        pprof_reply_name(x, sv_from(q.type));
        selector_free(q.selector);
    }
    if (x->status != STATUS_OK) {
        pprof_reply_explain(x);
    }
}

/* Returns true for an id: a UUID, as in lists, or an xid, as in responses to POST. */
static bool is_id(struct sv id)
{
    uint32_t second;
    uint64_t hash;
    if (id.n != STORE_ID_LENGTH) {
        return profefe_id_parse(id, &second, &hash);
    }
    for (size_t i = 0; i < id.n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (id.p[i] == '\0' || strchr(dash ? "-" : "0123456789abcdef", id.p[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static bool are_ids(struct sv ids, size_t *ret_n)
{
    struct sv id = ids;
    bool more = true;
    *ret_n = 0;
    while (more) {
        id = ids;
        more = sv_cut(ids, '+', &id, &ids);
        if (!is_id(id)) {
            return false;
        }
        (*ret_n)++;
    }
    return true;
}

static void reply_by_id(struct exchange *x, struct sv ids)
{
    struct err err = ERR_INIT;
    size_t n;
    bool found = false;
    if (!are_ids(ids, &n)) {
        profefe_fail(x, STATUS_BAD, "failed to get profile by id \"%.*s\"", SV_ARG(ids));
    } else {
        bool ok =
            n == 1 ? profefe_get(x, ids, &found, &err) : profefe_merge_ids(x, ids, &found, &err);
        if (!ok) {
            fail_query(x, &err);
        } else if (!found) {
            profefe_fail(x, STATUS_NOT_FOUND, NOTHING);
        }
        pprof_reply_name(x, ids);
    }
    if (x->status != STATUS_OK) {
        pprof_reply_explain(x);
    }
}

/* ---- the others ------------------------------------------------------------------------------ */

static void reply_services(struct exchange *x, struct arena *arena)
{
    struct err err = ERR_INIT;
    struct query q;
    struct query_range range;
    struct query_strings names = {.n = 0};
    if (exchange_whole_time(x, &range) &&
        (!ask_query(x, x->deadline_ms, arena, NULL, &q, &err) ||
         !query_label_values(&q, &range, SV(LABEL_SERVICE_NAME), &names, &err))) {
        fail_query(x, &err);
        return;
    }
    if (names.n == 0) {
        profefe_fail(x, STATUS_NOT_FOUND, NOTHING);
        return;
    }
    buf_puts(&x->reply, "{\"code\":200,\"body\":[");
    for (size_t i = 0; i < names.n; i++) {
        buf_puts(&x->reply, i > 0 ? "," : "");
        json_quote(names.at[i], &x->reply);
    }
    buf_puts(&x->reply, "]}\n");
    x->content_type = "application/json";
    exchange_deflate(x);
}

static void profefe_version(struct exchange *x)
{
    buf_puts(&x->reply, "{\"code\":200,\"body\":{");
    json_member("version", sv_from(x->options->served->version), &x->reply);
    buf_puts(&x->reply, ",\"commit\":\"\",\"build_time\":\"\",\"go_version\":\"\"}}\n");
    x->content_type = "application/json";
}

static void profefe_nothing(struct exchange *x)
{
    profefe_fail(x, STATUS_NOT_FOUND, NOTHING);
}

/* Calls a handler with an arena for its results. */
static void with_arena(struct exchange *x, void (*reply)(struct exchange *x, struct arena *arena))
{
    if (x->options->served->store == NULL) {
        profefe_fail(x, STATUS_NOT_FOUND, "no profiles are stored here: no destination is a store");
        return;
    }
    struct arena *arena = arena_new(x->bytes_max / 2);
    if (arena == NULL) {
        profefe_fail(x, STATUS_UNAVAILABLE, "out of memory");
        return;
    }
    reply(x, arena);
    arena_free(arena);
    if (!buf_ok(&x->reply)) {
        profefe_fail(x, STATUS_BUSY, "the answer is larger than query.max_bytes");
    }
}

static void profefe_list(struct exchange *x)
{
    with_arena(x, reply_list);
}

static void profefe_merge(struct exchange *x)
{
    with_arena(x, reply_merge);
}

static void profefe_services(struct exchange *x)
{
    with_arena(x, reply_services);
}

static void get_by_path(struct exchange *x, struct arena *arena)
{
    struct sv ids = sv_skip(x->request->path, sizeof(PROFILES_BELOW) - 1);
    if (ids.n == 0) {
        reply_list(x, arena);
    } else {
        reply_by_id(x, ids);
    }
}

static void profefe_by_path(struct exchange *x)
{
    with_arena(x, get_by_path);
}

#define ROW(p, ...)                                                                                \
    {                                                                                              \
        .path = (p), .set = ROUTE_QUERY, .errors = profefe_route_error, __VA_ARGS__                \
    }

const struct route profefe_routes[] = {
    ROW(PROFEFE_PATH, .work = profefe_list, .methods = ROUTE_GET),
    ROW(PROFEFE_PATH "/merge", .work = profefe_merge, .methods = ROUTE_GET),
    ROW(PROFILES_BELOW, .work = profefe_by_path, .methods = ROUTE_GET, .is_prefix = true),
    ROW("/api/0/services", .work = profefe_services, .methods = ROUTE_GET),
    ROW("/api/0/version", .work = profefe_version, .methods = ROUTE_GET),
    ROW("/api/0/", .work = profefe_nothing, .methods = ROUTE_GET, .is_prefix = true),
    {.path = NULL},
};

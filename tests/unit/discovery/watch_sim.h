/* The list-and-watch machine with a scripted server, for its tests: each step begins the next
 * request and answers it. No socket, no clock. */
#ifndef PROFPULL_TESTS_WATCH_SIM_H
#define PROFPULL_TESTS_WATCH_SIM_H

#include "tests/unit/lib/kube_objects.h"

#include <stdlib.h>

#include "discovery/kubernetes/api_status.h"
#include "discovery/kubernetes/roles.h"
#include "discovery/kubernetes/watch.h"

#define OBJECT_MAX 2000

/* Answers that can be are sent in protobuf. */
static bool sim_protobuf;

/* A scripted server: each step begins the next request and answers it. */
struct sim {
    struct watch *w;
    bool synced; /* a list has been completed */
    struct rng rng;
    int64_t now;
    int64_t waited; /* before the current request */
    bool is_watch;
    const char *accept;
    int64_t timeout_ms;
    int64_t progress_timeout_ms;
    bool no_memory;   /* for a pod called "heavy" */
    struct buf query; /* timeoutSeconds as "T" */
    struct buf out;   /* the calls of the handler, one word each */
    enum watch_result result;
    struct err err;
};

/* ---- the handler records its calls ----------------------------------------------------------- */

static inline void on_list_begin(void *arg)
{
    buf_puts(&((struct sim *)arg)->out, "begin ");
}

static inline void on_list_end(void *arg)
{
    struct sim *s = arg;
    s->synced = true;
    buf_puts(&s->out, "end ");
}

static inline bool on_object(void *arg, enum discovery_event event,
                             const struct kube_object *object)
{
    struct sim *s = arg;
    static const char *const marks[] = {
        [EVENT_LISTED] = "L:",
        [EVENT_ADDED] = "A:",
        [EVENT_MODIFIED] = "M:",
        [EVENT_DELETED] = "D:",
    };
    struct sv name = object->metadata.name;
    if (sv_eq_str(name, "heavy") && s->no_memory) {
        return false;
    }
    buf_printf(&s->out, "%s%.*s ", marks[event], SV_ARG(name.n == 0 ? SV("?") : name));
    return true;
}

static inline void on_other(void *arg, enum discovery_event event, struct sv type)
{
    struct sim *s = arg;
    if (event == EVENT_UNKNOWN) {
        buf_printf(&s->out, "unknown:%.*s ", SV_ARG(type));
    } else {
        buf_puts(&s->out, event == EVENT_BOOKMARK ? "bookmark " : "error ");
    }
}

static inline void on_skipped(void *arg, enum discovery_skip why)
{
    buf_printf(&((struct sim *)arg)->out, "skip%d ", (int)why);
}

static inline void on_relist(void *arg, enum watch_relist reason)
{
    buf_printf(&((struct sim *)arg)->out, "relist:%s ", watch_relist_name(reason));
}

static inline void on_slow(void *arg)
{
    buf_puts(&((struct sim *)arg)->out, "slow ");
}

static inline void setup_kind(struct sim *s, const char *selectors, size_t object_max,
                              uint64_t list_bytes_max, const char *kind, bool metadata_only)
{
    *s = (struct sim){.now = 1000000};
    buf_init(&s->query, 1 << 16);
    buf_init(&s->out, 1 << 16);
    rng_seed(&s->rng, 1);
    s->w = watch_new(&(struct watch_options){
        .handler = {.list_begin = on_list_begin,
                    .list_end = on_list_end,
                    .object = on_object,
                    .other = on_other,
                    .skipped = on_skipped,
                    .relist = on_relist,
                    .slow = on_slow,
                    .arg = s},
        .rng = &s->rng,
        .selectors = selectors,
        .object_max = object_max,
        .depth_max = 16,
        .rows = kube_namespaces.rows,
        .list_bytes_max = list_bytes_max,
        .kind = kind,
        .metadata_only = metadata_only,
    });
    assert_non_null(s->w);
}

static inline void setup_limited(struct sim *s, const char *selectors, size_t object_max,
                                 uint64_t list_bytes_max)
{
    setup_kind(s, selectors, object_max, list_bytes_max, NULL, false);
}

static inline void setup_streaming(struct sim *s, const char *selectors, size_t object_max)
{
    setup_limited(s, selectors, object_max, 0);
}

static inline void teardown(struct sim *s)
{
    watch_free(s->w);
    buf_done(&s->query);
    buf_done(&s->out);
}

SCOPED_VALUE(sim, teardown)

/* ---- steps ----------------------------------------------------------------------------------- */

/* Waits until the next request is due and begins it; checks its random timeout, which becomes T. */
static inline void begin(struct sim *s)
{
    int64_t at = watch_next_at(s->w);
    s->waited = at > s->now ? at - s->now : 0;
    s->now += s->waited;
    struct watch_request request;
    assert_true(watch_begin(s->w, s->now, &request));
    s->is_watch = request.is_watch;
    s->accept = request.accept;
    s->timeout_ms = request.timeout_ms;
    s->progress_timeout_ms = request.progress_timeout_ms;
    buf_clear(&s->query);
    static const char key[] = "timeoutSeconds=";
    const char *timeout = strstr(request.query, key);
    if (timeout == NULL) {
        buf_puts(&s->query, request.query);
        return;
    }
    timeout += strlen(key);
    size_t digits = strspn(timeout, "0123456789");
    uint64_t seconds;
    assert_true(parse_u64((struct sv){timeout, digits}, 1000, &seconds));
    assert_in_range(seconds, 300, 600);
    CHECK_INT(request.timeout_ms, (int64_t)seconds * 1000 + 30000, "timeout");
    buf_append(&s->query, request.query, (size_t)(timeout - request.query));
    buf_printf(&s->query, "T%s", timeout + digits);
}

struct answer {
    long status;
    const char *body;
    const char *content_type; /* NULL: as the body is */
    enum http_result result;
    int64_t lasted_ms;
    int64_t retry_after_ms; /* 0: none */
};

/* Writes the JSON of a list, an event or a Status as protobuf. */
static inline void put_document(struct buf *out, const json_t *json)
{
    SCOPED(buf) object = testing_buf(1 << 20);
    const json_t *event = json_object_get(json, "object");
    const json_t *inner = event == NULL ? json : event;
    json_t *items = json_object_get(inner, "items");
    const json_t *given = json_object_get(inner, "kind");
    const char *kind = json_string_value(given);
    if (items != NULL) {
        static const struct schema_row metadata_rows[] = {
            {.name = "resourceVersion", .number = 2, .kind = SCHEMA_TEXT},
            {.name = "continue", .number = 3, .kind = SCHEMA_TEXT},
            SCHEMA_END,
        };
        const struct schema_row rows[] = {
            {.name = "metadata", .number = 1, .kind = SCHEMA_PART, .members = metadata_rows},
            {.name = "items", .number = 2, .kind = SCHEMA_LIST, .members = kube_namespaces.rows},
            SCHEMA_END,
        };
        proto_put_object(&object, rows, inner);
    } else {
        const char *type = json_string_value(json_object_get(json, "type"));
        bool is_status = (kind != NULL && strcmp(kind, "Status") == 0) ||
                         (type != NULL && strcmp(type, "ERROR") == 0);
        proto_put_object(&object, is_status ? api_status_rows : kube_namespaces.rows, inner);
    }
    SCOPED(buf) whole = testing_buf(1 << 20);
    proto_put_envelope(&whole, kind == NULL ? "" : kind, (struct sv){object.data, object.len});
    if (event == NULL) {
        buf_append(out, whole.data, whole.len);
    } else {
        proto_put_event(out, json_string_value(json_object_get(json, "type")),
                        (struct sv){whole.data, whole.len});
    }
}

/* False if the text is not JSON of this kind from end to end: only JSON can be damaged like that.
 */
static inline bool make_protobuf(const char *text, struct buf *out)
{
    size_t left = strlen(text);
    while (left > 0) {
        json_error_t error;
        json_t *json = json_loadb(text, left, JSON_DISABLE_EOF_CHECK, &error);
        if (!json_is_object(json) || (json_object_get(json, "type") != NULL &&
                                      (!json_is_string(json_object_get(json, "type")) ||
                                       !json_is_object(json_object_get(json, "object"))))) {
            json_decref(json);
            return false;
        }
        put_document(out, json);
        json_decref(json);
        text += error.position;
        left -= (size_t)error.position;
        size_t space = strspn(text, " \r\n");
        text += space;
        left -= space;
    }
    return true;
}

static inline void answer(struct sim *s, struct answer a)
{
    bool go_on = true;
    struct buf body = testing_buf(1 << 22);
    bool protobuf = sim_protobuf && a.body != NULL && make_protobuf(a.body, &body);
    if (!protobuf) {
        buf_clear(&body);
        buf_puts(&body, a.body == NULL ? "" : a.body);
    }
    if (a.status != 0) {
        watch_head(s->w, a.status,
                   a.content_type != NULL ? a.content_type
                   : protobuf             ? "application/vnd.kubernetes.protobuf"
                                          : "application/json");
    }
    /* In small pieces, the way a network might. */
    size_t n = body.len;
    for (size_t i = 0; i < n && go_on; i += 7) {
        go_on = watch_data(s->w, s->now, body.data + i, n - i < 7 ? n - i : 7);
    }
    buf_done(&body);
    s->now += a.lasted_ms;
    struct watch_outcome outcome = {
        .result = go_on ? a.result : HTTP_ERR_ABORTED,
        .status = a.status,
        .retry_after_ms = a.retry_after_ms == 0 ? -1 : a.retry_after_ms,
        .error = "no luck",
    };
    err_clear(&s->err);
    s->result = watch_end(s->w, &outcome, s->now, &s->err);
    assert_int_equal(s->result == WATCH_DONE, s->err.kind == ERR_NONE);
}

#define STEP(s, ...) (begin(s), answer((s), (struct answer){__VA_ARGS__}))

/* The server has refused to stream lists: the lists of most tests are read in pages. */
static inline void setup_sized(struct sim *s, const char *selectors, size_t object_max)
{
    setup_streaming(s, selectors, object_max);
    STEP(s, .status = 422);
    CHECK_INT(s->result, WATCH_UNSUPPORTED, "");
    CHECK_INT(watch_next_at(s->w), s->now, "at once");
    buf_clear(&s->out);
}

static inline void setup(struct sim *s, const char *selectors)
{
    setup_sized(s, selectors, OBJECT_MAX);
}

static inline void check_out(struct sim *s, const char *want, const char *row)
{
    CHECK_STR(s->out.data, want, row);
    buf_clear(&s->out);
}

/* Defines main() for a program that runs all its cases with answers in JSON, and then in protobuf.
 */
#define MAIN_IN_BOTH_ENCODINGS()                                                                   \
    int main(void)                                                                                 \
    {                                                                                              \
        int failed = testing_run("json", NULL, NULL);                                              \
        sim_protobuf = true;                                                                       \
        return failed + testing_run("protobuf", NULL, NULL);                                       \
    }

#define LIST(version, items)                                                                       \
    "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define PAGE(version, next, items)                                                                 \
    "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" next                      \
    "\"},\"items\":[" items "]}"
#define POD(name, version)                                                                         \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason "\",\"message\":\"" message "\"" \
    "}"
#define TOO_LARGE                                                                                  \
    "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"message\":\"late\",\"details\":{"  \
    "\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"x\"}],"                     \
    "\"retryAfterSeconds\":1}}"

#define WATCH_QUERY(version)                                                                       \
    "watch=1&allowWatchBookmarks=true&timeoutSeconds=T&resourceVersion=" version
#define RELIST_QUERY(version) "resourceVersion=" version "&resourceVersionMatch=NotOlderThan"

/* Lists pods a and b at version 10, so that a watch is next. */
static inline void list_two(struct sim *s)
{
    STEP(s, .status = 200, .body = LIST("10", POD("a", "1") "," POD("b", "2")));
    check_out(s, "begin L:a L:b end ", "list");
    CHECK_INT(s->result, WATCH_DONE, "");
}

/* Makes a machine without selectors that reads its lists in pages. */
static inline void paged(struct sim *s)
{
    setup(s, "");
}

/* The same, which has read a list of the pods a and b. */
static inline void listed(struct sim *s)
{
    paged(s);
    list_two(s);
}

/* Begins a case with the machine "s" that make() has made. */
#define TEST_SIM(make, name)                                                                       \
    static void name##_on(struct sim *s);                                                          \
    TEST(name)                                                                                     \
    {                                                                                              \
        SCOPED(sim) sim;                                                                           \
        make(&sim);                                                                                \
        name##_on(&sim);                                                                           \
    }                                                                                              \
    static void name##_on(struct sim *s)

#endif

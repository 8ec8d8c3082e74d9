/* All of discovery against a small API server in the same loop: requests, groups, log lines. Faults
 * of the server are tested in test_discovery_watch.c. */
#include "tests/unit/testing.h"

#include "discovery/discovery.h"

/* After the above: it defines macros of names that http/http.h uses. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

/* A test that takes longer has failed. */
#define PATIENCE_MS 20000
#define STREAM "sendInitialEvents=true"

/* ---- the server ------------------------------------------------------------------------------ */

/* The answers, in order, to requests whose URI has the given part. */
struct rule {
    const char *part;
    const char *body;
    int status;
    bool keep_open; /* a watch: the body is sent, and no end */
    bool used;
};

struct world {
    struct loop *loop;
    struct intern *intern;
    struct metrics *metrics;
    struct testing_log *log;
    struct evhttp *server;
    char url[64];
    struct rule *rules;
    size_t n_rules;
    struct buf requests;  /* URIs, one per line, timeoutSeconds as T */
    struct buf groups;    /* the reported groups, one per line */
    struct buf forbidden; /* events of missing permissions, one per line */
    struct buf missing;   /* what has not been read, one line for each change */
    struct buf headers;   /* Authorization and Accept of the last request */
    const char *until;    /* the test ends when groups has this */
    bool synced;
    bool late;
    struct loop_timer *watchdog;
    struct discovery *d;
};

static void note_request(struct world *w, struct evhttp_request *r)
{
    const char *uri = evhttp_request_get_uri(r);
    const char *timeout = strstr(uri, "timeoutSeconds=");
    size_t n = timeout == NULL ? strlen(uri) : (size_t)(timeout - uri) + 15;
    buf_append(&w->requests, uri, n);
    if (timeout != NULL) {
        buf_printf(&w->requests, "T%s", timeout + 15 + strspn(timeout + 15, "0123456789"));
    }
    buf_putc(&w->requests, '\n');
    const struct evkeyvalq *in = evhttp_request_get_input_headers(r);
    const char *auth = evhttp_find_header(in, "Authorization");
    const char *accept = evhttp_find_header(in, "Accept");
    buf_clear(&w->headers);
    buf_printf(&w->headers, "%s, %s", auth == NULL ? "-" : auth, accept == NULL ? "-" : accept);
}

static struct rule *find_rule(struct world *w, const char *uri)
{
    for (size_t i = 0; i < w->n_rules; i++) {
        if (!w->rules[i].used && strstr(uri, w->rules[i].part) != NULL) {
            return &w->rules[i];
        }
    }
    return NULL;
}

static void serve(struct evhttp_request *r, void *arg)
{
    struct world *w = arg;
    const char *uri = evhttp_request_get_uri(r);
    struct rule *rule = find_rule(w, uri);
    if (strstr(uri, STREAM) != NULL && (rule == NULL || strcmp(rule->part, STREAM) != 0)) {
        /* Most tests are about lists in pages. */
        evhttp_send_reply(r, 422, "Invalid", NULL);
        return;
    }
    note_request(w, r);
    if (rule == NULL) {
        /* No further rule: the client waits. */
        evhttp_send_reply_start(r, 200, "OK");
        return;
    }
    rule->used = true;
    struct evbuffer *body = evbuffer_new();
    assert_non_null(body);
    evbuffer_add(body, rule->body, strlen(rule->body));
    evhttp_send_reply_start(r, rule->status, "Status");
    evhttp_send_reply_chunk(r, body);
    if (!rule->keep_open) {
        evhttp_send_reply_end(r);
    }
    evbuffer_free(body);
}

static void start_server(struct world *w)
{
    w->server = evhttp_new(loop_event_base(w->loop));
    assert_non_null(w->server);
    evhttp_set_gencb(w->server, serve, w);
    struct evhttp_bound_socket *socket = evhttp_bind_socket_with_handle(w->server, "127.0.0.1", 0);
    assert_non_null(socket);
    struct sockaddr_in address = {0};
    socklen_t len = sizeof(address);
    assert_int_equal(
        getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *)&address, &len), 0);
    snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
}

/* ---- the client ------------------------------------------------------------------------------ */

static void check_end(struct world *w)
{
    if (w->until != NULL && w->synced && strstr(w->groups.data, w->until) != NULL) {
        loop_stop(w->loop);
    }
}

static void on_group(void *arg, const struct target_group *group)
{
    struct world *w = arg;
    buf_printf(&w->groups, "%zu %s", group->job, group->source);
    for (size_t i = 0; i < group->n_targets; i++) {
        struct sv address = labels_get(group->targets[i], SV(LABEL_ADDRESS));
        buf_printf(&w->groups, " %.*s", SV_ARG(address));
    }
    buf_printf(&w->groups, " @%s\n", group->pinned_host == NULL ? "-" : group->pinned_host);
    CHECK_INT(group->kind,
              strncmp(group->source, "static/", 7) == 0 ? GROUP_LISTED
              : strstr(group->source, "pod/") != NULL   ? GROUP_POD
                                                        : GROUP_OBJECT,
              group->source);
    check_end(w);
}

static void on_synced(void *arg)
{
    struct world *w = arg;
    assert_false(w->synced);
    w->synced = true;
    buf_puts(&w->groups, "synced\n");
    check_end(w);
}

static void on_forbidden(void *arg, const struct discovery_forbidden *what)
{
    struct world *w = arg;
    buf_printf(&w->forbidden, "%s %s in %s\n", what->verb, what->resource,
               what->namespace == NULL ? "the whole cluster" : what->namespace);
}

static void on_missing(void *arg, const char *text)
{
    struct world *w = arg;
    buf_printf(&w->missing, "%s\n", text);
}

static void on_late(void *arg)
{
    struct world *w = arg;
    w->late = true;
    loop_stop(w->loop);
}

static void setup(struct world *w, struct rule *rules, size_t n_rules)
{
    *w = (struct world){.rules = rules, .n_rules = n_rules};
    struct err err = ERR_INIT;
    w->loop = loop_new(&err);
    w->intern = intern_new();
    w->metrics = metrics_new();
    w->log = testing_log_new();
    assert_non_null(w->loop);
    assert_non_null(w->intern);
    assert_non_null(w->metrics);
    buf_init(&w->requests, 1 << 20);
    buf_init(&w->groups, 1 << 20);
    buf_init(&w->headers, 1 << 16);
    buf_init(&w->forbidden, 1 << 16);
    buf_init(&w->missing, 1 << 16);
    w->watchdog = loop_timer_new(w->loop, on_late, w);
    start_server(w);
}

static void start(struct world *w, const struct config *config)
{
    struct err err = ERR_INIT;
    w->d = discovery_new(
        &(struct discovery_options){
            .config = config,
            .loop = w->loop,
            .intern = w->intern,
            .log = testing_log(w->log),
            .metrics = w->metrics,
            .on_group = on_group,
            .on_synced = on_synced,
            .on_forbidden = on_forbidden,
            .on_missing = on_missing,
            .arg = w,
        },
        &err);
    CHECK_STR(err.msg, "", "discovery_new");
    assert_non_null(w->d);
}

/* Runs until everything is synced and groups has the text. */
static void run(struct world *w, const struct config *config, const char *until)
{
    w->until = until;
    start(w, config);
    loop_timer_after(w->watchdog, PATIENCE_MS);
    loop_run(w->loop);
    CHECK_INT(w->late, false, w->groups.data);
}

static void check_metric(struct world *w, const char *line, const char *row)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    metrics_render(w->metrics, &text);
    CHECK_CONTAINS(text.data, line, row);
    buf_done(&text);
}

static void teardown(struct world *w)
{
    discovery_free(w->d);
    check_metric(w, "profpull_discovery_groups{kind=\"kubernetes\"} 0\n", "nothing is left");
    evhttp_free(w->server);
    loop_timer_free(w->watchdog);
    loop_free(w->loop);
    intern_free(w->intern);
    metrics_free(w->metrics);
    testing_log_done(w->log);
    buf_done(&w->requests);
    buf_done(&w->groups);
    buf_done(&w->headers);
    buf_done(&w->forbidden);
    buf_done(&w->missing);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

#define POD(name, ip)                                                                              \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"u-" name \
    "\",\"resourceVersion\":\"11\",\"managedFields\":[{\"x\":\"}\"}]},"                            \
    "\"spec\":{\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":6060}]}]},"           \
    "\"status\":{\"podIP\":\"" ip "\"}}"
#define LIST(next, items)                                                                          \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"" next          \
    "\"},\"items\":[" items "]}"
#define EVENT(type, pod) "{\"type\":\"" type "\",\"object\":" pod "}\n"
#define END                                                                                        \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"10\",\"annotations\":{"           \
          "\"k8s.io/initial-events-end\":\"true\"}}}")

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_pages_and_watch(void **state)
{
    (void)state;
    struct rule rules[] = {
        {.part = "resourceVersion=0", .status = 200, .body = LIST("t1", POD("a", "10.0.0.1"))},
        {.part = "continue=t1",
         .status = 200,
         .body = LIST("", POD("b", "fd00::2") "," POD("c", ""))},
        {.part = "watch=1",
         .status = 200,
         .keep_open = true,
         .body = EVENT("MODIFIED", POD("a", "10.0.0.1")) EVENT("ADDED", POD("c", "10.0.0.3"))
             EVENT("BOOKMARK", POD("x", "")) EVENT("STRANGE", "{}") EVENT("ADDED", "{}")
                 EVENT("DELETED", POD("b", "fd00::2"))},
    };
    struct world w;
    setup(&w, rules, 3);
    testing_log_expect(w.log, "unknown type");
    struct config_selector selector = {
        .role = ROLE_POD, .label = "app=x", .field = "spec.nodeName=n"};
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD,
                       .selectors = &selector,
                       .n_selectors = 1,
                       .api_server = w.url,
                       .http = {.auth = HTTP_AUTH_HEADER, .credentials = "t0ken"}},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "pod/ns/b @-");
    CHECK_STR(w.groups.data,
              "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n"
              "0 pod/ns/b [fd00::2]:6060 @fd00::2\n"
              "synced\n"
              "0 pod/ns/c 10.0.0.3:6060 @10.0.0.3\n"
              "0 pod/ns/b @-\n",
              "");
#define SELECTORS "labelSelector=app%3Dx&fieldSelector=spec.nodeName%3Dn&"
    CHECK_STR(w.requests.data,
              "/api/v1/pods?" SELECTORS "limit=500&resourceVersion=0\n"
              "/api/v1/pods?" SELECTORS "limit=500&continue=t1\n"
              "/api/v1/pods?" SELECTORS
              "watch=1&allowWatchBookmarks=true&timeoutSeconds=T&resourceVersion=10\n",
              "");
    CHECK_STR(w.headers.data, "Bearer t0ken, application/json", "");
    check_metric(&w, "profpull_discovery_groups{kind=\"kubernetes\"} 2\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"unchanged\"} 1\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"added\"} 1\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"deleted\"} 1\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"bookmark\"} 1\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"unknown\"} 1\n", "");
    check_metric(&w, "profpull_discovery_objects_skipped_total{reason=\"wrong_kind\"} 1\n", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"ok\"} 2\n", "");
    assert_null(strstr(testing_log_text(w.log), "t0ken"));
    teardown(&w);
}

/* A streamed list: its objects are reported as they come, and those that it does not name are
 * removed at its end. */
static void test_streamed(void **state)
{
    (void)state;
    struct rule rules[] = {
        {.part = STREAM,
         .status = 200,
         .body = EVENT("ADDED", POD("a", "10.0.0.1")) EVENT("ADDED", POD("b", "10.0.0.2"))
             END EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}")},
        {.part = STREAM,
         .status = 200,
         .keep_open = true,
         .body = EVENT("ADDED", POD("b", "10.0.0.2")) END EVENT("ADDED", POD("c", "10.0.0.3"))},
    };
    struct world w;
    setup(&w, rules, 2);
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .api_server = w.url},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "pod/ns/c");
    CHECK_STR(w.groups.data,
              "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n"
              "0 pod/ns/b 10.0.0.2:6060 @10.0.0.2\n"
              "synced\n"
              "0 pod/ns/a @-\n"
              "0 pod/ns/c 10.0.0.3:6060 @10.0.0.3\n",
              "");
#define STREAMED                                                                                   \
    "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=T&" STREAM                       \
    "&resourceVersionMatch=NotOlderThan&resourceVersion="
    CHECK_STR(w.requests.data, STREAMED "0\n" STREAMED "10\n", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"watch\",result=\"expired\"} 1\n",
                 "");
    teardown(&w);
}

/* Only the named namespaces are read, each once. */
static void test_namespaces(void **state)
{
    (void)state;
    struct rule rules[] = {
        {.part = "/namespaces/ns/pods?limit",
         .status = 200,
         .body = LIST("", POD("a", "10.0.0.1"))},
        {.part = "/namespaces/shop/pods?limit", .status = 200, .body = LIST("", "")},
    };
    struct world w;
    setup(&w, rules, 2);
    const char *names[] = {"ns", "shop", "ns"};
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .namespaces = {names, 3}, .api_server = w.url},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "synced");
    CHECK_CONTAINS(w.groups.data, "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n", "");
    size_t lists = 0;
    for (const char *p = w.requests.data; (p = strstr(p, "resourceVersion=0")) != NULL; p++) {
        lists++;
    }
    CHECK_INT(lists, 2, "a namespace that is named twice is watched once");
    teardown(&w);
}

/* A pod that vanished while there was no watch is removed once, by the new list. */
static void test_relist(void **state)
{
    (void)state;
    struct rule rules[] = {
        {.part = "resourceVersion=0",
         .status = 200,
         .body = LIST("", POD("a", "10.0.0.1") "," POD("b", "10.0.0.2"))},
        {.part = "watch=1",
         .status = 410,
         .body = "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}"},
        {.part = "resourceVersion=10&resourceVersionMatch=NotOlderThan",
         .status = 200,
         .body = LIST("", POD("b", "10.0.0.2"))},
        {.part = "watch=1", .status = 200, .keep_open = true, .body = ""},
    };
    struct world w;
    setup(&w, rules, 4);
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .api_server = w.url},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "pod/ns/a @-");
    CHECK_STR(w.groups.data,
              "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n"
              "0 pod/ns/b 10.0.0.2:6060 @10.0.0.2\n"
              "synced\n"
              "0 pod/ns/a @-\n",
              "the other one is not touched");
    check_metric(&w, "profpull_discovery_relists_total{reason=\"expired\"} 1\n", "");
    CHECK_CONTAINS(testing_log_text(w.log), "listing again", "");
    teardown(&w);
}

/* A missing permission is one event and one log line, with verb, resource and namespace. */
static void test_forbidden(void **state)
{
    (void)state;
    struct rule rules[] = {
        {.part = "limit",
         .status = 403,
         .body = "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":"
                 "\"pods is forbidden: User cannot list resource\"}"},
        {.part = "limit", .status = 200, .body = LIST("", POD("a", "10.0.0.1"))},
    };
    struct world w;
    setup(&w, rules, 2);
    testing_log_expect(w.log, "not allowed to list pods in the namespace: apply a Role there "
                              "with the verbs list and watch on pods, and bind it");
    const char *names[] = {"ns"};
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .namespaces = {names, 1}, .api_server = w.url},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "pod/ns/a");
    const char *text = testing_log_text(w.log);
    CHECK_CONTAINS(text, "verb=list resource=pods namespace=ns", "");
    CHECK_CONTAINS(text, "the server answered 403: pods is forbidden", "");
    CHECK_CONTAINS(text, "the API server answers again", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"forbidden\"} 1\n",
                 "");
    CHECK_STR(w.forbidden.data, "list pods in ns\n", "one event");
    /* What is not allowed is not waited for; it joins when it is. */
    CHECK_STR(w.groups.data, "synced\n0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n", "");
    while (!w.late && strstr(w.missing.data, "\n\n") == NULL) {
        loop_run_once(w.loop);
    }
    CHECK_STR(w.missing.data,
              "pods in namespace ns not read yet\n"
              "not allowed to list pods in namespace ns (a Role needs the verbs list and watch on "
              "pods)\n"
              "\n",
              "");
    check_metric(&w, "profpull_discovery_unread_lists{reason=\"refused\"} 0\n", "");
    teardown(&w);
}

/* Of several namespaces one is forbidden, of another the server has never heard, and a third does
 * not answer well: readiness waits for the last one only, and names all. */
static void test_missing_namespaces(void **state)
{
    (void)state;
#define SLICES(namespace) "/apis/discovery.k8s.io/v1/namespaces/" namespace "/endpointslices?"
#define EMPTY(kind) "{\"kind\":\"" kind "\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"
#define AT_ONCE(where, list)                                                                       \
    {                                                                                              \
        .part = "/namespaces/" where "?limit", .status = 200, .body = list                         \
    }
    struct rule rules[] = {
        {.part = SLICES("a") "limit", .status = 403, .body = "{\"kind\":\"Status\",\"code\":403}"},
        {.part = SLICES("b") "limit", .status = 404, .body = "{\"kind\":\"Status\",\"code\":404}"},
        {.part = SLICES("c") "limit", .status = 500, .body = "etcd is away"},
        {.part = SLICES("c") "limit",
         .status = 200,
         .body =
             "{\"kind\":\"EndpointSliceList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":["
             "{\"metadata\":{\"namespace\":\"c\",\"name\":\"s\"},\"endpoints\":[{\"addresses\":["
             "\"10.0.0.3\"]}],\"ports\":[{\"port\":80}]}]}"},
        AT_ONCE("a/pods", EMPTY("PodList")),
        AT_ONCE("a/services", EMPTY("ServiceList")),
        AT_ONCE("b/pods", EMPTY("PodList")),
        AT_ONCE("b/services", EMPTY("ServiceList")),
        AT_ONCE("c/pods", EMPTY("PodList")),
        AT_ONCE("c/services", EMPTY("ServiceList")),
    };
    struct world w;
    setup(&w, rules, sizeof(rules) / sizeof(rules[0]));
    testing_log_expect(w.log, "not allowed to list endpointslices");
    testing_log_expect(w.log, "does not answer as it should");
    const char *names[] = {"a", "b", "c"};
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_ENDPOINTSLICE, .namespaces = {names, 3}, .api_server = w.url},
    };
    struct config_job job = {.name = "slices", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "endpointslice/c/s 10.0.0.3:80");
    CHECK_CONTAINS(w.groups.data, "synced\n", "");
    const char *row = "the last lines";
    CHECK_CONTAINS(
        w.missing.data,
        "; endpointslices in namespace c not read yet: the last request ended as failed\n", row);
    CHECK_CONTAINS(
        w.missing.data,
        "\nnot allowed to list endpointslices in namespace a (a Role needs the verbs list "
        "and watch on endpointslices of discovery.k8s.io); the API server does not have "
        "endpointslices in namespace b (404)\n",
        row);
    check_metric(&w, "profpull_discovery_unread_lists{reason=\"refused\"} 2\n", "");
    check_metric(&w, "profpull_discovery_unread_lists{reason=\"pending\"} 0\n", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"not_found\"} 1\n",
                 "");
    teardown(&w);
}

/* The answer to a request for pods is a list of nodes: nothing is removed because of it, and it is
 * no list. An event with another object does not move the version. */
static void test_other_kinds(void **state)
{
    (void)state;
#define NODE_EVENT(type)                                                                           \
    EVENT(type, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"99\"}}")
    struct rule rules[] = {
        {.part = "resourceVersion=0", .status = 200, .body = LIST("", POD("a", "10.0.0.1"))},
        {.part = "watch=1",
         .status = 200,
         .body = NODE_EVENT("MODIFIED") NODE_EVENT("BOOKMARK")
             EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}")},
        {.part = "resourceVersion=10&resourceVersionMatch",
         .status = 200,
         .body = EMPTY("NodeList")},
        {.part = "resourceVersion=10&resourceVersionMatch",
         .status = 200,
         .body = LIST("", POD("b", "10.0.0.2"))},
    };
    struct world w;
    setup(&w, rules, 4);
    testing_log_expect(w.log, "does not answer as it should");
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .api_server = w.url},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "pod/ns/a @-");
    CHECK_STR(w.groups.data,
              "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n"
              "synced\n"
              "0 pod/ns/b 10.0.0.2:6060 @10.0.0.2\n"
              "0 pod/ns/a @-\n",
              "");
    CHECK_CONTAINS(testing_log_text(w.log),
                   "expected the kind \\\"PodList\\\", got \\\"NodeList\\\"", "");
    check_metric(&w, "profpull_discovery_objects_skipped_total{reason=\"wrong_kind\"} 2\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"bookmark\"} 0\n", "");
    teardown(&w);
}

/* A watch may stay open for minutes: that it works is logged when it starts to, not when it ends.
 */
static void test_found_again(void **state)
{
    (void)state;
    struct rule rules[] = {
        {.part = "limit", .status = 200, .body = LIST("", POD("a", "10.0.0.1"))},
        {.part = "watch=1", .status = 500, .body = "etcd is away"},
        {.part = "watch=1",
         .status = 200,
         .keep_open = true,
         .body = EVENT("DELETED", POD("a", "10.0.0.1"))},
    };
    struct world w;
    setup(&w, rules, 3);
    testing_log_expect(w.log, "does not answer as it should");
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .api_server = w.url},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "pod/ns/a @-");
    /* The line is logged with the first bytes of the event. */
    loop_run_once(w.loop);
    const char *text = testing_log_text(w.log);
    CHECK_CONTAINS(text, "the server answered 500: etcd is away", "");
    CHECK_CONTAINS(text, "the API server answers again", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"watch\",result=\"failed\"} 1\n", "");
    teardown(&w);
}

/* Jobs that need the same objects share a watch; in a job with several sources, each has a prefix.
 */
static void test_sharing(void **state)
{
    (void)state;
    struct rule rules[] = {
        {.part = "/api/v1/pods?limit", .status = 200, .body = LIST("", POD("a", "10.0.0.1"))},
        {.part = "labelSelector=x&limit", .status = 200, .body = LIST("", POD("x", "10.0.0.9"))},
    };
    struct world w;
    setup(&w, rules, 2);
    char *dir = testing_mkdtemp();
    char text[512];
    snprintf(text, sizeof(text),
             "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
             "clusters: [{name: k, cluster: {server: '%s'}}]\n"
             "users: [{name: u, user: {token: t0ken}}]\n"
             "contexts: [{name: c, context: {cluster: k, user: u}}]\n",
             w.url);
    testing_write_file(dir, "config", text);
    char path[4096];
    snprintf(path, sizeof(path), "%s/config", dir);
    struct config_selector selector = {.role = ROLE_POD, .label = "x"};
    const char *addresses[] = {"127.0.0.1:6060"};
    struct config_source first = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .kubeconfig_file = path},
    };
    struct config_source second[] = {
        first,
        {.kind = SOURCE_STATIC, .fixed = {.targets = {addresses, 1}}},
        {.kind = SOURCE_KUBERNETES,
         .kubernetes =
             {.role = ROLE_POD, .kubeconfig_file = path, .selectors = &selector, .n_selectors = 1}},
    };
    struct config_job jobs[] = {
        {.name = "one", .sources = &first, .n_sources = 1},
        {.name = "two", .sources = second, .n_sources = 3},
    };
    struct config config = {.jobs = jobs, .n_jobs = 2};
    run(&w, &config, "synced");
    CHECK_CONTAINS(w.groups.data, "1 static/1 127.0.0.1:6060 @-\n", "");
    CHECK_CONTAINS(w.groups.data, "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n", "");
    CHECK_CONTAINS(w.groups.data, "1 kubernetes/0/pod/ns/a 10.0.0.1:6060 @10.0.0.1\n", "");
    CHECK_CONTAINS(w.groups.data, "1 kubernetes/2/pod/ns/x 10.0.0.9:6060 @10.0.0.9\n", "");
    assert_null(strstr(w.groups.data, "0 pod/ns/x"));
    assert_null(strstr(w.groups.data, "kubernetes/0/pod/ns/x"));
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"ok\"} 2\n",
                 "three sources, two watches");
    check_metric(&w, "profpull_discovery_groups{kind=\"kubernetes\"} 3\n", "");
    check_metric(&w, "profpull_discovery_groups{kind=\"static\"} 1\n", "");
    teardown(&w);
    testing_rmdir(dir);
    free(dir);
}

static void test_static_only(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL, 0);
    const char *addresses[] = {"127.0.0.1:6060", "[::1]:6060"};
    struct config_source source = {.kind = SOURCE_STATIC, .fixed = {.targets = {addresses, 2}}};
    struct config_job job = {.name = "fixed", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    run(&w, &config, "synced");
    CHECK_STR(w.groups.data, "0 static/0 127.0.0.1:6060 [::1]:6060 @-\nsynced\n", "");
    teardown(&w);
}

static void test_no_jobs(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL, 0);
    struct config config = {0};
    run(&w, &config, "synced");
    CHECK_STR(w.groups.data, "synced\n", "");
    teardown(&w);
}

static void test_errors_name_the_place(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL, 0);
    struct config_source source = {
        .pos = {.file = "profpull.yaml", .line = 7, .column = 9},
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .kubeconfig_file = "/nonexistent/kubeconfig"},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    struct err err = ERR_INIT;
    struct discovery_options options = {
        .config = &config, .loop = w.loop, .intern = w.intern, .on_group = on_group};
    assert_null(discovery_new(&options, &err));
    CHECK_CONTAINS(err.msg, "profpull.yaml:7:9: job \"pods\": kubeconfig /nonexistent/kubeconfig",
                   "");
    err_clear(&err);
    source.kubernetes.kubeconfig_file = NULL;
    source.kubernetes.api_server = w.url;
    source.kubernetes.own_namespace = true;
    assert_null(discovery_new(&options, &err));
    CHECK_CONTAINS(err.msg, "own_namespace: the own namespace is not known", "");
    /* For the check in the teardown. */
    start(&w, &(struct config){0});
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_and_watch),
        cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_relist),
        cmocka_unit_test(test_forbidden),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_static_only),
        cmocka_unit_test(test_no_jobs),
        cmocka_unit_test(test_errors_name_the_place),
        cmocka_unit_test(test_found_again),
        cmocka_unit_test(test_missing_namespaces),
        cmocka_unit_test(test_other_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* All of discovery against a small API server in the same loop: requests, groups, log lines. Faults
 * of the server are tested in test_discovery_watch.c. */
#include "tests/unit/discovery/discovery_world.h"

SCOPED_VALUE(world, teardown)

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(test_pages_and_watch)
{
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
    SCOPED(world) w;
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
    run_sources(&w, "pods", &source, 1, "pod/ns/b @-");
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
    CHECK_STR(w.headers.data, "Bearer t0ken, application/vnd.kubernetes.protobuf, application/json",
              "");
    check_metric(&w, "profpull_discovery_groups{kind=\"kubernetes\"} 2\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"unchanged\"} 1\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"added\"} 1\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"deleted\"} 1\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"bookmark\"} 1\n", "");
    check_metric(&w, "profpull_discovery_events_total{event=\"unknown\"} 1\n", "");
    check_metric(&w, "profpull_discovery_objects_skipped_total{reason=\"wrong_kind\"} 1\n", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"ok\"} 2\n", "");
    assert_null(strstr(testing_log_text(w.log), "t0ken"));
}

/* A streamed list: its objects are reported as they come, and those that it does not name are
 * removed at its end. */
TEST(test_streamed)
{
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
    SCOPED(world) w;
    setup(&w, rules, 2);
    run_pods(&w, "pod/ns/c");
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
}

/* Only the named namespaces are read, each once. */
TEST(test_namespaces)
{
    struct rule rules[] = {
        {.part = "/namespaces/ns/pods?limit",
         .status = 200,
         .body = LIST("", POD("a", "10.0.0.1"))},
        {.part = "/namespaces/shop/pods?limit", .status = 200, .body = LIST("", "")},
    };
    SCOPED(world) w;
    setup(&w, rules, 2);
    const char *names[] = {"ns", "shop", "ns"};
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .namespaces = {names, 3}, .api_server = w.url},
    };
    run_sources(&w, "pods", &source, 1, "synced");
    CHECK_CONTAINS(w.groups.data, "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n", "");
    size_t lists = 0;
    for (const char *p = w.requests.data; (p = strstr(p, "resourceVersion=0")) != NULL; p++) {
        lists++;
    }
    CHECK_INT(lists, 2, "a namespace that is named twice is watched once");
}

/* A pod that vanished while there was no watch is removed once, by the new list. */
TEST(test_relist)
{
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
    SCOPED(world) w;
    setup(&w, rules, 4);
    run_pods(&w, "pod/ns/a @-");
    CHECK_STR(w.groups.data,
              "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n"
              "0 pod/ns/b 10.0.0.2:6060 @10.0.0.2\n"
              "synced\n"
              "0 pod/ns/a @-\n",
              "the other one is not touched");
    check_metric(&w, "profpull_discovery_relists_total{reason=\"expired\"} 1\n", "");
    CHECK_CONTAINS(testing_log_text(w.log), "listing again", "");
}

/* A missing permission is one event and one log line, with verb, resource and namespace. */
TEST(test_forbidden)
{
    struct rule rules[] = {
        {.part = "limit",
         .status = 403,
         .body = "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":"
                 "\"pods is forbidden: User cannot list resource\"}"},
        {.part = "limit", .status = 200, .body = LIST("", POD("a", "10.0.0.1"))},
    };
    SCOPED(world) w;
    setup(&w, rules, 2);
    testing_log_expect(w.log, "not allowed to list pods in the namespace: apply a Role there "
                              "with the verbs list and watch on pods, and bind it");
    const char *names[] = {"ns"};
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .namespaces = {names, 1}, .api_server = w.url},
    };
    run_sources(&w, "pods", &source, 1, "pod/ns/a");
    const char *text = testing_log_text(w.log);
    CHECK_CONTAINS(text, "verb=list resource=pods namespace=ns", "");
    CHECK_CONTAINS(text, "the server answered 403: pods is forbidden", "");
    CHECK_CONTAINS(text, "the API server answers again", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"forbidden\"} 1\n",
                 "");
    CHECK_STR(w.forbidden.data, "list pods in ns\n", "one event");
    /* A role that is not allowed is not waited for; it joins when it is. */
    CHECK_STR(w.groups.data, "synced\n0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n", "");
    while (!w.patience.late && strstr(w.missing.data, "\n\n") == NULL) {
        loop_run_once(w.loop);
    }
    CHECK_CONTAINS(w.missing.data,
                   "job \"pods\": not allowed to list pods in namespace ns (a Role needs the verbs "
                   "list and watch on "
                   "pods)\n"
                   "\n",
                   "");
    check_metric(&w, "profpull_discovery_unread_lists{reason=\"refused\"} 0\n", "");
}

/* One of several namespaces is forbidden, the server has never heard of another, and a third does
 * not answer well: readiness waits for the last one only, and names all. */
TEST(test_missing_namespaces)
{
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
    SCOPED(world) w;
    setup(&w, rules, sizeof(rules) / sizeof(rules[0]));
    testing_log_expect(w.log, "not allowed to list endpointslices");
    testing_log_expect(w.log, "does not answer as it should");
    const char *names[] = {"a", "b", "c"};
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_ENDPOINTSLICE, .namespaces = {names, 3}, .api_server = w.url},
    };
    run_sources(&w, "slices", &source, 1, "endpointslice/c/s 10.0.0.3:80");
    CHECK_CONTAINS(w.groups.data, "synced\n", "");
    const char *row = "the last lines";
    CHECK_CONTAINS(
        w.missing.data,
        "; endpointslices in namespace c not read yet: the last request ended as failed\n", row);
    CHECK_CONTAINS(w.missing.data,
                   "\njob \"slices\": not allowed to list endpointslices in namespace a (a Role "
                   "needs the verbs list "
                   "and watch on endpointslices of discovery.k8s.io); the API server does not have "
                   "endpointslices in namespace b (404)\n",
                   row);
    check_metric(&w, "profpull_discovery_unread_lists{reason=\"refused\"} 2\n", "");
    check_metric(&w, "profpull_discovery_unread_lists{reason=\"pending\"} 0\n", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"not_found\"} 1\n",
                 "");
}

/* The answer to a request for pods is a list of nodes: nothing is removed because of it, and it is
 * no list. An event with another object does not move the version. */
TEST(test_other_kinds)
{
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
    SCOPED(world) w;
    setup(&w, rules, 4);
    testing_log_expect(w.log, "does not answer as it should");
    run_pods(&w, "pod/ns/a @-");
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
}

/* A watch may stay open for minutes: that it works is logged when it starts to, not when it ends.
 */
TEST(test_found_again)
{
    struct rule rules[] = {
        {.part = "limit", .status = 200, .body = LIST("", POD("a", "10.0.0.1"))},
        {.part = "watch=1", .status = 500, .body = "etcd is away"},
        {.part = "watch=1",
         .status = 200,
         .keep_open = true,
         .body = EVENT("DELETED", POD("a", "10.0.0.1"))},
    };
    SCOPED(world) w;
    setup(&w, rules, 3);
    testing_log_expect(w.log, "does not answer as it should");
    run_pods(&w, "pod/ns/a @-");
    /* The line is logged with the first bytes of the event. */
    loop_run_once(w.loop);
    const char *text = testing_log_text(w.log);
    CHECK_CONTAINS(text, "the server answered 500: etcd is away", "");
    CHECK_CONTAINS(text, "the API server answers again", "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"watch\",result=\"failed\"} 1\n", "");
}

/* Jobs that need the same objects share a watch; in a job with several sources, each has a prefix.
 */
TEST(test_sharing)
{
    struct rule rules[] = {
        {.part = "/api/v1/pods?limit", .status = 200, .body = LIST("", POD("a", "10.0.0.1"))},
        {.part = "labelSelector=x&limit", .status = 200, .body = LIST("", POD("x", "10.0.0.9"))},
    };
    SCOPED(world) w;
    setup(&w, rules, 2);
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
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
        {.name = "two", .slot = 1, .sources = second, .n_sources = 3},
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
}

TEST(test_static_only)
{
    SCOPED(world) w;
    setup(&w, NULL, 0);
    const char *addresses[] = {"127.0.0.1:6060", "[::1]:6060"};
    struct config_source source = {.kind = SOURCE_STATIC, .fixed = {.targets = {addresses, 2}}};
    run_sources(&w, "fixed", &source, 1, "synced");
    CHECK_STR(w.groups.data, "0 static/0 127.0.0.1:6060 [::1]:6060 @-\nsynced\n", "");
}

TEST(test_no_jobs)
{
    SCOPED(world) w;
    setup(&w, NULL, 0);
    struct config config = {0};
    run(&w, &config, "synced");
    CHECK_STR(w.groups.data, "synced\n", "");
}

/* Readiness does not wait for lists that cannot be read, but says which those are. */
TEST(test_lists_that_fail)
{
    struct rule rules[] = {{.part = "/targets", .status = 500, .body = "oops"}};
    SCOPED(world) w;
    setup(&w, rules, 1);
    testing_log_expect(w.log, "http_sd: no list of targets");
    testing_log_expect(w.log, "file_sd: the file cannot be used");
    char url[128];
    snprintf(url, sizeof(url), "%s/targets?token=secret", w.url);
    const char *files[] = {"/nonexistent/targets.json"};
    struct config_source sources[] = {
        {.kind = SOURCE_HTTP, .http = {.url = url, .refresh_ms = 60000}},
        {.kind = SOURCE_FILE, .file = {.files = {files, 1}, .refresh_ms = 60000}},
    };
    run_sources(&w, "lists", sources, 2, "synced");
    char want[256];
    snprintf(want, sizeof(want),
             "job \"lists\": %s/targets: server returned HTTP status 500; job \"lists\": "
             "/nonexistent/targets.json: ",
             w.url);
    CHECK_CONTAINS(w.missing.data, want, "both");
    check_metric(&w, "profpull_discovery_up{job=\"lists\",source=\"http/0\"} 0\n", "");
    CHECK_CONTAINS(testing_log_text(w.log), "job=lists file=/nonexistent/targets.json", "the log");
}

TEST(test_errors_name_the_place)
{
    SCOPED(world) w;
    setup(&w, NULL, 0);
    struct config_source source = {
        .pos = {.file = "profpull.yaml", .line = 7, .column = 9},
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .kubeconfig_file = "/nonexistent/kubeconfig"},
    };
    struct config_job job = {.name = "pods", .sources = &source, .n_sources = 1};
    struct config config = {.jobs = &job, .n_jobs = 1};
    struct err err = ERR_INIT;
    struct discovery_options options = {.config = config_wrap(&config),
                                        .loop = w.loop,
                                        .intern = w.intern,
                                        .sources = w.sources,
                                        .on_group = on_group};
    assert_null(discovery_new(&options, &err));
    CHECK_CONTAINS(err.msg, "profpull.yaml:7:9: job \"pods\": kubeconfig /nonexistent/kubeconfig",
                   "");
    err_clear(&err);
    source.kubernetes.kubeconfig_file = NULL;
    source.kubernetes.api_server = w.url;
    source.kubernetes.own_namespace = true;
    assert_null(discovery_new(&options, &err));
    CHECK_CONTAINS(err.msg, "own_namespace: the namespace of this pod is not known", "");
    config_unref(options.config);
    /* For the check in the teardown. */
    start(&w, &(struct config){0});
}

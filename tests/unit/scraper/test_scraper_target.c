/* Targets: labels, addresses, URLs, identity. */
#include "tests/unit/lib/testing.h"

#include "base/utf8.h"
#include "http/url.h"
#include "scraper/targets/address.h"
#include "tests/unit/scraper/target_rig.h"

SCOPED_POINTER(target, target_unref)

#define SAMPLING .sampling = true, .seconds = 14
#define TIMES .interval_ms = 15000, .timeout_ms = 10000

/* The built-in types, as the configuration sets them. */
static const struct config_type BUILT_IN[] = {
    {.key = "memory", .name = "memory", .path = "/debug/pprof/allocs", .enabled = true, TIMES},
    {.key = "block", .name = "block", .path = "/debug/pprof/block", .enabled = true, TIMES},
    {.key = "goroutine",
     .name = "goroutine",
     .path = "/debug/pprof/goroutine",
     .enabled = true,
     TIMES},
    {.key = "mutex", .name = "mutex", .path = "/debug/pprof/mutex", .enabled = true, TIMES},
    {.key = "process_cpu",
     .name = "process_cpu",
     .path = "/debug/pprof/profile",
     .enabled = true,
     SAMPLING,
     TIMES},
    {.key = "fgprof", .name = "fgprof", .path = "/debug/fgprof", SAMPLING, TIMES},
    {.key = "godeltaprof_memory",
     .name = "memory",
     .path = "/debug/pprof/delta_heap",
     .is_delta = true,
     TIMES},
    {.key = "godeltaprof_mutex",
     .name = "mutex",
     .path = "/debug/pprof/delta_mutex",
     .is_delta = true,
     TIMES},
    {.key = "godeltaprof_block",
     .name = "block",
     .path = "/debug/pprof/delta_block",
     .is_delta = true,
     TIMES},
    {.key = "custom", .name = "custom", .path = "/foo239", TIMES},
};
#define N_TYPES (sizeof(BUILT_IN) / sizeof(BUILT_IN[0]))

static int setup(void **state)
{
    return setup_types(state, BUILT_IN, N_TYPES);
}

static void enable_all(struct fixture *f)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        f->types[i].enabled = true;
    }
}

static void enable_only(struct fixture *f, const char *key)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        f->types[i].enabled = strcmp(f->types[i].key, key) == 0;
    }
}

static struct target *make(struct fixture *f, const char *const *labels, const char *pinned,
                           struct err *err)
{
    return make_at(f, NULL, labels, pinned, err);
}

static struct target *make_ok(struct fixture *f, const char *const *labels)
{
    struct err err = ERR_INIT;
    struct target *t = make(f, labels, NULL, &err);
    CHECK_STR(err.msg, "", "no error");
    assert_non_null(t);
    return t;
}

static void check_error(struct fixture *f, const char *const *labels, const char *pinned,
                        const char *want)
{
    struct err err = ERR_INIT;
    assert_null(make(f, labels, pinned, &err));
    CHECK_CONTAINS(err.msg, want, want);
}

static void check_label(struct target *t, const char *name, const char *want)
{
    CHECK_STR(labels_get(target_labels(t), sv_from(name)).p, want, name);
}

static void check_urls(struct target *t, const char *const *want, size_t n)
{
    CHECK_INT(target_scrape_count(t), n, "count");
    for (size_t i = 0; i < n; i++) {
        SCOPED(buf) url = testing_buf(4096);
        assert_true(target_scrape_url(t, i, &url));
        CHECK_STR(url.data, want[i], want[i]);
    }
}
#define CHECK_URLS(t, ...)                                                                         \
    check_urls((t), (const char *const[]){__VA_ARGS__},                                            \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- URLs ------------------------------------------------------------------------------------ */

/* The default types, plain http. */
TEST_WITH(default_urls, setup, teardown)
{
    SCOPED(target) *t = make_ok(*state, LABELS("__address__", "localhost:9090"));
    CHECK_URLS(
        t, "http://localhost:9090/debug/pprof/allocs", "http://localhost:9090/debug/pprof/block",
        "http://localhost:9090/debug/pprof/goroutine", "http://localhost:9090/debug/pprof/mutex",
        "http://localhost:9090/debug/pprof/profile?seconds=14");
    check_label(t, "__scheme__", "http");
    check_label(t, "instance", "localhost:9090");
    check_label(t, "service_name", "unspecified");
    check_label(t, "job", "");
    CHECK_INT(target_timeout_ms(t, 0), 10000, "plain");
    CHECK_INT(target_timeout_ms(t, 4), 24000, "sampling");
}

/* Every type, and https. */
TEST_ON(struct fixture *f, all_types_https)
{
    enable_all(f);
    f->job.scheme = "https";
    SCOPED(target) *t = make_ok(f, LABELS("__address__", "localhost:9090"));
    CHECK_URLS(
        t, "https://localhost:9090/debug/pprof/allocs", "https://localhost:9090/debug/pprof/block",
        "https://localhost:9090/debug/pprof/goroutine", "https://localhost:9090/debug/pprof/mutex",
        "https://localhost:9090/debug/pprof/profile?seconds=14",
        "https://localhost:9090/debug/fgprof?seconds=14",
        "https://localhost:9090/debug/pprof/delta_heap",
        "https://localhost:9090/debug/pprof/delta_mutex",
        "https://localhost:9090/debug/pprof/delta_block", "https://localhost:9090/foo239");
}

/* The scheme of label and job, and the default port. */
TEST_ON(struct fixture *f, scheme_and_port)
{
    enable_only(f, "memory");
    static const struct {
        const char *address, *scheme, *job_scheme, *url;
    } rows[] = {
        {"localhost", "", "http", "http://localhost:80/debug/pprof/allocs"},
        {"localhost", "https", "http", "https://localhost:443/debug/pprof/allocs"},
        {"localhost", "", "https", "https://localhost:443/debug/pprof/allocs"},
        {"localhost", "HTTPS", "http", "https://localhost:443/debug/pprof/allocs"},
        {"localhost", "Http", "https", "http://localhost:80/debug/pprof/allocs"},
        {"10.0.0.1", "", "http", "http://10.0.0.1:80/debug/pprof/allocs"},
        {"10.0.0.1:6060", "https", "http", "https://10.0.0.1:6060/debug/pprof/allocs"},
        {"[::1]", "", "http", "http://[::1]:80/debug/pprof/allocs"},
        {"::1", "https", "http", "https://[::1]:443/debug/pprof/allocs"},
        {"[fd00::5]:6060", "", "http", "http://[fd00::5]:6060/debug/pprof/allocs"},
        {"web-0.web.svc:1", "", "http", "http://web-0.web.svc:1/debug/pprof/allocs"},
        {"web:65535", "", "http", "http://web:65535/debug/pprof/allocs"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        f->job.scheme = rows[i].job_scheme;
        SCOPED(target) *t =
            make_ok(f, LABELS("__address__", rows[i].address, "__scheme__", rows[i].scheme));
        CHECK_URLS(t, rows[i].url);
    }
}

/* A missing or invalid address is an error of this target alone. */
TEST_WITH(bad_addresses, setup, teardown)
{
    static const char *const rows[] = {
        "h:0",        "h:65536",  "h:-1",      "h:8080abc",
        "h:http",     "h:",       ":6060",     "a:b:c",
        "h/x",        "h:80/x",   "user@h:80", "h h:80",
        "h:80\r\nX:", "h\t:80",   "[::1",      "[::1]x",
        "[h]:80",     "h?x:80",   "h#x:80",    "[fe80::1%eth0]:80",
        "h\\x:80",    "h%2fx:80", "::g",       "\xd9\xa8\xd9\xa0",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_error(*state, LABELS("__address__", rows[i]), NULL, "invalid address");
    }
    check_error(*state, LABELS("job", "x"), NULL, "no address");
    char text[400];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    check_error(*state, LABELS("__address__", text), NULL, "invalid address");
}

TEST_WITH(bad_schemes, setup, teardown)
{
    static const char *const rows[] = {"ftp", "file", "gopher", "httpss", "htt", "http "};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char want[64];
        snprintf(want, sizeof(want), "invalid scheme: \"%s\"", rows[i]);
        check_error(*state, LABELS("__address__", "h:80", "__scheme__", rows[i]), NULL, want);
    }
}

/* Prefixes of job and target, with and without slashes. */
TEST_ON(struct fixture *f, path_prefixes)
{
    enable_only(f, "memory");
    static const struct {
        const char *job, *label, *path, *url;
    } rows[] = {
        {"", "/mimir-prometheus", "", "http://h:80/mimir-prometheus/debug/pprof/allocs"},
        {"/foo", "", "", "http://h:80/foo/debug/pprof/allocs"},
        {"/foo", "/bar", "", "http://h:80/bar/debug/pprof/allocs"},
        {"v1/", "", "", "http://h:80/v1/debug/pprof/allocs"},
        {"//v1//", "", "/a//b/", "http://h:80/v1/a/b/"},
        {"", "", "/a/../b/./c", "http://h:80/b/c"},
        {"", "", "../../etc", "http://h:80/etc"},
        {"/a", "", "/../../b", "http://h:80/b"},
        {"", "", "//evil/x", "http://h:80/evil/x"},
        {"", "", "/debug/pprof/heap?gc=1#f", "http://h:80/debug/pprof/heap%3Fgc=1%23f"},
        {"", "", "/a%2Fb%zz%", "http://h:80/a%2Fb%25zz%25"},
        {"", "", "/%00", "http://h:80/%00"},
        {"", "", "/gr\xc3\xbc\xc3\x9f", "http://h:80/gr%C3%BC%C3%9F"},
        {"", "", "/", "http://h:80/"},
        {"", "", "/..", "http://h:80/"},
        {"", "", "plain", "http://h:80/plain"},
        {"", "", "/a\"<>\\^`{|}", "http://h:80/a%22%3C%3E%5C%5E%60%7B%7C%7D"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        f->job.path_prefix = rows[i].job;
        SCOPED(target) *t = make_ok(f, LABELS("__address__", "h", "__profile_path_prefix__",
                                              rows[i].label, "__profile_path__", rows[i].path));
        CHECK_URLS(t, rows[i].url);
    }
}

TEST_WITH(bad_paths, setup, teardown)
{
    static const char *const rows[] = {"/a b", "/\r\nHost: x", "/a\tb", "/\x01", "/\x7f", " "};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_error(*state, LABELS("__address__", "h", "__profile_path__", rows[i]), NULL,
                    "invalid path");
        check_error(*state, LABELS("__address__", "h", "__profile_path_prefix__", rows[i]), NULL,
                    "invalid path");
    }
    char text[URL_PATH_MAX + 2];
    memset(text, '/', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    check_error(*state, LABELS("__address__", "h", "__profile_path__", text), NULL,
                "path longer than");
    text[URL_PATH_MAX] = '\0'; /* the longest one allowed, all of it segments */
    for (size_t i = 1; i < URL_PATH_MAX; i += 2) {
        text[i] = 'a';
    }
    target_unref(make_ok(*state, LABELS("__address__", "h", "__profile_path__", text)));
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Only the CPU profile has seconds, once, however often targets are created. */
TEST_ON(struct fixture *f, seconds_only_for_sampling)
{
    static const struct config_pair params[] = {{"debug", "1"}, {"seconds", "3"}};
    f->job.params = (struct config_pairs){params, 2};
    for (size_t i = 0; i < N_TYPES; i++) {
        f->types[i].params = f->job.params;
    }
    enable_only(f, "process_cpu");
    f->types[0].enabled = true;
    for (int i = 0; i < 10; i++) {
        SCOPED(target) *t = make_ok(f, LABELS("__address__", "h:1"));
        CHECK_URLS(t, "http://h:1/debug/pprof/allocs?debug=1",
                   "http://h:1/debug/pprof/profile?debug=1&seconds=14");
        check_label(t, "__param_debug", "1");
    }
}

TEST_ON(struct fixture *f, param_labels)
{
    enable_only(f, "memory");
    static const struct config_pair own[] = {{"b", "1"}, {"a", "x y"}, {"b", "2"}};
    f->types[0].params = (struct config_pairs){own, 3};
    struct target *t = make_ok(f, LABELS("__address__", "h:1"));
    CHECK_URLS(t, "http://h:1/debug/pprof/allocs?a=x%20y&b=1&b=2");
    target_unref(t);
    t = make_ok(f, LABELS("__address__", "h:1", "__param_b", "9&\r\n", "__param_z", "\xc3\xbc",
                          "__param_", "none"));
    CHECK_URLS(t, "http://h:1/debug/pprof/allocs?a=x%20y&b=9%26%0D%0A&b=2&z=%C3%BC");
    check_label(t, "__param_b", "9&\r\n");
    target_unref(t);
}

/* A parameter of the job does not hide a type's parameter of the same name. */
TEST_ON(struct fixture *f, type_params_win)
{
    enable_only(f, "memory");
    static const struct config_pair job[] = {{"gc", "0"}};
    static const struct config_pair own[] = {{"gc", "1"}};
    f->job.params = (struct config_pairs){job, 1};
    f->types[0].params = (struct config_pairs){own, 1};
    SCOPED(target) *t = make_ok(f, LABELS("__address__", "h:1"));
    CHECK_URLS(t, "http://h:1/debug/pprof/allocs?gc=1");
    check_label(t, "__param_gc", "0");
}

/* For types that sample, the seconds are added to the timeout. */
TEST_ON(struct fixture *f, timeouts)
{
    enable_only(f, "process_cpu");
    f->types[0].enabled = true;
    for (size_t i = 0; i < N_TYPES; i++) {
        f->types[i].interval_ms = 2000;
        f->types[i].timeout_ms = 1000;
        f->types[i].seconds = f->types[i].sampling ? 1 : 0;
    }
    SCOPED(target) *t = make_ok(f, LABELS("__address__", "h:1"));
    CHECK_INT(target_timeout_ms(t, 0), 1000, "memory");
    CHECK_INT(target_timeout_ms(t, 1), 2000, "process_cpu");
}

TEST_ON(struct fixture *f, seconds_of_a_target)
{
    enable_only(f, "process_cpu");
    f->types[0].enabled = true;
    struct target *t = make_ok(f, LABELS("__address__", "h:1", "__param_seconds", "5"));
    CHECK_URLS(t, "http://h:1/debug/pprof/allocs", "http://h:1/debug/pprof/profile?seconds=5");
    CHECK_INT(target_timeout_ms(t, 1), 15000, "timeout follows");
    target_unref(t);
    static const char *const bad[] = {"0", "16", "-1", "1.5", "x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        /* The error disables the types that sample; a target with no others is refused. */
        static const char want[] =
            "profile type process_cpu: "
            "invalid __param_seconds: expected whole seconds from 1 to 15, got \"";
        t = make_ok(f, LABELS("__address__", "h:1", "__param_seconds", bad[i]));
        CHECK_URLS(t, "http://h:1/debug/pprof/allocs");
        CHECK_INT(target_problem_count(t), 1, bad[i]);
        const char *type;
        CHECK_CONTAINS(target_problem(t, 0, &type), want, bad[i]);
        CHECK_STR(type, "process_cpu", bad[i]);
        target_unref(t);
        f->types[0].enabled = false;
        check_error(f, LABELS("__address__", "h:1", "__param_seconds", bad[i]), NULL, want);
        f->types[0].enabled = true;
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The sources of the service name, in order. */
TEST_WITH(service_names, setup, teardown)
{
#define ANNOTATION "__meta_kubernetes_pod_annotation_pyroscope_io_service_name", "k8s-svc"
#define POD "__meta_kubernetes_namespace", "ns", "__meta_kubernetes_pod_container_name", "container"
#define DOCKER "__meta_docker_container_name", "docker-container"
#define SWARM_CONTAINER "__meta_dockerswarm_container_label_service_name", "swarm-container"
#define SWARM_SERVICE "__meta_dockerswarm_service_name", "swarm-service"
    static const struct {
        const char *labels[12], *want;
    } rows[] = {
        {{NULL}, "unspecified"},
        {{"service_name", "mine", ANNOTATION}, "mine"},
        {{ANNOTATION, POD, DOCKER}, "k8s-svc"},
        {{POD, DOCKER, SWARM_SERVICE}, "ns/container"},
        {{"__meta_kubernetes_namespace", "ns"}, "unspecified"},
        {{"__meta_kubernetes_pod_container_name", "c"}, "unspecified"},
        {{DOCKER, SWARM_CONTAINER}, "docker-container"},
        {{SWARM_CONTAINER, SWARM_SERVICE}, "swarm-container"},
        {{SWARM_SERVICE}, "swarm-service"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *labels[16] = {"__address__", "h:1"};
        memcpy(labels + 2, rows[i].labels, sizeof(rows[i].labels));
        SCOPED(target) *t = make_ok(*state, labels);
        check_label(t, "service_name", rows[i].want);
        check_label(t, "__meta_kubernetes_namespace", "");
    }
}

TEST_ON(struct fixture *f, job_and_instance)
{
    f->job.name = "pods";
    struct target *t = make_ok(f, LABELS("__address__", "h"));
    check_label(t, "job", "pods");
    check_label(t, "instance", "h:80");
    check_label(t, "__address__", "h:80");
    target_unref(t);
    t = make_ok(f, LABELS("__address__", "h", "job", "own", "instance", "i", "__other__", "kept"));
    check_label(t, "job", "own");
    check_label(t, "instance", "i");
    check_label(t, "__other__", "kept");
    target_unref(t);
    f->job.job_label = "web";
    t = make_ok(f, LABELS("__address__", "h"));
    check_label(t, "job", "web");
    target_unref(t);
    f->job.job_label = "";
    t = make_ok(f, LABELS("__address__", "h"));
    check_label(t, "job", "");
    target_unref(t);
}

/* A target keeps its own name, path and prefix. */
TEST_ON(struct fixture *f, carried_labels)
{
    struct target *t = make_ok(f, LABELS("__address__", "h", "__profile_path__", "/own", "__name__",
                                         "own_name", "__profile_path_prefix__", "/pre"));
    check_label(t, "__profile_path__", "/own");
    check_label(t, "__name__", "own_name");
    check_label(t, "__profile_path_prefix__", "/pre");
    /* Several types with one URL and one name: scraped once, and once as a sampling one. */
    CHECK_URLS(t, "http://h:80/pre/own", "http://h:80/pre/own?seconds=14");
    struct labels *series = target_series(t, 0, f->b);
    CHECK_STR(labels_get(series, SV("__name__")).p, "own_name", "name");
    CHECK_STR(labels_get(series, SV("__profile_path__")).p, "/own", "path");
    labels_unref(series);
    target_unref(t);

    /* The name of a type turns all of them into that type. */
    t = make_ok(f,
                LABELS("__address__", "h", "__profile_path__", "/cpu", "__name__", "process_cpu"));
    CHECK_URLS(t, "http://h:80/cpu?seconds=14");
    CHECK_STR(target_scrape_type(t, 0)->key, "process_cpu", "type");
    target_unref(t);
}

/* godeltaprof is named memory, and is a delta already. No labels of a scope are added. */
TEST_ON(struct fixture *f, series_labels)
{
    enable_only(f, "godeltaprof_memory");
    f->types[4].enabled = true;
    SCOPED(target) *t = make_ok(f, LABELS("__address__", "h:1", "pod", "web"));
    CHECK_URLS(t, "http://h:1/debug/pprof/profile?seconds=14", "http://h:1/debug/pprof/delta_heap");
    check_label(t, "__name__", "");
    static const char *const want[] = {
        "{__address__=\"h:1\", __name__=\"process_cpu\", "
        "__profile_path__=\"/debug/pprof/profile\", __scheme__=\"http\", instance=\"h:1\", "
        "pod=\"web\", service_name=\"unspecified\"}",
        "{__address__=\"h:1\", __delta__=\"false\", __name__=\"memory\", "
        "__profile_path__=\"/debug/pprof/delta_heap\", __scheme__=\"http\", instance=\"h:1\", "
        "pod=\"web\", service_name=\"unspecified\"}",
    };
    for (size_t i = 0; i < 2; i++) {
        SCOPED(labels) *series = target_series(t, i, f->b);
        SCOPED(buf) text = testing_buf(4096);
        testing_labels_format(series, &text);
        CHECK_STR(text.data, want[i], "series");
    }
}

/* `instance` is the address that is scraped, unless a rule has set it. */
TEST_ON(struct fixture *f, instance_of_a_type)
{
    static const struct {
        const char *row, *instance, *want;
    } rows[] = {
        {"the type's own port", "", "h:6060"},
        {"set by a rule", "web-1", "web-1"},
        {"set by a rule to what it would be", "h:80", "h:80"},
    };
    f->types[4].enabled = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(target) *t = make_ok(f, LABELS("__address__", "h:80", "instance", rows[i].instance,
                                              "__profile_process_cpu_port__", "6060"));
        for (size_t k = 0; k < target_scrape_count(t); k++) {
            SCOPED(labels) *series = target_series(t, k, f->b);
            bool own = strcmp(target_scrape_type(t, k)->key, "process_cpu") == 0;
            const char *want = own ? rows[i].want : i == 1 ? "web-1" : "h:80";
            CHECK_STR(labels_get(series, SV("instance")).p, want, rows[i].row);
            CHECK_STR(labels_get(series, SV("__address__")).p, own ? "h:6060" : "h:80",
                      rows[i].row);
        }
    }
}

/* Invalid UTF-8 is refused, control characters and emoji are fine. */
TEST_WITH(utf8, setup, teardown)
{
    check_error(*state, LABELS("__address__", "h", "bad", "\xc3("), NULL,
                "label \"bad\" is not valid UTF-8");
    target_unref(make_ok(*state, LABELS("__address__", "h", "fine", "a\nb\tc \xf0\x9f\x98\x80")));
}

/* ---- special addresses ----------------------------------------------------------------------- */

/* Refused of a pod, even where any host is allowed; not if the job allows them, or if the operator
 * has listed them. */
TEST_ON(struct fixture *f, special_addresses)
{
    static const struct {
        const char *host;
        const char *what; /* NULL: ordinary */
    } rows[] = {
        {"127.0.0.1", "a loopback address"},
        {"127.255.1.2", "a loopback address"},
        {"127.1", "a loopback address"},
        {"0x7f.0.0.1", "a loopback address"},
        {"2130706433", "a loopback address"},
        {"017700000001", "a loopback address"},
        {"::1", "a loopback address"},
        {"::ffff:127.0.0.1", "a loopback address"},
        {"::127.0.0.1", "a loopback address"},
        {"64:ff9b::7f00:1", "a loopback address"},
        {"2002:7f00:1::", "a loopback address"},
        {"localhost", "a loopback address"},
        {"LocalHost.", "a loopback address"},
        {"a.localhost", "a loopback address"},
        {"0.0.0.0", "an unspecified address"},
        {"0.1.2.3", "an unspecified address"},
        {"0", "an unspecified address"},
        {"::", "an unspecified address"},
        {"169.254.1.1", "a link-local address"},
        {"fe80::1", "a link-local address"},
        {"febf::1", "a link-local address"},
        {"224.0.0.1", "a multicast address"},
        {"239.255.255.255", "a multicast address"},
        {"ff02::1", "a multicast address"},
        {"255.255.255.255", "the broadcast address"},
        {"169.254.169.254", "the metadata service of a cloud"},
        {"::ffff:a9fe:a9fe", "the metadata service of a cloud"},
        {"64:ff9b::a9fe:a9fe", "the metadata service of a cloud"},
        {"fd00:ec2::254", "the metadata service of a cloud"},
        {"fd20:ce::254", "the metadata service of a cloud"},
        {"168.63.129.16", "the metadata service of a cloud"},
        {"100.100.100.200", "the metadata service of a cloud"},
        {"metadata.google.internal", "the metadata service of a cloud"},
        {"10.1.2.3", NULL},
        {"100.64.1.1", NULL},
        {"169.253.255.255", NULL},
        {"169.255.0.0", NULL},
        {"126.255.255.255", NULL},
        {"128.0.0.1", NULL},
        {"240.1.2.3", NULL},
        {"fd00:1::1", NULL},
        {"fec0::1", NULL},
        {"2001:db8::127.0.0.1", NULL},
        {"localhost.example.com", NULL},
        {"mylocalhost", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int allowed = 0; allowed < 2; allowed++) {
            char address[128];
            char want[256] = "";
            bool v6 = strchr(rows[i].host, ':') != NULL;
            struct err err = ERR_INIT;
            f->job.allow_special_address = allowed == 1;
            f->job.allow_foreign_address = i % 2 == 0;
            snprintf(address, sizeof(address), v6 ? "[%s]:6060" : "%s:6060", rows[i].host);
            struct target *t = make(f, LABELS("__address__", address), rows[i].host, &err);
            if (rows[i].what != NULL && allowed == 0) {
                snprintf(want, sizeof(want),
                         "address \"%s\" is %s, which the job does not allow "
                         "(allow_special_address)",
                         address, rows[i].what);
                CHECK_INT(err.kind, ERR_REFUSED, address);
            }
            CHECK_STR(err.msg, want, address);
            target_unref(t);
            err = (struct err)ERR_INIT;
            f->job.allow_special_address = false;
            t = make(f, LABELS("__address__", address), NULL, &err);
            CHECK_STR(err.msg, "", "of the operator");
            target_unref(t);
        }
    }
}

/* A job for https with credentials does not send them in plain text because a label says so. */
TEST_ON(struct fixture *f, plain_credentials)
{
    static const char refused[] =
        "scheme \"http\" would send the job's credentials in plain text, which the job does not "
        "allow (allow_plain_credentials)";
    static const struct http_header header = {"X-Key", "k"};
    static const struct {
        const char *row;
        const char *scheme; /* of the job */
        bool auth, headers, allowed, listed;
        const char *want;
    } rows[] = {
        {"credentials", "https", .auth = true, .want = refused},
        {"headers", "https", .headers = true, .want = refused},
        {"neither", "https", .want = ""},
        {"allowed", "https", .auth = true, .allowed = true, .want = ""},
        {"the operator's", "https", .auth = true, .listed = true, .want = ""},
        {"a job for http", "http", .auth = true, .want = ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *pinned = rows[i].listed ? NULL : "10.1.2.3";
        struct err err = ERR_INIT;
        f->job.scheme = rows[i].scheme;
        f->job.http.auth = rows[i].auth ? HTTP_AUTH_HEADER : HTTP_AUTH_NONE;
        f->job.http.headers = &header;
        f->job.http.n_headers = rows[i].headers ? 1 : 0;
        f->job.allow_plain_credentials = rows[i].allowed;
        target_unref(
            make(f, LABELS("__address__", "10.1.2.3:1", "__scheme__", "HTTP"), pinned, &err));
        CHECK_STR(err.msg, rows[i].want, rows[i].row);

        /* An error of one type leaves the others. */
        err = (struct err)ERR_INIT;
        struct target *t =
            make(f, LABELS("__address__", "10.1.2.3:1", "__profile_process_cpu_scheme__", "http"),
                 pinned, &err);
        CHECK_STR(err.msg, "", rows[i].row);
        CHECK_INT(target_problem_count(t), rows[i].want[0] == '\0' ? 0 : 1, rows[i].row);
        target_unref(t);
        err = (struct err)ERR_INIT;
        t = make(f, LABELS("__address__", "10.1.2.3:1", "__scheme__", "https"), pinned, &err);
        CHECK_STR(err.msg, "", "https stays allowed");
        target_unref(t);
    }
}

/* ---- pinned hosts ---------------------------------------------------------------------------- */

TEST_ON(struct fixture *f, pinned_hosts)
{
    static const struct {
        const char *address, *pinned;
        bool good;
    } rows[] = {
        {"10.1.2.3:6060", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.3", true},
        {"169.254.169.254:80", "10.1.2.3", false},
        {"127.0.0.1:80", "10.1.2.3", false},
        {"[::1]:80", "10.1.2.3", false},
        {"10.1.2.33:80", "10.1.2.3", false},
        {"10.1.2.3.evil.example:80", "10.1.2.3", false},
        {"localhost:80", "127.0.0.1", false},
        {"0x7f.1:80", "127.0.0.1", false},
        {"2130706433:80", "127.0.0.1", false},
        {"010.1.2.3:80", "10.1.2.3", false},
        {"[::ffff:10.1.2.3]:80", "10.1.2.3", true},
        {"[fd00:0:0::5]:80", "fd00::5", true},
        {"[FD00::5]:80", "fd00::5", true},
        {"fd00::5", "fd00:0:0:0:0:0:0:5", true},
        {"[fd00::6]:80", "fd00::5", false},
        {"10.1.2.3:80", "", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        SCOPED(target) *t = make(f, LABELS("__address__", rows[i].address), rows[i].pinned, &err);
        CHECK_INT(t != NULL, rows[i].good, rows[i].address);
        if (t == NULL) {
            CHECK_CONTAINS(err.msg, "is not the pod's own (", rows[i].address);
        }
    }
    check_error(f, LABELS("__address__", "169.254.169.254"), "10.1.2.3",
                "address \"169.254.169.254:80\" is not the pod's own (10.1.2.3)");
    f->job.allow_foreign_address = true;
    target_unref(make(f, LABELS("__address__", "10.9.9.9:80"), "10.1.2.3", NULL));
    struct err err = ERR_INIT;
    SCOPED(target) *t = make(f, LABELS("__address__", "10.9.9.9:80"), "10.1.2.3", &err);
    assert_non_null(t);
}

TEST_WITH(processes, setup, teardown)
{
    static const struct {
        const char *address, *process;
    } rows[] = {
        {"WEB:80", "web:80"},
        {"[0:0:0:0:0:0:0:1]:80", "[::1]:80"},
        {"[::ffff:10.1.2.3]:80", "10.1.2.3:80"},
        {"10.1.2.3", "10.1.2.3:80"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(target) *t = make_ok(*state, LABELS("__address__", rows[i].address));
        CHECK_STR(target_process(t, 0), rows[i].process, rows[i].address);
    }
}

/* ---- identity -------------------------------------------------------------------------------- */

/* Labels are not part of a scrape's identity; address, path, parameters and name are. */
TEST_ON(struct fixture *f, identity)
{
    enable_only(f, "memory");
    SCOPED(target) *a = make_ok(f, LABELS("__address__", "h:1", "foo", "bar"));
    struct target *same = make_ok(f, LABELS("__address__", "h:1", "foo", "other", "__type__", "x"));
    assert_true(target_same_scrape(a, 0, same, 0));
    CHECK_INT(target_scrape_hash(a, 0) == target_scrape_hash(same, 0), true, "hash");
    target_unref(same);
    const char *const *others[] = {
        LABELS("__address__", "h:2"),
        LABELS("__address__", "h:1", "__scheme__", "https"),
        LABELS("__address__", "h:1", "__profile_path__", "/x"),
        LABELS("__address__", "h:1", "__param_x", "1"),
        LABELS("__address__", "h:1", "__name__", "other"),
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        SCOPED(target) *t = make_ok(f, others[i]);
        CHECK_INT(target_same_scrape(a, 0, t, 0), false, others[i][1]);
        CHECK_INT(target_scrape_hash(a, 0) == target_scrape_hash(t, 0), false, others[i][1]);
    }
}

/* Two types with one path are two scrapes. */
TEST_ON(struct fixture *f, types_with_one_path)
{
    enable_only(f, "memory");
    f->types[9].enabled = true;
    f->types[9].path = "/debug/pprof/allocs";
    SCOPED(target) *t = make_ok(f, LABELS("__address__", "h:1"));
    CHECK_URLS(t, "http://h:1/debug/pprof/allocs", "http://h:1/debug/pprof/allocs");
    assert_false(target_same_scrape(t, 0, t, 1));
}

TEST_ON(struct fixture *f, no_types)
{
    enable_only(f, "none");
    struct target *t = make_ok(f, LABELS("__address__", "h:1"));
    CHECK_INT(target_scrape_count(t), 0, "count");
    CHECK_STR(labels_get(target_labels(t), SV("__address__")).p, "h:1", "address");
    target_unref(target_ref(t));
    target_unref(t);
    target_unref(NULL);
}

/* A target depends on no label of discovery other than those it declares. */
TEST_ON(struct fixture *f, reads)
{
    static const char *const read[] = {
        "__meta_kubernetes_namespace",
        "__meta_kubernetes_pod_container_name",
        "__meta_kubernetes_pod_annotation_pyroscope_io_service_name",
        "__meta_kubernetes_pod_uid",
        "__meta_docker_container_name",
        "__meta_dockerswarm_container_label_service_name",
        "__meta_dockerswarm_service_name",
        "__address__",
        "__param_seconds",
        "__meta",
        "app",
    };
    for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++) {
        CHECK_INT(target_reads(sv_from(read[i])), true, read[i]);
    }
    static const char *const unread[] = {
        "__meta_kubernetes_pod_name",
        "__meta_kubernetes_pod_annotation_pyroscope_io_service_names",
        "__meta_",
    };
    for (size_t i = 0; i < sizeof(unread) / sizeof(unread[0]); i++) {
        CHECK_INT(target_reads(sv_from(unread[i])), false, unread[i]);
    }
    struct target *t = make_ok(f, LABELS("__address__", "h:1"));
    SCOPED(target) *u = make_ok(f, LABELS("__address__", "h:1", "__meta_kubernetes_pod_name", "p",
                                          "__meta_kubernetes_node_name", "n"));
    CHECK_INT(labels_equal(target_labels(t), target_labels(u)), true, "labels");
    target_unref(t);
}

/* An annotation may have 250 KB; no destination takes more than 64. */
TEST_ON(struct fixture *f, long_values_are_cut)
{
    static char text[250 * 1024];
    for (size_t i = 0; i + 2 < sizeof(text); i += 2) {
        memcpy(text + i, "\xc3\xa4", 2);
    }
    struct target *t =
        make_ok(f, LABELS("__address__", "h", "long", text, "__tmp", text, "a", "b"));
    struct sv value = labels_get(target_labels(t), SV("long"));
    CHECK_INT(value.n, TARGET_VALUE_MAX, "");
    assert_true(utf8_valid(value));
    CHECK_INT(labels_get(target_labels(t), SV("__tmp")).n, TARGET_VALUE_MAX, "");
    check_label(t, "a", "b");
    target_unref(t);
    text[TARGET_VALUE_MAX] = '\0';
    t = make_ok(f, LABELS("__address__", "h", "long", text));
    check_label(t, "long", text);
    target_unref(t);
}

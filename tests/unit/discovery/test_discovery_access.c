/* Where the API server is: service account, kubeconfig, explicit; and static targets. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discovery/kubernetes/access.h"
#include "discovery/lists/static.h"

struct env {
    const char *host;
    const char *port;
    const char *dir;
};

static const char *get_env(void *arg, const char *name)
{
    const struct env *env = arg;
    if (strcmp(name, "KUBERNETES_SERVICE_HOST") == 0) {
        return env->host;
    }
    if (strcmp(name, "KUBERNETES_SERVICE_PORT") == 0) {
        return env->port;
    }
    return strcmp(name, KUBE_SERVICE_ACCOUNT_ENV) == 0 ? env->dir : NULL;
}

struct fixture {
    char *dir;
    struct arena *arena;
    struct env env;
    struct kube_access access;
    struct err err;
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.dir = testing_mkdtemp(), .arena = arena_new(1 << 20)};
    assert_non_null(f->arena);
    f->env = (struct env){.host = "10.96.0.1", .port = "443", .dir = f->dir};
    testing_write_file(f->dir, "token", "secret-token\n");
    testing_write_file(f->dir, "ca.crt", "-----BEGIN CERTIFICATE-----\n");
    testing_write_file(f->dir, "namespace", " monitoring\r\n");
}

static void fixture_done(struct fixture *f)
{
    arena_free(f->arena);
    testing_directory_leave(&f->dir);
}
SCOPED_VALUE(fixture, fixture_done)

SETUP_OF(fixture)

static bool find(struct fixture *f, const struct config_kubernetes *config)
{
    struct kube_env env = {.get = get_env, .arg = &f->env};
    err_clear(&f->err);
    f->access = (struct kube_access){0};
    bool ok = kube_access_find(config, &env, f->arena, &f->access, &f->err);
    assert_int_equal(ok, f->err.kind == ERR_NONE);
    return ok;
}

static void remove_file(struct fixture *f, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_int_equal(unlink(path), 0);
}

TEST_ON(struct fixture *f, test_in_cluster)
{
    assert_true(find(f, &(struct config_kubernetes){.role = ROLE_POD}));
    CHECK_STR(f->access.server, "https://10.96.0.1:443", "");
    CHECK_STR(f->access.namespace, "monitoring", "trimmed");
    CHECK_INT(f->access.http.auth, HTTP_AUTH_HEADER, "");
    CHECK_CONTAINS(f->access.http.credentials_file, "/token", "a file, so that it can be rotated");
    CHECK_CONTAINS(f->access.http.tls.ca_file, "/ca.crt", "");
    assert_null(f->access.http.credentials);
    assert_false(f->access.http.tls.insecure_skip_verify);
    assert_false(f->access.http.follow_redirects);
}

TEST_ON(struct fixture *f, test_server_address)
{
    static const struct {
        const char *host, *port;
        const char *want; /* the URL, or part of the error */
    } cases[] = {
        {"fd00:10:96::1", "6443", "https://[fd00:10:96::1]:6443"},
        {"[fd00::1]", "6443", "https://[fd00::1]:6443"},
        {"kubernetes.default.svc", "443", "https://kubernetes.default.svc:443"},
        {NULL, "443", "KUBERNETES_SERVICE_HOST is not set"},
        {"", "443", "KUBERNETES_SERVICE_HOST is not set"},
        {"10.96.0.1", NULL, "KUBERNETES_SERVICE_PORT is not set"},
        {"10.96.0.1", "x", "expected a port of 1-65535, got \"x\""},
        {"10.96.0.1", "0", "expected a port of 1-65535, got \"0\""},
        {"10.96.0.1", "65536", "expected a port of 1-65535, got \"65536\""},
        {"10.96.0.1", "tcp://10.96.0.1:443", "expected a port"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        f->env.host = cases[i].host;
        f->env.port = cases[i].port;
        bool ok = find(f, &(struct config_kubernetes){.role = ROLE_POD});
        CHECK_INT(ok, strncmp(cases[i].want, "https", 5) == 0, cases[i].want);
        if (ok) {
            CHECK_STR(f->access.server, cases[i].want, "");
        } else {
            CHECK_CONTAINS(f->err.msg, cases[i].want, "");
        }
    }
}

TEST_ON(struct fixture *f, test_missing_files)
{
    remove_file(f, "namespace");
    assert_true(find(f, &(struct config_kubernetes){.role = ROLE_POD}));
    assert_null(f->access.namespace);
    testing_write_file(f->dir, "namespace", "\n");
    assert_true(find(f, &(struct config_kubernetes){.role = ROLE_POD}));
    assert_null(f->access.namespace);
    remove_file(f, "ca.crt");
    assert_false(find(f, &(struct config_kubernetes){.role = ROLE_POD}));
    CHECK_CONTAINS(f->err.msg, "/ca.crt: No such file", "");
    remove_file(f, "token");
    assert_false(find(f, &(struct config_kubernetes){.role = ROLE_POD}));
    CHECK_CONTAINS(f->err.msg, "/token: No such file", "");
}

TEST_ON(struct fixture *f, test_explicit)
{
    f->env.host = NULL;
    struct config_kubernetes config = {
        .role = ROLE_POD,
        .api_server = "http://127.0.0.1:8001//",
        .http = {.auth = HTTP_AUTH_BASIC, .username = "u", .password = "p"},
    };
    assert_true(find(f, &config));
    CHECK_STR(f->access.server, "http://127.0.0.1:8001", "no slash at the end");
    CHECK_STR(f->access.http.username, "u", "");
    assert_null(f->access.namespace);
}

TEST_ON(struct fixture *f, test_kubeconfig)
{
    testing_write_file(f->dir, "config",
                       "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                       "clusters: [{name: k, cluster: {server: 'https://api.example:6443'}}]\n"
                       "users: [{name: u, user: {token: t0ken}}]\n"
                       "contexts: [{name: c, context: {cluster: k, user: u, namespace: shop}}]\n");
    char path[4096];
    snprintf(path, sizeof(path), "%s/config", f->dir);
    struct config_kubernetes config = {.role = ROLE_POD, .kubeconfig_file = path};
    assert_true(find(f, &config));
    CHECK_STR(f->access.server, "https://api.example:6443", "");
    CHECK_STR(f->access.namespace, "shop", "");
    CHECK_STR(f->access.http.credentials, "t0ken", "");
    snprintf(path, sizeof(path), "%s/nowhere", f->dir);
    assert_false(find(f, &config));
    CHECK_CONTAINS(f->err.msg, "/nowhere", "");
}

TEST(test_same_server)
{
    const struct http_header header = {"A", "b"};
    const struct http_header other = {"A", "c"};
    struct config_kubernetes base = {
        .api_server = "https://a",
        .http = {.credentials = "t", .headers = &header, .n_headers = 1}};
    struct config_kubernetes cases[9] = {base, base, base, base, base, base, base, base, base};
    char same[] = "https://a"; /* another string */
    cases[0].api_server = same;
    cases[1].api_server = "https://b";
    cases[2].http.credentials = "u";
    cases[3].http.tls.ca_file = "/ca";
    cases[4].http.headers = &other;
    cases[5].http.n_headers = 0;
    cases[6].http.enable_http2 = true;
    cases[7].api_server = NULL;
    cases[8].http.username_file = "/other";
    for (size_t i = 0; i < 9; i++) {
        CHECK_INT(kube_access_same(&base, &cases[i]), i == 0, "");
    }
    struct config_kubernetes in_cluster = {0};
    struct config_kubernetes file = {.kubeconfig_file = "/f"};
    CHECK_INT(kube_access_same(&in_cluster, &in_cluster), true, "");
    CHECK_INT(kube_access_same(&in_cluster, &file), false, "");
    CHECK_INT(kube_access_same(&file, &file), true, "");
}

/* ---- static targets -------------------------------------------------------------------------- */

TEST(test_static)
{
    SCOPED(intern) *in = intern_new();
    const char *targets[] = {"127.0.0.1:6060", "[::1]:6060"};
    struct config_pair labels[] = {{"service_name", "demo"}, {"__address__", "lost"}, {"no", ""}};
    struct config_static config = {.targets = {targets, 2}, .labels = {labels, 3}};
    struct static_group group;
    struct err err = ERR_INIT;
    assert_true(static_group_make(&config, 1, NULL, in, &group, &err));
    CHECK_INT(group.n, 2, "");
    SCOPED(buf) out = testing_buf(4096);
    testing_labels_format(group.at[0], &out);
    testing_labels_format(group.at[1], &out);
    CHECK_STR(out.data,
              "{__address__=\"127.0.0.1:6060\", service_name=\"demo\"}"
              "{__address__=\"[::1]:6060\", service_name=\"demo\"}",
              "");
    static_group_done(&group);
    static_group_done(&group);
    config.targets.n = 0;
    assert_true(static_group_make(&config, 1, NULL, in, &group, &err));
    CHECK_INT(group.n, 0, "none is allowed");
    static_group_done(&group);
}

TEST(test_static_too_large)
{
    SCOPED(intern) *in = intern_new();
    SCOPED_MEMORY char *value = testing_memory(LABELS_BYTES_MAX + 1);
    memset(value, 'v', LABELS_BYTES_MAX);
    const char *targets[] = {"127.0.0.1:6060"};
    struct config_pair labels[] = {{"big", value}};
    struct config_static config = {.targets = {targets, 1}, .labels = {labels, 1}};
    struct static_group group;
    struct err err = ERR_INIT;
    assert_false(static_group_make(&config, 1, NULL, in, &group, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "");
    CHECK_CONTAINS(err.msg, "target \"127.0.0.1:6060\"", "");
    CHECK_INT(group.n, 0, "");
}

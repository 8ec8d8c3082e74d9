/* Kubeconfigs: server, credentials, and errors. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "config/config.h"
#include "config/kubeconfig.h"

#define NAME "/home/u/.kube/config"

/* "CA", "CERT" and "KEY" in base64. */
static const char full[] = "apiVersion: v1\n"
                           "kind: Config\n"
                           "preferences: {colors: true}\n"
                           "current-context: dev\n"
                           "contexts:\n"
                           "- name: dev\n"
                           "  context: {cluster: c1, user: token, namespace: team}\n"
                           "- name: prod\n"
                           "  context: {cluster: c2, user: cert, extensions: []}\n"
                           "- name: basic\n"
                           "  context: {cluster: c1, user: basic}\n"
                           "- name: files\n"
                           "  context: {cluster: c3, user: files}\n"
                           "- name: nobody\n"
                           "  context: {cluster: c1}\n"
                           "clusters:\n"
                           "- name: c1\n"
                           "  cluster: {server: \"https://10.0.0.1:6443/\", "
                           "certificate-authority-data: Q0E=}\n"
                           "- name: c2\n"
                           "  cluster:\n"
                           "    server: https://rancher/k8s/clusters/c-x\n"
                           "    insecure-skip-tls-verify: true\n"
                           "    tls-server-name: name\n"
                           "    proxy-url: http://proxy:3128\n"
                           "- name: c3\n"
                           "  cluster: {server: http://localhost:8001, certificate-authority: "
                           "ca.crt}\n"
                           "users:\n"
                           "- name: token\n"
                           "  user: {token: hunter2}\n"
                           "- name: cert\n"
                           "  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}\n"
                           "- name: basic\n"
                           "  user: {username: u, password: hunter2}\n"
                           "- name: files\n"
                           "  user: {tokenFile: tok, token: old, client-certificate: /c.crt, "
                           "client-key: c.key}\n";

static struct kubeconfig parse(struct arena *a, const char *text, const char *context)
{
    struct kubeconfig k = {0};
    struct err err = ERR_INIT;
    CHECK(kubeconfig_parse(NAME, sv_from(text), context, a, &k, &err), "%s", err.msg);
    return k;
}

TEST(current_context)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    struct kubeconfig k = parse(a, full, NULL);
    CHECK_STR(k.server, "https://10.0.0.1:6443", "");
    CHECK_STR(k.namespace, "team", "");
    CHECK_STR(k.http.tls.ca_pem, "CA", "");
    assert_null(k.http.tls.ca_file);
    assert_false(k.http.tls.insecure_skip_verify);
    CHECK_INT(k.http.auth, HTTP_AUTH_HEADER, "");
    CHECK_STR(k.http.credentials, "hunter2", "");
    assert_null(k.http.credentials_file);
    assert_true(k.http.enable_http2);
}

TEST(named_contexts)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    struct kubeconfig k = parse(a, full, "prod");
    CHECK_STR(k.server, "https://rancher/k8s/clusters/c-x", "");
    assert_null(k.namespace);
    assert_true(k.http.tls.insecure_skip_verify);
    CHECK_STR(k.http.tls.server_name, "name", "");
    CHECK_STR(k.http.proxy_url, "http://proxy:3128", "");
    CHECK_STR(k.http.tls.cert_pem, "CERT", "");
    CHECK_STR(k.http.tls.key_pem, "KEY", "");
    CHECK_INT(k.http.auth, HTTP_AUTH_NONE, "");

    k = parse(a, full, "basic");
    CHECK_INT(k.http.auth, HTTP_AUTH_BASIC, "");
    CHECK_STR(k.http.username, "u", "");
    CHECK_STR(k.http.password, "hunter2", "");

    k = parse(a, full, "files");
    CHECK_STR(k.server, "http://localhost:8001", "");
    CHECK_STR(k.http.tls.ca_file, "/home/u/.kube/ca.crt", "");
    CHECK_STR(k.http.tls.cert_file, "/c.crt", "");
    CHECK_STR(k.http.tls.key_file, "/home/u/.kube/c.key", "");
    CHECK_STR(k.http.credentials_file, "/home/u/.kube/tok", "");
    assert_null(k.http.credentials);

    k = parse(a, full, "nobody");
    CHECK_INT(k.http.auth, HTTP_AUTH_NONE, "");
}

TEST(json_is_read_too)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    struct kubeconfig k =
        parse(a,
              "{\n\t\"current-context\": \"a\",\n"
              "\t\"contexts\": [{\"name\": \"a\", \"context\": {\"cluster\": \"b\", \"user\": "
              "\"\"}}],\n"
              "\t\"clusters\": [{\"name\": \"b\", \"cluster\": {\"server\": \"https://h\", "
              "\"insecure-skip-tls-verify\": false}}],\n\t\"users\": null\n}\n",
              NULL);
    CHECK_STR(k.server, "https://h", "");
}

#define CONTEXT "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\n"
#define CLUSTER "clusters: [{name: b, cluster: {server: \"https://h\"}}]\n"
#define USER(x) CONTEXT CLUSTER "users: [{name: c, user: {" x "}}]\n"
#define SERVER(x) CONTEXT "clusters: [{name: b, cluster: {" x "}}]\nusers: []\n"

#define EXEC "exec: {interactiveMode: Never, apiVersion: client.authentication.k8s.io/v1"

TEST(mistakes_name_their_place_and_no_secret)
{
    static const struct text_case cases[] = {
        {"", "kubeconfig k: expected a mapping"},
        {"[]", "kubeconfig k:1:1: expected a mapping"},
        {"{}", "kubeconfig k: no current-context is set"},
        {"current-context: ''", "kubeconfig k: no current-context is set"},
        {"current-context: []",
         "kubeconfig k:1:18: current-context: expected a string, got a list"},
        {"current-context: a", "kubeconfig k: no context with the name \"a\" in contexts"},
        {"current-context: a\ncontexts: [{name: a}]\n",
         "kubeconfig k:2:19: context \"a\" has no mapping \"context\""},
        {"current-context: a\ncontexts: [{name: a, context: {}}]\n",
         "kubeconfig k:2:31: the context has no \"cluster\""},
        {"current-context: a\ncontexts: [{name: a, context: {cluster: b, namespace: '../x'}}]\n",
         "kubeconfig k:2:55: namespace: expected the name of a namespace"},
        {CONTEXT, "kubeconfig k: no cluster with the name \"b\" in clusters"},
        {CONTEXT CLUSTER, "kubeconfig k: no user with the name \"c\" in users"},
        {SERVER(""), "kubeconfig k:3:31: the cluster has no \"server\""},
        {SERVER("server: 10.0.0.1"),
         "kubeconfig k:3:40: server: expected a URL such as \"https://host:6443\" without user, "
         "query and fragment"},
        {SERVER("server: 'https://u:hunter2@h'"),
         "kubeconfig k:3:40: server: expected a URL such as \"https://host:6443\" without user, "
         "query and fragment"},
        {SERVER("server: https://h, certificate-authority-data: '!'"),
         "kubeconfig k:3:79: certificate-authority-data: expected PEM in base64"},
        {SERVER("server: https://h, insecure-skip-tls-verify: yes"),
         "kubeconfig k:3:77: insecure-skip-tls-verify: expected true or false"},
        {SERVER("server: https://h, proxy-url: 'ftp://hunter2'"),
         "kubeconfig k:3:62: proxy-url: expected a proxy URL"},
        {USER("exec: [aws]"), "kubeconfig k:4:32: exec: expected a mapping"},
        {USER("exec: {command: aws}"),
         "kubeconfig k:4:32: exec.apiVersion: expected \"client.authentication.k8s.io/v1\" or "
         "\"client.authentication.k8s.io/v1beta1\""},
        {USER("exec: {apiVersion: client.authentication.k8s.io/v1alpha1}"),
         "kubeconfig k:4:45: exec.apiVersion: expected \"client.authentication.k8s.io/v1\" or "
         "\"client.authentication.k8s.io/v1beta1\""},
        {USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}"),
         "kubeconfig k:4:32: exec.interactiveMode: expected \"Never\" or \"IfAvailable\""},
        {USER("exec: {interactiveMode: Always, apiVersion: client.authentication.k8s.io/v1}"),
         "kubeconfig k:4:50: exec.interactiveMode: expected \"Never\" or \"IfAvailable\", got "
         "\"Always\": there is no terminal to ask on"},
        {USER("exec: {interactiveMode: x, apiVersion: client.authentication.k8s.io/v1}"),
         "kubeconfig k:4:50: exec.interactiveMode: expected \"Never\" or \"IfAvailable\""},
        {USER(EXEC "}"), "kubeconfig k:4:32: exec.command: expected the name or the path of a "
                         "program"},
        {USER(EXEC ", command: a, args: b}"), "kubeconfig k:4:120: exec.args: expected a list"},
        {USER(EXEC ", command: a, args: [[]]}"), "kubeconfig k:4:120: exec.args: expected strings"},
        {USER(EXEC ", command: a, env: [{value: hunter2}]}"),
         "kubeconfig k:4:119: exec.env: expected mappings with a name and a value"},
        {USER(EXEC ", command: a, env: [{name: A=hunter2}]}"),
         "kubeconfig k:4:119: exec.env: expected mappings with a name and a value"},
        {USER(EXEC ", command: a}, token: {}"),
         "kubeconfig k:4:122: token: expected a string, got a mapping"},
        {USER(EXEC ", command: a}, token: hunter2"),
         "kubeconfig k: user \"c\" has both an exec plugin and a token or password; only one is "
         "allowed"},
        {USER("auth-provider: {name: gcp}"),
         "kubeconfig k: user \"c\" uses an auth-provider plugin, which is not supported yet; use "
         "a token, a client certificate or an exec plugin"},
        {USER("token: t, as: root"),
         "kubeconfig k: user \"c\" impersonates another user (\"as\"), which is not supported "
         "yet"},
        {USER("token: hunter2, username: u"),
         "kubeconfig k: user \"c\" has both a token and a username; only one is allowed"},
        {USER("token: \"hunter2\\n\""),
         "kubeconfig k:4:33: token: line breaks and control characters are not allowed"},
        {USER("token: [hunter2]"), "kubeconfig k:4:33: token: expected a string, got a list"},
        {USER("token: \"hunter2\\0\""),
         "kubeconfig k:4:33: token: expected a string, got a text that is not allowed"},
        {USER("client-certificate: x"),
         "kubeconfig k: user \"c\" has a client certificate without a client key"},
        {USER("client-key: x"),
         "kubeconfig k: user \"c\" has a client key without a client certificate"},
        {USER("client-certificate-data: AAAA"),
         "kubeconfig k:4:51: client-certificate-data: expected PEM in base64"},
        {"a: [\n", "kubeconfig k:2:1: not valid YAML: did not find expected node content while "
                   "parsing a flow node"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(arena) *a = arena_new(1 << 20);
        struct kubeconfig k = {.server = "untouched"};
        struct err err = ERR_INIT;
        CHECK_INT(kubeconfig_parse("k", sv_from(cases[i].text), NULL, a, &k, &err), false,
                  cases[i].text);
        CHECK_STR(err.msg, cases[i].want, cases[i].text);
        CHECK_STR(k.server, "untouched", "");
        assert_null(strstr(err.msg, "hunter2"));
    }
    /* Empty values count as missing. */
    SCOPED(arena) *a = arena_new(1 << 20);
    parse(a, USER("exec: null, auth-provider: , token: ''"), NULL);
}

static void check_list(const char *const *got, const char *want)
{
    SCOPED(buf) b = testing_buf(4096);
    for (; *got != NULL; got++) {
        buf_printf(&b, "%s|", *got);
    }
    CHECK_STR(b.data, want, "");
}

TEST(exec_plugin_is_described)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    struct kubeconfig k =
        parse(a,
              USER("exec: {apiVersion: client.authentication.k8s.io/v1beta1, "
                   "command: aws, args: [eks, get-token, 12], env: [{name: "
                   "AWS_PROFILE, value: prod}, {name: API_TOKEN, value: hunter2}, "
                   "{name: NONE}], installHint: 'get it', unknown: 1}"),
              NULL);
    assert_non_null(k.exec);
    CHECK_INT(k.http.auth, HTTP_AUTH_NONE, "");
    CHECK_STR(k.exec->api_version, "client.authentication.k8s.io/v1beta1", "");
    check_list(k.exec->argv, "aws|eks|get-token|12|");
    check_list(k.exec->env, "AWS_PROFILE=prod|API_TOKEN=hunter2|NONE=|");
    check_list(k.exec->secrets, "hunter2|");
    CHECK_STR(k.exec->install_hint, "get it", "");
    CHECK_STR(k.exec->info,
              "{\"kind\":\"ExecCredential\",\"apiVersion\":"
              "\"client.authentication.k8s.io/v1beta1\",\"spec\":{\"interactive\":false}}",
              "");
    k = parse(a, USER(EXEC ", command: ./bin/login, args: }"), NULL);
    check_list(k.exec->argv, "/home/u/.kube/./bin/login|");
    k = parse(a, USER(EXEC ", command: /bin/login}"), NULL);
    check_list(k.exec->argv, "/bin/login|");
    assert_null(parse(a, USER("exec: null, token: t"), NULL).exec);
}

TEST(exec_plugin_gets_its_cluster)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    struct kubeconfig k = parse(
        a,
        CONTEXT "clusters: [{name: b, cluster: {server: 'https://h/', tls-server-name: \"n\\\"\", "
                "insecure-skip-tls-verify: true, proxy-url: 'http://p:1', "
                "certificate-authority-data: Q0E=, extensions: [{name: other, extension: 1}, "
                "{name: client.authentication.k8s.io/exec, extension: {audience: x, n: 7, b: true, "
                "l: [~, '7', 1.5]}}]}}]\n"
                "users: [{name: c, user: {" EXEC ", command: a, provideClusterInfo: true}}}]\n",
        NULL);
    CHECK_STR(k.exec->info,
              "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
              "\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://h\","
              "\"tls-server-name\":\"n\\\"\",\"proxy-url\":\"http://p:1\","
              "\"insecure-skip-tls-verify\":true,\"certificate-authority-data\":\"Q0E=\","
              "\"config\":{\"audience\":\"x\",\"n\":7,\"b\":true,\"l\":[null,\"7\",\"1.5\"]}}}}",
              "");
    struct kubeconfig none;
    struct err err = ERR_INIT;
    assert_false(kubeconfig_parse("k",
                                  SV(CONTEXT "clusters: [{name: b, cluster: {server: 'https://h', "
                                             "certificate-authority: /nonexistent/ca}}]\n"
                                             "users: [{name: c, user: {" EXEC
                                             ", command: a, provideClusterInfo: true}}}]\n"),
                                  NULL, a, &none, &err));
    CHECK_CONTAINS(err.msg, "kubeconfig k: /nonexistent/ca: cannot open the file", "");
}

TEST(files_are_loaded_by_name)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[512];
    char want[1024];
    SCOPED(arena) *a = arena_new(1 << 20);
    struct kubeconfig k;
    struct err err = ERR_INIT;
    testing_write_file(dir, "config", full);
    snprintf(path, sizeof(path), "%s/config", dir);
    assert_true(kubeconfig_load(path, "files", a, &k, &err));
    snprintf(want, sizeof(want), "%s/ca.crt", dir);
    CHECK_STR(k.http.tls.ca_file, want, "");
    snprintf(path, sizeof(path), "%s/missing", dir);
    assert_false(kubeconfig_load(path, NULL, a, &k, &err));
    snprintf(want, sizeof(want), "kubeconfig %s: cannot open the file: No such file or directory",
             path);
    CHECK_STR(err.msg, want, "");
    err_clear(&err);
    assert_false(kubeconfig_load(dir, NULL, a, &k, &err));
    CHECK_CONTAINS(err.msg, "is a directory", "");
}

TEST(no_memory_at_any_size)
{
    struct arena *whole = arena_new(1 << 20);
    parse(whole, full, "files");
    size_t need = arena_used(whole);
    arena_free(whole);
    for (size_t max = 0; max < need; max += 8) {
        SCOPED(arena) *a = arena_new(max);
        struct kubeconfig k;
        struct err err = ERR_INIT;
        assert_false(kubeconfig_parse(NAME, sv_from(full), "files", a, &k, &err));
        CHECK_STR(err.msg, "kubeconfig " NAME ": not enough memory", "");
    }
}

TEST(base64_there_and_back)
{
    static const struct {
        const char *text;
        const char *want; /* NULL: refused */
    } cases[] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"Zm9vYmE=", "fooba"},
        {"Zm9vYmFy", "foobar"},
        {"Zm9v\nYmFy\n", "foobar"},
        {"+/+/", "\xfb\xff\xbf"},
        {"Zg", NULL},
        {"Zg=", NULL},
        {"Zg===", NULL},
        {"Zh==", NULL},
        {"Zm9=", NULL},
        {"Z", NULL},
        {"=", NULL},
        {"Zg==Zg==", NULL},
        {"Zm9v=", NULL},
        {"Zm-v", NULL},
        {"Zm9v!", NULL},
        {"Zm9\xc3\xa9", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) b = testing_buf(64);
        CHECK_INT(base64_decode(sv_from(cases[i].text), &b), cases[i].want != NULL, cases[i].text);
        if (cases[i].want != NULL) {
            CHECK_STR(b.data, cases[i].want, cases[i].text);
            SCOPED(buf) again = testing_buf(64);
            assert_true(base64_encode((struct sv){b.data, b.len}, &again));
            if (strchr(cases[i].text, '\n') == NULL) {
                CHECK_STR(again.data, cases[i].text, "and back");
            }
        }
    }
    SCOPED(buf) b = testing_buf(2);
    assert_false(base64_decode(SV("Zm9v"), &b));
}

/* ---- several files --------------------------------------------------------------------------- */

TEST(paths_are_those_of_kubectl)
{
    SCOPED(arena) *a = arena_new(1 << 20);
    struct kubeconfig_paths paths;
    struct err err = ERR_INIT;
    assert_true(kubeconfig_paths(":/a:b::/c:", "/home/u", a, &paths, &err));
    CHECK_INT(paths.n, 3, "");
    CHECK_STR(paths.at[0], "/a", "");
    CHECK_STR(paths.at[1], "b", "");
    CHECK_STR(paths.at[2], "/c", "");
    assert_false(paths.is_default);
    assert_true(kubeconfig_paths("", "/home/u", a, &paths, &err));
    CHECK_INT(paths.n, 1, "");
    CHECK_STR(paths.at[0], "/home/u/.kube/config", "");
    assert_true(paths.is_default);
    assert_true(kubeconfig_paths(NULL, NULL, a, &paths, &err));
    CHECK_INT(paths.n, 0, "");
    char many[2 * (KUBECONFIG_FILES_MAX + 1) + 1] = "";
    for (size_t i = 0; i + 1 < sizeof(many); i += 2) {
        many[i] = 'a';
        many[i + 1] = ':';
    }
    assert_false(kubeconfig_paths(many, NULL, a, &paths, &err));
    CHECK_STR(err.msg, "KUBECONFIG: expected at most 32 files", "");
}

/* The first file has the contexts and one user, the second one the rest, and a context and a user
 * that the first one has as well. */
static const char contexts_file[] =
    "contexts:\n"
    "- {name: dev, context: {cluster: near, user: jane}}\n"
    "- {name: prod, context: {cluster: far, user: joe, namespace: shop}}\n"
    "users:\n"
    "- {name: jane, user: {tokenFile: jane.token}}\n";
static const char clusters_file[] =
    "current-context: prod\n"
    "contexts:\n"
    "- {name: dev, context: {cluster: far, user: joe}}\n"
    "clusters:\n"
    "- {name: near, cluster: {server: \"https://near\", certificate-authority: ca.crt}}\n"
    "- {name: far, cluster: {server: \"https://far\"}}\n"
    "users:\n"
    "- {name: jane, user: {token: hunter2}}\n"
    "- {name: joe, user: {token: hunter3}}\n";

struct several {
    struct arena *arena;
    char *dir;
    struct kubeconfig_paths paths;
    struct kubeconfig k;
    bool found;
    struct err err;
};

static void several_setup(struct several *s)
{
    *s = (struct several){.arena = arena_new(1 << 20), .dir = testing_mkdtemp()};
    const char *sub = arena_printf(s->arena, "%s/sub", s->dir);
    const char *list =
        arena_printf(s->arena, "%s/one:%s/nothing:%s/two:%s/empty", s->dir, s->dir, sub, s->dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    testing_write_file(s->dir, "one", contexts_file);
    testing_write_file(sub, "two", clusters_file);
    testing_write_file(s->dir, "empty", "");
    assert_true(kubeconfig_paths(list, NULL, s->arena, &s->paths, &s->err));
}

static void several_done(struct several *s)
{
    arena_free(s->arena);
    testing_directory_leave(&s->dir);
}
SCOPED_VALUE(several, several_done)

static bool several_load(struct several *s, const char *context)
{
    err_clear(&s->err);
    return kubeconfig_load_all(&s->paths, context, s->arena, &s->k, &s->found, &s->err);
}

TEST(first_file_wins)
{
    SCOPED(several) s;
    several_setup(&s);
    CHECK(several_load(&s, NULL), "%s", s.err.msg);
    assert_true(s.found);
    CHECK_STR(s.k.context, "prod", "the current context is that of the second file");
    CHECK_STR(s.k.server, "https://far", "");
    CHECK_STR(s.k.namespace, "shop", "");
    CHECK_STR(s.k.http.credentials, "hunter3", "");

    assert_true(several_load(&s, "dev"));
    const char *token = arena_printf(s.arena, "%s/jane.token", s.dir);
    const char *ca = arena_printf(s.arena, "%s/sub/ca.crt", s.dir);
    CHECK_STR(s.k.server, "https://near", "the context is that of the first file");
    CHECK_STR(s.k.http.credentials_file, token, "the user is that of the first file");
    assert_null(s.k.http.credentials);
    CHECK_STR(s.k.http.tls.ca_file, ca, "relative to its own file");
}

TEST(several_files_fail_with_all_names)
{
    SCOPED(several) s;
    several_setup(&s);
    assert_false(several_load(&s, "prd"));
    assert_non_null(strstr(s.err.msg, s.paths.names));
    assert_non_null(strstr(s.err.msg, "no context with the name \"prd\" in contexts; did you mean "
                                      "\"prod\"?"));
    const char *sub = arena_printf(s.arena, "%s/sub", s.dir);
    testing_write_file(sub, "two", "users: {");
    assert_false(several_load(&s, NULL));
    assert_non_null(strstr(s.err.msg, "/sub/two:"));
    testing_write_file(sub, "two", "[]");
    assert_false(several_load(&s, NULL));
    assert_non_null(strstr(s.err.msg, "/sub/two:1:1: expected a mapping"));
    s.paths.at[0] = "/nonexistent/a";
    s.paths.n = 1;
    assert_true(several_load(&s, NULL));
    assert_false(s.found);
}

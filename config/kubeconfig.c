/* Reading a kubeconfig. Unknown keys are ignored: most of them concern only kubectl. */
#include <stdio.h>
#include <string.h>

#include "config/file.h"
#include "config/kubeconfig_parts.h"
#include "config/parts.h"

#define TREE_MAX (UINT64_C(64) * 1024 * 1024)

/* ---- the parts of the file ------------------------------------------------------------------- */

/* Finds the element with this name in the list `list`, and returns its mapping `key`. */
static const struct yaml_node *find_named(struct loader *l, const struct yaml_node *root,
                                          const char *list, const char *key, const char *name)
{
    const struct yaml_node *element = loader_find(yaml_get(root, list), name);
    if (element == NULL) {
        loader_fail(l, NULL, "no %s with the name \"%.128s\" in %s", key, name, list);
        return NULL;
    }
    const struct yaml_node *found = yaml_get(element, key);
    if (found != NULL && (found->kind == YAML_MAPPING || yaml_is_null(found))) {
        return found;
    }
    loader_fail(l, yaml_get(element, "name"), "%s \"%.128s\" has no mapping \"%s\"", key, name,
                key);
    return NULL;
}

/* Inline data takes precedence over a file, as in kubectl. */
static void prefer_data(const char *data, const char **file)
{
    if (data != NULL) {
        *file = NULL;
    }
}

static bool check_server(struct loader *l, const struct yaml_node *cluster, struct kubeconfig *k)
{
    struct sv server = sv_from(k->server);
    while (server.n > 0 && server.p[server.n - 1] == '/') {
        server.n--;
    }
    if (server.n == 0) {
        return loader_fail(l, cluster, "the cluster has no \"server\"");
    }
    if (!check_http_url(server)) {
        return loader_fail(
            l, yaml_get(cluster, "server"),
            "server: expected a URL such as \"https://host:6443\" without user, query and "
            "fragment");
    }
    k->server = arena_strndup(l->arena, server.p, server.n);
    return k->server != NULL || loader_fail_memory(l);
}

static bool read_cluster(struct loader *l, const struct yaml_node *cluster, struct kubeconfig *k)
{
    static const struct loader_row rows[] = {
        {"server", LOAD_TEXT, offsetof(struct kubeconfig, server)},
        {"certificate-authority-data", LOAD_PEM, offsetof(struct kubeconfig, http.tls.ca_pem)},
        {"certificate-authority", LOAD_FILE, offsetof(struct kubeconfig, http.tls.ca_file)},
        {"insecure-skip-tls-verify", LOAD_BOOL,
         offsetof(struct kubeconfig, http.tls.insecure_skip_verify)},
        {"tls-server-name", LOAD_TEXT, offsetof(struct kubeconfig, http.tls.server_name)},
        {"proxy-url", LOAD_TEXT, offsetof(struct kubeconfig, http.proxy_url)},
        {0},
    };
    if (!loader_read(l, cluster, rows, k) || !check_server(l, cluster, k)) {
        return false;
    }
    prefer_data(k->http.tls.ca_pem, &k->http.tls.ca_file);
    if (k->http.proxy_url != NULL && !text_ok(&text_proxy_url, sv_from(k->http.proxy_url))) {
        return loader_fail(l, yaml_get(cluster, "proxy-url"), "proxy-url: expected a proxy URL");
    }
    return true;
}

/* Refuses features that profpull lacks and must not ignore. */
static bool refuse_plugins(struct loader *l, const struct yaml_node *user)
{
    static const struct {
        const char *key;
        const char *what;
    } refused[] = {
        {"auth-provider", "uses an auth-provider plugin, which is not supported yet; use a token, "
                          "a client certificate or an exec plugin"},
        {"as", "impersonates another user (\"as\"), which is not supported yet"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const struct yaml_node *n = yaml_get(user, refused[i].key);
        if (n != NULL && !yaml_is_null(n)) {
            return loader_fail(l, NULL, "user \"%.128s\" %s", l->user, refused[i].what);
        }
    }
    return true;
}

/* Checks that a user has a token or a password, not both. tokenFile takes precedence over token, as
 * in kubectl. */
static bool check_login(struct loader *l, const struct yaml_node *user, struct http_settings *http)
{
    const char *token = http->credentials;
    bool bearer = token != NULL || http->credentials_file != NULL;
    if (bearer && http->username != NULL) {
        return loader_fail(l, NULL,
                           "user \"%.128s\" has both a token and a username; only one is allowed",
                           l->user);
    }
    if (token != NULL && !check_header_value(sv_from(token))) {
        return loader_fail(l, yaml_get(user, "token"),
                           "token: line breaks and control characters are not allowed");
    }
    if (http->credentials_file != NULL) {
        http->credentials = NULL;
    }
    http->auth = bearer                   ? HTTP_AUTH_HEADER
                 : http->username != NULL ? HTTP_AUTH_BASIC
                                          : HTTP_AUTH_NONE;
    return true;
}

static bool read_user(struct loader *l, const struct yaml_node *user, struct http_settings *http)
{
    static const struct loader_row rows[] = {
        {"token", LOAD_TEXT, offsetof(struct http_settings, credentials)},
        {"tokenFile", LOAD_FILE, offsetof(struct http_settings, credentials_file)},
        {"username", LOAD_TEXT, offsetof(struct http_settings, username)},
        {"password", LOAD_TEXT, offsetof(struct http_settings, password)},
        {"client-certificate-data", LOAD_PEM, offsetof(struct http_settings, tls.cert_pem)},
        {"client-certificate", LOAD_FILE, offsetof(struct http_settings, tls.cert_file)},
        {"client-key-data", LOAD_PEM, offsetof(struct http_settings, tls.key_pem)},
        {"client-key", LOAD_FILE, offsetof(struct http_settings, tls.key_file)},
        {0},
    };
    if (!refuse_plugins(l, user) || !loader_read(l, user, rows, http) ||
        !check_login(l, user, http)) {
        return false;
    }
    prefer_data(http->tls.cert_pem, &http->tls.cert_file);
    prefer_data(http->tls.key_pem, &http->tls.key_file);
    bool cert = http->tls.cert_pem != NULL || http->tls.cert_file != NULL;
    bool key = http->tls.key_pem != NULL || http->tls.key_file != NULL;
    if (cert != key) {
        return loader_fail(l, NULL, "user \"%.128s\" has a client %s without a client %s", l->user,
                           cert ? "certificate" : "key", cert ? "key" : "certificate");
    }
    return true;
}

/* The names that a context consists of. */
struct context {
    const char *cluster;
    const char *user;
    const char *namespace;
};

static bool read_context(struct loader *l, const struct yaml_node *n, struct context *c)
{
    static const struct loader_row rows[] = {
        {"cluster", LOAD_TEXT, offsetof(struct context, cluster)},
        {"user", LOAD_TEXT, offsetof(struct context, user)},
        {"namespace", LOAD_TEXT, offsetof(struct context, namespace)},
        {0},
    };
    if (!loader_read(l, n, rows, c)) {
        return false;
    }
    if (c->cluster == NULL) {
        return loader_fail(l, n, "the context has no \"cluster\"");
    }
    return c->namespace == NULL || text_ok(&text_namespace, sv_from(c->namespace)) ||
           loader_fail(l, yaml_get(n, "namespace"), "namespace: expected the name of a namespace");
}

/* Reads the file's tree. context: NULL for current-context. */
static bool read_tree(struct loader *l, const struct yaml_node *root, const char *context,
                      struct kubeconfig *k)
{
    static const struct loader_row rows[] = {{"current-context", LOAD_TEXT, 0}, {0}};
    struct context c = {0};
    if (root == NULL || root->kind != YAML_MAPPING) {
        return loader_fail(l, root, "expected a mapping");
    }
    if (context == NULL && !loader_read(l, root, rows, &context)) {
        return false;
    }
    if (context == NULL) {
        return loader_fail(l, NULL, "no current-context is set");
    }
    const struct yaml_node *n = find_named(l, root, "contexts", "context", context);
    if (n == NULL || !read_context(l, n, &c)) {
        return false;
    }
    k->namespace = c.namespace;
    const struct yaml_node *cluster = find_named(l, root, "clusters", "cluster", c.cluster);
    if (cluster == NULL || !read_cluster(l, cluster, k)) {
        return false;
    }
    if (c.user == NULL) {
        return true;
    }
    l->user = c.user;
    const struct yaml_node *user = find_named(l, root, "users", "user", c.user);
    return user != NULL && read_user(l, user, &k->http) && loader_exec(l, user, cluster, k);
}

bool kubeconfig_parse(const char *name, struct sv text, const char *context, struct arena *arena,
                      struct kubeconfig *ret, struct err *err)
{
    struct loader l = {.name = name, .arena = arena, .err = err};
    struct kubeconfig k = {0};
    const struct yaml_node *root = NULL;
    struct yaml_place place;
    struct arena *scratch = arena_new(TREE_MAX);
    if (scratch == NULL) {
        return loader_fail_memory(&l);
    }
    schema_defaults(&schema_http, &k.http);
    bool ok = yaml_parse(text, scratch, &root, &place, err);
    if (ok) {
        ok = read_tree(&l, root, context, &k);
    } else if (place.line > 0) {
        err_wrap(err, "kubeconfig %s:%d:%d", name, place.line, place.column);
    } else {
        err_wrap(err, "kubeconfig %s", name);
    }
    arena_free(scratch);
    if (ok) {
        *ret = k;
    }
    return ok;
}

bool kubeconfig_load(const char *path, const char *context, struct arena *arena,
                     struct kubeconfig *ret, struct err *err)
{
    struct buf text;
    buf_init(&text, CONFIG_FILE_MAX + 1);
    bool ok = file_read(path, CONFIG_FILE_MAX, &text, err);
    if (!ok) {
        err_wrap(err, "kubeconfig %s", path);
    } else {
        ok = kubeconfig_parse(path, (struct sv){text.data, text.len}, context, arena, ret, err);
    }
    buf_done(&text);
    return ok;
}

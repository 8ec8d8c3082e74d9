/* Reading a kubeconfig. Unknown keys are ignored: most of them concern only kubectl. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "config/file.h"
#include "config/kubeconfig_parts.h"
#include "config/parts.h"

#define TREE_MAX (UINT64_C(64) * 1024 * 1024)

bool loader_fail(struct loader *l, const struct yaml_node *n, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(l->err, ERR_INPUT, "%s", text);
    if (n == NULL) {
        err_wrap(l->err, "kubeconfig %s", l->name);
    } else {
        err_wrap(l->err, "kubeconfig %s:%d:%d", l->name, n->line, n->column);
    }
    return false;
}

bool loader_fail_memory(struct loader *l)
{
    return err_set(l->err, ERR_MEMORY, "kubeconfig %s: not enough memory", l->name);
}

/* ---- values ---------------------------------------------------------------------------------- */

bool loader_text(struct loader *l, const struct yaml_node *n, const char *key, const char **ret)
{
    const struct yaml_node *value = yaml_get(n, key);
    *ret = NULL;
    if (value == NULL || yaml_is_null(value)) {
        return true;
    }
    if (value->kind != YAML_SCALAR || value->problem != NULL) {
        return loader_fail(l, value, "%s: expected a string, got %s", key,
                           value->problem == NULL ? yaml_what(value)
                                                  : "a text that is not allowed");
    }
    if (value->text.n == 0) {
        return true;
    }
    *ret = arena_strndup(l->arena, value->text.p, value->text.n);
    return *ret != NULL ? true : loader_fail_memory(l);
}

bool loader_bool(struct loader *l, const struct yaml_node *n, const char *key, bool *ret)
{
    const struct yaml_node *value = yaml_get(n, key);
    *ret = false;
    if (value == NULL || yaml_is_null(value)) {
        return true;
    }
    bool scalar = value->kind == YAML_SCALAR && value->plain;
    *ret = scalar && sv_eq_str(value->text, "true");
    if (*ret || (scalar && sv_eq_str(value->text, "false"))) {
        return true;
    }
    return loader_fail(l, value, "%s: expected true or false", key);
}

const char *loader_resolve(struct loader *l, const char *file)
{
    const char *slash = strrchr(l->name, '/');
    if (file[0] == '/' || slash == NULL) {
        return file;
    }
    const char *path = arena_printf(l->arena, "%.*s/%s", (int)(slash - l->name), l->name, file);
    if (path == NULL) {
        loader_fail_memory(l);
    }
    return path;
}

/* A file name, relative to the directory of the kubeconfig. */
static bool get_file(struct loader *l, const struct yaml_node *n, const char *key, const char **ret)
{
    if (!loader_text(l, n, key, ret)) {
        return false;
    }
    if (*ret != NULL) {
        *ret = loader_resolve(l, *ret);
        return *ret != NULL;
    }
    return true;
}

/* PEM text in base64. */
static bool get_data(struct loader *l, const struct yaml_node *n, const char *key, const char **ret)
{
    const char *encoded;
    if (!loader_text(l, n, key, &encoded)) {
        return false;
    }
    *ret = NULL;
    if (encoded == NULL) {
        return true;
    }
    struct buf b;
    buf_init(&b, strlen(encoded) + 1);
    bool ok = base64_decode(sv_from(encoded), &b) && memchr(b.data, '\0', b.len) == NULL;
    *ret = ok ? arena_strndup(l->arena, b.data, b.len) : NULL;
    buf_done(&b);
    if (!ok) {
        const struct yaml_node *value = yaml_get(n, key);
        return loader_fail(l, value, "%s: expected PEM in base64", key);
    }
    return *ret != NULL ? true : loader_fail_memory(l);
}

/* Inline data takes precedence over a file, as in kubectl. */
static bool get_pem(struct loader *l, const struct yaml_node *n, const char *data_key,
                    const char *file_key, const char **ret_pem, const char **ret_file)
{
    if (!get_data(l, n, data_key, ret_pem) || !get_file(l, n, file_key, ret_file)) {
        return false;
    }
    if (*ret_pem != NULL) {
        *ret_file = NULL;
    }
    return true;
}

/* ---- the parts of the file ------------------------------------------------------------------- */

/* In the list `list`, the mapping `key` of the element with this name. */
static const struct yaml_node *find_named(struct loader *l, const struct yaml_node *root,
                                          const char *list, const char *key, const char *name)
{
    const struct yaml_node *elements = yaml_get(root, list);
    const struct yaml_item *i =
        elements != NULL && elements->kind == YAML_LIST ? elements->items : NULL;
    for (; i != NULL; i = i->next) {
        const struct yaml_node *n = yaml_get(i->value, "name");
        if (n == NULL || n->kind != YAML_SCALAR || !sv_eq_str(n->text, name)) {
            continue;
        }
        const struct yaml_node *found = yaml_get(i->value, key);
        if (found != NULL && (found->kind == YAML_MAPPING || yaml_is_null(found))) {
            return found;
        }
        loader_fail(l, n, "%s \"%.128s\" has no mapping \"%s\"", key, name, key);
        return NULL;
    }
    loader_fail(l, NULL, "no %s with the name \"%.128s\" in %s", key, name, list);
    return NULL;
}

static bool check_server(struct loader *l, const struct yaml_node *cluster, char *server)
{
    size_t n = server == NULL ? 0 : strlen(server);
    while (n > 0 && server[n - 1] == '/') {
        server[--n] = '\0';
    }
    if (n == 0) {
        return loader_fail(l, cluster, "the cluster has no \"server\"");
    }
    if (!check_http_url(sv_from(server))) {
        return loader_fail(
            l, yaml_get(cluster, "server"),
            "server: expected a URL such as \"https://host:6443\" without user, query and "
            "fragment");
    }
    return true;
}

static bool read_cluster(struct loader *l, const struct yaml_node *cluster, struct kubeconfig *k)
{
    const char *server;
    if (!loader_text(l, cluster, "server", &server)) {
        return false;
    }
    char *copy = server == NULL ? NULL : arena_strdup(l->arena, server);
    if (server != NULL && copy == NULL) {
        return loader_fail_memory(l);
    }
    k->server = copy;
    if (!check_server(l, cluster, copy) ||
        !get_pem(l, cluster, "certificate-authority-data", "certificate-authority",
                 &k->http.tls.ca_pem, &k->http.tls.ca_file) ||
        !loader_bool(l, cluster, "insecure-skip-tls-verify", &k->http.tls.insecure_skip_verify) ||
        !loader_text(l, cluster, "tls-server-name", &k->http.tls.server_name) ||
        !loader_text(l, cluster, "proxy-url", &k->http.proxy_url)) {
        return false;
    }
    if (k->http.proxy_url != NULL && !text_proxy_url.ok(sv_from(k->http.proxy_url))) {
        return loader_fail(l, yaml_get(cluster, "proxy-url"), "proxy-url: expected a proxy URL");
    }
    return true;
}

/* Features that we lack and that must not be ignored. */
static bool refuse_plugins(struct loader *l, const struct yaml_node *user, const char *name)
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
            return loader_fail(l, NULL, "user \"%.128s\" %s", name, refused[i].what);
        }
    }
    return true;
}

/* Token or password; tokenFile takes precedence over token, as in kubectl. */
static bool read_login(struct loader *l, const struct yaml_node *user, const char *name,
                       struct http_settings *http)
{
    const char *token;
    if (!loader_text(l, user, "token", &token) ||
        !get_file(l, user, "tokenFile", &http->credentials_file) ||
        !loader_text(l, user, "username", &http->username) ||
        !loader_text(l, user, "password", &http->password)) {
        return false;
    }
    http->credentials = http->credentials_file == NULL ? token : NULL;
    bool bearer = http->credentials != NULL || http->credentials_file != NULL;
    if (bearer && http->username != NULL) {
        return err_set(l->err, ERR_INPUT,
                       "kubeconfig %s: user \"%.128s\" has both a token and a username; only one "
                       "is allowed",
                       l->name, name);
    }
    if (token != NULL && !check_header_value(sv_from(token))) {
        return loader_fail(l, yaml_get(user, "token"),
                           "token: line breaks and control characters are not "
                           "allowed");
    }
    http->auth = bearer                   ? HTTP_AUTH_HEADER
                 : http->username != NULL ? HTTP_AUTH_BASIC
                                          : HTTP_AUTH_NONE;
    return true;
}

static bool read_user(struct loader *l, const struct yaml_node *user, const char *name,
                      struct http_settings *http)
{
    if (!refuse_plugins(l, user, name) || !read_login(l, user, name, http) ||
        !get_pem(l, user, "client-certificate-data", "client-certificate", &http->tls.cert_pem,
                 &http->tls.cert_file) ||
        !get_pem(l, user, "client-key-data", "client-key", &http->tls.key_pem,
                 &http->tls.key_file)) {
        return false;
    }
    bool cert = http->tls.cert_pem != NULL || http->tls.cert_file != NULL;
    bool key = http->tls.key_pem != NULL || http->tls.key_file != NULL;
    if (cert != key) {
        return loader_fail(l, NULL,
                           "user \"%.128s\" has a client %s without "
                           "a client %s",
                           name, cert ? "certificate" : "key", cert ? "key" : "certificate");
    }
    return true;
}

/* The context of the caller, else the current one. */
static bool choose_context(struct loader *l, const struct yaml_node *root, const char **context)
{
    if (*context == NULL && !loader_text(l, root, "current-context", context)) {
        return false;
    }
    return *context != NULL ? true : loader_fail(l, NULL, "no current-context is set");
}

static bool read_tree(struct loader *l, const struct yaml_node *root, const char *context,
                      struct kubeconfig *k)
{
    const char *cluster_name;
    const char *user_name;
    if (root == NULL || root->kind != YAML_MAPPING) {
        return loader_fail(l, root, "expected a mapping");
    }
    if (!choose_context(l, root, &context)) {
        return false;
    }
    const struct yaml_node *c = find_named(l, root, "contexts", "context", context);
    if (c == NULL || !loader_text(l, c, "cluster", &cluster_name) ||
        !loader_text(l, c, "user", &user_name) || !loader_text(l, c, "namespace", &k->namespace)) {
        return false;
    }
    if (cluster_name == NULL) {
        return loader_fail(l, c, "the context has no \"cluster\"");
    }
    if (k->namespace != NULL && !text_namespace.ok(sv_from(k->namespace))) {
        return loader_fail(l, yaml_get(c, "namespace"),
                           "namespace: expected the name of a namespace");
    }
    const struct yaml_node *cluster = find_named(l, root, "clusters", "cluster", cluster_name);
    if (cluster == NULL || !read_cluster(l, cluster, k)) {
        return false;
    }
    if (user_name == NULL) {
        return true;
    }
    const struct yaml_node *user = find_named(l, root, "users", "user", user_name);
    return user != NULL && read_user(l, user, user_name, &k->http) &&
           loader_exec(l, user, cluster, user_name, k);
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

#include "discovery/kubernetes/access.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "config/file.h"
#include "config/kubeconfig.h"

/* The most bytes of the file with the namespace: a DNS label, perhaps with line breaks after it. */
#define NAMESPACE_FILE_MAX 256

static const char *get_env(const struct kube_env *env, const char *name)
{
    const char *value = env->get == NULL ? getenv(name) : env->get(env->arg, name);
    return value == NULL ? "" : value;
}

static bool check_readable(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(err, "service account: %s", path);
    }
    close(fd);
    return true;
}

/* Reads our own namespace. If there is none, that is no error, because only own_namespace needs
 * it. */
static const char *read_namespace(const char *path, struct arena *arena)
{
    struct err err = ERR_INIT;
    struct buf text;
    buf_init(&text, NAMESPACE_FILE_MAX + 1);
    bool ok = file_read(path, NAMESPACE_FILE_MAX, &text, &err);
    struct sv name = sv_trim(ok ? (struct sv){text.data, text.len} : SV(""));
    const char *copy = NULL;
    if (name.n > 0 && name.n < NAMESPACE_FILE_MAX && memchr(name.p, '\0', name.n) == NULL) {
        copy = arena_strndup(arena, name.p, name.n);
    }
    buf_done(&text);
    return copy;
}

static bool find_server(const struct kube_env *env, struct arena *arena, struct kube_access *ret,
                        struct err *err)
{
    const char *host = get_env(env, "KUBERNETES_SERVICE_HOST");
    const char *port = get_env(env, "KUBERNETES_SERVICE_PORT");
    if (host[0] == '\0' || port[0] == '\0') {
        return err_set(err, ERR_INPUT,
                       "not in a Kubernetes pod: %s is not set (outside of a cluster, give "
                       "kubeconfig_file or api_server)",
                       host[0] == '\0' ? "KUBERNETES_SERVICE_HOST" : "KUBERNETES_SERVICE_PORT");
    }
    uint64_t number;
    if (!parse_u64(sv_from(port), 65535, &number) || number == 0) {
        return err_set(err, ERR_INPUT,
                       "KUBERNETES_SERVICE_PORT: expected a port of 1-65535, got \"%s\"", port);
    }
    bool ipv6 = strchr(host, ':') != NULL && host[0] != '[';
    ret->server = arena_printf(arena, "https://%s%s%s:%u", ipv6 ? "[" : "", host, ipv6 ? "]" : "",
                               (unsigned)number);
    return ret->server != NULL || err_memory(err);
}

static bool in_cluster(const struct kube_env *env, struct arena *arena, struct kube_access *ret,
                       struct err *err)
{
    if (!find_server(env, arena, ret, err)) {
        return false;
    }
    const char *dir = get_env(env, KUBE_SERVICE_ACCOUNT_ENV);
    if (dir[0] == '\0') {
        dir = KUBE_SERVICE_ACCOUNT_DIR;
    }
    const char *token = arena_printf(arena, "%s/token", dir);
    const char *ca = arena_printf(arena, "%s/ca.crt", dir);
    const char *namespace = arena_printf(arena, "%s/namespace", dir);
    if (token == NULL || ca == NULL || namespace == NULL) {
        return err_memory(err);
    }
    if (!check_readable(token, err) || !check_readable(ca, err)) {
        return false;
    }
    ret->namespace = read_namespace(namespace, arena);
    ret->http = (struct http_settings){
        .auth = HTTP_AUTH_HEADER,
        .credentials_file = token,
        .tls.ca_file = ca,
    };
    return true;
}

static bool from_kubeconfig(const char *path, struct arena *arena, struct kube_access *ret,
                            struct err *err)
{
    struct kubeconfig kubeconfig;
    if (!kubeconfig_load(path, NULL, arena, &kubeconfig, err)) {
        return false;
    }
    ret->server = kubeconfig.server;
    ret->namespace = kubeconfig.namespace;
    ret->http = kubeconfig.http;
    ret->exec = kubeconfig.exec;
    return true;
}

static bool explicit_server(const struct config_kubernetes *config, struct arena *arena,
                            struct kube_access *ret, struct err *err)
{
    size_t n = strlen(config->api_server);
    while (n > 0 && config->api_server[n - 1] == '/') {
        n--;
    }
    ret->server = arena_strndup(arena, config->api_server, n);
    ret->http = config->http;
    return ret->server != NULL || err_memory(err);
}

bool kube_access_find(const struct config_kubernetes *config, const struct kube_env *env,
                      struct arena *arena, struct kube_access *ret, struct err *err)
{
    struct kube_access access = {0};
    bool ok;
    if (config->kubeconfig_file != NULL) {
        ok = from_kubeconfig(config->kubeconfig_file, arena, &access, err);
    } else if (config->api_server != NULL) {
        ok = explicit_server(config, arena, &access, err);
    } else if (env->local != NULL) {
        access = *env->local;
        ok = true;
    } else {
        ok = in_cluster(env, arena, &access, err);
    }
    if (ok) {
        *ret = access;
    }
    return ok;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same_texts(const char *const *a, const char *const *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!str_same(a[i], b[i])) {
            return false;
        }
    }
    return true;
}

bool kube_access_same(const struct config_kubernetes *a, const struct config_kubernetes *b)
{
    return str_same(a->kubeconfig_file, b->kubeconfig_file) &&
           str_same(a->api_server, b->api_server) &&
           (a->api_server == NULL || http_settings_equal(&a->http, &b->http));
}

static bool same_selectors(const struct config_kubernetes *a, const struct config_kubernetes *b)
{
    bool same = a->n_selectors == b->n_selectors;
    for (size_t i = 0; same && i < a->n_selectors; i++) {
        same = a->selectors[i].role == b->selectors[i].role &&
               str_same(a->selectors[i].label, b->selectors[i].label) &&
               str_same(a->selectors[i].field, b->selectors[i].field);
    }
    return same;
}

bool kube_access_same_objects(const struct config_kubernetes *a, const struct config_kubernetes *b)
{
    return kube_access_same(a, b) && a->role == b->role && a->attach_node == b->attach_node &&
           a->attach_namespace == b->attach_namespace && a->own_namespace == b->own_namespace &&
           a->namespaces.n == b->namespaces.n &&
           same_texts(a->namespaces.at, b->namespaces.at, a->namespaces.n) && same_selectors(a, b);
}

#include "discovery/kube_access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "config/kubeconfig.h"

/* A namespace is a DNS label; the file may end in line ends. */
#define NAMESPACE_FILE_MAX 256

static const char *get_env(const struct kube_env *env, const char *name)
{
    const char *value = env->get == NULL ? getenv(name) : env->get(env->arg, name);
    return value == NULL ? "" : value;
}

static bool out_of_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "out of memory");
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

/* Reads a small file; returns its length, or -1 with errno. */
static ssize_t read_small(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    size_t len = 0;
    ssize_t n;
    do {
        n = read(fd, out + len, size - len);
        len += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && len < size) || (n < 0 && errno == EINTR));
    int saved = errno;
    close(fd);
    errno = saved;
    return n < 0 ? -1 : (ssize_t)len;
}

/* The own namespace; only needed for own_namespace, so that its absence is no error here. */
static const char *read_namespace(const char *path, struct arena *arena)
{
    char text[NAMESPACE_FILE_MAX];
    ssize_t len = read_small(path, text, sizeof(text));
    struct sv name = sv_trim((struct sv){.p = text, .n = len < 0 ? 0 : (size_t)len});
    if (name.n == 0 || name.n == sizeof(text) || memchr(name.p, '\0', name.n) != NULL) {
        return NULL;
    }
    return arena_strndup(arena, name.p, name.n);
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
    return ret->server != NULL || out_of_memory(err);
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
        return out_of_memory(err);
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
    return ret->server != NULL || out_of_memory(err);
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
    } else {
        ok = in_cluster(env, arena, &access, err);
    }
    if (ok) {
        *ret = access;
    }
    return ok;
}

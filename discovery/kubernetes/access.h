/* Finds the address of the Kubernetes API server, and the credentials for it.
 *
 * There are three ways, as in Prometheus: explicit settings (api_server with HTTP settings), a
 * kubeconfig file, or, in a pod, the service account that Kubernetes mounts. Files are only checked
 * here; http/http.h reads them again when they change, so that a rotated token takes effect.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ACCESS_H
#define PROFPULL_DISCOVERY_KUBERNETES_ACCESS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"
#include "config/kubeconfig.h"
#include "http/http.h"

#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
/* Overrides the directory, for tests. */
#define KUBE_SERVICE_ACCOUNT_ENV "PROFPULL_SERVICEACCOUNT_DIR"

struct kube_access {
    const char *server;    /* "https://10.96.0.1:443", without a slash at the end */
    const char *namespace; /* the namespace of this process; NULL if unknown */
    struct http_settings http;
    const struct kubeconfig_exec *exec; /* the plugin for credentials; NULL: http has them */
};

struct kube_env {
    /* The access of a configuration that sets neither kubeconfig_file nor api_server; NULL: the
     * service account of the pod. */
    const struct kube_access *local;
    const char *(*get)(void *arg, const char *name); /* NULL: getenv(3) */
    void *arg;
};

/* Fills *ret; strings live in the arena or in the configuration. The error names the variable or
 * file that is missing. */
bool kube_access_find(const struct config_kubernetes *config, const struct kube_env *env,
                      struct arena *arena, struct kube_access *ret, struct err *err);

/* Returns true if both access the same API server, with the same credentials. */
bool kube_access_same(const struct config_kubernetes *a, const struct config_kubernetes *b);
/* Returns true if both need the same objects of the same API server. */
bool kube_access_same_objects(const struct config_kubernetes *a, const struct config_kubernetes *b);

#endif

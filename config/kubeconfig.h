/* Reads a kubeconfig file: the address of the API server, and the credentials for it.
 *
 * The reader is part of config/ because the file is YAML (or JSON, which is YAML). Inline data is
 * decoded from base64, and file names are resolved against the directory of the kubeconfig. The
 * result describes an exec plugin, which discovery runs. auth-provider plugins are refused with an
 * error.
 */
#ifndef PROFPULL_CONFIG_KUBECONFIG_H
#define PROFPULL_CONFIG_KUBECONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "http/http.h"

/* A command that prints credentials (client.authentication.k8s.io). */
struct kubeconfig_exec {
    const char *api_version;    /* "client.authentication.k8s.io/v1" or ".../v1beta1" */
    const char *const *argv;    /* the command first; ends with NULL */
    const char *const *env;     /* "NAME=value", added to our own environment; ends with NULL */
    const char *const *secrets; /* values in env that no message may show; ends with NULL */
    const char *info;           /* value of KUBERNETES_EXEC_INFO */
    const char *install_hint;   /* "" if none */
};

struct kubeconfig {
    const char *server;    /* https://host:port, no trailing slash */
    const char *namespace; /* the context's namespace, or NULL */
    struct http_settings http;
    const struct kubeconfig_exec *exec; /* NULL: there is no plugin, and http has the credentials */
};

/* Loads a kubeconfig. If context is NULL, current-context is used. Strings live in the arena. On
 * failure the error names the file, and the position in it where that helps. */
bool kubeconfig_load(const char *path, const char *context, struct arena *arena,
                     struct kubeconfig *ret, struct err *err);
bool kubeconfig_parse(const char *name, struct sv text, const char *context, struct arena *arena,
                      struct kubeconfig *ret, struct err *err);

#endif

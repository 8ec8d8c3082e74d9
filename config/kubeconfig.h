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
    const char *context;   /* the name of the context that was read */
    const char *file;      /* the file that has the context */
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

/* The most files that KUBECONFIG may name. */
#define KUBECONFIG_FILES_MAX 32

/* The files that kubectl reads, the first one first. */
struct kubeconfig_paths {
    const char *at[KUBECONFIG_FILES_MAX];
    size_t n;
    const char *names; /* all of them, for messages */
    bool is_default;   /* nobody named them: ~/.kube/config */
};

/* Finds the files that kubectl reads without --kubeconfig: those that the variable KUBECONFIG
 * names, separated by colons, or else .kube/config in the home directory. Both may be NULL. Strings
 * live in the arena or are those of the caller. */
bool kubeconfig_paths(const char *variable, const char *home, struct arena *arena,
                      struct kubeconfig_paths *ret, struct err *err);

/* Loads a kubeconfig that consists of several files, which are merged as kubectl does: of two
 * entries with the same name, and of two current contexts, the first one wins as a whole. File
 * names in an entry are relative to the directory of its own file. Files that do not exist count as
 * empty; if none exists, *ret_found is false, and *ret is not set. Otherwise as kubeconfig_load().
 * Rules: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/ */
bool kubeconfig_load_all(const struct kubeconfig_paths *paths, const char *context,
                         struct arena *arena, struct kubeconfig *ret, bool *ret_found,
                         struct err *err);

#endif

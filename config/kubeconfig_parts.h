/* Shared by the files that read a kubeconfig; for config/kubeconfig*.c only. */
#ifndef PROFPULL_CONFIG_KUBECONFIG_PARTS_H
#define PROFPULL_CONFIG_KUBECONFIG_PARTS_H

#include "config/kubeconfig.h"
#include "config/yaml.h"

struct loader {
    const char *name;    /* of the file, for messages */
    struct arena *arena; /* of the result */
    struct err *err;
};

/* Sets the error with the file (and the place of a node, unless NULL) in front; returns false. */
bool loader_fail(struct loader *l, const struct yaml_node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool loader_fail_memory(struct loader *l);
/* A string under a key; *ret is NULL if it is not there, null or empty (the same to kubectl). The
 * value is never shown: it may be a secret. */
bool loader_text(struct loader *l, const struct yaml_node *n, const char *key, const char **ret);
bool loader_bool(struct loader *l, const struct yaml_node *n, const char *key, bool *ret);
/* A file name, relative to the directory of the kubeconfig; NULL if out of memory. */
const char *loader_resolve(struct loader *l, const char *file);

/* The plugin of a user (kubeconfig_exec.c). cluster: the node of the cluster; k: the
 * values read from it. */
bool loader_exec(struct loader *l, const struct yaml_node *user, const struct yaml_node *cluster,
                 const char *user_name, struct kubeconfig *k);

#endif

/* Shared by the files that read a kubeconfig; for config/kubeconfig*.c only. */
#ifndef PROFPULL_CONFIG_KUBECONFIG_PARTS_H
#define PROFPULL_CONFIG_KUBECONFIG_PARTS_H

#include "config/kubeconfig.h"
#include "config/yaml.h"

struct loader {
    const char *name;    /* the name of the file, for messages */
    const char *user;    /* the name of the user that is being read, for messages */
    struct arena *arena; /* memory of the result */
    struct err *err;
};

/* A key whose value goes to a member of a struct. */
struct loader_row {
    const char *key; /* NULL in the row after the last one */
    enum {
        LOAD_TEXT, /* const char * */
        LOAD_FILE, /* const char *: a file name, made relative to the kubeconfig's directory */
        LOAD_PEM,  /* const char *: decoded from base64 */
        LOAD_BOOL, /* bool */
    } kind;
    size_t offset;
};

/* Sets the error with the file (and the place of a node, unless NULL) in front; returns false. */
bool loader_fail(struct loader *l, const struct yaml_node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool loader_fail_memory(struct loader *l);
/* Reads the keys of a mapping into *out. The member of a key that is missing, null or empty (the
 * same to kubectl) stays as it is. A message never shows a value: it may be a secret. */
bool loader_read(struct loader *l, const struct yaml_node *n, const struct loader_row *rows,
                 void *out);
/* Returns the element of a list whose key "name" has this value, or NULL. */
const struct yaml_node *loader_find(const struct yaml_node *list, const char *name);
/* Resolves a file name against the directory of the kubeconfig; NULL if out of memory. */
const char *loader_resolve(struct loader *l, const char *file);

/* Reads the exec plugin of a user (kubeconfig_exec.c). cluster: the node of the cluster; k: the
 * values that were read from it. */
bool loader_exec(struct loader *l, const struct yaml_node *user, const struct yaml_node *cluster,
                 struct kubeconfig *k);

#endif

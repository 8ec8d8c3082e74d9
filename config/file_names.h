/* Lists the files that a configuration names for credentials and certificates. No file is opened.
 */
#ifndef PROFPULL_CONFIG_FILE_NAMES_H
#define PROFPULL_CONFIG_FILE_NAMES_H

#include "config/config.h"

struct file_name {
    struct config_pos pos; /* position of the owner; line 0 if only the file is known */
    const char *kind;      /* kind of the owner: "job", "endpoint" or "section" */
    const char *owner;     /* name of the owner */
    const char *key;       /* "password_file" */
    const char *file;
};

typedef void file_name_fn(void *arg, const struct file_name *name);
/* Calls fn for each file name, in the order of the configuration. Values of Secrets and ConfigMaps
 * (content.h) are left out. */
void config_file_names(const struct config *config, file_name_fn *fn, void *arg);
/* Visits the file names in settings that are not part of a configuration, such as those of a
 * kubeconfig. `owner` has the members that all the names share. */
void config_file_names_of(const struct http_settings *settings, const struct file_name *owner,
                          file_name_fn *fn, void *arg);

#endif

/* Values of Secrets and ConfigMaps in place of files: a key that wants the name of a file accepts
 * "kubernetes:secret/NAMESPACE/NAME/KEY" and "kubernetes:configmap/NAMESPACE/NAME/KEY" as well.
 * Nothing is read here: discovery/kubernetes/contents.h reads the values of a running
 * configuration.
 */
#ifndef PROFPULL_CONFIG_CONTENT_H
#define PROFPULL_CONFIG_CONTENT_H

#include <stdbool.h>

#include "base/str.h"

/* The most different names in one configuration. */
#define CONFIG_CONTENTS_MAX 256

enum content_kind { CONTENT_SECRET, CONTENT_CONFIGMAP, CONTENT_KINDS };

struct content_name {
    enum content_kind kind;
    struct sv namespace;
    struct sv object;
    struct sv key;
};

/* Returns true if a text is meant as such a name, whether it is well-formed or not. */
bool content_is_named(struct sv text);
/* Splits a name into its parts, which point into the text. False if the name is malformed. */
bool content_name_parse(struct sv text, struct content_name *ret);
/* The kind as Kubernetes writes it ("Secret", "ConfigMap"), and as in a name ("secret",
 * "configmap"). */
const char *content_kind_title(enum content_kind kind);
const char *content_kind_word(enum content_kind kind);

#endif

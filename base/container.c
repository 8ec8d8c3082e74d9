#include "base/container.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const variables[] = {"KUBERNETES_SERVICE_HOST", "container"};
static const char *const files[] = {"/.dockerenv", "/run/.containerenv"};

bool container_is_around(const char *root, const char *(*env)(const char *name))
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = env != NULL ? env(variables[i]) : getenv(variables[i]);
        if (value != NULL && value[0] != '\0') {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s%s", root, files[i]);
        if (n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

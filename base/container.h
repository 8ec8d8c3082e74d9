/* Detects whether this process runs in a container, in which all network interfaces are its own. */
#ifndef PROFPULL_BASE_CONTAINER_H
#define PROFPULL_BASE_CONTAINER_H

#include <stdbool.h>

/* Returns true in a pod of Kubernetes (KUBERNETES_SERVICE_HOST is set), in a container whose
 * runtime sets the variable `container` (systemd-nspawn, Podman, LXC and our image do), and where a
 * file exists that Docker or Podman create. root: a prefix for paths, "" for the real ones. env:
 * reads a variable; NULL means getenv(3). */
bool container_is_around(const char *root, const char *(*env)(const char *name));

#endif

/* Detects if this process runs in a container, where all network interfaces are its own. */
#ifndef PROFPULL_BASE_CONTAINER_H
#define PROFPULL_BASE_CONTAINER_H

#include <stdbool.h>

/* In a pod of Kubernetes (KUBERNETES_SERVICE_HOST is set), in a container whose runtime says so
 * (the variable `container`, as systemd-nspawn, Podman, LXC and our image set it), or with a file
 * that Docker or Podman put there. root: in front of paths, "" for the real ones. env: NULL takes
 * getenv(3). */
bool container_is_around(const char *root, const char *(*env)(const char *name));

#endif

/* One pod in JSON -> the label sets of its targets, as Prometheus' kubernetes_sd role "pod" makes
 * them.
 *
 * Pure: knows no IO and keeps nothing. The differences from Prometheus, all on purpose: an address
 * without port is bracketed if it is IPv6; of two label names that become the same when sanitised
 * the one that sorts last wins (there: a random one); an address that is no IP address, and a port
 * outside of 1-65535, make no target.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_POD_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_POD_H

#include <jansson.h>
#include <stddef.h>

#include "base/labels.h"
#include "discovery/kubernetes/object.h"

/* Fills *ret (cleared first) from a pod. The builder is scratch. On anything but OBJECT_OK there
 * are no targets; *ret holds counts and ip all the same. */
enum object_status pod_read(const json_t *pod, struct labels_builder *builder,
                            struct object_targets *ret);

/* The pod's address, if it has one that is an IP address; else NULL, and *ret_bad is 1 if it has
 * another one. Into the pod. */
const char *pod_ip(const json_t *pod, size_t *ret_bad);

/* The members of a pod that pod_read() needs. */
extern const struct json_keep pod_keep[];

#endif

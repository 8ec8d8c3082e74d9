/* One node in JSON -> its target, as Prometheus' kubernetes_sd role "node" makes it. Pure.
 *
 * The address is the first of InternalIP, InternalDNS, ExternalIP, ExternalDNS, LegacyHostIP and
 * Hostname that the node has, with the kubelet's port. A node without address has no target (there:
 * the last one stays).
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_NODE_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_NODE_H

#include "discovery/kubernetes/object.h"

/* Fills *ret (cleared first). The builder is scratch. */
enum object_status node_read(const json_t *node, struct labels_builder *builder,
                             struct object_targets *ret);

/* The members that are needed. */
extern const struct json_keep node_keep[];

#endif

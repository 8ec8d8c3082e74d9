/* One target for each node, as in Prometheus' kubernetes_sd role "node". Pure.
 *
 * The address is the first of InternalIP, InternalDNS, ExternalIP, ExternalDNS, LegacyHostIP and
 * Hostname that the node has, with the port of the kubelet. A node without an address has no target
 * (in Prometheus the last one stays). */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_NODE_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_NODE_H

#include "discovery/kubernetes/roles.h"

extern const struct kube_role kube_nodes;

#endif

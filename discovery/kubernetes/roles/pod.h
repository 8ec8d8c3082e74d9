/* The targets of a pod, as in Prometheus' kubernetes_sd role "pod". Pure.
 *
 * It differs from Prometheus on purpose: an IPv6 address without port is bracketed; of two label
 * names that sanitising makes equal the one that sorts last wins (there: a random one); an address
 * that is not an IP address, and a port outside of 1-65535, are no target.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_POD_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_POD_H

#include "discovery/kubernetes/roles.h"

extern const struct kube_role kube_pods;

/* The pod's address, into the pod; NULL if it has none that is an IP address. */
const char *pod_ip(const json_t *pod);

#endif

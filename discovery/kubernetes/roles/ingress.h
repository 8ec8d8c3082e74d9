/* A target for each path of an ingress, as in Prometheus' kubernetes_sd role "ingress". The address
 * is the host of the rule. Pure. */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_INGRESS_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_INGRESS_H

#include "discovery/kubernetes/roles.h"

extern const struct kube_role kube_ingresses;

#endif

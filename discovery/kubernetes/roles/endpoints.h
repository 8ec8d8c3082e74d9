/* The targets of an Endpoints object, as in Prometheus' kubernetes_sd role "endpoints"; services,
 * pods and nodes are joined later (join.h). An address that is not an IP address is no target.
 * Pure. */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_ENDPOINTS_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_ENDPOINTS_H

#include "discovery/kubernetes/roles.h"

extern const struct kube_role kube_endpoints;

#endif

/* The targets of an EndpointSlice, as in Prometheus' kubernetes_sd role "endpointslice"; services,
 * pods and nodes are joined later (join.h). An address that is not an IP address is no target,
 * except in slices of the type FQDN. Pure. */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_ENDPOINTSLICE_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_ENDPOINTSLICE_H

#include "discovery/kubernetes/roles.h"

extern const struct kube_role kube_endpointslices;

#endif

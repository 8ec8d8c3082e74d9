/* A target for each port of a service, as in Prometheus' kubernetes_sd role "service". The address
 * is the name of the service in the DNS of the cluster. Pure. */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_SERVICE_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_SERVICE_H

#include "discovery/kubernetes/roles.h"

extern const struct kube_role kube_services;

#endif

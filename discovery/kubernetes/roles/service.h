/* One service in JSON -> the targets of its ports, as Prometheus' kubernetes_sd role "service"
 * makes them. Pure. The address is the service's name in the cluster's DNS.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_SERVICE_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_SERVICE_H

#include "discovery/kubernetes/object.h"

/* Fills *ret (cleared first). The builder is scratch. */
enum object_status service_read(const json_t *service, struct labels_builder *builder,
                                struct object_targets *ret);

/* The members that are needed. */
extern const struct json_keep service_keep[];

#endif

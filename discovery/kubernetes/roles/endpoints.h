/* Endpoints and EndpointSlices in JSON -> the targets of their addresses, as Prometheus'
 * kubernetes_sd roles "endpoints" and "endpointslice" make them, before services, pods and nodes
 * are joined (join.h). Pure.
 *
 * An address that is not an IP address makes no target, but in slices whose type is FQDN.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_ENDPOINTS_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_ENDPOINTS_H

#include "discovery/kubernetes/object.h"

/* Fill *ret (cleared first). The builder is scratch. */
enum object_status endpoints_read(const json_t *endpoints, struct labels_builder *builder,
                                  struct object_targets *ret);
enum object_status slice_read(const json_t *slice, struct labels_builder *builder,
                              struct object_targets *ret);

/* The members that are needed. */
extern const struct json_keep endpoints_keep[];
extern const struct json_keep slice_keep[];

#endif

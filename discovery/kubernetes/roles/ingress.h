/* One ingress in JSON -> a target for each of its paths, as Prometheus' kubernetes_sd role
 * "ingress" makes them. Pure. The address is the host of the rule.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_INGRESS_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_INGRESS_H

#include "discovery/kubernetes/object.h"

/* Fills *ret (cleared first). The builder is scratch. */
enum object_status ingress_read(const json_t *ingress, struct labels_builder *builder,
                                struct object_targets *ret);

/* The members that are needed. */
extern const struct json_keep ingress_keep[];

#endif

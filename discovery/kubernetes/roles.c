#include "discovery/kubernetes/roles.h"

static const struct kube_role *const roles[CONFIG_ROLES] = {
    [ROLE_POD] = &kube_pods,
    [ROLE_SERVICE] = &kube_services,
    [ROLE_ENDPOINTS] = &kube_endpoints,
    [ROLE_ENDPOINTSLICE] = &kube_endpointslices,
    [ROLE_NODE] = &kube_nodes,
    [ROLE_INGRESS] = &kube_ingresses,
};

const struct kube_role *kube_role(enum config_role role)
{
    return roles[role];
}

static const struct json_keep namespace_keep[] = {OBJECT_KEEP, {NULL, NULL}};

const struct kube_resource kube_namespaces = {
    .plural = "namespaces", .group = "", .kind = "Namespace", .members = namespace_keep};

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

static const struct schema_row metadata_rows[] = {OBJECT_ROWS, SCHEMA_END};

const struct kube_resource kube_namespaces = {
    .group = "",
    .plural = "namespaces",
    .kind = "Namespace",
    .rows = metadata_rows,
    .metadata_only = true,
};

const struct kube_resource kube_node_metadata = {
    .role = ROLE_NODE,
    .group = "",
    .plural = "nodes",
    .kind = "Node",
    .rows = metadata_rows,
    .metadata_only = true,
};

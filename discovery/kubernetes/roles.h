/* The roles of kubernetes_sd_configs: the resource that each role reads, and the function that
 * makes targets of an object.
 *
 * The names of the roles are those of enum config_role. A new role is a row in roles.c, a
 * declaration below and a file in roles/ that defines its struct kube_role.
 *
 * Reference: Prometheus discovery/kubernetes.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_ROLES_H
#define PROFPULL_DISCOVERY_KUBERNETES_ROLES_H

#include "config/config.h"
#include "discovery/kubernetes/object.h"

/* A resource of the API, to be listed and watched. */
struct kube_resource {
    enum config_role role; /* the role whose selectors apply; ROLE_NONE: no selectors apply */
    const char *group;     /* API group; "" for the core group. The version is v1 */
    const char *plural;
    const char *kind;
    bool namespaced;
    const struct schema_row *rows; /* the members of an object that are read */
    /* only metadata is read, and the server is asked to send no more */
    bool metadata_only;
};

/* The namespace of the object that a target refers to, unless the reference has none. The join
 * removes this label, which is not one of Prometheus'. */
#define KUBE_REF_NAMESPACE "__ref_namespace"

/* The labels of a target that hold the names of joined objects (join.h); NULL if the role has no
 * such label. */
struct kube_join_labels {
    const char *node;      /* holds the name of the target's node */
    bool prefers_ref_node; /* a node that the target refers to takes precedence over `node` */
    const char *ref_kind;  /* the kind of the object that the target refers to: a pod or a */
    const char *ref_name;  /* node; pods are joined to roles that have it */
    const char *service;   /* one of the shared labels; services are joined to roles that have it */
    const char *protocol;  /* overrides the protocol of the pod's port */
    bool drops_without_node; /* a target whose node is not known is left out */
};

/* Fills *ret (cleared first) from an object; the builder is scratch. On anything but OBJECT_OK
 * there are no targets; *ret has counts and ip all the same. */
typedef enum object_status kube_read(const struct kube_object *object,
                                     struct labels_builder *builder, struct object_targets *ret);

struct kube_role {
    struct kube_resource resource;
    const char *source; /* the beginning of the names of its groups */
    kube_read *read;
    size_t targets_max; /* most targets of one object; 0: OBJECT_TARGETS_MAX */
    struct kube_join_labels join;
};

/* Returns the row of a role, which must not be ROLE_NONE. */
const struct kube_role *kube_role(enum config_role role);
extern const struct kube_role kube_pods;
extern const struct kube_role kube_services;
extern const struct kube_role kube_endpoints;
extern const struct kube_role kube_endpointslices;
extern const struct kube_role kube_nodes;
extern const struct kube_role kube_ingresses;
/* Namespaces are only joined to other objects. */
extern const struct kube_resource kube_namespaces;
extern const struct kube_resource kube_node_metadata;

/* Copies the address of a pod, NUL-terminated; NULL if it has none that is an IP address. */
const char *pod_ip(const struct kube_object *pod, char out[OBJECT_IP_MAX]);

#endif

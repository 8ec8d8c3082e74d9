/* The members of Kubernetes objects that discovery reads, out of JSON or protobuf (schema.h).
 *
 * Texts are views of the input, and lists are in an arena. A member that the object does not have
 * is empty.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_TYPES_H
#define PROFPULL_DISCOVERY_KUBERNETES_TYPES_H

#include "discovery/kubernetes/schema.h"

struct kube_owner {
    void *next;
    struct sv kind;
    struct sv name;
    enum schema_flag controller;
};

struct kube_metadata {
    struct sv name;
    struct sv namespace;
    struct sv uid;
    struct sv version;              /* resourceVersion */
    struct schema_list labels;      /* struct schema_pair */
    struct schema_list annotations; /* struct schema_pair */
    struct schema_list owners;      /* struct kube_owner */
};

/* A condition of a pod or a node. */
struct kube_condition {
    void *next;
    struct sv type;
    struct sv status;
};

/* The object that an endpoint represents. */
struct kube_reference {
    struct sv kind;
    struct sv namespace;
    struct sv name;
};

/* A port of a container, a service or an endpoint. */
struct kube_port {
    void *next;
    struct sv name;
    struct sv protocol;
    struct sv app_protocol;
    struct schema_number number;
};

/* ---- pods ------------------------------------------------------------------------------------ */

struct kube_container {
    void *next;
    struct sv name;
    struct sv image;
    struct sv restart_policy;
    struct schema_list ports; /* struct kube_port */
};

struct kube_container_status {
    void *next;
    struct sv name;
    struct sv id;
};

struct kube_pod {
    struct sv node_name;
    struct schema_list containers;      /* struct kube_container */
    struct schema_list init_containers; /* struct kube_container */
    struct sv phase;
    struct sv ip;
    struct sv host_ip;
    struct schema_list conditions;    /* struct kube_condition */
    struct schema_list statuses;      /* struct kube_container_status */
    struct schema_list init_statuses; /* struct kube_container_status */
};

/* ---- services and endpoints ------------------------------------------------------------------ */

struct kube_balancer {
    void *next;
    struct sv ip;
};

struct kube_service {
    struct sv type;
    struct sv cluster_ip;
    struct sv external_name;
    struct sv balancer_ip; /* the requested address */
    struct sv family_policy;
    struct schema_list families;  /* struct schema_text */
    struct schema_list ports;     /* struct kube_port */
    struct schema_list balancers; /* struct kube_balancer */
};

struct kube_address {
    void *next;
    struct sv ip;
    struct sv hostname;
    struct sv node_name;
    struct kube_reference target;
};

struct kube_subset {
    void *next;
    struct schema_list addresses; /* struct kube_address */
    struct schema_list not_ready; /* struct kube_address */
    struct schema_list ports;     /* struct kube_port */
};

struct kube_endpoints {
    struct schema_list subsets; /* struct kube_subset */
};

struct kube_endpoint {
    void *next;
    struct schema_list addresses; /* struct schema_text */
    struct sv hostname;
    struct sv node_name;
    struct sv zone;
    enum schema_flag ready;
    enum schema_flag serving;
    enum schema_flag terminating;
    struct kube_reference target;
    struct schema_list topology; /* struct schema_pair */
};

struct kube_slice {
    struct sv address_type;
    struct schema_list endpoints; /* struct kube_endpoint */
    struct schema_list ports;     /* struct kube_port */
};

/* ---- the rest -------------------------------------------------------------------------------- */

struct kube_node_address {
    void *next;
    struct sv type;
    struct sv address;
};

struct kube_node {
    struct sv provider_id;
    struct schema_list addresses;  /* struct kube_node_address */
    struct schema_list conditions; /* struct kube_condition */
    struct schema_number kubelet_port;
};

struct kube_tls {
    void *next;
    struct schema_list hosts; /* struct schema_text */
};

struct kube_path {
    void *next;
    struct sv path;
};

struct kube_rule {
    void *next;
    struct sv host;
    bool has_http;
    struct schema_list paths; /* struct kube_path */
};

struct kube_ingress {
    struct sv class_name;
    struct schema_list tls;   /* struct kube_tls */
    struct schema_list rules; /* struct kube_rule */
};

/* An object; the requested resource determines which of the kinds it is. */
struct kube_object {
    struct sv kind; /* the kind that the object itself names; "" if it names none */
    struct kube_metadata metadata;
    union {
        struct kube_pod pod;
        struct kube_service service;
        struct kube_endpoints endpoints;
        struct kube_slice slice;
        struct kube_node node;
        struct kube_ingress ingress;
    };
};

#endif

#include <string.h>

#include "discovery/kubernetes/join_private.h"

#define CONTAINER META "pod_container_"

/* ---- what is joined to what ------------------------------------------------------------------ */

struct sv join_node_of(const struct join *j, const struct labels *t)
{
    if (!j->options.uses[JOIN_NODE]) {
        return SV("");
    }
    if (j->options.role == JOIN_ROLE_POD) {
        return labels_get(t, SV(META "pod_node_name"));
    }
    bool slice = j->options.role == JOIN_ROLE_SLICE;
    struct sv node = labels_get(t, slice ? SV(META "endpointslice_endpoint_node_name")
                                         : SV(META "endpoint_node_name"));
    struct sv kind = labels_get(t, slice ? SV(META "endpointslice_address_target_kind")
                                         : SV(META "endpoint_address_target_kind"));
    if (node.n == 0 && sv_eq_str(kind, "Node")) {
        node = labels_get(t, slice ? SV(META "endpointslice_address_target_name")
                                   : SV(META "endpoint_address_target_name"));
    }
    return node;
}

struct sv join_pod_of(const struct join *j, const struct labels *t)
{
    bool slice = j->options.role == JOIN_ROLE_SLICE;
    if (!j->options.uses[JOIN_POD] ||
        !sv_eq_str(labels_get(t, slice ? SV(META "endpointslice_address_target_kind")
                                       : SV(META "endpoint_address_target_kind")),
                   "Pod")) {
        return SV("");
    }
    return labels_get(t, slice ? SV(META "endpointslice_address_target_name")
                               : SV(META "endpoint_address_target_name"));
}

struct sv join_service_of(const struct join *j, const struct labels *shared)
{
    if (!j->options.uses[JOIN_SERVICE]) {
        return SV("");
    }
    return labels_get(shared, j->options.role == JOIN_ROLE_SLICE ? SV(JOIN_SERVICE_LABEL)
                                                                 : SV(META "endpoints_name"));
}

struct sv join_namespace_of(const struct primary *p)
{
    struct sv namespace = SV("");
    struct sv name;
    (void)sv_cut(sv_from(p->key), '/', &namespace, &name);
    return namespace;
}

/* ---- describing a primary -------------------------------------------------------------------- */

/* What all targets of the primary get. */
struct group {
    const struct fact *namespace;
    const struct fact *service;
};

static unsigned port_of(const struct labels *t)
{
    struct sv host;
    uint16_t port = 0;
    return split_host_port(labels_get(t, SV(LABEL_ADDRESS)), &host, &port, NULL) ? port : 0;
}

static void set_group(struct maker *m, const struct group *g)
{
    if (g->namespace != NULL) {
        maker_set_labels(m, g->namespace->labels);
    }
    if (g->service != NULL) {
        maker_set_labels(m, g->service->labels);
    }
}

static void copy(struct maker *m, const struct labels *from, struct sv name)
{
    maker_set(m, name, labels_get(from, name));
}

/* The container whose port this is: the last one that has it, and of its ports the first. */
static const struct fact_port *find_container(const struct fact *pod, unsigned number)
{
    const struct fact_port *found = NULL;
    for (size_t i = 0; i < pod->n_ports; i++) {
        const struct fact_port *port = &pod->ports[i];
        bool same = found != NULL && sv_eq(labels_get(found->labels, SV(CONTAINER "name")),
                                           labels_get(port->labels, SV(CONTAINER "name")));
        if (port->number == number && !same) {
            found = port;
        }
    }
    return found;
}

static void set_pod(const struct join *j, struct maker *m, struct fact *pod,
                    const struct labels *target)
{
    unsigned number = port_of(target);
    if (pod->seen != j->description) {
        pod->seen = j->description;
        for (size_t i = 0; i < pod->n_ports; i++) {
            pod->ports[i].covered = false;
        }
    }
    for (size_t i = 0; i < pod->n_ports; i++) {
        pod->ports[i].covered |= pod->ports[i].number == number;
    }
    maker_set_labels(m, pod->labels);
    const struct fact_port *port = find_container(pod, number);
    if (port == NULL) {
        return;
    }
    copy(m, port->labels, SV(CONTAINER "name"));
    copy(m, port->labels, SV(CONTAINER "image"));
    copy(m, port->labels, SV(CONTAINER "init"));
    copy(m, port->labels, SV(CONTAINER "port_name"));
    copy(m, port->labels, SV(CONTAINER "port_number"));
    copy(m, port->labels, SV(CONTAINER "port_protocol"));
    if (j->options.role == JOIN_ROLE_ENDPOINTS) {
        maker_set(m, SV(CONTAINER "port_protocol"),
                  labels_get(target, SV(META "endpoint_port_protocol")));
    }
}

static enum object_status describe_target(const struct join *j, struct maker *m,
                                          const struct primary *p, const struct group *g,
                                          const struct labels *target)
{
    maker_begin(m);
    maker_set_labels(m, target);
    set_group(m, g);
    struct fact *node = join_find(j, JOIN_NODE, SV(""), join_node_of(j, target));
    if (node != NULL) {
        maker_set_labels(m, node->labels);
    } else if (j->options.role == JOIN_ROLE_POD && j->options.uses[JOIN_NODE]) {
        return OBJECT_OK; /* its node is not known, or not selected */
    }
    struct fact *pod = join_find(j, JOIN_POD, join_namespace_of(p), join_pod_of(j, target));
    if (pod != NULL) {
        set_pod(j, m, pod, target);
    }
    return maker_add(m);
}

/* The ports of the pods that no endpoint stands for, such as that of a sidecar. */
static enum object_status describe_uncovered(const struct join *j, struct maker *m,
                                             const struct primary *p, const struct group *g,
                                             const struct fact *pod)
{
    enum object_status status = OBJECT_OK;
    for (size_t i = 0; i < pod->n_ports && status == OBJECT_OK; i++) {
        if (pod->seen == j->description && !pod->ports[i].covered) {
            maker_begin(m);
            maker_set_labels(m, p->shared);
            maker_set_labels(m, pod->ports[i].labels);
            maker_set(m, SV(CONTAINER "id"), SV(""));
            set_group(m, g);
            status = maker_add(m);
        }
    }
    return status;
}

/* Slices of the second family of a dual-stack service stand for the same endpoints. */
static bool is_secondary(const struct primary *p, const struct group *g)
{
    if (g->service == NULL || g->service->family == 0) {
        return false;
    }
    struct sv type = labels_get(p->shared, SV(META "endpointslice_address_type"));
    return sv_eq_str(type, g->service->family == '4' ? "IPv6" : "IPv4");
}

enum object_status join_describe(struct join *j, const struct primary *p)
{
    struct sv namespace = join_namespace_of(p);
    struct group g = {
        .namespace = j->options.uses[JOIN_NAMESPACE]
                         ? join_find(j, JOIN_NAMESPACE, SV(""), namespace)
                         : NULL,
        .service = join_find(j, JOIN_SERVICE, namespace, join_service_of(j, p->shared)),
    };
    struct maker m;
    maker_init(&m, j->builder, &j->scratch);
    j->description++;
    enum object_status status = OBJECT_OK;
    if (is_secondary(p, &g)) {
        return OBJECT_OK;
    }
    for (size_t i = 0; i < p->n && status == OBJECT_OK; i++) {
        status = describe_target(j, &m, p, &g, p->targets[i]);
    }
    for (size_t i = 0; i < p->n_links && status == OBJECT_OK; i++) {
        if (p->links[i]->fact->kind == join_kind_char(JOIN_POD)) {
            status = describe_uncovered(j, &m, p, &g, p->links[i]->fact);
        }
    }
    return maker_done(&m, status);
}

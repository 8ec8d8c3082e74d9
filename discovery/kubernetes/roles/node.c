/* Makes a target for each node, as in Prometheus' kubernetes_sd role "node". Pure.
 *
 * A target's address is the node's first one that is not empty, in the order of types InternalIP,
 * InternalDNS, ExternalIP, ExternalDNS, LegacyHostIP, Hostname, with the port of the kubelet. The
 * port is always part of the address, even if it is 0: rules replace it. Two things differ from
 * Prometheus: it takes the first address of a type even if that is empty, and it keeps the last
 * target of a node that no longer has any address.
 */
#include "discovery/kubernetes/roles.h"

#define NODE META "node_"

static const struct schema_row address_rows[] = {
    SCHEMA_MEMBER("type", 1, TEXT, struct kube_node_address, type),
    SCHEMA_MEMBER("address", 2, TEXT, struct kube_node_address, address),
    SCHEMA_END,
};
static const struct schema_row port_rows[] = {
    SCHEMA_MEMBER("Port", 1, NUMBER, struct kube_object, node.kubelet_port),
    SCHEMA_END,
};
static const struct schema_row daemon_rows[] = {
    SCHEMA_PART_OF("kubeletEndpoint", 1, port_rows),
    SCHEMA_END,
};
static const struct schema_row spec_rows[] = {
    SCHEMA_MEMBER("providerID", 3, TEXT, struct kube_object, node.provider_id),
    SCHEMA_END,
};
static const struct schema_row status_rows[] = {
    SCHEMA_LIST_OF("conditions", 4, struct kube_condition, object_condition_rows,
                   struct kube_object, node.conditions),
    SCHEMA_LIST_OF("addresses", 5, struct kube_node_address, address_rows, struct kube_object,
                   node.addresses),
    SCHEMA_PART_OF("daemonEndpoints", 6, daemon_rows),
    SCHEMA_END,
};
static const struct schema_row node_rows[] = {
    OBJECT_ROWS,
    SCHEMA_PART_OF("spec", 2, spec_rows),
    SCHEMA_PART_OF("status", 3, status_rows),
    SCHEMA_END,
};

/* Returns the first address of a type, which may be empty; an empty one if there is none. */
static struct sv find_address(const struct kube_node *node, struct sv type)
{
    for (const struct kube_node_address *a = node->addresses.first; a != NULL; a = a->next) {
        if (sv_eq(a->type, type)) {
            return a->address;
        }
    }
    return SV("");
}

static struct sv own_address(const struct kube_node *node)
{
    static const char *const order[] = {"InternalIP",  "InternalDNS",  "ExternalIP",
                                        "ExternalDNS", "LegacyHostIP", "Hostname"};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        for (const struct kube_node_address *a = node->addresses.first; a != NULL; a = a->next) {
            if (a->address.n > 0 && sv_eq_str(a->type, order[i])) {
                return a->address;
            }
        }
    }
    return SV("");
}

static void set_conditions(struct maker *m, const struct kube_node *node)
{
    for (const struct kube_condition *c = node->conditions.first; c != NULL; c = c->next) {
        char type[128];
        char status[32];
        struct buf name;
        buf_init(&name, sizeof(type) + sizeof(NODE "condition_"));
        object_lower(c->type, type, sizeof(type));
        object_lower(c->status, status, sizeof(status));
        buf_puts(&name, NODE "condition_");
        object_sanitize(sv_from(type), &name);
        maker_set_named(m, &name, sv_from(status));
        buf_done(&name);
    }
}

/* Sets the labels for the first address of each type. */
static void set_addresses(struct maker *m, const struct kube_node *node)
{
    for (const struct kube_node_address *a = node->addresses.first; a != NULL; a = a->next) {
        struct buf name;
        buf_init(&name, LABELS_BYTES_MAX);
        buf_puts(&name, NODE "address_");
        object_sanitize(a->type, &name);
        maker_set_named(m, &name, find_address(node, a->type));
        buf_done(&name);
    }
}

static enum object_status read_node(const struct kube_object *object,
                                    struct labels_builder *builder, struct object_targets *ret)
{
    const struct kube_node *node = &object->node;
    struct sv address = own_address(node);
    struct maker m;
    maker_init(&m, builder, ret);
    if (address.n == 0) {
        return OBJECT_OK;
    }
    maker_set(&m, SV(NODE "provider_id"), node->provider_id);
    set_conditions(&m, node);
    set_addresses(&m, node);
    maker_set(&m, SV(LABEL_INSTANCE), object->metadata.name);
    int64_t port = node->kubelet_port.value;
    maker_set_host_port(&m, address, port > 0 && port <= UINT16_MAX ? (unsigned)port : 0);
    maker_set_metadata(&m, &object->metadata, "node");
    maker_add(&m);
    return maker_done(&m);
}

const struct kube_role kube_nodes = {
    .resource = {ROLE_NODE, "", "nodes", "Node", false, node_rows, false},
    .source = "node",
    .read = read_node,
};

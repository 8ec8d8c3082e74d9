/* One target for each node, as in Prometheus' kubernetes_sd role "node". Pure.
 *
 * The address is the first of InternalIP, InternalDNS, ExternalIP, ExternalDNS, LegacyHostIP and
 * Hostname that the node has, with the port of the kubelet. A node without an address has no target
 * (in Prometheus the last one stays). */
#include "discovery/kubernetes/roles.h"

#define NODE META "node_"

static const struct json_keep condition_keep[] = {{"type", NULL}, {"status", NULL}, {NULL, NULL}};
static const struct json_keep spec_keep[] = {{"providerID", NULL}, {NULL, NULL}};
static const struct json_keep status_keep[] = {
    {"addresses", NULL}, {"daemonEndpoints", NULL}, {"conditions", condition_keep}, {NULL, NULL}};

static const struct json_keep node_keep[] = {
    OBJECT_KEEP, {"spec", spec_keep}, {"status", status_keep}, {NULL, NULL}};

/* The first address of a type; empty if there is none. */
static struct sv find_address(const json_t *addresses, struct sv type)
{
    for (size_t i = 0; i < json_array_size(addresses); i++) {
        const json_t *one = json_array_get(addresses, i);
        if (sv_eq(object_string(one, "type"), type)) {
            return object_string(one, "address");
        }
    }
    return SV("");
}

static struct sv own_address(const json_t *addresses)
{
    static const char *const order[] = {"InternalIP",  "InternalDNS",  "ExternalIP",
                                        "ExternalDNS", "LegacyHostIP", "Hostname"};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        struct sv address = find_address(addresses, sv_from(order[i]));
        if (address.n > 0) {
            return address;
        }
    }
    return SV("");
}

static void set_conditions(struct maker *m, const json_t *conditions)
{
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *one = json_array_get(conditions, i);
        char type[128];
        char status[32];
        struct buf name;
        buf_init(&name, sizeof(type) + sizeof(NODE "condition_"));
        object_lower(object_string(one, "type"), type, sizeof(type));
        object_lower(object_string(one, "status"), status, sizeof(status));
        buf_puts(&name, NODE "condition_");
        object_sanitize(sv_from(type), &name);
        maker_set_named(m, &name, sv_from(status));
        buf_done(&name);
    }
}

/* The first address of each type. */
static void set_addresses(struct maker *m, const json_t *addresses)
{
    for (size_t i = 0; i < json_array_size(addresses); i++) {
        struct sv type = object_string(json_array_get(addresses, i), "type");
        struct buf name;
        buf_init(&name, LABELS_BYTES_MAX);
        buf_puts(&name, NODE "address_");
        object_sanitize(type, &name);
        maker_set_named(m, &name, find_address(addresses, type));
        buf_done(&name);
    }
}

static enum object_status read_node(const json_t *node, struct labels_builder *builder,
                                    struct object_targets *ret)
{
    const json_t *metadata = json_object_get(node, "metadata");
    const json_t *status = json_object_get(node, "status");
    const json_t *addresses = json_object_get(status, "addresses");
    const json_t *daemons = json_object_get(status, "daemonEndpoints");
    struct sv address = own_address(addresses);
    struct maker m;
    maker_init(&m, builder, ret);
    if (address.n == 0) {
        return OBJECT_OK;
    }
    maker_set(&m, SV(NODE "provider_id"),
              object_string(json_object_get(node, "spec"), "providerID"));
    set_conditions(&m, json_object_get(status, "conditions"));
    set_addresses(&m, addresses);
    maker_set(&m, SV(LABEL_INSTANCE), object_string(metadata, "name"));
    maker_set_address(
        &m, address,
        maker_port(&m, json_object_get(json_object_get(daemons, "kubeletEndpoint"), "Port")));
    maker_set_metadata(&m, metadata, "node");
    maker_add(&m);
    return maker_done(&m);
}

const struct kube_role kube_nodes = {
    .resource = {ROLE_NODE, "", "nodes", "Node", false, node_keep},
    .source = "node",
    .read = read_node,
};

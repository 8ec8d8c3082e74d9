/* Makes the targets of an Endpoints object, as in Prometheus' kubernetes_sd role "endpoints";
 * services, pods and nodes are joined later (join.h). An address that is not an IP address is no
 * target. Pure. */
#include "discovery/kubernetes/roles.h"

#define ENDPOINT META "endpoint_"
#define ENDPOINTS_TARGETS_MAX 10000

static const struct schema_row port_rows[] = {
    SCHEMA_MEMBER("name", 1, TEXT, struct kube_port, name),
    SCHEMA_MEMBER("port", 2, NUMBER, struct kube_port, number),
    SCHEMA_MEMBER("protocol", 3, TEXT, struct kube_port, protocol),
    SCHEMA_END,
};
static const struct schema_row target_rows[] = {OBJECT_REFERENCE_ROWS(struct kube_address),
                                                SCHEMA_END};
static const struct schema_row address_rows[] = {
    SCHEMA_MEMBER("ip", 1, TEXT, struct kube_address, ip),
    SCHEMA_PART_OF("targetRef", 2, target_rows),
    SCHEMA_MEMBER("hostname", 3, TEXT, struct kube_address, hostname),
    SCHEMA_MEMBER("nodeName", 4, TEXT, struct kube_address, node_name),
    SCHEMA_END,
};
#define ADDRESSES(name, number, member)                                                            \
    SCHEMA_LIST_OF(name, number, struct kube_address, address_rows, struct kube_subset, member)
static const struct schema_row subset_rows[] = {
    ADDRESSES("addresses", 1, addresses),
    ADDRESSES("notReadyAddresses", 2, not_ready),
    SCHEMA_LIST_OF("ports", 3, struct kube_port, port_rows, struct kube_subset, ports),
    SCHEMA_END,
};
static const struct schema_row endpoints_rows[] = {
    OBJECT_ROWS,
    SCHEMA_LIST_OF("subsets", 2, struct kube_subset, subset_rows, struct kube_object,
                   endpoints.subsets),
    SCHEMA_END,
};

static void add_address(struct maker *m, const struct kube_address *address,
                        const struct kube_port *port, const char *ready)
{
    unsigned number;
    if (!maker_check_ip(m, object_is_ip(address->ip)) ||
        (number = maker_port(m, port->number)) == 0) {
        return;
    }
    maker_begin(m);
    maker_set_address(m, address->ip, number);
    maker_set_text(m, ENDPOINT "ready", ready);
    maker_set(m, SV(ENDPOINT "port_name"), port->name);
    maker_set(m, SV(ENDPOINT "port_protocol"), port->protocol);
    maker_set(m, SV(ENDPOINT "node_name"), address->node_name);
    maker_set(m, SV(ENDPOINT "hostname"), address->hostname);
    maker_set(m, SV(ENDPOINT "address_target_kind"), address->target.kind);
    maker_set(m, SV(ENDPOINT "address_target_name"), address->target.name);
    maker_set(m, SV(KUBE_REF_NAMESPACE), address->target.namespace);
    maker_add(m);
}

static void add_addresses(struct maker *m, const struct schema_list *addresses,
                          const struct kube_port *port, const char *ready)
{
    for (const struct kube_address *a = addresses->first; a != NULL; a = a->next) {
        add_address(m, a, port, ready);
    }
}

static enum object_status read_endpoints(const struct kube_object *object,
                                         struct labels_builder *builder, struct object_targets *ret)
{
    struct maker m;
    maker_init(&m, builder, ret);
    maker_set_metadata(&m, &object->metadata, "endpoints");
    maker_share(&m);
    for (const struct kube_subset *s = object->endpoints.subsets.first; s != NULL; s = s->next) {
        for (const struct kube_port *p = s->ports.first; p != NULL; p = p->next) {
            add_addresses(&m, &s->addresses, p, "true");
            add_addresses(&m, &s->not_ready, p, "false");
        }
    }
    return maker_done(&m);
}

const struct kube_role kube_endpoints = {
    .resource = {ROLE_ENDPOINTS, "", "endpoints", "Endpoints", true, endpoints_rows, false},
    .source = "endpoints",
    .read = read_endpoints,
    .targets_max = ENDPOINTS_TARGETS_MAX,
    .join = {.node = ENDPOINT "node_name",
             .ref_kind = ENDPOINT "address_target_kind",
             .ref_name = ENDPOINT "address_target_name",
             .service = META "endpoints_name",
             .protocol = ENDPOINT "port_protocol"},
};

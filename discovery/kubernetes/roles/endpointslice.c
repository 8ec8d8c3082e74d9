/* Makes the targets of an EndpointSlice, as in Prometheus' kubernetes_sd role "endpointslice";
 * services, pods and nodes are joined later (join.h). An address that is not an IP address is no
 * target, except in slices of the type FQDN. Pure. */
#include "discovery/kubernetes/roles.h"

#define SLICE META "endpointslice_"
#define SLICE_TARGETS_MAX 10000

static const struct schema_row port_rows[] = {
    SCHEMA_MEMBER("name", 1, TEXT, struct kube_port, name),
    SCHEMA_MEMBER("protocol", 2, TEXT, struct kube_port, protocol),
    SCHEMA_MEMBER("port", 3, NUMBER, struct kube_port, number),
    SCHEMA_MEMBER("appProtocol", 4, TEXT, struct kube_port, app_protocol),
    SCHEMA_END,
};
static const struct schema_row condition_rows[] = {
    SCHEMA_MEMBER("ready", 1, FLAG, struct kube_endpoint, ready),
    SCHEMA_MEMBER("serving", 2, FLAG, struct kube_endpoint, serving),
    SCHEMA_MEMBER("terminating", 3, FLAG, struct kube_endpoint, terminating),
    SCHEMA_END,
};
static const struct schema_row target_rows[] = {OBJECT_REFERENCE_ROWS(struct kube_endpoint),
                                                SCHEMA_END};
static const struct schema_row endpoint_rows[] = {
    SCHEMA_MEMBER("addresses", 1, TEXTS, struct kube_endpoint, addresses),
    SCHEMA_PART_OF("conditions", 2, condition_rows),
    SCHEMA_MEMBER("hostname", 3, TEXT, struct kube_endpoint, hostname),
    SCHEMA_PART_OF("targetRef", 4, target_rows),
    SCHEMA_MEMBER("deprecatedTopology", 5, PAIRS, struct kube_endpoint, topology),
    SCHEMA_MEMBER("nodeName", 6, TEXT, struct kube_endpoint, node_name),
    SCHEMA_MEMBER("zone", 7, TEXT, struct kube_endpoint, zone),
    SCHEMA_END,
};
static const struct schema_row slice_rows[] = {
    OBJECT_ROWS,
    SCHEMA_LIST_OF("endpoints", 2, struct kube_endpoint, endpoint_rows, struct kube_object,
                   slice.endpoints),
    SCHEMA_LIST_OF("ports", 3, struct kube_port, port_rows, struct kube_object, slice.ports),
    SCHEMA_MEMBER("addressType", 4, TEXT, struct kube_object, slice.address_type),
    SCHEMA_END,
};

static void set_flag(struct maker *m, const char *name, enum schema_flag flag)
{
    if (flag != FLAG_UNSET) {
        maker_set_text(m, name, flag == FLAG_TRUE ? "true" : "false");
    }
}

static void set_endpoint(struct maker *m, const struct kube_endpoint *endpoint)
{
    set_flag(m, SLICE "endpoint_conditions_ready", endpoint->ready);
    set_flag(m, SLICE "endpoint_conditions_serving", endpoint->serving);
    set_flag(m, SLICE "endpoint_conditions_terminating", endpoint->terminating);
    maker_set(m, SV(SLICE "endpoint_hostname"), endpoint->hostname);
    maker_set(m, SV(SLICE "endpoint_node_name"), endpoint->node_name);
    maker_set(m, SV(SLICE "endpoint_zone"), endpoint->zone);
    maker_set(m, SV(SLICE "address_target_kind"), endpoint->target.kind);
    maker_set(m, SV(SLICE "address_target_name"), endpoint->target.name);
    maker_set(m, SV(KUBE_REF_NAMESPACE), endpoint->target.namespace);
    maker_set_pairs(m, &endpoint->topology, SLICE "endpoint_topology",
                    SLICE "endpoint_topology_present");
}

static void add_port(struct maker *m, const struct kube_endpoint *endpoint, struct sv address,
                     const struct kube_port *port)
{
    unsigned number = 0;
    if (port->number.given && (number = maker_port(m, port->number)) == 0) {
        return;
    }
    maker_begin(m);
    maker_set_address(m, address, number);
    if (number > 0) {
        maker_set_number(m, SLICE "port", number);
    }
    maker_set(m, SV(SLICE "port_name"), port->name);
    maker_set(m, SV(SLICE "port_protocol"), port->protocol);
    maker_set(m, SV(SLICE "port_app_protocol"), port->app_protocol);
    set_endpoint(m, endpoint);
    maker_add(m);
}

static void add_endpoint(struct maker *m, const struct kube_endpoint *endpoint,
                         const struct kube_port *port, bool names)
{
    for (const struct schema_text *t = endpoint->addresses.first; t != NULL; t = t->next) {
        if (maker_check_ip(m, object_is_ip(t->text) ||
                                  (names && object_is_name(t->text, OBJECT_NAME_MAX)))) {
            add_port(m, endpoint, t->text, port);
        }
    }
}

static enum object_status read_slice(const struct kube_object *object,
                                     struct labels_builder *builder, struct object_targets *ret)
{
    const struct kube_slice *slice = &object->slice;
    struct maker m;
    maker_init(&m, builder, ret);
    maker_set(&m, SV(SLICE "address_type"), slice->address_type);
    maker_set_metadata(&m, &object->metadata, "endpointslice");
    maker_share(&m);
    bool names = sv_eq_str(slice->address_type, "FQDN");
    for (const struct kube_endpoint *e = slice->endpoints.first; e != NULL; e = e->next) {
        for (const struct kube_port *p = slice->ports.first; p != NULL; p = p->next) {
            add_endpoint(&m, e, p, names);
        }
    }
    return maker_done(&m);
}

const struct kube_role kube_endpointslices = {
    .resource = {ROLE_ENDPOINTSLICE, "discovery.k8s.io", "endpointslices", "EndpointSlice", true,
                 slice_rows, false},
    .source = "endpointslice",
    .read = read_slice,
    .targets_max = SLICE_TARGETS_MAX,
    .join = {.node = SLICE "endpoint_node_name",
             .prefers_ref_node = true,
             .ref_kind = SLICE "address_target_kind",
             .ref_name = SLICE "address_target_name",
             .service = SLICE "label_kubernetes_io_service_name"},
};

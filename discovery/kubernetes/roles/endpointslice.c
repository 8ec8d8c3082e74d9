/* The targets of an EndpointSlice, as in Prometheus' kubernetes_sd role "endpointslice"; services,
 * pods and nodes are joined later (join.h). An address that is not an IP address is no target,
 * except in slices of the type FQDN. Pure. */
#include "discovery/kubernetes/roles.h"

#define SLICE META "endpointslice_"
#define SLICE_TARGETS_MAX 10000

static const struct json_keep slice_keep[] = {
    OBJECT_KEEP, {"addressType", NULL}, {"endpoints", NULL}, {"ports", NULL}, {NULL, NULL}};

static const struct maker_member port_labels[] = {{SLICE "port_name", "name"},
                                                  {SLICE "port_protocol", "protocol"},
                                                  {SLICE "port_app_protocol", "appProtocol"},
                                                  {NULL, NULL}};
static const struct maker_member ref_labels[] = {{SLICE "address_target_kind", "kind"},
                                                 {SLICE "address_target_name", "name"},
                                                 {KUBE_REF_NAMESPACE, "namespace"},
                                                 {NULL, NULL}};
static const struct maker_member endpoint_labels[] = {{SLICE "endpoint_hostname", "hostname"},
                                                      {SLICE "endpoint_node_name", "nodeName"},
                                                      {SLICE "endpoint_zone", "zone"},
                                                      {NULL, NULL}};
static const struct maker_member condition_labels[] = {
    {SLICE "endpoint_conditions_ready", "ready"},
    {SLICE "endpoint_conditions_serving", "serving"},
    {SLICE "endpoint_conditions_terminating", "terminating"},
    {NULL, NULL}};

static void set_endpoint(struct maker *m, const json_t *endpoint)
{
    const json_t *conditions = json_object_get(endpoint, "conditions");
    for (const struct maker_member *l = condition_labels; l->label != NULL; l++) {
        const json_t *value = json_object_get(conditions, l->member);
        if (json_is_boolean(value)) {
            maker_set_text(m, l->label, json_is_true(value) ? "true" : "false");
        }
    }
    maker_set_strings(m, endpoint, endpoint_labels);
    maker_set_strings(m, json_object_get(endpoint, "targetRef"), ref_labels);
    maker_set_members(m, json_object_get(endpoint, "deprecatedTopology"), SLICE "endpoint_topology",
                      SLICE "endpoint_topology_present");
}

static void add_port(struct maker *m, const json_t *endpoint, struct sv address, const json_t *port)
{
    const json_t *value = json_object_get(port, "port");
    unsigned number = 0;
    if (value != NULL && !json_is_null(value) && (number = maker_port(m, value)) == 0) {
        return;
    }
    maker_begin(m);
    maker_set_address(m, address, number);
    if (number > 0) {
        maker_set_number(m, SLICE "port", number);
    }
    maker_set_strings(m, port, port_labels);
    set_endpoint(m, endpoint);
    maker_add(m);
}

static void add_endpoint(struct maker *m, const json_t *endpoint, const json_t *port, bool names)
{
    const json_t *addresses = json_object_get(endpoint, "addresses");
    for (size_t i = 0; i < json_array_size(addresses); i++) {
        struct sv address = object_text(json_array_get(addresses, i));
        if (maker_check_ip(m, object_is_ip(address) ||
                                  (names && object_is_name(address, OBJECT_NAME_MAX)))) {
            add_port(m, endpoint, address, port);
        }
    }
}

static enum object_status read_slice(const json_t *slice, struct labels_builder *builder,
                                     struct object_targets *ret)
{
    const json_t *endpoints = json_object_get(slice, "endpoints");
    const json_t *ports = json_object_get(slice, "ports");
    struct sv type = object_string(slice, "addressType");
    struct maker m;
    maker_init(&m, builder, ret);
    maker_set(&m, SV(SLICE "address_type"), type);
    maker_set_metadata(&m, json_object_get(slice, "metadata"), "endpointslice");
    maker_share(&m);
    bool names = sv_eq_str(type, "FQDN");
    for (size_t i = 0; i < json_array_size(endpoints); i++) {
        for (size_t k = 0; k < json_array_size(ports); k++) {
            add_endpoint(&m, json_array_get(endpoints, i), json_array_get(ports, k), names);
        }
    }
    return maker_done(&m);
}

const struct kube_role kube_endpointslices = {
    .resource = {ROLE_ENDPOINTSLICE, "discovery.k8s.io", "endpointslices", "EndpointSlice", true,
                 slice_keep},
    .source = "endpointslice",
    .read = read_slice,
    .targets_max = SLICE_TARGETS_MAX,
    .join = {.node = SLICE "endpoint_node_name",
             .prefers_ref_node = true,
             .ref_kind = SLICE "address_target_kind",
             .ref_name = SLICE "address_target_name",
             .service = SLICE "label_kubernetes_io_service_name"},
};

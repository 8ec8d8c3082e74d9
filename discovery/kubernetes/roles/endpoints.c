/* The targets of an Endpoints object, as in Prometheus' kubernetes_sd role "endpoints"; services,
 * pods and nodes are joined later (join.h). An address that is not an IP address is no target.
 * Pure. */
#include "discovery/kubernetes/roles.h"

#define ENDPOINT META "endpoint_"
#define ENDPOINTS_TARGETS_MAX 10000

static const struct json_keep endpoints_keep[] = {OBJECT_KEEP, {"subsets", NULL}, {NULL, NULL}};

static const struct maker_member port_labels[] = {
    {ENDPOINT "port_name", "name"}, {ENDPOINT "port_protocol", "protocol"}, {NULL, NULL}};
static const struct maker_member ref_labels[] = {{ENDPOINT "address_target_kind", "kind"},
                                                 {ENDPOINT "address_target_name", "name"},
                                                 {KUBE_REF_NAMESPACE, "namespace"},
                                                 {NULL, NULL}};
static const struct maker_member address_labels[] = {
    {ENDPOINT "node_name", "nodeName"}, {ENDPOINT "hostname", "hostname"}, {NULL, NULL}};

static void add_address(struct maker *m, const json_t *address, const json_t *port,
                        const char *ready)
{
    struct sv ip = object_string(address, "ip");
    unsigned number;
    if (!maker_check_ip(m, object_is_ip(ip)) ||
        (number = maker_port(m, json_object_get(port, "port"))) == 0) {
        return;
    }
    maker_begin(m);
    maker_set_address(m, ip, number);
    maker_set_text(m, ENDPOINT "ready", ready);
    maker_set_strings(m, port, port_labels);
    maker_set_strings(m, address, address_labels);
    maker_set_strings(m, json_object_get(address, "targetRef"), ref_labels);
    maker_add(m);
}

static void add_addresses(struct maker *m, const json_t *addresses, const json_t *port,
                          const char *ready)
{
    for (size_t i = 0; i < json_array_size(addresses); i++) {
        add_address(m, json_array_get(addresses, i), port, ready);
    }
}

static void add_subset(struct maker *m, const json_t *subset)
{
    const json_t *ports = json_object_get(subset, "ports");
    for (size_t i = 0; i < json_array_size(ports); i++) {
        const json_t *port = json_array_get(ports, i);
        add_addresses(m, json_object_get(subset, "addresses"), port, "true");
        add_addresses(m, json_object_get(subset, "notReadyAddresses"), port, "false");
    }
}

static enum object_status read_endpoints(const json_t *endpoints, struct labels_builder *builder,
                                         struct object_targets *ret)
{
    const json_t *subsets = json_object_get(endpoints, "subsets");
    struct maker m;
    maker_init(&m, builder, ret);
    maker_set_metadata(&m, json_object_get(endpoints, "metadata"), "endpoints");
    maker_share(&m);
    for (size_t i = 0; i < json_array_size(subsets); i++) {
        add_subset(&m, json_array_get(subsets, i));
    }
    return maker_done(&m);
}

const struct kube_role kube_endpoints = {
    .resource = {ROLE_ENDPOINTS, "", "endpoints", "Endpoints", true, endpoints_keep},
    .source = "endpoints",
    .read = read_endpoints,
    .targets_max = ENDPOINTS_TARGETS_MAX,
    .join = {.node = ENDPOINT "node_name",
             .ref_kind = ENDPOINT "address_target_kind",
             .ref_name = ENDPOINT "address_target_name",
             .service = META "endpoints_name",
             .protocol = ENDPOINT "port_protocol"},
};

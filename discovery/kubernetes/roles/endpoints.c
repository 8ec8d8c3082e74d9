#include "discovery/kubernetes/roles/endpoints.h"

#define ENDPOINT META "endpoint_"
#define SLICE META "endpointslice_"

const struct json_keep endpoints_keep[] = {OBJECT_KEEP, {"subsets", NULL}, {NULL, NULL}};
const struct json_keep slice_keep[] = {
    OBJECT_KEEP, {"addressType", NULL}, {"endpoints", NULL}, {"ports", NULL}, {NULL, NULL}};

/* ---- endpoints ------------------------------------------------------------------------------- */

static enum object_status add_address(struct maker *m, const json_t *address, const json_t *port,
                                      const char *ready)
{
    bool ipv6;
    struct sv ip = object_string(address, "ip");
    unsigned number = object_port(json_object_get(port, "port"));
    if (object_ip(ip, &ipv6) == NULL) {
        m->out->bad_ip++;
        return OBJECT_OK;
    }
    if (number == 0) {
        m->out->bad_ports++;
        return OBJECT_OK;
    }
    const json_t *ref = json_object_get(address, "targetRef");
    maker_begin(m);
    maker_set_address(m, ip, number);
    maker_set(m, SV(ENDPOINT "port_name"), object_string(port, "name"));
    maker_set(m, SV(ENDPOINT "port_protocol"), object_string(port, "protocol"));
    maker_set_text(m, ENDPOINT "ready", ready);
    maker_set(m, SV(ENDPOINT "address_target_kind"), object_string(ref, "kind"));
    maker_set(m, SV(ENDPOINT "address_target_name"), object_string(ref, "name"));
    maker_set(m, SV(ENDPOINT "node_name"), object_string(address, "nodeName"));
    maker_set(m, SV(ENDPOINT "hostname"), object_string(address, "hostname"));
    return maker_add(m);
}

static enum object_status add_addresses(struct maker *m, const json_t *addresses,
                                        const json_t *port, const char *ready)
{
    enum object_status status = OBJECT_OK;
    for (size_t i = 0; i < json_array_size(addresses) && status == OBJECT_OK; i++) {
        status = add_address(m, json_array_get(addresses, i), port, ready);
    }
    return status;
}

static enum object_status add_subset(struct maker *m, const json_t *subset)
{
    const json_t *ports = json_object_get(subset, "ports");
    enum object_status status = OBJECT_OK;
    for (size_t i = 0; i < json_array_size(ports) && status == OBJECT_OK; i++) {
        const json_t *port = json_array_get(ports, i);
        status = add_addresses(m, json_object_get(subset, "addresses"), port, "true");
        if (status == OBJECT_OK) {
            status = add_addresses(m, json_object_get(subset, "notReadyAddresses"), port, "false");
        }
    }
    return status;
}

enum object_status endpoints_read(const json_t *endpoints, struct labels_builder *builder,
                                  struct object_targets *ret)
{
    const json_t *subsets = json_object_get(endpoints, "subsets");
    struct maker m;
    maker_init(&m, builder, ret);
    maker_set_meta(&m, json_object_get(endpoints, "metadata"), "endpoints");
    enum object_status status = maker_share(&m);
    for (size_t i = 0; i < json_array_size(subsets) && status == OBJECT_OK; i++) {
        status = add_subset(&m, json_array_get(subsets, i));
    }
    return maker_done(&m, status);
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void set_flag(struct maker *m, const char *name, const json_t *value)
{
    if (json_is_boolean(value)) {
        maker_set_text(m, name, json_is_true(value) ? "true" : "false");
    }
}

static void set_endpoint(struct maker *m, const json_t *endpoint)
{
    const json_t *conditions = json_object_get(endpoint, "conditions");
    const json_t *ref = json_object_get(endpoint, "targetRef");
    set_flag(m, SLICE "endpoint_conditions_ready", json_object_get(conditions, "ready"));
    set_flag(m, SLICE "endpoint_conditions_serving", json_object_get(conditions, "serving"));
    set_flag(m, SLICE "endpoint_conditions_terminating",
             json_object_get(conditions, "terminating"));
    maker_set(m, SV(SLICE "endpoint_hostname"), object_string(endpoint, "hostname"));
    maker_set(m, SV(SLICE "endpoint_node_name"), object_string(endpoint, "nodeName"));
    maker_set(m, SV(SLICE "endpoint_zone"), object_string(endpoint, "zone"));
    maker_set(m, SV(SLICE "address_target_kind"), object_string(ref, "kind"));
    maker_set(m, SV(SLICE "address_target_name"), object_string(ref, "name"));
    maker_set_members(m, json_object_get(endpoint, "deprecatedTopology"), SLICE "endpoint_topology",
                      SLICE "endpoint_topology_present");
}

static enum object_status add_port(struct maker *m, const json_t *endpoint, struct sv address,
                                   const json_t *port)
{
    const json_t *value = json_object_get(port, "port");
    unsigned number = object_port(value);
    if (number == 0 && value != NULL && !json_is_null(value)) {
        m->out->bad_ports++;
        return OBJECT_OK;
    }
    maker_begin(m);
    maker_set_address(m, address, number);
    if (number > 0) {
        maker_set_number(m, SLICE "port", number);
    }
    maker_set(m, SV(SLICE "port_name"), object_string(port, "name"));
    maker_set(m, SV(SLICE "port_protocol"), object_string(port, "protocol"));
    maker_set(m, SV(SLICE "port_app_protocol"), object_string(port, "appProtocol"));
    set_endpoint(m, endpoint);
    return maker_add(m);
}

static enum object_status add_endpoint(struct maker *m, const json_t *endpoint, const json_t *port,
                                       bool names)
{
    const json_t *addresses = json_object_get(endpoint, "addresses");
    enum object_status status = OBJECT_OK;
    for (size_t i = 0; i < json_array_size(addresses) && status == OBJECT_OK; i++) {
        const json_t *text = json_array_get(addresses, i);
        struct sv address = SV("");
        bool ipv6;
        if (json_is_string(text)) {
            address = (struct sv){json_string_value(text), json_string_length(text)};
        }
        if (object_ip(address, &ipv6) == NULL &&
            !(names && object_is_name(address, OBJECT_NAME_MAX))) {
            m->out->bad_ip++;
            continue;
        }
        status = add_port(m, endpoint, address, port);
    }
    return status;
}

enum object_status slice_read(const json_t *slice, struct labels_builder *builder,
                              struct object_targets *ret)
{
    const json_t *endpoints = json_object_get(slice, "endpoints");
    const json_t *ports = json_object_get(slice, "ports");
    struct sv type = object_string(slice, "addressType");
    struct maker m;
    maker_init(&m, builder, ret);
    maker_set(&m, SV(SLICE "address_type"), type);
    maker_set_meta(&m, json_object_get(slice, "metadata"), "endpointslice");
    enum object_status status = maker_share(&m);
    bool names = sv_eq_str(type, "FQDN");
    for (size_t i = 0; i < json_array_size(endpoints) && status == OBJECT_OK; i++) {
        for (size_t k = 0; k < json_array_size(ports) && status == OBJECT_OK; k++) {
            status =
                add_endpoint(&m, json_array_get(endpoints, i), json_array_get(ports, k), names);
        }
    }
    return maker_done(&m, status);
}

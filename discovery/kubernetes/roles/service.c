/* A target for each port of a service, as in Prometheus' kubernetes_sd role "service". The address
 * is the name of the service in the DNS of the cluster. Pure. */
#include "discovery/kubernetes/roles.h"

#define SERVICE META "service_"

static const struct json_keep spec_keep[] = {
    {"type", NULL},           {"externalName", NULL}, {"clusterIP", NULL}, {"loadBalancerIP", NULL},
    {"ipFamilyPolicy", NULL}, {"ipFamilies", NULL},   {"ports", NULL},     {NULL, NULL}};
static const struct json_keep status_keep[] = {{"loadBalancer", NULL}, {NULL, NULL}};

static const struct json_keep service_keep[] = {
    OBJECT_KEEP, {"spec", spec_keep}, {"status", status_keep}, {NULL, NULL}};

static const struct maker_member port_labels[] = {
    {SERVICE "port_name", "name"}, {SERVICE "port_protocol", "protocol"}, {NULL, NULL}};

/* The addresses of the load balancer, separated by commas; else the requested one. */
static void set_load_balancer(struct maker *m, const json_t *service)
{
    const json_t *balancer = json_object_get(json_object_get(service, "status"), "loadBalancer");
    const json_t *ingress = json_object_get(balancer, "ingress");
    struct buf text;
    buf_init(&text, LABELS_BYTES_MAX);
    for (size_t i = 0; i < json_array_size(ingress); i++) {
        struct sv ip = object_string(json_array_get(ingress, i), "ip");
        if (ip.n > 0) {
            buf_puts(&text, text.len == 0 ? "" : ",");
            buf_append(&text, ip.p, ip.n);
        }
    }
    if (text.len > 0 || !buf_ok(&text)) {
        maker_set_buf(m, SERVICE "loadbalancer_ip", &text);
    } else {
        maker_set(m, SV(SERVICE "loadbalancer_ip"),
                  object_string(json_object_get(service, "spec"), "loadBalancerIP"));
    }
    buf_done(&text);
}

static void set_type(struct maker *m, const json_t *service)
{
    const json_t *spec = json_object_get(service, "spec");
    struct sv type = object_string(spec, "type");
    maker_set(m, SV(SERVICE "type"), type);
    if (sv_eq_str(type, "ExternalName")) {
        maker_set(m, SV(SERVICE "external_name"), object_string(spec, "externalName"));
    } else {
        maker_set(m, SV(SERVICE "cluster_ip"), object_string(spec, "clusterIP"));
    }
    if (sv_eq_str(type, "LoadBalancer")) {
        set_load_balancer(m, service);
    }
}

static void add_port(struct maker *m, const json_t *port, struct sv host)
{
    unsigned number = maker_port(m, json_object_get(port, "port"));
    if (number == 0) {
        return;
    }
    maker_begin(m);
    maker_set_address(m, host, number);
    maker_set_number(m, SERVICE "port_number", number);
    maker_set_strings(m, port, port_labels);
    maker_add(m);
}

static enum object_status read_service(const json_t *service, struct labels_builder *builder,
                                       struct object_targets *ret)
{
    const json_t *metadata = json_object_get(service, "metadata");
    const json_t *ports = json_object_get(json_object_get(service, "spec"), "ports");
    struct maker m;
    maker_init(&m, builder, ret);
    set_type(&m, service);
    maker_set_metadata(&m, metadata, "service");
    maker_share(&m);
    char host[OBJECT_KEY_MAX + sizeof(".svc")];
    struct sv name = object_string(metadata, "name");
    struct sv namespace = object_string(metadata, "namespace");
    if (!object_is_name(name, OBJECT_NAME_MAX) ||
        !object_is_name(namespace, OBJECT_NAMESPACE_MAX)) {
        return maker_done(&m);
    }
    snprintf(host, sizeof(host), "%.*s.%.*s.svc", SV_ARG(name), SV_ARG(namespace));
    for (size_t i = 0; i < json_array_size(ports); i++) {
        add_port(&m, json_array_get(ports, i), sv_from(host));
    }
    return maker_done(&m);
}

const struct kube_role kube_services = {
    .resource = {ROLE_SERVICE, "", "services", "Service", true, service_keep},
    .source = "svc",
    .read = read_service,
};

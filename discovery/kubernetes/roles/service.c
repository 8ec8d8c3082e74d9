/* Makes a target for each port of a service, as in Prometheus' kubernetes_sd role "service". The
 * address is the name of the service in the DNS of the cluster. Pure. */
#include "discovery/kubernetes/roles.h"

#define SERVICE META "service_"

static const struct schema_row port_rows[] = {
    SCHEMA_MEMBER("name", 1, TEXT, struct kube_port, name),
    SCHEMA_MEMBER("protocol", 2, TEXT, struct kube_port, protocol),
    SCHEMA_MEMBER("port", 3, NUMBER, struct kube_port, number),
    SCHEMA_END,
};
static const struct schema_row spec_rows[] = {
    SCHEMA_LIST_OF("ports", 1, struct kube_port, port_rows, struct kube_object, service.ports),
    SCHEMA_MEMBER("clusterIP", 3, TEXT, struct kube_object, service.cluster_ip),
    SCHEMA_MEMBER("type", 4, TEXT, struct kube_object, service.type),
    SCHEMA_MEMBER("loadBalancerIP", 8, TEXT, struct kube_object, service.balancer_ip),
    SCHEMA_MEMBER("externalName", 10, TEXT, struct kube_object, service.external_name),
    SCHEMA_MEMBER("ipFamilyPolicy", 17, TEXT, struct kube_object, service.family_policy),
    SCHEMA_MEMBER("ipFamilies", 19, TEXTS, struct kube_object, service.families),
    SCHEMA_END,
};
static const struct schema_row ingress_rows[] = {
    SCHEMA_MEMBER("ip", 1, TEXT, struct kube_balancer, ip),
    SCHEMA_END,
};
static const struct schema_row balancer_rows[] = {
    SCHEMA_LIST_OF("ingress", 1, struct kube_balancer, ingress_rows, struct kube_object,
                   service.balancers),
    SCHEMA_END,
};
static const struct schema_row status_rows[] = {
    SCHEMA_PART_OF("loadBalancer", 1, balancer_rows),
    SCHEMA_END,
};
static const struct schema_row service_rows[] = {
    OBJECT_ROWS,
    SCHEMA_PART_OF("spec", 2, spec_rows),
    SCHEMA_PART_OF("status", 3, status_rows),
    SCHEMA_END,
};

/* Sets the label for the load balancer: its addresses, separated by commas, or else the requested
 * one. */
static void set_load_balancer(struct maker *m, const struct kube_service *service)
{
    struct buf text;
    buf_init(&text, LABELS_BYTES_MAX);
    for (const struct kube_balancer *b = service->balancers.first; b != NULL; b = b->next) {
        if (b->ip.n > 0) {
            buf_puts(&text, text.len == 0 ? "" : ",");
            buf_append(&text, b->ip.p, b->ip.n);
        }
    }
    if (text.len > 0 || !buf_ok(&text)) {
        maker_set_buf(m, SERVICE "loadbalancer_ip", &text);
    } else {
        maker_set(m, SV(SERVICE "loadbalancer_ip"), service->balancer_ip);
    }
    buf_done(&text);
}

static void set_type(struct maker *m, const struct kube_service *service)
{
    maker_set(m, SV(SERVICE "type"), service->type);
    if (sv_eq_str(service->type, "ExternalName")) {
        maker_set(m, SV(SERVICE "external_name"), service->external_name);
    } else {
        maker_set(m, SV(SERVICE "cluster_ip"), service->cluster_ip);
    }
    if (sv_eq_str(service->type, "LoadBalancer")) {
        set_load_balancer(m, service);
    }
}

static void add_port(struct maker *m, const struct kube_port *port, struct sv host)
{
    unsigned number = maker_port(m, port->number);
    if (number == 0) {
        return;
    }
    maker_begin(m);
    maker_set_address(m, host, number);
    maker_set_number(m, SERVICE "port_number", number);
    maker_set(m, SV(SERVICE "port_name"), port->name);
    maker_set(m, SV(SERVICE "port_protocol"), port->protocol);
    maker_add(m);
}

static enum object_status read_service(const struct kube_object *object,
                                       struct labels_builder *builder, struct object_targets *ret)
{
    const struct kube_service *service = &object->service;
    struct maker m;
    maker_init(&m, builder, ret);
    set_type(&m, service);
    maker_set_metadata(&m, &object->metadata, "service");
    maker_share(&m);
    char host[OBJECT_KEY_MAX + sizeof(".svc")];
    struct sv name = object->metadata.name;
    struct sv namespace = object->metadata.namespace;
    if (!object_is_name(name, OBJECT_NAME_MAX) ||
        !object_is_name(namespace, OBJECT_NAMESPACE_MAX)) {
        return maker_done(&m);
    }
    snprintf(host, sizeof(host), "%.*s.%.*s.svc", SV_ARG(name), SV_ARG(namespace));
    for (const struct kube_port *p = service->ports.first; p != NULL; p = p->next) {
        add_port(&m, p, sv_from(host));
    }
    return maker_done(&m);
}

const struct kube_role kube_services = {
    .resource = {ROLE_SERVICE, "", "services", "Service", true, service_rows, false},
    .source = "svc",
    .read = read_service,
};

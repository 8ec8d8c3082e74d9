/* Makes the targets of a pod, as in Prometheus' kubernetes_sd role "pod". Pure.
 *
 * Three things differ from Prometheus on purpose. An IPv6 address without port is bracketed. If
 * sanitising makes two label names equal, the one that sorts last wins (in Prometheus a random
 * one). An address that is not an IP address, and a port outside of 1-65535, result in no target.
 */
#include "discovery/kubernetes/roles.h"

#include <string.h>

#define POD META "pod_"
#define CONTAINER POD "container_"

static const struct schema_row port_rows[] = {
    SCHEMA_MEMBER("name", 1, TEXT, struct kube_port, name),
    SCHEMA_MEMBER("containerPort", 3, NUMBER, struct kube_port, number),
    SCHEMA_MEMBER("protocol", 4, TEXT, struct kube_port, protocol),
    SCHEMA_END,
};
static const struct schema_row container_rows[] = {
    SCHEMA_MEMBER("name", 1, TEXT, struct kube_container, name),
    SCHEMA_MEMBER("image", 2, TEXT, struct kube_container, image),
    SCHEMA_LIST_OF("ports", 6, struct kube_port, port_rows, struct kube_container, ports),
    SCHEMA_MEMBER("restartPolicy", 24, TEXT, struct kube_container, restart_policy),
    SCHEMA_END,
};
static const struct schema_row container_status_rows[] = {
    SCHEMA_MEMBER("name", 1, TEXT, struct kube_container_status, name),
    SCHEMA_MEMBER("containerID", 8, TEXT, struct kube_container_status, id),
    SCHEMA_END,
};
#define CONTAINERS(name, number, member)                                                           \
    SCHEMA_LIST_OF(name, number, struct kube_container, container_rows, struct kube_object, member)
static const struct schema_row spec_rows[] = {
    CONTAINERS("containers", 2, pod.containers),
    SCHEMA_MEMBER("nodeName", 10, TEXT, struct kube_object, pod.node_name),
    CONTAINERS("initContainers", 20, pod.init_containers),
    SCHEMA_END,
};
#define STATUSES(name, number, member)                                                             \
    SCHEMA_LIST_OF(name, number, struct kube_container_status, container_status_rows,              \
                   struct kube_object, member)
static const struct schema_row status_rows[] = {
    SCHEMA_MEMBER("phase", 1, TEXT, struct kube_object, pod.phase),
    SCHEMA_LIST_OF("conditions", 2, struct kube_condition, object_condition_rows,
                   struct kube_object, pod.conditions),
    SCHEMA_MEMBER("hostIP", 5, TEXT, struct kube_object, pod.host_ip),
    SCHEMA_MEMBER("podIP", 6, TEXT, struct kube_object, pod.ip),
    STATUSES("containerStatuses", 8, pod.statuses),
    STATUSES("initContainerStatuses", 10, pod.init_statuses),
    SCHEMA_END,
};
static const struct schema_row pod_rows[] = {
    OBJECT_ROWS,
    SCHEMA_PART_OF("spec", 2, spec_rows),
    SCHEMA_PART_OF("status", 3, status_rows),
    SCHEMA_END,
};

static void set_ready(struct maker *m, const struct kube_pod *pod)
{
    char ready[16] = "unknown";
    for (const struct kube_condition *c = pod->conditions.first; c != NULL; c = c->next) {
        if (sv_eq_str(c->type, "Ready")) {
            object_lower(c->status, ready, sizeof(ready));
            break;
        }
    }
    maker_set_text(m, POD "ready", ready);
}

/* Sets the labels for the first owner that is marked as the controller. */
static void set_controller(struct maker *m, const struct kube_metadata *metadata)
{
    for (const struct kube_owner *o = metadata->owners.first; o != NULL; o = o->next) {
        if (o->controller == FLAG_TRUE) {
            maker_set(m, SV(POD "controller_kind"), o->kind);
            maker_set(m, SV(POD "controller_name"), o->name);
            return;
        }
    }
}

/* Sets the labels that all targets of the pod share. */
static void set_pod_labels(struct maker *m, const struct kube_object *object)
{
    const struct kube_pod *pod = &object->pod;
    maker_set(m, SV(POD "uid"), object->metadata.uid);
    maker_set(m, SV(POD "ip"), pod->ip);
    maker_set(m, SV(POD "host_ip"), pod->host_ip);
    maker_set(m, SV(POD "phase"), pod->phase);
    maker_set(m, SV(POD "node_name"), pod->node_name);
    set_ready(m, pod);
    set_controller(m, &object->metadata);
    maker_set_metadata(m, &object->metadata, "pod");
}

static struct sv container_id(const struct schema_list *statuses, struct sv name)
{
    for (const struct kube_container_status *s = statuses->first; s != NULL; s = s->next) {
        if (sv_eq(s->name, name)) {
            return s->id;
        }
    }
    return SV("");
}

static void set_address(struct maker *m, unsigned port)
{
    if (m->out->ip != NULL) {
        maker_set_address(m, sv_from(m->out->ip), port);
    }
}

static void add_port(struct maker *m, const struct kube_port *port)
{
    unsigned number = maker_port(m, port->number);
    if (number > 0) {
        set_address(m, number);
        maker_set_number(m, CONTAINER "port_number", number);
        maker_set(m, SV(CONTAINER "port_name"), port->name);
        maker_set(m, SV(CONTAINER "port_protocol"), port->protocol);
        maker_add(m);
    }
}

/* Adds the targets of a container. Prometheus has no label for the restart policy; here it
 * distinguishes a sidecar ("Always") from an init container that has finished when the pod runs. */
static void add_container(struct maker *m, const struct kube_container *container,
                          const struct schema_list *statuses, bool init)
{
    maker_begin(m);
    maker_set(m, SV(CONTAINER "name"), container->name);
    maker_set(m, SV(CONTAINER "image"), container->image);
    maker_set(m, SV(CONTAINER "restart_policy"), container->restart_policy);
    maker_set(m, SV(CONTAINER "id"), container_id(statuses, container->name));
    maker_set_text(m, CONTAINER "init", init ? "true" : "false");
    if (container->ports.first == NULL) {
        set_address(m, 0);
        maker_add(m);
    }
    for (const struct kube_port *p = container->ports.first; p != NULL; p = p->next) {
        add_port(m, p);
    }
}

static void add_containers(struct maker *m, const struct schema_list *containers,
                           const struct schema_list *statuses, bool init)
{
    for (const struct kube_container *c = containers->first; c != NULL; c = c->next) {
        add_container(m, c, statuses, init);
    }
}

const char *pod_ip(const struct kube_object *pod, char out[OBJECT_IP_MAX])
{
    struct sv text = pod->pod.ip;
    if (!object_is_ip(text)) {
        return NULL;
    }
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    return out;
}

static enum object_status read_pod(const struct kube_object *object, struct labels_builder *builder,
                                   struct object_targets *ret)
{
    const struct kube_pod *pod = &object->pod;
    struct maker m;
    maker_init(&m, builder, ret);
    ret->ip = pod_ip(object, ret->ip_text);
    ret->bad_ip = ret->ip == NULL && pod->ip.n > 0 ? 1 : 0;
    if (ret->ip == NULL && !ret->keep_shared) {
        return OBJECT_OK;
    }
    set_pod_labels(&m, object);
    maker_share(&m);
    if (ret->ip != NULL || ret->without_ip) {
        add_containers(&m, &pod->containers, &pod->statuses, false);
        add_containers(&m, &pod->init_containers, &pod->init_statuses, true);
    }
    return maker_done(&m);
}

const struct kube_role kube_pods = {
    .resource = {ROLE_POD, "", "pods", "Pod", true, pod_rows, false},
    .source = "pod",
    .read = read_pod,
    .join = {.node = POD "node_name", .drops_without_node = true},
};

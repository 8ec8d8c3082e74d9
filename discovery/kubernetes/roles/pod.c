#include "discovery/kubernetes/roles/pod.h"

#define POD META "pod_"
#define CONTAINER POD "container_"

static const struct json_keep port_keep[] = {
    {"name", NULL}, {"containerPort", NULL}, {"protocol", NULL}, {NULL, NULL}};
static const struct json_keep container_keep[] = {
    {"name", NULL}, {"image", NULL}, {"ports", port_keep}, {"restartPolicy", NULL}, {NULL, NULL}};
static const struct json_keep container_status_keep[] = {
    {"name", NULL}, {"containerID", NULL}, {NULL, NULL}};
static const struct json_keep condition_keep[] = {{"type", NULL}, {"status", NULL}, {NULL, NULL}};

static const struct json_keep spec_keep[] = {{"nodeName", NULL},
                                             {"containers", container_keep},
                                             {"initContainers", container_keep},
                                             {NULL, NULL}};
static const struct json_keep status_keep[] = {{"podIP", NULL},
                                               {"hostIP", NULL},
                                               {"phase", NULL},
                                               {"conditions", condition_keep},
                                               {"containerStatuses", container_status_keep},
                                               {"initContainerStatuses", container_status_keep},
                                               {NULL, NULL}};

const struct json_keep pod_keep[] = {
    OBJECT_KEEP, {"spec", spec_keep}, {"status", status_keep}, {NULL, NULL}};

static void set_ready(struct maker *m, const json_t *status)
{
    char ready[16] = "unknown";
    const json_t *conditions = json_object_get(status, "conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *condition = json_array_get(conditions, i);
        if (sv_eq_str(object_string(condition, "type"), "Ready")) {
            object_lower(object_string(condition, "status"), ready, sizeof(ready));
            break;
        }
    }
    maker_set_text(m, POD "ready", ready);
}

/* The first owner that says it is the controller. */
static void set_controller(struct maker *m, const json_t *metadata)
{
    const json_t *owners = json_object_get(metadata, "ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *owner = json_array_get(owners, i);
        if (json_is_true(json_object_get(owner, "controller"))) {
            maker_set(m, SV(POD "controller_kind"), object_string(owner, "kind"));
            maker_set(m, SV(POD "controller_name"), object_string(owner, "name"));
            return;
        }
    }
}

/* The labels that all targets of the pod share. */
static void set_pod_labels(struct maker *m, const json_t *pod)
{
    const json_t *metadata = json_object_get(pod, "metadata");
    const json_t *status = json_object_get(pod, "status");
    maker_set(m, SV(POD "uid"), object_string(metadata, "uid"));
    maker_set(m, SV(POD "ip"), object_string(status, "podIP"));
    maker_set(m, SV(POD "host_ip"), object_string(status, "hostIP"));
    maker_set(m, SV(POD "phase"), object_string(status, "phase"));
    maker_set(m, SV(POD "node_name"), object_string(json_object_get(pod, "spec"), "nodeName"));
    set_ready(m, status);
    set_controller(m, metadata);
    maker_set_meta(m, metadata, "pod");
}

static struct sv container_id(const json_t *statuses, struct sv name)
{
    for (size_t i = 0; i < json_array_size(statuses); i++) {
        const json_t *status = json_array_get(statuses, i);
        if (sv_eq(object_string(status, "name"), name)) {
            return object_string(status, "containerID");
        }
    }
    return SV("");
}

static void set_container(struct maker *m, const json_t *container, const json_t *statuses,
                          bool init)
{
    struct sv name = object_string(container, "name");
    maker_set(m, SV(CONTAINER "name"), name);
    maker_set(m, SV(CONTAINER "image"), object_string(container, "image"));
    maker_set(m, SV(CONTAINER "id"), container_id(statuses, name));
    maker_set_text(m, CONTAINER "init", init ? "true" : "false");
    /* Not Prometheus': tells a sidecar ("Always") from what has finished when the pod runs. */
    maker_set(m, SV(CONTAINER "restart_policy"), object_string(container, "restartPolicy"));
}

static enum object_status add_port(struct maker *m, const json_t *port)
{
    unsigned number = object_port(json_object_get(port, "containerPort"));
    if (number == 0) {
        m->out->bad_ports++;
        return OBJECT_OK;
    }
    maker_set_address(m, sv_from(m->out->ip), number);
    maker_set(m, SV(CONTAINER "port_name"), object_string(port, "name"));
    maker_set_number(m, CONTAINER "port_number", number);
    maker_set(m, SV(CONTAINER "port_protocol"), object_string(port, "protocol"));
    return maker_add(m);
}

static enum object_status add_container(struct maker *m, const json_t *container,
                                        const json_t *statuses, bool init)
{
    maker_begin(m);
    set_container(m, container, statuses, init);
    const json_t *ports = json_object_get(container, "ports");
    size_t n = json_array_size(ports);
    if (n == 0) {
        maker_set_address(m, sv_from(m->out->ip), 0);
        return maker_add(m);
    }
    enum object_status status = OBJECT_OK;
    for (size_t i = 0; i < n && status == OBJECT_OK; i++) {
        status = add_port(m, json_array_get(ports, i));
    }
    return status;
}

static enum object_status add_containers(struct maker *m, const json_t *pod, const char *list,
                                         const char *statuses, bool init)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), list);
    const json_t *known = json_object_get(json_object_get(pod, "status"), statuses);
    enum object_status status = OBJECT_OK;
    for (size_t i = 0; i < json_array_size(containers) && status == OBJECT_OK; i++) {
        status = add_container(m, json_array_get(containers, i), known, init);
    }
    return status;
}

static enum object_status add_targets(struct maker *m, const json_t *pod)
{
    enum object_status status = add_containers(m, pod, "containers", "containerStatuses", false);
    if (status == OBJECT_OK) {
        status = add_containers(m, pod, "initContainers", "initContainerStatuses", true);
    }
    return status;
}

const char *pod_ip(const json_t *pod, size_t *ret_bad)
{
    struct sv text = object_string(json_object_get(pod, "status"), "podIP");
    bool ipv6;
    const char *ip = object_ip(text, &ipv6);
    *ret_bad = ip == NULL && text.n > 0 ? 1 : 0;
    return ip;
}

enum object_status pod_read(const json_t *pod, struct labels_builder *builder,
                            struct object_targets *ret)
{
    struct maker m;
    maker_init(&m, builder, ret);
    ret->ip = pod_ip(pod, &ret->bad_ip);
    if (ret->ip == NULL && !ret->keep_shared) {
        return OBJECT_OK;
    }
    set_pod_labels(&m, pod);
    enum object_status status = maker_share(&m);
    if (status == OBJECT_OK && ret->ip != NULL) {
        status = add_targets(&m, pod);
    }
    return maker_done(&m, status);
}

/* The targets of a pod, as in Prometheus' kubernetes_sd role "pod". Pure.
 *
 * It differs from Prometheus on purpose: an IPv6 address without port is bracketed; of two label
 * names that sanitising makes equal the one that sorts last wins (there: a random one); an address
 * that is not an IP address, and a port outside of 1-65535, are no target.
 */
#include "discovery/kubernetes/roles.h"

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

static const struct json_keep pod_keep[] = {
    OBJECT_KEEP, {"spec", spec_keep}, {"status", status_keep}, {NULL, NULL}};

static const struct maker_member status_labels[] = {
    {POD "ip", "podIP"}, {POD "host_ip", "hostIP"}, {POD "phase", "phase"}, {NULL, NULL}};
static const struct maker_member controller_labels[] = {
    {POD "controller_kind", "kind"}, {POD "controller_name", "name"}, {NULL, NULL}};
/* The restart policy is not Prometheus': it distinguishes a sidecar ("Always") from an init
 * container that has finished when the pod runs. */
static const struct maker_member container_labels[] = {
    {CONTAINER "name", "name"},
    {CONTAINER "image", "image"},
    {CONTAINER "restart_policy", "restartPolicy"},
    {NULL, NULL}};
static const struct maker_member port_labels[] = {
    {CONTAINER "port_name", "name"}, {CONTAINER "port_protocol", "protocol"}, {NULL, NULL}};

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

/* The first owner that is marked as the controller. */
static void set_controller(struct maker *m, const json_t *metadata)
{
    const json_t *owners = json_object_get(metadata, "ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *owner = json_array_get(owners, i);
        if (json_is_true(json_object_get(owner, "controller"))) {
            maker_set_strings(m, owner, controller_labels);
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
    maker_set_strings(m, status, status_labels);
    maker_set(m, SV(POD "node_name"), object_string(json_object_get(pod, "spec"), "nodeName"));
    set_ready(m, status);
    set_controller(m, metadata);
    maker_set_metadata(m, metadata, "pod");
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

static void set_address(struct maker *m, unsigned port)
{
    if (m->out->ip != NULL) {
        maker_set_address(m, sv_from(m->out->ip), port);
    }
}

static void add_port(struct maker *m, const json_t *port)
{
    unsigned number = maker_port(m, json_object_get(port, "containerPort"));
    if (number > 0) {
        set_address(m, number);
        maker_set_number(m, CONTAINER "port_number", number);
        maker_set_strings(m, port, port_labels);
        maker_add(m);
    }
}

static void add_container(struct maker *m, const json_t *container, const json_t *statuses,
                          bool init)
{
    maker_begin(m);
    maker_set_strings(m, container, container_labels);
    maker_set(m, SV(CONTAINER "id"), container_id(statuses, object_string(container, "name")));
    maker_set_text(m, CONTAINER "init", init ? "true" : "false");
    const json_t *ports = json_object_get(container, "ports");
    size_t n = json_array_size(ports);
    if (n == 0) {
        set_address(m, 0);
        maker_add(m);
    }
    for (size_t i = 0; i < n; i++) {
        add_port(m, json_array_get(ports, i));
    }
}

static void add_containers(struct maker *m, const json_t *pod, const char *list,
                           const char *statuses, bool init)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), list);
    const json_t *known = json_object_get(json_object_get(pod, "status"), statuses);
    for (size_t i = 0; i < json_array_size(containers); i++) {
        add_container(m, json_array_get(containers, i), known, init);
    }
}

static struct sv status_ip(const json_t *pod)
{
    return object_string(json_object_get(pod, "status"), "podIP");
}

const char *pod_ip(const json_t *pod)
{
    struct sv text = status_ip(pod);
    return object_is_ip(text) ? text.p : NULL;
}

static enum object_status read_pod(const json_t *pod, struct labels_builder *builder,
                                   struct object_targets *ret)
{
    struct maker m;
    maker_init(&m, builder, ret);
    ret->ip = pod_ip(pod);
    ret->bad_ip = ret->ip == NULL && status_ip(pod).n > 0 ? 1 : 0;
    if (ret->ip == NULL && !ret->keep_shared) {
        return OBJECT_OK;
    }
    set_pod_labels(&m, pod);
    maker_share(&m);
    if (ret->ip != NULL || ret->without_ip) {
        add_containers(&m, pod, "containers", "containerStatuses", false);
        add_containers(&m, pod, "initContainers", "initContainerStatuses", true);
    }
    return maker_done(&m);
}

const struct kube_role kube_pods = {
    .resource = {ROLE_POD, "", "pods", "Pod", true, pod_keep},
    .source = "pod",
    .read = read_pod,
    .join = {.node = POD "node_name", .drops_without_node = true},
};

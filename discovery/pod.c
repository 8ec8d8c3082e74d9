#include "discovery/pod.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define META "__meta_kubernetes_"
#define POD META "pod_"
#define CONTAINER POD "container_"

/* Members of the metadata, spec and status; then of containers, their statuses, conditions, owners.
 */
const struct json_omit pod_omit[] = {
    {2, "managedFields"},
    {2, "generateName"},
    {2, "creationTimestamp"},
    {2, "volumes"},
    {2, "tolerations"},
    {2, "affinity"},
    {2, "securityContext"},
    {2, "restartPolicy"},
    {2, "dnsPolicy"},
    {2, "serviceAccountName"},
    {2, "serviceAccount"},
    {2, "schedulerName"},
    {2, "terminationGracePeriodSeconds"},
    {2, "priority"},
    {2, "preemptionPolicy"},
    {2, "enableServiceLinks"},
    {2, "imagePullSecrets"},
    {2, "nodeSelector"},
    {2, "podIPs"},
    {2, "hostIPs"},
    {2, "startTime"},
    {2, "qosClass"},
    {2, "ephemeralContainers"},
    {2, "ephemeralContainerStatuses"},
    {4, "env"},
    {4, "envFrom"},
    {4, "volumeMounts"},
    {4, "resources"},
    {4, "livenessProbe"},
    {4, "readinessProbe"},
    {4, "startupProbe"},
    {4, "lifecycle"},
    {4, "args"},
    {4, "command"},
    {4, "securityContext"},
    {4, "imagePullPolicy"},
    {4, "terminationMessagePath"},
    {4, "terminationMessagePolicy"},
    {4, "state"},
    {4, "lastState"},
    {4, "imageID"},
    {4, "ready"},
    {4, "restartCount"},
    {4, "started"},
    {4, "lastProbeTime"},
    {4, "lastTransitionTime"},
    {4, "uid"},
    {4, "blockOwnerDeletion"},
};
const size_t pod_omit_count = sizeof(pod_omit) / sizeof(pod_omit[0]);

/* ---- reading -------------------------------------------------------------------------------- */

/* A string member, or an empty view. */
static struct sv get_string(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);
    if (!json_is_string(v)) {
        return SV("");
    }
    return (struct sv){.p = json_string_value(v), .n = json_string_length(v)};
}

/* A little wider than DNS names: the point is that the names can stand in a path and a log. */
static bool is_name(struct sv v, size_t max)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '_') {
            return false;
        }
    }
    return v.n > 0 && v.n <= max;
}

bool pod_identify(const json_t *object, struct pod_id *ret)
{
    /* The items of a list have no kind. */
    const json_t *kind = json_object_get(object, "kind");
    if (kind != NULL && (!json_is_string(kind) || strcmp(json_string_value(kind), "Pod") != 0)) {
        return false;
    }
    const json_t *metadata = json_object_get(object, "metadata");
    struct pod_id id = {
        .namespace = get_string(metadata, "namespace"),
        .name = get_string(metadata, "name"),
        .uid = get_string(metadata, "uid"),
    };
    if (!is_name(id.namespace, POD_NAMESPACE_MAX) || !is_name(id.name, POD_NAME_MAX)) {
        return false;
    }
    *ret = id;
    return true;
}

/* ---- making label sets ----------------------------------------------------------------------- */

/* What a pod's targets are made with. */
struct maker {
    struct labels_builder *b;
    struct labels *shared; /* what all targets of the pod have */
    struct pod_targets *out;
    bool ipv6;
    size_t bytes; /* set so far */
    size_t shared_bytes;
    bool over; /* the builder failed at one of its limits, not for want of memory */
};

static void set(struct maker *m, struct sv name, struct sv value)
{
    if (!labels_builder_ok(m->b)) {
        return;
    }
    labels_builder_set(m->b, name, value);
    m->bytes += name.n + value.n;
    if (!labels_builder_ok(m->b)) {
        m->over = m->bytes > LABELS_BYTES_MAX || labels_builder_count(m->b) >= LABELS_MAX;
    }
}

static void set_text(struct maker *m, const char *name, const char *value)
{
    set(m, sv_from(name), sv_from(value));
}

/* Why there is no label set. */
static enum pod_status failure(const struct maker *m)
{
    return !labels_builder_ok(m->b) && m->over ? POD_TOO_MANY_LABELS : POD_NO_MEMORY;
}

/* ---- the pod's own labels ------------------------------------------------------------------- */

/* Appends a name with every character outside of [a-zA-Z0-9_] as one underscore (Prometheus'
 * SanitizeLabelName): of a character of several bytes the first alone counts. */
static void sanitize(struct sv name, struct buf *out)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (letter || (c >= '0' && c <= '9')) {
            buf_putc(out, (char)c);
        } else if ((c & 0xc0) != 0x80) {
            buf_putc(out, '_');
        }
    }
}

struct member {
    struct sv name;
    struct sv value;
};

static int compare_members(const void *a, const void *b)
{
    return sv_cmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

/* The string members of an object in order of names; *ret_n of them, the caller frees. NULL with
 * *ret_n 0 if there are none, NULL with *ret_n > 0 if out of memory. */
static struct member *sorted_members(const json_t *object, size_t *ret_n)
{
    *ret_n = 0;
    size_t size = json_object_size(object);
    if (size == 0) {
        return NULL;
    }
    struct member *members = calloc(size, sizeof(*members));
    if (members == NULL) {
        *ret_n = size;
        return NULL;
    }
    size_t n = 0;
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        const json_t *v = json_object_iter_value(it);
        if (json_is_string(v)) {
            members[n] = (struct member){
                .name = {.p = json_object_iter_key(it), .n = json_object_iter_key_len(it)},
                .value = {.p = json_string_value(v), .n = json_string_length(v)},
            };
            n++;
        }
    }
    qsort(members, n, sizeof(*members), compare_members);
    *ret_n = n;
    return members;
}

/* Sets <prefix>_<name> = value and <prefix>present_<name> = "true" for each member. */
static bool set_members(struct maker *m, const json_t *object, const char *prefix)
{
    size_t n;
    struct member *members = sorted_members(object, &n);
    if (members == NULL) {
        return n == 0;
    }
    struct buf name;
    buf_init(&name, LABELS_BYTES_MAX);
    bool ok = true;
    for (size_t i = 0; i < n && ok && labels_builder_ok(m->b); i++) {
        buf_clear(&name);
        buf_printf(&name, "%s_", prefix);
        sanitize(members[i].name, &name);
        set(m, (struct sv){name.data, name.len}, members[i].value);
        buf_clear(&name);
        buf_printf(&name, "%spresent_", prefix);
        sanitize(members[i].name, &name);
        ok = buf_ok(&name) || buf_too_big(&name);
        set(m, (struct sv){name.data, name.len}, SV("true"));
    }
    buf_done(&name);
    free(members);
    return ok;
}

static void lower(struct sv v, char *out, size_t size)
{
    size_t n = v.n < size - 1 ? v.n : size - 1;
    for (size_t i = 0; i < n; i++) {
        char c = v.p[i];
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    out[n] = '\0';
}

static void set_ready(struct maker *m, const json_t *status)
{
    char ready[16] = "unknown";
    const json_t *conditions = json_object_get(status, "conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *condition = json_array_get(conditions, i);
        if (sv_eq_str(get_string(condition, "type"), "Ready")) {
            lower(get_string(condition, "status"), ready, sizeof(ready));
            break;
        }
    }
    set_text(m, POD "ready", ready);
}

/* The first owner that says it is the controller. */
static void set_controller(struct maker *m, const json_t *metadata)
{
    const json_t *owners = json_object_get(metadata, "ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *owner = json_array_get(owners, i);
        if (json_is_true(json_object_get(owner, "controller"))) {
            set(m, SV(POD "controller_kind"), get_string(owner, "kind"));
            set(m, SV(POD "controller_name"), get_string(owner, "name"));
            return;
        }
    }
}

/* The labels that all targets of the pod share. False if out of memory. */
static bool set_pod_labels(struct maker *m, const json_t *pod)
{
    const json_t *metadata = json_object_get(pod, "metadata");
    const json_t *spec = json_object_get(pod, "spec");
    const json_t *status = json_object_get(pod, "status");
    set(m, SV(META "namespace"), get_string(metadata, "namespace"));
    set(m, SV(POD "name"), get_string(metadata, "name"));
    set(m, SV(POD "uid"), get_string(metadata, "uid"));
    set(m, SV(POD "ip"), get_string(status, "podIP"));
    set(m, SV(POD "host_ip"), get_string(status, "hostIP"));
    set(m, SV(POD "phase"), get_string(status, "phase"));
    set(m, SV(POD "node_name"), get_string(spec, "nodeName"));
    set_ready(m, status);
    set_controller(m, metadata);
    return set_members(m, json_object_get(metadata, "labels"), POD "label") &&
           set_members(m, json_object_get(metadata, "annotations"), POD "annotation");
}

/* ---- targets -------------------------------------------------------------------------------- */

void pod_targets_init(struct pod_targets *t)
{
    *t = (struct pod_targets){0};
}

void pod_targets_clear(struct pod_targets *t)
{
    for (size_t i = 0; i < t->n; i++) {
        labels_unref(t->at[i]);
    }
    *t = (struct pod_targets){.at = t->at, .cap = t->cap};
}

void pod_targets_done(struct pod_targets *t)
{
    pod_targets_clear(t);
    free(t->at);
    pod_targets_init(t);
}

static bool make_room(struct pod_targets *t)
{
    if (t->n < t->cap) {
        return true;
    }
    size_t cap = t->cap == 0 ? 8 : 2 * t->cap;
    struct labels **at = realloc(t->at, cap * sizeof(struct labels *));
    if (at == NULL) {
        return false;
    }
    t->at = at;
    t->cap = cap;
    return true;
}

/* Adds what the builder holds as one more target. */
static enum pod_status add_target(struct maker *m)
{
    if (!make_room(m->out)) {
        return POD_NO_MEMORY;
    }
    struct labels *labels = labels_builder_build(m->b);
    if (labels == NULL) {
        return failure(m);
    }
    m->out->at[m->out->n++] = labels;
    return POD_OK;
}

static struct sv container_id(const json_t *statuses, struct sv name)
{
    for (size_t i = 0; i < json_array_size(statuses); i++) {
        const json_t *status = json_array_get(statuses, i);
        if (sv_eq(get_string(status, "name"), name)) {
            return get_string(status, "containerID");
        }
    }
    return SV("");
}

static void set_container(struct maker *m, const json_t *container, const json_t *statuses,
                          bool init)
{
    struct sv name = get_string(container, "name");
    set(m, SV(CONTAINER "name"), name);
    set(m, SV(CONTAINER "image"), get_string(container, "image"));
    set(m, SV(CONTAINER "id"), container_id(statuses, name));
    set_text(m, CONTAINER "init", init ? "true" : "false");
}

/* port 0: none. */
static bool set_address(struct maker *m, unsigned port)
{
    char address[INET6_ADDRSTRLEN + sizeof("[]:65535")];
    const char *open = m->ipv6 ? "[" : "";
    const char *close = m->ipv6 ? "]" : "";
    int n = port == 0
                ? snprintf(address, sizeof(address), "%s%s%s", open, m->out->ip, close)
                : snprintf(address, sizeof(address), "%s%s%s:%u", open, m->out->ip, close, port);
    if (n < 0 || (size_t)n >= sizeof(address)) {
        return false;
    }
    set_text(m, LABEL_ADDRESS, address);
    return true;
}

static enum pod_status add_port(struct maker *m, const json_t *port)
{
    const json_t *number = json_object_get(port, "containerPort");
    json_int_t n = json_is_integer(number) ? json_integer_value(number) : 0;
    if (n < 1 || n > 65535 || !set_address(m, (unsigned)n)) {
        m->out->bad_ports++;
        return POD_OK;
    }
    char text[8];
    snprintf(text, sizeof(text), "%u", (unsigned)n);
    set(m, SV(CONTAINER "port_name"), get_string(port, "name"));
    set_text(m, CONTAINER "port_number", text);
    set(m, SV(CONTAINER "port_protocol"), get_string(port, "protocol"));
    return add_target(m);
}

static enum pod_status add_container(struct maker *m, const json_t *container,
                                     const json_t *statuses, bool init)
{
    labels_builder_reset(m->b, m->shared);
    m->bytes = m->shared_bytes;
    set_container(m, container, statuses, init);
    const json_t *ports = json_object_get(container, "ports");
    size_t n = json_array_size(ports);
    if (n == 0) {
        if (m->out->n >= POD_TARGETS_MAX) {
            m->out->too_many_targets++;
            return POD_OK;
        }
        set_address(m, 0);
        return add_target(m);
    }
    enum pod_status status = POD_OK;
    for (size_t i = 0; i < n && status == POD_OK; i++) {
        if (m->out->n >= POD_TARGETS_MAX) {
            m->out->too_many_targets += n - i;
            break;
        }
        status = add_port(m, json_array_get(ports, i));
    }
    return status;
}

static enum pod_status add_containers(struct maker *m, const json_t *pod, const char *list,
                                      const char *statuses, bool init)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), list);
    const json_t *known = json_object_get(json_object_get(pod, "status"), statuses);
    enum pod_status status = POD_OK;
    for (size_t i = 0; i < json_array_size(containers) && status == POD_OK; i++) {
        status = add_container(m, json_array_get(containers, i), known, init);
    }
    return status;
}

/* The pod's address, if it has one that is an IP address. */
static const char *pod_ip(const json_t *pod, bool *ret_ipv6, size_t *bad)
{
    struct sv ip = get_string(json_object_get(pod, "status"), "podIP");
    struct in6_addr address;
    if (ip.n == 0) {
        return NULL;
    }
    /* An IP address has no NUL in it; inet_pton() would not see what is behind one. */
    if (memchr(ip.p, '\0', ip.n) == NULL) {
        if (inet_pton(AF_INET, ip.p, &address) == 1) {
            *ret_ipv6 = false;
            return ip.p;
        }
        if (inet_pton(AF_INET6, ip.p, &address) == 1) {
            *ret_ipv6 = true;
            return ip.p;
        }
    }
    *bad = 1;
    return NULL;
}

static enum pod_status add_targets(struct maker *m, const json_t *pod)
{
    enum pod_status status = add_containers(m, pod, "containers", "containerStatuses", false);
    if (status == POD_OK) {
        status = add_containers(m, pod, "initContainers", "initContainerStatuses", true);
    }
    return status;
}

static void forget_targets(struct pod_targets *t)
{
    for (size_t i = 0; i < t->n; i++) {
        labels_unref(t->at[i]);
    }
    t->n = 0;
}

enum pod_status pod_read(const json_t *pod, struct labels_builder *builder, struct pod_targets *ret)
{
    pod_targets_clear(ret);
    struct maker m = {.b = builder, .out = ret};
    ret->ip = pod_ip(pod, &m.ipv6, &ret->bad_ip);
    if (ret->ip == NULL) {
        return POD_OK;
    }
    labels_builder_reset(builder, NULL);
    if (!set_pod_labels(&m, pod)) {
        return POD_NO_MEMORY;
    }
    m.shared = labels_builder_build(builder);
    if (m.shared == NULL) {
        return failure(&m);
    }
    m.shared_bytes = m.bytes;
    enum pod_status status = add_targets(&m, pod);
    labels_unref(m.shared);
    if (status != POD_OK) {
        forget_targets(ret);
    }
    return status;
}

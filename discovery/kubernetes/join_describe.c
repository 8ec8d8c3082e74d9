#include <string.h>

#include "discovery/kubernetes/join_private.h"

#define CONTAINER META "pod_container_"

/* ---- names of joined objects ----------------------------------------------------------------- */

static struct sv get(const struct labels *labels, const char *name)
{
    return name == NULL ? SV("") : labels_get(labels, sv_from(name));
}

/* Returns the name of the object that a target refers to if it is of that kind; otherwise "". */
static struct sv get_ref(const struct join *j, const struct labels *target, const char *kind)
{
    const struct kube_join_labels *names = j->options.labels;
    return sv_eq_str(get(target, names->ref_kind), kind) ? get(target, names->ref_name) : SV("");
}

struct sv join_node_of(const struct join *j, const struct labels *target)
{
    if (!j->options.uses[JOIN_NODE]) {
        return SV("");
    }
    struct sv node = get(target, j->options.labels->node);
    struct sv ref = get_ref(j, target, "Node");
    bool use_ref = ref.n > 0 && (node.n == 0 || j->options.labels->prefers_ref_node);
    return use_ref ? ref : node;
}

struct sv join_pod_of(const struct join *j, const struct primary *p, const struct labels *target,
                      struct sv *ret_namespace)
{
    struct sv own = join_namespace_of(p);
    struct sv given = labels_get(target, SV(KUBE_REF_NAMESPACE));
    *ret_namespace = given.n == 0 ? own : given;
    if (!j->options.uses[JOIN_POD] || (!j->options.everywhere && !sv_eq(*ret_namespace, own))) {
        return SV("");
    }
    return get_ref(j, target, "Pod");
}

struct sv join_service_of(const struct join *j, const struct labels *shared)
{
    return j->options.uses[JOIN_SERVICE] ? get(shared, j->options.labels->service) : SV("");
}

struct sv join_namespace_of(const struct primary *p)
{
    struct sv namespace = SV("");
    struct sv name;
    (void)sv_cut(sv_from(p->key), '/', &namespace, &name);
    return namespace;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* The facts that all targets of a primary share; NULL if not known. */
struct common {
    const struct fact *namespace;
    const struct fact *service;
};

static unsigned port_of(const struct labels *t)
{
    struct sv host;
    uint16_t port = 0;
    return split_host_port(labels_get(t, SV(LABEL_ADDRESS)), &host, &port, NULL) ? port : 0;
}

static void set_common(struct maker *m, const struct common *c)
{
    if (c->namespace != NULL) {
        maker_set_labels(m, c->namespace->labels);
    }
    if (c->service != NULL) {
        maker_set_labels(m, c->service->labels);
    }
}

/* Finds the container that declares a port: the last such container, and its first such port. */
static const struct fact_port *find_container(const struct fact *pod, unsigned number)
{
    const struct fact_port *found = NULL;
    for (size_t i = 0; i < pod->n_ports; i++) {
        const struct fact_port *port = &pod->ports[i];
        bool same = found != NULL && sv_eq(labels_get(found->labels, SV(CONTAINER "name")),
                                           labels_get(port->labels, SV(CONTAINER "name")));
        if (port->number == number && !same) {
            found = port;
        }
    }
    return found;
}

/* Notes which ports of the pod have an endpoint. */
static void cover_port(const struct join *j, struct fact *pod, unsigned number)
{
    for (size_t i = 0; i < pod->n_ports; i++) {
        struct fact_port *port = &pod->ports[i];
        port->covered = (pod->seen == j->descriptions && port->covered) || port->number == number;
    }
    pod->seen = j->descriptions;
}

static void set_pod(const struct join *j, struct maker *m, struct fact *pod,
                    const struct labels *target)
{
    static const char *const copied[] = {
        CONTAINER "name",      CONTAINER "image",       CONTAINER "init",
        CONTAINER "port_name", CONTAINER "port_number", CONTAINER "port_protocol",
    };
    unsigned number = port_of(target);
    cover_port(j, pod, number);
    maker_set_labels(m, pod->labels);
    const struct fact_port *port = find_container(pod, number);
    if (port == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
        maker_set(m, sv_from(copied[i]), get(port->labels, copied[i]));
    }
    if (j->options.labels->protocol != NULL) {
        maker_set(m, SV(CONTAINER "port_protocol"), get(target, j->options.labels->protocol));
    }
}

static bool is_too_large(const struct fact *f)
{
    return f != NULL && f->too_many_labels;
}

/* Adds the target in the maker, which leaves it out if it has too many labels. */
static void finish_target(struct join *j, struct maker *m, struct sv pod)
{
    size_t before = m->out->too_many_labels;
    maker_add(m);
    if (before == 0 && m->out->too_many_labels > 0) {
        j->left_out = pod;
    }
}

static void describe_target(struct join *j, struct maker *m, const struct primary *p,
                            const struct common *c, const struct labels *target)
{
    struct sv namespace;
    struct sv name = join_pod_of(j, p, target, &namespace);
    struct fact *node = join_find(j, JOIN_NODE, SV(""), join_node_of(j, target));
    struct fact *pod = join_find(j, JOIN_POD, namespace, name);
    if (node == NULL && j->options.labels->drops_without_node && j->options.uses[JOIN_NODE]) {
        return; /* the node is not known, or a selector excludes it */
    }
    if (is_too_large(c->namespace) || is_too_large(c->service) || is_too_large(node) ||
        is_too_large(pod)) {
        /* A pod with too many labels has no known labels, so the target is left out. */
        j->left_out = j->scratch.too_many_labels == 0 && is_too_large(pod) ? name : j->left_out;
        j->scratch.too_many_labels++;
        return;
    }
    maker_begin(m);
    maker_set_labels(m, target);
    maker_set(m, SV(KUBE_REF_NAMESPACE), SV(""));
    set_common(m, c);
    if (node != NULL) {
        maker_set_labels(m, node->labels);
    }
    if (pod != NULL) {
        set_pod(j, m, pod, target);
    }
    finish_target(j, m, name);
}

/* Adds targets for the ports of pods that have no endpoint, such as that of a sidecar. A pod
 * without an address gets none. */
static void describe_uncovered(struct join *j, struct maker *m, const struct primary *p,
                               const struct common *c, const struct fact *pod)
{
    for (size_t i = 0; i < pod->n_ports; i++) {
        const struct labels *port = pod->ports[i].labels;
        if (pod->seen == j->descriptions && !pod->ports[i].covered &&
            labels_get(port, SV(LABEL_ADDRESS)).n > 0) {
            maker_begin(m);
            maker_set_labels(m, p->shared);
            maker_set_labels(m, port);
            maker_set(m, SV(CONTAINER "id"), SV(""));
            set_common(m, c);
            finish_target(j, m, labels_get(port, SV(META "pod_name")));
        }
    }
}

/* Returns true for a slice of a dual-stack service that is not of the service's first family, as
 * Prometheus' nonPrimaryIPFamilySlice() does: it has the same endpoints as the slices of that
 * family. A slice of addressType FQDN is of no family. Other roles have no address type. */
static bool is_secondary(const struct primary *p, const struct common *c)
{
    if (c->service == NULL || c->service->family == 0) {
        return false;
    }
    struct sv type = labels_get(p->shared, SV(META "endpointslice_address_type"));
    return type.n > 0 && !sv_eq_str(type, c->service->family == '4' ? "IPv4" : "IPv6");
}

enum object_status join_describe(struct join *j, const struct primary *p)
{
    struct sv namespace = join_namespace_of(p);
    struct common c = {
        .namespace = j->options.uses[JOIN_NAMESPACE]
                         ? join_find(j, JOIN_NAMESPACE, SV(""), namespace)
                         : NULL,
        .service = join_find(j, JOIN_SERVICE, namespace, join_service_of(j, p->shared)),
    };
    struct maker m;
    maker_init(&m, j->builder, &j->scratch);
    j->descriptions++;
    j->left_out = SV("");
    if (is_secondary(p, &c)) {
        return OBJECT_OK;
    }
    for (size_t i = 0; i < p->n; i++) {
        describe_target(j, &m, p, &c, p->targets[i]);
    }
    for (const struct link *l = STAILQ_FIRST(&p->links); l != NULL;
         l = STAILQ_NEXT(l, of_primary)) {
        if (l->fact->kind == JOIN_POD) {
            describe_uncovered(j, &m, p, &c, l->fact);
        }
    }
    return maker_done(&m);
}

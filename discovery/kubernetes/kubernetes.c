#include "discovery/kubernetes/kubernetes.h"

#include <stdlib.h>
#include <string.h>

#include "discovery/discovery.h"
#include "discovery/kubernetes/join.h"
#include "discovery/kubernetes/roles/endpoints.h"
#include "discovery/kubernetes/roles/ingress.h"
#include "discovery/kubernetes/roles/node.h"
#include "discovery/kubernetes/roles/pod.h"
#include "discovery/kubernetes/roles/service.h"
#include "discovery/kubernetes/store.h"
#include "http/url.h"

#define SELECTORS_MAX ((size_t)300 * 1024)
/* Targets of one Endpoints object or slice. */
#define ENDPOINTS_TARGETS_MAX 10000

typedef enum object_status read_fn(const json_t *object, struct labels_builder *builder,
                                   struct object_targets *ret);

struct role {
    const char *name;
    const char *source; /* what names of groups begin with */
    enum kube_resource resource;
    read_fn *read;
    enum join_role join;
    bool endpoints; /* services and pods are joined */
    size_t targets_max;
};

static const struct role roles[] = {
    {"pod", "pod", RESOURCE_PODS, pod_read, JOIN_ROLE_POD, false, OBJECT_TARGETS_MAX},
    {"node", "node", RESOURCE_NODES, node_read, JOIN_ROLE_OTHER, false, OBJECT_TARGETS_MAX},
    {"service", "svc", RESOURCE_SERVICES, service_read, JOIN_ROLE_OTHER, false, OBJECT_TARGETS_MAX},
    {"ingress", "ingress", RESOURCE_INGRESSES, ingress_read, JOIN_ROLE_OTHER, false,
     OBJECT_TARGETS_MAX},
    {"endpoints", "endpoints", RESOURCE_ENDPOINTS, endpoints_read, JOIN_ROLE_ENDPOINTS, true,
     ENDPOINTS_TARGETS_MAX},
    {"endpointslice", "endpointslice", RESOURCE_SLICES, slice_read, JOIN_ROLE_SLICE, true,
     ENDPOINTS_TARGETS_MAX},
};

/* What the source wants of one reflector: its own objects, or what is joined to them. */
struct part {
    struct kubernetes *k;
    struct reflector_listener listener;
    struct reflector *reflector;
    struct store *store; /* of a primary to which nothing is joined */
    const char *namespace;
    unsigned list;       /* its number in the join */
    enum join_kind kind; /* what its objects contribute, unless primary */
    enum kube_resource resource;
    bool primary; /* the role's own objects */
    bool synced;
    bool told_full;
};

struct kubernetes {
    struct kubernetes_options options;
    const struct role *role;
    struct labels_builder *builder;
    struct object_targets targets; /* scratch */
    struct wanted *wanted;         /* NULL: every label */
    struct join *join;             /* NULL if nothing is joined */
    struct part *parts;
    size_t n_parts;
    size_t n_synced;
    size_t left; /* as told by on_left */
    size_t awaited;
};

/* ---- what is told ---------------------------------------------------------------------------- */

/* Pods to which nothing is joined: all targets of one have its address. */
static bool is_plain_pods(const struct kubernetes *k)
{
    return k->role->join == JOIN_ROLE_POD && k->join == NULL;
}

static void on_change(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved)
{
    struct kubernetes *k = arg;
    char source[OBJECT_KEY_MAX + 32];
    snprintf(source, sizeof(source), "%s/%s", k->role->source, key);
    struct target_group group = {
        .source = source,
        .kind = is_plain_pods(k) ? GROUP_POD : GROUP_OBJECT,
        .targets = targets,
        .n_targets = n,
        .pinned_host = ip,
        .moved = moved,
    };
    k->options.on_change(k->options.arg, &group);
}

static void tell_full(struct part *p)
{
    metric_inc(p->k->options.reflectors->env.counters->skips[SKIP_TOO_MANY_OBJECTS]);
    if (!p->told_full) {
        p->told_full = true;
        log_warn(p->k->options.reflectors->env.log,
                 "kubernetes: too many objects, ignoring new ones (use namespaces or selectors)",
                 LOG_STR("role", p->k->role->name),
                 LOG_STR("namespace", p->namespace == NULL ? "all" : p->namespace),
                 LOG_INT("limit", DISCOVERY_OBJECTS_MAX));
    }
}

static enum reflector_result result_of(struct part *p, enum store_result result)
{
    if (result == STORE_FULL) {
        tell_full(p);
    }
    return result == STORE_NO_MEMORY ? REFLECTOR_NO_MEMORY
           : result == STORE_CHANGED ? REFLECTOR_CHANGED
                                     : REFLECTOR_UNCHANGED;
}

static void count_left_out(struct kubernetes *k)
{
    const struct discovery_counters *c = k->options.reflectors->env.counters;
    metric_add(c->skips[SKIP_BAD_IP], k->targets.bad_ip);
    metric_add(c->target_skips[TARGET_BAD_PORT], k->targets.bad_ports);
    metric_add(c->target_skips[TARGET_TOO_MANY], k->targets.too_many_targets);
}

/* ---- the pods of others ---------------------------------------------------------------------- */

/* Owners are found by the address of a pod alone, so that they are known before its labels. */
static bool is_shared(const struct kubernetes *k)
{
    return k->options.sharing != NULL && is_plain_pods(k);
}

/* Whether a pod is left to another replica; its key, or 0 if that cannot be told. */
static bool is_elsewhere(const struct kubernetes *k, const json_t *object, uint64_t *ret_key)
{
    *ret_key = 0;
    if (!is_shared(k)) {
        return false;
    }
    const struct discovery_sharing *sharing = k->options.sharing;
    size_t bad;
    const char *ip = pod_ip(object, &bad);
    *ret_key = ip == NULL ? 0 : sharing->key(sharing->arg, ip);
    return *ret_key != 0 && !sharing->claims(sharing->arg, *ret_key);
}

size_t kubernetes_left(const struct kubernetes *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->n_parts; i++) {
        n += k->parts[i].store == NULL ? 0 : store_left(k->parts[i].store);
    }
    return n;
}

size_t kubernetes_awaited(const struct kubernetes *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->n_parts; i++) {
        n += k->parts[i].store == NULL ? 0 : store_awaited(k->parts[i].store);
    }
    return n;
}

static void check_left(struct kubernetes *k)
{
    if (!is_shared(k)) {
        return;
    }
    size_t left = kubernetes_left(k);
    size_t awaited = kubernetes_awaited(k);
    if (left != k->left || awaited != k->awaited) {
        k->left = left;
        k->awaited = awaited;
        k->options.on_left(k->options.arg);
    }
}

void kubernetes_review(struct kubernetes *k, int64_t within_ms)
{
    const struct discovery_sharing *sharing = k->options.sharing;
    if (!is_shared(k)) {
        return;
    }
    for (size_t i = 0; i < k->n_parts; i++) {
        const struct part *p = &k->parts[i];
        store_review(p->store, sharing->claims, sharing->arg);
        if (store_awaited(p->store) > 0) {
            reflector_relist(p->reflector, within_ms);
        }
    }
    check_left(k);
}

/* ---- the role's own objects ------------------------------------------------------------------ */

static enum store_result put_primary(struct part *p, const struct object_id *id,
                                     const json_t *object)
{
    struct kubernetes *k = p->k;
    uint64_t key;
    if (is_elsewhere(k, object, &key)) {
        return store_leave(p->store, id, key);
    }
    enum object_status status = k->role->read(object, k->builder, &k->targets);
    count_left_out(k);
    if (status == OBJECT_NO_MEMORY) {
        return STORE_NO_MEMORY;
    }
    if (status == OBJECT_TOO_MANY_LABELS) {
        /* It cannot be described any more: what it was described as is out of date. */
        metric_inc(k->options.reflectors->env.counters->skips[SKIP_TOO_MANY_LABELS]);
    }
    k->targets.key = key;
    return k->join == NULL ? store_put(p->store, id, &k->targets)
                           : join_put(k->join, p->list, id, &k->targets);
}

static enum store_result remove_primary(struct part *p, const struct object_id *id)
{
    return p->k->join == NULL ? store_remove(p->store, id) : join_remove(p->k->join, id);
}

/* ---- what is joined to them ------------------------------------------------------------------ */

/* The family that stands for a dual-stack service: its first one. */
static char first_family(const json_t *service)
{
    const json_t *spec = json_object_get(service, "spec");
    struct sv policy = object_string(spec, "ipFamilyPolicy");
    if (!sv_eq_str(policy, "PreferDualStack") && !sv_eq_str(policy, "RequireDualStack")) {
        return 0;
    }
    const json_t *first = json_array_get(json_object_get(spec, "ipFamilies"), 0);
    const char *family = json_is_string(first) ? json_string_value(first) : "";
    return strcmp(family, "IPv4") == 0 ? '4' : strcmp(family, "IPv6") == 0 ? '6' : (char)0;
}

static enum object_status read_fact(struct kubernetes *k, enum join_kind kind, const json_t *object,
                                    struct join_fact *ret)
{
    const json_t *metadata = json_object_get(object, "metadata");
    struct maker m;
    if (kind == JOIN_POD) {
        enum object_status status = pod_read(object, k->builder, &k->targets);
        ret->pods = &k->targets;
        return status;
    }
    maker_init(&m, k->builder, &k->targets);
    if (kind == JOIN_NAMESPACE) {
        maker_set_marks(&m, metadata, "namespace");
    } else {
        maker_set_meta(&m, metadata, kind == JOIN_NODE ? "node" : "service");
    }
    ret->family = kind == JOIN_SERVICE ? first_family(object) : (char)0;
    return maker_done(&m, maker_share(&m));
}

static enum store_result put_fact(struct part *p, const struct object_id *id, const json_t *object)
{
    struct kubernetes *k = p->k;
    struct join_fact fact = {.kind = p->kind};
    enum object_status status = read_fact(k, p->kind, object, &fact);
    if (status == OBJECT_NO_MEMORY) {
        return STORE_NO_MEMORY;
    }
    if (status == OBJECT_TOO_MANY_LABELS) {
        metric_inc(k->options.reflectors->env.counters->skips[SKIP_TOO_MANY_LABELS]);
        return join_fact_remove(k->join, p->kind, id);
    }
    fact.labels = k->targets.shared;
    return join_fact_put(k->join, p->list, id, &fact);
}

/* ---- listening ------------------------------------------------------------------------------- */

static enum reflector_result on_object(void *arg, enum reflector_event event,
                                       const struct object_id *id, const json_t *object)
{
    struct part *p = arg;
    enum store_result result;
    if (event == OBJECT_GONE) {
        result = p->primary ? remove_primary(p, id) : join_fact_remove(p->k->join, p->kind, id);
    } else {
        result = p->primary ? put_primary(p, id, object) : put_fact(p, id, object);
    }
    object_targets_clear(&p->k->targets);
    check_left(p->k);
    return result_of(p, result);
}

static void on_list_begin(void *arg)
{
    struct part *p = arg;
    if (p->k->join == NULL) {
        store_list_begin(p->store);
    } else {
        join_list_begin(p->k->join, p->list);
    }
}

static void on_list_end(void *arg)
{
    struct part *p = arg;
    struct kubernetes *k = p->k;
    if (k->join == NULL) {
        store_list_end(p->store);
        check_left(k);
    } else {
        join_list_end(k->join, p->list);
    }
    if (p->synced) {
        return;
    }
    p->synced = true;
    if (++k->n_synced < k->n_parts) {
        return;
    }
    if (k->join != NULL && !join_ready(k->join)) {
        metric_inc(k->options.reflectors->env.counters->skips[SKIP_MEMORY]);
    }
    k->options.on_synced(k->options.arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool append_selector(struct buf *out, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0') {
        return true;
    }
    buf_printf(out, "%s%s=", out->len == 0 ? "" : "&", name);
    return url_encode(sv_from(value), out);
}

/* The selectors of one resource. */
static bool make_selectors(const struct config_kubernetes *config, enum kube_resource resource,
                           struct buf *out)
{
    static const enum config_role selected[RESOURCE_COUNT] = {
        [RESOURCE_PODS] = ROLE_POD,
        [RESOURCE_NODES] = ROLE_NODE,
        [RESOURCE_NAMESPACES] = ROLE_NONE,
        [RESOURCE_SERVICES] = ROLE_SERVICE,
        [RESOURCE_ENDPOINTS] = ROLE_ENDPOINTS,
        [RESOURCE_SLICES] = ROLE_ENDPOINTSLICE,
        [RESOURCE_INGRESSES] = ROLE_INGRESS,
    };
    for (size_t i = 0; i < config->n_selectors; i++) {
        if (config->selectors[i].role == selected[resource] &&
            !(append_selector(out, "labelSelector", config->selectors[i].label) &&
              append_selector(out, "fieldSelector", config->selectors[i].field))) {
            return false;
        }
    }
    return buf_ok(out);
}

static bool listen(struct part *p)
{
    struct kubernetes *k = p->k;
    struct buf selectors;
    buf_init(&selectors, SELECTORS_MAX);
    struct reflector *r = NULL;
    if (make_selectors(k->options.config, p->resource, &selectors)) {
        r = reflectors_get(k->options.reflectors, &(struct reflector_options){
                                                      .resource = p->resource,
                                                      .access = k->options.access,
                                                      .namespace = p->namespace,
                                                      .selectors = selectors.data,
                                                      .server_id = k->options.server_id,
                                                  });
    }
    buf_done(&selectors);
    if (r == NULL) {
        return false;
    }
    p->listener = (struct reflector_listener){
        .list_begin = on_list_begin, .list_end = on_list_end, .object = on_object, .arg = p};
    p->reflector = r;
    reflector_listen(r, &p->listener);
    return true;
}

/* Listens to a resource in one namespace, or everywhere, unless it does already. There is room. */
static bool add_part(struct kubernetes *k, const struct part *wanted, const char *namespace)
{
    for (size_t i = 0; i < k->n_parts; i++) {
        const char *other = k->parts[i].namespace;
        if (k->parts[i].resource == wanted->resource && (other == NULL) == (namespace == NULL) &&
            (namespace == NULL || strcmp(other, namespace) == 0)) {
            return true;
        }
    }
    struct part *p = &k->parts[k->n_parts];
    *p = *wanted;
    p->k = k;
    p->list = (unsigned)k->n_parts++;
    p->namespace = namespace;
    if (k->join == NULL) {
        p->store = store_new(&(struct store_options){
            .max = DISCOVERY_OBJECTS_MAX, .on_change = on_change, .arg = k});
        if (p->store == NULL) {
            return false;
        }
    }
    return listen(p);
}

/* What is not in namespaces is read everywhere. */
static bool add_parts(struct kubernetes *k, const struct part *wanted)
{
    const struct config_kubernetes *config = k->options.config;
    if (!kube_resource_namespaced(wanted->resource) ||
        (config->namespaces.n == 0 && !config->own_namespace)) {
        return add_part(k, wanted, NULL);
    }
    bool ok = true;
    for (size_t i = 0; i < config->namespaces.n && ok; i++) {
        ok = add_part(k, wanted, config->namespaces.at[i]);
    }
    return ok && (!config->own_namespace || add_part(k, wanted, k->options.access.namespace));
}

static bool asks(void *arg, struct sv name)
{
    const struct kubernetes *k = arg;
    return (k->join != NULL && sv_eq(name, SV(JOIN_SERVICE_LABEL))) ||
           k->options.wants_label(k->options.arg, name);
}

static bool init_wanted(struct kubernetes *k)
{
    if (k->options.wants_label == NULL) {
        return true;
    }
    k->wanted =
        wanted_new(&(struct wanted_options){.asks = asks, .arg = k, .marks_only = k->join != NULL});
    k->targets.wanted = k->wanted;
    return k->wanted != NULL;
}

static bool init_join(struct kubernetes *k)
{
    const struct config_kubernetes *config = k->options.config;
    struct join_options options = {
        .role = k->role->join,
        .uses = {[JOIN_NODE] = config->attach_node,
                 [JOIN_NAMESPACE] = config->attach_namespace,
                 [JOIN_SERVICE] = k->role->endpoints,
                 [JOIN_POD] = k->role->endpoints},
        .max = DISCOVERY_OBJECTS_MAX,
        .intern = k->options.intern,
        .too_many_labels = k->options.reflectors->env.counters->skips[SKIP_TOO_MANY_LABELS],
        .on_change = on_change,
        .arg = k,
    };
    if (!config->attach_node && !config->attach_namespace && !k->role->endpoints) {
        return true;
    }
    k->targets.keep_shared = true;
    k->join = join_new(&options);
    return k->join != NULL;
}

/* The joined first: their lists are short, and the others wait for them. */
static bool init_parts(struct kubernetes *k)
{
    const struct config_kubernetes *config = k->options.config;
    const struct part joined[] = {
        {.kind = JOIN_NODE, .resource = RESOURCE_NODES},
        {.kind = JOIN_NAMESPACE, .resource = RESOURCE_NAMESPACES},
        {.kind = JOIN_SERVICE, .resource = RESOURCE_SERVICES},
        {.kind = JOIN_POD, .resource = RESOURCE_PODS},
    };
    const bool uses[] = {config->attach_node, config->attach_namespace, k->role->endpoints,
                         k->role->endpoints};
    k->parts = calloc((config->namespaces.n + 2) * 5, sizeof(*k->parts));
    bool ok = k->parts != NULL;
    for (size_t i = 0; i < 4 && ok; i++) {
        ok = !uses[i] || add_parts(k, &joined[i]);
    }
    const struct part own = {.primary = true, .resource = k->role->resource};
    return ok && add_parts(k, &own);
}

static const struct role *find_role(enum config_role role)
{
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strcmp(roles[i].name, config_role_name(role)) == 0) {
            return &roles[i];
        }
    }
    return &roles[0];
}

static bool init(struct kubernetes *k)
{
    k->role = find_role(k->options.config->role);
    object_targets_init(&k->targets);
    k->targets.max = k->role->targets_max;
    k->builder = labels_builder_new(k->options.intern);
    return k->builder != NULL && init_join(k) && init_wanted(k) && init_parts(k);
}

struct kubernetes *kubernetes_new(const struct kubernetes_options *options, struct err *err)
{
    if (options->config->own_namespace && options->access.namespace == NULL) {
        err_set(err, ERR_INPUT,
                "own_namespace: the own namespace is not known (no file \"namespace\" beside the "
                "service account's token, or none in the kubeconfig's context)");
        return NULL;
    }
    struct kubernetes *k = calloc(1, sizeof(*k));
    if (k != NULL) {
        k->options = *options;
        if (init(k)) {
            return k;
        }
        /* Reflectors still know its parts, but they are not started after an error. */
        kubernetes_free(k);
    }
    err_memory(err);
    return NULL;
}

size_t kubernetes_count(const struct kubernetes *k)
{
    size_t n = k->join == NULL ? 0 : join_count(k->join);
    for (size_t i = 0; i < k->n_parts; i++) {
        n += k->parts[i].store == NULL ? 0 : store_count(k->parts[i].store);
    }
    return n;
}

struct kubernetes *kubernetes_free(struct kubernetes *k)
{
    if (k == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < k->n_parts; i++) {
        store_free(k->parts[i].store);
    }
    free(k->parts);
    join_free(k->join);
    object_targets_done(&k->targets);
    wanted_free(k->wanted);
    labels_builder_free(k->builder);
    free(k);
    return NULL;
}

#include "discovery/kubernetes/kubernetes.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "discovery/callbacks.h"
#include "discovery/kubernetes/join.h"
#include "discovery/kubernetes/roles.h"
#include "http/url.h"

#define SELECTORS_MAX ((size_t)300 * 1024)
/* Room for the prefix of an object's name, such as "endpointslice/". */
#define SOURCE_PREFIX_MAX 32
#define LOG_PERIOD_MS 60000
#define LOG_BURST 20
/* The most parts that a message names as not readable, and the most bytes about one of them. */
#define PARTS_SAID 16
#define WHY_MAX ((size_t)2048)

/* One reflector that the source listens to: its own objects, or those joined to them. */
struct part {
    struct kubernetes *k;
    struct reflector_listener listener;
    struct reflector *reflector;
    const struct kube_resource *resource;
    /* for the role's own objects if nothing is joined to them; otherwise NULL */
    struct store *store;
    const char *namespace;
    unsigned list;       /* number of its list in the join */
    enum join_kind kind; /* the kind of its objects as facts, unless primary */
    bool primary;        /* the role's own objects */
    bool synced;
    bool ready; /* for a primary: its objects are being reported */
    bool warned_full;
};

struct kubernetes {
    struct kubernetes_options options;
    const struct discovery_counters *counters;
    const struct kube_role *role;
    struct labels_builder *builder;
    struct object_targets targets; /* scratch */
    struct label_filter *filter;   /* NULL: every label */
    struct join *join;             /* NULL if nothing is joined */
    enum target_group_kind kind;   /* GROUP_POD: all targets of an object have its address */
    bool uses[JOIN_KINDS];         /* the kinds of objects that are joined */
    struct part *parts;
    size_t n_parts;
    size_t max_parts;
    bool unreported;            /* memory ran out before all objects of a list were reported */
    struct log_limit limit;     /* limits warnings about too many labels */
    struct store_counts counts; /* the counts at the last on_counts() */
};

/* ---- reporting ------------------------------------------------------------------------------- */

static void kubernetes_on_change(void *arg, const char *key, struct labels *const *targets,
                                 size_t n, const char *ip, bool moved)
{
    struct kubernetes *k = arg;
    char source[SOURCE_PREFIX_MAX + OBJECT_KEY_MAX];
    snprintf(source, sizeof(source), "%s/%s", k->role->source, key);
    struct target_group group = {
        .source = source,
        .kind = k->kind,
        .targets = targets,
        .n_targets = n,
        .pinned_host = ip,
        .moved = moved,
    };
    k->options.on_change(k->options.arg, &group);
}

static void warn_full(struct part *p)
{
    metric_inc(p->k->counters->skips[SKIP_TOO_MANY_OBJECTS]);
    if (!p->warned_full) {
        p->warned_full = true;
        log_warn(p->k->options.reflectors->env.log,
                 "kubernetes: too many objects, ignoring new ones (use namespaces or selectors)",
                 LOG_STR("role", config_role_name(p->k->options.config->role)),
                 LOG_STR("namespace", p->namespace == NULL ? "all" : p->namespace),
                 LOG_INT("limit", STORE_OBJECTS_MAX));
    }
}

/* Logs the name of an object because of which targets are left out. */
static void warn_labels(struct kubernetes *k, const char *kind, struct sv name, const char *source)
{
    uint32_t suppressed = 0;
    if (log_limit_allow(&k->limit, clock_mono_ms(), LOG_PERIOD_MS, LOG_BURST, &suppressed)) {
        log_warn(
            k->options.reflectors->env.log,
            "kubernetes: too many labels and annotations, leaving out the targets that have them",
            LOG_STR("kind", kind), LOG_SV("name", name), LOG_STR("source", source),
            LOG_INT("labels_max", LABELS_MAX), LOG_INT("bytes_max", LABELS_BYTES_MAX),
            LOG_INT("suppressed", suppressed));
    }
}

/* Counts and logs an object that has too many labels itself. */
static void refuse_object(struct part *p, const struct object_id *id)
{
    char key[OBJECT_KEY_MAX];
    metric_inc(p->k->counters->skips[SKIP_TOO_MANY_LABELS]);
    warn_labels(p->k, p->resource->kind, object_key(id, key), p->k->role->source);
}

/* Counts and logs single targets of an object that have too many labels. */
static void kubernetes_on_left_out(void *arg, const char *key, struct sv pod, size_t n)
{
    struct kubernetes *k = arg;
    char source[SOURCE_PREFIX_MAX + OBJECT_KEY_MAX];
    snprintf(source, sizeof(source), "%s/%s", k->role->source, key);
    metric_add(k->counters->target_skips[TARGET_TOO_MANY_LABELS], n);
    warn_labels(k, pod.n > 0 ? "Pod" : k->role->resource.kind, pod.n > 0 ? pod : sv_from(key),
                source);
}

static void count_left_out(struct kubernetes *k, const struct object_id *id)
{
    char key[OBJECT_KEY_MAX];
    metric_add(k->counters->skips[SKIP_BAD_IP], k->targets.bad_ip);
    metric_add(k->counters->target_skips[TARGET_BAD_PORT], k->targets.bad_ports);
    metric_add(k->counters->target_skips[TARGET_TOO_MANY], k->targets.too_many_targets);
    if (k->targets.too_many_labels > 0) {
        kubernetes_on_left_out(k, object_key(id, key).p, SV(""), k->targets.too_many_labels);
    }
}

/* ---- pods of other replicas ------------------------------------------------------------------ */

/* Returns true if another replica has the pod; *ret_key is the pod's key, 0 if it has none. */
static bool is_foreign(const struct kubernetes *k, const struct kube_object *object,
                       uint64_t *ret_key)
{
    *ret_key = 0;
    const struct discovery_sharing *sharing = k->options.sharing;
    if (sharing == NULL) {
        return false;
    }
    char text[OBJECT_IP_MAX];
    const char *ip = pod_ip(object, text);
    *ret_key = ip == NULL ? 0 : sharing->key(sharing->arg, ip);
    return *ret_key != 0 && !sharing->is_assigned(sharing->arg, *ret_key);
}

struct store_counts kubernetes_counts(const struct kubernetes *k)
{
    struct store_counts sum = {.reported = k->join == NULL ? 0 : join_count(k->join)};
    for (size_t i = 0; i < k->n_parts && k->join == NULL; i++) {
        struct store_counts one = store_counts(k->parts[i].store);
        sum.reported += one.reported;
        sum.foreign += one.foreign;
        sum.pending += one.pending;
    }
    return sum;
}

static void check_counts(struct kubernetes *k)
{
    if (k->options.sharing == NULL) {
        return;
    }
    struct store_counts now = kubernetes_counts(k);
    bool changed = now.foreign != k->counts.foreign || now.pending != k->counts.pending;
    k->counts = now;
    if (changed) {
        k->options.on_counts(k->options.arg);
    }
}

void kubernetes_reassign(struct kubernetes *k, int64_t within_ms)
{
    const struct discovery_sharing *sharing = k->options.sharing;
    if (sharing == NULL) {
        return;
    }
    for (size_t i = 0; i < k->n_parts; i++) {
        const struct part *p = &k->parts[i];
        store_reassign(p->store, sharing->is_assigned, sharing->arg);
        if (store_counts(p->store).pending > 0) {
            reflector_relist(p->reflector, within_ms);
        }
    }
    check_counts(k);
}

/* ---- the role's own objects ------------------------------------------------------------------ */

static enum store_result put_primary(struct part *p, const struct object_id *id,
                                     const struct kube_object *object)
{
    struct kubernetes *k = p->k;
    uint64_t key;
    if (is_foreign(k, object, &key)) {
        return store_put_foreign(p->store, id, key);
    }
    uint64_t content = schema_hash(p->resource->rows, object);
    if (k->join == NULL ? store_has(p->store, id, content)
                        : join_has(k->join, p->list, id, content)) {
        return STORE_UNCHANGED;
    }
    enum object_status status = k->role->read(object, k->builder, &k->targets);
    count_left_out(k, id);
    if (status == OBJECT_NO_MEMORY) {
        return STORE_NO_MEMORY;
    }
    if (status == OBJECT_TOO_MANY_LABELS) {
        /* An object with too many labels has no targets any more: its former ones are out of
         * date. */
        refuse_object(p, id);
    }
    k->targets.key = key;
    k->targets.content = content;
    return k->join == NULL ? kube_store_put(p->store, id, &k->targets)
                           : join_put(k->join, p->list, id, &k->targets);
}

/* ---- joined objects -------------------------------------------------------------------------- */

/* Returns the first family of a dual-stack service: only slices of that family are used. */
static char first_family(const struct kube_service *service)
{
    struct sv policy = service->family_policy;
    const struct schema_text *first = service->families.first;
    if (first == NULL ||
        (!sv_eq_str(policy, "PreferDualStack") && !sv_eq_str(policy, "RequireDualStack"))) {
        return 0;
    }
    return sv_eq_str(first->text, "IPv4") ? '4' : sv_eq_str(first->text, "IPv6") ? '6' : (char)0;
}

static enum object_status read_fact(struct kubernetes *k, const struct kube_object *object,
                                    struct join_fact *fact)
{
    const struct kube_metadata *metadata = &object->metadata;
    struct maker m;
    if (fact->kind == JOIN_POD) {
        fact->pods = &k->targets;
        k->targets.without_ip = true;
        enum object_status status = kube_pods.read(object, k->builder, &k->targets);
        k->targets.without_ip = false;
        return status;
    }
    maker_init(&m, k->builder, &k->targets);
    if (fact->kind == JOIN_NAMESPACE) {
        maker_set_annotations(&m, metadata, "namespace");
    } else {
        maker_set_metadata(&m, metadata, fact->kind == JOIN_NODE ? "node" : "service");
    }
    fact->family = fact->kind == JOIN_SERVICE ? first_family(&object->service) : (char)0;
    maker_share(&m);
    return maker_done(&m);
}

static enum store_result put_fact(struct part *p, const struct object_id *id,
                                  const struct kube_object *object)
{
    struct kubernetes *k = p->k;
    struct join_fact fact = {.kind = p->kind, .content = schema_hash(p->resource->rows, object)};
    if (join_fact_has(k->join, p->list, p->kind, id, fact.content)) {
        return STORE_UNCHANGED;
    }
    enum object_status status = read_fact(k, object, &fact);
    if (status == OBJECT_NO_MEMORY) {
        return STORE_NO_MEMORY;
    }
    fact.too_many_labels = status == OBJECT_TOO_MANY_LABELS || k->targets.too_many_labels > 0;
    fact.labels = fact.too_many_labels ? NULL : k->targets.shared;
    fact.pods = fact.too_many_labels ? NULL : fact.pods;
    if (fact.too_many_labels && !join_fact_is_refused(k->join, p->kind, id)) {
        refuse_object(p, id);
    }
    return join_fact_put(k->join, p->list, id, &fact);
}

/* ---- listening ------------------------------------------------------------------------------- */

static enum store_result remove_object(struct part *p, const struct object_id *id)
{
    struct join *join = p->k->join;
    if (join == NULL) {
        return store_remove(p->store, id);
    }
    return p->primary ? join_remove(join, id) : join_fact_remove(join, p->kind, id);
}

/* Returns true if all objects that are joined to those of a primary have been listed: in its
 * namespace, and in the whole cluster. */
static bool is_complete(const struct kubernetes *k, const struct part *primary)
{
    for (size_t i = 0; i < k->n_parts; i++) {
        const struct part *p = &k->parts[i];
        bool needed = p->namespace == NULL || str_same(p->namespace, primary->namespace);
        if (needed && !p->synced) {
            return false;
        }
    }
    return true;
}

/* Starts to report each primary that is complete. A namespace waits for its own lists only, because
 * those of another one may not be permitted. */
static void check_ready(struct kubernetes *k)
{
    for (size_t i = 0; i < k->n_parts && k->join != NULL; i++) {
        struct part *p = &k->parts[i];
        if (p->primary && !p->ready && is_complete(k, p)) {
            p->ready = join_ready(k->join, p->list);
            metric_add(k->counters->skips[SKIP_MEMORY], p->ready ? 0 : 1);
            k->unreported = k->unreported || !p->ready;
        }
    }
}

/* Reports objects for which memory had run out; called with the next event. */
static void check_unreported(struct kubernetes *k)
{
    if (k->unreported) {
        k->unreported = false;
        check_ready(k);
    }
}

static enum store_result kubernetes_on_object(void *arg, const struct object_id *id,
                                              const struct kube_object *object)
{
    struct part *p = arg;
    enum store_result result;
    if (object == NULL) {
        result = remove_object(p, id);
    } else {
        result = p->primary ? put_primary(p, id, object) : put_fact(p, id, object);
    }
    object_targets_clear(&p->k->targets);
    check_unreported(p->k);
    check_counts(p->k);
    if (result == STORE_FULL) {
        warn_full(p);
    }
    return result;
}

static void kubernetes_on_list_begin(void *arg)
{
    struct part *p = arg;
    if (p->k->join == NULL) {
        store_list_begin(p->store);
    } else {
        join_list_begin(p->k->join, p->list);
    }
}

static void kubernetes_on_list_end(void *arg)
{
    struct part *p = arg;
    struct kubernetes *k = p->k;
    if (k->join == NULL) {
        store_list_end(p->store);
        check_counts(k);
    } else {
        join_list_end(k->join, p->list);
    }
    if (!p->synced) {
        p->synced = true;
        check_ready(k);
    }
    if (k->options.on_listed != NULL) {
        k->options.on_listed(k->options.arg);
    }
}

bool kubernetes_synced(const struct kubernetes *k)
{
    for (size_t i = 0; i < k->n_parts; i++) {
        if (!k->parts[i].synced) {
            return false;
        }
    }
    return true;
}

struct each {
    const struct kubernetes *k;
    void (*fn)(void *arg, const char *source);
    void *arg;
};

static void kubernetes_on_each(void *arg, struct sv key)
{
    const struct each *each = arg;
    char source[SOURCE_PREFIX_MAX + OBJECT_KEY_MAX];
    snprintf(source, sizeof(source), "%s/%.*s", each->k->role->source, SV_ARG(key));
    each->fn(each->arg, source);
}

void kubernetes_each(const struct kubernetes *k, void (*fn)(void *arg, const char *source),
                     void *arg)
{
    struct each each = {.k = k, .fn = fn, .arg = arg};
    if (k->join != NULL) {
        join_each(k->join, kubernetes_on_each, &each);
        return;
    }
    for (size_t i = 0; i < k->n_parts; i++) {
        store_each(k->parts[i].store, kubernetes_on_each, &each);
    }
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

/* Appends the selectors for one resource. */
static bool make_selectors(const struct config_kubernetes *config, enum config_role role,
                           struct buf *out)
{
    for (size_t i = 0; i < config->n_selectors; i++) {
        if (config->selectors[i].role == role &&
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
    if (make_selectors(k->options.config, p->resource->role, &selectors)) {
        p->reflector = reflectors_get(k->options.reflectors, &(struct reflector_options){
                                                                 .resource = p->resource,
                                                                 .access = k->options.access,
                                                                 .namespace = p->namespace,
                                                                 .selectors = selectors.data,
                                                                 .server_id = k->options.server_id,
                                                             });
    }
    buf_done(&selectors);
    if (p->reflector == NULL) {
        return false;
    }
    p->listener = (struct reflector_listener){.list_begin = kubernetes_on_list_begin,
                                              .list_end = kubernetes_on_list_end,
                                              .object = kubernetes_on_object,
                                              .arg = p};
    reflector_listen(p->reflector, &p->listener);
    return true;
}

/* Listens to a resource in one namespace, or everywhere (NULL), unless it already does. The array
 * has room. */
static bool add_part(struct kubernetes *k, const struct part *model, const char *namespace)
{
    for (size_t i = 0; i < k->n_parts; i++) {
        if (k->parts[i].resource == model->resource && str_same(k->parts[i].namespace, namespace)) {
            return true;
        }
    }
    struct part *p = &k->parts[k->n_parts];
    *p = *model;
    p->k = k;
    p->list = (unsigned)k->n_parts++;
    p->namespace = namespace;
    if (k->join == NULL) {
        p->store = store_new(&(struct store_options){
            .max = STORE_OBJECTS_MAX, .on_change = kubernetes_on_change, .arg = k});
        if (p->store == NULL) {
            return false;
        }
    }
    return listen(p);
}

static bool is_everywhere(const struct config_kubernetes *config)
{
    return config->namespaces.n == 0 && !config->own_namespace;
}

/* Listens to a resource in each namespace of the source. A resource that does not belong to
 * namespaces is read in the whole cluster. */
static bool add_parts(struct kubernetes *k, const struct part *model)
{
    const struct config_kubernetes *config = k->options.config;
    if (!model->resource->namespaced || is_everywhere(config)) {
        return add_part(k, model, NULL);
    }
    bool ok = true;
    for (size_t i = 0; i < config->namespaces.n && ok; i++) {
        ok = add_part(k, model, config->namespaces.at[i]);
    }
    return ok && (!config->own_namespace || add_part(k, model, k->options.access.namespace));
}

/* Returns true if a label is built. The join itself reads the service's name, which may be one of
 * an object's labels. */
static bool kubernetes_wants_label(void *arg, struct sv name)
{
    const struct kubernetes *k = arg;
    const char *service = k->join == NULL ? NULL : k->role->join.service;
    return (service != NULL && sv_eq_str(name, service)) ||
           k->options.wants_label(k->options.arg, name);
}

static bool init_filter(struct kubernetes *k)
{
    if (k->options.wants_label == NULL) {
        return true;
    }
    k->filter = label_filter_new(&(struct label_filter_options){
        .wants_label = kubernetes_wants_label, .arg = k, .metadata_only = k->join != NULL});
    k->targets.filter = k->filter;
    return k->filter != NULL;
}

static bool init_join(struct kubernetes *k)
{
    struct join_options options = {
        .labels = &k->role->join,
        .n_lists = (unsigned)k->max_parts,
        .max = STORE_OBJECTS_MAX,
        .everywhere = is_everywhere(k->options.config),
        .intern = k->options.intern,
        .on_left_out = kubernetes_on_left_out,
        .on_change = kubernetes_on_change,
        .arg = k,
    };
    bool any = false;
    for (int kind = 0; kind < JOIN_KINDS; kind++) {
        options.uses[kind] = k->uses[kind];
        any = any || k->uses[kind];
    }
    if (!any) {
        return true;
    }
    k->targets.keep_shared = true;
    k->join = join_new(&options);
    return k->join != NULL;
}

/* Makes the parts. The joined resources come first, because their lists are short and the role's
 * own objects wait for them. */
static bool init_parts(struct kubernetes *k)
{
    const struct kube_resource *const joined[JOIN_KINDS] = {
        [JOIN_NODE] = &kube_node_metadata,
        [JOIN_NAMESPACE] = &kube_namespaces,
        [JOIN_SERVICE] = &kube_services.resource,
        [JOIN_POD] = &kube_pods.resource,
    };
    k->parts = calloc(k->max_parts, sizeof(*k->parts));
    bool ok = k->parts != NULL;
    for (int kind = 0; kind < JOIN_KINDS && ok; kind++) {
        const struct part model = {.kind = (enum join_kind)kind, .resource = joined[kind]};
        ok = !k->uses[kind] || add_parts(k, &model);
    }
    return ok && add_parts(k, &(struct part){.primary = true, .resource = &k->role->resource});
}

void kubernetes_start(struct kubernetes *k)
{
    for (size_t i = 0; i < k->n_parts; i++) {
        reflector_follow(k->parts[i].reflector, &k->parts[i].listener);
    }
}

static bool init(struct kubernetes *k)
{
    const struct config_kubernetes *config = k->options.config;
    k->counters = k->options.reflectors->env.counters;
    k->role = kube_role(config->role);
    k->uses[JOIN_NODE] = config->attach_node;
    k->uses[JOIN_NAMESPACE] = config->attach_namespace;
    k->uses[JOIN_SERVICE] = k->role->join.service != NULL;
    k->uses[JOIN_POD] = k->role->join.ref_name != NULL;
    k->targets.max = k->role->targets_max;
    /* Each resource can have a part in each namespace, and one in our own namespace or for the
     * whole cluster. */
    k->max_parts = (config->namespaces.n + 1) * (JOIN_KINDS + 1);
    k->builder = labels_builder_new(k->options.intern);
    if (k->builder == NULL || !init_join(k)) {
        return false;
    }
    k->kind = config->role == ROLE_POD ? GROUP_POD : GROUP_OBJECT;
    if (k->kind != GROUP_POD || k->join != NULL) {
        /* Sharing applies only to pods to which nothing is joined: their owner is found by the
         * address, before labels are built. All other objects are kept, because a joined object may
         * change. */
        k->options.sharing = NULL;
    }
    return init_filter(k) && init_parts(k);
}

struct kubernetes *kubernetes_new(const struct kubernetes_options *options, struct err *err)
{
    if (options->config->own_namespace && options->access.namespace == NULL) {
        err_set(err, ERR_INPUT,
                "own_namespace: the namespace of this pod is not known (no file \"namespace\" "
                "beside the "
                "service account's token, or none in the kubeconfig's context)");
        return NULL;
    }
    struct kubernetes *k = calloc(1, sizeof(*k));
    if (k != NULL) {
        k->options = *options;
        if (init(k)) {
            return k;
        }
        kubernetes_free(k);
    }
    err_memory(err);
    return NULL;
}

enum source_state kubernetes_state(const struct kubernetes *k, struct buf *why)
{
    size_t n[] = {[SOURCE_WAITS] = 0, [SOURCE_WORKS] = 0, [SOURCE_FAILS] = 0};
    size_t said = 0;
    for (size_t i = 0; i < k->n_parts; i++) {
        struct buf one;
        buf_init(&one, WHY_MAX);
        enum source_state state = reflector_state(k->parts[i].reflector, &one);
        n[state]++;
        if (state != SOURCE_WORKS && said++ < PARTS_SAID) {
            buf_printf(why, "%s%s", said == 1 ? "" : "; ", one.data);
        }
        buf_done(&one);
    }
    if (said > PARTS_SAID) {
        buf_printf(why, "; and %zu more", said - PARTS_SAID);
    }
    if (n[SOURCE_WAITS] > 0) {
        return SOURCE_WAITS;
    }
    return n[SOURCE_FAILS] > 0 ? SOURCE_FAILS : SOURCE_WORKS;
}

struct kubernetes *kubernetes_free(struct kubernetes *k)
{
    if (k == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < k->n_parts; i++) {
        if (k->parts[i].reflector != NULL) {
            reflector_unlisten(k->parts[i].reflector, &k->parts[i].listener);
        }
        store_free(k->parts[i].store);
    }
    free(k->parts);
    join_free(k->join);
    object_targets_done(&k->targets);
    label_filter_free(k->filter);
    labels_builder_free(k->builder);
    free(k);
    return NULL;
}

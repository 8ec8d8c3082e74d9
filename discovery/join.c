#include "discovery/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* "<kind>/<namespace>/<name>" */
#define FACT_KEY_MAX (OBJECT_KEY_MAX + 2)
#define CONTAINER META "pod_container_"

struct fact_port {
    struct labels *labels;
    unsigned number;
    bool covered; /* by a port of the endpoints that are being described */
};

/* What an object contributes, or would if it were there. */
struct fact {
    char kind;
    bool present;
    char family;
    unsigned list;
    uint32_t mark;
    uint64_t uid;
    uint64_t hash;
    uint64_t seen; /* the description that has met it */
    struct labels *labels;
    struct fact_port *ports;
    size_t n_ports;
    struct link **links; /* primaries that need it */
    size_t n_links;
    size_t cap_links;
    char key[]; /* in the table */
};

struct link {
    struct fact *fact;
    struct primary *primary;
    size_t at; /* in fact->links */
};

struct primary {
    struct labels **targets;
    size_t n;
    struct labels *shared;
    uint64_t uid;
    uint64_t base; /* hash of what it is without what is joined */
    uint64_t hash; /* of what was told */
    bool told;     /* it has targets outside */
    unsigned list;
    uint32_t mark;
    struct link **links;
    size_t n_links;
    char key[];
};

/* Who was named by the current list of a watch. */
struct list_mark {
    unsigned list;
    uint32_t mark;
};

struct join {
    struct join_options options;
    struct map *primaries;
    struct map *facts;
    size_t n_present[JOIN_KINDS];
    size_t n_told;
    uint64_t description;
    struct labels_builder *builder;
    struct object_targets scratch;
    struct list_mark *lists;
    size_t n_lists;
    bool ready;
};

/* ---- facts and links ------------------------------------------------------------------------- */

static char kind_char(enum join_kind kind)
{
    static const char chars[JOIN_KINDS] = {
        [JOIN_NODE] = 'n', [JOIN_NAMESPACE] = 's', [JOIN_SERVICE] = 'v', [JOIN_POD] = 'p'};
    return chars[kind];
}

static enum join_kind kind_of(const struct fact *f)
{
    for (int kind = 0; kind < JOIN_KINDS; kind++) {
        if (kind_char((enum join_kind)kind) == f->kind) {
            return (enum join_kind)kind;
        }
    }
    return JOIN_NODE;
}

static struct sv fact_key(enum join_kind kind, struct sv namespace, struct sv name,
                          char out[FACT_KEY_MAX])
{
    if (namespace.n > OBJECT_NAMESPACE_MAX || name.n > OBJECT_NAME_MAX || name.n == 0) {
        return SV("");
    }
    int n = snprintf(out, FACT_KEY_MAX, "%c/%.*s%s%.*s", kind_char(kind), SV_ARG(namespace),
                     namespace.n == 0 ? "" : "/", SV_ARG(name));
    return (struct sv){out, n < 0 ? 0 : (size_t)n};
}

static struct fact *fact_get(struct join *j, struct sv key)
{
    struct fact *f = map_get(j->facts, key);
    if (f != NULL) {
        return f;
    }
    f = calloc(1, sizeof(*f) + key.n + 1);
    if (f == NULL) {
        return NULL;
    }
    memcpy(f->key, key.p, key.n);
    f->kind = key.p[0];
    if (!map_put(j->facts, key, f, NULL)) {
        free(f);
        return NULL;
    }
    return f;
}

static void fact_clear(struct fact *f)
{
    labels_unref(f->labels);
    for (size_t i = 0; i < f->n_ports; i++) {
        labels_unref(f->ports[i].labels);
    }
    free(f->ports);
    f->labels = NULL;
    f->ports = NULL;
    f->n_ports = 0;
    f->family = 0;
}

static void fact_free(void *p)
{
    struct fact *f = p;
    if (f != NULL) {
        fact_clear(f);
        free(f->links);
        free(f);
    }
}

/* A fact that is not there and that nobody waits for is forgotten. */
static void fact_release(struct join *j, struct fact *f)
{
    if (!f->present && f->n_links == 0) {
        map_remove(j->facts, sv_from(f->key));
        fact_free(f);
    }
}

static void unlink_all(struct join *j, struct primary *p)
{
    for (size_t i = 0; i < p->n_links; i++) {
        struct link *link = p->links[i];
        struct fact *f = link->fact;
        struct link *last = f->links[--f->n_links];
        f->links[link->at] = last;
        last->at = link->at;
        free(link);
        fact_release(j, f);
    }
    free(p->links);
    p->links = NULL;
    p->n_links = 0;
}

/* Room for one more link. */
static bool grow(struct link ***array, size_t n, size_t *cap)
{
    if (n < *cap) {
        return true;
    }
    size_t more = *cap == 0 ? 4 : 2 * *cap;
    struct link **bigger = realloc(*array, more * sizeof(struct link *));
    if (bigger == NULL) {
        return false;
    }
    *array = bigger;
    *cap = more;
    return true;
}

/* Links a primary to a fact, once. `cap` is that of p->links. */
static bool link_to(struct join *j, struct primary *p, size_t *cap, enum join_kind kind,
                    struct sv namespace, struct sv name)
{
    char text[FACT_KEY_MAX];
    struct sv key = fact_key(kind, namespace, name, text);
    if (key.n == 0) {
        return true;
    }
    struct fact *f = fact_get(j, key);
    if (f == NULL) {
        return false;
    }
    /* All links of a primary are made in one go, so its link is the last one if there is one. */
    if (f->n_links > 0 && f->links[f->n_links - 1]->primary == p) {
        return true;
    }
    struct link *link = calloc(1, sizeof(*link));
    if (link == NULL || !grow(&f->links, f->n_links, &f->cap_links) ||
        !grow(&p->links, p->n_links, cap)) {
        free(link);
        fact_release(j, f);
        return false;
    }
    *link = (struct link){.fact = f, .primary = p, .at = f->n_links};
    f->links[f->n_links++] = link;
    p->links[p->n_links++] = link;
    return true;
}

/* ---- what is joined to what ------------------------------------------------------------------ */

static struct sv node_of(const struct join *j, const struct labels *t)
{
    if (!j->options.uses[JOIN_NODE]) {
        return SV("");
    }
    if (j->options.role == JOIN_ROLE_POD) {
        return labels_get(t, SV(META "pod_node_name"));
    }
    bool slice = j->options.role == JOIN_ROLE_SLICE;
    struct sv node = labels_get(t, slice ? SV(META "endpointslice_endpoint_node_name")
                                         : SV(META "endpoint_node_name"));
    struct sv kind = labels_get(t, slice ? SV(META "endpointslice_address_target_kind")
                                         : SV(META "endpoint_address_target_kind"));
    if (node.n == 0 && sv_eq_str(kind, "Node")) {
        node = labels_get(t, slice ? SV(META "endpointslice_address_target_name")
                                   : SV(META "endpoint_address_target_name"));
    }
    return node;
}

static struct sv pod_of(const struct join *j, const struct labels *t)
{
    bool slice = j->options.role == JOIN_ROLE_SLICE;
    if (!j->options.uses[JOIN_POD] ||
        !sv_eq_str(labels_get(t, slice ? SV(META "endpointslice_address_target_kind")
                                       : SV(META "endpoint_address_target_kind")),
                   "Pod")) {
        return SV("");
    }
    return labels_get(t, slice ? SV(META "endpointslice_address_target_name")
                               : SV(META "endpoint_address_target_name"));
}

static struct sv service_of(const struct join *j, const struct labels *shared)
{
    if (!j->options.uses[JOIN_SERVICE]) {
        return SV("");
    }
    return labels_get(shared, j->options.role == JOIN_ROLE_SLICE
                                  ? SV(META "endpointslice_label_kubernetes_io_service_name")
                                  : SV(META "endpoints_name"));
}

static struct sv namespace_of(const struct primary *p)
{
    struct sv namespace = SV("");
    struct sv name;
    (void)sv_cut(sv_from(p->key), '/', &namespace, &name);
    return namespace;
}

static bool link_all(struct join *j, struct primary *p)
{
    size_t cap = 0;
    struct sv namespace = namespace_of(p);
    bool ok = true;
    if (j->options.uses[JOIN_NAMESPACE] && namespace.n > 0) {
        ok = link_to(j, p, &cap, JOIN_NAMESPACE, SV(""), namespace);
    }
    ok = ok && link_to(j, p, &cap, JOIN_SERVICE, namespace, service_of(j, p->shared));
    for (size_t i = 0; i < p->n && ok; i++) {
        ok = link_to(j, p, &cap, JOIN_NODE, SV(""), node_of(j, p->targets[i])) &&
             link_to(j, p, &cap, JOIN_POD, namespace, pod_of(j, p->targets[i]));
    }
    return ok;
}

static struct fact *find(const struct join *j, enum join_kind kind, struct sv namespace,
                         struct sv name)
{
    char text[FACT_KEY_MAX];
    struct sv key = fact_key(kind, namespace, name, text);
    struct fact *f = key.n == 0 ? NULL : map_get(j->facts, key);
    return f != NULL && f->present ? f : NULL;
}

/* ---- describing a primary -------------------------------------------------------------------- */

/* What all targets of the primary get. */
struct group {
    const struct fact *namespace;
    const struct fact *service;
};

static unsigned port_of(const struct labels *t)
{
    struct sv host;
    uint16_t port = 0;
    return split_host_port(labels_get(t, SV(LABEL_ADDRESS)), &host, &port, NULL) ? port : 0;
}

static void set_group(struct maker *m, const struct group *g)
{
    if (g->namespace != NULL) {
        maker_set_labels(m, g->namespace->labels);
    }
    if (g->service != NULL) {
        maker_set_labels(m, g->service->labels);
    }
}

static void copy(struct maker *m, const struct labels *from, struct sv name)
{
    maker_set(m, name, labels_get(from, name));
}

/* The container whose port this is: the last one that has it, and of its ports the first. */
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

static void set_pod(const struct join *j, struct maker *m, struct fact *pod,
                    const struct labels *target)
{
    unsigned number = port_of(target);
    if (pod->seen != j->description) {
        pod->seen = j->description;
        for (size_t i = 0; i < pod->n_ports; i++) {
            pod->ports[i].covered = false;
        }
    }
    for (size_t i = 0; i < pod->n_ports; i++) {
        pod->ports[i].covered |= pod->ports[i].number == number;
    }
    maker_set_labels(m, pod->labels);
    const struct fact_port *port = find_container(pod, number);
    if (port == NULL) {
        return;
    }
    copy(m, port->labels, SV(CONTAINER "name"));
    copy(m, port->labels, SV(CONTAINER "image"));
    copy(m, port->labels, SV(CONTAINER "init"));
    copy(m, port->labels, SV(CONTAINER "port_name"));
    copy(m, port->labels, SV(CONTAINER "port_number"));
    copy(m, port->labels, SV(CONTAINER "port_protocol"));
    if (j->options.role == JOIN_ROLE_ENDPOINTS) {
        maker_set(m, SV(CONTAINER "port_protocol"),
                  labels_get(target, SV(META "endpoint_port_protocol")));
    }
}

static enum object_status describe_target(const struct join *j, struct maker *m,
                                          const struct primary *p, const struct group *g,
                                          const struct labels *target)
{
    maker_begin(m);
    maker_set_labels(m, target);
    set_group(m, g);
    struct fact *node = find(j, JOIN_NODE, SV(""), node_of(j, target));
    if (node != NULL) {
        maker_set_labels(m, node->labels);
    } else if (j->options.role == JOIN_ROLE_POD && j->options.uses[JOIN_NODE]) {
        return OBJECT_OK; /* its node is not known, or not selected */
    }
    struct fact *pod = find(j, JOIN_POD, namespace_of(p), pod_of(j, target));
    if (pod != NULL) {
        set_pod(j, m, pod, target);
    }
    return maker_add(m);
}

/* The ports of the pods that no endpoint stands for, such as that of a sidecar. */
static enum object_status describe_uncovered(const struct join *j, struct maker *m,
                                             const struct primary *p, const struct group *g,
                                             const struct fact *pod)
{
    enum object_status status = OBJECT_OK;
    for (size_t i = 0; i < pod->n_ports && status == OBJECT_OK; i++) {
        if (pod->seen == j->description && !pod->ports[i].covered) {
            maker_begin(m);
            maker_set_labels(m, p->shared);
            maker_set_labels(m, pod->ports[i].labels);
            maker_set(m, SV(CONTAINER "id"), SV(""));
            set_group(m, g);
            status = maker_add(m);
        }
    }
    return status;
}

/* Slices of the second family of a dual-stack service stand for the same endpoints. */
static bool is_secondary(const struct primary *p, const struct group *g)
{
    if (g->service == NULL || g->service->family == 0) {
        return false;
    }
    struct sv type = labels_get(p->shared, SV(META "endpointslice_address_type"));
    return sv_eq_str(type, g->service->family == '4' ? "IPv6" : "IPv4");
}

static enum object_status describe(struct join *j, const struct primary *p)
{
    struct sv namespace = namespace_of(p);
    struct group g = {
        .namespace =
            j->options.uses[JOIN_NAMESPACE] ? find(j, JOIN_NAMESPACE, SV(""), namespace) : NULL,
        .service = find(j, JOIN_SERVICE, namespace, service_of(j, p->shared)),
    };
    struct maker m;
    maker_init(&m, j->builder, &j->scratch);
    j->description++;
    enum object_status status = OBJECT_OK;
    if (is_secondary(p, &g)) {
        return OBJECT_OK;
    }
    for (size_t i = 0; i < p->n && status == OBJECT_OK; i++) {
        status = describe_target(j, &m, p, &g, p->targets[i]);
    }
    for (size_t i = 0; i < p->n_links && status == OBJECT_OK; i++) {
        if (p->links[i]->fact->kind == kind_char(JOIN_POD)) {
            status = describe_uncovered(j, &m, p, &g, p->links[i]->fact);
        }
    }
    return maker_done(&m, status);
}

static uint64_t hash_labels(struct labels *const *at, size_t n, uint64_t hash)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t one = labels_hash(at[i]);
        hash = hash_bytes(&one, sizeof(one), hash);
    }
    return hash;
}

static enum store_result tell(struct join *j, struct primary *p)
{
    if (!j->ready) {
        return STORE_CHANGED;
    }
    enum object_status status = describe(j, p);
    if (status == OBJECT_NO_MEMORY) {
        object_targets_clear(&j->scratch);
        return STORE_NO_MEMORY;
    }
    if (status == OBJECT_TOO_MANY_LABELS) {
        metric_inc(j->options.too_many_labels);
    }
    size_t n = j->scratch.n;
    uint64_t hash = hash_labels(j->scratch.at, n, n);
    bool news = n == 0 ? p->told : !p->told || p->hash != hash;
    if (n > 0 && !p->told) {
        j->n_told++;
    } else if (n == 0 && p->told) {
        j->n_told--;
    }
    p->told = n > 0;
    p->hash = hash;
    if (news) {
        j->options.on_change(j->options.arg, p->key, n == 0 ? NULL : j->scratch.at, n);
    }
    object_targets_clear(&j->scratch);
    return news ? STORE_CHANGED : STORE_UNCHANGED;
}

/* ---- primaries ------------------------------------------------------------------------------- */

static void drop_targets(struct primary *p)
{
    for (size_t i = 0; i < p->n; i++) {
        labels_unref(p->targets[i]);
    }
    free(p->targets);
    labels_unref(p->shared);
    p->targets = NULL;
    p->shared = NULL;
    p->n = 0;
}

static void forget(struct join *j, struct primary *p)
{
    unlink_all(j, p);
    if (p->told) {
        j->n_told--;
        j->options.on_change(j->options.arg, p->key, NULL, 0);
    }
    drop_targets(p);
    free(p);
}

static uint32_t *mark_of(struct join *j, unsigned list)
{
    for (size_t i = 0; i < j->n_lists; i++) {
        if (j->lists[i].list == list) {
            return &j->lists[i].mark;
        }
    }
    struct list_mark *more = realloc(j->lists, (j->n_lists + 1) * sizeof(*more));
    if (more == NULL) {
        return NULL;
    }
    j->lists = more;
    j->lists[j->n_lists] = (struct list_mark){.list = list};
    return &j->lists[j->n_lists++].mark;
}

static uint64_t hash_base(const struct object_targets *t)
{
    return hash_labels(t->at, t->n, hash_labels(&t->shared, 1, t->n));
}

static bool take_targets(struct primary *p, const struct object_targets *t)
{
    struct labels **targets = calloc(t->n + 1, sizeof(struct labels *));
    if (targets == NULL) {
        return false;
    }
    for (size_t i = 0; i < t->n; i++) {
        targets[i] = labels_ref(t->at[i]);
    }
    drop_targets(p);
    p->targets = targets;
    p->n = t->n;
    p->shared = labels_ref(t->shared);
    return true;
}

static struct primary *add_primary(struct join *j, struct sv key)
{
    struct primary *p = calloc(1, sizeof(*p) + key.n + 1);
    if (p == NULL) {
        return NULL;
    }
    memcpy(p->key, key.p, key.n);
    if (!map_put(j->primaries, key, p, NULL)) {
        free(p);
        return NULL;
    }
    return p;
}

static uint64_t hash_uid(const struct object_id *id)
{
    return hash_bytes(id->uid.p, id->uid.n, 0);
}

enum store_result join_put(struct join *j, unsigned list, const struct object_id *id,
                           const struct object_targets *t)
{
    char text[OBJECT_KEY_MAX];
    struct sv key = object_key(id, text);
    if (t->n == 0 || t->shared == NULL) {
        struct primary *gone = map_remove(j->primaries, key);
        if (gone == NULL) {
            return STORE_UNCHANGED;
        }
        forget(j, gone);
        return STORE_CHANGED;
    }
    struct primary *p = map_get(j->primaries, key);
    uint32_t *mark = mark_of(j, list);
    if (p == NULL && map_count(j->primaries) >= j->options.max) {
        return STORE_FULL;
    }
    if (mark == NULL || (p == NULL && (p = add_primary(j, key)) == NULL)) {
        return STORE_NO_MEMORY;
    }
    p->list = list;
    p->mark = *mark;
    p->uid = hash_uid(id);
    uint64_t base = hash_base(t);
    if (p->targets != NULL && p->base == base) {
        return STORE_UNCHANGED;
    }
    unlink_all(j, p);
    p->base = 0; /* until all of it has been done */
    if (!take_targets(p, t) || !link_all(j, p)) {
        return STORE_NO_MEMORY;
    }
    enum store_result result = tell(j, p);
    p->base = result == STORE_NO_MEMORY ? 0 : base;
    return result;
}

enum store_result join_remove(struct join *j, const struct object_id *id)
{
    char text[OBJECT_KEY_MAX];
    struct sv key = object_key(id, text);
    struct primary *p = map_get(j->primaries, key);
    if (p == NULL || (id->uid.n > 0 && p->uid != hash_uid(id))) {
        return STORE_UNCHANGED;
    }
    map_remove(j->primaries, key);
    forget(j, p);
    return STORE_CHANGED;
}

/* ---- news of facts --------------------------------------------------------------------------- */

static bool tell_linked(struct join *j, const struct fact *f, bool *ret_changed)
{
    bool ok = true;
    for (size_t i = 0; i < f->n_links; i++) {
        enum store_result result = tell(j, f->links[i]->primary);
        ok = ok && result != STORE_NO_MEMORY;
        *ret_changed = *ret_changed || result == STORE_CHANGED;
    }
    return ok;
}

static bool take_ports(struct fact *f, const struct object_targets *t)
{
    size_t n = t == NULL ? 0 : t->n;
    f->ports = calloc(n + 1, sizeof(*f->ports));
    for (size_t i = 0; f->ports != NULL && i < n; i++) {
        uint64_t number = 0;
        if (parse_u64(labels_get(t->at[i], SV(CONTAINER "port_number")), 65535, &number)) {
            f->ports[f->n_ports++] =
                (struct fact_port){.labels = labels_ref(t->at[i]), .number = (unsigned)number};
        }
    }
    return f->ports != NULL;
}

static uint64_t hash_fact(const struct join_fact *fact)
{
    uint64_t hash = hash_labels(&fact->labels, 1, (uint64_t)(unsigned char)fact->family + 1);
    return fact->pods == NULL ? hash : hash_labels(fact->pods->at, fact->pods->n, hash);
}

enum store_result join_fact_put(struct join *j, unsigned list, const struct object_id *id,
                                const struct join_fact *fact)
{
    char text[FACT_KEY_MAX];
    struct sv key = fact_key(fact->kind, id->namespace, id->name, text);
    struct fact *f = map_get(j->facts, key);
    uint32_t *mark = mark_of(j, list);
    if ((f == NULL || !f->present) && j->n_present[fact->kind] >= j->options.max) {
        return STORE_FULL;
    }
    if (mark == NULL || (f = fact_get(j, key)) == NULL) {
        return STORE_NO_MEMORY;
    }
    uint64_t hash = hash_fact(fact);
    f->list = list;
    f->mark = *mark;
    f->uid = hash_uid(id);
    if (f->present && f->hash == hash) {
        return STORE_UNCHANGED;
    }
    fact_clear(f);
    j->n_present[fact->kind] += f->present ? 0 : 1;
    f->present = true;
    f->hash = 0; /* until all of it has been done */
    f->family = fact->family;
    f->labels = labels_ref(fact->labels);
    bool changed = false;
    if (!take_ports(f, fact->pods) || !tell_linked(j, f, &changed)) {
        return STORE_NO_MEMORY;
    }
    f->hash = hash;
    return changed ? STORE_CHANGED : STORE_UNCHANGED;
}

/* Those who depend on it are told as if it had never been. */
static enum store_result fact_gone(struct join *j, struct fact *f)
{
    bool changed = false;
    fact_clear(f);
    j->n_present[kind_of(f)]--;
    f->present = false;
    bool ok = tell_linked(j, f, &changed);
    return !ok ? STORE_NO_MEMORY : changed ? STORE_CHANGED : STORE_UNCHANGED;
}

enum store_result join_fact_remove(struct join *j, enum join_kind kind, const struct object_id *id)
{
    char text[FACT_KEY_MAX];
    struct sv key = fact_key(kind, id->namespace, id->name, text);
    struct fact *f = map_get(j->facts, key);
    if (f == NULL || !f->present || (id->uid.n > 0 && f->uid != hash_uid(id))) {
        return STORE_UNCHANGED;
    }
    enum store_result result = fact_gone(j, f);
    fact_release(j, f);
    return result;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void join_list_begin(struct join *j, unsigned list)
{
    uint32_t *mark = mark_of(j, list);
    if (mark != NULL) {
        (*mark)++;
    }
}

void join_list_end(struct join *j, unsigned list)
{
    uint32_t *mark = mark_of(j, list);
    size_t cursor = 0;
    struct sv key;
    void *value;
    if (mark == NULL) {
        return;
    }
    uint32_t now = *mark;
    while (map_next(j->primaries, &cursor, &key, &value)) {
        struct primary *p = value;
        if (p->list == list && p->mark != now) {
            map_remove_at(j->primaries, cursor);
            forget(j, p);
        }
    }
    cursor = 0;
    while (map_next(j->facts, &cursor, &key, &value)) {
        struct fact *f = value;
        if (!f->present || f->list != list || f->mark == now) {
            continue;
        }
        (void)fact_gone(j, f);
        if (f->n_links == 0) {
            map_remove_at(j->facts, cursor);
            fact_free(f);
        }
    }
}

bool join_ready(struct join *j)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    bool ok = true;
    j->ready = true;
    while (map_next(j->primaries, &cursor, &key, &value)) {
        ok = tell(j, value) != STORE_NO_MEMORY && ok;
    }
    return ok;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct join *join_new(const struct join_options *options)
{
    struct join *j = calloc(1, sizeof(*j));
    if (j == NULL) {
        return NULL;
    }
    j->options = *options;
    object_targets_init(&j->scratch);
    j->scratch.max = JOIN_TARGETS_MAX;
    j->primaries = map_new();
    j->facts = map_new();
    j->builder = labels_builder_new(options->intern);
    if (j->primaries == NULL || j->facts == NULL || j->builder == NULL) {
        return join_free(j);
    }
    return j;
}

static void primary_free(void *value)
{
    struct primary *p = value;
    drop_targets(p);
    for (size_t i = 0; i < p->n_links; i++) {
        free(p->links[i]);
    }
    free(p->links);
    free(p);
}

struct join *join_free(struct join *j)
{
    if (j == NULL) {
        return NULL;
    }
    map_free(j->primaries, primary_free);
    map_free(j->facts, fact_free);
    labels_builder_free(j->builder);
    object_targets_done(&j->scratch);
    free(j->lists);
    free(j);
    return NULL;
}

size_t join_count(const struct join *j)
{
    return j->n_told;
}

#include "discovery/kubernetes/peers.h"

#include <stdlib.h>
#include <string.h>

#include "discovery/kubernetes/roles/endpointslice.h"
#include "http/url.h"

#define SERVICE_LABEL "kubernetes.io/service-name"
#define SELECTOR_MAX ((size_t)4096)

/* A member as one slice has it. */
struct peer {
    bool is_self;
    char name[]; /* at most OBJECT_NAME_MAX bytes */
};

struct slice {
    struct slice *next;
    struct peer **at;
    size_t n;
    uint32_t list; /* the list that named it last */
    char key[OBJECT_KEY_MAX];
};

struct peer_set {
    struct peer_set_options options;
    struct slice *slices;
    struct sv *names; /* of the last peer_set_now() */
    uint32_t list;
};

/* ---- one slice ------------------------------------------------------------------------------- */

/* A condition that is not given takes the value that the API documents for that: ready true,
 * terminating false. With publishNotReadyAddresses the API server says that all are ready, also
 * those that end, which therefore are told apart here. */
static bool is_member(const json_t *endpoint)
{
    const json_t *conditions = json_object_get(endpoint, "conditions");
    return !json_is_false(json_object_get(conditions, "ready")) &&
           !json_is_true(json_object_get(conditions, "terminating"));
}

static struct sv name_of(const json_t *endpoint)
{
    const json_t *target = json_object_get(endpoint, "targetRef");
    if (sv_eq_str(object_string(target, "kind"), "Pod") && object_string(target, "name").n > 0) {
        return object_string(target, "name");
    }
    struct sv hostname = object_string(endpoint, "hostname");
    const json_t *address = json_array_get(json_object_get(endpoint, "addresses"), 0);
    if (hostname.n > 0 || !json_is_string(address)) {
        return hostname;
    }
    return sv_from(json_string_value(address));
}

static bool has_address(const json_t *endpoint, const char *ip)
{
    const json_t *addresses = json_object_get(endpoint, "addresses");
    for (size_t i = 0; ip[0] != '\0' && i < json_array_size(addresses); i++) {
        const json_t *address = json_array_get(addresses, i);
        if (json_is_string(address) && strcmp(json_string_value(address), ip) == 0) {
            return true;
        }
    }
    return false;
}

static struct peer *peer_new(const struct peer_set_options *options, const json_t *endpoint,
                             struct sv name)
{
    struct peer *p = malloc(sizeof(*p) + name.n + 1);
    if (p != NULL) {
        p->is_self = sv_eq_str(name, options->self) || has_address(endpoint, options->self_ip);
        memcpy(p->name, name.p, name.n);
        p->name[name.n] = '\0';
    }
    return p;
}

static void clear_slice(struct slice *slice)
{
    for (size_t i = 0; i < slice->n; i++) {
        free(slice->at[i]);
    }
    free(slice->at);
    slice->at = NULL;
    slice->n = 0;
}

static struct slice *slice_free(struct slice *slice)
{
    if (slice != NULL) {
        clear_slice(slice);
        free(slice);
    }
    return NULL;
}

static bool fill(struct slice *slice, const struct peer_set_options *options,
                 const json_t *endpoints)
{
    size_t n = json_array_size(endpoints);
    slice->at = calloc(n + 1, sizeof(struct peer *));
    for (size_t i = 0; slice->at != NULL && i < n; i++) {
        const json_t *endpoint = json_array_get(endpoints, i);
        struct sv name = name_of(endpoint);
        /* IPv6 addresses are no names of objects; they are short. */
        if (!is_member(endpoint) || name.n == 0 || name.n > OBJECT_NAME_MAX) {
            continue;
        }
        struct peer *peer = peer_new(options, endpoint, name);
        if (peer == NULL) {
            return false;
        }
        slice->at[slice->n++] = peer;
    }
    return slice->at != NULL;
}

/* ---- all slices ------------------------------------------------------------------------------ */

struct peer_set *peer_set_new(const struct peer_set_options *options)
{
    struct peer_set *s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->options = *options;
    }
    return s;
}

struct peer_set *peer_set_free(struct peer_set *s)
{
    while (s != NULL && s->slices != NULL) {
        struct slice *next = s->slices->next;
        slice_free(s->slices);
        s->slices = next;
    }
    if (s != NULL) {
        free(s->names);
    }
    free(s);
    return NULL;
}

static struct slice **find(struct peer_set *s, const char *key)
{
    struct slice **at = &s->slices;
    while (*at != NULL && strcmp((*at)->key, key) != 0) {
        at = &(*at)->next;
    }
    return at;
}

bool peer_set_put(struct peer_set *s, const struct object_id *id, const json_t *slice)
{
    struct slice *made = calloc(1, sizeof(*made));
    if (made == NULL || !fill(made, &s->options, json_object_get(slice, "endpoints"))) {
        slice_free(made);
        return false;
    }
    object_key(id, made->key);
    made->list = s->list;
    struct slice **at = find(s, made->key);
    if (*at != NULL) {
        made->next = (*at)->next;
        slice_free(*at);
    }
    *at = made;
    return true;
}

static void drop(struct slice **at)
{
    struct slice *gone = *at;
    *at = gone->next;
    slice_free(gone);
}

void peer_set_remove(struct peer_set *s, const struct object_id *id)
{
    char key[OBJECT_KEY_MAX];
    object_key(id, key);
    struct slice **at = find(s, key);
    if (*at != NULL) {
        drop(at);
    }
}

void peer_set_list_begin(struct peer_set *s)
{
    s->list++;
}

void peer_set_list_end(struct peer_set *s)
{
    struct slice **at = &s->slices;
    while (*at != NULL) {
        if ((*at)->list != s->list) {
            drop(at);
        } else {
            at = &(*at)->next;
        }
    }
}

static int compare(const void *a, const void *b)
{
    return sv_cmp(*(const struct sv *)a, *(const struct sv *)b);
}

/* A pod of a dual-stack Service stands in a slice of each family, and for a moment in two of one
 * family when the controller moves it. */
static size_t unique(struct sv *names, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (out == 0 || !sv_eq(names[out - 1], names[i])) {
            names[out++] = names[i];
        }
    }
    return out;
}

static size_t find_name(const struct sv *names, size_t n, struct sv name)
{
    for (size_t i = 0; i < n; i++) {
        if (sv_eq(names[i], name)) {
            return i;
        }
    }
    return SIZE_MAX;
}

bool peer_set_now(struct peer_set *s, struct peers_now *ret)
{
    size_t n = 0;
    for (const struct slice *slice = s->slices; slice != NULL; slice = slice->next) {
        n += slice->n;
    }
    struct sv *names = calloc(n + 1, sizeof(*names));
    if (names == NULL) {
        return false;
    }
    struct sv self = {.p = "", .n = 0};
    n = 0;
    for (const struct slice *slice = s->slices; slice != NULL; slice = slice->next) {
        for (size_t i = 0; i < slice->n; i++) {
            names[n] = sv_from(slice->at[i]->name);
            self = slice->at[i]->is_self ? names[n] : self;
            n++;
        }
    }
    qsort(names, n, sizeof(*names), compare);
    n = unique(names, n);
    *ret = (struct peers_now){.names = names,
                              .n = n > PEERS_MAX ? PEERS_MAX : n,
                              .ignored = n > PEERS_MAX ? n - PEERS_MAX : 0};
    ret->self = find_name(names, ret->n, self);
    free(s->names);
    s->names = names;
    return true;
}

/* ---- the watch ------------------------------------------------------------------------------- */

struct peers {
    struct peers_options options;
    struct reflectors reflectors;
    struct reflector_listener listener;
    struct peer_set *set;
    bool listing; /* half of a list is known */
    bool told_ignored;
};

static bool tell(struct peers *p)
{
    struct peers_now now;
    if (!peer_set_now(p->set, &now)) {
        return false;
    }
    if (now.ignored > 0 && !p->told_ignored) {
        p->told_ignored = true;
        log_warn(p->options.env.log, "sharding: too many endpoints, ignoring the rest",
                 LOG_STR("service", p->options.config->service), LOG_INT("limit", PEERS_MAX),
                 LOG_INT("ignored", now.ignored));
    }
    p->options.on_members(p->options.arg, now.names, now.n, now.self);
    return true;
}

static enum reflector_result on_object(void *arg, enum reflector_event event,
                                       const struct object_id *id, const json_t *object)
{
    struct peers *p = arg;
    if (event == OBJECT_GONE) {
        peer_set_remove(p->set, id);
    } else if (!peer_set_put(p->set, id, object)) {
        return REFLECTOR_NO_MEMORY;
    }
    return p->listing || tell(p) ? REFLECTOR_CHANGED : REFLECTOR_NO_MEMORY;
}

static void on_list_begin(void *arg)
{
    struct peers *p = arg;
    p->listing = true;
    peer_set_list_begin(p->set);
}

static void on_list_end(void *arg)
{
    struct peers *p = arg;
    p->listing = false;
    peer_set_list_end(p->set);
    if (!tell(p)) {
        metric_inc(p->options.env.counters->skips[SKIP_MEMORY]);
    }
}

static void on_reachable(void *arg, bool reachable)
{
    const struct peers *p = arg;
    p->options.on_reachable(p->options.arg, reachable);
}

static struct reflector *make_reflector(struct peers *p, const char *namespace)
{
    struct buf selector;
    buf_init(&selector, SELECTOR_MAX);
    buf_puts(&selector, "labelSelector=");
    url_encode(SV(SERVICE_LABEL "="), &selector);
    url_encode(sv_from(p->options.config->service), &selector);
    struct reflector *r = NULL;
    if (buf_ok(&selector)) {
        r = reflectors_get(&p->reflectors, &(struct reflector_options){
                                               .resource = &kube_endpointslices.resource,
                                               .access = p->options.access,
                                               .namespace = namespace,
                                               .selectors = selector.data,
                                           });
    }
    buf_done(&selector);
    return r;
}

struct peers *peers_new(const struct peers_options *options, struct err *err)
{
    const char *given = options->config->namespace;
    const char *namespace = given[0] != '\0' ? given : options->access.namespace;
    if (namespace == NULL) {
        err_set(err, ERR_INPUT,
                "the own namespace is not known (no file \"namespace\" beside the service "
                "account's token, or none in the kubeconfig's context): give sharding.namespace");
        return NULL;
    }
    struct peers *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        err_memory(err);
        return NULL;
    }
    p->options = *options;
    p->reflectors.env = options->env;
    p->set = peer_set_new(&options->set);
    struct reflector *r = p->set == NULL ? NULL : make_reflector(p, namespace);
    if (r == NULL) {
        err_memory(err);
        return peers_free(p);
    }
    p->listener = (struct reflector_listener){.list_begin = on_list_begin,
                                              .list_end = on_list_end,
                                              .object = on_object,
                                              .reachable = on_reachable,
                                              .arg = p};
    reflector_listen(r, &p->listener);
    return p;
}

void peers_start(struct peers *p)
{
    reflectors_start(&p->reflectors);
}

struct peers *peers_free(struct peers *p)
{
    if (p != NULL) {
        reflectors_free(&p->reflectors);
        peer_set_free(p->set);
        free(p);
    }
    return NULL;
}

#include "discovery/kubernetes/peers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "discovery/kubernetes/roles.h"
#include "http/url.h"

#define SERVICE_LABEL "kubernetes.io/service-name"
#define SELECTOR_MAX ((size_t)4096)

/* The members of one slice. */
struct slice {
    struct buf names; /* the names, each with a NUL at its end */
    size_t n;
    size_t self;          /* offset of our own name in names; SIZE_MAX if it is not there */
    struct buf addresses; /* their first addresses, each with a NUL at its end */
    size_t n_addresses;
    uint32_t list; /* number of the last list that named the slice */
};

struct peer_set {
    struct peer_set_options options;
    struct map *slices; /* "namespace/name" -> struct slice */
    struct sv *names;   /* the names returned by the last peer_set_now() */
    uint32_t list;
};

/* ---- one slice ------------------------------------------------------------------------------- */

/* Returns true if an endpoint is ready and not terminating. A missing condition has the value that
 * the API documents: ready true, terminating false. With publishNotReadyAddresses the API server
 * reports all as ready, terminating ones too: these are excluded here. */
static bool is_member(const struct kube_endpoint *endpoint)
{
    return endpoint->ready != FLAG_FALSE && endpoint->terminating != FLAG_TRUE;
}

static struct sv name_of(const struct kube_endpoint *endpoint)
{
    const struct kube_reference *target = &endpoint->target;
    if (sv_eq_str(target->kind, "Pod") && target->name.n > 0) {
        return target->name;
    }
    const struct schema_text *address = endpoint->addresses.first;
    return endpoint->hostname.n > 0 ? endpoint->hostname : address == NULL ? SV("") : address->text;
}

static bool has_address(const struct kube_endpoint *endpoint, const char *ip)
{
    for (const struct schema_text *t = endpoint->addresses.first; t != NULL; t = t->next) {
        if (ip[0] != '\0' && sv_eq_str(t->text, ip)) {
            return true;
        }
    }
    return false;
}

static void slice_free(void *p)
{
    struct slice *slice = p;
    if (slice != NULL) {
        buf_done(&slice->names);
        buf_done(&slice->addresses);
        free(slice);
    }
}

/* Adds the first address of a member, unless it is the name of a host. */
static void add_address(struct slice *slice, const struct kube_endpoint *endpoint)
{
    const struct schema_text *address = endpoint->addresses.first;
    char text[INET6_ADDRSTRLEN];
    unsigned char parsed[sizeof(struct in6_addr)];
    if (address == NULL || address->text.n >= sizeof(text)) {
        return;
    }
    (void)snprintf(text, sizeof(text), "%.*s", SV_ARG(address->text));
    if (inet_pton(AF_INET, text, parsed) == 1 || inet_pton(AF_INET6, text, parsed) == 1) {
        buf_append(&slice->addresses, text, strlen(text) + 1);
        slice->n_addresses++;
    }
}

/* Makes a slice with the names of its members; NULL if out of memory. */
static struct slice *slice_new(const struct peer_set_options *options,
                               const struct schema_list *endpoints)
{
    struct slice *slice = calloc(1, sizeof(*slice));
    if (slice == NULL) {
        return NULL;
    }
    buf_init(&slice->names, OBJECT_BYTES_MAX);
    buf_init(&slice->addresses, OBJECT_BYTES_MAX);
    slice->self = SIZE_MAX;
    for (const struct kube_endpoint *endpoint = endpoints->first; endpoint != NULL;
         endpoint = endpoint->next) {
        struct sv name = name_of(endpoint);
        if (!is_member(endpoint) || name.n == 0 || name.n > OBJECT_NAME_MAX ||
            memchr(name.p, '\0', name.n) != NULL) {
            continue;
        }
        if (sv_eq_str(name, options->self) || has_address(endpoint, options->self_ip)) {
            slice->self = slice->names.len;
        }
        buf_append(&slice->names, name.p, name.n);
        buf_putc(&slice->names, '\0');
        slice->n++;
        add_address(slice, endpoint);
    }
    if (!buf_ok(&slice->names) || !buf_ok(&slice->addresses)) {
        slice_free(slice);
        return NULL;
    }
    return slice;
}

/* ---- all slices ------------------------------------------------------------------------------ */

struct peer_set *peer_set_new(const struct peer_set_options *options)
{
    struct peer_set *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->options = *options;
    s->slices = map_new();
    return s->slices == NULL ? peer_set_free(s) : s;
}

struct peer_set *peer_set_free(struct peer_set *s)
{
    if (s != NULL) {
        map_free(s->slices, slice_free);
        free(s->names);
        free(s);
    }
    return NULL;
}

bool peer_set_put(struct peer_set *s, const struct object_id *id, const struct kube_slice *slice)
{
    char key[OBJECT_KEY_MAX];
    void *old = NULL;
    struct slice *made = slice_new(&s->options, &slice->endpoints);
    if (made == NULL || !map_put(s->slices, object_key(id, key), made, &old)) {
        slice_free(made);
        return false;
    }
    made->list = s->list;
    slice_free(old);
    return true;
}

void peer_set_remove(struct peer_set *s, const struct object_id *id)
{
    char key[OBJECT_KEY_MAX];
    slice_free(map_remove(s->slices, object_key(id, key)));
}

void peer_set_list_begin(struct peer_set *s)
{
    s->list++;
}

void peer_set_list_end(struct peer_set *s)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(s->slices, &cursor, &key, &value)) {
        if (((struct slice *)value)->list != s->list) {
            map_remove_at(s->slices, cursor);
            slice_free(value);
        }
    }
}

static int compare_names(const void *a, const void *b)
{
    return sv_cmp(*(const struct sv *)a, *(const struct sv *)b);
}

/* Removes duplicates: a pod of a dual-stack Service is in one slice of each family, and for a
 * moment in two of the same family when the controller moves it. */
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

/* Appends the names of a slice; returns our own name if it is among them, else `self`. */
static struct sv add_names(const struct slice *slice, struct sv *names, size_t *n, struct sv self)
{
    const char *p = slice->names.data;
    for (size_t i = 0; i < slice->n; i++) {
        names[*n] = sv_from(p);
        if ((size_t)(p - slice->names.data) == slice->self) {
            self = names[*n];
        }
        p += names[*n].n + 1;
        (*n)++;
    }
    return self;
}

bool peer_set_now(struct peer_set *s, struct peers_now *ret)
{
    size_t n = 0;
    size_t cursor = 0;
    struct sv key;
    void *slice;
    while (map_next(s->slices, &cursor, &key, &slice)) {
        n += ((const struct slice *)slice)->n;
    }
    struct sv *names = calloc(n + 1, sizeof(*names));
    if (names == NULL) {
        return false;
    }
    struct sv self = {.p = "", .n = 0};
    n = 0;
    cursor = 0;
    while (map_next(s->slices, &cursor, &key, &slice)) {
        self = add_names(slice, names, &n, self);
    }
    qsort(names, n, sizeof(*names), compare_names);
    n = unique(names, n);
    *ret = (struct peers_now){.names = names,
                              .n = n > PEERS_MAX ? PEERS_MAX : n,
                              .ignored = n > PEERS_MAX ? n - PEERS_MAX : 0};
    const struct sv *own = bsearch(&self, names, ret->n, sizeof(*names), compare_names);
    ret->self = own == NULL ? SIZE_MAX : (size_t)(own - names);
    free(s->names);
    s->names = names;
    return true;
}

struct sv *peer_set_addresses(const struct peer_set *s, size_t *ret_n)
{
    size_t n = 0;
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(s->slices, &cursor, &key, &value)) {
        n += ((const struct slice *)value)->n_addresses;
    }
    struct sv *addresses = calloc(n + 1, sizeof(*addresses));
    *ret_n = addresses != NULL ? n : 0;
    n = 0;
    cursor = 0;
    while (addresses != NULL && map_next(s->slices, &cursor, &key, &value)) {
        const struct slice *slice = value;
        const char *p = slice->addresses.data;
        for (size_t i = 0; i < slice->n_addresses; i++) {
            addresses[n] = sv_from(p);
            p += addresses[n++].n + 1;
        }
    }
    return addresses;
}

/* ---- the watch ------------------------------------------------------------------------------- */

struct peers {
    struct peers_options options;
    struct reflectors reflectors;
    struct reflector_listener listener;
    struct peer_set *set;
    bool listing; /* a list is being read */
    bool warned_ignored;
};

static bool report_addresses(const struct peers *p)
{
    const struct discovery_sharing *sharing = p->options.sharing;
    size_t n;
    struct sv *addresses = sharing->on_addresses != NULL ? peer_set_addresses(p->set, &n) : NULL;
    if (addresses != NULL) {
        sharing->on_addresses(sharing->arg, addresses, n);
    }
    free(addresses);
    return sharing->on_addresses == NULL || addresses != NULL;
}

static bool report(struct peers *p)
{
    struct peers_now now;
    if (!peer_set_now(p->set, &now) || !report_addresses(p)) {
        return false;
    }
    if (now.ignored > 0 && !p->warned_ignored) {
        p->warned_ignored = true;
        log_warn(p->options.env.log, "sharding: too many endpoints, ignoring the rest",
                 LOG_STR("service", p->options.config->service), LOG_INT("limit", PEERS_MAX),
                 LOG_INT("ignored", now.ignored));
    }
    p->options.on_members(p->options.arg, now.names, now.n, now.self);
    return true;
}

static enum store_result peers_on_object(void *arg, const struct object_id *id,
                                         const struct kube_object *object)
{
    struct peers *p = arg;
    if (object == NULL) {
        peer_set_remove(p->set, id);
    } else if (!peer_set_put(p->set, id, &object->slice)) {
        return STORE_NO_MEMORY;
    }
    return p->listing || report(p) ? STORE_CHANGED : STORE_NO_MEMORY;
}

static void peers_on_list_begin(void *arg)
{
    struct peers *p = arg;
    p->listing = true;
    peer_set_list_begin(p->set);
}

static void peers_on_list_end(void *arg)
{
    struct peers *p = arg;
    p->listing = false;
    peer_set_list_end(p->set);
    if (!report(p)) {
        metric_inc(p->options.env.counters->skips[SKIP_MEMORY]);
    }
}

static void peers_on_reachable(void *arg, bool reachable)
{
    const struct discovery_sharing *sharing = ((const struct peers *)arg)->options.sharing;
    sharing->on_reachable(sharing->arg, reachable);
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
                "the namespace of this pod is not known (no file \"namespace\" beside the service "
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
    p->set = peer_set_new(&(struct peer_set_options){.self = options->sharing->self,
                                                     .self_ip = options->sharing->self_ip});
    struct reflector *r = p->set == NULL ? NULL : make_reflector(p, namespace);
    if (r == NULL) {
        err_memory(err);
        return peers_free(p);
    }
    p->listener = (struct reflector_listener){.list_begin = peers_on_list_begin,
                                              .list_end = peers_on_list_end,
                                              .object = peers_on_object,
                                              .reachable = peers_on_reachable,
                                              .arg = p};
    reflector_listen(r, &p->listener);
    return p;
}

void peers_start(struct peers *p)
{
    reflector_follow(p->reflectors.first, &p->listener);
}

enum source_state peers_state(const struct peers *p, struct buf *why)
{
    return reflector_state(p->reflectors.first, why);
}

struct reflectors_unread peers_unread(const struct peers *p)
{
    return reflectors_unread(&p->reflectors);
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

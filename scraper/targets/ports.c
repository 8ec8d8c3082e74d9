#include "scraper/targets/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "scraper/targets/settings.h"

#define PORT_NAME SV("__meta_kubernetes_pod_container_port_name")
/* Where a type is to be scraped: a port, or one of these. */
#define PORT_ADDRESS 0u           /* the address has none: the scheme's */
#define PORT_NOWHERE UINT32_MAX   /* not here */
#define PORT_BAD (UINT32_MAX - 1) /* the label is no port number: the scraper says so, once */

/* What one label set wants. */
struct wish {
    uint32_t own;      /* the port that it was discovered with; PORT_NOWHERE if none */
    struct sv host;    /* of its address, relabelled; p is NULL if that is no address */
    uint32_t port;     /* of its address, relabelled */
    uint64_t steering; /* a hash of all else that steers its scrapes */
    uint32_t *at;      /* for each type of the job */
};

bool ports_read(struct sv name)
{
    return sv_eq(name, PORT_NAME) || sv_eq(name, SV(LABEL_ADDRESS));
}

/* ---- the labels ------------------------------------------------------------------------------ */

static struct sv of_type(const struct labels *labels, const char *type, const char *setting)
{
    char name[TYPE_LABEL_MAX];
    return labels_get(labels, type_label(sv_from(type), setting, name));
}

struct sv ports_wanted_name(const struct labels *labels, const char *type)
{
    struct sv name = of_type(labels, type, "port_name");
    if (name.n > 0 || ports_wanted_port(labels, type).n > 0) {
        return name;
    }
    return labels_get(labels, SV("__profile_port_name__"));
}

struct sv ports_wanted_port(const struct labels *labels, const char *type)
{
    if (of_type(labels, type, "port_name").n > 0) {
        return SV("");
    }
    struct sv port = of_type(labels, type, "port");
    return port.n > 0 ? port : labels_get(labels, SV("__profile_port__"));
}

bool ports_wanted(const struct labels *labels, const struct config_type *type)
{
    struct sv enabled = of_type(labels, type->key, "enabled");
    return enabled.n == 0 ? type->enabled : !sv_eq_str(enabled, "false");
}

/* ---- wishes ---------------------------------------------------------------------------------- */

static uint32_t port_of(const struct labels *labels, struct sv *ret_host)
{
    struct sv host;
    uint16_t port = 0;
    struct sv address = labels_get(labels, SV(LABEL_ADDRESS));
    bool ok = split_host_port(address, &host, &port, NULL);
    if (ret_host != NULL) {
        *ret_host = ok ? host : (struct sv){.p = NULL, .n = 0};
    }
    return ok ? port : 0;
}

/* Names that say nothing about how a scrape is made, or that wishes tell apart by themselves. */
static bool steers(struct sv name)
{
    static const char *const others[] = {"__meta_", "__tmp", "__profile_port"};
    if (!sv_starts_with(name, SV("__")) || sv_eq(name, SV(LABEL_ADDRESS))) {
        return false;
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (sv_starts_with(name, sv_from(others[i]))) {
            return false;
        }
    }
    return !sv_starts_with(name, SV("__profile_")) ||
           !(sv_ends_with(name, SV("_port__")) || sv_ends_with(name, SV("_port_name__")));
}

static uint64_t hash_steering(const struct labels *labels, struct sv host)
{
    uint64_t h = hash_bytes(host.p == NULL ? "" : host.p, host.n, 1);
    for (size_t i = 0; i < labels_count(labels); i++) {
        struct label l = labels_at(labels, i);
        if (steers(l.name)) {
            h = hash_bytes(l.name.p, l.name.n, h);
            h = hash_bytes(l.value.p, l.value.n, h);
        }
    }
    return h;
}

static uint32_t wished_port(const struct port_candidate *c, const struct wish *w,
                            const struct config_type *type)
{
    uint64_t number;
    if (!ports_wanted(c->labels, type)) {
        return PORT_NOWHERE;
    }
    struct sv name = ports_wanted_name(c->labels, type->key);
    if (name.n > 0) {
        bool here = sv_eq(name, labels_get(c->discovered, PORT_NAME));
        return here ? w->own : PORT_NOWHERE;
    }
    struct sv port = ports_wanted_port(c->labels, type->key);
    if (port.n == 0) {
        return w->port;
    }
    return parse_u64(port, UINT16_MAX, &number) && number > 0 ? (uint32_t)number : PORT_BAD;
}

static void make_wish(const struct config_job *job, const struct port_candidate *c, struct wish *w)
{
    uint32_t own = port_of(c->discovered, NULL);
    w->own = own == 0 ? PORT_NOWHERE : own;
    w->port = port_of(c->labels, &w->host);
    w->steering = hash_steering(c->labels, w->host);
    for (size_t t = 0; t < job->n_types; t++) {
        w->at[t] = wished_port(c, w, &job->types[t]);
    }
}

/* Whether a comes before b, which wants the same and stands later in the pod. */
static bool yields(const struct wish *first, const struct wish *second, size_t type)
{
    uint32_t port = first->at[type];
    return second->own == port && first->own != port;
}

/* Takes what others have from the wish i. Earlier ones have been through this. */
static void settle(struct wish *wishes, size_t n, size_t i, size_t n_types)
{
    for (size_t t = 0; t < n_types; t++) {
        for (size_t j = 0; j < n && wishes[i].at[t] != PORT_NOWHERE; j++) {
            struct wish *other = &wishes[j];
            if (j == i || other->at == NULL || other->at[t] != wishes[i].at[t] ||
                other->steering != wishes[i].steering) {
                continue;
            }
            bool lost = j < i ? !yields(other, &wishes[i], t) : yields(&wishes[i], other, t);
            if (lost) {
                wishes[i].at[t] = PORT_NOWHERE;
            }
        }
    }
}

/* ---- and what becomes of them ---------------------------------------------------------------- */

static void set_address(struct labels_builder *b, struct sv host, uint32_t port)
{
    char number[16];
    struct buf text;
    bool ipv6 = host.n > 0 && memchr(host.p, ':', host.n) != NULL && host.p[0] != '[';
    buf_init(&text, LABELS_BYTES_MAX);
    snprintf(number, sizeof(number), "%u", port);
    if (buf_printf(&text, ipv6 ? "[%.*s]:%s" : "%.*s:%s", SV_ARG(host), number)) {
        labels_builder_set(b, SV(LABEL_ADDRESS), (struct sv){text.data, text.len});
    }
    buf_done(&text);
}

static bool is_port(uint32_t port)
{
    return port > 0 && port <= UINT16_MAX;
}

/* Writes where one type is scraped; base is the port of the address. */
static void set_type(struct labels_builder *b, const struct config_type *type, uint32_t port,
                     uint32_t base)
{
    char name[TYPE_LABEL_MAX];
    char number[16];
    labels_builder_del(b, type_label(sv_from(type->key), "port_name", name));
    struct sv label = type_label(sv_from(type->key), "port", name);
    if (port == PORT_NOWHERE || port == base) {
        labels_builder_del(b, label);
    } else if (is_port(port)) {
        snprintf(number, sizeof(number), "%u", port);
        labels_builder_set(b, label, sv_from(number));
    }
}

/* The labels to scrape with. NULL if memory ran out. */
static struct labels *apply(const struct config_job *job, const struct labels *labels,
                            const struct wish *w, struct labels_builder *b)
{
    uint32_t base = w->port;
    char name[TYPE_LABEL_MAX];
    /* What is no address stays as it is, for the scraper to refuse. */
    for (size_t t = w->host.p == NULL ? 0 : job->n_types; t > 0; t--) {
        base = is_port(w->at[t - 1]) ? w->at[t - 1] : base;
    }
    labels_builder_reset(b, labels);
    if (base != w->port) {
        set_address(b, w->host, base);
    }
    for (size_t t = 0; t < job->n_types; t++) {
        const struct config_type *type = &job->types[t];
        set_type(b, type, w->at[t], base);
        if (w->at[t] == PORT_NOWHERE && ports_wanted(labels, type)) {
            labels_builder_set(b, type_label(sv_from(type->key), "enabled", name), SV("false"));
        } else if (w->at[t] == PORT_BAD) {
            labels_builder_set(b, type_label(sv_from(type->key), "port", name),
                               ports_wanted_port(labels, type->key));
        }
    }
    labels_builder_del(b, SV("__profile_port__"));
    labels_builder_del(b, SV("__profile_port_name__"));
    return labels_builder_build(b);
}

static bool any_left(const struct wish *w, size_t n_types)
{
    for (size_t t = 0; t < n_types; t++) {
        if (w->at[t] != PORT_NOWHERE) {
            return true;
        }
    }
    return false;
}

static bool replace(const struct config_job *job, struct port_candidate *c, const struct wish *w,
                    struct labels_builder *b)
{
    struct labels *labels = NULL;
    c->set_aside = !any_left(w, job->n_types);
    if (!c->set_aside) {
        labels = apply(job, c->labels, w, b);
        if (labels == NULL) {
            return false;
        }
    }
    labels_unref(c->labels);
    c->labels = labels;
    return true;
}

/* Most pods of jobs with rules of their own: one label set, and not a word about ports. */
static bool is_settled(const struct port_candidate *at, size_t n)
{
    size_t count = at->labels == NULL || n != 1 ? 0 : labels_count(at->labels);
    for (size_t i = 0; i < count; i++) {
        struct sv name = labels_at(at->labels, i).name;
        if (sv_starts_with(name, SV("__profile_")) && !steers(name)) {
            return false;
        }
    }
    return count > 0;
}

bool ports_choose(const struct config_job *job, struct port_candidate *at, size_t n,
                  struct labels_builder *b)
{
    if (is_settled(at, n)) {
        return true;
    }
    struct wish *wishes = calloc(n + 1, sizeof(*wishes));
    uint32_t *ports = calloc(n * job->n_types + 1, sizeof(*ports));
    bool ok = wishes != NULL && ports != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        if (at[i].labels != NULL) {
            wishes[i].at = &ports[i * job->n_types];
            make_wish(job, &at[i], &wishes[i]);
        }
    }
    for (size_t i = 0; ok && i < n; i++) {
        if (at[i].labels != NULL) {
            settle(wishes, n, i, job->n_types);
        }
    }
    for (size_t i = 0; ok && i < n; i++) {
        ok = at[i].labels == NULL || replace(job, &at[i], &wishes[i], b);
    }
    free(wishes);
    free(ports);
    return ok;
}

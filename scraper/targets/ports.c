#include "scraper/targets/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "scraper/targets/settings.h"

#define PORT_NAME SV("__meta_kubernetes_pod_container_port_name")
#define CONTAINER_NAME SV("__meta_kubernetes_pod_container_name")
/* A port to scrape a type on is a number, or one of these values. */
#define PORT_ADDRESS 0u /* __address__ has none: the default of the scheme */
/* No port: none is discovered, or another label set has the type. */
#define PORT_NOWHERE UINT32_MAX
#define PORT_BAD (UINT32_MAX - 1) /* not a port number: target_new() reports it */

/* The ports of one label set. */
struct port_choice {
    uint32_t own;         /* the discovered port; PORT_NOWHERE if none */
    struct sv host;       /* the host of the relabelled address; p is NULL if that is invalid */
    uint32_t port;        /* the port of the relabelled address */
    uint64_t scrape_hash; /* a hash of all other labels that affect the scrape */
    uint32_t *at;         /* the port of each type of the job */
};

bool ports_read(struct sv name)
{
    return sv_eq(name, PORT_NAME) || sv_eq(name, CONTAINER_NAME) || sv_eq(name, SV(LABEL_ADDRESS));
}

/* ---- the labels ------------------------------------------------------------------------------ */

static struct sv of_type(const struct labels *labels, const char *type, const char *setting)
{
    char name[TYPE_LABEL_MAX];
    return labels_get(labels, type_label(sv_from(type), setting, name));
}

struct sv ports_wanted_name(const struct labels *labels, const char *type)
{
    if (ports_wanted_port(labels, type).n > 0) {
        return SV("");
    }
    struct sv name = of_type(labels, type, "port_name");
    return name.n > 0 ? name : labels_get(labels, SV("__profile_port_name__"));
}

struct sv ports_wanted_port(const struct labels *labels, const char *type)
{
    struct sv port = of_type(labels, type, "port");
    if (port.n > 0 || of_type(labels, type, "port_name").n > 0) {
        return port;
    }
    return labels_get(labels, SV("__profile_port__"));
}

struct sv ports_wanted_container(const struct labels *labels, const char *type)
{
    return of_type(labels, type, "container");
}

bool ports_wanted(const struct labels *labels, const struct config_type *type)
{
    struct sv enabled = of_type(labels, type->key, "enabled");
    return enabled.n == 0 ? type->enabled : !sv_eq_str(enabled, "false");
}

/* ---- choices --------------------------------------------------------------------------------- */

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

/* Returns true if a label affects the scrape other than through struct port_choice. */
static bool affects_scrape(struct sv name)
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
           !(sv_ends_with(name, SV("_port__")) || sv_ends_with(name, SV("_port_name__")) ||
             sv_ends_with(name, SV("_container__")));
}

static uint64_t hash_scrape_labels(const struct labels *labels, struct sv host)
{
    uint64_t h = hash_bytes(host.p == NULL ? "" : host.p, host.n, 1);
    for (size_t i = 0; i < labels_count(labels); i++) {
        struct label l = labels_at(labels, i);
        if (affects_scrape(l.name)) {
            h = hash_bytes(l.name.p, l.name.n, h);
            h = hash_bytes(l.value.p, l.value.n, h);
        }
    }
    return h;
}

static uint32_t chosen_port(const struct port_candidate *c, const struct port_choice *w,
                            const struct config_type *type)
{
    uint64_t number;
    struct sv container = ports_wanted_container(c->labels, type->key);
    bool other = container.n > 0 && !sv_eq(container, labels_get(c->discovered, CONTAINER_NAME));
    if (other || !ports_wanted(c->labels, type)) {
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

static void make_choice(const struct config_job *job, const struct port_candidate *c,
                        struct port_choice *w)
{
    uint32_t own = port_of(c->discovered, NULL);
    w->own = own == 0 ? PORT_NOWHERE : own;
    w->port = port_of(c->labels, &w->host);
    w->scrape_hash = hash_scrape_labels(c->labels, w->host);
    for (size_t t = 0; t < job->n_types; t++) {
        w->at[t] = chosen_port(c, w, &job->types[t]);
    }
}

/* Returns true if the first of two label sets with the same port yields to the second, which owns
 * the port. */
static bool yields(const struct port_choice *first, const struct port_choice *second, size_t type)
{
    uint32_t port = first->at[type];
    return second->own == port && first->own != port;
}

/* Removes from choice i the types that another choice gets. Earlier choices are settled. Returns
 * false if no type is left. */
static bool settle(struct port_choice *choices, size_t n, size_t i, size_t n_types)
{
    bool any_left = false;
    for (size_t t = 0; t < n_types; t++) {
        for (size_t j = 0; j < n && choices[i].at[t] != PORT_NOWHERE; j++) {
            struct port_choice *other = &choices[j];
            if (j == i || other->at == NULL || other->at[t] != choices[i].at[t] ||
                other->scrape_hash != choices[i].scrape_hash) {
                continue;
            }
            bool lost = j < i ? !yields(other, &choices[i], t) : yields(&choices[i], other, t);
            if (lost) {
                choices[i].at[t] = PORT_NOWHERE;
            }
        }
        any_left = any_left || choices[i].at[t] != PORT_NOWHERE;
    }
    return any_left;
}

/* ---- labels to scrape with ------------------------------------------------------------------- */

static void set_address(struct labels_builder *b, struct sv host, uint32_t port)
{
    struct buf text;
    bool ipv6 = host.n > 0 && memchr(host.p, ':', host.n) != NULL && host.p[0] != '[';
    buf_init(&text, LABELS_BYTES_MAX);
    if (buf_printf(&text, ipv6 ? "[%.*s]:%u" : "%.*s:%u", SV_ARG(host), port)) {
        labels_builder_set(b, SV(LABEL_ADDRESS), (struct sv){text.data, text.len});
    }
    buf_done(&text);
}

static bool is_port(uint32_t port)
{
    return port > 0 && port <= UINT16_MAX;
}

/* Removes all labels about the port of a type. */
static void forget_port(struct labels_builder *b, const struct config_type *type)
{
    static const char *const settings[] = {"port", "port_name", "container"};
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        char name[TYPE_LABEL_MAX];
        labels_builder_del(b, type_label(sv_from(type->key), settings[i], name));
    }
}

/* Sets the port of one type if it differs from base, the port of the address. labels: the labels
 * after the rules. */
static void set_type(struct labels_builder *b, const struct labels *labels,
                     const struct config_type *type, uint32_t port, uint32_t base)
{
    char name[TYPE_LABEL_MAX];
    char number[16];
    struct sv label = type_label(sv_from(type->key), "port", name);
    if (port == PORT_NOWHERE && ports_wanted(labels, type)) {
        labels_builder_set(b, type_label(sv_from(type->key), "enabled", name), SV("false"));
    } else if (port == PORT_BAD) {
        labels_builder_set(b, label, ports_wanted_port(labels, type->key));
    } else if (port != base && is_port(port)) {
        snprintf(number, sizeof(number), "%u", port);
        labels_builder_set(b, label, sv_from(number));
    }
}

/* Returns the labels to scrape with. Returns NULL if memory ran out. */
static struct labels *apply(const struct config_job *job, const struct labels *labels,
                            const struct port_choice *w, struct labels_builder *b)
{
    uint32_t base = w->port;
    /* An invalid address is left for target_new() to refuse. */
    for (size_t t = w->host.p == NULL ? 0 : job->n_types; t > 0; t--) {
        base = is_port(w->at[t - 1]) ? w->at[t - 1] : base;
    }
    labels_builder_reset(b, labels);
    if (base != w->port) {
        set_address(b, w->host, base);
    }
    /* Types whose keys differ only in signs ("a-b", "a.b") have the same labels, so all are removed
     * before the first one is set. */
    for (size_t t = 0; t < job->n_types; t++) {
        forget_port(b, &job->types[t]);
    }
    for (size_t t = 0; t < job->n_types; t++) {
        set_type(b, labels, &job->types[t], w->at[t], base);
    }
    labels_builder_del(b, SV("__profile_port__"));
    labels_builder_del(b, SV("__profile_port_name__"));
    return labels_builder_build(b);
}

static bool replace(const struct config_job *job, struct port_candidate *c,
                    const struct port_choice *w, struct labels_builder *b)
{
    struct labels *labels = NULL;
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

/* Returns true if there is nothing to choose: the rules have left only one label set, and it has no
 * labels about ports, as for most pods of jobs with their own rules. If there were several label
 * sets before, the one that is left must have no `__profile_*` label at all: such a label may
 * switch all types off, and the label set would be set aside then. */
static bool is_settled(const struct port_candidate *at, size_t n)
{
    const struct labels *only = NULL;
    for (size_t i = 0; i < n; i++) {
        if (only != NULL && at[i].labels != NULL) {
            return false;
        }
        only = at[i].labels != NULL ? at[i].labels : only;
    }
    size_t count = only == NULL ? 0 : labels_count(only);
    for (size_t i = 0; i < count; i++) {
        struct sv name = labels_at(only, i).name;
        if (sv_starts_with(name, SV("__profile_")) && (n > 1 || !affects_scrape(name))) {
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
    struct port_choice *choices = calloc(n + 1, sizeof(*choices));
    uint32_t *ports = calloc(n * job->n_types + 1, sizeof(*ports));
    bool ok = choices != NULL && ports != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        if (at[i].labels != NULL) {
            choices[i].at = &ports[i * job->n_types];
            make_choice(job, &at[i], &choices[i]);
        }
    }
    for (size_t i = 0; ok && i < n; i++) {
        if (at[i].labels != NULL) {
            at[i].set_aside = !settle(choices, n, i, job->n_types);
            ok = replace(job, &at[i], &choices[i], b);
        }
    }
    free(choices);
    free(ports);
    return ok;
}

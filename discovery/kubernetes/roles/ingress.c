/* A target for each path of an ingress, as in Prometheus' kubernetes_sd role "ingress". The address
 * is the host of the rule. Pure. */
#include "discovery/kubernetes/roles.h"

#define INGRESS META "ingress_"

static const struct json_keep path_keep[] = {{"path", NULL}, {NULL, NULL}};
static const struct json_keep http_keep[] = {{"paths", path_keep}, {NULL, NULL}};
static const struct json_keep rule_keep[] = {{"host", NULL}, {"http", http_keep}, {NULL, NULL}};
static const struct json_keep spec_keep[] = {
    {"ingressClassName", NULL}, {"tls", NULL}, {"rules", rule_keep}, {NULL, NULL}};

static const struct json_keep ingress_keep[] = {OBJECT_KEEP, {"spec", spec_keep}, {NULL, NULL}};

/* "*.example.com" covers "a.example.com" but neither "example.com" nor "a.b.example.com". */
static bool covers(struct sv pattern, struct sv host)
{
    struct sv first;
    struct sv rest;
    if (sv_eq(pattern, host)) {
        return true;
    }
    return sv_starts_with(pattern, SV("*.")) && sv_cut(host, '.', &first, &rest) && first.n > 0 &&
           sv_eq(rest, (struct sv){pattern.p + 2, pattern.n - 2});
}

static bool has_tls(const json_t *spec, struct sv host)
{
    const json_t *tls = json_object_get(spec, "tls");
    for (size_t i = 0; i < json_array_size(tls); i++) {
        const json_t *hosts = json_object_get(json_array_get(tls, i), "hosts");
        for (size_t k = 0; k < json_array_size(hosts); k++) {
            const json_t *pattern = json_array_get(hosts, k);
            if (json_is_string(pattern) && covers(object_text(pattern), host)) {
                return true;
            }
        }
    }
    return false;
}

static void add_path(struct maker *m, struct sv host, bool tls, struct sv path)
{
    maker_begin(m);
    maker_set(m, SV(LABEL_ADDRESS), host);
    maker_set_text(m, INGRESS "scheme", tls ? "https" : "http");
    maker_set(m, SV(INGRESS "host"), host);
    maker_set(m, SV(INGRESS "path"), path.n == 0 ? SV("/") : path);
    maker_add(m);
}

/* A rule without "http" matches everything; one with "http" but without paths matches nothing. */
static void add_rule(struct maker *m, const json_t *spec, const json_t *rule)
{
    struct sv host = object_string(rule, "host");
    bool tls = has_tls(spec, host);
    const json_t *http = json_object_get(rule, "http");
    if (!json_is_object(http)) {
        add_path(m, host, tls, SV("/"));
        return;
    }
    const json_t *paths = json_object_get(http, "paths");
    for (size_t i = 0; i < json_array_size(paths); i++) {
        add_path(m, host, tls, object_string(json_array_get(paths, i), "path"));
    }
}

static enum object_status read_ingress(const json_t *ingress, struct labels_builder *builder,
                                       struct object_targets *ret)
{
    const json_t *spec = json_object_get(ingress, "spec");
    const json_t *rules = json_object_get(spec, "rules");
    struct maker m;
    maker_init(&m, builder, ret);
    maker_set(&m, SV(INGRESS "class_name"), object_string(spec, "ingressClassName"));
    maker_set_metadata(&m, json_object_get(ingress, "metadata"), "ingress");
    maker_share(&m);
    for (size_t i = 0; i < json_array_size(rules); i++) {
        add_rule(&m, spec, json_array_get(rules, i));
    }
    return maker_done(&m);
}

const struct kube_role kube_ingresses = {
    .resource = {ROLE_INGRESS, "networking.k8s.io", "ingresses", "Ingress", true, ingress_keep},
    .source = "ingress",
    .read = read_ingress,
};

/* Makes a target for each path of an ingress, as in Prometheus' kubernetes_sd role "ingress". The
 * address is the host of the rule. Pure. */
#include "discovery/kubernetes/roles.h"

#define INGRESS META "ingress_"

static const struct schema_row tls_rows[] = {
    SCHEMA_MEMBER("hosts", 1, TEXTS, struct kube_tls, hosts),
    SCHEMA_END,
};
static const struct schema_row path_rows[] = {
    SCHEMA_MEMBER("path", 1, TEXT, struct kube_path, path),
    SCHEMA_END,
};
static const struct schema_row http_rows[] = {
    SCHEMA_LIST_OF("paths", 1, struct kube_path, path_rows, struct kube_rule, paths),
    SCHEMA_END,
};
#define HTTP(field)                                                                                \
    {                                                                                              \
        .name = "http", .number = (field), .kind = SCHEMA_NOTED, .members = http_rows,             \
        .offset = offsetof(struct kube_rule, has_http)                                             \
    }
/* In protobuf, "http" is nested one level deeper than in JSON. */
static const struct schema_row value_rows[] = {HTTP(1), SCHEMA_END};
static const struct schema_row rule_rows[] = {
    SCHEMA_MEMBER("host", 1, TEXT, struct kube_rule, host),
    HTTP(0),
    SCHEMA_PART_OF("", 2, value_rows),
    SCHEMA_END,
};
static const struct schema_row spec_rows[] = {
    SCHEMA_LIST_OF("tls", 2, struct kube_tls, tls_rows, struct kube_object, ingress.tls),
    SCHEMA_LIST_OF("rules", 3, struct kube_rule, rule_rows, struct kube_object, ingress.rules),
    SCHEMA_MEMBER("ingressClassName", 4, TEXT, struct kube_object, ingress.class_name),
    SCHEMA_END,
};
static const struct schema_row ingress_rows[] = {
    OBJECT_ROWS,
    SCHEMA_PART_OF("spec", 2, spec_rows),
    SCHEMA_END,
};

/* Returns true if a host matches a pattern: "*.example.com" covers "a.example.com" but neither
 * "example.com" nor "a.b.example.com". */
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

static bool has_tls(const struct kube_ingress *ingress, struct sv host)
{
    for (const struct kube_tls *tls = ingress->tls.first; tls != NULL; tls = tls->next) {
        for (const struct schema_text *t = tls->hosts.first; t != NULL; t = t->next) {
            if (covers(t->text, host)) {
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

/* Adds the targets of a rule. A rule without "http" matches everything and has one target; a rule
 * with "http" but without paths has none. */
static void add_rule(struct maker *m, const struct kube_ingress *ingress,
                     const struct kube_rule *rule)
{
    bool tls = has_tls(ingress, rule->host);
    if (!rule->has_http) {
        add_path(m, rule->host, tls, SV("/"));
    }
    for (const struct kube_path *p = rule->paths.first; p != NULL; p = p->next) {
        add_path(m, rule->host, tls, p->path);
    }
}

static enum object_status read_ingress(const struct kube_object *object,
                                       struct labels_builder *builder, struct object_targets *ret)
{
    const struct kube_ingress *ingress = &object->ingress;
    struct maker m;
    maker_init(&m, builder, ret);
    maker_set(&m, SV(INGRESS "class_name"), ingress->class_name);
    maker_set_metadata(&m, &object->metadata, "ingress");
    maker_share(&m);
    for (const struct kube_rule *rule = ingress->rules.first; rule != NULL; rule = rule->next) {
        add_rule(&m, ingress, rule);
    }
    return maker_done(&m);
}

const struct kube_role kube_ingresses = {
    .resource = {ROLE_INGRESS, "networking.k8s.io", "ingresses", "Ingress", true, ingress_rows,
                 false},
    .source = "ingress",
    .read = read_ingress,
};

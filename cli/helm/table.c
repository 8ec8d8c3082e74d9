#include "cli/helm/table.h"

#include <stdlib.h>
#include <string.h>

static bool is_true(const struct yaml_node *n)
{
    return n != NULL && n->kind == YAML_SCALAR && sv_eq_str(n->text, "true");
}

/* ---- values that change ---------------------------------------------------------------------- */

static void take_type(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    (void)row;
    helm_workload(h)->type = n->kind == YAML_SCALAR ? n->text.p : NULL;
}

static void take_clustering(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    (void)row;
    helm_workload(h)->clustering = is_true(n);
}

static void take_replicas(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    (void)row;
    helm_workload(h)->replicas = n;
}

/* Returns true if a configuration of Alloy may be about profiles: by itself, or by a module. */
static bool may_profile(const struct yaml_node *n)
{
    return n->kind == YAML_SCALAR &&
           (strstr(n->text.p, "pyroscope.") != NULL || strstr(n->text.p, "import.") != NULL);
}

static void take_content(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    if (!may_profile(n)) {
        helm_say(h, n, "ignored", row->path, "it has no component of Pyroscope");
        return;
    }
    helm_set_config(h, n);
    helm_say(h, n, "unchanged", row->path,
             strstr(n->text.p, "{{") == NULL
                 ? "config.inline runs it, with config.format: alloy"
                 : "config.inline runs it; but Alloy's chart expands {{ }}, and ours does not");
}

static void take_map_name(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    helm_set(h, row->to, helm_json(n));
    if (helm_get(h, "config.existing.key") == NULL) {
        helm_set(h, "config.existing.key", json_string("config.alloy"));
    }
    helm_say(h, n, "mapped", row->path,
             "config.existing: this ConfigMap has to exist; its file runs unchanged");
}

static void take_namespaces(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    if (n->kind == YAML_LIST && n->n_items > 0) {
        helm_set(h, row->to, json_string("namespace"));
        helm_say(h, n, "mapped", row->path,
                 "rbac.scope: namespace, that of the release; the others need a RoleBinding each, "
                 "for example in extraObjects");
    }
}

/* A port of a container and of the Service. */
static void take_ports(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    json_t *ports = json_array();
    for (size_t i = 0; n->kind == YAML_LIST && i < n->n_items; i++) {
        const struct yaml_node *p = n->items[i].value;
        const struct yaml_node *protocol = yaml_get(p, "protocol");
        json_t *port = json_object();
        const struct yaml_node *target = yaml_get(p, "targetPort");
        json_object_set_new(port, "name", helm_json(yaml_get(p, "name")));
        json_object_set_new(port, "containerPort",
                            helm_json(target == NULL ? yaml_get(p, "port") : target));
        json_object_set_new(port, "servicePort", helm_json(yaml_get(p, "port")));
        if (protocol != NULL) {
            json_object_set_new(port, "protocol", helm_json(protocol));
        }
        json_array_append_new(ports, port);
    }
    helm_set(h, row->to, ports);
    helm_set(h, "service.enabled", json_true());
    helm_say(h, n, "mapped", row->path, "extraPorts and service.enabled");
}

/* Alloy's hosts are names, with one path for all of them. */
static void take_ingress(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    static const struct {
        const char *from;
        const char *to;
    } same[] = {{"enabled", "enabled"},
                {"ingressClassName", "className"},
                {"annotations", "annotations"},
                {"labels", "labels"},
                {"tls", "tls"}};
    if (!is_true(yaml_get(n, "enabled"))) {
        return;
    }
    json_t *ingress = json_object();
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        const struct yaml_node *value = yaml_get(n, same[i].from);
        if (value != NULL) {
            json_object_set_new(ingress, same[i].to, helm_json(value));
        }
    }
    json_t *hosts = json_array();
    const struct yaml_node *names = yaml_get(n, "hosts");
    const struct yaml_node *path = yaml_get(n, "path");
    for (size_t i = 0; names != NULL && names->kind == YAML_LIST && i < names->n_items; i++) {
        json_t *host = json_object();
        json_t *paths = json_array();
        json_t *one = json_object();
        json_object_set_new(one, "path", path == NULL ? json_string("/") : helm_json(path));
        json_array_append_new(paths, one);
        json_object_set_new(host, "host", helm_json(names->items[i].value));
        json_object_set_new(host, "paths", paths);
        json_array_append_new(hosts, host);
    }
    json_object_set_new(ingress, "hosts", hosts);
    helm_set(h, row->to, ingress);
    helm_say(h, n, "mapped", row->path, "ingress, to the admin server with the pages");
}

static void take_autoscaling(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    static const char *const same[] = {"minReplicas", "maxReplicas",
                                       "targetCPUUtilizationPercentage",
                                       "targetMemoryUtilizationPercentage"};
    if (!is_true(yaml_get(n, "enabled"))) {
        return;
    }
    json_t *scaling = json_object();
    json_object_set_new(scaling, "enabled", json_true());
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        const struct yaml_node *value = yaml_get(n, same[i]);
        if (value != NULL) {
            json_object_set_new(scaling, same[i], helm_json(value));
        }
    }
    helm_set(h, row->to, scaling);
    helm_workload(h)->clustering = true;
    helm_say(h, n, "mapped", row->path, "autoscaling, of a StatefulSet");
}

static void take_enabled_only(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    if (is_true(yaml_get(n, "enabled"))) {
        helm_set(h, row->to, json_true());
        helm_say(h, n, "mapped", row->path, row->why);
    }
}

/* ---- k8s-monitoring -------------------------------------------------------------------------- */

static void take_destination(struct helm *h, const struct yaml_node *n)
{
    const struct yaml_node *type = yaml_get(n, "type");
    const struct yaml_node *url = yaml_get(n, "url");
    const struct yaml_node *tenant = yaml_get(n, "tenantId");
    if (type == NULL || !sv_eq_str(type->text, "pyroscope")) {
        return;
    }
    if (helm_get(h, "pyroscope.url") != NULL) {
        helm_say(h, n, "ignored", "destinations",
                 "a second destination for profiles: name both in `write` of config.inline");
        return;
    }
    if (url != NULL) {
        helm_set(h, "pyroscope.url", helm_json(url));
    }
    if (tenant != NULL) {
        helm_set(h, "pyroscope.tenantId", helm_json(tenant));
    }
    helm_say(h, n, "mapped", "destinations", "pyroscope.url and pyroscope.tenantId");
    if (yaml_get(n, "auth") != NULL) {
        helm_say(h, yaml_get(n, "auth"), "ignored", "destinations",
                 "put the user and the password into a Secret, and name it in "
                 "pyroscope.secret.name");
    }
}

/* Destinations are a list or, in newer versions, a map by name. */
static void take_destinations(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    (void)row;
    for (size_t i = 0; n->kind != YAML_SCALAR && i < n->n_items; i++) {
        take_destination(h, n->items[i].value);
    }
}

static void take_profiling(struct helm *h, const struct helm_row *row, const struct yaml_node *n)
{
    static const struct {
        const char *name;
        const char *why;
    } kinds[] = {
        {"ebpf", "profpull pulls profiles, and has no eBPF profiler: annotate the programs"},
        {"java", "profpull does not attach to Java programs: pull their recordings, or let the "
                 "agent of Pyroscope push them (docs/recipes.md)"},
    };
    (void)row;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct yaml_node *kind = yaml_get(n, kinds[i].name);
        if (is_true(yaml_get(kind, "enabled"))) {
            helm_say(h, kind, "ignored", kinds[i].name, kinds[i].why);
        }
    }
    const struct yaml_node *pprof = yaml_get(n, "pprof");
    if (is_true(yaml_get(n, "enabled")) && (pprof == NULL || is_true(yaml_get(pprof, "enabled")))) {
        helm_say(h, pprof == NULL ? n : pprof, "unchanged", "profiling.pprof",
                 "the built-in jobs scrape the same annotations, profiles.grafana.com/TYPE.scrape");
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

#define COPY(from, ours)                                                                           \
    {                                                                                              \
        .path = (from), .to = (ours)                                                               \
    }
#define NOTE(from, ours, text)                                                                     \
    {                                                                                              \
        .path = (from), .to = (ours), .why = (text)                                                \
    }
#define IGNORE(from, text)                                                                         \
    {                                                                                              \
        .path = (from), .why = (text)                                                              \
    }
#define OTHER_PROGRAM "it is about Alloy's own image"
#define OWN_PROBES "profpull's chart has probes of its own, for its own paths"
#define NO_RIGHTS "profpull needs no rights of the host; its own security context is stricter"

static const struct helm_row rows[] = {
    COPY("nameOverride", "nameOverride"),
    COPY("fullnameOverride", "fullnameOverride"),
    COPY("namespaceOverride", "namespaceOverride"),
    NOTE("global.image.registry", "global.imageRegistry", "the image has to be there"),
    COPY("global.image.pullSecrets", "global.imagePullSecrets"),
    COPY("global.podSecurityContext", "podSecurityContext"),
    IGNORE("global.image.pullPolicy", OTHER_PROGRAM),
    IGNORE("global.alloyModules", "profpull loads no modules from elsewhere"),
    IGNORE("crds", "profpull has no definitions of its own"),
    {.path = "alloy.configMap.content", .to = "config.inline", .take = take_content},
    {.path = "alloy.configMap.name", .to = "config.existing.name", .take = take_map_name},
    COPY("alloy.configMap.key", "config.existing.key"),
    IGNORE("alloy.configMap.create", "config.inline makes a ConfigMap, config.existing does not"),
    {.path = "alloy.clustering.enabled", .to = "kind", .take = take_clustering},
    IGNORE("alloy.clustering", "replicas find each other through their Service"),
    IGNORE("alloy.stabilityLevel", "every component that profpull has is available"),
    IGNORE("alloy.storagePath", "a spool (spool.enabled) keeps waiting profiles"),
    IGNORE("alloy.enableHttpServerPort", "the admin server has the port 4041"),
    IGNORE("alloy.listenAddr", "the admin server listens on 0.0.0.0:4041; --listen in extraArgs"),
    IGNORE("alloy.listenPort", "the admin server listens on 0.0.0.0:4041; --listen in extraArgs"),
    IGNORE("alloy.listenScheme", "TLS of the admin server is part of the configuration"),
    IGNORE("alloy.initialDelaySeconds", OWN_PROBES),
    IGNORE("alloy.timeoutSeconds", OWN_PROBES),
    IGNORE("alloy.livenessProbe", OWN_PROBES),
    IGNORE("alloy.uiPathPrefix", "server.path_prefix in the configuration"),
    IGNORE("alloy.enableReporting", "profpull reports nothing to anybody"),
    COPY("alloy.extraEnv", "extraEnv"),
    COPY("alloy.envFrom", "envFrom"),
    IGNORE("alloy.command", "it is about Alloy's program"),
    IGNORE("alloy.extraArgs", "they are flags of Alloy's program"),
    {.path = "alloy.extraPorts", .to = "extraPorts", .take = take_ports},
    COPY("alloy.hostAliases", "hostAliases"),
    IGNORE("alloy.mounts.varlog", "profpull reads no logs"),
    IGNORE("alloy.mounts.dockercontainers", "profpull reads no logs"),
    COPY("alloy.mounts.extra", "extraVolumeMounts"),
    IGNORE("alloy.securityContext", NO_RIGHTS),
    NOTE("alloy.resources", "resources", "profpull mostly needs a tenth of this memory"),
    IGNORE("alloy.lifecycle", "its commands are for Alloy's image"),
    COPY("image.pullSecrets", "imagePullSecrets"),
    IGNORE("image", OTHER_PROGRAM),
    COPY("rbac.create", "rbac.create"),
    {.path = "rbac.namespaces", .to = "rbac.scope", .take = take_namespaces},
    IGNORE("rbac", "profpull lists and watches pods; other discovery roles need rbac.rules"),
    COPY("serviceAccount.create", "serviceAccount.create"),
    COPY("serviceAccount.name", "serviceAccount.name"),
    COPY("serviceAccount.annotations", "serviceAccount.annotations"),
    COPY("serviceAccount.additionalLabels", "serviceAccount.labels"),
    IGNORE("serviceAccount", "the pod asks for its token itself"),
    IGNORE("configReloader", "profpull reads a changed configuration by itself"),
    {.path = "controller.type", .to = "kind", .take = take_type},
    {.path = "controller.replicas", .to = "replicas", .take = take_replicas},
    COPY("controller.extraLabels", "commonLabels"),
    COPY("controller.extraAnnotations", "annotations"),
    COPY("controller.podAnnotations", "podAnnotations"),
    COPY("controller.podLabels", "podLabels"),
    COPY("controller.nodeSelector", "nodeSelector"),
    COPY("controller.tolerations", "tolerations"),
    COPY("controller.affinity", "affinity"),
    COPY("controller.topologySpreadConstraints", "topologySpreadConstraints"),
    COPY("controller.priorityClassName", "priorityClassName"),
    COPY("controller.updateStrategy", "updateStrategy"),
    COPY("controller.minReadySeconds", "minReadySeconds"),
    COPY("controller.revisionHistoryLimit", "revisionHistoryLimit"),
    COPY("controller.dnsPolicy", "dnsPolicy"),
    COPY("controller.volumes.extra", "extraVolumes"),
    COPY("controller.initContainers", "initContainers"),
    COPY("controller.extraContainers", "extraContainers"),
    COPY("controller.podDisruptionBudget.enabled", "podDisruptionBudget.enabled"),
    COPY("controller.podDisruptionBudget.maxUnavailable", "podDisruptionBudget.maxUnavailable"),
    COPY("controller.podDisruptionBudget.minAvailable", "podDisruptionBudget.minAvailable"),
    {.path = "controller.autoscaling.horizontal", .to = "autoscaling", .take = take_autoscaling},
    IGNORE("controller.autoscaling", "only the horizontal one exists"),
    IGNORE("controller.parallelRollout", "replicas always start at the same time"),
    IGNORE("controller.hostNetwork", NO_RIGHTS),
    IGNORE("controller.hostPID", NO_RIGHTS),
    IGNORE("controller.terminationGracePeriodSeconds", "drainTimeout sets it, and 10 s more"),
    IGNORE("controller.volumeClaimTemplates", "spool.enabled makes the volume of a StatefulSet"),
    IGNORE("controller.enableStatefulSetAutoDeletePVC", "volumes stay when replicas go"),
    {.path = "networkPolicy",
     .to = "networkPolicy.enabled",
     .take = take_enabled_only,
     .why = "networkPolicy.enabled, with rules of its own: only the admin port can be reached"},
    COPY("service.enabled", "service.enabled"),
    COPY("service.type", "service.type"),
    COPY("service.annotations", "service.annotations"),
    COPY("service.nodePort", "service.nodePort"),
    COPY("service.clusterIP", "service.spec.clusterIP"),
    COPY("service.internalTrafficPolicy", "service.spec.internalTrafficPolicy"),
    COPY("service.externalTrafficPolicy", "service.spec.externalTrafficPolicy"),
    COPY("serviceMonitor.enabled", "serviceMonitor.enabled"),
    COPY("serviceMonitor.interval", "serviceMonitor.interval"),
    COPY("serviceMonitor.additionalLabels", "serviceMonitor.labels"),
    COPY("serviceMonitor.relabelings", "serviceMonitor.relabelings"),
    COPY("serviceMonitor.metricRelabelings", "serviceMonitor.metricRelabelings"),
    IGNORE("serviceMonitor", "no counterpart"),
    {.path = "ingress", .to = "ingress", .take = take_ingress},
    COPY("extraObjects", "extraObjects"),
    IGNORE("enabled", "it says that another chart contains Alloy's"),
    {.path = "destinations", .to = "pyroscope.url", .take = take_destinations},
    {.path = "profiling", .take = take_profiling},
};

const struct helm_row *helm_row_at(size_t i)
{
    return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

const struct helm_row *helm_row(const char *path)
{
    size_t i = 0;
    while (helm_row_at(i) != NULL && strcmp(rows[i].path, path) != 0) {
        i++;
    }
    return helm_row_at(i);
}

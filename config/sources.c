/* Where the targets of a job come from. The messages about Kubernetes are Prometheus'. */
#include <string.h>

#include "config/parts.h"

/* ---- static
 * ---------------------------------------------------------------------------------------- */

static const struct field static_fields[] = {
    {.key = "targets",
     .read = read_strings,
     .offset = offsetof(struct config_static, targets),
     .arg = &text_target,
     .required = true},
    {.key = "labels",
     .read = read_pairs,
     .offset = offsetof(struct config_static, labels),
     .arg = &pairs_labels},
};

static void read_static(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    struct config_source *source = out;
    const struct section section = SECTION(static_fields, &source->fixed);
    source->pos = place_pos(r, at);
    source->kind = SOURCE_STATIC;
    read_sections(r, at, &section, 1);
}

/* ---- file and http
 * ------------------------------------------------------------------------------------- */

#define DEFAULT_FILE_REFRESH_MS (INT64_C(5) * 60 * 1000)
#define DEFAULT_HTTP_REFRESH_MS (INT64_C(60) * 1000)

/* Prometheus' rule: ends in .json, .yml or .yaml, wildcards in the last part only. */
static bool check_target_file(struct sv v)
{
    static const char *const endings[] = {".json", ".yml", ".yaml", ".JSON", ".YML", ".YAML"};
    bool known = false;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        known = known || sv_ends_with(v, sv_from(endings[i]));
    }
    bool wild = false;
    for (size_t i = 0; i < v.n; i++) {
        wild = wild || v.p[i] == '*' || v.p[i] == '?' || v.p[i] == '[';
        if (v.p[i] == '\0' || (wild && v.p[i] == '/')) {
            return false;
        }
    }
    return known;
}

static const struct text_kind text_target_file = {
    .expected = "the name of a file that ends in .json, .yml or .yaml, with wildcards in its last "
                "part only",
    .ok = check_target_file,
    .file_name = true,
};

static const struct range range_refresh = {.min = 1000, .max = UINT64_C(24) * 60 * 60 * 1000};

static const struct field file_fields[] = {
    {.key = "files",
     .read = read_strings,
     .offset = offsetof(struct config_file_sd, files),
     .arg = &text_target_file,
     .required = true},
    {.key = "refresh_interval",
     .read = read_duration,
     .offset = offsetof(struct config_file_sd, refresh_ms),
     .arg = &range_refresh},
};

static void read_file(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    struct config_source *source = out;
    const struct section section = SECTION(file_fields, &source->file);
    source->pos = place_pos(r, at);
    source->kind = SOURCE_FILE;
    source->file.refresh_ms = DEFAULT_FILE_REFRESH_MS;
    size_t before = r->reported;
    read_sections(r, at, &section, 1);
    if (before == r->reported && source->file.files.n == 0) {
        reader_error(r, at, "file service discovery config must contain at least one path name");
    }
}

static const struct field http_sd_fields[] = {
    {.key = "url",
     .read = read_text,
     .offset = offsetof(struct config_http_sd, url),
     .arg = &text_query_url,
     .required = true},
    {.key = "refresh_interval",
     .read = read_duration,
     .offset = offsetof(struct config_http_sd, refresh_ms),
     .arg = &range_refresh},
};

static void read_http(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    struct config_source *source = out;
    struct config_http_sd *h = &source->http;
    source->pos = place_pos(r, at);
    source->kind = SOURCE_HTTP;
    h->refresh_ms = DEFAULT_HTTP_REFRESH_MS;
    http_defaults(&h->http);
    const struct section sections[] = {SECTION(http_sd_fields, h), http_section(&h->http)};
    read_sections(r, at, sections, 2);
    http_check(r, at);
}

/* ---- kubernetes
 * ------------------------------------------------------------------------------------- */

static const char *const roles[] = {"pod",  "service",       "endpoints",
                                    "node", "endpointslice", "ingress"};
#define ROLES (sizeof(roles) / sizeof(roles[0]))

static bool is_role(const char *text)
{
    for (size_t i = 0; i < ROLES; i++) {
        if (strcmp(text, roles[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void read_role(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    const char *role = reader_text(r, at, &text_any);
    if (role == NULL) {
        return;
    }
    if (is_role(role)) {
        *(const char **)out = role;
    } else if (role[0] == '\0') {
        reader_error(r, at,
                     "role missing (one of: pod, service, endpoints, endpointslice, node, "
                     "ingress)");
    } else {
        const char *near = suggest(sv_from(role), roles, ROLES);
        reader_error(r, at, "unknown Kubernetes SD role %s%s%s%s", reader_quote(r, sv_from(role)),
                     near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                     near == NULL ? "" : "\"?");
    }
}

/* What each role selects by. */
static const struct {
    const char *role;
    const char *allowed[4];
    const char *list;
} selector_roles[] = {
    {"pod", {"pod", "node"}, "pod, node"},
    {"service", {"service"}, "service"},
    {"endpointslice", {"pod", "service", "endpointslice"}, "pod, service, endpointslice"},
    {"endpoints", {"pod", "service", "endpoints"}, "pod, service, endpoints"},
    {"node", {"node"}, "node"},
    {"ingress", {"ingress"}, "ingress"},
};

static bool may_select(size_t row, const char *role)
{
    for (size_t i = 0; selector_roles[row].allowed[i] != NULL; i++) {
        if (strcmp(selector_roles[row].allowed[i], role) == 0) {
            return true;
        }
    }
    return false;
}

static void check_selector(struct reader *r, const struct place *at,
                           const struct config_kubernetes *k, size_t index)
{
    const char *role = k->selectors[index].role;
    for (size_t i = 0; i < sizeof(selector_roles) / sizeof(selector_roles[0]); i++) {
        if (strcmp(selector_roles[i].role, k->role) == 0 && !may_select(i, role)) {
            struct place place = place_of_key(at, "role");
            reader_error(r, &place, "%s role supports only %s selectors, got %s", k->role,
                         selector_roles[i].list, reader_quote(r, sv_from(role)));
        }
    }
    if (strcmp(k->role, "pod") == 0 && strcmp(role, "node") == 0 && !k->attach_node) {
        reader_error(r, at, "a selector of role node needs attach_metadata.node");
    }
    for (size_t i = 0; i < index; i++) {
        if (k->selectors[i].role != NULL && strcmp(k->selectors[i].role, role) == 0) {
            reader_error(r, at, "duplicated selector role: %s", role);
            return;
        }
    }
}

/* When the role is known. */
static void check_selectors(struct reader *r, const struct place *source,
                            const struct config_kubernetes *k)
{
    struct place at = place_of_key(source, "selectors");
    if (k->role == NULL || k->n_selectors == 0 || at.node->kind != NODE_LIST) {
        return;
    }
    size_t index = 0;
    for (const struct node_item *i = at.node->items; i != NULL && index < k->n_selectors;
         i = i->next, index++) {
        struct place element = {.parent = &at, .index = index, .node = i->value};
        if (k->selectors[index].role != NULL) {
            check_selector(r, &element, k, index);
        }
    }
}

static void check_attach(struct reader *r, const struct place *at,
                         const struct config_kubernetes *k)
{
    bool ok = k->role == NULL || strcmp(k->role, "pod") == 0 ||
              strncmp(k->role, "endpoints", strlen("endpoints")) == 0;
    if (k->attach_node && !ok) {
        struct place place = place_of_key(at, "attach_metadata");
        reader_error(r, &place, "the role %s has no node to attach", k->role);
    }
    if (k->attach_namespace && k->role != NULL && strcmp(k->role, "node") == 0) {
        struct place place = place_of_key(at, "attach_metadata");
        reader_error(r, &place, "the role node has no namespace to attach");
    }
}

static const struct field selector_fields[] = {
    {.key = "role",
     .read = read_text,
     .offset = offsetof(struct config_selector, role),
     .arg = &text_nonempty,
     .required = true},
    {.key = "label", .read = read_text, .offset = offsetof(struct config_selector, label)},
    {.key = "field", .read = read_text, .offset = offsetof(struct config_selector, field)},
};

static void read_selector(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    struct config_selector *selector = out;
    const struct section section = SECTION(selector_fields, selector);
    selector->label = "";
    selector->field = "";
    read_sections(r, at, &section, 1);
}

static void read_selectors(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct config_kubernetes *k = out;
    void *array = NULL;
    size_t n = 0;
    read_list(r, at, sizeof(struct config_selector), read_selector, arg, &array, &n);
    k->selectors = array;
    k->n_selectors = n;
}

static void read_namespaces(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const struct field fields[] = {
        {.key = "own_namespace",
         .read = read_bool,
         .offset = offsetof(struct config_kubernetes, own_namespace)},
        {.key = "names",
         .read = read_strings,
         .offset = offsetof(struct config_kubernetes, namespaces),
         .arg = &text_namespace},
    };
    const struct section section = SECTION(fields, out);
    read_sections(r, at, &section, 1);
}

static void read_attach_metadata(struct reader *r, const struct place *at, const void *arg,
                                 void *out)
{
    (void)arg;
    static const struct field fields[] = {
        {.key = "node",
         .read = read_bool,
         .offset = offsetof(struct config_kubernetes, attach_node)},
        {.key = "namespace",
         .read = read_bool,
         .offset = offsetof(struct config_kubernetes, attach_namespace)},
    };
    const struct section section = SECTION(fields, out);
    read_sections(r, at, &section, 1);
}

static const struct field kubernetes_fields[] = {
    {.key = "role", .read = read_role, .offset = offsetof(struct config_kubernetes, role)},
    {.key = "namespaces", .read = read_namespaces},
    {.key = "selectors", .read = read_selectors},
    {.key = "attach_metadata", .read = read_attach_metadata},
    {.key = "api_server",
     .read = read_text,
     .offset = offsetof(struct config_kubernetes, api_server),
     .arg = &text_http_url},
    {.key = "kubeconfig_file",
     .read = read_text,
     .offset = offsetof(struct config_kubernetes, kubeconfig_file),
     .arg = &text_file_name},
};

static void check_connection(struct reader *r, const struct place *at,
                             const struct config_kubernetes *k)
{
    bool api_server = node_get(at->node, "api_server") != NULL;
    bool kubeconfig = node_get(at->node, "kubeconfig_file") != NULL;
    bool http = http_any(at->node);
    struct place place = place_of_key(at, kubeconfig ? "kubeconfig_file" : "api_server");
    if (kubeconfig && api_server) {
        reader_error(r, &place, "cannot use 'kubeconfig_file' and 'api_server' simultaneously");
    } else if (kubeconfig && http) {
        reader_error(r, &place,
                     "cannot use a custom HTTP client configuration together with "
                     "'kubeconfig_file'");
    } else if (http && !api_server) {
        reader_error(r, at,
                     "to use custom HTTP client configuration please provide the "
                     "'api_server' URL explicitly");
    }
    if (k->own_namespace && (api_server || kubeconfig)) {
        reader_error(r, &place, "cannot use '%s' and 'namespaces.own_namespace' simultaneously",
                     place.key);
    }
}

static void read_kubernetes(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    struct config_source *source = out;
    struct config_kubernetes *k = &source->kubernetes;
    http_defaults(&k->http);
    const struct section sections[] = {SECTION(kubernetes_fields, k), http_section(&k->http)};
    source->pos = place_pos(r, at);
    source->kind = SOURCE_KUBERNETES;
    size_t before = r->reported;
    read_sections(r, at, sections, 2);
    if (node_get(at->node, "role") == NULL && (before == r->reported || k->role == NULL) &&
        (at->node->kind == NODE_MAPPING || node_is_null(at->node))) {
        reader_error(r, at,
                     "role missing (one of: pod, service, endpoints, endpointslice, node, "
                     "ingress)");
    }
    check_selectors(r, at, k);
    check_attach(r, at, k);
    check_connection(r, at, k);
    http_check(r, at);
}

/* ---- all of them
 * ------------------------------------------------------------------------------------ */

const char *config_source_kind_name(enum config_source_kind kind)
{
    static const char *const names[] = {
        [SOURCE_STATIC] = "static",
        [SOURCE_FILE] = "file",
        [SOURCE_HTTP] = "http",
        [SOURCE_KUBERNETES] = "kubernetes",
    };
    return names[kind];
}

static const struct {
    const char *key;
    read_fn *read;
} kinds[] = {
    {"static_configs", read_static},
    {"file_sd_configs", read_file},
    {"http_sd_configs", read_http},
    {"kubernetes_sd_configs", read_kubernetes},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

void read_sources(struct reader *r, const struct place *job_place, struct config_job *job)
{
    struct config_source *lists[KINDS] = {NULL};
    size_t counts[KINDS] = {0};
    size_t total = 0;
    for (size_t i = 0; i < KINDS; i++) {
        struct place at = place_of_key(job_place, kinds[i].key);
        if (at.node != job_place->node) {
            void *array = NULL;
            read_list(r, &at, sizeof(struct config_source), kinds[i].read, NULL, &array,
                      &counts[i]);
            lists[i] = array;
            total += counts[i];
        }
    }
    struct config_source *all = reader_alloc(r, total, sizeof(*all));
    if (all == NULL) {
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < KINDS; i++) {
        if (lists[i] != NULL) {
            memcpy(all + n, lists[i], counts[i] * sizeof(*all));
            n += counts[i];
        }
    }
    job->sources = all;
    job->n_sources = n;
}

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

/* Each role, and what its selectors may select. */
static const struct {
    const char *name;
    enum config_role selects[3]; /* up to ROLE_NONE */
} roles[CONFIG_ROLES] = {
    [ROLE_NONE] = {.name = ""},
    [ROLE_POD] = {"pod", {ROLE_POD, ROLE_NODE}},
    [ROLE_SERVICE] = {"service", {ROLE_SERVICE}},
    [ROLE_ENDPOINTS] = {"endpoints", {ROLE_POD, ROLE_SERVICE, ROLE_ENDPOINTS}},
    [ROLE_ENDPOINTSLICE] = {"endpointslice", {ROLE_POD, ROLE_SERVICE, ROLE_ENDPOINTSLICE}},
    [ROLE_NODE] = {"node", {ROLE_NODE}},
    [ROLE_INGRESS] = {"ingress", {ROLE_INGRESS}},
};

const char *config_role_name(enum config_role role)
{
    return roles[role].name;
}

bool config_role_parse(struct sv text, enum config_role *ret_role)
{
    for (size_t i = ROLE_NONE + 1; i < CONFIG_ROLES; i++) {
        if (sv_eq_str(text, roles[i].name)) {
            *ret_role = (enum config_role)i;
            return true;
        }
    }
    return false;
}

/* The closest name, for a hint, or NULL. */
static const char *similar_role(const char *text)
{
    const char *names[CONFIG_ROLES];
    for (size_t i = ROLE_NONE + 1; i < CONFIG_ROLES; i++) {
        names[i - 1] = roles[i].name;
    }
    return suggest(sv_from(text), names, CONFIG_ROLES - 1);
}

static void read_role(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    const char *role = reader_text(r, at, &text_any);
    if (role == NULL || config_role_parse(sv_from(role), out)) {
        return;
    }
    if (role[0] == '\0') {
        reader_error(r, at,
                     "role missing (one of: pod, service, endpoints, endpointslice, node, "
                     "ingress)");
    } else {
        const char *near = similar_role(role);
        reader_error(r, at, "unknown Kubernetes SD role %s%s%s%s", reader_quote(r, sv_from(role)),
                     near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                     near == NULL ? "" : "\"?");
    }
}

/* CONFIG_ROLES stands for every name that is not a role: no source takes it. */
static void read_selector_role(struct reader *r, const struct place *at, const void *arg, void *out)
{
    const char *text = reader_text(r, at, arg);
    enum config_role *role = out;
    if (text != NULL && !config_role_parse(sv_from(text), role)) {
        *role = CONFIG_ROLES;
    }
}

static void refuse_selector(struct reader *r, const struct place *at, enum config_role role)
{
    const enum config_role *may = roles[role].selects;
    struct place place = place_of_key(at, "role");
    const char *got = reader_text(r, &place, &text_any);
    const char *list = config_role_name(may[0]);
    for (size_t i = 1; list != NULL && i < 3 && may[i] != ROLE_NONE; i++) {
        list = arena_printf(r->scratch, "%s, %s", list, config_role_name(may[i]));
    }
    reader_error(r, &place, "%s role supports only %s selectors, got %s", config_role_name(role),
                 list == NULL ? "other" : list, reader_quote(r, sv_from(got == NULL ? "" : got)));
}

static void check_selector(struct reader *r, const struct place *at,
                           const struct config_kubernetes *k, size_t index)
{
    const enum config_role *may = roles[k->role].selects;
    enum config_role role = k->selectors[index].role;
    if (role != may[0] && role != may[1] && role != may[2]) {
        refuse_selector(r, at, k->role);
    }
    if (k->role == ROLE_POD && role == ROLE_NODE && !k->attach_node) {
        reader_error(r, at, "a selector of role node needs attach_metadata.node");
    }
    for (size_t i = 0; i < index; i++) {
        if (k->selectors[i].role == role && role != CONFIG_ROLES) {
            reader_error(r, at, "duplicated selector role: %s", config_role_name(role));
            return;
        }
    }
}

/* When the role is known. */
static void check_selectors(struct reader *r, const struct place *source,
                            const struct config_kubernetes *k)
{
    struct place at = place_of_key(source, "selectors");
    if (k->role == ROLE_NONE || k->n_selectors == 0 || at.node->kind != YAML_LIST) {
        return;
    }
    size_t index = 0;
    for (const struct yaml_item *i = at.node->items; i != NULL && index < k->n_selectors;
         i = i->next, index++) {
        struct place element = {.parent = &at, .index = index, .node = i->value};
        if (k->selectors[index].role != ROLE_NONE) {
            check_selector(r, &element, k, index);
        }
    }
}

static void check_attach(struct reader *r, const struct place *at,
                         const struct config_kubernetes *k)
{
    bool ok = k->role == ROLE_NONE || k->role == ROLE_POD || k->role == ROLE_ENDPOINTS ||
              k->role == ROLE_ENDPOINTSLICE;
    if (k->attach_node && !ok) {
        struct place place = place_of_key(at, "attach_metadata");
        reader_error(r, &place, "the role %s has no node to attach", config_role_name(k->role));
    }
    if (k->attach_namespace && k->role == ROLE_NODE) {
        struct place place = place_of_key(at, "attach_metadata");
        reader_error(r, &place, "the role node has no namespace to attach");
    }
}

static const struct field selector_fields[] = {
    {.key = "role",
     .read = read_selector_role,
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
    bool api_server = yaml_get(at->node, "api_server") != NULL;
    bool kubeconfig = yaml_get(at->node, "kubeconfig_file") != NULL;
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
    if (yaml_get(at->node, "role") == NULL && (before == r->reported || k->role == ROLE_NONE) &&
        (at->node->kind == YAML_MAPPING || yaml_is_null(at->node))) {
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

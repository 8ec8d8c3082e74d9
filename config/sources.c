/* The sources of a job's targets. The messages about Kubernetes are those of Prometheus. */
#include <string.h>

#include "config/dump.h"
#include "config/parts.h"

/* ---- static ---------------------------------------------------------------------------------- */

static const struct field static_rows[] = {
    ROW(config_source, "targets", fixed.targets, &kind_strings, .arg = &text_target,
        .required = true),
    ROW(config_source, "labels", fixed.labels, &kind_pairs, .arg = &pairs_labels),
};
static const struct schema schema_static = SCHEMA(static_rows, sizeof(struct config_source));

/* ---- file and http --------------------------------------------------------------------------- */

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

static void check_files(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct config_source *source = out;
    if (clean && source->file.files.n == 0) {
        reader_error(r, at, "file service discovery config must contain at least one path name");
    }
}

static const struct field file_rows[] = {
    ROW(config_source, "files", file.files, &kind_strings, .arg = &text_target_file,
        .required = true),
    ROW(config_source, "refresh_interval", file.refresh_ms, &kind_duration, .arg = &range_refresh,
        .initial.ms = INT64_C(5) * 60 * 1000),
};
static const struct schema schema_file =
    SCHEMA(file_rows, sizeof(struct config_source), .check = check_files);

static const struct field http_sd_rows[] = {
    ROW(config_source, "url", http.url, &kind_text, .arg = &text_query_url, .required = true),
    ROW(config_source, "refresh_interval", http.refresh_ms, &kind_duration, .arg = &range_refresh,
        .initial.ms = INT64_C(60) * 1000),
    ROW(config_source, NULL, http.http, &kind_mapping, .arg = &schema_http),
};
static const struct schema schema_http_sd = SCHEMA(http_sd_rows, sizeof(struct config_source));

/* ---- kubernetes ------------------------------------------------------------------------------ */

static const char *const role_names[CONFIG_ROLES] = {
    [ROLE_POD] = "pod",
    [ROLE_SERVICE] = "service",
    [ROLE_ENDPOINTS] = "endpoints",
    [ROLE_ENDPOINTSLICE] = "endpointslice",
    [ROLE_NODE] = "node",
    [ROLE_INGRESS] = "ingress",
};
static const struct choices roles = CHOICES(role_names);

/* For each role, the roles that its selectors may have; the list ends with ROLE_NONE. */
#define SELECTS_MAX 3
static const enum config_role selects[CONFIG_ROLES][SELECTS_MAX] = {
    [ROLE_POD] = {ROLE_POD, ROLE_NODE},
    [ROLE_SERVICE] = {ROLE_SERVICE},
    [ROLE_ENDPOINTS] = {ROLE_POD, ROLE_SERVICE, ROLE_ENDPOINTS},
    [ROLE_ENDPOINTSLICE] = {ROLE_POD, ROLE_SERVICE, ROLE_ENDPOINTSLICE},
    [ROLE_NODE] = {ROLE_NODE},
    [ROLE_INGRESS] = {ROLE_INGRESS},
};

const char *config_role_name(enum config_role role)
{
    return choice_name(&roles, role);
}

bool config_role_parse(struct sv text, enum config_role *ret_role)
{
    unsigned role;
    bool found = choice_find(&roles, text, &role);
    if (found) {
        *ret_role = (enum config_role)role;
    }
    return found;
}

static void role_missing(struct reader *r, const struct place *at)
{
    reader_error(r, at, "role missing (one of: %s)",
                 reader_join(r, role_names + 1, CONFIG_ROLES - 1, "", ", "));
}

static void read_role(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    const char *role = reader_text(r, at, &text_any);
    if (role == NULL || config_role_parse(sv_from(role), out)) {
        return;
    }
    if (role[0] == '\0') {
        role_missing(r, at);
    } else {
        reader_error(r, at, "unknown Kubernetes SD role %s%s", reader_quote(r, sv_from(role)),
                     reader_hint(r, sv_from(role), role_names + 1, CONFIG_ROLES - 1));
    }
}

/* Reads the role of a selector. A name that is not a role becomes CONFIG_ROLES, which no source
 * accepts. */
static void read_selector_role(struct reader *r, const struct place *at, const void *arg, void *out)
{
    const char *text = reader_text(r, at, arg);
    enum config_role *role = out;
    if (text != NULL && !config_role_parse(sv_from(text), role)) {
        *role = CONFIG_ROLES;
    }
}

static void write_role(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    dump_text(d, key, &text_any, choice_name(&roles, *(const enum config_role *)value));
}

static void refuse_selector(struct reader *r, const struct place *at, enum config_role role)
{
    const enum config_role *may = selects[role];
    struct place place = place_of_key(at, "role");
    const char *got = reader_text(r, &place, &text_any);
    const char *names[SELECTS_MAX];
    size_t n = 0;
    while (n < SELECTS_MAX && may[n] != ROLE_NONE) {
        names[n] = config_role_name(may[n]);
        n++;
    }
    reader_error(r, &place, "%s role supports only %s selectors, got %s", config_role_name(role),
                 reader_join(r, names, n, "", ", "),
                 reader_quote(r, sv_from(got == NULL ? "" : got)));
}

static void check_selector(struct reader *r, const struct place *at,
                           const struct config_kubernetes *k, size_t index)
{
    const enum config_role *may = selects[k->role];
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

/* Checks the selectors of a source, whose role must have been read. */
static void check_selectors(struct reader *r, const struct place *source,
                            const struct config_kubernetes *k)
{
    struct place at = place_of_key(source, "selectors");
    if (k->role == ROLE_NONE || k->n_selectors == 0 || at.node->kind != YAML_LIST) {
        return;
    }
    for (size_t i = 0; i < k->n_selectors; i++) {
        struct place element = place_of_element(&at, i);
        if (k->selectors[i].role != ROLE_NONE) {
            check_selector(r, &element, k, i);
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

static const struct kind kind_role = {read_role, write_role, .size = sizeof(enum config_role)};
static const struct kind kind_selector_role = {read_selector_role, write_role,
                                               .size = sizeof(enum config_role)};

static const struct field selector_rows[] = {
    ROW(config_selector, "role", role, &kind_selector_role, .arg = &text_nonempty,
        .required = true),
    ROW(config_selector, "label", label, &kind_text, .initial.text = ""),
    ROW(config_selector, "field", field, &kind_text, .initial.text = ""),
};
static const struct schema schema_selector = SCHEMA(selector_rows, sizeof(struct config_selector));

static const struct field namespace_rows[] = {
    ROW(config_kubernetes, "own_namespace", own_namespace, &kind_bool),
    ROW(config_kubernetes, "names", namespaces, &kind_strings, .arg = &text_namespace),
};
static const struct schema schema_namespaces = SCHEMA(namespace_rows, 0);

static const struct field attach_rows[] = {
    ROW(config_kubernetes, "node", attach_node, &kind_bool),
    ROW(config_kubernetes, "namespace", attach_namespace, &kind_bool),
};
static const struct schema schema_attach = SCHEMA(attach_rows, 0);

static void check_connection(struct reader *r, const struct place *at,
                             const struct config_kubernetes *k)
{
    bool api_server = yaml_get(at->node, "api_server") != NULL;
    bool kubeconfig = yaml_get(at->node, "kubeconfig_file") != NULL;
    bool http = schema_has_key(&schema_http, at->node);
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

static void check_kubernetes(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct config_kubernetes *k = out;
    if (yaml_get(at->node, "role") == NULL && (clean || k->role == ROLE_NONE)) {
        role_missing(r, at);
    }
    check_selectors(r, at, k);
    check_attach(r, at, k);
    check_connection(r, at, k);
}

static const struct field kubernetes_rows[] = {
    ROW(config_kubernetes, "role", role, &kind_role),
    PART("namespaces", &kind_mapping, .arg = &schema_namespaces),
    ROW(config_kubernetes, "selectors", selectors, &kind_list, .arg = &schema_selector),
    PART("attach_metadata", &kind_mapping, .arg = &schema_attach, .optional = true),
    ROW(config_kubernetes, "api_server", api_server, &kind_text, .arg = &text_http_url),
    ROW(config_kubernetes, "kubeconfig_file", kubeconfig_file, &kind_text, .arg = &text_file_name),
    ROW(config_kubernetes, NULL, http, &kind_mapping, .arg = &schema_http),
};
static const struct schema schema_kubernetes =
    SCHEMA(kubernetes_rows, sizeof(struct config_kubernetes), .check = check_kubernetes);

static const struct field kubernetes_source_rows[] = {
    ROW(config_source, NULL, kubernetes, &kind_mapping, .arg = &schema_kubernetes),
};
static const struct schema schema_kubernetes_source =
    SCHEMA(kubernetes_source_rows, sizeof(struct config_source));

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const struct schema *schema;
} kinds[] = {
    [SOURCE_STATIC] = {"static", &schema_static},
    [SOURCE_FILE] = {"file", &schema_file},
    [SOURCE_HTTP] = {"http", &schema_http_sd},
    [SOURCE_KUBERNETES] = {"kubernetes", &schema_kubernetes_source},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *config_source_kind_name(enum config_source_kind kind)
{
    return kinds[kind].name;
}

/* Returns the kind of source that a schema describes. */
static enum config_source_kind kind_of(const struct schema *schema)
{
    size_t kind = 0;
    while (kinds[kind].schema != schema) {
        kind++;
    }
    return (enum config_source_kind)kind;
}

static void read_source(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct config_source *source = out;
    schema_defaults(arg, source);
    source->pos = place_pos(r, at);
    source->kind = kind_of(arg);
    schema_read(r, at, arg, source);
}

/* Appends a list to the sources that the job has. */
static void read_sources(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct config_job *job = out;
    struct array list = {0};
    read_list(r, at, sizeof(struct config_source), read_source, arg, &list);
    struct config_source *all = reader_alloc(r, job->n_sources + list.n, sizeof(*all));
    if (all == NULL || list.at == NULL) {
        return;
    }
    if (job->n_sources > 0) {
        memcpy(all, job->sources, job->n_sources * sizeof(*all));
    }
    memcpy(all + job->n_sources, list.at, list.n * sizeof(*all));
    job->sources = all;
    job->n_sources += list.n;
}

static void write_sources(struct dumper *d, const char *key, const void *arg, const void *value)
{
    const struct config_job *job = value;
    enum config_source_kind kind = kind_of(arg);
    size_t n = 0;
    for (size_t i = 0; i < job->n_sources; i++) {
        if (job->sources[i].kind != kind) {
            continue;
        }
        if (n++ == 0) {
            dump_begin_list(d, key, false);
        }
        kind_mapping.write(d, NULL, arg, &job->sources[i]);
    }
    if (n > 0) {
        dump_end_list(d);
    }
}

static const struct kind kind_sources = {
    .read = read_sources, .write = write_sources, .nests = true};

static const struct field source_rows[] = {
    PART("static_configs", &kind_sources, .arg = &schema_static),
    PART("file_sd_configs", &kind_sources, .arg = &schema_file),
    PART("http_sd_configs", &kind_sources, .arg = &schema_http_sd),
    PART("kubernetes_sd_configs", &kind_sources, .arg = &schema_kubernetes_source),
};
const struct schema schema_sources = SCHEMA(source_rows, 0);

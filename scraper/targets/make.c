#include "scraper/targets/target_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/change.h"
#include "http/url.h"
#include "scraper/targets/address.h"
#include "scraper/targets/settings.h"

#define META_PREFIX SV("__meta_")
/* The labels of discovery that target_make() reads. */
enum {
    META_SERVICE, /* these name the service, in this order */
    META_DOCKER,
    META_SWARM_LABEL,
    META_SWARM_SERVICE,
    META_NAMESPACE,
    META_CONTAINER,
    META_POD_UID,
    METAS,
};
static const char *const metas[METAS] = {
    [META_SERVICE] = "__meta_kubernetes_pod_annotation_pyroscope_io_service_name",
    [META_DOCKER] = "__meta_docker_container_name",
    [META_SWARM_LABEL] = "__meta_dockerswarm_container_label_service_name",
    [META_SWARM_SERVICE] = "__meta_dockerswarm_service_name",
    [META_NAMESPACE] = "__meta_kubernetes_namespace",
    [META_CONTAINER] = "__meta_kubernetes_pod_container_name",
    [META_POD_UID] = "__meta_kubernetes_pod_uid",
};
/* The most problems of a target, besides one for each type. */
#define UNKNOWN_MAX 8
#define PROBLEM_BYTES_MAX ((size_t)64 * 1024)

/* The state of target_make(). */
struct maker {
    const struct config_job *job;
    struct labels_builder *b;
    struct address address;
    struct sv raw_address; /* the value of the label, perhaps without a port */
    uint32_t address_at;   /* offsets in strings, as is process_at */
    uint32_t process_at;
    bool https;
    bool own_instance; /* the target has the label `instance` already */
    /* An object of Kubernetes: somebody other than the operator may choose its labels. */
    bool is_object;
    struct settings settings;
    struct sv name;             /* `__name__` of the target: renames every type */
    struct sv path;             /* `__profile_path__` of the target: the path of every type */
    struct sv prefix;           /* the prefix of the target, or else that of the job */
    struct url_query overrides; /* from `__param_<name>` labels */
    struct url_query query;     /* the query of the current type */
    struct buf url;             /* the URL of the current type */
    struct buf strings;
    struct target_entry *entries;
    size_t n;
    struct buf texts; /* the sentences of the problems */
    struct target_problem *problems;
    size_t n_problems;
    struct err first; /* the first problem of a type */
};

/* ---- problems -------------------------------------------------------------------------------- */

/* Adds a problem. type: an index in job->types, or n_types for none. A second problem of one type
 * is ignored (several types may be renamed to one), as are problems beyond the limit. */
static void add_problem(struct maker *m, size_t type, const char *text)
{
    size_t start = m->texts.len;
    for (size_t i = 0; i < m->n_problems; i++) {
        if (type < m->job->n_types && m->problems[i].type == type) {
            return;
        }
    }
    if (m->n_problems < m->job->n_types + UNKNOWN_MAX &&
        buf_append(&m->texts, text, strlen(text) + 1)) {
        m->problems[m->n_problems++] =
            (struct target_problem){.text = (uint32_t)start, .type = (uint16_t)type};
    }
}

static void add_unknown(struct maker *m, struct sv label, struct sv type)
{
    struct err err = ERR_INIT;
    size_t n_unknown = m->n_problems; /* problems that name no type come first */
    if (n_unknown >= UNKNOWN_MAX) {
        return;
    }
    const char *keys[256];
    size_t n = m->job->n_types < 256 ? m->job->n_types : 256;
    for (size_t i = 0; i < n; i++) {
        keys[i] = m->job->types[i].key;
    }
    const char *near = suggest(type, keys, n);
    err_set(&err, ERR_INPUT, "label %.*s: the job has no profile type \"%.*s\"%s%s%s",
            (int)(label.n < 128 ? label.n : 128), label.p, (int)(type.n < 64 ? type.n : 64), type.p,
            near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
            near == NULL ? "" : "\"?");
    add_problem(m, m->job->n_types, err.msg);
}

/* ---- labels ---------------------------------------------------------------------------------- */

bool target_reads(struct sv name)
{
    return !sv_starts_with(name, META_PREFIX) || sv_in(name, metas, METAS);
}

static struct sv get_meta(const struct labels_builder *b, size_t i)
{
    return labels_builder_get(b, sv_from(metas[i]));
}

static void set_namespaced_service(struct labels_builder *b)
{
    struct sv space = get_meta(b, META_NAMESPACE);
    struct sv container = get_meta(b, META_CONTAINER);
    struct buf name;
    buf_init(&name, LABELS_BYTES_MAX);
    bool missing = labels_builder_get(b, SV(LABEL_SERVICE_NAME)).n == 0;
    if (missing && space.n > 0 && container.n > 0 &&
        buf_printf(&name, "%.*s/%.*s", SV_ARG(space), SV_ARG(container))) {
        labels_builder_set(b, SV(LABEL_SERVICE_NAME), (struct sv){name.data, name.len});
    }
    buf_done(&name);
}

/* Sets service_name, from labels in Grafana Alloy's order, so that series keep their names after a
 * migration. */
static void infer_service_name(struct labels_builder *b)
{
    target_set_default(b, LABEL_SERVICE_NAME, get_meta(b, META_SERVICE));
    set_namespaced_service(b);
    for (size_t i = META_DOCKER; i <= META_SWARM_SERVICE; i++) {
        target_set_default(b, LABEL_SERVICE_NAME, get_meta(b, i));
    }
    target_set_default(b, LABEL_SERVICE_NAME, SV("unspecified"));
}

/* Refuses plain HTTP for a job with credentials and https: a label of an object must not make the
 * job send its credentials in plain text. */
static bool check_credentials(const struct maker *m, bool https, struct err *err)
{
    const struct config_job *job = m->job;
    bool secret = job->http.auth != HTTP_AUTH_NONE || job->http.n_headers > 0;
    bool https_wanted = strcmp(job->scheme, "https") == 0;
    return https || !secret || !https_wanted || !m->is_object || job->allow_plain_credentials ||
           err_set(err, ERR_REFUSED,
                   "scheme \"http\" would send the job's credentials in plain text, which the job "
                   "does not allow (allow_plain_credentials)");
}

static bool resolve_scheme(struct maker *m, struct err *err)
{
    struct sv scheme = labels_builder_get(m->b, SV(LABEL_SCHEME));
    bool own = scheme.n > 0;
    if (!own) {
        scheme = sv_from(m->job->scheme);
    }
    if (!scheme_parse(scheme, &m->https)) {
        return err_set(err, ERR_INPUT, "invalid scheme: \"%.*s\"; expected \"http\" or \"https\"",
                       (int)(scheme.n < 64 ? scheme.n : 64), scheme.p);
    }
    labels_builder_set_str(m->b, LABEL_SCHEME, m->https ? "https" : "http");
    return !own || check_credentials(m, m->https, err);
}

static bool resolve_address(struct maker *m, const char *pinned_host, struct err *err)
{
    m->raw_address = labels_builder_get(m->b, SV(LABEL_ADDRESS));
    if (!address_parse(m->raw_address, m->https ? 443 : 80, &m->address, err)) {
        return false;
    }
    if (pinned_host != NULL && !m->job->allow_foreign_address &&
        !address_is_host(&m->address, pinned_host)) {
        return err_set(err, ERR_INPUT, "address \"%s\" is not the pod's own (%s)", m->address.text,
                       pinned_host);
    }
    const char *special = address_special(&m->address);
    if (pinned_host != NULL && special != NULL && !m->job->allow_special_address) {
        return err_set(err, ERR_REFUSED,
                       "address \"%s\" is %s, which the job does not allow "
                       "(allow_special_address)",
                       m->address.text, special);
    }
    labels_builder_set_str(m->b, LABEL_ADDRESS, m->address.text);
    return true;
}

/* Checks the labels, and collects the parameters and settings in them. */
static bool read_labels(struct maker *m, struct err *err)
{
    struct sv prefix = SV(LABEL_PARAM_PREFIX);
    for (size_t i = 0; i < labels_builder_count(m->b); i++) {
        struct label l = labels_builder_at(m->b, i);
        if (!utf8_valid(l.name) || !utf8_valid(l.value)) {
            return err_set(err, ERR_INPUT, "label \"%.*s\" is not valid UTF-8",
                           (int)(l.name.n < 128 ? l.name.n : 128), l.name.p);
        }
        bool is_param = sv_starts_with(l.name, prefix) && l.name.n > prefix.n;
        struct sv unknown;
        if ((is_param && !url_query_add(&m->overrides, sv_skip(l.name, prefix.n), l.value)) ||
            !settings_add(&m->settings, l, &unknown)) {
            return err_memory(err);
        }
        if (unknown.n > 0) {
            add_unknown(m, l.name, unknown);
        }
    }
    return true;
}

/* Appends a string with its NUL at *ret_offset. */
static bool add_string(struct maker *m, struct sv v, uint32_t *ret_offset)
{
    *ret_offset = (uint32_t)m->strings.len;
    return buf_append(&m->strings, v.p, v.n) && buf_putc(&m->strings, '\0');
}

static bool resolve(struct maker *m, const char *pinned_host, struct err *err)
{
    if (!read_labels(m, err) || !settings_read(&m->settings, m->b, err)) {
        return false;
    }
    const char *job = m->job->job_label != NULL ? m->job->job_label : m->job->name;
    if (job[0] != '\0') {
        target_set_default(m->b, LABEL_JOB, sv_from(job));
    }
    if (!resolve_scheme(m, err) || !resolve_address(m, pinned_host, err)) {
        return false;
    }
    m->own_instance = labels_builder_get(m->b, SV(LABEL_INSTANCE)).n > 0;
    target_set_default(m->b, LABEL_INSTANCE, sv_from(m->address.text));
    infer_service_name(m->b);
    m->name = labels_builder_get(m->b, SV(LABEL_NAME));
    m->path = labels_builder_get(m->b, SV(LABEL_PROFILE_PATH));
    m->prefix = labels_builder_get(m->b, SV(LABEL_PROFILE_PATH_PREFIX));
    if (m->prefix.n == 0) {
        m->prefix = sv_from(m->job->path_prefix);
        labels_builder_set(m->b, SV(LABEL_PROFILE_PATH_PREFIX), m->prefix);
    }
    /* The strings begin with an empty one and the address shared by most types. */
    bool ok = buf_putc(&m->strings, '\0') &&
              add_string(m, sv_from(m->address.text), &m->address_at) &&
              add_string(m, sv_from(m->address.canonical), &m->process_at);
    return ok || err_memory(err);
}

/* Cuts long values to the length that destinations accept. The owner of a pod can write 250 KB into
 * an annotation, and a rule can make a label of it, perhaps another one for each port, which queued
 * profiles keep in memory. */
static void cut_value(struct maker *m, struct label l)
{
    if (l.value.n > TARGET_VALUE_MAX) {
        size_t n = utf8_prefix(l.value, TARGET_VALUE_MAX);
        labels_builder_set(m->b, l.name, (struct sv){l.value.p, n});
    }
}

/* Returns the labels that all profiles of the target share. `__meta_*` and the settings are left
 * out: they are not needed any more, and would take most of the memory. */
static struct labels *finish_labels(struct maker *m)
{
    const struct config_pairs *params = &m->job->params;
    for (size_t i = 0; i < params->n; i++) {
        char name[256];
        int n = snprintf(name, sizeof(name), LABEL_PARAM_PREFIX "%s", params->at[i].name);
        if (n > 0 && (size_t)n < sizeof(name)) {
            target_set_default(m->b, name, sv_from(params->at[i].value));
        }
    }
    for (size_t i = labels_builder_count(m->b); i > 0; i--) {
        struct label l = labels_builder_at(m->b, i - 1);
        if (sv_starts_with(l.name, META_PREFIX) || settings_is_label(l.name)) {
            labels_builder_del(m->b, l.name);
        } else {
            cut_value(m, l);
        }
    }
    return labels_builder_build(m->b);
}

/* ---- one entry for each type ----------------------------------------------------------------- */

/* Returns the type as which a type is scraped: if the `__name__` of the target is that of another
 * type of the job, it is that type. */
static size_t effective_type(const struct maker *m, size_t type)
{
    for (size_t i = 0; m->name.n > 0 && i < m->job->n_types; i++) {
        if (sv_eq_str(m->name, m->job->types[i].key)) {
            return i;
        }
    }
    return type;
}

/* Collects the parameters of one type, independent of other types and targets. */
static bool collect_params(struct maker *m, const struct config_type *type)
{
    url_query_clear(&m->query);
    bool ok = true;
    for (size_t i = 0; i < type->params.n; i++) {
        ok = ok && url_query_add(&m->query, sv_from(type->params.at[i].name),
                                 sv_from(type->params.at[i].value));
    }
    for (size_t i = 0; i < m->overrides.n; i++) {
        ok = ok && url_query_set(&m->query, m->overrides.at[i].name, m->overrides.at[i].value);
    }
    url_query_del(&m->query, SV("seconds"));
    return ok;
}

/* Adds path and query of a type. */
static bool add_path(struct maker *m, const struct config_type *type, const struct type_settings *t,
                     uint32_t *ret_offset, struct err *err)
{
    char text[16];
    struct sv path = m->path.n > 0 ? m->path : sv_from(type->path);
    buf_clear(&m->url);
    if (!url_append_path(&m->url, m->prefix, t->path.n > 0 ? t->path : path, err)) {
        return false;
    }
    bool ok = collect_params(m, type);
    if (type->sampling) {
        snprintf(text, sizeof(text), "%u", t->seconds);
        ok = ok && url_query_add(&m->query, SV("seconds"), sv_from(text));
    }
    if (!ok) {
        return err_memory(err);
    }
    if (!url_append_query(&m->url, &m->query) || m->url.len > URL_TARGET_MAX) {
        return err_set(err, ERR_LIMIT, "path and query longer than %d bytes", URL_TARGET_MAX);
    }
    return add_string(m, (struct sv){m->url.data, m->url.len}, ret_offset) || err_memory(err);
}

/* Adds the address of a type, which may have its own port and scheme, but never its own host. */
static bool add_address(struct maker *m, const struct type_settings *t, struct target_entry *entry,
                        struct err *err)
{
    struct address address;
    entry->https = t->own_scheme ? t->https : m->https;
    if (t->own_scheme && !check_credentials(m, t->https, err)) {
        return false;
    }
    entry->address = m->address_at;
    entry->process = m->process_at;
    if (t->port == 0 && entry->https == m->https) {
        return true;
    }
    if (!address_parse(m->raw_address, entry->https ? 443 : 80, &address, err)) {
        return false;
    }
    if (t->port != 0) {
        address_set_port(&address, t->port);
    }
    return (add_string(m, sv_from(address.text), &entry->address) &&
            add_string(m, sv_from(address.canonical), &entry->process)) ||
           err_memory(err);
}

/* Returns true if an earlier entry has the same scrape: renamed types may have the same path, and
 * one of them is enough. */
static bool is_repeated(const struct maker *m, const struct target_entry *entry)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct target_entry *other = &m->entries[i];
        bool same_name = m->name.n > 0 || strcmp(m->job->types[other->type].name,
                                                 m->job->types[entry->type].name) == 0;
        const char *strings = m->strings.data;
        if (same_name && other->https == entry->https &&
            strcmp(strings + other->address, strings + entry->address) == 0 &&
            strcmp(strings + other->path, strings + entry->path) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_entry(struct maker *m, size_t index, struct err *err)
{
    const struct config_type *type = &m->job->types[index];
    struct target_entry entry = {.type = (uint16_t)index};
    struct type_settings t;
    if (!settings_resolve(&m->settings, index, &t, err) || !add_address(m, &t, &entry, err) ||
        !add_path(m, type, &t, &entry.path, err)) {
        return false;
    }
    if (t.path.n > 0 && !add_string(m, t.path, &entry.own_path)) {
        return err_memory(err);
    }
    entry.interval_ms = (uint32_t)t.interval_ms;
    entry.timeout_ms = (uint32_t)t.timeout_ms;
    entry.seconds = t.seconds;
    if (!is_repeated(m, &entry)) {
        m->entries[m->n++] = entry;
    }
    return true;
}

/* Adds the entry of a type if the type is enabled. If a label of the type is wrong, returns false
 * with an error, and *ret_type is the type to report. */
static bool add_type(struct maker *m, size_t index, size_t *ret_type, struct err *err)
{
    size_t effective = effective_type(m, index);
    bool enabled = false;
    *ret_type = index;
    if (!settings_enabled(&m->settings, index, &enabled, err)) {
        return false;
    }
    *ret_type = effective;
    if (enabled && effective != index && settings_has(&m->settings, effective, SETTING_ENABLED) &&
        !settings_enabled(&m->settings, effective, &enabled, err)) {
        return false;
    }
    return !enabled || add_entry(m, effective, err);
}

/* Adds the entries of all types. A problem with one type does not affect the others. */
static bool add_types(struct maker *m, struct err *err)
{
    for (size_t i = 0; i < m->job->n_types; i++) {
        struct err why = ERR_INIT;
        size_t type;
        if (add_type(m, i, &type, &why)) {
            continue;
        }
        if (why.kind == ERR_MEMORY) {
            return err_memory(err);
        }
        err_wrap(&why, "profile type %s", m->job->types[type].key);
        add_problem(m, type, why.msg);
        if (m->first.kind == ERR_NONE) {
            m->first = why;
        }
    }
    if (m->n == 0 && m->first.kind != ERR_NONE) {
        return err_set(err, m->first.kind, "%s", m->first.msg);
    }
    return true;
}

/* ---- the target ------------------------------------------------------------------------------ */

static struct target *assemble(struct maker *m, const struct config *owner, size_t index)
{
    size_t entries_size = m->n * sizeof(struct target_entry);
    struct target *t = malloc(sizeof(*t) + entries_size + m->strings.len);
    if (t == NULL) {
        return NULL;
    }
    struct sv uid = get_meta(m->b, META_POD_UID);
    t->generation = uid.n == 0 ? 0 : hash_bytes(uid.p, uid.n, 1);
    t->labels = finish_labels(m);
    if (t->labels == NULL) {
        free(t);
        return NULL;
    }
    atomic_init(&t->refs, 1);
    t->job = (uint32_t)index;
    t->config = owner == NULL ? NULL : config_ref(owner);
    t->job_config = m->job;
    t->address = m->address_at;
    t->process = m->process_at;
    t->is_object = m->is_object;
    t->instance_is_address = !m->own_instance;
    t->n = (uint32_t)m->n;
    if (m->n > 0) {
        memcpy(t->entries, m->entries, entries_size);
    }
    memcpy((char *)&t->entries[m->n], m->strings.data, m->strings.len);
    t->n_problems = (uint32_t)m->n_problems;
    t->problems = NULL;
    t->problem_texts = NULL;
    if (m->n_problems > 0) {
        t->problems = m->problems;
        t->problem_texts = buf_take(&m->texts, NULL);
        m->problems = NULL;
    }
    return t;
}

struct target *target_make(const struct config *owner, size_t index, const struct config_job *job,
                           struct labels_builder *b, const char *pinned_host, struct err *err)
{
    struct maker m = {.job = job,
                      .b = b,
                      .is_object = pinned_host != NULL,
                      .settings = {.job = job},
                      .first = ERR_INIT};
    buf_init(&m.url, URL_TARGET_MAX + 4 * URL_PATH_MAX);
    buf_init(&m.strings, (job->n_types + 1) * (URL_TARGET_MAX + 4 * URL_PATH_MAX));
    buf_init(&m.texts, PROBLEM_BYTES_MAX);
    m.entries = calloc(job->n_types + 1, sizeof(*m.entries));
    m.problems = calloc(job->n_types + UNKNOWN_MAX, sizeof(*m.problems));
    bool ok = (m.entries != NULL && m.problems != NULL) || err_memory(err);
    ok = ok && resolve(&m, pinned_host, err) && add_types(&m, err);
    struct target *t = ok ? assemble(&m, owner, index) : NULL;
    if (ok && t == NULL) {
        labels_builder_explain(b, err);
    }
    free(m.entries);
    free(m.problems);
    buf_done(&m.url);
    buf_done(&m.strings);
    buf_done(&m.texts);
    settings_done(&m.settings);
    url_query_done(&m.overrides);
    url_query_done(&m.query);
    return t;
}

struct target *target_new(const struct config *config, size_t job, struct labels_builder *b,
                          const char *pinned_host, struct err *err)
{
    return target_make(config, job, config_job_at(config, job), b, pinned_host, err);
}

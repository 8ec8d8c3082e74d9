#include "config/warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/errors.h"

#define TEXT_MAX 512
#define META "__meta_"
#define META_KUBERNETES "__meta_kubernetes_"

__attribute__((format(printf, 3, 4))) static void
warn(struct config_errors *warnings, const struct config_pos *pos, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    config_errors_add_in(warnings, pos->file, pos->line, pos->column, "", text);
}

/* ---- labels of sources ----------------------------------------------------------------------- */

/* The possible beginnings of a role's labels, after "__meta_kubernetes_". */
static const char *const role_prefixes[CONFIG_ROLES][6] = {
    [ROLE_POD] = {"pod_"},
    [ROLE_SERVICE] = {"service_"},
    [ROLE_ENDPOINTS] = {"endpoints_", "endpoint_", "pod_", "service_"},
    [ROLE_ENDPOINTSLICE] = {"endpointslice_", "pod_", "service_"},
    [ROLE_NODE] = {"node_"},
    [ROLE_INGRESS] = {"ingress_"},
};

static bool kubernetes_has(const struct config_kubernetes *k, struct sv label)
{
    if (!sv_starts_with(label, SV(META_KUBERNETES))) {
        return false;
    }
    struct sv rest = sv_skip(label, strlen(META_KUBERNETES));
    for (const char *const *p = role_prefixes[k->role]; *p != NULL; p++) {
        if (sv_starts_with(rest, sv_from(*p))) {
            return true;
        }
    }
    bool in_namespace = k->role != ROLE_NODE;
    return (in_namespace && sv_eq(rest, SV("namespace"))) ||
           (k->attach_namespace && sv_starts_with(rest, SV("namespace_"))) ||
           (k->attach_node && sv_starts_with(rest, SV("node_")));
}

static bool static_has(const struct config_static *s, struct sv label)
{
    for (size_t i = 0; i < s->labels.n; i++) {
        if (sv_eq_str(label, s->labels.at[i].name)) {
            return true;
        }
    }
    return false;
}

/* Returns true if targets of a source can have the label. Lists from files and URLs may hold any.
 */
static bool source_has(const struct config_source *s, struct sv label)
{
    if (s->kind == SOURCE_KUBERNETES) {
        return kubernetes_has(&s->kubernetes, label);
    }
    return s->kind != SOURCE_STATIC || static_has(&s->fixed, label);
}

static bool is_set_before(const struct config_rules *rules, size_t n, struct sv label)
{
    for (size_t i = 0; i < n; i++) {
        const struct config_rule *r = &rules->at[i];
        bool any = r->action == ACTION_LABELMAP ||
                   (r->target_label != NULL && strchr(r->target_label, '$') != NULL);
        if (any || (r->target_label != NULL && sv_eq_str(label, r->target_label))) {
            return true;
        }
    }
    return false;
}

static bool job_has(const struct config_job *job, struct sv label)
{
    for (size_t i = 0; i < job->n_sources; i++) {
        if (source_has(&job->sources[i], label)) {
            return true;
        }
    }
    return job->n_sources == 0;
}

static void warn_of_labels(const struct config_job *job, struct config_errors *warnings)
{
    for (size_t i = 0; i < job->relabel.n; i++) {
        const struct config_rule *r = &job->relabel.at[i];
        for (size_t k = 0; k < r->source_labels.n; k++) {
            struct sv label = sv_from(r->source_labels.at[k]);
            if (sv_starts_with(label, SV(META)) && !job_has(job, label) &&
                !is_set_before(&job->relabel, i, label)) {
                warn(warnings, &r->pos,
                     "this rule reads %s, which no source of the job \"%s\" has: it is always "
                     "empty",
                     r->source_labels.at[k], job->name);
            }
        }
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void warn_of_addresses(const struct config_job *job, struct config_errors *warnings)
{
    for (size_t i = 0; i < job->n_sources; i++) {
        const struct config_source *s = &job->sources[i];
        for (size_t k = 0; s->kind == SOURCE_STATIC && k < s->fixed.targets.n; k++) {
            const char *target = s->fixed.targets.at[k];
            struct sv host;
            uint16_t port;
            struct err err = ERR_INIT;
            /* Rules can turn any text into an address, so only targets of jobs without rules are
             * checked. */
            if (job->relabel.n == 0 && !split_host_port(sv_from(target), &host, &port, &err)) {
                warn(warnings, &s->pos, "the target \"%s\" of the job \"%s\" is refused: %s",
                     target, job->name, err.msg);
            }
        }
    }
}

/* Returns true if rules or labels of targets may enable types. */
static bool may_enable_types(const struct config_job *job)
{
    static const char prefix[] = "__profile_";
    bool fixed = true;
    for (size_t i = 0; i < job->n_sources; i++) {
        const struct config_source *s = &job->sources[i];
        fixed = fixed && s->kind != SOURCE_FILE && s->kind != SOURCE_HTTP;
        for (size_t k = 0; s->kind == SOURCE_STATIC && k < s->fixed.labels.n; k++) {
            fixed = fixed && strncmp(s->fixed.labels.at[k].name, prefix, strlen(prefix)) != 0;
        }
    }
    for (size_t i = 0; i < job->relabel.n; i++) {
        const char *to = job->relabel.at[i].target_label;
        fixed = fixed && job->relabel.at[i].action != ACTION_LABELMAP &&
                (to == NULL || strncmp(to, prefix, strlen(prefix)) != 0);
    }
    return !fixed;
}

static void warn_of_types(const struct config_job *job, struct config_errors *warnings)
{
    bool any = false;
    for (size_t i = 0; i < job->n_types; i++) {
        const struct config_type *t = &job->types[i];
        any = any || t->enabled;
        for (size_t k = 0; t->enabled && k < i; k++) {
            const struct config_type *other = &job->types[k];
            if (other->enabled && strcmp(other->name, t->name) == 0) {
                warn(warnings, &job->pos,
                     "the types \"%s\" and \"%s\" of the job \"%s\" write the same series, \"%s\"",
                     other->key, t->key, job->name, t->name);
            }
        }
        /* A sampling type may take its seconds on top of the timeout, so the defaults would exceed
         * the interval. A file that shortens only the interval did not set the default timeout on
         * purpose, so that is no reason for a warning either. */
        if (t->enabled && !t->sampling && t->timeout_ms > t->interval_ms &&
            t->timeout_ms != CONFIG_TIMEOUT_MS) {
            warn(warnings, &job->pos,
                 "the type \"%s\" of the job \"%s\" may take longer than its interval: a scrape "
                 "that is slow skips the next one",
                 t->key, job->name);
        }
    }
    if (!any && !may_enable_types(job)) {
        warn(warnings, &job->pos, "the job \"%s\" scrapes nothing: no type is enabled", job->name);
    }
}

static void warn_of_job(const struct config_job *job, struct config_errors *warnings)
{
    if (job->n_sources == 0) {
        warn(warnings, &job->pos, "the job \"%s\" scrapes nothing: it has no source of targets",
             job->name);
    }
    warn_of_addresses(job, warnings);
    warn_of_types(job, warnings);
    warn_of_labels(job, warnings);
}

void config_warn(const struct config *c, struct config_errors *warnings)
{
    uint64_t used = c->receive.server.listen[0] != '\0' ? c->receive.job.forward_to : 0;
    for (size_t i = 0; i < c->n_jobs; i++) {
        used |= c->jobs[i].forward_to;
        if (!c->jobs[i].enriches && !str_same(c->jobs[i].pos.file, CONFIG_BUILTIN_NAME)) {
            warn_of_job(&c->jobs[i], warnings);
        }
    }
    /* If nothing is scraped or received, stores are configured only to be queried. */
    bool only_queries = c->n_jobs == 0 && used == 0;
    for (size_t i = 0; i < c->n_endpoints; i++) {
        const struct config_protocol *p = c->endpoints[i].protocol;
        bool is_queried = only_queries && p != NULL && p->is_store;
        if ((used >> i & 1) == 0 && !is_queried) {
            warn(warnings, &c->endpoints[i].pos, "nothing is forwarded to the endpoint \"%s\"",
                 c->endpoints[i].name);
        }
    }
}

#include "cli/explain/pod_lookup.h"

#include <stdio.h>

#include "base/ascii.h"

const struct config_source *pod_source_next(const struct config *config,
                                            struct pod_source_cursor *at)
{
    for (; at->job < config->n_jobs; at->job++, at->next = 0) {
        const struct config_job *job = &config->jobs[at->job];
        while (at->next < job->n_sources) {
            const struct config_source *s = &job->sources[at->next++];
            if (s->kind == SOURCE_KUBERNETES && s->kubernetes.role == ROLE_POD) {
                return s;
            }
        }
    }
    return NULL;
}

static bool is_name(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (!ascii_is_lower(c) && !ascii_is_digit(c) && c != '-' && c != '.') {
            return false;
        }
    }
    return v.n > 0 && v.n <= POD_LOOKUP_NAME_MAX;
}

bool pod_lookup_init(struct pod_lookup *l, const struct config *config, const char *pod)
{
    struct pod_source_cursor at = {0};
    const struct config_source *first = pod_source_next(config, &at);
    struct sv namespace;
    struct sv name;
    while (first != NULL && first->kubernetes.api_server != NULL) {
        first = pod_source_next(config, &at);
    }
    if (first == NULL || !sv_cut(sv_from(pod), '/', &namespace, &name) || !is_name(namespace) ||
        !is_name(name)) {
        return false;
    }
    snprintf(l->namespace, sizeof(l->namespace), "%.*s", SV_ARG(namespace));
    snprintf(l->field, sizeof(l->field), "metadata.name=%.*s", SV_ARG(name));
    l->namespaces[0] = l->namespace;
    l->selector = (struct config_selector){.role = ROLE_POD, .label = "", .field = l->field};
    l->source = *first;
    struct config_kubernetes *k = &l->source.kubernetes;
    k->attach_node = k->attach_namespace = k->own_namespace = false;
    k->namespaces = (struct config_strings){.at = l->namespaces, .n = 1};
    k->selectors = &l->selector;
    k->n_selectors = 1;
    l->job = (struct config_job){.name = "lookup", .sources = &l->source, .n_sources = 1};
    l->config = *config;
    l->config.jobs = &l->job;
    l->config.n_jobs = 1;
    return true;
}

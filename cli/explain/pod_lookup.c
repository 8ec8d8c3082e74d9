#include "cli/explain/pod_lookup.h"

#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "discovery/discovery.h"

/* The longest name of an object in Kubernetes. */
#define NAME_BYTES_MAX 253

struct lookup {
    struct loop *loop;
    struct labels *found;
};

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
    return v.n > 0 && v.n <= NAME_BYTES_MAX;
}

static void lookup_on_group(void *arg, const struct target_group *group)
{
    struct lookup *l = arg;
    if (l->found == NULL && group->n_targets > 0) {
        l->found = labels_ref(group->targets[0]);
    }
}

static void lookup_on_end(void *arg)
{
    struct lookup *l = arg;
    loop_stop(l->loop);
}

static void run_discovery(const struct lookup_options *options, const struct config *config,
                          struct lookup *lookup)
{
    struct err err = ERR_INIT;
    struct discovery_options discovery = {
        .config = config,
        .loop = options->loop,
        .intern = options->intern,
        .user_agent = options->user_agent,
        .on_group = lookup_on_group,
        .on_synced = lookup_on_end,
        .arg = lookup,
    };
    struct discovery *d = discovery_new(&discovery, &err);
    struct loop_timer *timer = loop_timer_new(options->loop, lookup_on_end, lookup);
    if (d != NULL && timer != NULL) {
        loop_timer_after(timer, options->timeout_ms);
        loop_run(options->loop);
    }
    loop_timer_free(timer);
    discovery_free(d);
}

struct labels *lookup_pod(const struct lookup_options *options)
{
    struct lookup lookup = {.loop = options->loop};
    struct pod_source_cursor at = {0};
    const struct config_source *first = pod_source_next(options->config, &at);
    struct sv namespace;
    struct sv name;
    char text[NAME_BYTES_MAX + 1];
    char field[NAME_BYTES_MAX + sizeof("metadata.name=")];
    while (first != NULL && first->kubernetes.api_server != NULL) {
        first = pod_source_next(options->config, &at);
    }
    if (first == NULL || !sv_cut(sv_from(options->pod), '/', &namespace, &name) ||
        !is_name(namespace) || !is_name(name)) {
        return NULL;
    }
    snprintf(text, sizeof(text), "%.*s", SV_ARG(namespace));
    snprintf(field, sizeof(field), "metadata.name=%.*s", SV_ARG(name));
    /* A configuration with one source that finds the pod and nothing else. */
    const char *const names[] = {text};
    struct config_selector selector = {.role = ROLE_POD, .label = "", .field = field};
    struct config_source source = *first;
    source.kubernetes.attach_node = source.kubernetes.attach_namespace = false;
    source.kubernetes.own_namespace = false;
    source.kubernetes.namespaces = (struct config_strings){.at = names, .n = 1};
    source.kubernetes.selectors = &selector;
    source.kubernetes.n_selectors = 1;
    struct config_job job = {.name = "lookup", .sources = &source, .n_sources = 1};
    struct config config = *options->config;
    config.jobs = &job;
    config.n_jobs = 1;
    run_discovery(options, &config, &lookup);
    return lookup.found;
}

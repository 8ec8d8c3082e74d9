#include "cli/explain/pod_lookup.h"

#include <string.h>

#include "discovery/discovery.h"

#define TEXT_MAX ((size_t)64 * 1024)

struct lookup {
    struct loop *loop;
    struct labels *found;
};

static const struct config_kubernetes *first_source(const struct config *config)
{
    for (size_t j = 0; j < config->n_jobs; j++) {
        for (size_t i = 0; i < config->jobs[j].n_sources; i++) {
            const struct config_source *s = &config->jobs[j].sources[i];
            if (s->kind == SOURCE_KUBERNETES && s->kubernetes.api_server == NULL &&
                s->kubernetes.role == ROLE_POD) {
                return &s->kubernetes;
            }
        }
    }
    return NULL;
}

static bool is_name(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.')) {
            return false;
        }
    }
    return v.n > 0;
}

/* A configuration with one source that finds the pod and nothing else. */
static struct config *make_config(const struct config_kubernetes *k, struct sv namespace,
                                  struct sv name)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    buf_puts(&text, "scrape_configs:\n  - job_name: lookup\n    kubernetes_sd_configs:\n"
                    "      - role: pod\n");
    if (k->kubeconfig_file != NULL) {
        buf_puts(&text, "        kubeconfig_file: \"");
        json_escape(sv_from(k->kubeconfig_file), &text);
        buf_puts(&text, "\"\n");
    }
    buf_printf(&text,
               "        namespaces: {names: [\"%.*s\"]}\n"
               "        selectors: [{role: pod, field: \"metadata.name=%.*s\"}]\n",
               SV_ARG(namespace), SV_ARG(name));
    struct config_options options = {.write_url = "http://127.0.0.1"};
    struct config_errors *errors = config_errors_new();
    struct config *config = NULL;
    if (errors != NULL && buf_ok(&text)) {
        config = config_parse("lookup", (struct sv){text.data, text.len}, &options, errors);
    }
    config_errors_free(errors);
    buf_done(&text);
    return config;
}

static void on_group(void *arg, const struct target_group *group)
{
    struct lookup *l = arg;
    if (l->found == NULL && group->n_targets > 0) {
        l->found = labels_ref(group->targets[0]);
    }
}

static void on_end(void *arg)
{
    struct lookup *l = arg;
    loop_stop(l->loop);
}

static void run(const struct lookup_options *options, const struct config *config,
                struct lookup *lookup)
{
    struct err err = ERR_INIT;
    struct discovery_options discovery = {
        .config = config,
        .loop = options->loop,
        .intern = options->intern,
        .user_agent = options->user_agent,
        .on_group = on_group,
        .on_synced = on_end,
        .arg = lookup,
    };
    struct discovery *d = discovery_new(&discovery, &err);
    struct loop_timer *timer = loop_timer_new(options->loop, on_end, lookup);
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
    const struct config_kubernetes *k = first_source(options->config);
    struct sv namespace;
    struct sv name;
    if (k == NULL || !sv_cut(sv_from(options->pod), '/', &namespace, &name) ||
        !is_name(namespace) || !is_name(name)) {
        return NULL;
    }
    struct config *config = make_config(k, namespace, name);
    if (config != NULL) {
        run(options, config, &lookup);
        config_unref(config);
    }
    return lookup.found;
}

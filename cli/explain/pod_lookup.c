#include "cli/explain/pod_lookup.h"

#include <stdio.h>
#include <string.h>

#include "cli/cluster/pods.h"
#include "discovery/kubernetes/roles.h"

#define ARENA_MAX (UINT64_C(16) * 1024 * 1024)

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

bool pod_name_split(const char *pod, struct sv *ret_namespace, struct sv *ret_name)
{
    return pod != NULL && sv_cut(sv_from(pod), '/', ret_namespace, ret_name) &&
           pods_is_object_name(*ret_namespace) && pods_is_object_name(*ret_name);
}

/* ---- asking for the pod ---------------------------------------------------------------------- */

/* Makes the labels of a pod, also of one without an address. */
static struct labels *labels_of(const json_t *pod, struct intern *intern)
{
    struct kube_object object = {.kind = SV("")};
    struct object_targets targets = {.without_ip = true, .keep_shared = true};
    struct arena *arena = schema_arena_new();
    struct labels_builder *builder = labels_builder_new(intern);
    struct labels *labels = NULL;
    if (arena != NULL && builder != NULL &&
        schema_read_json(kube_pods.resource.rows, pod, arena, &object) == SKIP_NONE &&
        kube_pods.read(&object, builder, &targets) == OBJECT_OK) {
        labels = targets.n > 0 ? targets.at[0] : targets.shared;
        labels = labels == NULL ? NULL : labels_ref(labels);
    }
    object_targets_done(&targets);
    labels_builder_free(builder);
    arena_free(arena);
    return labels;
}

static void take_pod(const json_t *list, struct intern *intern, struct pod_found *ret)
{
    const json_t *pod = json_array_get(json_object_get(list, "items"), 0);
    struct buf state;
    if (pod == NULL) {
        return;
    }
    buf_init(&state, sizeof(ret->state));
    pods_describe(pod, &state);
    snprintf(ret->state, sizeof(ret->state), "%s", state.data == NULL ? "" : state.data);
    buf_done(&state);
    ret->has_address = pods_has_address(pod);
    ret->labels = labels_of(pod, intern);
    ret->exists = ret->labels != NULL;
}

bool pod_lookup(const struct config *config, const struct cluster_access *local,
                struct intern *intern, const char *pod, int64_t timeout_ms, struct pod_found *ret,
                struct err *err)
{
    struct pod_source_cursor at = {0};
    const struct config_source *source = pod_source_next(config, &at);
    struct cluster_access access = {.name = "the API server"};
    struct kube_env env = {.local = local == NULL ? NULL : &local->access};
    struct sv namespace;
    struct sv name;
    *ret = (struct pod_found){.exists = false};
    if (source == NULL || !pod_name_split(pod, &namespace, &name)) {
        return false;
    }
    struct arena *arena = arena_new(ARENA_MAX);
    struct cluster *cluster = NULL;
    json_t *list = NULL;
    if (arena == NULL) {
        err_memory(err);
    } else if (kube_access_find(&source->kubernetes, &env, arena, &access.access, err)) {
        cluster = cluster_new(&access, timeout_ms, err);
    }
    if (cluster != NULL) {
        list = pods_named(cluster, namespace, name, err);
    }
    bool ok = list != NULL;
    take_pod(list, intern, ret);
    json_decref(list);
    cluster_free(cluster);
    arena_free(arena);
    return ok;
}

/* ---- reading nothing else -------------------------------------------------------------------- */

/* Adds the name of the pod to the selectors of a source. */
static bool narrow_selectors(struct config_kubernetes *k, struct sv name, struct arena *arena)
{
    struct config_selector *all = arena_array(arena, k->n_selectors + 1, sizeof(*all));
    const char *field = arena_printf(arena, "metadata.name=%.*s", SV_ARG(name));
    bool ok = all != NULL && field != NULL;
    bool has = false;
    for (size_t i = 0; ok && i < k->n_selectors; i++) {
        all[i] = k->selectors[i];
        if (all[i].role == ROLE_POD) {
            has = true;
            all[i].field =
                all[i].field[0] == '\0' ? field : arena_printf(arena, "%s,%s", all[i].field, field);
            ok = all[i].field != NULL;
        }
    }
    if (ok && !has) {
        all[k->n_selectors++] = (struct config_selector){ROLE_POD, "", field};
    }
    k->selectors = all;
    return ok;
}

static bool watches(const struct config_kubernetes *k, struct sv namespace)
{
    for (size_t i = 0; i < k->namespaces.n; i++) {
        if (sv_eq_str(namespace, k->namespaces.at[i])) {
            return true;
        }
    }
    return k->namespaces.n == 0 && !k->own_namespace;
}

/* Copies the sources of a job that can discover the pod. */
static bool narrow_job(struct config_job *job, struct sv namespace, struct sv name,
                       struct arena *arena)
{
    const struct config_source *old = job->sources;
    struct config_source *all = arena_array(arena, job->n_sources + 1, sizeof(*all));
    const char **names = arena_array(arena, 1, sizeof(*names));
    size_t n = 0;
    if (all == NULL || names == NULL) {
        return false;
    }
    names[0] = arena_strndup(arena, namespace.p, namespace.n);
    for (size_t i = 0; i < job->n_sources; i++) {
        const struct config_kubernetes *k = &old[i].kubernetes;
        if (old[i].kind != SOURCE_KUBERNETES || k->role != ROLE_POD ||
            (!watches(k, namespace) && !k->own_namespace)) {
            continue;
        }
        all[n] = old[i];
        struct config_kubernetes *to = &all[n++].kubernetes;
        /* The name of our own namespace is not known yet. */
        if (watches(k, namespace)) {
            to->own_namespace = false;
            to->namespaces = (struct config_strings){.at = names, .n = 1};
        }
        if (!narrow_selectors(to, name, arena)) {
            return false;
        }
    }
    job->sources = all;
    job->n_sources = n;
    return names[0] != NULL;
}

struct config *pod_narrow(const struct config *config, const char *pod, struct arena *arena)
{
    struct config copy = *config;
    struct config_job *jobs = arena_array(arena, config->n_jobs + 1, sizeof(*jobs));
    struct sv namespace;
    struct sv name;
    if (jobs == NULL || !pod_name_split(pod, &namespace, &name)) {
        return NULL;
    }
    for (size_t i = 0; i < config->n_jobs; i++) {
        jobs[i] = config->jobs[i];
        if (!narrow_job(&jobs[i], namespace, name, arena)) {
            return NULL;
        }
    }
    copy.jobs = jobs;
    return config_wrap(&copy);
}

/* The sources of jobs, and the API servers and watches that they share. */
#include <stdio.h>
#include <stdlib.h>

#include "discovery/private.h"

/* The most memory for strings of credentials: kubeconfigs with their certificates. */
#define ARENA_MAX ((size_t)64 * 1024 * 1024)

bool discovery_need_http(struct discovery *d, struct http_client **client, const char *name,
                         struct err *err)
{
    if (*client == NULL) {
        *client = http_client_new(
            &(struct http_client_options){
                .loop = d->options.loop,
                .log = d->options.log,
                .metrics = d->options.metrics,
                .name = name,
                .contents = d->options.contents,
            },
            err);
    }
    return *client != NULL;
}

/* ---- API servers ----------------------------------------------------------------------------- */

struct kube_server *kube_server_unref(struct kube_server *server)
{
    if (server != NULL && --server->n_users == 0) {
        LIST_REMOVE(server, link);
        arena_free(server->arena);
        config_unref(server->owner);
        free(server);
    }
    return NULL;
}

struct kube_server *kube_server_get(struct discovery *d, const struct config *owner,
                                    const struct config_kubernetes *config, struct err *err)
{
    struct kube_server *server = NULL;
    LIST_FOREACH(server, &d->servers, link)
    {
        if (kube_access_same(server->config, config)) {
            server->n_users++;
            return server;
        }
    }
    server = calloc(1, sizeof(*server));
    if (server == NULL) {
        err_memory(err);
        return NULL;
    }
    *server = (struct kube_server){.owner = owner == NULL ? NULL : config_ref(owner),
                                   .config = config,
                                   .arena = arena_new(ARENA_MAX),
                                   .n_users = 1};
    LIST_INSERT_HEAD(&d->servers, server, link);
    bool ok = server->arena != NULL || err_memory(err);
    ok = ok && kube_access_find(config, &(struct kube_env){.local = d->options.local},
                                server->arena, &server->access, err);
    ok = ok && discovery_need_http(d, &d->reflectors.env.http, "kubernetes", err);
    return ok ? server : kube_server_unref(server);
}

/* ---- watches --------------------------------------------------------------------------------- */

/* Returns true if any of the jobs that share a watch wants the label. */
static bool source_wants_label(void *arg, struct sv name)
{
    const struct kube_source *kube = arg;
    const struct discovery *d = kube->d;
    const struct job_source *s = NULL;
    TAILQ_FOREACH(s, &d->sources, link)
    {
        if (s->kube == kube && d->options.wants_label(d->options.arg, s->job, name)) {
            return true;
        }
    }
    return false;
}

static void source_on_object(void *arg, const struct target_group *found)
{
    struct kube_source *kube = arg;
    struct discovery *d = kube->d;
    const struct job_source *s = NULL;
    TAILQ_FOREACH(s, &d->sources, link)
    {
        if (s->kube != kube) {
            continue;
        }
        char name[SOURCE_MAX];
        snprintf(name, sizeof(name), "%s%s", s->name, found->source);
        struct target_group group = *found;
        group.job = s->job;
        group.source = name;
        discovery_report(d, &group);
    }
    discovery_count_objects(d);
}

static void source_on_counts(void *arg)
{
    const struct kube_source *kube = arg;
    const struct discovery *d = kube->d;
    size_t foreign = 0;
    size_t pending = 0;
    LIST_FOREACH(kube, &d->kube, link)
    {
        struct store_counts counts = kubernetes_counts(kube->kubernetes);
        foreign += counts.foreign * kube->n_users;
        pending += counts.pending * kube->n_users;
    }
    d->sharing.on_foreign(d->sharing.arg, foreign, pending);
}

static void source_on_listed(void *arg)
{
    const struct kube_source *kube = arg;
    discovery_on_progress(kube->d);
}

static void kube_unref(struct kube_source *kube)
{
    struct discovery *d = kube->d;
    if (--kube->n_users > 0) {
        return;
    }
    LIST_REMOVE(kube, link);
    kubernetes_free(kube->kubernetes);
    reflectors_prune(&d->reflectors);
    kube_server_unref(kube->server);
    config_unref(kube->owner);
    free(kube);
}

static bool make_watch(struct kube_source *kube, struct err *err)
{
    struct discovery *d = kube->d;
    kube->server = kube_server_get(d, kube->owner, kube->config, err);
    if (kube->server == NULL) {
        return false;
    }
    kube->kubernetes = kubernetes_new(
        &(struct kubernetes_options){
            .config = kube->config,
            .access = kube->server->access,
            .server_id = kube->server,
            .reflectors = &d->reflectors,
            .intern = d->options.intern,
            .on_change = source_on_object,
            .on_listed = source_on_listed,
            .sharing = kube->shared ? &d->sharing : NULL,
            .on_counts = source_on_counts,
            .wants_label = d->options.wants_label == NULL ? NULL : source_wants_label,
            .arg = kube,
        },
        err);
    return kube->kubernetes != NULL;
}

/* Returns the watch of a source, and adds a user to it. Only a watch that has not started is
 * shared, because a running one would not report its objects again. */
static struct kube_source *kube_get(struct discovery *d, const struct config *owner,
                                    const struct config_kubernetes *config, bool shared,
                                    struct err *err)
{
    struct kube_source *kube = NULL;
    LIST_FOREACH(kube, &d->kube, link)
    {
        if (!kube->started && kube->shared == shared &&
            kube_access_same_objects(kube->config, config)) {
            kube->n_users++;
            return kube;
        }
    }
    kube = calloc(1, sizeof(*kube));
    if (kube == NULL) {
        err_memory(err);
        return NULL;
    }
    *kube = (struct kube_source){
        .d = d, .owner = config_ref(owner), .config = config, .shared = shared, .n_users = 1};
    LIST_INSERT_HEAD(&d->kube, kube, link);
    if (!make_watch(kube, err)) {
        kube_unref(kube);
        return NULL;
    }
    return kube;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void source_on_list(void *arg, const char *name, struct labels *const *targets, size_t n)
{
    struct job_source *s = arg;
    struct target_group group = {
        .job = s->job,
        .source = name,
        .kind = GROUP_LISTED,
        .targets = targets,
        .n_targets = n,
    };
    discovery_report(s->d, &group);
}

static void source_on_list_state(void *arg, enum source_state state, const char *why)
{
    const struct job_source *s = arg;
    sources_set(s->d->options.sources, s->job_name, s->shown, state, why);
    discovery_on_progress(s->d);
}

static bool make_list(struct job_source *s, struct err *err)
{
    struct discovery *d = s->d;
    struct list_options options = {
        .job = s->job_name,
        .source = s->name,
        .loop = d->options.loop,
        .intern = d->options.intern,
        .log = d->options.log,
        .counters = &d->counters,
        .on_change = source_on_list,
        .on_state = source_on_list_state,
        .arg = s,
    };
    struct static_group fixed;
    switch (s->config->kind) {
    case SOURCE_FILE:
        s->files = file_sd_new(&s->config->file, &options);
        return s->files != NULL || err_memory(err);
    case SOURCE_HTTP:
        if (!discovery_need_http(d, &d->http_sd, "http_sd", err)) {
            return false;
        }
        options.http = d->http_sd;
        s->url = http_sd_new(&s->config->http, &options);
        return s->url != NULL || err_memory(err);
    default: /* whether it can be made; it is only when it is reported */
        if (!static_group_make(&s->config->fixed, 1, NULL, d->options.intern, &fixed, err)) {
            return false;
        }
        static_group_done(&fixed);
        return true;
    }
}

static void start_static(struct job_source *s)
{
    struct err err = ERR_INIT;
    struct static_group fixed;
    if (!static_group_make(&s->config->fixed, 1, NULL, s->d->options.intern, &fixed, &err)) {
        log_error(s->d->options.log, "targets left out", LOG_STR("source", s->name), LOG_ERR(&err));
        return;
    }
    source_on_list(s, s->name, fixed.at, fixed.n);
    static_group_done(&fixed);
    source_on_list_state(s, SOURCE_WORKS, "");
}

/* ---- sources --------------------------------------------------------------------------------- */

static size_t count_kubernetes(const struct config_job *job)
{
    size_t n = 0;
    for (size_t i = 0; i < job->n_sources; i++) {
        n += job->sources[i].kind == SOURCE_KUBERNETES ? 1 : 0;
    }
    return n;
}

static void set_name(struct job_source *s, const struct config_job *job, size_t index)
{
    enum config_source_kind kind = s->config->kind;
    bool is_prefix = kind == SOURCE_KUBERNETES || kind == SOURCE_FILE;
    snprintf(s->shown, sizeof(s->shown), "%s/%zu", config_source_kind_name(kind), index);
    if (kind != SOURCE_KUBERNETES || count_kubernetes(job) > 1) {
        snprintf(s->name, sizeof(s->name), "%.*s%s", PREFIX_MAX - 2, s->shown,
                 is_prefix ? "/" : "");
    }
}

struct job_source *source_new(struct discovery *d, const struct config *owner,
                              const struct config_job *job, size_t index, struct err *err)
{
    struct job_source *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    *s = (struct job_source){.d = d,
                             .owner = config_ref(owner),
                             .config = &job->sources[index],
                             .job = job->slot,
                             .job_name = job->name};
    set_name(s, job, index);
    bool ok;
    if (s->config->kind == SOURCE_KUBERNETES) {
        /* With allow_foreign_address, a target may have another address than its pod, so the pod's
         * address does not determine the owner. */
        bool shared = d->sharing.key != NULL && !job->allow_foreign_address;
        s->kube = kube_get(d, owner, &s->config->kubernetes, shared, err);
        ok = s->kube != NULL;
    } else {
        ok = make_list(s, err);
    }
    if (!ok) {
        const struct config_pos *pos = &s->config->pos;
        err_wrap(err, "%s:%d:%d: job \"%s\"", pos->file == NULL ? "" : pos->file, pos->line,
                 pos->column, job->name);
        return source_free(s);
    }
    return s;
}

void source_start(struct job_source *s)
{
    s->started = true;
    if (s->files != NULL) {
        file_sd_start(s->files);
    } else if (s->url != NULL) {
        http_sd_start(s->url);
    } else if (s->kube == NULL) {
        discovery_count(s->d, GROUPS_STATIC, 1);
        start_static(s);
    } else if (!s->kube->started) {
        s->kube->started = true;
        kubernetes_start(s->kube->kubernetes);
    }
}

bool source_is_known(const struct job_source *s)
{
    if (s->url != NULL) {
        return http_sd_is_known(s->url);
    }
    return s->started && (s->kube == NULL || kubernetes_synced(s->kube->kubernetes));
}

/* The arguments for naming objects: the prefix of the source is put in front. */
struct named {
    const struct job_source *s;
    void (*fn)(void *arg, const char *name);
    void *arg;
};

static void source_on_each(void *arg, const char *object)
{
    const struct named *each = arg;
    char name[SOURCE_MAX];
    snprintf(name, sizeof(name), "%s%s", each->s->name, object);
    each->fn(each->arg, name);
}

void source_each(struct job_source *s, void (*fn)(void *arg, const char *name), void *arg)
{
    struct named each = {.s = s, .fn = fn, .arg = arg};
    if (s->kube != NULL) {
        kubernetes_each(s->kube->kubernetes, source_on_each, &each);
    } else if (s->files != NULL) {
        file_sd_each(s->files, fn, arg);
    } else if (s->started) {
        fn(arg, s->name);
    }
}

struct job_source *source_free(struct job_source *s)
{
    if (s == NULL) {
        return NULL;
    }
    if (s->kube != NULL) {
        kube_unref(s->kube);
    } else if (s->started && s->config->kind == SOURCE_STATIC) {
        discovery_count(s->d, GROUPS_STATIC, -1);
    }
    file_sd_free(s->files);
    http_sd_free(s->url);
    config_unref(s->owner);
    free(s);
    return NULL;
}

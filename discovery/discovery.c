#include "discovery/discovery.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/counters.h"
#include "discovery/kubernetes/contents.h"
#include "discovery/kubernetes/kubernetes.h"
#include "discovery/kubernetes/peers.h"
#include "discovery/kubernetes/store.h"
#include "discovery/lists/file.h"
#include "discovery/lists/http.h"
#include "discovery/lists/static.h"

/* Strings of credentials: kubeconfigs with their certificates. */
#define ARENA_MAX ((size_t)64 * 1024 * 1024)
/* "kubernetes/<n>/" */
#define PREFIX_MAX 40
/* What is said of a source that cannot be read. */
#define WHY_MAX ((size_t)64 * 1024)
/* How that is called of which no job is the owner. */
#define SOURCE_MEMBERS "sharding"
#define SOURCE_CONTENTS "secrets"
/* A source's name: prefix, role, "/", namespace, "/", name. */
#define SOURCE_MAX (PREFIX_MAX + 32 + OBJECT_KEY_MAX)

/* When the members have changed, pods are listed again within this part of the handover, after
 * which they are ours, but not later than RELIST_MAX_MS: they must be known by then. */
#define RELIST_PART 4
#define RELIST_MAX_MS 2000

/* A kubernetes source of a job, and the watch that serves it. */
struct subscriber {
    const struct kube_source *source;
    size_t job;
    char name[PREFIX_MAX]; /* "kubernetes/<n>" */
    bool several;          /* the job has others: the name is part of those of its groups */
};

struct kube_source {
    struct discovery *d;
    const struct config_kubernetes *config;
    struct kubernetes *kubernetes;
    size_t n_subscribers;
    bool shared; /* pods of other replicas are foreign */
};

/* A source with a list of targets: static, a set of files, a URL. */
struct list_source {
    struct discovery *d;
    size_t job;
    char shown[PREFIX_MAX]; /* "file/<n>" */
    char name[PREFIX_MAX];  /* of files: the part before the path, "file/<n>/" */
    struct static_group fixed;
    struct file_sd *files;
    struct http_sd *url;
};

struct discovery {
    struct discovery_options options;
    struct discovery_counters counters;
    struct arena *arena;
    struct rng rng;
    struct http_client *http_sd; /* NULL without http sources */
    struct loop_timer *start;
    struct reflectors reflectors; /* without a client if there are no kubernetes sources */
    struct discovery_sharing sharing;
    struct peers *peers;            /* NULL unless targets are shared in a cluster */
    struct kube_contents *contents; /* NULL unless the configuration names some */
    struct http_settings access;    /* theirs */
    struct kube_source *kube;
    size_t n_kube;
    struct subscriber *subscribers;
    size_t n_subscribers;
    struct list_source *lists;
    size_t n_lists;
    bool started;
    bool synced;
    int64_t unread[UNREAD_COUNT]; /* as counted in the metrics */
    int64_t groups[GROUPS_COUNT]; /* as counted in the metrics; files and URLs count themselves */
};

/* ---- reporting ------------------------------------------------------------------------------- */

static void set_groups(struct discovery *d, enum discovery_groups kind, int64_t now)
{
    metric_gauge_add(d->counters.groups[kind], now - d->groups[kind]);
    d->groups[kind] = now;
}

static void count_groups(struct discovery *d)
{
    int64_t n = 0;
    for (size_t i = 0; i < d->n_kube; i++) {
        n +=
            (int64_t)(kubernetes_counts(d->kube[i].kubernetes).reported * d->kube[i].n_subscribers);
    }
    set_groups(d, GROUPS_KUBERNETES, n);
}

/* A watch serves several jobs: labels that one of them wants are built. */
static bool discovery_wants_label(void *arg, struct sv name)
{
    const struct kube_source *source = arg;
    const struct discovery *d = source->d;
    for (size_t i = 0; i < d->n_subscribers; i++) {
        const struct subscriber *s = &d->subscribers[i];
        if (s->source == source && d->options.wants_label(d->options.arg, s->job, name)) {
            return true;
        }
    }
    return false;
}

static void discovery_on_object(void *arg, const struct target_group *found)
{
    struct kube_source *source = arg;
    struct discovery *d = source->d;
    for (size_t i = 0; i < d->n_subscribers; i++) {
        const struct subscriber *s = &d->subscribers[i];
        if (s->source != source) {
            continue;
        }
        char name[SOURCE_MAX];
        snprintf(name, sizeof(name), "%s%s%s", s->several ? s->name : "", s->several ? "/" : "",
                 found->source);
        struct target_group group = *found;
        group.job = s->job;
        group.source = name;
        d->options.on_group(d->options.arg, &group);
    }
    count_groups(d);
}

static void discovery_on_counts(void *arg)
{
    const struct kube_source *source = arg;
    const struct discovery *d = source->d;
    size_t foreign = 0;
    size_t pending = 0;
    for (size_t i = 0; i < d->n_kube; i++) {
        struct store_counts counts = kubernetes_counts(d->kube[i].kubernetes);
        foreign += counts.foreign * d->kube[i].n_subscribers;
        pending += counts.pending * d->kube[i].n_subscribers;
    }
    d->sharing.on_foreign(d->sharing.arg, foreign, pending);
}

static void set_unread(struct discovery *d, enum discovery_unread reason, size_t now)
{
    metric_gauge_add(d->counters.unread[reason], (int64_t)now - d->unread[reason]);
    d->unread[reason] = (int64_t)now;
}

static const char *job_name(const struct discovery *d, size_t job)
{
    return d->options.config->jobs[job].name;
}

static void report_watches(struct discovery *d, struct buf *why)
{
    for (size_t i = 0; i < d->n_subscribers; i++) {
        const struct subscriber *s = &d->subscribers[i];
        buf_clear(why);
        enum source_state state = kubernetes_state(s->source->kubernetes, why);
        sources_set(d->options.sources, job_name(d, s->job), s->name, state, why->data);
    }
}

/* What jobs need besides their sources. */
static void report_others(struct discovery *d, struct buf *why)
{
    if (d->peers != NULL) {
        buf_clear(why);
        enum source_state state = peers_state(d->peers, why);
        sources_set(d->options.sources, "", SOURCE_MEMBERS, state, why->data);
    }
    if (d->contents != NULL) {
        buf_clear(why);
        kube_contents_missing(d->contents, why);
        sources_set(d->options.sources, "", SOURCE_CONTENTS,
                    why->len > 0 ? SOURCE_FAILS : SOURCE_WORKS, why->data);
    }
}

static void count_unread(struct discovery *d)
{
    struct reflectors_unread n = reflectors_unread(&d->reflectors);
    if (d->peers != NULL) {
        struct reflectors_unread peers = peers_unread(d->peers);
        n.pending += peers.pending;
        n.refused += peers.refused;
    }
    set_unread(d, UNREAD_PENDING, n.pending);
    set_unread(d, UNREAD_REFUSED, n.refused);
}

/* What can be read may have changed. */
static void discovery_on_progress(void *arg)
{
    struct discovery *d = arg;
    struct buf why;
    buf_init(&why, WHY_MAX);
    report_watches(d, &why);
    report_others(d, &why);
    count_unread(d);
    buf_done(&why);
    if (d->started && !d->synced && sources_count(d->options.sources, SOURCE_WAITS) == 0) {
        d->synced = true;
        if (d->options.on_synced != NULL) {
            d->options.on_synced(d->options.arg);
        }
    }
}

static void discovery_on_forbidden(void *arg, const struct discovery_forbidden *what)
{
    const struct discovery *d = arg;
    if (d->options.on_forbidden != NULL) {
        d->options.on_forbidden(d->options.arg, what);
    }
}

static void discovery_on_list(void *arg, const char *source, struct labels *const *targets,
                              size_t n)
{
    struct list_source *s = arg;
    struct target_group group = {
        .job = s->job,
        .source = source,
        .kind = GROUP_LISTED,
        .targets = targets,
        .n_targets = n,
    };
    s->d->options.on_group(s->d->options.arg, &group);
}

static void discovery_on_list_state(void *arg, enum source_state state, const char *why)
{
    const struct list_source *s = arg;
    sources_set(s->d->options.sources, job_name(s->d, s->job), s->shown, state, why);
    discovery_on_progress(s->d);
}

static void start_list(struct list_source *s)
{
    if (s->files != NULL) {
        file_sd_start(s->files);
    } else if (s->url != NULL) {
        http_sd_start(s->url);
    } else {
        discovery_on_list(s, s->name, s->fixed.at, s->fixed.n);
        static_group_done(&s->fixed);
        set_groups(s->d, GROUPS_STATIC, s->d->groups[GROUPS_STATIC] + 1);
        discovery_on_list_state(s, SOURCE_WORKS, "");
    }
}

/* Reports the lists, and starts the watches. */
static void start_sources(struct discovery *d)
{
    for (size_t i = 0; i < d->n_lists; i++) {
        start_list(&d->lists[i]);
    }
    d->started = true;
    reflectors_start(&d->reflectors);
    discovery_on_progress(d);
}

/* Credentials are known, as far as they can be. */
static void discovery_on_contents(void *arg)
{
    struct discovery *d = arg;
    if (d->peers != NULL) {
        peers_start(d->peers);
    } else {
        start_sources(d);
    }
}

/* The loop runs. Lists and targets may need credentials from Secrets. */
static void discovery_start(void *arg)
{
    struct discovery *d = arg;
    discovery_on_progress(d);
    if (d->contents != NULL) {
        kube_contents_start(d->contents);
    } else {
        discovery_on_contents(d);
    }
}

static void discovery_on_members(void *arg, const struct sv *names, size_t n, size_t self)
{
    struct discovery *d = arg;
    d->sharing.on_members(d->sharing.arg, names, n, self);
    if (!d->started) {
        start_sources(d);
        return;
    }
    int64_t within_ms = d->options.config->sharding.handover_ms / RELIST_PART;
    for (size_t i = 0; i < d->n_kube; i++) {
        kubernetes_reassign(d->kube[i].kubernetes,
                            within_ms < RELIST_MAX_MS ? within_ms : RELIST_MAX_MS);
    }
}

/* ---- sources --------------------------------------------------------------------------------- */

static struct kube_source *find_watch(struct discovery *d, const struct config_kubernetes *config,
                                      bool shared)
{
    for (size_t i = 0; i < d->n_kube; i++) {
        if (d->kube[i].shared == shared && kube_access_same_objects(d->kube[i].config, config)) {
            return &d->kube[i];
        }
    }
    return NULL;
}

static bool need_http(struct discovery *d, struct http_client **client, const char *name,
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

/* Identifies an API server with its credentials; NULL is the cluster's own. */
static const void *server_id(const struct discovery *d, const struct config_kubernetes *config)
{
    if (config->api_server == NULL && config->kubeconfig_file == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < d->n_kube; i++) {
        if (kube_access_same(d->kube[i].config, config)) {
            return d->kube[i].config;
        }
    }
    return config;
}

static bool add_watch(struct discovery *d, const struct config_kubernetes *config, bool shared,
                      struct err *err)
{
    struct kube_source *source = &d->kube[d->n_kube];
    struct kube_access access;
    if (!kube_access_find(config, &(struct kube_env){0}, d->arena, &access, err) ||
        !need_http(d, &d->reflectors.env.http, "kubernetes", err)) {
        return false;
    }
    *source = (struct kube_source){.d = d, .config = config, .shared = shared};
    source->kubernetes = kubernetes_new(
        &(struct kubernetes_options){
            .config = config,
            .access = access,
            .server_id = server_id(d, config),
            .reflectors = &d->reflectors,
            .intern = d->options.intern,
            .on_change = discovery_on_object,
            .sharing = shared ? &d->sharing : NULL,
            .on_counts = discovery_on_counts,
            .wants_label = d->options.wants_label == NULL ? NULL : discovery_wants_label,
            .arg = source,
        },
        err);
    if (source->kubernetes == NULL) {
        return false;
    }
    d->n_kube++;
    return true;
}

static bool add_kubernetes(struct discovery *d, size_t job, size_t index, bool several,
                           struct err *err)
{
    const struct config_job *owner = &d->options.config->jobs[job];
    const struct config_kubernetes *config = &owner->sources[index].kubernetes;
    /* The owner of a target with another address is not found by the pod's. */
    bool shared = d->sharing.key != NULL && !owner->allow_foreign_address;
    struct kube_source *source = find_watch(d, config, shared);
    if (source == NULL) {
        if (!add_watch(d, config, shared, err)) {
            return false;
        }
        source = &d->kube[d->n_kube - 1];
    }
    source->n_subscribers++;
    struct subscriber *s = &d->subscribers[d->n_subscribers++];
    s->source = source;
    s->job = job;
    s->several = several;
    snprintf(s->name, sizeof(s->name), "%s/%zu", config_source_kind_name(SOURCE_KUBERNETES), index);
    return true;
}

static bool add_list(struct discovery *d, size_t job, size_t index, struct err *err)
{
    const struct config_source *config = &d->options.config->jobs[job].sources[index];
    struct list_source *s = &d->lists[d->n_lists++];
    *s = (struct list_source){.d = d, .job = job};
    snprintf(s->shown, sizeof(s->shown), "%s/%zu", config_source_kind_name(config->kind), index);
    snprintf(s->name, sizeof(s->name), "%.*s%s", PREFIX_MAX - 2, s->shown,
             config->kind == SOURCE_FILE ? "/" : "");
    sources_set(d->options.sources, job_name(d, job), s->shown, SOURCE_WAITS, "not read yet");
    struct list_options options = {
        .job = job_name(d, job),
        .source = s->name,
        .loop = d->options.loop,
        .intern = d->options.intern,
        .log = d->options.log,
        .counters = &d->counters,
        .on_change = discovery_on_list,
        .on_state = discovery_on_list_state,
        .arg = s,
    };
    switch (config->kind) {
    case SOURCE_FILE:
        s->files = file_sd_new(&config->file, &options);
        return s->files != NULL || err_memory(err);
    case SOURCE_HTTP:
        if (!need_http(d, &d->http_sd, "http_sd", err)) {
            return false;
        }
        options.http = d->http_sd;
        s->url = http_sd_new(&config->http, &options);
        return s->url != NULL || err_memory(err);
    default:
        return static_group_make(&config->fixed, 1, NULL, d->options.intern, &s->fixed, err);
    }
}

static size_t count_kubernetes(const struct config_job *job)
{
    size_t n = 0;
    for (size_t i = 0; i < job->n_sources; i++) {
        n += job->sources[i].kind == SOURCE_KUBERNETES ? 1 : 0;
    }
    return n;
}

static bool add_job(struct discovery *d, size_t index, struct err *err)
{
    const struct config_job *job = &d->options.config->jobs[index];
    bool several = count_kubernetes(job) > 1;
    for (size_t i = 0; i < job->n_sources; i++) {
        bool ok = job->sources[i].kind == SOURCE_KUBERNETES
                      ? add_kubernetes(d, index, i, several, err)
                      : add_list(d, index, i, err);
        if (!ok) {
            const struct config_pos *pos = &job->sources[i].pos;
            err_wrap(err, "%s:%d:%d: job \"%s\"", pos->file == NULL ? "" : pos->file, pos->line,
                     pos->column, job->name);
            return false;
        }
    }
    return true;
}

static bool add_peers(struct discovery *d, struct err *err)
{
    const struct config_sharding *config = &d->options.config->sharding;
    struct kube_access access;
    if (d->options.sharing == NULL || config->mode != SHARDING_KUBERNETES) {
        return true;
    }
    if (!kube_access_find(&config->kubernetes, &(struct kube_env){0}, d->arena, &access, err) ||
        !need_http(d, &d->reflectors.env.http, "kubernetes", err)) {
        return err_wrap(err, "sharding");
    }
    d->peers = peers_new(
        &(struct peers_options){
            .config = config,
            .access = access,
            .sharing = &d->sharing,
            .env = d->reflectors.env,
            .on_members = discovery_on_members,
            .arg = d,
        },
        err);
    return d->peers != NULL || err_wrap(err, "sharding");
}

/* The values of Secrets and ConfigMaps are read with the rights of the own pod. */
static bool add_contents(struct discovery *d, struct err *err)
{
    static const struct config_kubernetes own;
    const struct config_strings *names = &d->options.config->contents;
    struct kube_access access;
    if (d->options.contents == NULL || names->n == 0) {
        return true;
    }
    if (!kube_access_find(&own, &(struct kube_env){0}, d->arena, &access, err) ||
        !need_http(d, &d->reflectors.env.http, "kubernetes", err)) {
        return err_wrap(err, "%s", names->at[0]);
    }
    d->access = access.http;
    d->contents = kube_contents_new(
        &(struct kube_contents_options){
            .names = names,
            .server = access.server,
            .access = &d->access,
            .http = d->reflectors.env.http,
            .loop = d->options.loop,
            .log = d->options.log,
            .counters = &d->counters,
            .contents = d->options.contents,
            .on_asked = discovery_on_contents,
            .on_change = discovery_on_progress,
            .arg = d,
        },
        err);
    return d->contents != NULL;
}

static bool add_jobs(struct discovery *d, struct err *err)
{
    const struct config *config = d->options.config;
    size_t max = 0;
    for (size_t i = 0; i < config->n_jobs; i++) {
        max += config->jobs[i].n_sources;
    }
    d->arena = arena_new(ARENA_MAX);
    d->start = loop_timer_new(d->options.loop, discovery_start, d);
    d->kube = calloc(max + 1, sizeof(*d->kube));
    d->subscribers = calloc(max + 1, sizeof(*d->subscribers));
    d->lists = calloc(max + 1, sizeof(*d->lists));
    if (d->arena == NULL || d->start == NULL || d->kube == NULL || d->subscribers == NULL ||
        d->lists == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < config->n_jobs; i++) {
        if (!add_job(d, i, err)) {
            return false;
        }
    }
    return add_peers(d, err) && add_contents(d, err);
}

struct discovery *discovery_new(const struct discovery_options *options, struct err *err)
{
    struct discovery *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        err_memory(err);
        return NULL;
    }
    d->options = *options;
    if (options->sharing != NULL) {
        d->sharing = *options->sharing;
    }
    rng_seed_random(&d->rng);
    discovery_counters_init(&d->counters, options->metrics);
    d->reflectors.env = (struct reflector_env){
        .loop = options->loop,
        .log = options->log,
        .counters = &d->counters,
        .rng = &d->rng,
        .list_progress_ms = options->list_progress_ms,
        .on_forbidden = discovery_on_forbidden,
        .on_progress = discovery_on_progress,
        .arg = d,
    };
    if (!add_jobs(d, err)) {
        return discovery_free(d);
    }
    loop_timer_after(d->start, 0);
    return d;
}

static void forget_sources(struct discovery *d)
{
    for (size_t i = 0; i < d->n_subscribers; i++) {
        const struct subscriber *s = &d->subscribers[i];
        sources_forget(d->options.sources, job_name(d, s->job), s->name);
    }
    for (size_t i = 0; i < d->n_lists; i++) {
        const struct list_source *s = &d->lists[i];
        sources_forget(d->options.sources, job_name(d, s->job), s->shown);
    }
    sources_forget(d->options.sources, "", SOURCE_MEMBERS);
    sources_forget(d->options.sources, "", SOURCE_CONTENTS);
}

struct discovery *discovery_free(struct discovery *d)
{
    if (d == NULL) {
        return NULL;
    }
    forget_sources(d);
    reflectors_free(&d->reflectors);
    peers_free(d->peers);
    kube_contents_free(d->contents);
    for (size_t i = 0; i < d->n_kube; i++) {
        kubernetes_free(d->kube[i].kubernetes);
    }
    for (size_t i = 0; i < d->n_lists; i++) {
        static_group_done(&d->lists[i].fixed);
        file_sd_free(d->lists[i].files);
        http_sd_free(d->lists[i].url);
    }
    for (int kind = 0; kind < GROUPS_COUNT; kind++) {
        set_groups(d, (enum discovery_groups)kind, 0);
    }
    for (int reason = 0; reason < UNREAD_COUNT; reason++) {
        set_unread(d, (enum discovery_unread)reason, 0);
    }
    http_client_free(d->reflectors.env.http);
    http_client_free(d->http_sd);
    loop_timer_free(d->start);
    arena_free(d->arena);
    free(d->kube);
    free(d->subscribers);
    free(d->lists);
    free(d);
    return NULL;
}

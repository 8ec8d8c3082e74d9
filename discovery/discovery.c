#include "discovery/discovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "config/change.h"
#include "discovery/kubernetes/contents.h"
#include "discovery/kubernetes/peers.h"
#include "discovery/private.h"

/* When the members change, newly assigned pods become ours at the end of the handover and must be
 * known by then. They are therefore listed again within a fraction of it (1/RELIST_PART), and at
 * most RELIST_MAX_MS later. */
#define RELIST_PART 4
#define RELIST_MAX_MS 2000
/* The longest time that a group of a changed job is kept while the job's new sources cannot be
 * read. */
#define LEFTOVERS_MS (INT64_C(5) * 60 * MS_PER_S)
/* The longest text about a source that cannot be read. */
#define WHY_MAX ((size_t)64 * 1024)
/* The names of sources that belong to no job. */
#define SOURCE_MEMBERS "sharding"
#define SOURCE_CONTENTS "secrets"

/* The prepared change: the sources of the next configuration, except those that are kept. */
struct discovery_change {
    struct discovery *d;
    struct config *config; /* a reference */
    bool *kept;            /* by slot, n_slots of them: true if the job keeps its sources */
    size_t n_slots;
    struct job_sources added;
    bool has_contents; /* `contents` replaces those in use */
    struct contents contents;
};

/* ---- groups ---------------------------------------------------------------------------------- */

static struct leftovers *find_leftovers(const struct discovery *d, size_t job)
{
    struct leftovers *l = NULL;
    LIST_FOREACH(l, &d->leftovers, link)
    {
        if (l->job == job) {
            return l;
        }
    }
    return NULL;
}

void discovery_report(struct discovery *d, const struct target_group *group)
{
    const struct leftovers *l = find_leftovers(d, group->job);
    if (l != NULL) {
        map_remove(l->names, sv_from(group->source));
    }
    d->options.on_group(d->options.arg, group);
}

static void report_gone(struct discovery *d, size_t job, const char *name)
{
    const struct target_group gone = {.job = job, .source = name, .kind = GROUP_LISTED};
    d->options.on_group(d->options.arg, &gone);
}

/* Reports that the leftovers of a job are gone, and forgets them. */
static void drop_leftovers(struct discovery *d, struct leftovers *l)
{
    size_t cursor = 0;
    struct sv name;
    void *value;
    LIST_REMOVE(l, link);
    while (map_next(l->names, &cursor, &name, &value)) {
        report_gone(d, l->job, name.p);
    }
    map_free(l->names, NULL);
    free(l);
}

static bool is_job_known(const struct discovery *d, size_t job)
{
    const struct job_source *s = NULL;
    TAILQ_FOREACH(s, &d->sources, link)
    {
        if (s->job == job && !source_is_known(s)) {
            return false;
        }
    }
    return true;
}

/* Drops the leftovers of jobs whose sources have all been read since. */
static void settle(struct discovery *d)
{
    int64_t now_ms = clock_mono_ms();
    struct leftovers *l = LIST_FIRST(&d->leftovers);
    while (l != NULL) {
        struct leftovers *next = LIST_NEXT(l, link);
        if (l->deadline_ms <= now_ms || is_job_known(d, l->job)) {
            drop_leftovers(d, l);
        } else {
            loop_timer_at(d->settle, l->deadline_ms);
        }
        l = next;
    }
}

static void discovery_on_settle(void *arg)
{
    settle(arg);
}

/* The leftovers of a job; NULL if out of memory. */
static struct leftovers *make_leftovers(struct discovery *d, size_t job)
{
    struct leftovers *l = find_leftovers(d, job);
    if (l == NULL && (l = calloc(1, sizeof(*l))) != NULL) {
        l->job = job;
        l->names = map_new();
        if (l->names == NULL) {
            free(l);
            return NULL;
        }
        LIST_INSERT_HEAD(&d->leftovers, l, link);
    }
    return l;
}

/* ---- counting -------------------------------------------------------------------------------- */

void discovery_count(struct discovery *d, enum discovery_groups kind, int64_t n)
{
    metric_gauge_add(d->counters.groups[kind], n);
    d->groups[kind] += n;
}

void discovery_count_objects(struct discovery *d)
{
    const struct kube_source *kube = NULL;
    int64_t n = 0;
    LIST_FOREACH(kube, &d->kube, link)
    {
        n += (int64_t)(kubernetes_counts(kube->kubernetes).reported * kube->n_users);
    }
    discovery_count(d, GROUPS_KUBERNETES, n - d->groups[GROUPS_KUBERNETES]);
}

static void set_unread(struct discovery *d, enum discovery_unread reason, size_t now)
{
    metric_gauge_add(d->counters.unread[reason], (int64_t)now - d->unread[reason]);
    d->unread[reason] = (int64_t)now;
}

/* ---- what has been read ---------------------------------------------------------------------- */

static void report_watches(struct discovery *d, struct buf *why)
{
    const struct job_source *s = NULL;
    TAILQ_FOREACH(s, &d->sources, link)
    {
        if (s->kube != NULL) {
            buf_clear(why);
            enum source_state state = kubernetes_state(s->kube->kubernetes, why);
            sources_set(d->options.sources, s->job_name, s->shown, state, why->data);
        }
    }
}

/* Reports the sources that belong to no job: members and contents. */
static void report_others(struct discovery *d, struct buf *why)
{
    if (d->peers != NULL) {
        buf_clear(why);
        enum source_state state = peers_state(d->peers, why);
        sources_set(d->options.sources, "", SOURCE_MEMBERS, state, why->data);
    }
    if (d->contents.at != NULL) {
        buf_clear(why);
        kube_contents_missing(d->contents.at, why);
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

void discovery_on_progress(void *arg)
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
    settle(d);
}

static void discovery_on_forbidden(void *arg, const struct discovery_forbidden *what)
{
    const struct discovery *d = arg;
    if (d->options.on_forbidden != NULL) {
        d->options.on_forbidden(d->options.arg, what);
    }
}

/* ---- the start ------------------------------------------------------------------------------- */

/* Starts the sources that have not started: reports the lists, and starts the watches. */
static void start_sources(struct discovery *d)
{
    struct job_source *s = NULL;
    d->started = true;
    TAILQ_FOREACH(s, &d->sources, link)
    {
        if (!s->started) {
            source_start(s);
        }
    }
    discovery_on_progress(d);
}

/* Called when all credentials from Secrets and ConfigMaps are known, as far as they can be read. */
static void discovery_on_contents(void *arg)
{
    struct discovery *d = arg;
    if (d->peers != NULL && !d->started) {
        peers_start(d->peers);
    } else {
        start_sources(d);
    }
}

/* Reads Secrets first, because lists and targets may need credentials from them. */
static void discovery_start(void *arg)
{
    struct discovery *d = arg;
    discovery_on_progress(d);
    if (d->contents.at != NULL) {
        kube_contents_start(d->contents.at);
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
    int64_t within_ms = d->config->sharding.handover_ms / RELIST_PART;
    const struct kube_source *kube = NULL;
    LIST_FOREACH(kube, &d->kube, link)
    {
        kubernetes_reassign(kube->kubernetes,
                            within_ms < RELIST_MAX_MS ? within_ms : RELIST_MAX_MS);
    }
}

static bool add_peers(struct discovery *d, struct err *err)
{
    const struct config_sharding *config = &d->config->sharding;
    if (d->options.sharing == NULL || config->mode != SHARDING_KUBERNETES) {
        return true;
    }
    d->peers_owner = config_ref(d->config);
    d->peers_server = kube_server_get(d, d->config, &config->kubernetes, err);
    if (d->peers_server == NULL) {
        return err_wrap(err, "sharding");
    }
    d->peers = peers_new(
        &(struct peers_options){
            .config = config,
            .access = d->peers_server->access,
            .sharing = &d->sharing,
            .env = d->reflectors.env,
            .on_members = discovery_on_members,
            .arg = d,
        },
        err);
    return d->peers != NULL || err_wrap(err, "sharding");
}

/* ---- Secrets and ConfigMaps ------------------------------------------------------------------ */

static void contents_done(struct contents *c)
{
    kube_contents_free(c->at);
    kube_server_unref(c->server);
    config_unref(c->owner);
    *c = (struct contents){.at = NULL};
}

static bool same_names(const struct config_strings *a, const struct config_strings *b)
{
    for (size_t i = 0; a->n == b->n && i < a->n; i++) {
        if (strcmp(a->at[i], b->at[i]) != 0) {
            return false;
        }
    }
    return a->n == b->n;
}

/* Prepares to read the values of Secrets and ConfigMaps, with the rights of our own pod. */
static bool contents_init(struct contents *c, struct discovery *d, const struct config *config,
                          struct err *err)
{
    static const struct config_kubernetes own;
    const struct config_strings *names = &config->contents;
    if (d->options.contents == NULL || names->n == 0) {
        return true;
    }
    c->owner = config_ref(config);
    c->server = kube_server_get(d, NULL, &own, err);
    if (c->server == NULL) {
        return err_wrap(err, "%s", names->at[0]);
    }
    c->at = kube_contents_new(
        &(struct kube_contents_options){
            .names = names,
            .server = c->server->access.server,
            .access = &c->server->access.http,
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
    return c->at != NULL;
}

/* ---- another configuration ------------------------------------------------------------------- */

static bool is_kept(const struct discovery_change *c, size_t job)
{
    return job < c->n_slots && c->kept[job];
}

static bool add_job(struct discovery_change *c, const struct config_job *job, struct err *err)
{
    for (size_t i = 0; i < job->n_sources; i++) {
        struct job_source *s = source_new(c->d, c->config, job, i, err);
        if (s == NULL) {
            return false;
        }
        TAILQ_INSERT_TAIL(&c->added, s, link);
    }
    return true;
}

static bool add_all(struct discovery_change *c, struct err *err)
{
    const struct discovery *d = c->d;
    for (size_t i = 0; i < c->config->n_jobs; i++) {
        const struct config_job *job = &c->config->jobs[i];
        if (!is_kept(c, job->slot) && !add_job(c, job, err)) {
            return false;
        }
    }
    c->has_contents = d->config == NULL || !same_names(&d->config->contents, &c->config->contents);
    return !c->has_contents || contents_init(&c->contents, c->d, c->config, err);
}

struct discovery_change *discovery_prepare(struct discovery *d, const struct config *next,
                                           const bool *kept, struct err *err)
{
    struct discovery_change *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    c->d = d;
    c->config = config_ref(next);
    TAILQ_INIT(&c->added);
    c->n_slots = config_job_slots(next);
    c->kept = calloc(c->n_slots + 1, sizeof(*c->kept));
    if (c->kept == NULL) {
        err_memory(err);
        return discovery_discard(c);
    }
    if (kept != NULL) {
        memcpy(c->kept, kept, c->n_slots * sizeof(*c->kept));
    }
    return add_all(c, err) ? c : discovery_discard(c);
}

/* Frees a change. Its sources must have been taken over or freed before. */
static struct discovery_change *free_change(struct discovery_change *c)
{
    config_unref(c->config);
    free(c->kept);
    free(c);
    return NULL;
}

struct discovery_change *discovery_discard(struct discovery_change *c)
{
    if (c == NULL) {
        return NULL;
    }
    while (!TAILQ_EMPTY(&c->added)) {
        struct job_source *s = TAILQ_FIRST(&c->added);
        TAILQ_REMOVE(&c->added, s, link);
        source_free(s);
    }
    contents_done(&c->contents);
    return free_change(c);
}

/* Returns true if the groups of an ending source are kept until its job's new sources have been
 * read, which is the case if the job exists in the new configuration and its setting of `sharding`
 * is the same. */
static bool is_followed(const struct discovery_change *c, const struct job_source *s)
{
    const struct config_job *next = config_job_at(c->config, s->job);
    const struct config_job *job = config_job_at(s->owner, s->job);
    return next != NULL && next->shared == job->shared;
}

/* The state of ending one source. */
struct ending {
    struct discovery *d;
    size_t job;
    struct leftovers *leftovers; /* takes its groups; NULL: they end at once */
};

static void discovery_on_ended(void *arg, const char *name)
{
    const struct ending *e = arg;
    if (e->leftovers == NULL || !map_put(e->leftovers->names, sv_from(name), e->leftovers, NULL)) {
        report_gone(e->d, e->job, name);
    }
}

static void retire(struct discovery_change *c, struct job_source *s)
{
    struct discovery *d = c->d;
    struct ending e = {.d = d, .job = s->job};
    if (is_followed(c, s) && (e.leftovers = make_leftovers(d, s->job)) != NULL) {
        e.leftovers->deadline_ms = clock_mono_ms() + LEFTOVERS_MS;
    }
    source_each(s, discovery_on_ended, &e);
    sources_forget(d->options.sources, s->job_name, s->shown);
    TAILQ_REMOVE(&d->sources, s, link);
    source_free(s);
    struct leftovers *l = e.leftovers == NULL ? find_leftovers(d, e.job) : NULL;
    if (l != NULL) {
        drop_leftovers(d, l);
    }
}

void discovery_retire(struct discovery_change *c)
{
    struct job_source *s = TAILQ_FIRST(&c->d->sources);
    while (s != NULL) {
        struct job_source *next = TAILQ_NEXT(s, link);
        if (!is_kept(c, s->job)) {
            retire(c, s);
        }
        s = next;
    }
    discovery_count_objects(c->d);
}

struct discovery_change *discovery_commit(struct discovery_change *c)
{
    struct discovery *d = c->d;
    const struct job_source *s = NULL;
    TAILQ_FOREACH(s, &c->added, link)
    {
        sources_set(d->options.sources, s->job_name, s->shown, SOURCE_WAITS, "not read yet");
    }
    TAILQ_CONCAT(&d->sources, &c->added, link);
    if (c->has_contents) {
        sources_forget(d->options.sources, "", SOURCE_CONTENTS);
        contents_done(&d->contents);
        d->contents = c->contents;
    }
    config_unref(d->config);
    d->config = config_ref(c->config);
    if (d->started && c->has_contents && d->contents.at != NULL) {
        kube_contents_start(d->contents.at);
    } else if (d->started) {
        start_sources(d);
    }
    return free_change(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool init(struct discovery *d, const struct config *config, struct err *err)
{
    d->start = loop_timer_new(d->options.loop, discovery_start, d);
    d->settle = loop_timer_new(d->options.loop, discovery_on_settle, d);
    if (d->start == NULL || d->settle == NULL) {
        return err_memory(err);
    }
    struct discovery_change *c = discovery_prepare(d, config, NULL, err);
    if (c == NULL) {
        return false;
    }
    discovery_commit(c);
    loop_timer_after(d->start, 0);
    return add_peers(d, err);
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
    LIST_INIT(&d->servers);
    LIST_INIT(&d->kube);
    TAILQ_INIT(&d->sources);
    LIST_INIT(&d->leftovers);
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
    return init(d, options->config, err) ? d : discovery_free(d);
}

static void free_leftovers(struct discovery *d)
{
    while (!LIST_EMPTY(&d->leftovers)) {
        struct leftovers *l = LIST_FIRST(&d->leftovers);
        LIST_REMOVE(l, link);
        map_free(l->names, NULL);
        free(l);
    }
}

struct discovery *discovery_free(struct discovery *d)
{
    if (d == NULL) {
        return NULL;
    }
    peers_free(d->peers);
    kube_server_unref(d->peers_server);
    config_unref(d->peers_owner);
    contents_done(&d->contents);
    sources_forget(d->options.sources, "", SOURCE_MEMBERS);
    sources_forget(d->options.sources, "", SOURCE_CONTENTS);
    while (!TAILQ_EMPTY(&d->sources)) {
        struct job_source *s = TAILQ_FIRST(&d->sources);
        sources_forget(d->options.sources, s->job_name, s->shown);
        TAILQ_REMOVE(&d->sources, s, link);
        source_free(s);
    }
    reflectors_free(&d->reflectors);
    free_leftovers(d);
    for (int kind = 0; kind < GROUPS_COUNT; kind++) {
        discovery_count(d, (enum discovery_groups)kind, -d->groups[kind]);
    }
    for (int reason = 0; reason < UNREAD_COUNT; reason++) {
        set_unread(d, (enum discovery_unread)reason, 0);
    }
    http_client_free(d->reflectors.env.http);
    http_client_free(d->http_sd);
    loop_timer_free(d->start);
    loop_timer_free(d->settle);
    config_unref(d->config);
    free(d);
    return NULL;
}

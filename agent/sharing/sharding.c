#include "agent/sharing/sharding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sharing/members.h"
#include "agent/sharing/owned_targets.h"
#include "agent/sharing/rendezvous.h"
#include "base/clock.h"
#include "scraper/targets/address.h"

/* Bytes of names in a log line or a sentence. */
#define NAMES_MAX ((size_t)2048)
#define SELF_MAX 256
/* The delay of another review after memory ran out. */
#define RETRY_MS 1000

struct sharding {
    struct sharding_options options;
    const struct config_sharding *config;
    struct discovery_sharing discovery;
    char self[SELF_MAX];
    struct members *members;
    struct owned_targets *targets;
    struct loop_timer *timer;
    enum members_state logged;
    bool was_member;
    size_t foreign; /* pods owned by other replicas */
    size_t pending; /* pods that have become ours and have not been listed since */
    bool pending_logged;
    struct metric_cell *n_members;
    struct metric_cell *index;
    struct metric_cell *owned;
    struct metric_cell *others;
    struct metric_cell *pending_cell;
    struct metric_cell *gained;
    struct metric_cell *lost;
    struct metric_cell *changes;
};

/* ---- messages -------------------------------------------------------------------------------- */

static void put_names(const struct members *m, struct buf *out)
{
    for (size_t i = 0; i < members_count(m); i++) {
        const char *name = members_name(m, i);
        if (out->len + strlen(name) > NAMES_MAX) {
            buf_printf(out, ", and %zu more", members_count(m) - i);
            return;
        }
        buf_printf(out, "%s%s", i == 0 ? "" : ", ", name);
    }
}

static void log_members(struct sharding *s)
{
    struct buf names;
    buf_init(&names, NAMES_MAX + 512);
    put_names(s->members, &names);
    log_info(s->options.log, "sharding: members", LOG_INT("n", members_count(s->members)),
             LOG_STR("members", names.data == NULL ? "" : names.data), LOG_STR("self", s->self));
    buf_done(&names);
}

static void log_state(struct sharding *s)
{
    enum members_state state = members_state(s->members);
    struct log *log = s->options.log;
    if (state == s->logged) {
        return;
    }
    s->logged = state;
    switch (state) {
    case MEMBERS_UNKNOWN:
        break;
    case MEMBERS_OUTSIDE:
        log_write(log, s->was_member ? LOG_WARN : LOG_INFO,
                  s->was_member ? "sharding: this replica is no longer among the ready endpoints "
                                  "of the Service: it scrapes nothing until it is"
                                : "sharding: this replica is not among the ready endpoints of the "
                                  "Service yet: it scrapes nothing until it is",
                  (const struct log_field[]){LOG_STR("service", s->config->service),
                                             LOG_STR("self", s->self), LOG_END});
        break;
    case MEMBERS_WAITING:
        log_info(
            log,
            "sharding: waiting for the other replicas to stop scraping the targets that move here",
            LOG_INT("handover_ms", s->config->handover_ms));
        break;
    case MEMBERS_ACTIVE:
        log_info(log, "sharding: taking the share of this replica", LOG_STR("self", s->self));
        break;
    case MEMBERS_ISOLATED:
        log_error(log,
                  "sharding: cut off from the API server for too long, others may have taken over: "
                  "scraping nothing until it answers",
                  LOG_INT("isolation_timeout_ms", s->config->isolation_ms));
        break;
    }
    s->was_member = s->was_member || state == MEMBERS_WAITING || state == MEMBERS_ACTIVE;
}

bool sharding_explain(const struct sharding *s, uint64_t key, struct buf *out)
{
    const char *owner = sharding_owner(s, key);
    if (owner == NULL) {
        return buf_puts(out, "scraped by no replica: the Service has no ready endpoints");
    }
    if (sharding_is_ours(s, key)) {
        return buf_printf(out, "scraped by this replica (%s)", owner);
    }
    buf_printf(out, "scraped by %s (this is %s%s; members: ", owner, s->self,
               sharding_is_member(s) ? "" : ", which is not a member");
    put_names(s->members, out);
    return buf_puts(out, ")");
}

struct sharding_counts sharding_counts(const struct sharding *s)
{
    return (struct sharding_counts){
        .members = (int64_t)metric_value(s->n_members),
        .index = (int64_t)metric_value(s->index),
        .own = (int64_t)metric_value(s->owned),
        .others = (int64_t)metric_value(s->others),
    };
}

/* ---- events ---------------------------------------------------------------------------------- */

static void count_targets(struct sharding *s)
{
    size_t owned = owned_targets_count(s->targets);
    metric_set(s->owned, (int64_t)owned);
    metric_set(s->others,
               (int64_t)(owned_targets_total(s->targets) - owned + s->foreign + s->pending));
}

static bool review(struct sharding *s)
{
    struct owned_moves moves = owned_targets_review(s->targets);
    metric_add(s->gained, moves.gained);
    metric_add(s->lost, moves.lost);
    count_targets(s);
    if (moves.gained + moves.lost > 0) {
        log_info(s->options.log, "sharding: targets moved", LOG_INT("gained", moves.gained),
                 LOG_INT("lost", moves.lost), LOG_INT("owned", owned_targets_count(s->targets)),
                 LOG_INT("of", owned_targets_total(s->targets)));
    }
    if (moves.failed > 0) {
        log_error(s->options.log, "sharding: out of memory, handing over moved targets again soon",
                  LOG_INT("groups", moves.failed));
    }
    return moves.failed == 0;
}

static void update(struct sharding *s, bool again)
{
    int64_t now_ms = clock_mono_ms();
    bool changed = members_tick(s->members, now_ms) || again;
    log_state(s);
    bool ok = !changed || review(s);
    int64_t next_ms = members_next_at(s->members);
    if (!ok && next_ms > now_ms + RETRY_MS) {
        next_ms = now_ms + RETRY_MS;
    }
    if (next_ms == INT64_MAX) {
        loop_timer_cancel(s->timer);
    } else {
        loop_timer_at(s->timer, next_ms);
    }
}

/* Warns of pods that are ours but cannot be scraped yet. */
static void log_pending(struct sharding *s)
{
    if (s->pending > 0 && members_state(s->members) == MEMBERS_ACTIVE && !s->pending_logged) {
        s->pending_logged = true;
        log_warn(
            s->options.log,
            "sharding: pods of this replica have not been listed yet: they are scraped as soon "
            "as the API server lists them",
            LOG_INT("pods", s->pending));
    }
}

/* Updates the members and hands moved targets over. Repeats hand-overs that have failed as well. */
static void sharding_on_timer(void *arg)
{
    update(arg, true);
    log_pending(arg);
}

static void sharding_on_members(void *arg, const struct sv *names, size_t n, size_t self)
{
    struct sharding *s = arg;
    enum members_result result = members_set(s->members, names, n, self, clock_mono_ms());
    if (result == MEMBERS_NO_MEMORY) {
        log_error(s->options.log, "sharding: out of memory: keeping the last members");
    } else if (result == MEMBERS_CHANGED) {
        metric_inc(s->changes);
        metric_set(s->n_members, (int64_t)members_count(s->members));
        metric_set(s->index, sharding_is_member(s) ? (int64_t)members_index(s->members) : -1);
        log_members(s);
    } else if (n == 0 && members_count(s->members) > 0) {
        log_warn(s->options.log,
                 "sharding: the Service has no ready endpoints any more: keeping the last members",
                 LOG_STR("service", s->config->service));
    }
    update(s, false);
}

static void sharding_on_addresses(void *arg, const struct sv *addresses, size_t n)
{
    const struct sharding *s = arg;
    if (s->options.on_addresses != NULL) {
        s->options.on_addresses(s->options.arg, addresses, n);
    }
}

static void sharding_on_reachable(void *arg, bool reachable)
{
    struct sharding *s = arg;
    members_reachable(s->members, reachable, clock_mono_ms());
    update(s, false);
}

static void sharding_on_foreign(void *arg, size_t foreign, size_t pending)
{
    struct sharding *s = arg;
    s->foreign = foreign;
    s->pending = pending;
    metric_set(s->pending_cell, (int64_t)pending);
    count_targets(s);
    if (pending == 0 && s->pending_logged) {
        s->pending_logged = false;
        log_info(s->options.log, "sharding: the pods of this replica have been listed");
    }
}

/* ---- targets --------------------------------------------------------------------------------- */

static bool sharding_owns(void *arg, uint64_t key)
{
    const struct sharding *s = arg;
    return members_owns(s->members, key);
}

static bool sharding_hand_over(void *arg, size_t job, const char *source,
                               struct target *const *targets, size_t n)
{
    const struct sharding *s = arg;
    return scraper_set_group(s->options.scraper, job, source, targets, n);
}

/* Returns the key of a pod, which equals sharding_key() of every target at its address. */
static uint64_t sharding_pod_key(void *arg, const char *ip)
{
    struct address address;
    (void)arg;
    if (!address_parse(sv_from(ip), 80, &address, NULL)) {
        return 0;
    }
    return rendezvous_hash(rendezvous_key(sv_from(address.canonical), ip, false));
}

static bool sharding_is_assigned(void *arg, uint64_t key)
{
    const struct sharding *s = arg;
    /* The members may know us by our address. */
    const char *self =
        sharding_is_member(s) ? members_name(s->members, members_index(s->members)) : s->self;
    return members_is_assigned(s->members, self, key);
}

uint64_t sharding_key(const struct target *t, const char *pinned_host)
{
    bool foreign = target_job(t)->allow_foreign_address;
    return rendezvous_hash(rendezvous_key(sv_from(target_canonical(t)), pinned_host, foreign));
}

bool sharding_put(struct sharding *s, size_t job, const char *source, struct target *const *targets,
                  const uint64_t *keys, size_t n, bool moved)
{
    size_t before = owned_targets_count(s->targets);
    bool ok = owned_targets_put(s->targets, job, source, targets, keys, n);
    size_t now = owned_targets_count(s->targets);
    metric_add(s->gained, moved && now > before ? now - before : 0);
    count_targets(s);
    return ok;
}

const char *sharding_owner(const struct sharding *s, uint64_t key)
{
    return members_owner(s->members, key);
}

bool sharding_is_ours(const struct sharding *s, uint64_t key)
{
    const char *owner = sharding_owner(s, key);
    return owner != NULL && sharding_is_member(s) &&
           strcmp(owner, members_name(s->members, members_index(s->members))) == 0;
}

bool sharding_is_member(const struct sharding *s)
{
    return members_index(s->members) != MEMBERS_NONE;
}

const char *sharding_self(const struct sharding *s)
{
    return s->self;
}

const struct discovery_sharing *sharding_of_discovery(struct sharding *s)
{
    return s == NULL ? NULL : &s->discovery;
}

/* ---- life ------------------------------------------------------------------------------------ */

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "" : value;
}

/* Finds the name of the pod: from the configuration, from POD_NAME (the usual name for the field of
 * the downward API), or the host name, which Kubernetes sets to the pod's name. */
static bool find_self(struct sharding *s, struct err *err)
{
    const char *candidates[] = {s->config->pod_name, env("POD_NAME"), env("HOSTNAME")};
    for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
        if (candidates[i][0] != '\0') {
            snprintf(s->self, sizeof(s->self), "%s", candidates[i]);
            return true;
        }
    }
    if (gethostname(s->self, sizeof(s->self)) != 0) {
        return err_sys(err, "sharding: the name of this pod is not known: set sharding.pod_name");
    }
    s->self[sizeof(s->self) - 1] = '\0';
    return true;
}

static void make_metrics(struct sharding *s)
{
    struct metrics *m = s->options.metrics;
    s->n_members = metrics_single(m, METRIC_GAUGE, "profpull_sharding_members",
                                  "Replicas that share the targets.");
    s->index =
        metrics_single(m, METRIC_GAUGE, "profpull_sharding_index",
                       "Place of this replica among the members in the order of names; -1: none.");
    s->pending_cell = metrics_single(
        m, METRIC_GAUGE, "profpull_sharding_awaited_pods",
        "Pods that have become this replica's and have not been listed since; once for each job.");
    s->changes = metrics_single(m, METRIC_COUNTER, "profpull_sharding_changes_total",
                                "Changes of the members.");
    struct metric *targets = metrics_family(
        m, METRIC_GAUGE, "profpull_sharding_targets",
        "Targets that are known, by whether this replica scrapes them. A pod of another replica "
        "counts as one target for each job, because its containers are not read.",
        "owner", NULL);
    s->owned = metric_cell_of(targets, "self");
    s->others = metric_cell_of(targets, "other");
    struct metric *moves =
        metrics_family(m, METRIC_COUNTER, "profpull_sharding_moved_targets_total",
                       "Targets that changed between replicas.", "direction", NULL);
    s->gained = metric_cell_of(moves, "gained");
    s->lost = metric_cell_of(moves, "lost");
    metric_set(s->index, -1);
}

/* Sets the members of mode static, which never change. */
static bool set_static(struct sharding *s)
{
    char texts[MEMBERS_MAX][16];
    struct sv names[MEMBERS_MAX];
    for (size_t i = 0; i < s->config->replicas && i < MEMBERS_MAX; i++) {
        snprintf(texts[i], sizeof(texts[i]), "replica-%u", (unsigned)i);
        names[i] = sv_from(texts[i]);
    }
    snprintf(s->self, sizeof(s->self), "replica-%u", s->config->index);
    enum members_result result =
        members_set(s->members, names, s->config->replicas, s->config->index, clock_mono_ms());
    members_tick(s->members, clock_mono_ms());
    metric_set(s->n_members, (int64_t)members_count(s->members));
    metric_set(s->index, s->config->index);
    return result == MEMBERS_CHANGED;
}

static bool init(struct sharding *s, struct err *err)
{
    bool kubernetes = s->config->mode == SHARDING_KUBERNETES;
    bool scrapes = kubernetes && s->options.scraper != NULL;
    s->members = members_new(&(struct members_options){
        .handover_ms = scrapes ? s->config->handover_ms : 0,
        .isolation_ms = scrapes ? s->config->isolation_ms : 0,
    });
    s->targets = owned_targets_new(&(struct owned_targets_options){
        .owns = sharding_owns, .hand_over = sharding_hand_over, .arg = s});
    s->timer = loop_timer_new(s->options.loop, sharding_on_timer, s);
    if (s->members == NULL || s->targets == NULL || s->timer == NULL ||
        (!kubernetes && !set_static(s))) {
        return err_memory(err);
    }
    if (kubernetes && !find_self(s, err)) {
        return false;
    }
    s->discovery = (struct discovery_sharing){
        .self = s->self,
        .self_ip = env("POD_IP"),
        .on_members = sharding_on_members,
        .on_addresses = sharding_on_addresses,
        .on_reachable = sharding_on_reachable,
        .arg = s,
    };
    /* Without a scraper (`profpull discover`) the pods of all replicas are of interest. */
    if (s->options.scraper != NULL) {
        s->discovery.key = sharding_pod_key;
        s->discovery.is_assigned = sharding_is_assigned;
        s->discovery.on_foreign = sharding_on_foreign;
    }
    return true;
}

struct sharding *sharding_new(const struct sharding_options *options, struct err *err)
{
    struct sharding *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    s->options = *options;
    s->config = &options->config->sharding;
    make_metrics(s);
    return init(s, err) ? s : sharding_free(s);
}

struct sharding *sharding_free(struct sharding *s)
{
    if (s != NULL) {
        owned_targets_free(s->targets);
        members_free(s->members);
        loop_timer_free(s->timer);
        free(s);
    }
    return NULL;
}

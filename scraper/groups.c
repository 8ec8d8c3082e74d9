/* Groups of targets: an update replaces a group, and compares scrapes by identity.
 *
 * A group is the one record of a source in the scraper: its targets, and its offer to the job's
 * sampler. An update changes only the scrapes that differ. A scrape that exists before and after
 * keeps its phase, its state, its transfer and its connection, even if labels or settings have
 * changed. claims.c decides which targets take part in a scrape that several of them want.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scraper/engine.h"

/* The most messages about refused targets in each period; further targets are only counted. */
#define LIMIT_LOGGED 10
#define LIMIT_PERIOD_MS 60000

#define KEY_MAX ((size_t)64 * 1024)

struct group {
    TAILQ_ENTRY(group) link; /* in quota->over_quota if n_admitted < n */
    struct offer *offer;     /* the offer to the job's sampler; NULL if the job has none */
    struct target **targets; /* references, admitted ones first */
    size_t n;
    size_t n_admitted;
    uint32_t job;
    char source[];
};

/* ---- targets of a group ---------------------------------------------------------------------- */

const char *group_source(const struct group *g)
{
    return g->source;
}

/* Claims all scrapes of a target. replaces: the target may take the place of one that the group had
 * before this update. */
static void want_target(struct engine *e, struct group *g, struct target *t, bool replaces)
{
    for (size_t i = 0; i < t->n; i++) {
        if (!claims_want(e, g, t, i, replaces)) {
            metric_inc(e->metrics.refused_memory);
        }
    }
}

/* Gives up the scrapes that the update has not claimed again. */
static void release_target(struct engine *e, struct group *g, const struct target *t)
{
    for (size_t i = 0; i < t->n; i++) {
        claims_release(e, g, t, i);
    }
}

/* Returns true if the group already has this target. */
static bool is_known(const struct engine *e, const struct group *g, const struct target *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (claims_hold(e, g, t, i)) {
            return true;
        }
    }
    return false;
}

/* ---- target_limit ---------------------------------------------------------------------------- */

/* Sorts the targets, admitted ones first, and returns how many are admitted: all known ones (a
 * limit refuses only new targets), then new ones up to max. targets and sorted have n elements. */
static size_t admit(const struct engine *e, const struct group *g, struct target *const *targets,
                    size_t n, size_t max, struct target **sorted)
{
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_known(e, g, targets[i])) {
            sorted[n_known++] = targets[i];
        }
    }
    size_t at = n_known;
    for (size_t i = 0, k = 0; i < n; i++) {
        if (k < n_known && sorted[k] == targets[i]) {
            k++;
        } else {
            sorted[at++] = targets[i];
        }
    }
    size_t limit = max > n_known ? max : n_known;
    return n < limit ? n : limit;
}

static void note_refused(struct engine *e, const struct group *g, size_t refused_before)
{
    size_t refused = g->n - g->n_admitted;
    uint32_t suppressed = 0;
    metric_gauge_add(e->metrics.targets_refused, (int64_t)refused - (int64_t)refused_before);
    if (refused <= refused_before) {
        return;
    }
    metric_add(e->metrics.refused_limit, refused - refused_before);
    if (log_limit_allow(&e->targets_limit, engine_now_ms(e), LIMIT_PERIOD_MS, LIMIT_LOGGED,
                        &suppressed)) {
        log_warn(e->options.log, "target_limit reached: new targets wait until others are gone",
                 LOG_STR("job", g->targets[0]->job_config->name), LOG_STR("source", g->source),
                 LOG_INT("limit", e->jobs[g->job].limit), LOG_INT("refused", refused),
                 LOG_INT("suppressed", suppressed));
    }
}

/* Admits targets that were refused before, as far as removed ones have made room. */
static void admit_waiting(struct engine *e, struct job_quota *quota)
{
    while (quota->admitted < quota->limit && !TAILQ_EMPTY(&quota->over_quota)) {
        struct group *g = TAILQ_FIRST(&quota->over_quota);
        want_target(e, g, g->targets[g->n_admitted++], false);
        quota->admitted++;
        metric_gauge_add(e->metrics.targets, 1);
        metric_gauge_add(e->metrics.targets_refused, -1);
        if (g->n_admitted == g->n) {
            TAILQ_REMOVE(&quota->over_quota, g, link);
        }
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

static struct group *make_group(struct engine *e, struct sv key, size_t job, const char *source)
{
    size_t size = strlen(source) + 1;
    struct group *g = calloc(1, sizeof(*g) + size);
    if (g == NULL) {
        return NULL;
    }
    g->job = (uint32_t)job;
    memcpy(g->source, source, size);
    if (!map_put(e->groups, key, g, NULL)) {
        free(g);
        return NULL;
    }
    return g;
}

/* Replaces the targets by sorted[0..n), of which n_admitted are to be scraped. */
static void replace(struct engine *e, struct group *g, struct target **sorted, size_t n,
                    size_t n_admitted)
{
    struct target **old = g->targets;
    size_t old_n = g->n;
    size_t old_admitted = g->n_admitted;
    e->round++;
    g->targets = sorted;
    g->n = n;
    g->n_admitted = n_admitted;
    for (size_t i = 0; i < n_admitted; i++) {
        want_target(e, g, sorted[i], true);
    }
    for (size_t i = 0; i < old_admitted; i++) {
        release_target(e, g, old[i]);
    }
    targets_unref(old, old_n);
    free(old);
}

/* Sets the targets of a source that are to be scraped. Takes over the references. */
static bool set_targets(struct engine *e, struct group *g, struct target *const *targets, size_t n)
{
    struct job_quota *quota = &e->jobs[g->job];
    size_t refused_before = g->n - g->n_admitted;
    size_t admitted_before = g->n_admitted;
    struct target **sorted = NULL;
    if (n > 0 && (sorted = calloc(n, sizeof(struct target *))) == NULL) {
        targets_unref(targets, n);
        return false;
    }
    if (n > 0) {
        quota->limit = (size_t)targets[0]->job_config->target_limit;
    }
    size_t others = quota->admitted - admitted_before;
    size_t free_quota = quota->limit > others ? quota->limit - others : 0;
    size_t n_admitted = admit(e, g, targets, n, free_quota, sorted);
    if (refused_before > 0) {
        TAILQ_REMOVE(&quota->over_quota, g, link);
    }
    replace(e, g, sorted, n, n_admitted);
    if (n_admitted < n) {
        TAILQ_INSERT_TAIL(&quota->over_quota, g, link);
    }
    quota->admitted = others + n_admitted;
    metric_gauge_add(e->metrics.targets, (int64_t)n_admitted - (int64_t)admitted_before);
    note_refused(e, g, refused_before);
    admit_waiting(e, quota);
    return true;
}

/* ---- sampling -------------------------------------------------------------------------------- */

/* Gives a job its sampler, once a target needs one. Returns false if out of memory. */
static bool make_sampler(struct engine *e, struct job_quota *quota, const struct config_job *job)
{
    bool all = job->sample_percent % 100 == 0 && job->sample_max == 0;
    if (quota->sampler != NULL || all) {
        return true;
    }
    struct sampler *sampler = sampler_new(job->name);
    table_lock(&e->table);
    quota->sampler = sampler;
    table_unlock(&e->table);
    return sampler != NULL;
}

static bool offer(struct engine *e, struct group *g, struct target *const *targets, size_t n)
{
    struct sampler *sampler = e->jobs[g->job].sampler;
    size_t before = sampler_left_out(sampler);
    table_lock(&e->table);
    bool ok = sampler_set(sampler, &g->offer, g, targets, n);
    table_unlock(&e->table);
    if (ok && n == 0) {
        set_targets(e, g, NULL, 0);
    }
    void *owner;
    struct target *const *kept;
    size_t n_kept;
    while (sampler_next(sampler, &owner, &kept, &n_kept)) {
        for (size_t i = 0; i < n_kept; i++) {
            target_ref(kept[i]);
        }
        ok = set_targets(e, owner, kept, n_kept) && ok;
    }
    metric_gauge_add(e->metrics.targets_left_out,
                     (int64_t)sampler_left_out(sampler) - (int64_t)before);
    return ok;
}

/* Releases the sampler of a job without targets. The job may be gone, and its slot may get another
 * job. */
static void drop_sampler(struct engine *e, struct job_quota *quota)
{
    if (quota->sampler == NULL || !sampler_is_empty(quota->sampler)) {
        return;
    }
    struct sampler *sampler = quota->sampler;
    table_lock(&e->table);
    quota->sampler = NULL;
    table_unlock(&e->table);
    sampler_free(sampler);
}

/* ---- all groups ------------------------------------------------------------------------------ */

static void move_quota(struct job_quota *from, struct job_quota *to)
{
    *to = *from;
    TAILQ_INIT(&to->over_quota);
    TAILQ_CONCAT(&to->over_quota, &from->over_quota, link);
}

/* Makes room for jobs with slots below n_jobs. Returns false if out of memory. */
static bool grow_jobs(struct engine *e, size_t n_jobs)
{
    struct job_quota *jobs = calloc(n_jobs + 1, sizeof(*jobs));
    if (jobs == NULL || !slots_grow(&e->slots, n_jobs) || !room_grow(&e->room, n_jobs)) {
        free(jobs);
        return false;
    }
    for (size_t i = e->n_jobs; i < n_jobs; i++) {
        TAILQ_INIT(&jobs[i].over_quota);
    }
    table_lock(&e->table);
    for (size_t i = 0; i < e->n_jobs; i++) {
        move_quota(&e->jobs[i], &jobs[i]);
    }
    free(e->jobs);
    e->jobs = jobs;
    e->n_jobs = n_jobs;
    table_unlock(&e->table);
    return true;
}

static bool set_group(struct engine *e, struct sv key, size_t job, const char *source,
                      struct target *const *targets, size_t n)
{
    bool ok = !e->stopped && (job < e->n_jobs || grow_jobs(e, job + 1)) &&
              (n == 0 || make_sampler(e, &e->jobs[job], targets[0]->job_config));
    struct group *g = ok ? map_get(e->groups, key) : NULL;
    if (ok && g == NULL && n > 0) {
        g = make_group(e, key, job, source);
    }
    if (g == NULL) {
        targets_unref(targets, n);
        return ok && n == 0; /* the group is gone already */
    }
    ok = e->jobs[job].sampler != NULL ? offer(e, g, targets, n) : set_targets(e, g, targets, n);
    if (g->n == 0 && g->offer == NULL) {
        map_remove(e->groups, key);
        free(g->targets);
        free(g);
        drop_sampler(e, &e->jobs[job]);
    }
    return ok;
}

bool engine_set_group(struct engine *e, size_t job, const char *source,
                      struct target *const *targets, size_t n)
{
    struct buf key;
    buf_init(&key, KEY_MAX);
    bool ok = buf_printf(&key, "%zu/%s", job, source);
    if (ok) {
        ok = set_group(e, (struct sv){.p = key.data, .n = key.len}, job, source, targets, n);
    } else {
        targets_unref(targets, n);
    }
    buf_done(&key);
    engine_rearm(e);
    return ok;
}

bool groups_init(struct engine *e)
{
    e->groups = map_new();
    return e->groups != NULL && grow_jobs(e, e->options.n_jobs);
}

static void free_group(struct engine *e, struct group *g)
{
    e->round++;
    for (size_t i = 0; i < g->n_admitted; i++) {
        release_target(e, g, g->targets[i]);
    }
    targets_unref(g->targets, g->n);
    offer_free(g->offer);
    free(g->targets);
    free(g);
}

void groups_done(struct engine *e)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (e->groups != NULL && map_next(e->groups, &cursor, &key, &value)) {
        map_remove_at(e->groups, cursor);
        free_group(e, value);
    }
    map_free(e->groups, NULL);
    for (size_t i = 0; e->jobs != NULL && i < e->n_jobs; i++) {
        sampler_free(e->jobs[i].sampler);
    }
    free(e->jobs);
}

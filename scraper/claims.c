#include "scraper/claims.h"

#include <stdlib.h>

#include "model/masking.h"
#include "scraper/engine.h"

#define URL_MAX ((size_t)16 * 1024)
/* The log has one warning about duplicates in each period of 10 minutes. */
#define DUPLICATES_PERIOD_MS (INT64_C(600) * MS_PER_S)

/* ---- the list of a scrape -------------------------------------------------------------------- */

/* Returns the link to the first claim of a job in the list, or to the end of the list. */
static struct claim **find_job(struct scrape *sc, uint32_t job)
{
    struct claim **at = &sc->claims;
    while (*at != NULL && (*at)->target->job != job) {
        at = &(*at)->next;
    }
    return at;
}

/* Returns the link to the first claim of a group that this update has not asked for, or to the end
 * of the list. */
static struct claim **find_stale(const struct engine *e, struct scrape *sc, const struct group *g)
{
    struct claim **at = &sc->claims;
    while (*at != NULL && ((*at)->group != g || (*at)->round == e->round)) {
        at = &(*at)->next;
    }
    return at;
}

static void count_claim(const struct claim *c, int64_t n)
{
    metric_gauge_add(c->metrics->states[c->follows ? SCRAPES_FOLLOW : SCRAPES_DUPLICATE], n);
}

static void append(struct engine *e, struct scrape *sc, struct claim *c)
{
    struct claim **at = &sc->claims;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    c->next = NULL;
    count_claim(c, 1);
    table_lock(&e->table);
    *at = c;
    table_unlock(&e->table);
}

static struct claim *take_out(struct engine *e, struct claim **at)
{
    struct claim *c = *at;
    count_claim(c, -1);
    table_lock(&e->table);
    *at = c->next;
    table_unlock(&e->table);
    return c;
}

static void free_claim(struct claim *c)
{
    labels_unref(c->series);
    target_unref(c->target);
    free(c);
}

static void move_claims(struct engine *e, struct scrape *from, uint32_t job, struct scrape *to)
{
    struct claim **at;
    while (*(at = find_job(from, job)) != NULL) {
        append(e, to, take_out(e, at));
    }
}

/* Takes a job from the recipients of the response in flight, which is cancelled if none is left. */
static void leave_fetch(struct engine *e, struct scrape *sc, uint32_t job)
{
    if (sc->fetch != NULL && !fetch_leave(sc, job)) {
        engine_abort(e, sc);
    }
}

static struct type_metrics *metrics_of(struct engine *e, const struct target *t, size_t i)
{
    return scrape_metrics_of_type(&e->metrics, t->job_config->name, target_scrape_type(t, i)->name);
}

/* ---- scrapes --------------------------------------------------------------------------------- */

static void free_scrape(struct engine *e, struct scrape *sc)
{
    while (sc->claims != NULL) {
        free_claim(take_out(e, &sc->claims));
    }
    target_unref(sc->target);
    labels_unref(sc->series);
    free(sc->last_error);
    free(sc);
}

/* Marks the scrapes of one identity, which need different keys for baselines that are kept. */
static void mark_apart(struct engine *e, struct scrape *sc)
{
    struct scrape *other = table_find(&e->table, sc->target, sc->entry);
    sc->apart = other != NULL;
    for (; other != NULL; other = table_next(other)) {
        other->apart = true;
    }
}

static struct scrape *create_scrape(struct engine *e, struct group *g, struct target *t, size_t i)
{
    struct scrape *sc = calloc(1, sizeof(*sc));
    if (sc == NULL) {
        return NULL;
    }
    sc->group = g;
    sc->target = target_ref(t);
    sc->entry = (uint16_t)i;
    sc->round = e->round;
    sc->metrics = metrics_of(e, t, i);
    mark_apart(e, sc);
    if (sc->metrics == NULL || !table_insert(&e->table, sc)) {
        free_scrape(e, sc);
        return NULL;
    }
    if (!engine_schedule(e, sc)) {
        table_remove(&e->table, sc);
        free_scrape(e, sc);
        return NULL;
    }
    metric_gauge_add(sc->metrics->states[SCRAPE_UNKNOWN], 1);
    return sc;
}

static void remove_scrape(struct engine *e, struct scrape *sc)
{
    engine_abort(e, sc);
    deltas_keep(e, sc);
    schedule_remove(&e->schedule, &sc->item);
    table_remove(&e->table, sc);
    metric_gauge_add(sc->metrics->states[sc->health], -1);
    free_scrape(e, sc);
}

/* Returns the scrape in which a job takes part, or NULL. */
static struct scrape *find_of_job(const struct engine *e, const struct target *t, size_t i)
{
    struct scrape *sc = table_find(&e->table, t, i);
    while (sc != NULL && sc->target->job != t->job && *find_job(sc, t->job) == NULL) {
        sc = table_next(sc);
    }
    return sc;
}

/* Returns a scrape, other than this one, that a target of another job can share, or NULL. */
static struct scrape *find_shared(const struct engine *e, const struct target *t, size_t i,
                                  const struct scrape *besides)
{
    struct scrape *sc = table_find(&e->table, t, i);
    while (sc != NULL && (sc == besides || !target_can_share(sc->target, sc->entry, t, i))) {
        sc = table_next(sc);
    }
    return sc;
}

/* Does the same as find_shared() for a job that has been sent deltas up to a baseline: the scrape
 * must have this baseline, and must not be about to get another one. */
static struct scrape *find_with_baseline(const struct engine *e, const struct target *t, size_t i,
                                         const struct scrape *from)
{
    struct scrape *sc = find_shared(e, t, i, from);
    bool moves = sc != NULL && sc->fetch != NULL && scrape_type(sc)->delta == DELTA_AUTO;
    return sc == NULL || moves || sc->baseline != from->baseline ? NULL : sc;
}

/* ---- changed settings ------------------------------------------------------------------------ */

/* Moves a follower and the other claims of its job to a scrape of their own, or to one with the
 * settings that they have now. */
static void split(struct engine *e, struct scrape *sc, struct claim *c)
{
    uint32_t job = c->target->job;
    leave_fetch(e, sc, job);
    struct scrape *to = find_with_baseline(e, c->target, c->entry, sc);
    if (to == NULL && (to = create_scrape(e, c->group, c->target, c->entry)) != NULL) {
        to->round = c->round;
        if (!target_is_another_pod(sc->target, c->target)) {
            deltas_share(e, sc, to);
        }
        free_claim(take_out(e, find_job(sc, job)));
    }
    if (to != NULL) {
        move_claims(e, sc, job, to);
        return;
    }
    metric_inc(e->metrics.refused_memory);
    struct claim **at;
    while (*(at = find_job(sc, job)) != NULL) {
        free_claim(take_out(e, at));
    }
}

static void split_others(struct engine *e, struct scrape *sc)
{
    struct claim *c = sc->claims;
    while (c != NULL) {
        if (c->follows && !target_can_share(sc->target, sc->entry, c->target, c->entry)) {
            split(e, sc, c);
            c = sc->claims; /* the list has changed */
        } else {
            c = c->next;
        }
    }
}

/* Joins two scrapes whose settings have become equal, unless a baseline would be lost by that. */
static void rejoin(struct engine *e, struct scrape *sc)
{
    struct scrape *to = sc->apart ? find_with_baseline(e, sc->target, sc->entry, sc) : NULL;
    struct claim *c = to == NULL ? NULL : malloc(sizeof(*c));
    if (c == NULL) {
        return;
    }
    *c = (struct claim){.group = sc->group,
                        .target = target_ref(sc->target),
                        .metrics = sc->metrics,
                        .entry = sc->entry,
                        .round = sc->round,
                        .follows = true};
    append(e, to, c);
    while (sc->claims != NULL) {
        append(e, to, take_out(e, &sc->claims));
    }
    deltas_forget(e, sc);
    remove_scrape(e, sc);
    split_others(e, to);
}

/* Gives the scrape another target: its labels and settings apply from the next profile on. The
 * scrape may be joined with another one by that. */
static void adopt(struct engine *e, struct scrape *sc, struct group *g, struct target *t, size_t i)
{
    int64_t interval = scrape_interval_ms(sc);
    struct type_metrics *metrics = metrics_of(e, t, i);
    if (metrics != NULL) {
        metric_gauge_add(sc->metrics->states[sc->health], -1);
        metric_gauge_add(metrics->states[sc->health], 1);
        sc->metrics = metrics;
    }
    if (target_is_another_pod(sc->target, t)) {
        /* Nothing that is known about the old pod holds for the new one, and a response in flight
         * may come from either pod. */
        engine_abort(e, sc);
        deltas_forget(e, sc);
        status_history(e, sc, (struct scrape_history){0});
    }
    status_target(e, sc, g, t, i);
    if (scrape_interval_ms(sc) != interval) {
        engine_reschedule(e, sc);
    }
    split_others(e, sc);
    rejoin(e, sc);
}

/* Gives a claim another target, as adopt() does for a scrape. */
static void adopt_claim(struct engine *e, struct scrape *sc, struct claim *c, struct target *t,
                        size_t i)
{
    struct target *old = c->target;
    if (c->follows && target_is_another_pod(old, t)) {
        leave_fetch(e, sc, t->job);
    }
    struct type_metrics *metrics = metrics_of(e, t, i);
    target_ref(t);
    c->round = e->round;
    c->metrics = metrics != NULL ? metrics : c->metrics;
    c->series = labels_unref(c->series);
    table_lock(&e->table);
    c->target = t;
    c->entry = (uint32_t)i;
    table_unlock(&e->table);
    target_unref(old);
    split_others(e, sc);
}

/* ---- joining and leaving --------------------------------------------------------------------- */

/* Logs a duplicate: one warning in each period, since nothing else shows that a target is not
 * scraped, and each one at the level debug. Followers are not logged, because they are intended. */
static void log_claim(struct engine *e, const struct scrape *sc, const struct claim *c)
{
    uint32_t suppressed = 0;
    bool warn = !c->follows && log_limit_allow(&e->duplicates_limit, engine_now_ms(e),
                                               DUPLICATES_PERIOD_MS, 1, &suppressed);
    enum log_level level = warn ? LOG_WARN : LOG_DEBUG;
    if (!log_enabled(e->options.log, level)) {
        return;
    }
    struct buf path;
    buf_init(&path, URL_MAX);
    mask_url(sv_from(target_path(c->target, c->entry)), target_masks_all(c->target), &path);
    const struct log_field fields[] = {
        LOG_STR("address", target_address(c->target, c->entry)),
        LOG_STR("path", buf_ok(&path) ? path.data : ""),
        LOG_STR("type", target_scrape_type(c->target, c->entry)->name),
        LOG_STR("job", c->target->job_config->name),
        LOG_STR("source", group_source(c->group)),
        LOG_STR("scraped_by_job", sc->target->job_config->name),
        LOG_STR("scraped_by_source", group_source(sc->group)),
        suppressed > 0 ? LOG_INT("suppressed", suppressed) : LOG_END,
        LOG_END,
    };
    log_write(e->options.log, level,
              c->follows ? "scrape is shared"
                         : "duplicate scrape set aside: another target of the job is scraped there",
              fields);
    buf_done(&path);
}

static bool add_claim(struct engine *e, struct scrape *sc, struct group *g, struct target *t,
                      size_t i)
{
    struct type_metrics *metrics = metrics_of(e, t, i);
    struct claim *c = metrics == NULL ? NULL : malloc(sizeof(*c));
    if (c == NULL) {
        return false;
    }
    *c = (struct claim){
        .group = g,
        .target = target_ref(t),
        .metrics = metrics,
        .entry = (uint32_t)i,
        .round = e->round,
        .follows = sc->target->job != t->job && *find_job(sc, t->job) == NULL,
    };
    append(e, sc, c);
    if (!c->follows) {
        metric_inc(e->metrics.refused_duplicate);
    }
    log_claim(e, sc, c);
    return true;
}

bool claims_want(struct engine *e, struct group *g, struct target *t, size_t i, bool replaces)
{
    struct scrape *sc = find_of_job(e, t, i);
    if (sc == NULL) {
        sc = find_shared(e, t, i, NULL);
        if (sc != NULL && deltas_join(e, sc, t, i)) {
            return add_claim(e, sc, g, t, i);
        }
        sc = create_scrape(e, g, t, i);
        if (sc != NULL) {
            deltas_adopt(e, sc);
        }
        return sc != NULL;
    }
    if (replaces && sc->group == g && sc->round != e->round) {
        sc->round = e->round;
        adopt(e, sc, g, t, i);
        return true;
    }
    struct claim *c = replaces ? *find_stale(e, sc, g) : NULL;
    if (c == NULL) {
        return add_claim(e, sc, g, t, i);
    }
    adopt_claim(e, sc, c, t, i);
    return true;
}

/* Puts the next target of the job in the place of a follower. */
static void drop_claim(struct engine *e, struct scrape *sc, struct claim **at)
{
    struct claim *c = take_out(e, at);
    struct claim **heir_at = find_job(sc, c->target->job);
    struct claim *heir = c->follows ? *heir_at : NULL;
    bool equal =
        heir != NULL && labels_equal(target_labels(c->target), target_labels(heir->target));
    if (c->follows && !equal) {
        leave_fetch(e, sc, c->target->job);
    }
    free_claim(c);
    if (heir != NULL) {
        count_claim(heir, -1);
        table_lock(&e->table);
        heir->follows = true;
        table_unlock(&e->table);
        count_claim(heir, 1);
        split_others(e, sc);
    }
}

/* Replaces the leader, which is removed, by its heir. The request in flight was made under the
 * labels of the leader. If the heir has other labels, the address may belong to another pod by now,
 * so the response must not be attributed to either, unless the heir already followed the leader
 * when the request was made. */
static void release(struct engine *e, struct scrape *sc)
{
    uint32_t job = sc->target->job;
    struct claim **at = find_job(sc, job);
    at = *at == NULL ? &sc->claims : at;
    if (*at == NULL) {
        remove_scrape(e, sc);
        return;
    }
    struct claim *heir = take_out(e, at);
    bool equal = labels_equal(target_labels(sc->target), target_labels(heir->target));
    if (sc->fetch != NULL && (!equal || fetch_serves(sc, heir->target->job))) {
        leave_fetch(e, sc, job);
    }
    sc->round = heir->round;
    adopt(e, sc, heir->group, heir->target, heir->entry);
    free_claim(heir);
}

/* Returns false if the group has nothing to give up. */
static bool release_one(struct engine *e, struct group *g, const struct target *t, size_t i)
{
    struct scrape *first = table_find(&e->table, t, i);
    for (struct scrape *sc = first; sc != NULL; sc = table_next(sc)) {
        struct claim **at = find_stale(e, sc, g);
        if (*at != NULL) {
            drop_claim(e, sc, at);
            return true;
        }
    }
    for (struct scrape *sc = first; sc != NULL; sc = table_next(sc)) {
        if (sc->group == g && sc->round != e->round) {
            release(e, sc);
            return true;
        }
    }
    return false;
}

void claims_release(struct engine *e, struct group *g, const struct target *t, size_t i)
{
    while (release_one(e, g, t, i)) {
    }
}

bool claims_hold(const struct engine *e, const struct group *g, const struct target *t, size_t i)
{
    for (struct scrape *sc = table_find(&e->table, t, i); sc != NULL; sc = table_next(sc)) {
        bool holds = sc->group == g;
        for (struct claim *c = sc->claims; c != NULL && !holds; c = c->next) {
            holds = c->group == g;
        }
        if (holds) {
            return true;
        }
    }
    return false;
}

void claims_count(const struct scrape *sc, enum scrape_result result, uint64_t n)
{
    metric_add(sc->metrics->results[result], n);
    for (const struct claim *c = sc->claims; c != NULL; c = c->next) {
        metric_add(c->follows ? c->metrics->results[result] : NULL, n);
    }
}

void claims_failed(struct engine *e, const struct scrape *sc, enum reason reason)
{
    claims_count(sc, SCRAPE_FAILED, 1);
    scrape_metrics_failed(&e->metrics, sc->target->job_config->name, reason);
    for (const struct claim *c = sc->claims; c != NULL; c = c->next) {
        if (c->follows) {
            scrape_metrics_failed(&e->metrics, c->target->job_config->name, reason);
        }
    }
}

#include "store/changes/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/changes/report.h"

#define ROUND_S 120
#define BYTES_MAX ((size_t)256 * 1024 * 1024)
#define COMPARE_MAX_MS (INT64_C(60) * 1000)
/* Longer names are cut in the metric. */
#define NAME_MAX_BYTES 200

static const char *const types[] = {"cpu", "alloc_space"};
#define TYPES (sizeof(types) / sizeof(types[0]))

/* The last rollout of a service. */
struct watched {
    char *service;
    char *version;
    int64_t began_ms;
    int64_t due_ms;
    double ratio[TYPES]; /* 0: no verdict */
    bool seen;           /* in this round */
};

struct changes_watch {
    struct store *store;
    struct log *log;
    struct metric_cell *compared;
    struct metric_cell *failed;
    atomic_bool stopping;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards the list against the thread that renders */
    pthread_cond_t wake;
    struct watched at[CHANGES_WATCH_MAX];
    size_t n;
    size_t left_out; /* services whose rollouts are not compared */
};

/* ---- metrics --------------------------------------------------------------------------------- */

static void watch_collect(struct metrics_out *out, void *arg)
{
    struct changes_watch *w = arg;
    pthread_mutex_lock(&w->lock);
    metrics_out_family(out, "profpull_change_ratio",
                       "Cost of the last rollout at the same load, relative to the version before; "
                       "only while the change is more than chance explains.",
                       METRIC_GAUGE);
    for (size_t i = 0; i < w->n; i++) {
        for (size_t k = 0; k < TYPES; k++) {
            const char *const labels[][2] = {{"service", w->at[i].service}, {"type", types[k]}};
            if (w->at[i].ratio[k] > 0) {
                metrics_out_sample(out, labels, 2, w->at[i].ratio[k]);
            }
        }
    }
    metrics_out_family(out, "profpull_change_services_left_out",
                       "Services with a rollout in the last day that are not compared, because "
                       "others changed later.",
                       METRIC_GAUGE);
    metrics_out_sample(out, NULL, 0, (double)w->left_out);
    pthread_mutex_unlock(&w->lock);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void forget(struct watched *x)
{
    free(x->service);
    free(x->version);
    *x = (struct watched){.service = NULL};
}

static char *copy(struct sv text)
{
    return strndup(text.p, text.n < NAME_MAX_BYTES ? text.n : NAME_MAX_BYTES);
}

static struct watched *find(struct changes_watch *w, const struct changes_rollout *r)
{
    for (size_t i = 0; i < w->n; i++) {
        if (sv_eq_str(r->service, w->at[i].service)) {
            return &w->at[i];
        }
    }
    return NULL;
}

/* Adds a rollout, or replaces the one before it of the same service. */
static void note(struct changes_watch *w, const struct changes_rollout *r)
{
    struct watched *x = find(w, r);
    if (x != NULL && sv_eq_str(r->version[SIDE_NEW], x->version)) {
        x->seen = true;
        return;
    }
    if (x == NULL && w->n == CHANGES_WATCH_MAX) {
        return;
    }
    x = x == NULL ? &w->at[w->n++] : x;
    forget(x);
    x->service = copy(r->service);
    x->version = copy(r->version[SIDE_NEW]);
    x->began_ms = r->time_ms;
    x->due_ms = r->time_ms + CHANGES_WATCH_FIRST_MS;
    x->seen = x->service != NULL && x->version != NULL;
}

/* Takes over the rollouts, and forgets services without one. */
static void take_over(struct changes_watch *w, const struct changes_rollouts *all)
{
    size_t kept = 0;
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->n; i++) {
        w->at[i].seen = false;
    }
    for (size_t i = 0; i < all->n && i < CHANGES_WATCH_MAX; i++) {
        note(w, &all->at[i]);
    }
    for (size_t i = 0; i < w->n; i++) {
        if (!w->at[i].seen) {
            forget(&w->at[i]);
        } else {
            struct watched x = w->at[i];
            w->at[i] = (struct watched){.service = NULL};
            w->at[kept++] = x;
        }
    }
    w->n = kept;
    w->left_out = all->n > CHANGES_WATCH_MAX ? all->n - CHANGES_WATCH_MAX : 0;
    pthread_mutex_unlock(&w->lock);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Returns the ratio of a rollout; 0 if there is no verdict. */
static double compare(struct changes_watch *w, const struct query *q, const struct watched *x,
                      const char *type, int64_t now_ms)
{
    struct err err = ERR_INIT;
    struct changes c;
    struct changes_question question = {.service = sv_from(x->service),
                                        .version = {[SIDE_NEW] = sv_from(x->version)},
                                        .from_ms = now_ms - MS_PER_DAY,
                                        .until_ms = now_ms};
    if (!changes_type(q, question.service, question.from_ms, question.until_ms, sv_from(type),
                      &question.type, &err)) {
        /* Most services have no profiles of some type. */
        return 0;
    }
    metric_inc(w->compared);
    if (!changes_find(q, &question, &c, &err)) {
        metric_inc(w->failed);
        log_debug(w->log, "a rollout cannot be compared", LOG_STR("service", x->service),
                  LOG_ERR(&err));
        return 0;
    }
    return c.verdicts.n_changed > 0 ? c.verdicts.ratio : 0;
}

static void compare_due(struct changes_watch *w, struct watched *x, int64_t now_ms)
{
    for (size_t k = 0; k < TYPES && !atomic_load(&w->stopping); k++) {
        struct query q = {.store = w->store,
                          .deadline_ms = clock_mono_ms() + COMPARE_MAX_MS,
                          .cancelled = &w->stopping,
                          .bytes_max = BYTES_MAX,
                          .arena = arena_new(BYTES_MAX)};
        double ratio = q.arena == NULL ? 0 : compare(w, &q, x, types[k], now_ms);
        pthread_mutex_lock(&w->lock);
        x->ratio[k] = ratio;
        pthread_mutex_unlock(&w->lock);
        arena_free(q.arena);
    }
    x->due_ms = now_ms + (now_ms - x->began_ms);
}

void changes_watch_round(struct changes_watch *w, int64_t now_ms)
{
    struct err err = ERR_INIT;
    struct changes_rollouts all;
    struct store_stats stats;
    /* A query would wait for a store that is not open yet, for as long as its disk hangs. */
    store_stats(w->store, &stats);
    if (!stats.open) {
        return;
    }
    struct query q = {.store = w->store,
                      .deadline_ms = clock_mono_ms() + COMPARE_MAX_MS,
                      .cancelled = &w->stopping,
                      .bytes_max = BYTES_MAX,
                      .arena = arena_new(BYTES_MAX)};
    if (q.arena != NULL && changes_rollouts(&q, now_ms - MS_PER_DAY, now_ms, &all, &err)) {
        take_over(w, &all);
    } else {
        metric_inc(w->failed);
    }
    arena_free(q.arena);
    for (size_t i = 0; i < w->n && !atomic_load(&w->stopping); i++) {
        if (now_ms >= w->at[i].due_ms) {
            compare_due(w, &w->at[i], now_ms);
        }
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *watch_thread(void *arg)
{
    struct changes_watch *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!atomic_load(&w->stopping)) {
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += ROUND_S;
        if (pthread_cond_timedwait(&w->wake, &w->lock, &until) != 0) {
            pthread_mutex_unlock(&w->lock);
            changes_watch_round(w, clock_wall_ns() / NS_PER_MS);
            pthread_mutex_lock(&w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct changes_watch *changes_watch_new(struct store *store, struct log *log,
                                        struct metrics *metrics, struct err *err)
{
    struct changes_watch *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        err_memory(err);
        return NULL;
    }
    w->store = store;
    w->log = log;
    pthread_mutex_init(&w->lock, NULL);
    clock_cond_init(&w->wake);
    w->compared = metrics_single(metrics, METRIC_COUNTER, "profpull_change_comparisons_total",
                                 "Comparisons of the versions of a rollout that were made for "
                                 "profpull_change_ratio.");
    w->failed = metrics_single(metrics, METRIC_COUNTER, "profpull_change_failures_total",
                               "Those that ended with an error.");
    w->has_thread =
        (metrics == NULL || metrics_collector(metrics, watch_collect, w) || err_memory(err)) &&
        thread_start(&w->thread, "changes", watch_thread, w, err);
    return w->has_thread ? w : changes_watch_free(w);
}

struct changes_watch *changes_watch_free(struct changes_watch *w)
{
    if (w == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->stopping, true);
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread) {
        pthread_join(w->thread, NULL);
    }
    for (size_t i = 0; i < w->n; i++) {
        forget(&w->at[i]);
    }
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

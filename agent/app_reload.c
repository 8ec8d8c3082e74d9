/* Gives a running process another configuration. Steps that can fail come first, and can be undone.
 * Then each thread gets its part, against the direction in which profiles flow: every stage knows
 * the new jobs and endpoints before their first target is scraped. */
#include <stdlib.h>

#include "agent/app_private.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "config/change.h"
#include "record/record.h"
#include "symbols/helper.h"

/* A function that a thread's loop runs while another thread waits. */
struct call {
    struct loop_task task; /* first */
    void (*fn)(void *arg);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
};

static void app_run_call(struct loop_task *task)
{
    struct call *call = (struct call *)task;
    call->fn(call->arg);
    pthread_mutex_lock(&call->lock);
    call->is_done = true;
    pthread_cond_signal(&call->done);
    pthread_mutex_unlock(&call->lock);
}

static void call_on(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    struct call call = {.task.run = app_run_call, .fn = fn, .arg = arg};
    pthread_mutex_init(&call.lock, NULL);
    pthread_cond_init(&call.done, NULL);
    loop_post(loop, &call.task);
    pthread_mutex_lock(&call.lock);
    while (!call.is_done) {
        pthread_cond_wait(&call.done, &call.lock);
    }
    pthread_mutex_unlock(&call.lock);
    pthread_cond_destroy(&call.done);
    pthread_mutex_destroy(&call.lock);
}

void app_use_jobs(struct app *app, const struct config *config)
{
    for (size_t i = 0; i < config->n_jobs; i++) {
        metrics_use(app->metrics, "job", config->jobs[i].name);
    }
}

void app_release_jobs(struct app *app, const struct config *config)
{
    for (size_t i = 0; i < config->n_jobs; i++) {
        metrics_release(app->metrics, "job", config->jobs[i].name);
    }
}

/* The parts of one change. */
struct reload {
    struct app *app;
    struct config *next;
    bool *kept; /* by slot: true if the job has not changed */
    struct pipeline_change *pipeline;
    struct scraped_change *scraped;
    struct receive_setup *receive;
    struct record_change *record;
    struct writer_change *writer;
    struct discovery_change *discovery;
    bool servers; /* the servers are prepared */
    int64_t drain_ms;
    struct err *err;
};

static bool compare_jobs(struct reload *r)
{
    const struct config *now = r->app->config;
    r->kept = calloc(config_job_slots(r->next) + 1, sizeof(*r->kept));
    for (size_t i = 0; r->kept != NULL && i < r->next->n_jobs; i++) {
        const struct config_job *job = &r->next->jobs[i];
        const struct config_job *former = config_job_at(now, job->slot);
        r->kept[job->slot] = former != NULL && config_same_job(now, former, r->next, job);
    }
    return r->kept != NULL || err_memory(r->err);
}

/* Checks that sharding has not changed: replicas with different members would scrape the same
 * targets. */
static bool check_fixed(const struct reload *r)
{
    return config_same_part(r->app->first, r->next, CONFIG_PART_SHARDING) ||
           err_set(r->err, ERR_INPUT, "%s: cannot change while the program runs: restart it",
                   config_part_name(CONFIG_PART_SHARDING));
}

static void app_on_prepare(void *arg)
{
    struct reload *r = arg;
    r->discovery = discovery_prepare(r->app->discovery, r->next, r->kept, r->err);
}

static bool prepare(struct reload *r)
{
    struct app *app = r->app;
    if (!compare_jobs(r)) {
        return false;
    }
    r->pipeline = pipeline_prepare(r->next, r->kept, r->err);
    if (r->pipeline == NULL) {
        return false;
    }
    r->scraped = scraped_prepare(app->scraped, r->next, r->err);
    if (r->scraped == NULL) {
        return false;
    }
    r->receive = receive_prepare(app->receive, r->next, r->err);
    if (r->receive == NULL) {
        return false;
    }
    r->record = record_prepare(app->record, &r->next->record, r->err);
    if (r->record == NULL) {
        return false;
    }
    r->writer = writer_prepare(app->writer, r->next, r->err);
    if (r->writer == NULL) {
        return false;
    }
    r->servers =
        app->servers.prepare == NULL || app->servers.prepare(app->servers.arg, r->next, r->err);
    if (!r->servers) {
        return false;
    }
    if (!dropped_grow(app->dropped, config_job_slots(r->next))) {
        return err_memory(r->err);
    }
    call_on(app->threads[THREAD_DISCOVERY].loop, app_on_prepare, r);
    return r->discovery != NULL;
}

static void discard(struct reload *r)
{
    pipeline_discard(r->pipeline);
    scraped_discard(r->scraped);
    receive_discard(r->receive);
    record_discard(r->record);
    writer_cancel(r->writer);
    if (r->servers && r->app->servers.discard != NULL) {
        r->app->servers.discard(r->app->servers.arg);
    }
    free(r->kept);
}

static void app_on_commit(void *arg)
{
    struct reload *r = arg;
    discovery_retire(r->discovery);
    pipeline_commit(r->app->pipeline, r->pipeline);
    discovery_commit(r->discovery);
}

static void app_on_nothing(void *arg)
{
    (void)arg;
}

/* Adds new destinations before any profile is put to them, and removes former ones when none is put
 * to them any more: the network thread has the new rules when it runs the tasks that are posted
 * after them. */
static void commit(struct reload *r)
{
    struct app *app = r->app;
    writer_commit(r->writer);
    stores_configure(app->stores, r->next);
    agent_peering_configure(app->peering, r->next, app->log);
    record_commit(app->record, r->record);
    receive_commit(app->receive, r->receive);
    scraped_post(app->scraped, r->scraped, app->threads[THREAD_NETWORK].loop);
    call_on(app->threads[THREAD_DISCOVERY].loop, app_on_commit, r);
    call_on(app->threads[THREAD_NETWORK].loop, app_on_nothing, NULL);
    writer_retire(r->writer, clock_mono_ms() + r->drain_ms);
    if (app->servers.commit != NULL) {
        app->servers.commit(app->servers.arg);
    }
    free(r->kept);
    struct config *former = app->config;
    app_release_jobs(app, former);
    pthread_mutex_lock(&app->config_lock);
    app->config = config_ref(r->next);
    pthread_mutex_unlock(&app->config_lock);
    config_unref(former);
    log_set(app->log, app->config->log.level, app->config->log.format);
    if (app->helper != NULL) {
        symbols_helper_memory(app->helper, app->config->symbols.max_memory);
    }
}

/* Compares the keys of `symbols` that hold for the whole process. */
static bool same_symbols(const struct symbols_settings *a, const struct symbols_settings *b)
{
    return str_same(a->cache_directory, b->cache_directory) &&
           a->cache_max_bytes == b->cache_max_bytes && a->names_max_bytes == b->names_max_bytes &&
           a->max_file_size == b->max_file_size && a->timeout_ms == b->timeout_ms &&
           http_settings_equal(&a->http, &b->http);
}

/* Warns of keys whose values are decided at the start. */
static void warn_of_restart(const struct app *app, const struct config *next)
{
    const struct config *first = app->first;
    const struct {
        const char *key;
        bool same;
    } rows[] = {
        {"global.memory_limit", first->global.memory_limit == next->global.memory_limit},
        {"global.bodies_max_bytes", first->memory.bodies == next->memory.bodies},
        {"global.delta_state_max_bytes", first->memory.baselines == next->memory.baselines},
        {"symbols", same_symbols(&first->symbols, &next->symbols)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!rows[i].same) {
            log_warn(app->log, "this key of the configuration needs a restart to take effect",
                     LOG_STR("key", rows[i].key));
        }
    }
}

bool app_reload(struct app *app, struct config *next, int64_t drain_ms, struct err *err)
{
    struct reload r = {.app = app, .next = next, .drain_ms = drain_ms, .err = err};
    if (!config_assign_slots(next, app->config, writer_slots(app->writer), err) ||
        !check_fixed(&r)) {
        return false;
    }
    app_use_jobs(app, next);
    if (!prepare(&r)) {
        discard(&r);
        app_release_jobs(app, next);
        return false;
    }
    commit(&r);
    warn_of_restart(app, next);
    return true;
}

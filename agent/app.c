#include "agent/app_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/memory.h"
#include "agent/process.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/worker.h"
#include "config/change.h"
#include "http/lookup.h"
#include "record/record.h"
#include "write/conditions.h"

#define IN_FLIGHT_MAX 24576
/* Descriptors that scrapes must leave: loops, endpoints, watches, files, the admin server with
 * their own name lookups, and the lookups of targets. */
#define FDS_RESERVED (128 + LOOKUP_FDS)
/* The fewest scrapes that may run, and connections that may be kept, however few descriptors the
 * process may have. */
#define SCRAPE_FDS_MIN 8
/* Pauses of the loops between two rounds. No user waits for a profile, and at a few hundred
 * profiles a second, waking up for each step of a scrape and of a request costs about as much as
 * the steps. Scrapes must be on time, so their pause is shorter. The pauses are multiples of each
 * other, so that the threads wake up together. */
#define NETWORK_GAP_MS 5
#define WRITER_GAP_MS 10
/* The part of the time of a drain that is kept for sending: this, or a quarter if that is less. */
#define DRAIN_SENDING_MS (2 * MS_PER_S)

/* Recorded metrics take one part in this many of the memory of deltas: the bodies that wait, and
 * the memory to work in. */
#define RECORD_MEMORY_PART 2

/* How long the profiles of one query may wait for names together. Debug information of an ordinary
 * program is read in less; later queries have the names in any case. */
#define STORED_NAMES_WAIT_MS (3 * MS_PER_S)

static const char *const thread_names[THREADS] = {"discovery", "network", "writer", "symbols"};

/* ---- callbacks of the stages ----------------------------------------------------------------- */

/* Delivers a profile of a target. A profile that a rule drops on purpose counts as accepted. */
static bool app_on_profile(void *arg, struct profile *profile, uint64_t forward_to)
{
    struct app *app = arg;
    enum delivery_result result = scraped_put(app->scraped, profile, forward_to, clock_mono_ms());
    return result == DELIVERY_TAKEN || result == DELIVERY_DROPPED;
}

static void app_on_group(void *arg, const struct target_group *group)
{
    struct app *app = arg;
    dropped_forget(app->dropped, group->job, group->source);
    pipeline_group(app->pipeline, group);
}

static void app_on_verdict(void *arg, const struct pipeline_verdict *verdict)
{
    struct app *app = arg;
    dropped_note(app->dropped, verdict);
}

static bool app_wants_label(void *arg, size_t job, struct sv name)
{
    struct app *app = arg;
    return pipeline_wants(app->pipeline, job, name);
}

static void app_on_synced(void *arg)
{
    struct app *app = arg;
    atomic_store(&app->synced, true);
    memory_release_text();
    log_info(app->log, sources_count(app->sources, SOURCE_FAILS) == 0
                           ? "discovery has read every source"
                           : "discovery has read every source that it may read");
}

static void app_on_memory_check(void *arg)
{
    struct app *app = arg;
    memory_release_free();
    loop_timer_after(app->memory_timer, MEMORY_CHECK_MS);
}

static void app_on_drained(void *arg)
{
    struct app *app = arg;
    eventfd_write(app->drained_fd, 1);
}

/* Drains the writer, on the network thread, after the last profile has been handed to it. */
static void app_on_converted(void *arg)
{
    struct app *app = arg;
    writer_drain(app->writer, app->drain_deadline_ms, app_on_drained, app);
}

/* Waits for conversions, on the network thread, after the last scrape has ended. */
static void app_on_scraped(void *arg)
{
    struct app *app = arg;
    scraped_when_idle(app->scraped, app_on_converted, app);
}

bool app_healthy(const struct app *app, struct err *err)
{
    for (size_t i = 0; i < THREADS; i++) {
        if (!agent_thread_healthy(&app->threads[i], err)) {
            return false;
        }
    }
    if (!agent_workers_healthy(app->workers, clock_mono_ms(), err)) {
        return false;
    }
    if (!stores_healthy(app->stores, err)) {
        return false;
    }
    (void)writer_disk_fails(app->writer, err);
    return true;
}

bool app_ready(struct app *app, struct buf *text)
{
    bool synced = atomic_load(&app->synced);
    struct buf missing;
    buf_init(&missing, text->max);
    sources_missing(app->sources, &missing);
    if (missing.len > 0 || !synced) {
        buf_printf(text, "%s%s%s",
                   synced ? "discovery continues without the sources that it cannot read"
                          : "discovery has not read every source yet",
                   missing.len > 0 ? ": " : "", missing.len > 0 ? missing.data : "");
    }
    buf_done(&missing);
    return synced;
}

static bool app_wants_names(void *arg, const struct target *target, size_t entry, struct sv body)
{
    struct app *app = arg;
    return naming_wants(app->naming, target, entry, body);
}

static bool app_rewrite_names(void *arg, struct target *target, size_t entry,
                              struct scratch *scratch, struct sv plain, struct buf *out,
                              struct profile_names *ret)
{
    struct app *app = arg;
    const struct naming_source source = {
        .target = target, .entry = entry, .sources = &target_job(target)->symbols};
    return naming_rewrite(app->naming, &source, scratch, plain, out, ret);
}

static bool app_names_stored(void *arg)
{
    struct app *app = arg;
    struct config *config = app_config(app);
    bool wanted = naming_names_stored(app->naming, config);
    config_unref(config);
    return wanted;
}

static bool app_name_stored(void *arg, struct sv plain, int64_t until_ms, struct buf *out)
{
    struct app *app = arg;
    struct config *config = app_config(app);
    bool named = naming_stored(app->naming, config, plain, until_ms, out);
    config_unref(config);
    return named;
}

/* ---- building -------------------------------------------------------------------------------- */

static bool start_memory_checks(struct app *app, struct err *err)
{
    app->memory_timer =
        loop_timer_new(app->threads[THREAD_DISCOVERY].loop, app_on_memory_check, app);
    if (app->memory_timer == NULL) {
        return err_memory(err);
    }
    loop_timer_after(app->memory_timer, MEMORY_CHECK_MS);
    return true;
}

static bool make_base(struct app *app, struct err *err)
{
    app->log = log_new(STDERR_FILENO, app->config->log.level, app->config->log.format);
    app->intern = intern_new();
    app->metrics = metrics_new();
    app->contents = http_contents_new();
    app->drained_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (app->log == NULL || app->intern == NULL || app->metrics == NULL || app->contents == NULL) {
        return err_memory(err);
    }
    if (app->drained_fd < 0) {
        return err_sys(err, "eventfd");
    }
    if (!process_metrics(app->metrics)) {
        return err_memory(err);
    }
    app_use_jobs(app, app->config);
    memory_report(&app->first->memory, app->log, app->metrics);
    app->n_workers = cgroup_cpus("");
    app->workers = worker_pool_new(app->n_workers, err);
    bool ok = app->workers != NULL;
    for (size_t i = 0; ok && i < THREADS; i++) {
        ok = agent_thread_init(&app->threads[i], thread_names[i], err);
    }
    if (!ok) {
        return false;
    }
    loop_set_gap_ms(app->threads[THREAD_NETWORK].loop, NETWORK_GAP_MS);
    loop_set_gap_ms(app->threads[THREAD_WRITER].loop, WRITER_GAP_MS);
    return start_memory_checks(app, err);
}

static bool make_writer(struct app *app, struct err *err)
{
    struct writer_options options = {
        .config = app->first,
        .loop = app->threads[THREAD_WRITER].loop,
        .intern = app->intern,
        .log = app->log,
        .metrics = app->metrics,
        .contents = app->contents,
        .open_sink = stores_open_sink,
    };
    app->store_names = (struct store_names){.wanted = app_names_stored,
                                            .name = app_name_stored,
                                            .arg = app,
                                            .wait_ms = STORED_NAMES_WAIT_MS};
    app->stores = options.open_arg = stores_new(app->log, app->metrics, &app->store_names);
    if (app->stores != NULL) {
        stores_use_contents(app->stores, app->contents);
    }
    app->peering = agent_peering_new(app->log, app->metrics, app->contents, app->first, err);
    if (app->peering == NULL) {
        return false;
    }
    app->conditions = options.conditions = conditions_new();
    if (app->stores == NULL || app->conditions == NULL) {
        return err_memory(err);
    }
    app->writer = writer_new(&options, err);
    return app->writer != NULL;
}

static bool make_naming(struct app *app, struct err *err)
{
    const struct naming_options options = {
        .config = app->first,
        .loop = app->threads[THREAD_SYMBOLS].loop,
        .log = app->log,
        .metrics = app->metrics,
        .contents = app->contents,
        .helper = app->helper,
    };
    app->naming = naming_new(&options, err);
    return app->naming != NULL;
}

/* Makes recorded metrics, which may use a part of the memory of deltas. */
static bool make_record(struct app *app, struct err *err)
{
    const struct record_options options = {
        .log = app->log,
        .metrics = app->metrics,
        .pending_max = (size_t)app->config->memory.pending / RECORD_MEMORY_PART,
        .work_max = (size_t)app->config->memory.work / RECORD_MEMORY_PART,
    };
    app->record = record_new(&options);
    if (app->record == NULL) {
        return err_memory(err);
    }
    struct record_change *rules = record_prepare(app->record, &app->config->record, err);
    if (rules == NULL) {
        return false;
    }
    record_commit(app->record, rules);
    return true;
}

static bool make_recordings(struct app *app, struct err *err)
{
    const struct recordings_options options = {
        .intern = app->intern,
        .log = app->log,
        .metrics = app->metrics,
        .work_max = (size_t)app->config->memory.work,
    };
    app->recordings = recordings_new(&options);
    return app->recordings != NULL || err_memory(err);
}

static bool make_receive(struct app *app, struct err *err)
{
    app->enrich = enrich_new(app->metrics);
    if (app->enrich == NULL) {
        return err_memory(err);
    }
    struct receive_options options = {
        .enrich = app->enrich,
        .config = &app->first->receive,
        .intern = app->intern,
        .writer = app->writer,
        .record = app->record,
        .log = app->log,
        .metrics = app->metrics,
        .recordings = app->recordings,
        .naming = app->naming,
    };
    app->receive = receive_new(&options, err);
    return app->receive != NULL;
}

/* Half of the remaining descriptors may be transfers; all that are not are idle connections. */
static unsigned max_in_flight(unsigned fds)
{
    unsigned half = fds > FDS_RESERVED ? (fds - FDS_RESERVED) / 2 : 0;
    unsigned max = half > IN_FLIGHT_MAX ? IN_FLIGHT_MAX : half;
    return max < SCRAPE_FDS_MIN ? SCRAPE_FDS_MIN : max;
}

static bool make_scraper(struct app *app, struct err *err)
{
    unsigned in_flight = max_in_flight(process_raise_fd_limit(app->log));
    const struct scraped_options scraped = {
        .intern = app->intern,
        .log = app->log,
        .metrics = app->metrics,
        .writer = app->writer,
        .record = app->record,
        .recordings = app->recordings,
        .workers = app->workers,
        .loop = app->threads[THREAD_NETWORK].loop,
        .pending_max = (size_t)app->config->memory.pending,
        .naming = app->naming,
    };
    struct scraper_options options = {
        .loop = app->threads[THREAD_NETWORK].loop,
        .intern = app->intern,
        .log = app->log,
        .metrics = app->metrics,
        .contents = app->contents,
        .n_jobs = config_job_slots(app->config),
        .max_in_flight = in_flight,
        .max_connections = 2 * in_flight,
        .workers = app->workers,
        .n_workers = app->n_workers,
        .delta_state_max_bytes = (size_t)app->config->global.delta_state_max_bytes,
        .bodies_max_bytes = (size_t)app->config->global.bodies_max_bytes,
        .pending_max_bytes = (size_t)app->config->memory.pending,
        .work_max_bytes = (size_t)app->config->memory.work,
        .names = {.wants = app_wants_names, .rewrite = app_rewrite_names, .arg = app},
        .on_profile = app_on_profile,
        .arg = app,
    };
    app->scraped = scraped_new(&scraped, app->config, err);
    if (app->scraped != NULL) {
        app->scraper = scraper_new(&options, err);
    }
    return app->scraper != NULL;
}

static void app_on_addresses(void *arg, const struct sv *addresses, size_t n)
{
    struct app *app = arg;
    peering_set_members(app->peering, addresses, n);
}

static bool make_sharding(struct app *app, struct err *err)
{
    if (app->first->sharding.mode == SHARDING_NONE) {
        return true;
    }
    struct sharding_options options = {
        .config = app->first,
        .loop = app->threads[THREAD_DISCOVERY].loop,
        .log = app->log,
        .metrics = app->metrics,
        .scraper = app->scraper,
        .on_addresses = app_on_addresses,
        .arg = app,
    };
    app->sharding = sharding_new(&options, err);
    return app->sharding != NULL;
}

static bool make_discovery(struct app *app, struct err *err)
{
    struct pipeline_options pipeline = {
        .config = app->config,
        .intern = app->intern,
        .log = app->log,
        .metrics = app->metrics,
        .scraper = app->scraper,
        .enrich = app->enrich,
        .sharding = app->sharding,
        .on_verdict = app_on_verdict,
        .arg = app,
    };
    app->dropped = dropped_new(config_job_slots(app->config), app->metrics);
    app->sources = sources_new(app->metrics);
    if (app->dropped == NULL || app->sources == NULL) {
        return err_memory(err);
    }
    app->pipeline = pipeline_new(&pipeline, err);
    if (app->pipeline == NULL) {
        return false;
    }
    struct discovery_options options = {
        .config = app->config,
        .loop = app->threads[THREAD_DISCOVERY].loop,
        .intern = app->intern,
        .log = app->log,
        .metrics = app->metrics,
        .sources = app->sources,
        .on_group = app_on_group,
        .wants_label = app_wants_label,
        .on_synced = app_on_synced,
        .arg = app,
        .contents = app->contents,
        .sharing = sharding_of_discovery(app->sharding),
    };
    app->discovery = discovery_new(&options, err);
    return app->discovery != NULL;
}

struct app *app_new(const struct config *config, struct symbols_helper *helper, struct err *err)
{
    struct app *app = calloc(1, sizeof(*app));
    if (app == NULL) {
        err_memory(err);
        return NULL;
    }
    app->drained_fd = -1;
    pthread_mutex_init(&app->config_lock, NULL);
    app->config = config_ref(config);
    app->first = config_ref(config);
    app->helper = helper;
    if (!make_base(app, err) || !make_writer(app, err) || !make_record(app, err) ||
        !make_naming(app, err) || !make_recordings(app, err) || !make_receive(app, err) ||
        !make_scraper(app, err) || !make_sharding(app, err) || !make_discovery(app, err)) {
        return app_free(app);
    }
    return app;
}

bool app_start(struct app *app, struct err *err)
{
    /* Threads that receive profiles start before those that send them. */
    for (size_t i = THREADS; i > 0; i--) {
        if (!agent_thread_start(&app->threads[i - 1], err)) {
            return false;
        }
    }
    return true;
}

void app_set_servers(struct app *app, const struct app_servers *servers)
{
    app->servers = *servers;
}

struct config *app_config(struct app *app)
{
    pthread_mutex_lock(&app->config_lock);
    struct config *config = config_ref(app->config);
    pthread_mutex_unlock(&app->config_lock);
    return config;
}

struct log *app_log(struct app *app)
{
    return app->log;
}

struct metrics *app_metrics(struct app *app)
{
    return app->metrics;
}

struct scraper *app_scraper(struct app *app)
{
    return app->scraper;
}

struct receive *app_receive(struct app *app)
{
    return app->receive;
}

struct dropped *app_dropped(struct app *app)
{
    return app->dropped;
}

struct sources *app_sources(struct app *app)
{
    return app->sources;
}

struct conditions *app_conditions(struct app *app)
{
    return app->conditions;
}

struct peering *app_peering(struct app *app)
{
    return app->peering;
}

struct record *app_record(struct app *app)
{
    return app->record;
}

bool app_sharding(const struct app *app, struct sharding_counts *ret)
{
    if (app->sharding != NULL) {
        *ret = sharding_counts(app->sharding);
    }
    return app->sharding != NULL;
}

void app_names(const struct app *app, struct naming_counts *ret)
{
    naming_count(app->naming, ret);
}

struct store *app_store(struct app *app, const char *endpoint)
{
    return stores_get(app->stores, endpoint);
}

/* ---- taking down ----------------------------------------------------------------------------- */

static void stop_discovery(struct app *app)
{
    agent_thread_stop(&app->threads[THREAD_DISCOVERY]);
    app->discovery = discovery_free(app->discovery);
}

static void stop_sources(struct app *app)
{
    stop_discovery(app);
    if (app->scraper != NULL) {
        scraper_stop(app->scraper);
    }
    agent_thread_stop(&app->threads[THREAD_NETWORK]);
    /* Run the tasks that the scraper has posted to its loop. */
    if (app->threads[THREAD_NETWORK].loop != NULL) {
        loop_run_once(app->threads[THREAD_NETWORK].loop);
    }
}

/* Returns how long scrapes in flight may go on during a drain: a part of the drain is for sending.
 * Other replicas scrape our targets after `handover`, and no process must be profiled by both. */
static int64_t time_for_scrapes(const struct app *app, int64_t timeout_ms)
{
    int64_t sending = timeout_ms / 4 < DRAIN_SENDING_MS ? timeout_ms / 4 : DRAIN_SENDING_MS;
    int64_t time = timeout_ms - sending;
    int64_t ours = app->first->sharding.handover_ms / 2;
    bool others = app->first->sharding.mode == SHARDING_KUBERNETES;
    return others && ours < time ? ours : time;
}

void app_drain(struct app *app, int64_t timeout_ms)
{
    int64_t now = clock_mono_ms();
    stop_discovery(app);
    app->drain_deadline_ms = now + timeout_ms;
    scraper_drain(app->scraper, now + time_for_scrapes(app, timeout_ms), app_on_scraped, app);
}

int app_drained_fd(const struct app *app)
{
    return app->drained_fd;
}

static uint64_t total_dropped(const struct write_ledger *ledger)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        sum += ledger->dropped[i];
    }
    return sum;
}

struct write_ledger app_ledger(struct app *app, size_t endpoint)
{
    return writer_ledger(app->writer, endpoint);
}

void app_summary(struct app *app)
{
    for (size_t i = 0; i < app->config->n_endpoints; i++) {
        struct write_ledger ledger = writer_ledger(app->writer, app->config->endpoints[i].slot);
        log_info(app->log, "endpoint summary", LOG_STR("endpoint", app->config->endpoints[i].name),
                 LOG_INT("accepted", ledger.accepted), LOG_INT("replayed", ledger.replayed),
                 LOG_INT("sent", ledger.sent), LOG_INT("dropped", total_dropped(&ledger)),
                 LOG_INT("merged", ledger.merged),
                 LOG_INT("queued", ledger.queued + ledger.in_flight));
    }
}

void app_halt(struct app *app)
{
    stop_sources(app);
    agent_thread_stop(&app->threads[THREAD_SYMBOLS]);
    agent_thread_stop(&app->threads[THREAD_WRITER]);
    if (app->writer != NULL) {
        writer_stop(app->writer);
    }
}

struct app *app_free(struct app *app)
{
    if (app == NULL) {
        return NULL;
    }
    app_halt(app);
    pipeline_free(app->pipeline);
    dropped_free(app->dropped);
    sharding_free(app->sharding);
    scraper_free(app->scraper);
    scraped_free(app->scraped);
    receive_free(app->receive);
    enrich_free(app->enrich);
    record_free(app->record);
    writer_free(app->writer);
    conditions_free(app->conditions);
    stores_free(app->stores);
    peering_free(app->peering);
    worker_pool_free(app->workers);
    recordings_free(app->recordings); /* workers may have been converting, or adding names */
    naming_free(app->naming);
    loop_timer_free(app->memory_timer);
    for (size_t i = 0; i < THREADS; i++) {
        agent_thread_done(&app->threads[i]);
    }
    sources_free(app->sources);
    http_contents_free(app->contents);
    metrics_free(app->metrics);
    intern_free(app->intern);
    if (app->drained_fd >= 0) {
        close(app->drained_fd);
    }
    log_free(app->log);
    pthread_mutex_destroy(&app->config_lock);
    config_unref(app->config);
    config_unref(app->first);
    free(app);
    return NULL;
}

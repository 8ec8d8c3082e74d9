#include "scraper/scraper.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scraper/engine.h"

/* The number of multi handles. libcurl's work grows a little with the transfers in one handle: with
 * 930 transfers in flight, 16 handles cost no more CPU than 64, and a single handle a tenth more. A
 * handle costs two descriptors and 40 KiB. */
#define HTTP_SHARDS 16
#define HTTP_SHARD_TRANSFERS 64
/* The number of handles for thousands of targets (http_client_expect()): with 10,000 targets, a
 * profile costs a tenth or two less CPU. The handles take at most one in 128 of the descriptors for
 * connections. */
#define HTTP_SHARDS_MAX 128
#define HTTP_SHARD_DESCRIPTORS 256
/* A target with the types that are on by default has five scrapes: one that samples nearly all the
 * time, and others that share a second connection. */
#define SCRAPES_OF_CONNECTION 2
#define CONNECTIONS_DEFAULT (2 * ENGINE_IN_FLIGHT_DEFAULT)

struct scraper {
    atomic_uint refs; /* one of the owner, and one for each posted task */
    struct scraper_options options;
    struct loop_timer *timer;
    struct http_client *http;
    struct engine *engine; /* NULL once freed: later tasks do nothing */
    atomic_bool stopping;  /* a drain or a stop has been requested */
    atomic_bool stop_posted;
    struct loop_task drain_task;
    struct loop_task stop_task;
    int64_t drain_deadline_ms;
    struct engine_drain drain;
};

static void unref(struct scraper *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        free(s);
    }
}

/* ---- the engine's environment ---------------------------------------------------------------- */

static int64_t io_mono_ns(void *arg)
{
    (void)arg;
    return clock_mono_ns();
}

static int64_t io_wall_offset_ns(void *arg)
{
    (void)arg;
    return clock_wall_offset_ns();
}

static struct http_transfer *io_start(void *arg, const struct http_request *request)
{
    struct scraper *s = arg;
    return http_start(s->http, request);
}

static void io_cancel(void *arg, struct http_transfer *transfer)
{
    (void)arg;
    http_cancel(transfer);
}

static void io_grant(void *arg, struct http_transfer *transfer, size_t bytes)
{
    (void)arg;
    http_grant(transfer, bytes);
}

static void io_wake_at(void *arg, int64_t mono_ms)
{
    struct scraper *s = arg;
    loop_timer_at(s->timer, mono_ms);
}

static void io_submit(void *arg, struct work *work)
{
    struct scraper *s = arg;
    work->home = s->options.loop;
    worker_submit(s->options.workers, work);
}

static void scraper_on_timer(void *arg)
{
    struct scraper *s = arg;
    engine_wake(s->engine);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool make_engine(struct scraper *s, struct err *err)
{
    const struct engine_io io = {
        .mono_ns = io_mono_ns,
        .wall_offset_ns = io_wall_offset_ns,
        .start = io_start,
        .cancel = io_cancel,
        .grant = io_grant,
        .wake_at = io_wake_at,
        .submit = s->options.workers == NULL ? NULL : io_submit,
        .arg = s,
    };
    s->engine = engine_new(&s->options, &io, err);
    return s->engine != NULL;
}

static unsigned count_shards(unsigned max_in_flight)
{
    unsigned in_flight = max_in_flight == 0 ? ENGINE_IN_FLIGHT_DEFAULT : max_in_flight;
    unsigned shards = in_flight / HTTP_SHARD_TRANSFERS;
    return shards < 1 ? 1 : shards > HTTP_SHARDS ? HTTP_SHARDS : shards;
}

static bool make_client(struct scraper *s, struct err *err)
{
    const struct scraper_options *options = &s->options;
    unsigned connections =
        options->max_connections == 0 ? CONNECTIONS_DEFAULT : options->max_connections;
    unsigned most = connections / HTTP_SHARD_DESCRIPTORS;
    struct http_client_options client = {
        .loop = options->loop,
        .log = options->log,
        .metrics = options->metrics,
        .name = "scrape",
        .contents = options->contents,
        .guarded = true,
        .shards = count_shards(options->max_in_flight),
        .max_shards = most > HTTP_SHARDS_MAX ? HTTP_SHARDS_MAX : most,
        /* Each handle needs two descriptors, and there may be a few connections too many until the
         * next transfers end. */
        .max_connections = connections - connections / (HTTP_SHARD_DESCRIPTORS / 4),
        .bodies_max_bytes =
            options->bodies_max_bytes == 0 ? ENGINE_BODIES_DEFAULT : options->bodies_max_bytes,
    };
    s->http = http_client_new(&client, err);
    return s->http != NULL;
}

struct scraper *scraper_new(const struct scraper_options *options, struct err *err)
{
    if (options->intern == NULL) {
        err_set(err, ERR_INPUT, "scraper: no string table was given");
        return NULL;
    }
    struct scraper *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    atomic_init(&s->refs, 1);
    atomic_init(&s->stopping, false);
    atomic_init(&s->stop_posted, false);
    s->options = *options;
    s->timer = loop_timer_new(options->loop, scraper_on_timer, s);
    if (s->timer == NULL) {
        err_memory(err);
        return scraper_free(s);
    }
    return make_client(s, err) && make_engine(s, err) ? s : scraper_free(s);
}

struct scraper *scraper_free(struct scraper *s)
{
    if (s == NULL) {
        return NULL;
    }
    s->engine = engine_free(s->engine);
    http_client_free(s->http);
    loop_timer_free(s->timer);
    unref(s);
    return NULL;
}

/* ---- from other threads ---------------------------------------------------------------------- */

struct update {
    struct loop_task task; /* first */
    struct scraper *scraper;
    const char *source; /* stored after the targets */
    size_t job;
    size_t n;
    struct target *targets[];
};

static void scraper_run_update(struct loop_task *task)
{
    struct update *u = (struct update *)task;
    struct scraper *s = u->scraper;
    if (s->engine == NULL) {
        targets_unref(u->targets, u->n);
    } else if (!engine_set_group(s->engine, u->job, u->source, u->targets, u->n) &&
               !atomic_load(&s->stopping)) {
        log_error(s->options.log, "out of memory: the targets stay as they are",
                  LOG_STR("source", u->source));
    } else {
        http_client_expect(s->http, s->engine->table.n / SCRAPES_OF_CONNECTION);
    }
    free(u);
    unref(s);
}

bool scraper_set_group(struct scraper *s, size_t job, const char *source,
                       struct target *const *targets, size_t n_targets)
{
    if (s == NULL) {
        targets_unref(targets, n_targets);
        return true;
    }
    size_t source_size = strlen(source) + 1;
    struct update *u = malloc(sizeof(*u) + n_targets * sizeof(struct target *) + source_size);
    if (u == NULL) {
        targets_unref(targets, n_targets);
        return false;
    }
    u->task = (struct loop_task){.run = scraper_run_update};
    u->scraper = s;
    u->job = job;
    u->n = n_targets;
    if (n_targets > 0) {
        memcpy(u->targets, targets, n_targets * sizeof(struct target *));
    }
    u->source = memcpy(&u->targets[n_targets], source, source_size);
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    loop_post(s->options.loop, &u->task);
    return true;
}

/* A request to run a scrape now. */
struct wish {
    struct loop_task task;
    struct scraper *scraper;
    struct target *target;
    size_t entry;
};

static void scraper_run_wish(struct loop_task *task)
{
    struct wish *w = (struct wish *)(void *)((char *)task - offsetof(struct wish, task));
    struct scraper *s = w->scraper;
    if (s->engine != NULL) {
        engine_scrape_now(s->engine, w->target, w->entry);
    }
    target_unref(w->target);
    free(w);
    unref(s);
}

bool scraper_scrape_now(struct scraper *s, struct target *target, size_t entry)
{
    struct wish *w = malloc(sizeof(*w));
    if (w == NULL) {
        return false;
    }
    *w = (struct wish){.task = {.run = scraper_run_wish},
                       .scraper = s,
                       .target = target_ref(target),
                       .entry = entry};
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    loop_post(s->options.loop, &w->task);
    return true;
}

static void scraper_run_stop(struct loop_task *task)
{
    struct scraper *s =
        (struct scraper *)(void *)((char *)task - offsetof(struct scraper, stop_task));
    if (s->engine != NULL) {
        engine_stop(s->engine);
    }
    unref(s);
}

static void scraper_run_drain(struct loop_task *task)
{
    struct scraper *s =
        (struct scraper *)(void *)((char *)task - offsetof(struct scraper, drain_task));
    if (s->engine != NULL) {
        engine_drain(s->engine, s->drain_deadline_ms, s->drain.on_drained, s->drain.arg);
    }
    unref(s);
}

void scraper_drain(struct scraper *s, int64_t deadline_ms, void (*on_drained)(void *arg), void *arg)
{
    if (!atomic_exchange(&s->stopping, true)) {
        s->drain_deadline_ms = deadline_ms;
        s->drain = (struct engine_drain){.on_drained = on_drained, .arg = arg};
        s->drain_task.run = scraper_run_drain;
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
        loop_post(s->options.loop, &s->drain_task);
    }
}

void scraper_stop(struct scraper *s)
{
    atomic_store(&s->stopping, true);
    if (!atomic_exchange(&s->stop_posted, true)) {
        s->stop_task.run = scraper_run_stop;
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
        loop_post(s->options.loop, &s->stop_task);
    }
}

size_t scraper_sampled(struct scraper *s, struct sampled_service *out, size_t max)
{
    return engine_sampled(s->engine, out, max);
}

struct scrape_memory scraper_memory(struct scraper *s)
{
    return engine_memory(s->engine);
}

size_t scraper_snapshot(struct scraper *s, size_t *cursor, struct scrape_status *out, size_t max)
{
    return engine_snapshot(s->engine, cursor, out, max);
}

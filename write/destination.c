/* Making and freeing a destination; see destination.h. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "write/batch.h"
#include "write/queue/merging.h"
#include "write/sample_labels.h"
#include "write/writer_private.h"

static void writer_on_timer(void *arg)
{
    destination_pump(arg);
}

static void writer_on_spool_changed(void *arg)
{
    struct destination *d = arg;
    writer_wake(d->writer);
    if (merging_is_due(d->queue, clock_mono_ms())) {
        merger_poke(d->writer->merger);
    }
}

static void writer_on_spool_flushed(void *arg)
{
    struct destination *d = arg;
    atomic_store(&d->flushed, true);
}

static bool make_spool(struct destination *d, struct err *err)
{
    uint64_t threshold = d->config->queue_max_bytes / 4;
    struct spool_options options = {
        .config = d->config,
        .flush_threshold = threshold < SPOOL_FLUSH_THRESHOLD ? threshold : SPOOL_FLUSH_THRESHOLD,
        .intern = d->options->intern,
        .log = d->options->log,
        .events = send_queue_spool_events(d->queue),
        .seed = rng_next(&d->rng)};
    options.events.wake_arg = d;
    options.events.changed = writer_on_spool_changed;
    options.events.flushed = writer_on_spool_flushed;
    d->spool = spool_new(&options, err);
    if (d->spool == NULL) {
        return false;
    }
    send_queue_attach(d->queue, d->spool);
    return true;
}

bool destination_open_sink(const struct writer_options *o, const struct config_endpoint *config,
                           struct sink **ret_sink, struct err *err)
{
    const struct protocol *protocol = protocol_of(config);
    *ret_sink = NULL;
    if (protocol_is_http(protocol)) {
        return true;
    }
    if (protocol->open != NULL) {
        *ret_sink = protocol->open(config, err);
    } else if (o->open_sink != NULL) {
        *ret_sink = o->open_sink(o->open_arg, config, err);
    } else {
        err_set(err, ERR_INPUT, "this command cannot write to %s://", config->protocol->scheme);
    }
    return *ret_sink != NULL;
}

bool destination_use_credentials(struct destination *d, struct err *err)
{
    const struct config *former = d->credentials_owner;
    if (d->config->bucket.credentials == CREDENTIALS_CONFIGURED) {
        return true;
    }
    if (d->credentials != NULL) {
        credentials_configure(d->credentials, &d->config->bucket);
    } else {
        d->credentials =
            credentials_new(&(struct credentials_options){.settings = &d->config->bucket,
                                                          .loop = d->options->loop,
                                                          .http = d->http,
                                                          .log = d->options->log,
                                                          .metrics = d->options->metrics,
                                                          .name = d->name},
                            err);
    }
    d->credentials_owner = d->owner != NULL ? config_ref(d->owner) : NULL;
    config_unref(former);
    return d->credentials != NULL;
}

/* Starts the spool. Spools are often on the same disk, so if one of them hangs, profpull does not
 * wait for the others. */
static bool start_spool(struct destination *d, struct err *err)
{
    struct writer *w = d->writer;
    if (d->spool == NULL) {
        return true;
    }
    bool ok = spool_start(d->spool, w->spool_hangs ? 0 : SPOOL_OPEN_WAIT_MS, err);
    w->spool_hangs = ok && !spool_is_opened(d->spool);
    return ok;
}

static bool make_parts(struct destination *d, struct err *err)
{
    struct writer *w = d->writer;
    if (d->queue == NULL || d->timer == NULL || d->sample_labels == NULL) {
        return err_memory(err);
    }
    if (d->config->spool_directory != NULL && !make_spool(d, err)) {
        return false;
    }
    if (!destination_open_sink(&w->options, d->config, &d->sink, err) ||
        !destination_use_credentials(d, err)) {
        return false;
    }
    if (d->sink != NULL) {
        d->sink_thread = sink_thread_new(w->options.loop, w->options.log, d->name, err);
    }
    if (d->protocol->build_many != NULL) {
        d->batcher = batcher_new(d, err);
    }
    bool has_threads = (d->sink == NULL || d->sink_thread != NULL) &&
                       (d->protocol->build_many == NULL || d->batcher != NULL);
    return has_threads && merger_add(w->merger, d->queue, err) && start_spool(d, err);
}

struct destination *destination_new(struct writer *w, const struct config *owner,
                                    const struct config_endpoint *config, size_t slot,
                                    struct err *err)
{
    struct destination *d = calloc(1, sizeof(*d));
    char *name = strdup(config->name);
    if (d == NULL || name == NULL) {
        err_memory(err);
        free(d);
        free(name);
        return NULL;
    }
    d->writer = w;
    d->options = &w->options;
    d->name = name;
    d->slot = slot;
    d->owner = owner != NULL ? config_ref(owner) : NULL;
    d->wanted_owner = owner != NULL ? config_ref(owner) : NULL;
    d->config = d->wanted = config;
    d->protocol = protocol_of(config);
    d->http = w->http;
    TAILQ_INIT(&d->attempts);
    rng_seed_random(&d->rng);
    boundary_new(&d->boundary, &d->rng);
    report_init(&d->report, w->options.log, w->options.metrics, name);
    metrics_use(w->options.metrics, "endpoint", name);
    atomic_init(&d->flushed, false);
    atomic_init(&d->leave_ms, INT64_MAX);
    d->rules_version = 1;
    d->sample_labels = sample_labels_new(w->options.metrics, name);
    d->queue = send_queue_new(config, rng_next(&d->rng));
    d->timer = loop_timer_new(w->options.loop, writer_on_timer, d);
    if (!make_parts(d, err)) {
        destination_end(d);
        return destination_free(d);
    }
    return d;
}

void destination_hurry(struct destination *d, bool hurries)
{
    if (hurries != d->hurries) {
        d->hurries = hurries;
        loop_hurry(d->options->loop, hurries ? 1 : -1);
    }
}

void destination_stop(struct destination *d)
{
    send_queue_stop(d->queue);
    attempt_abandon_all(d);
    if (d->spool != NULL) {
        spool_flush(d->spool);
    }
}

bool destination_is_flushed(const struct destination *d)
{
    return d->spool == NULL ||
           (atomic_load(&d->flushed) && send_queue_status(d->queue).ledger.in_flight == 0);
}

void destination_end(struct destination *d)
{
    merger_remove(d->writer->merger, d->queue);
    /* Writes the waiting profiles. There are no events of the spool after this. */
    spool_stop(d->spool, clock_mono_ms());
}

void destination_empty(struct destination *d)
{
    d->batcher = batcher_free(d->batcher);
    sink_thread_stop(d->sink_thread);
    d->queue = send_queue_free(d->queue);
    d->spool = spool_free(d->spool);
    d->sink = sink_unref(d->sink);
    d->wanted_sink = sink_unref(d->wanted_sink);
}

struct destination *destination_free(struct destination *d)
{
    if (d == NULL) {
        return NULL;
    }
    destination_empty(d);
    destination_hurry(d, false);
    loop_timer_free(d->timer);
    sink_thread_free(d->sink_thread);
    sample_labels_free(d->sample_labels);
    credentials_free(d->credentials);
    config_unref(d->credentials_owner);
    config_unref(d->owner);
    config_unref(d->wanted_owner);
    metrics_release(d->options->metrics, "endpoint", d->name);
    free(d->name);
    free(d);
    return NULL;
}

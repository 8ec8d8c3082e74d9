#include "agent/recordings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LABEL_EVENT "jfr_event"
/* The log has a limited number of messages about recordings that cannot be read in this period. */
#define LOG_PERIOD_MS 60000
#define LOG_BURST 5

enum recording_result { CONVERTED, DAMAGED, FAILED, REFUSED, RESULTS };
static const char *const result_names[RESULTS] = {
    [CONVERTED] = "converted", [DAMAGED] = "damaged", [FAILED] = "failed", [REFUSED] = "refused"};

struct recordings {
    struct recordings_options options;
    uint64_t seed;
    pthread_mutex_t lock; /* guards the limit */
    struct log_limit limit;
    struct metric_cell *results[RESULTS];
    struct metric_cell *profiles;
    struct metric_cell *pending;
};

struct recordings *recordings_new(const struct recordings_options *options)
{
    struct recordings *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return NULL;
    }
    struct rng rng;
    rng_seed_random(&rng);
    r->seed = rng_next(&rng);
    r->options = *options;
    pthread_mutex_init(&r->lock, NULL);
    struct metric *results = metrics_family(
        options->metrics, METRIC_COUNTER, "profpull_recordings_total",
        "Recordings of Java for destinations that take profiles, by result. damaged: "
        "the profiles of the good part were made.",
        "result", NULL);
    for (size_t i = 0; i < RESULTS; i++) {
        r->results[i] = metric_cell_of(results, result_names[i]);
    }
    r->profiles =
        metrics_single(options->metrics, METRIC_COUNTER, "profpull_recordings_profiles_total",
                       "Profiles that were made of recordings.");
    r->pending = metrics_single(options->metrics, METRIC_GAUGE, "profpull_recordings_pending",
                                "Recordings that wait for their conversion.");
    return r;
}

struct recordings *recordings_free(struct recordings *r)
{
    if (r != NULL) {
        pthread_mutex_destroy(&r->lock);
        free(r);
    }
    return NULL;
}

/* ---- counting -------------------------------------------------------------------------------- */

static void count(struct recordings *r, enum recording_result result, const struct profile *base,
                  const struct err *err)
{
    uint32_t suppressed = 0;
    metric_inc(r->results[result]);
    if (result == CONVERTED) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    bool allowed =
        log_limit_allow(&r->limit, clock_mono_ms(), LOG_PERIOD_MS, LOG_BURST, &suppressed);
    pthread_mutex_unlock(&r->lock);
    if (allowed) {
        log_warn(r->options.log, "recording cannot be read completely",
                 LOG_STR("result", result_names[result]),
                 LOG_SV("service", labels_get(base->labels, SV(LABEL_SERVICE_NAME))), LOG_ERR(err),
                 LOG_INT("suppressed", suppressed));
    }
}

void recordings_refuse(struct recordings *r, const struct profile *base)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_LIMIT, "too many recordings wait for their conversion");
    count(r, REFUSED, base, &err);
}

void recordings_pending(struct recordings *r, int change)
{
    metric_gauge_add(r->pending, change);
}

/* ---- converting ------------------------------------------------------------------------------ */

static struct labels *make_labels(struct recordings *r, const struct profile *base,
                                  const char *name, const char *event)
{
    struct labels_builder *b = labels_builder_new(r->options.intern);
    if (b == NULL) {
        return NULL;
    }
    labels_builder_reset(b, base->labels);
    labels_builder_set(b, SV(LABEL_NAME), sv_from(name));
    labels_builder_set(b, SV(LABEL_DELTA), SV("false"));
    if (event != NULL) {
        labels_builder_set(b, SV(LABEL_EVENT), sv_from(event));
    }
    struct labels *labels = labels_builder_build(b);
    labels_builder_free(b);
    return labels;
}

/* Makes a profile of the bytes, which it takes over. */
static struct profile *make_profile(struct recordings *r, const struct profile *base,
                                    const struct jfr_result *result, struct jfr_made *made,
                                    bool own_times)
{
    struct labels *labels = make_labels(r, base, made->name, result->event);
    char *data = made->data;
    made->data = NULL;
    if (labels == NULL) {
        free(data);
        return NULL;
    }
    struct profile *p = profile_new(labels, data, made->size);
    if (p == NULL) {
        return NULL;
    }
    bool times =
        own_times && result->facts.start_ns > 0 && result->facts.end_ns > result->facts.start_ns;
    p->from_ns = times ? result->facts.start_ns : base->from_ns;
    p->until_ns = times ? result->facts.end_ns : base->until_ns;
    p->scraped_ms = base->scraped_ms;
    p->is_pushed = base->is_pushed;
    p->refusable = base->refusable;
    p->job = base->job;
    p->salt = base->salt;
    p->receipt = base->receipt != NULL ? receipt_ref(base->receipt) : NULL;
    return p;
}

static bool make_profiles(struct recordings *r, const struct profile *base,
                          struct jfr_result *result, bool own_times, struct recording_profiles *ret,
                          struct err *err)
{
    for (; ret->n < result->n; ret->n++) {
        ret->at[ret->n] = make_profile(r, base, result, &result->made[ret->n], own_times);
        if (ret->at[ret->n] == NULL) {
            while (ret->n > 0) {
                profile_unref(ret->at[--ret->n]);
            }
            return err_memory(err);
        }
    }
    return true;
}

bool recordings_convert(struct recordings *r, const struct profile *base, struct sv body,
                        const struct recording_hints *hints, struct recording_profiles *ret,
                        struct err *err)
{
    struct jfr_result result;
    struct jfr_input in = {
        .body = body,
        .options = {.sample_rate = hints->sample_rate, .labels = hints->labels, .seed = r->seed},
        .scratch = scratch_new(),
    };
    size_t work = r->options.work_max;
    if (work > 0 && work / 2 < JFR_PLAIN_MAX) {
        /* Half of the memory is for the recording, a quarter for the events that are kept of it,
         * and the rest for the profiles. */
        in.plain_max = work / 2;
        in.options.memory_max = work / 4;
    }
    *ret = (struct recording_profiles){.n = 0};
    bool ok = jfr_convert(&in, &result, err);
    bool damaged = ok && result.damaged;
    ok = ok && make_profiles(r, base, &result, hints->own_times, ret, err);
    jfr_result_done(&result);
    scratch_free(in.scratch);
    count(r, !ok ? FAILED : damaged ? DAMAGED : CONVERTED, base, err);
    metric_add(r->profiles, ret->n);
    return ok;
}

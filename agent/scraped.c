#include "agent/scraped.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "config/change.h"

struct scraped_change {
    struct loop_task task; /* first */
    struct scraped *scraped;
    struct config *config;   /* a reference */
    struct config_job *jobs; /* the jobs by slot; an entry without a name is no job */
    struct delivery delivery;
};

/* A recording on its way through a worker: waiting, then with a worker, then done. */
struct conversion {
    struct work work; /* first */
    TAILQ_ENTRY(conversion) link;
    struct scraped *scraped; /* NULL: it is gone */
    struct recordings *recordings;
    struct profile *recording; /* a reference */
    uint64_t endpoints;        /* the destinations that get its profiles */
    struct recording_profiles made;
    bool running;
};

TAILQ_HEAD(conversions, conversion);

struct scraped {
    struct scraped_options options;
    struct conversions conversions; /* in order of arrival; a worker may have the first one */
    size_t pending_bytes;
    struct held *held;       /* NULL: no profile waits for names */
    void (*idle)(void *arg); /* NULL: nobody waits for the end of the conversions */
    void *idle_arg;
    /* One more than the highest slot that a job ever had; belongs to the thread that prepares. */
    size_t n_jobs;
    struct scraped_change *now;
};

struct scraped_change *scraped_discard(struct scraped_change *c)
{
    if (c != NULL) {
        profile_rules_free(c->delivery.rules);
        free(c->jobs);
        config_unref(c->config);
        free(c);
    }
    return NULL;
}

/* A job that is gone keeps its place, without a name, because profiles of it may still arrive. */
struct scraped_change *scraped_prepare(struct scraped *s, const struct config *next,
                                       struct err *err)
{
    size_t slots = config_job_slots(next);
    size_t n = slots > s->n_jobs ? slots : s->n_jobs;
    struct scraped_change *c = calloc(1, sizeof(*c));
    if (c == NULL || (c->jobs = calloc(n + 1, sizeof(*c->jobs))) == NULL) {
        free(c);
        err_memory(err);
        return NULL;
    }
    for (size_t i = 0; i < next->n_jobs; i++) {
        c->jobs[next->jobs[i].slot] = next->jobs[i];
    }
    s->n_jobs = n;
    c->config = config_ref(next);
    c->delivery = (struct delivery){
        .jobs = c->jobs,
        .rules = profile_rules_new(c->jobs, n, s->options.intern, s->options.log,
                                   s->options.metrics, err),
        .writer = s->options.writer,
        .record = s->options.record,
    };
    return c->delivery.rules != NULL ? c : scraped_discard(c);
}

static void scraped_run_change(struct loop_task *task)
{
    struct scraped_change *c = (struct scraped_change *)task;
    struct scraped *s = c->scraped;
    scraped_discard(s->now);
    s->now = c;
}

void scraped_post(struct scraped *s, struct scraped_change *c, struct loop *loop)
{
    c->scraped = s;
    c->task.run = scraped_run_change;
    loop_post(loop, &c->task);
}

/* ---- recordings ------------------------------------------------------------------------------ */

static void conversion_free(struct conversion *c)
{
    for (size_t i = 0; i < c->made.n; i++) {
        profile_unref(c->made.at[i]);
    }
    profile_unref(c->recording);
    free(c);
}

/* Converts a recording, on a worker. */
static void conversion_run(struct work *work)
{
    struct conversion *c = (struct conversion *)work;
    const struct profile *p = c->recording;
    const struct recording_hints hints = {.own_times = true};
    struct err err = ERR_INIT;
    (void)recordings_convert(c->recordings, p, (struct sv){p->data, p->size}, &hints, &c->made,
                             &err);
}

static bool is_idle(const struct scraped *s)
{
    return TAILQ_EMPTY(&s->conversions) && (s->held == NULL || held_is_empty(s->held));
}

/* Calls the function of scraped_when_idle() once no work is left. */
static void tell_idle(struct scraped *s)
{
    if (s->idle != NULL && is_idle(s)) {
        s->idle(s->idle_arg);
        s->idle = NULL;
    }
}

static void start_next(struct scraped *s)
{
    struct conversion *c = TAILQ_FIRST(&s->conversions);
    if (c != NULL && !c->running) {
        c->running = true;
        worker_submit(s->options.workers, &c->work);
    } else if (c == NULL) {
        tell_idle(s);
    }
}

static void leave(struct scraped *s, struct conversion *c)
{
    TAILQ_REMOVE(&s->conversions, c, link);
    s->pending_bytes -= c->recording->size;
    recordings_pending(c->recordings, -1);
    c->scraped = NULL;
}

/* The destinations that a job has now, or had; the profiles go to no other than was planned. */
static uint64_t endpoints_of(const struct scraped *s, const struct profile *p, uint64_t forward_to)
{
    const struct config_job *job = &s->now->jobs[p->job];
    return job->name != NULL ? job->forward_to : forward_to;
}

/* Delivers the profiles of a conversion, on the scraper's loop. */
static void conversion_done(struct work *work)
{
    struct conversion *c = (struct conversion *)work;
    struct scraped *s = c->scraped;
    if (s != NULL) {
        uint64_t endpoints = endpoints_of(s, c->recording, c->endpoints) & c->endpoints;
        leave(s, c);
        for (size_t i = 0; i < c->made.n && endpoints != 0; i++) {
            struct profile *p = profile_ref(c->made.at[i]);
            (void)delivery_put(&s->now->delivery, p, endpoints, clock_mono_ms());
        }
        start_next(s);
    }
    conversion_free(c);
}

/* Puts a recording in line for its conversion. Returns false if there is no room. */
static bool convert(struct scraped *s, const struct profile *recording, uint64_t endpoints)
{
    size_t max = s->options.pending_max != 0 ? s->options.pending_max : RECORDINGS_PENDING_DEFAULT;
    struct conversion *c = NULL;
    if (recording->size <= max && s->pending_bytes <= max - recording->size) {
        c = calloc(1, sizeof(*c));
    }
    /* The conversion gets a copy of the recording, because the rules of the job change the labels
     * of the original. */
    struct profile *copy = c != NULL ? profile_copy(recording) : NULL;
    if (copy == NULL) {
        recordings_refuse(s->options.recordings, recording);
        free(c);
        return false;
    }
    *c = (struct conversion){
        .work = {.home = s->options.loop, .run = conversion_run, .done = conversion_done},
        .scraped = s,
        .recordings = s->options.recordings,
        .recording = copy,
        .endpoints = endpoints,
    };
    TAILQ_INSERT_TAIL(&s->conversions, c, link);
    s->pending_bytes += copy->size;
    recordings_pending(c->recordings, 1);
    start_next(s);
    return true;
}

void scraped_when_idle(struct scraped *s, void (*done)(void *arg), void *arg)
{
    if (s->held != NULL) {
        held_release(s->held);
    }
    if (is_idle(s)) {
        done(arg);
    } else {
        s->idle = done;
        s->idle_arg = arg;
    }
}

/* Forgets the conversions in progress: each frees itself when its worker is done. */
static void abandon(struct scraped *s)
{
    struct conversion *c;
    while ((c = TAILQ_FIRST(&s->conversions)) != NULL) {
        leave(s, c); /* NOLINT(clang-analyzer-unix.Malloc): it takes the next first from the list */
        if (!c->running) {
            conversion_free(c);
        }
    }
}

/* Delivers a recording: the destinations that can read it get its bytes, the others the profiles in
 * it. */
static enum delivery_result put_recording(struct scraped *s, struct profile *p, uint64_t endpoints,
                                          int64_t now_ms)
{
    const struct config_job *job = &s->now->jobs[p->job];
    uint64_t originals = endpoints & job->recordings_to;
    uint64_t others = endpoints & ~originals;
    bool taken = others != 0 && convert(s, p, others);
    if (originals == 0) {
        profile_unref(p);
        return taken ? DELIVERY_TAKEN : DELIVERY_FULL;
    }
    enum delivery_result result = delivery_put(&s->now->delivery, p, originals, now_ms);
    return taken ? DELIVERY_TAKEN : result;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Delivers a profile that has waited for names. Its baseline has moved when it began to wait, so
 * destinations without room cannot refuse it. */
static void scraped_on_held(void *arg, struct profile *p, uint64_t endpoints)
{
    struct scraped *s = arg;
    endpoints &= endpoints_of(s, p, endpoints);
    p->refusable = false;
    if (endpoints != 0) {
        (void)delivery_put(&s->now->delivery, p, endpoints, clock_mono_ms());
    } else {
        profile_unref(p);
    }
    tell_idle(s);
}

/* Lets a profile wait for names if its job wants that. */
static bool hold(struct scraped *s, struct profile *p, uint64_t endpoints)
{
    const struct config_job *job = &s->now->jobs[p->job];
    return s->held != NULL && p->names.awaits != 0 && job->symbols.wait_ms > 0 &&
           held_put(s->held, p, endpoints, &job->symbols, s->now->config);
}

/* ---- the way --------------------------------------------------------------------------------- */

struct scraped *scraped_new(const struct scraped_options *options, const struct config *config,
                            struct err *err)
{
    struct scraped *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    s->options = *options;
    TAILQ_INIT(&s->conversions);
    s->now = scraped_prepare(s, config, err);
    if (s->now != NULL && options->naming != NULL) {
        const struct held_options held = {
            .naming = options->naming,
            .workers = options->workers,
            .loop = options->loop,
            .bytes_max =
                options->pending_max != 0 ? options->pending_max : RECORDINGS_PENDING_DEFAULT,
            .deliver = scraped_on_held,
            .arg = s,
        };
        s->held = held_new(&held, err);
    }
    bool ok = s->now != NULL && (s->held != NULL || options->naming == NULL);
    return ok ? s : scraped_free(s);
}

struct scraped *scraped_free(struct scraped *s)
{
    if (s != NULL) {
        abandon(s);
        held_free(s->held);
        scraped_discard(s->now);
        free(s);
    }
    return NULL;
}

enum delivery_result scraped_put(struct scraped *s, struct profile *profile, uint64_t forward_to,
                                 int64_t now_ms)
{
    uint64_t endpoints = endpoints_of(s, profile, forward_to);
    if (hold(s, profile, endpoints)) {
        return DELIVERY_TAKEN;
    }
    if (s->options.naming != NULL) {
        naming_note(s->options.naming, &profile->names);
    }
    return profile->format == PROFILE_JFR
               ? put_recording(s, profile, endpoints, now_ms)
               : delivery_put(&s->now->delivery, profile, endpoints, now_ms);
}

#include "agent/scraped.h"

#include <stdlib.h>

#include "config/change.h"

struct scraped_change {
    struct loop_task task; /* first */
    struct scraped *scraped;
    struct config *config;   /* a reference */
    struct config_job *jobs; /* by slot; without a name where there is none */
    struct delivery delivery;
};

struct scraped {
    struct scraped_options options;
    size_t n_jobs; /* slots that jobs ever had; of whoever prepares */
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

struct scraped *scraped_new(const struct scraped_options *options, const struct config *config,
                            struct err *err)
{
    struct scraped *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    s->options = *options;
    s->now = scraped_prepare(s, config, err);
    return s->now != NULL ? s : scraped_free(s);
}

struct scraped *scraped_free(struct scraped *s)
{
    if (s != NULL) {
        scraped_discard(s->now);
        free(s);
    }
    return NULL;
}

enum delivery_result scraped_put(const struct scraped *s, struct profile *profile,
                                 uint64_t forward_to, int64_t now_ms)
{
    const struct config_job *job = &s->now->jobs[profile->job];
    uint64_t endpoints = job->name != NULL ? job->forward_to : forward_to;
    return delivery_put(&s->now->delivery, profile, endpoints, now_ms);
}

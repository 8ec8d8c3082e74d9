#include "agent/dropped.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* What is recorded of one job. */
struct record {
    struct dropped_target *at; /* DROPPED_MAX; made when the first one is noted */
    size_t n;
    size_t bytes;
    bool is_full; /* something has had no place; stays */
};

struct dropped {
    pthread_mutex_t lock; /* of all below */
    const struct config *config;
    struct record *records; /* one for each job */
    uint64_t last_id;
    struct metric *unshown;
};

struct dropped *dropped_new(const struct config *config, struct metrics *metrics)
{
    struct dropped *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return NULL;
    }
    pthread_mutex_init(&d->lock, NULL);
    d->config = config;
    d->unshown = metrics_family(metrics, METRIC_COUNTER, "profpull_dropped_targets_unshown_total",
                                "Label sets that have not become targets and that the page of "
                                "dropped targets has no place for.",
                                "job", NULL);
    d->records = calloc(config->n_jobs + 1, sizeof(*d->records));
    return d->records != NULL ? d : dropped_free(d);
}

void dropped_target_done(struct dropped_target *t)
{
    free(t->source);
    free(t->why);
    labels_unref(t->labels);
    *t = (struct dropped_target){.id = 0};
}

struct dropped *dropped_free(struct dropped *d)
{
    if (d == NULL) {
        return NULL;
    }
    for (size_t j = 0; d->records != NULL && j < d->config->n_jobs; j++) {
        for (size_t i = 0; i < d->records[j].n; i++) {
            dropped_target_done(&d->records[j].at[i]);
        }
        free(d->records[j].at);
    }
    free(d->records);
    pthread_mutex_destroy(&d->lock);
    free(d);
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t bytes_of(const struct dropped_target *t)
{
    return labels_bytes(t->labels) + strlen(t->source) + (t->why == NULL ? 0 : strlen(t->why));
}

void dropped_forget(struct dropped *d, size_t job, const char *source)
{
    struct record *r = &d->records[job];
    size_t kept = 0;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < r->n; i++) {
        if (str_same(r->at[i].source, source)) {
            r->bytes -= bytes_of(&r->at[i]);
            dropped_target_done(&r->at[i]);
        } else {
            r->at[kept++] = r->at[i];
        }
    }
    r->n = kept;
    pthread_mutex_unlock(&d->lock);
}

/* What to say of a label set that no rule has dropped. NULL if a rule has. */
static const char *why_not(const struct pipeline_verdict *v)
{
    if (v->set_aside) {
        return "set aside: the rules keep it, and what it asks for is scraped under another label "
               "set";
    }
    return v->err != NULL ? v->err->msg : NULL;
}

static bool make(const struct pipeline_verdict *v, struct dropped_target *ret)
{
    const char *why = why_not(v);
    *ret = (struct dropped_target){
        .job = v->group->job,
        .source = strdup(v->group->source),
        .labels = labels_ref(v->discovered),
        .rule = v->rule,
        .why = why == NULL ? NULL : strdup(why),
    };
    return ret->source != NULL && (why == NULL || ret->why != NULL);
}

/* Takes *t over. False if there is no place for it. */
static bool put(struct dropped *d, struct dropped_target *t)
{
    struct record *r = &d->records[t->job];
    size_t bytes = bytes_of(t);
    if (r->at == NULL) {
        r->at = calloc(DROPPED_MAX, sizeof(*r->at));
    }
    if (r->at == NULL || r->n == DROPPED_MAX || bytes > DROPPED_BYTES_MAX - r->bytes) {
        r->is_full = true;
        return false;
    }
    t->id = ++d->last_id;
    r->bytes += bytes;
    r->at[r->n++] = *t;
    return true;
}

void dropped_note(struct dropped *d, const struct pipeline_verdict *verdict)
{
    struct dropped_target t;
    if (verdict->target != NULL) {
        return;
    }
    bool ok = make(verdict, &t);
    if (ok) {
        pthread_mutex_lock(&d->lock);
        ok = put(d, &t);
        pthread_mutex_unlock(&d->lock);
    }
    if (!ok) {
        const char *job = d->config->jobs[verdict->group->job].name;
        metric_inc(metric_cell_of(d->unshown, job));
        dropped_target_done(&t);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* False if out of memory; then there is nothing in *ret. */
static bool copy(const struct dropped_target *t, struct dropped_target *ret)
{
    *ret = *t;
    ret->source = strdup(t->source);
    ret->why = t->why == NULL ? NULL : strdup(t->why);
    ret->labels = labels_ref(t->labels);
    bool ok = ret->source != NULL && (t->why == NULL || ret->why != NULL);
    if (!ok) {
        dropped_target_done(ret);
    }
    return ok;
}

size_t dropped_list(struct dropped *d, size_t job, struct dropped_target *ret, size_t max,
                    bool *ret_more)
{
    size_t n = 0;
    pthread_mutex_lock(&d->lock);
    const struct record *r = &d->records[job];
    while (n < r->n && n < max && copy(&r->at[n], &ret[n])) {
        n++;
    }
    if (ret_more != NULL) {
        *ret_more = r->is_full || n < r->n;
    }
    pthread_mutex_unlock(&d->lock);
    return n;
}

bool dropped_find(struct dropped *d, uint64_t id, struct dropped_target *ret)
{
    bool is_found = false;
    bool ok = false;
    pthread_mutex_lock(&d->lock);
    for (size_t j = 0; j < d->config->n_jobs && !is_found; j++) {
        const struct record *r = &d->records[j];
        for (size_t i = 0; i < r->n && !is_found; i++) {
            is_found = r->at[i].id == id;
            ok = is_found && copy(&r->at[i], ret);
        }
    }
    pthread_mutex_unlock(&d->lock);
    return ok;
}

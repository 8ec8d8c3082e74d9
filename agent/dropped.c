#include "agent/dropped.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum kind { KIND_DROPPED, KIND_TARGET, KINDS };

/* The record of one kind of label sets of one job. */
struct record {
    struct dropped_target *at; /* DROPPED_MAX; made when the first one is noted */
    size_t n;
    size_t bytes;
    bool is_full; /* a label set found no place; never reset */
};

struct dropped {
    pthread_mutex_t lock;            /* guards the members below */
    struct record (*records)[KINDS]; /* the records by the slots of jobs */
    size_t n_jobs;
    uint64_t last_id;
    struct metric *unshown;
};

struct dropped *dropped_new(size_t n_jobs, struct metrics *metrics)
{
    struct dropped *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return NULL;
    }
    pthread_mutex_init(&d->lock, NULL);
    d->unshown = metrics_family(metrics, METRIC_COUNTER, "profpull_dropped_targets_unshown_total",
                                "Label sets that did not become targets and are not on the page of "
                                "dropped targets, because it is full.",
                                "job", NULL);
    return dropped_grow(d, n_jobs) ? d : dropped_free(d);
}

bool dropped_grow(struct dropped *d, size_t n_jobs)
{
    struct record(*records)[KINDS] = calloc(n_jobs + 1, sizeof(*records));
    if (records == NULL) {
        return false;
    }
    pthread_mutex_lock(&d->lock);
    if (n_jobs > d->n_jobs || d->records == NULL) {
        struct record(*former)[KINDS] = d->records;
        if (former != NULL) {
            memcpy(records, former, d->n_jobs * sizeof(*records));
        }
        d->records = records;
        d->n_jobs = n_jobs;
        records = former;
    }
    pthread_mutex_unlock(&d->lock);
    free(records);
    return true;
}

void dropped_target_done(struct dropped_target *t)
{
    free(t->source);
    free(t->why);
    free(t->address);
    labels_unref(t->labels);
    *t = (struct dropped_target){.id = 0};
}

/* Copies a text that may be NULL. Sets *ok to false if out of memory. */
static char *copy_text(const char *text, bool *ok)
{
    char *copy = text == NULL ? NULL : strdup(text);
    *ok = *ok && (text == NULL || copy != NULL);
    return copy;
}

/* Copies a record. Returns false if out of memory; *ret holds nothing then. */
static bool copy(const struct dropped_target *t, struct dropped_target *ret)
{
    bool ok = true;
    *ret = *t;
    ret->source = copy_text(t->source, &ok);
    ret->why = copy_text(t->why, &ok);
    ret->address = copy_text(t->address, &ok);
    ret->labels = labels_ref(t->labels);
    if (!ok) {
        dropped_target_done(ret);
    }
    return ok;
}

static void record_done(struct record *r)
{
    for (size_t i = 0; i < r->n; i++) {
        dropped_target_done(&r->at[i]);
    }
    free(r->at);
}

struct dropped *dropped_free(struct dropped *d)
{
    if (d == NULL) {
        return NULL;
    }
    for (size_t j = 0; j < d->n_jobs; j++) {
        for (size_t k = 0; k < KINDS; k++) {
            record_done(&d->records[j][k]);
        }
    }
    free(d->records);
    pthread_mutex_destroy(&d->lock);
    free(d);
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t length(const char *text)
{
    return text == NULL ? 0 : strlen(text);
}

static size_t bytes_of(const struct dropped_target *t)
{
    return labels_bytes(t->labels) + length(t->source) + length(t->why) + length(t->address);
}

static uint64_t hash_source(const char *source)
{
    return hash_bytes(source, strlen(source), 0);
}

/* Returns true if the record is of this source. Discovery reports every source, and most have no
 * record: comparing hashes is all that these cost. */
static bool is_of(const struct dropped_target *t, const char *source, uint64_t hash)
{
    return t->source_hash == hash && str_same(t->source, source);
}

static void forget(struct record *r, const char *source)
{
    uint64_t hash = hash_source(source);
    size_t kept = 0;
    while (kept < r->n && !is_of(&r->at[kept], source, hash)) {
        kept++;
    }
    for (size_t i = kept; i < r->n; i++) {
        if (is_of(&r->at[i], source, hash)) {
            r->bytes -= bytes_of(&r->at[i]);
            dropped_target_done(&r->at[i]);
        } else {
            r->at[kept++] = r->at[i];
        }
    }
    r->n = kept;
}

void dropped_forget(struct dropped *d, size_t job, const char *source)
{
    pthread_mutex_lock(&d->lock);
    for (size_t k = 0; k < KINDS; k++) {
        forget(&d->records[job][k], source);
    }
    pthread_mutex_unlock(&d->lock);
}

/* Returns the sentence for a label set that no rule has dropped; NULL if a rule has dropped it. */
static const char *why_not(const struct pipeline_verdict *v)
{
    if (v->set_aside) {
        return "set aside: the rules keep it, but its scrapes run under another label set";
    }
    return v->err != NULL ? v->err->msg : NULL;
}

static bool make(const struct pipeline_verdict *v, struct dropped_target *ret)
{
    const struct dropped_target t = {
        .job = v->group->job,
        .source = (char *)(uintptr_t)v->group->source,
        .source_hash = hash_source(v->group->source),
        .labels = v->discovered,
        .rule = v->rule,
        .why = (char *)(uintptr_t)why_not(v),
        .address = v->target == NULL ? NULL : (char *)(uintptr_t)target_canonical(v->target),
    };
    return copy(&t, ret);
}

/* Records *t, and takes it over. Returns false if there is no place for it. */
static bool put(struct dropped *d, struct dropped_target *t)
{
    struct record *r = &d->records[t->job][t->address != NULL ? KIND_TARGET : KIND_DROPPED];
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
    bool ok = make(verdict, &t);
    if (ok) {
        pthread_mutex_lock(&d->lock);
        ok = put(d, &t);
        pthread_mutex_unlock(&d->lock);
    }
    if (!ok && verdict->target == NULL) {
        metric_inc(metric_cell_of(d->unshown, verdict->job->name));
    }
    if (!ok) {
        dropped_target_done(&t);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

size_t dropped_list(struct dropped *d, size_t job, struct dropped_target *ret, size_t max,
                    bool *ret_more)
{
    size_t n = 0;
    pthread_mutex_lock(&d->lock);
    static const struct record none;
    const struct record *r = job < d->n_jobs ? &d->records[job][KIND_DROPPED] : &none;
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
    for (size_t j = 0; j < d->n_jobs && !is_found; j++) {
        const struct record *r = &d->records[j][KIND_DROPPED];
        for (size_t i = 0; i < r->n && !is_found; i++) {
            is_found = r->at[i].id == id;
            ok = is_found && copy(&r->at[i], ret);
        }
    }
    pthread_mutex_unlock(&d->lock);
    return ok;
}

static bool find_target(const struct record *r, struct sv source, struct sv address,
                        struct dropped_target *ret)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct dropped_target *t = &r->at[i];
        if (sv_eq_str(address, t->address) && sv_eq_str(source, t->source)) {
            return copy(t, ret);
        }
    }
    return false;
}

bool dropped_find_target(struct dropped *d, size_t job, struct sv source, struct sv address,
                         struct dropped_target *ret)
{
    pthread_mutex_lock(&d->lock);
    bool ok = job < d->n_jobs && find_target(&d->records[job][KIND_TARGET], source, address, ret);
    pthread_mutex_unlock(&d->lock);
    return ok;
}

#include "write/queue/merging.h"

#include <stdlib.h>

#include "pprof/merge.h"
#include "write/queue/send_queue_private.h"

struct merge_job {
    struct send_queue *queue;
    struct send_item *parts[MERGE_PARTS_MAX]; /* in the order of age */
    bool used[MERGE_PARTS_MAX];               /* are in the result */
    bool spoilt[MERGE_PARTS_MAX];             /* can be in none */
    size_t n;
    size_t n_used;
    bool sealed; /* the result takes no more: what follows has other types, or is too much */
    bool failed;
    bool empty;                /* the result would have no sample, so there is none */
    struct profile *result;    /* NULL: none */
    struct spool_entry *entry; /* of the result */
};

/* ---- what is to be merged -------------------------------------------------------------------- */

static bool is_over(const struct send_queue *q, unsigned percent)
{
    return send_queue_held(q) > q->config->queue_max_bytes / 100 * percent;
}

/* When a profile was scraped that nears max_age now. */
static int64_t aged_ms(const struct send_queue *q, int64_t now_ms)
{
    int64_t max = q->config->max_age_ms;
    return max > 0 ? now_ms - max / 100 * MERGE_AGE_PERCENT : INT64_MIN;
}

bool merging_is_due(struct send_queue *q, int64_t now_ms)
{
    pthread_mutex_lock(&q->lock);
    const struct send_item *oldest = TAILQ_FIRST(&q->by_age);
    bool aged = oldest != NULL && oldest->scraped_ms <= aged_ms(q, now_ms);
    bool due = !q->closed && (aged || is_over(q, MERGE_BEGIN_PERCENT));
    pthread_mutex_unlock(&q->lock);
    return due;
}

bool merging_is_needed(struct send_queue *q, const struct merge_candidate *c)
{
    pthread_mutex_lock(&q->lock);
    bool needed = !q->closed && (c->aged || is_over(q, MERGE_END_PERCENT));
    pthread_mutex_unlock(&q->lock);
    return needed;
}

bool merging_is_urgent(struct send_queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool urgent = is_over(q, MERGE_HURRY_PERCENT);
    pthread_mutex_unlock(&q->lock);
    return urgent;
}

static bool is_part(const struct send_item *it)
{
    bool suspect = it->doubts > 0 || it->refused > 0 || it->blamed || it->wait_until != 0;
    return it->profile != NULL && !it->unmergeable && !suspect;
}

/* False if it is not worth the work. */
static bool examine(const struct send_group *g, int64_t aged_ms, struct merge_candidate *ret)
{
    struct send_item *it;
    uint64_t largest = 0;
    size_t n = 0;
    *ret = (struct merge_candidate){.key = g->key};
    if (g->n_parts < g->merge_from) {
        return false;
    }
    TAILQ_FOREACH(it, &g->parts, part)
    {
        if (is_part(it)) {
            ret->aged = ret->aged || it->scraped_ms <= aged_ms;
            ret->bytes += it->cost;
            largest = it->cost > largest ? it->cost : largest;
            n++;
        }
    }
    ret->spare = ret->bytes - largest;
    return n >= g->merge_from;
}

/* The aged ones, then those that free the greatest share of what they take. */
static int by_worth(const void *a, const void *b)
{
    const struct merge_candidate *x = a;
    const struct merge_candidate *y = b;
    if (x->aged != y->aged) {
        return x->aged ? -1 : 1;
    }
    double of_x = (double)x->spare / (double)x->bytes;
    double of_y = (double)y->spare / (double)y->bytes;
    return of_x > of_y ? -1 : of_x < of_y;
}

size_t merging_plan(struct send_queue *q, int64_t now_ms, struct merge_candidate **ret)
{
    size_t n = 0;
    size_t cursor = 0;
    void *value;
    struct sv key;
    pthread_mutex_lock(&q->lock);
    int64_t aged = aged_ms(q, now_ms);
    bool full = is_over(q, MERGE_BEGIN_PERCENT);
    struct merge_candidate *all = calloc(map_count(q->groups) + 1, sizeof(*all));
    while (all != NULL && map_next(q->groups, &cursor, &key, &value)) {
        n += examine(value, aged, &all[n]) && (full || all[n].aged);
    }
    pthread_mutex_unlock(&q->lock);
    if (n > 0) {
        qsort(all, n, sizeof(all[0]), by_worth);
    }
    *ret = all;
    return n;
}

/* ---- one job --------------------------------------------------------------------------------- */

static void take_part(struct send_queue *q, struct merge_job *job, struct send_item *it)
{
    send_queue_dequeue(q, it);
    TAILQ_INSERT_TAIL(&q->merging, it, send);
    q->ledger.queued++;
    q->ledger.queued_bytes += send_queue_weight(it);
    job->parts[job->n++] = it;
}

static void give_part(struct send_queue *q, struct send_item *it)
{
    TAILQ_REMOVE(&q->merging, it, send);
    q->ledger.queued--;
    q->ledger.queued_bytes -= send_queue_weight(it);
}

struct merge_job *merging_take(struct send_queue *q, uint64_t key)
{
    struct merge_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return NULL;
    }
    job->queue = q;
    pthread_mutex_lock(&q->lock);
    struct send_group *g = send_queue_group(q, key);
    struct merge_candidate c;
    struct send_item *next;
    bool worth = g != NULL && !q->closed && examine(g, INT64_MIN, &c);
    struct send_item *it = worth ? TAILQ_FIRST(&g->parts) : NULL;
    for (; it != NULL && job->n < MERGE_PARTS_MAX; it = next) {
        next = TAILQ_NEXT(it, part);
        if (is_part(it)) {
            take_part(q, job, it);
        }
    }
    pthread_mutex_unlock(&q->lock);
    if (job->n == 0) {
        free(job);
        return NULL;
    }
    return job;
}

/* Adds parts until one does not go with those before it: what follows is for another job, for
 * instance after an upgrade of the program that has changed its types. */
static void add_parts(struct merge_job *job, struct merge *m)
{
    for (size_t i = 0; i < job->n; i++) {
        const struct profile *p = job->parts[i]->profile;
        struct err err = ERR_INIT;
        job->used[i] = merge_add(m, (struct sv){.p = p->data, .n = p->size}, &err);
        job->n_used += job->used[i];
        if (job->used[i]) {
            continue;
        }
        job->failed = true;
        if (err.kind == ERR_MEMORY || job->n_used > 0) {
            job->sealed = err.kind != ERR_MEMORY;
            return;
        }
        job->spoilt[i] = true;
    }
}

/* A profile of the bytes with the labels of the parts and their whole window. */
static struct profile *make_result(const struct merge_job *job, char *data, size_t size)
{
    const struct profile *last = NULL;
    int64_t from_ns = INT64_MAX;
    int64_t until_ns = INT64_MIN;
    for (size_t i = 0; i < job->n; i++) {
        if (job->used[i]) {
            last = job->parts[i]->profile;
            from_ns = last->from_ns < from_ns ? last->from_ns : from_ns;
            until_ns = last->until_ns > until_ns ? last->until_ns : until_ns;
        }
    }
    struct profile *p = profile_new(labels_ref(last->labels), data, size);
    if (p != NULL) {
        p->from_ns = from_ns;
        p->until_ns = until_ns;
        p->scraped_ms = last->scraped_ms;
        p->is_delta = true;
        p->format = last->format;
        p->job = last->job;
    }
    return p;
}

static void write_result(struct merge_job *job, struct merge *m)
{
    struct err err = ERR_INIT;
    struct buf out;
    buf_init(&out, MERGE_BYTES_MAX);
    bool written = merge_write(m, &out, &err);
    job->empty = written && out.len == 0;
    if (written && !job->empty) {
        size_t size = 0;
        char *data = buf_take(&out, &size);
        job->result = data != NULL ? make_result(job, data, size) : NULL;
    }
    if (job->result != NULL && job->queue->spool != NULL) {
        job->entry = spool_entry_new(job->result);
    }
    job->failed = job->failed || (job->result == NULL && !job->empty);
    buf_done(&out);
}

void merging_run(struct merge_job *job, struct scratch *scratch)
{
    uint64_t bytes_max = job->queue->config->queue_max_bytes / 2;
    bytes_max = bytes_max > MERGE_BYTES_MAX ? MERGE_BYTES_MAX : bytes_max;
    bytes_max = bytes_max < MERGE_BYTES_MIN ? MERGE_BYTES_MIN : bytes_max;
    const struct merge_options options = {.bytes_max = (size_t)bytes_max,
                                          .mode = MERGE_WINDOW,
                                          .any_counter = true,
                                          .scratch = scratch};
    struct err err = ERR_INIT;
    struct merge *m = merge_new(&options, &err);
    if (m == NULL) {
        job->failed = true;
        return;
    }
    add_parts(job, m);
    if (job->n_used >= SEND_QUEUE_MERGE_MIN) {
        write_result(job, m);
    }
    merge_free(m);
}

/* ---- the end of a job ------------------------------------------------------------------------ */

/* What is on disk of a part stays there until the result is. */
static void release_part(struct send_queue *q, struct send_item *it, const struct merge_job *job)
{
    struct spool_entry *part = it->entry;
    if (part == NULL || job->entry == NULL) {
        (void)send_queue_release(q, it, false);
        return;
    }
    it->entry = NULL;
    part->owner = NULL;
    spool_replace(q->spool, job->entry, part);
}

/* Removes a part that is in the result. */
static void dissolve(struct send_queue *q, struct send_item *it, const struct merge_job *job)
{
    release_part(q, it, job);
    send_queue_forget(q, it);
    q->ledger.merged++;
}

/* Makes an item, the youngest part, the result; its old profile is to be released outside of the
 * lock. */
static struct profile *become_result(struct send_queue *q, struct send_item *it,
                                     const struct merge_job *job, int64_t now_ms)
{
    struct profile *old = it->profile;
    release_part(q, it, job);
    it->profile = job->result;
    it->cost = profile_cost(job->result);
    it->on_disk = false;
    it->unmergeable = job->sealed;
    it->entry = job->entry;
    send_queue_enqueue(q, it);
    if (it->entry != NULL) {
        it->entry->owner = it;
        spool_submit(q->spool, it->entry, now_ms);
    }
    return old;
}

/* The parts that are in the result; the first of them had its place in the queue. */
static struct profile *settle_used(struct send_queue *q, const struct merge_job *job,
                                   int64_t now_ms)
{
    struct send_item *last = NULL;
    uint64_t seq = UINT64_MAX;
    for (size_t i = 0; i < job->n; i++) {
        if (!job->used[i]) {
            continue;
        }
        if (last != NULL) {
            dissolve(q, last, job);
        }
        last = job->parts[i];
        seq = last->seq < seq ? last->seq : seq;
    }
    last->group->merge_from = SEND_QUEUE_MERGE_MIN;
    if (job->result == NULL) {
        dissolve(q, last, job);
        return NULL;
    }
    last->seq = seq;
    return become_result(q, last, job, now_ms);
}

/* Those that are in no result go back to where they were. */
static void put_back(struct send_queue *q, const struct merge_job *job, bool merged)
{
    for (size_t i = 0; i < job->n; i++) {
        struct send_item *it = job->parts[i];
        if (!merged || !job->used[i]) {
            it->unmergeable = job->spoilt[i] || (job->used[i] && job->sealed);
            send_queue_enqueue(q, it);
        }
    }
}

void merging_done(struct merge_job *job, int64_t now_ms)
{
    struct send_queue *q = job->queue;
    struct profile *old = NULL;
    bool merged = job->result != NULL || job->empty;
    pthread_mutex_lock(&q->lock);
    for (size_t i = 0; i < job->n; i++) {
        give_part(q, job->parts[i]);
    }
    q->ledger.merge_failures += job->failed;
    if (merged) {
        old = settle_used(q, job, now_ms);
    } else {
        /* The same again would fail again. */
        job->parts[0]->group->merge_from = 2 * job->n;
    }
    put_back(q, job, merged);
    send_queue_unlock(q);
    profile_unref(old);
    free(job);
}

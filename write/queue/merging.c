#include "write/queue/merging.h"

#include <assert.h>
#include <stdlib.h>

#include "pprof/merge.h"
#include "write/queue/send_queue_private.h"

struct merge_job {
    struct send_queue *queue;
    uint64_t bytes_max;                       /* the memory in which it may work */
    struct send_item *parts[MERGE_PARTS_MAX]; /* in the order of age */
    bool used[MERGE_PARTS_MAX];               /* parts that are in the result */
    bool spoilt[MERGE_PARTS_MAX];             /* parts that can be in no result */
    size_t n;
    size_t n_used;
    size_t n_loading; /* parts that are being read from the disk */
    /* The result takes no more parts: the next one has other types, or the result would be too
     * large. */
    bool sealed;
    bool failed;
    bool empty;                /* the result would have no sample, so there is none */
    struct profile *result;    /* NULL: none */
    struct spool_entry *entry; /* the entry of the result */
};

/* ---- candidates ------------------------------------------------------------------------------ */

static bool is_over(const struct send_queue *q, unsigned percent)
{
    return send_queue_held(q) > q->config->queue_max_bytes / 100 * percent;
}

/* Returns true if more than a share of the disk, or of the memory for its index, is taken. While a
 * job waits for the disk, which may hang, nothing else is asked of it. */
static bool disk_is_over(const struct send_queue *q, unsigned percent)
{
    if (q->spool == NULL || q->loading_job != NULL) {
        return false;
    }
    struct spool_status s = spool_status(q->spool);
    uint64_t index = q->on_disk_only * SEND_QUEUE_INDEX_COST;
    return s.counts.bytes > s.limit / 100 * percent ||
           index > q->config->queue_max_bytes / 200 * percent;
}

/* Returns the time at which a profile was scraped that is near max_age now. */
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
    bool over = is_over(q, MERGE_BEGIN_PERCENT) || disk_is_over(q, MERGE_BEGIN_PERCENT);
    bool loaded = q->loading_job != NULL && q->loading_job->n_loading == 0;
    bool due = loaded || (!q->closed && (aged || over));
    pthread_mutex_unlock(&q->lock);
    return due;
}

bool merging_is_needed(struct send_queue *q, const struct merge_candidate *c)
{
    pthread_mutex_lock(&q->lock);
    bool needed = !q->closed && (c->aged || is_over(q, MERGE_END_PERCENT) ||
                                 (c->disk && disk_is_over(q, MERGE_END_PERCENT)));
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

/* Returns true if an item may be a part of a job; with `disk`, also if its bytes are only on disk.
 * An item with a receipt may not: its sender waits until this very profile is on disk. */
static bool is_part(const struct send_item *it, bool disk)
{
    const struct item_history *h = &it->history;
    bool suspect =
        h->doubts > 0 || h->refusals > 0 || h->stopped_endpoint || it->state == ITEM_WAITING;
    unsigned sources = disk ? ITEM_BOTH : ITEM_MEMORY;
    return (it->bytes & sources) != 0 && !it->unmergeable && !suspect && it->receipt == NULL;
}

/* The reasons to merge, for which a plan is made. */
struct pressure {
    int64_t aged_ms;
    bool memory;
    bool disk;
    bool readable;   /* profiles on disk may be read */
    size_t disk_min; /* parts */
};

static struct pressure pressure_of(const struct send_queue *q, int64_t now_ms)
{
    bool hurry = disk_is_over(q, MERGE_HURRY_PERCENT);
    return (struct pressure){.aged_ms = aged_ms(q, now_ms),
                             .memory = is_over(q, MERGE_BEGIN_PERCENT),
                             .disk = disk_is_over(q, MERGE_BEGIN_PERCENT),
                             .readable = q->loading_job == NULL,
                             .disk_min = hurry ? SEND_QUEUE_MERGE_MIN : MERGE_DISK_MIN};
}

/* Fills in a candidate. Returns false if the group is not worth merging. */
static bool examine(const struct send_group *g, const struct pressure *p,
                    struct merge_candidate *ret)
{
    const struct send_item *it = NULL;
    uint64_t largest = 0;
    size_t n = 0;
    size_t n_memory = 0;
    const struct send_item *first = TAILQ_FIRST(&g->parts);
    *ret = (struct merge_candidate){.key = g->key, .disk = p->disk};
    if (g->n_parts < g->merge_from) {
        return false;
    }
    ret->oldest_ms = first->scraped_ms;
    ret->aged = first->scraped_ms <= p->aged_ms;
    TAILQ_FOREACH(it, &g->parts, part)
    {
        if (is_part(it, p->readable && (p->disk || ret->aged))) {
            ret->bytes += it->cost;
            largest = it->cost > largest ? it->cost : largest;
            n++;
            n_memory += it->profile != NULL;
        }
    }
    ret->spare = ret->bytes - largest;
    return n >= g->merge_from &&
           (ret->aged || (p->disk && n >= p->disk_min) || (p->memory && n_memory >= g->merge_from));
}

/* Orders candidates: aged ones first. Then come those that free the greatest share of their bytes;
 * on disk, where the oldest are dropped first, those come that are oldest. */
static int by_worth(const void *a, const void *b)
{
    const struct merge_candidate *x = a;
    const struct merge_candidate *y = b;
    if (x->aged != y->aged) {
        return x->aged ? -1 : 1;
    }
    if (x->disk) {
        return x->oldest_ms < y->oldest_ms ? -1 : x->oldest_ms > y->oldest_ms;
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
    struct pressure pressure = pressure_of(q, now_ms);
    struct merge_candidate *all = calloc(map_count(q->groups) + 1, sizeof(*all));
    while (all != NULL && map_next(q->groups, &cursor, &key, &value)) {
        n += examine(value, &pressure, &all[n]);
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
    TAILQ_INSERT_TAIL(&q->merging, it, link);
    q->ledger.queued++;
    q->ledger.queued_bytes += send_queue_weight(it);
    job->parts[job->n++] = it;
    item_become(it, it->bytes == ITEM_DISK ? ITEM_PART_LOADING : ITEM_MERGING);
    job->n_loading += it->state == ITEM_PART_LOADING;
}

static void give_part(struct send_queue *q, struct send_item *it)
{
    TAILQ_REMOVE(&q->merging, it, link);
    q->ledger.queued--;
    q->ledger.queued_bytes -= send_queue_weight(it);
}

/* Makes room for the bytes of a part that is only on disk, besides *coming bytes of other such
 * parts. */
static bool fits(struct send_queue *q, const struct send_item *it, uint64_t *coming)
{
    if (it->profile != NULL) {
        return true;
    }
    uint64_t more = it->cost > SEND_QUEUE_INDEX_COST ? it->cost - SEND_QUEUE_INDEX_COST : 0;
    if (!send_queue_evict(q, *coming + more)) {
        return false;
    }
    *coming += more;
    return true;
}

static void take_parts(struct send_queue *q, struct merge_job *job, struct send_group *g, bool disk)
{
    struct send_item *next;
    uint64_t coming = 0;
    for (struct send_item *it = TAILQ_FIRST(&g->parts); it != NULL && job->n < MERGE_PARTS_MAX;
         it = next) {
        next = TAILQ_NEXT(it, part);
        if (!is_part(it, disk)) {
            continue;
        }
        if (!fits(q, it, &coming)) {
            return;
        }
        /* Making room may have evicted it. */
        if (it->profile == NULL && !fits(q, it, &coming)) {
            return;
        }
        take_part(q, job, it);
    }
}

static void start_loading(struct send_queue *q, struct merge_job *job)
{
    q->loading_job = job;
    for (size_t i = 0; i < job->n; i++) {
        if (job->parts[i]->state == ITEM_PART_LOADING) {
            spool_load(q->spool, job->parts[i]->entry);
        }
    }
}

struct merge_job *merging_take(struct send_queue *q, const struct merge_candidate *c)
{
    struct merge_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return NULL;
    }
    job->queue = q;
    pthread_mutex_lock(&q->lock);
    job->bytes_max = q->config->queue_max_bytes / 2;
    struct send_group *g = send_queue_group(q, c->key);
    /* The present state of the group counts, not that of the plan. */
    struct pressure pressure = {.aged_ms = c->aged ? INT64_MAX : INT64_MIN,
                                .memory = true,
                                .disk = c->disk,
                                .readable = q->loading_job == NULL,
                                .disk_min = SEND_QUEUE_MERGE_MIN};
    struct merge_candidate now;
    if (g != NULL && !q->closed && examine(g, &pressure, &now)) {
        take_parts(q, job, g, pressure.readable && (c->disk || c->aged));
    }
    bool none = job->n == 0;
    bool loads = job->n_loading > 0;
    if (loads) {
        start_loading(q, job);
    }
    pthread_mutex_unlock(&q->lock);
    if (none) {
        free(job);
    }
    return none || loads ? NULL : job;
}

bool merging_is_loading(struct send_queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool loading = q->loading_job != NULL;
    pthread_mutex_unlock(&q->lock);
    return loading;
}

struct merge_job *merging_loaded(struct send_queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct merge_job *job = q->loading_job;
    if (job != NULL && job->n_loading == 0) {
        q->loading_job = NULL;
    } else {
        job = NULL;
    }
    pthread_mutex_unlock(&q->lock);
    return job;
}

void send_queue_part_loaded(struct send_queue *q, struct send_item *it, struct profile *p)
{
    q->ledger.queued_bytes -= send_queue_weight(it);
    if (p != NULL) {
        item_add_bytes(it, p);
    }
    item_become(it, ITEM_MERGING);
    q->ledger.queued_bytes += send_queue_weight(it);
    q->loading_job->n_loading--;
}

void send_queue_free_job(struct send_queue *q)
{
    free(q->loading_job);
    q->loading_job = NULL;
}

/* Adds parts until one cannot be merged with those before it. Those that follow are left for
 * another job; the types of a profile may have changed with an upgrade of its program. */
static void add_parts(struct merge_job *job, struct merge *m)
{
    for (size_t i = 0; i < job->n; i++) {
        const struct profile *p = job->parts[i]->profile;
        struct err err = ERR_INIT;
        if (p == NULL) {
            continue; /* it could not be read */
        }
        if (!labels_equal(p->labels, job->parts[i]->group->labels)) {
            /* The labels were damaged on the disk when they were first read. */
            job->spoilt[i] = true;
            continue;
        }
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

/* Makes the result: a profile with these bytes, the labels of the parts, and a window that covers
 * all of theirs. */
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
    assert(last != NULL); /* at least two parts are used */
    struct profile *p = profile_new(labels_ref(last->labels), data, size);
    if (p != NULL) {
        p->from_ns = from_ns;
        p->until_ns = until_ns;
        p->scraped_ms = last->scraped_ms;
        p->is_delta = true;
        p->is_pushed = last->is_pushed;
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

void merging_run(struct merge_job *job, struct scratch *scratch, uint64_t most)
{
    uint64_t bytes_max = job->bytes_max > most ? most : job->bytes_max;
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

/* Releases a part. Its bytes on disk stay there until the result is on disk. */
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

/* Turns the youngest part into the result. Returns its old profile, which the caller releases
 * outside of the lock. */
static struct profile *become_result(struct send_queue *q, struct send_item *it,
                                     const struct merge_job *job, int64_t now_ms)
{
    struct profile *old = it->profile;
    release_part(q, it, job);
    it->profile = job->result;
    it->note = 0;
    it->cost = profile_cost(job->result);
    item_set_on_disk(it, false);
    it->unmergeable = job->sealed;
    it->entry = job->entry;
    /* If the item was read from disk, its tenant is known only now. */
    send_queue_choose_lane(q, it);
    send_queue_enqueue(q, it);
    if (it->entry != NULL) {
        it->entry->owner = it;
        spool_submit(q->spool, it->entry, now_ms);
    }
    return old;
}

/* Removes the parts that are in the result. The result gets the lowest place in the queue that any
 * of them had. */
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
    assert(last != NULL);
    last->group->merge_from = SEND_QUEUE_MERGE_MIN;
    if (job->result == NULL) {
        dissolve(q, last, job);
        return NULL;
    }
    last->seq = seq;
    return become_result(q, last, job, now_ms);
}

/* Puts parts that are in no result back to where they were. */
static void put_back(struct send_queue *q, const struct merge_job *job, bool merged)
{
    for (size_t i = 0; i < job->n; i++) {
        struct send_item *it = job->parts[i];
        if (!merged || !job->used[i]) {
            bool unread = it->profile == NULL;
            it->unmergeable = unread || job->spoilt[i] || (job->used[i] && job->sealed);
            if (!unread) {
                send_queue_choose_lane(q, it);
            }
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
        /* The same merge would fail again. */
        job->parts[0]->group->merge_from = 2 * job->n;
    }
    put_back(q, job, merged);
    send_queue_unlock(q);
    profile_unref(old);
    free(job);
}

#include "scraper/offload.h"

#include <stdlib.h>

#include "pprof/delta.h"
#include "pprof/gzip.h"
#include "scraper/engine.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void make_metrics(struct offload_queue *q, struct metrics *metrics)
{
    q->pending_cell = metrics_single(metrics, METRIC_GAUGE, "profpull_delta_pending_bytes",
                                     "Bodies whose delta or conversion is queued or in progress.");
    q->work_cell = metrics_single(metrics, METRIC_GAUGE, "profpull_work_reserved_bytes",
                                  "Working memory that deltas and conversions have reserved.");
    q->waiting_cell = metrics_single(metrics, METRIC_GAUGE, "profpull_work_waiting",
                                     "Deltas and conversions that wait for working memory.");
    q->repeated = metrics_single(
        metrics, METRIC_COUNTER, "profpull_work_repeated_total",
        "Deltas and conversions that needed more memory than was estimated, and ran twice.");
    q->refused = metrics_family(
        metrics, METRIC_COUNTER, "profpull_work_refused_total",
        "Bodies that were refused for lack of memory. pending: too many wait; body: larger than "
        "the limit of all that wait; work: needs more working memory than the limit.",
        "share", NULL);
}

bool offload_open(struct offload_queue *q, const struct offload_limits *limits,
                  struct metrics *metrics)
{
    size_t work = limits->work_max == 0 ? OFFLOAD_WORK_DEFAULT : limits->work_max;
    *q = (struct offload_queue){
        .pending_max = limits->pending_max == 0 ? OFFLOAD_PENDING_DEFAULT : limits->pending_max,
        .work_max = work,
        .job_max = smaller(OFFLOAD_JOB_MAX, work),
        .large_max = limits->workers > 1 ? limits->workers - 1 : 1,
        .scratches = scratch_pool_new(smaller(SCRATCH_POOL_MAX, work)),
    };
    TAILQ_INIT(&q->pending);
    for (size_t i = 0; i < OFFLOAD_SIZES; i++) {
        TAILQ_INIT(&q->waiting[i]);
    }
    make_metrics(q, metrics);
    return q->scratches != NULL;
}

/* Frees work that is in no line. */
static void discard(struct offload *o)
{
    o->kind->release(o);
    scratch_pool_unref(o->scratches);
    free(o->body);
    free(o);
}

static void leave_waiting(struct offload_queue *q, struct offload *o)
{
    TAILQ_REMOVE(&q->waiting[o->lane], o, wait);
    o->waits = false;
    metric_gauge_add(q->waiting_cell, -1);
}

static void leave(struct offload_queue *q, struct offload *o)
{
    TAILQ_REMOVE(&q->pending, o, link);
    q->pending_bytes -= o->size;
    metric_set(q->pending_cell, (int64_t)q->pending_bytes);
}

void offload_close(struct offload_queue *q)
{
    struct offload *o;
    while ((o = TAILQ_FIRST(&q->pending)) != NULL) {
        leave(q, o); /* NOLINT(clang-analyzer-unix.Malloc): it takes the next first from the list */
        o->queue = NULL;
        o->arg = NULL;
        if (o->waits) {
            leave_waiting(q, o);
            discard(o);
        }
    }
    q->scratches = scratch_pool_unref(q->scratches);
}

/* ---- memory to work in ----------------------------------------------------------------------- */

/* Sets how much is reserved. Idle scratches may keep the rest of the memory for the next work. */
static void set_reserved(struct offload_queue *q, size_t bytes)
{
    q->work_bytes = bytes;
    scratch_pool_limit(q->scratches, smaller(SCRATCH_POOL_MAX, q->work_max - bytes));
    metric_set(q->work_cell, (int64_t)bytes);
}

/* Returns the first work that waits in a lane, and frees work before it that was cancelled. */
static struct offload *first_waiting(struct offload_queue *q, enum offload_size lane)
{
    struct offload *o;
    while ((o = TAILQ_FIRST(&q->waiting[lane])) != NULL &&
           o->arg == NULL) { /* NOLINT(clang-analyzer-unix.Malloc): as above */
        leave_waiting(q, o);
        leave(q, o);
        o->queue = NULL;
        discard(o);
    }
    return o;
}

static bool fits(const struct offload_queue *q, const struct offload *o)
{
    return o->reserved <= q->work_max - q->work_bytes;
}

static void start(struct offload_queue *q, struct offload *o)
{
    leave_waiting(q, o);
    set_reserved(q, q->work_bytes + o->reserved);
    q->n_large += o->lane == OFFLOAD_LARGE;
    o->engine->io.submit(o->engine->io.arg, &o->work);
}

/* Returns the work that starts next; NULL if it must wait for work that is with the workers. */
static struct offload *next_to_start(struct offload_queue *q)
{
    struct offload *small = first_waiting(q, OFFLOAD_SMALL);
    struct offload *large = first_waiting(q, OFFLOAD_LARGE);
    bool may_start = large != NULL && q->n_large < q->large_max;
    if (may_start && (small == NULL || q->passed >= OFFLOAD_PATIENCE)) {
        q->passed = fits(q, large) ? 0 : q->passed;
        return fits(q, large) ? large : NULL;
    }
    if (small != NULL && fits(q, small)) {
        q->passed += may_start;
        return small;
    }
    return NULL;
}

static void pump(struct offload_queue *q)
{
    struct offload *o;
    while ((o = next_to_start(q)) != NULL) {
        start(q, o);
    }
}

static void wait_for_memory(struct offload_queue *q, struct offload *o)
{
    bool large = o->reserved > smaller(OFFLOAD_LARGE_JOB, q->work_max / OFFLOAD_LARGE_JOB_PART);
    o->lane = large ? OFFLOAD_LARGE : OFFLOAD_SMALL;
    o->waits = true;
    TAILQ_INSERT_TAIL(&q->waiting[o->lane], o, wait);
    metric_gauge_add(q->waiting_cell, 1);
    pump(q);
}

static size_t guess(const struct offload_queue *q, const char *body, size_t size)
{
    size_t claim = gzip_claim((struct sv){body, size});
    size_t plain = smaller(claim < size ? size : claim, DELTA_PLAIN_MAX);
    return smaller(OFFLOAD_JOB_MIN + OFFLOAD_JOB_FACTOR * plain, q->job_max);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Runs work; on a worker. */
static void offload_run(struct work *work)
{
    struct offload *o = (struct offload *)work;
    struct scratch *scratch = scratch_pool_take(o->scratches, o->reserved);
    err_clear(&o->err);
    o->kind->run(o, scratch);
    o->over = scratch_is_over(scratch) && o->err.kind != ERR_NONE;
    scratch_pool_give(o->scratches, scratch);
}

/* Returns true if the work runs once more, with all the memory that one piece of work may have. */
static bool run_again(struct offload_queue *q, struct offload *o)
{
    if (!o->over || o->arg == NULL) {
        return false;
    }
    if (o->reserved == q->job_max) {
        metric_inc(metric_cell_of(q->refused, "work"));
        err_append(&o->err, " (all that global.memory_limit leaves for it)");
        return false;
    }
    metric_inc(q->repeated);
    o->reserved = q->job_max;
    wait_for_memory(q, o);
    return true;
}

static void offload_end(struct work *work)
{
    struct offload *o = (struct offload *)work;
    struct offload_queue *q = o->queue;
    if (q != NULL) {
        set_reserved(q, q->work_bytes - o->reserved);
        q->n_large -= o->lane == OFFLOAD_LARGE;
        if (run_again(q, o)) {
            pump(q);
            return;
        }
        leave(q, o);
    }
    if (o->arg != NULL) {
        o->done(o->arg, o);
    }
    struct engine *e = o->engine;
    discard(o);
    if (q != NULL) {
        pump(q);
        if (q->on_left != NULL) {
            q->on_left(e);
        }
    }
}

/* Returns the limit of the pending bytes for a body of this size. Large bodies leave a part of the
 * limit to the others: a few pods with large profiles must not keep all others waiting. */
static size_t pending_limit(const struct offload_queue *q, size_t size)
{
    bool large = size > q->pending_max / OFFLOAD_LARGE_PART;
    return large ? q->pending_max - q->pending_max / OFFLOAD_SMALL_RESERVE : q->pending_max;
}

bool offload_has_place(const struct offload_queue *q, size_t size)
{
    size_t limit = pending_limit(q, size);
    return size > limit || q->pending_bytes + q->promised_bytes <= limit - size;
}

bool offload_lacks_memory(const struct offload_queue *q)
{
    for (size_t i = 0; i < OFFLOAD_SIZES; i++) {
        const struct offload *o = TAILQ_FIRST(&q->waiting[i]);
        bool may_start = i == OFFLOAD_SMALL || q->n_large < q->large_max;
        if (o != NULL && may_start && !fits(q, o)) {
            return true;
        }
    }
    return false;
}

size_t offload_promise(struct offload_queue *q, size_t before, size_t size)
{
    size_t now = size > pending_limit(q, size) ? 0 : size;
    q->promised_bytes += now - before;
    return now;
}

void *offload_new(struct engine *e, const struct offload_kind *kind, char *body, size_t size,
                  bool has_place, enum reason *ret_reason, struct err *err)
{
    struct offload_queue *q = &e->offloads;
    size_t limit = pending_limit(q, size);
    if (size > limit) {
        metric_inc(metric_cell_of(q->refused, "body"));
        *ret_reason = REASON_TOO_LARGE;
        err_set(err, ERR_LIMIT,
                "%zu bytes; at most %zu may wait for a worker (a share of global.memory_limit)",
                size, limit);
        return NULL;
    }
    if (!has_place && !offload_has_place(q, size)) {
        metric_inc(metric_cell_of(q->refused, "pending"));
        *ret_reason = REASON_BUSY;
        err_set(err, ERR_LIMIT, "too many profiles wait to be converted, or for their delta");
        return NULL;
    }
    struct offload *o = calloc(1, kind->size);
    if (o == NULL) {
        *ret_reason = REASON_MEMORY;
        err_memory(err);
        return NULL;
    }
    *o = (struct offload){
        .work = {.run = offload_run, .done = offload_end},
        .kind = kind,
        .engine = e,
        .queue = q,
        .body = body,
        .size = size,
        .reserved = guess(q, body, size),
        .most = q->job_max,
        .scratches = scratch_pool_ref(q->scratches),
        .err = ERR_INIT,
    };
    return o;
}

void offload_reserve_more(struct offload *o, size_t bytes)
{
    o->reserved = smaller(o->reserved + bytes, o->most);
}

void offload_submit(struct offload *o, void (*done)(void *arg, struct offload *o), void *arg)
{
    struct offload_queue *q = o->queue;
    o->done = done;
    o->arg = arg;
    TAILQ_INSERT_TAIL(&q->pending, o, link);
    q->pending_bytes += o->size;
    metric_set(q->pending_cell, (int64_t)q->pending_bytes);
    wait_for_memory(q, o);
}

void offload_cancel(struct offload *o)
{
    o->arg = NULL;
}

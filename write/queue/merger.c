#include "write/queue/merger.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "write/queue/merging.h"

struct merger {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows up to `stop` */
    pthread_cond_t wake;
    pthread_cond_t left;        /* signalled when the thread has finished with a queue */
    struct send_queue **queues; /* for free() */
    size_t n_queues;
    struct send_queue *at; /* the queue that the thread works on; NULL: none */
    bool poked;
    bool stop;

    /* Used by the thread only. */
    size_t memory_max;
    size_t kept_max; /* a part of it */
    void (*merged)(void *arg);
    void *arg;
    int64_t trim_at_ms;      /* when free memory is given back again */
    bool joined;             /* the owner's */
    struct scratch *scratch; /* NULL: out of memory */
};

void merger_poke(struct merger *m)
{
    if (m == NULL) {
        return;
    }
    pthread_mutex_lock(&m->lock);
    if (!m->poked) {
        m->poked = true;
        pthread_cond_signal(&m->wake);
    }
    pthread_mutex_unlock(&m->lock);
}

/* Rests for so many ms. Returns false when the thread has to stop. */
static bool rest(struct merger *m, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    struct timespec at = clock_timespec(until_ms);
    int timeout = 0;
    pthread_mutex_lock(&m->lock);
    while (!m->stop && timeout == 0) {
        timeout = pthread_cond_timedwait(&m->wake, &m->lock, &at);
    }
    bool more = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return more;
}

/* Waits for a poke, at most so many ms (INT64_MAX: for ever). Returns false when the thread has to
 * stop. */
static bool wait_for_poke(struct merger *m, int64_t ms)
{
    int64_t until_ms = ms == INT64_MAX ? 0 : clock_mono_ms() + ms;
    struct timespec at = clock_timespec(until_ms);
    int timeout = 0;
    pthread_mutex_lock(&m->lock);
    while (!m->stop && !m->poked && timeout == 0) {
        timeout = ms == INT64_MAX ? pthread_cond_wait(&m->wake, &m->lock)
                                  : pthread_cond_timedwait(&m->wake, &m->lock, &at);
    }
    m->poked = false;
    bool more = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return more;
}

/* Gives free memory back, at most every MERGER_TRIM_MS. Merging frees profiles in the arenas of the
 * threads that made them and has its results in its own arena, so that the free memory there is not
 * used again soon. */
static void trim(struct merger *m, int64_t now_ms)
{
    if (now_ms >= m->trim_at_ms) {
        malloc_trim(0);
        m->trim_at_ms = now_ms + MERGER_TRIM_MS;
    }
}

/* Runs a job, and rests for as long as the job took. Returns false when the thread has to stop. */
static bool run_job(struct merger *m, struct send_queue *q, struct merge_job *job)
{
    int64_t start_ms = clock_mono_ms();
    merging_run(job, m->scratch, m->kept_max);
    int64_t now_ms = clock_mono_ms();
    merging_done(job, now_ms);
    trim(m, now_ms);
    m->merged(m->arg);
    return rest(m, merging_is_urgent(q) ? 0 : now_ms - start_ms);
}

/* Waits for the job whose parts are being read; NULL if that takes too long, or at the end. */
static struct merge_job *wait_for_parts(struct merger *m, struct send_queue *q)
{
    struct merge_job *job = NULL;
    int64_t until_ms = clock_mono_ms() + MERGER_LOAD_MS;
    bool more = true;
    while (more && (job = merging_loaded(q)) == NULL && merging_is_loading(q)) {
        int64_t left_ms = until_ms - clock_mono_ms();
        more = left_ms > 0 && wait_for_poke(m, left_ms);
    }
    return job;
}

/* Runs the jobs of a plan. Returns false when the thread has to stop. */
static bool run_plan(struct merger *m, struct send_queue *q, const struct merge_candidate *plan,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!merging_is_needed(q, &plan[i])) {
            continue;
        }
        bool waits = merging_is_loading(q);
        struct merge_job *job = merging_take(q, &plan[i]);
        if (job == NULL && !waits) {
            job = wait_for_parts(m, q);
        }
        if (job != NULL && !run_job(m, q, job)) {
            return false;
        }
        if (job == NULL && !waits && merging_is_loading(q)) {
            return true; /* its disk is slow: the next plan does without */
        }
    }
    return true;
}

/* Makes a plan for a queue and runs it. Returns false when the thread has to stop. */
static bool run_queue(struct merger *m, struct send_queue *q)
{
    struct merge_job *job = merging_loaded(q);
    if (job != NULL && !run_job(m, q, job)) {
        return false;
    }
    struct merge_candidate *plan = NULL;
    size_t n = merging_plan(q, clock_mono_ms(), &plan);
    bool more = run_plan(m, q, plan, n);
    free(plan);
    return more;
}

/* Begins to work on the i-th queue and returns it; NULL if there are fewer queues. */
static struct send_queue *enter(struct merger *m, size_t i)
{
    pthread_mutex_lock(&m->lock);
    m->at = i < m->n_queues ? m->queues[i] : NULL;
    struct send_queue *q = m->at;
    pthread_mutex_unlock(&m->lock);
    return q;
}

static void leave(struct merger *m)
{
    pthread_mutex_lock(&m->lock);
    m->at = NULL;
    pthread_cond_broadcast(&m->left);
    pthread_mutex_unlock(&m->lock);
}

/* Works on all queues. If a queue is removed meanwhile, the next one may be passed over, and has
 * its turn at the next poke. Returns false when the thread has to stop. */
static bool run_all(struct merger *m)
{
    struct send_queue *q;
    bool more = true;
    for (size_t i = 0; more && (q = enter(m, i)) != NULL; i++) {
        more = run_queue(m, q);
        leave(m);
    }
    return more;
}

static void *merger_run(void *arg)
{
    struct merger *m = arg;
    bool more = true;
    while (more && wait_for_poke(m, INT64_MAX)) {
        m->scratch = scratch_new();
        if (m->scratch != NULL) {
            scratch_limit(m->scratch, m->memory_max - m->kept_max);
        }
        more = run_all(m);
        m->scratch = scratch_free(m->scratch);
        more = more && rest(m, MERGER_PAUSE_MS);
    }
    return NULL;
}

bool merger_add(struct merger *m, struct send_queue *q, struct err *err)
{
    pthread_mutex_lock(&m->lock);
    struct send_queue **queues =
        realloc(m->queues, (m->n_queues + 1) * sizeof(struct send_queue *));
    if (queues != NULL) {
        m->queues = queues;
        queues[m->n_queues++] = q;
    }
    pthread_mutex_unlock(&m->lock);
    return queues != NULL || err_memory(err);
}

void merger_remove(struct merger *m, struct send_queue *q)
{
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n_queues; i++) {
        if (m->queues[i] == q) {
            m->queues[i] = m->queues[--m->n_queues];
            break;
        }
    }
    while (q != NULL && m->at == q) {
        pthread_cond_wait(&m->left, &m->lock);
    }
    pthread_mutex_unlock(&m->lock);
}

struct merger *merger_new(size_t memory_max, void (*merged)(void *arg), void *arg, struct err *err)
{
    struct merger *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        err_memory(err);
        return NULL;
    }
    m->memory_max = memory_max == 0 ? MERGE_MEMORY_DEFAULT : memory_max;
    m->kept_max = m->memory_max / 3 < MERGE_BYTES_MAX ? m->memory_max / 3 : MERGE_BYTES_MAX;
    m->merged = merged;
    m->arg = arg;
    pthread_mutex_init(&m->lock, NULL);
    clock_cond_init(&m->wake);
    pthread_cond_init(&m->left, NULL);
    if (!thread_start(&m->thread, "merger", merger_run, m, err)) {
        m->joined = true;
        return merger_free(m);
    }
    return m;
}

void merger_stop(struct merger *m)
{
    if (m == NULL || m->joined) {
        return;
    }
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    m->joined = true;
}

struct merger *merger_free(struct merger *m)
{
    if (m == NULL) {
        return NULL;
    }
    pthread_cond_destroy(&m->left);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    free(m->queues);
    free(m);
    return NULL;
}

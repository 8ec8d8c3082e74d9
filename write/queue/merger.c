#include "write/queue/merger.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "write/queue/merging.h"

struct merger {
    pthread_t thread;
    pthread_mutex_t lock; /* guards poked and stop */
    pthread_cond_t wake;
    bool poked;
    bool stop;

    /* The thread's. */
    struct send_queue **queues;
    size_t n_queues;
    struct scratch *scratch; /* NULL: out of memory */
};

void merger_poke(struct merger *m)
{
    pthread_mutex_lock(&m->lock);
    if (!m->poked) {
        m->poked = true;
        pthread_cond_signal(&m->wake);
    }
    pthread_mutex_unlock(&m->lock);
}

/* Rests for so long; false when the thread is to stop. */
static bool rest(struct merger *m, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    struct timespec at = {.tv_sec = (time_t)(until_ms / MS_PER_S),
                          .tv_nsec = (long)(until_ms % MS_PER_S * NS_PER_MS)};
    int timeout = 0;
    pthread_mutex_lock(&m->lock);
    while (!m->stop && timeout == 0) {
        timeout = pthread_cond_timedwait(&m->wake, &m->lock, &at);
    }
    bool more = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return more;
}

static bool wait_for_poke(struct merger *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->stop && !m->poked) {
        pthread_cond_wait(&m->wake, &m->lock);
    }
    m->poked = false;
    bool more = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return more;
}

/* False when the thread is to stop. */
static bool run_plan(struct merger *m, struct send_queue *q, const struct merge_candidate *plan,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!merging_is_needed(q, &plan[i])) {
            continue;
        }
        int64_t start_ms = clock_mono_ms();
        struct merge_job *job = merging_take(q, plan[i].key);
        if (job == NULL) {
            continue;
        }
        merging_run(job, m->scratch);
        int64_t now_ms = clock_mono_ms();
        merging_done(job, now_ms);
        if (!rest(m, merging_is_urgent(q) ? 0 : now_ms - start_ms)) {
            return false;
        }
    }
    return true;
}

static void *merger_run(void *arg)
{
    struct merger *m = arg;
    bool more = true;
    while (more && wait_for_poke(m)) {
        m->scratch = scratch_new();
        for (size_t i = 0; i < m->n_queues && more; i++) {
            struct merge_candidate *plan = NULL;
            size_t n = merging_plan(m->queues[i], clock_mono_ms(), &plan);
            more = run_plan(m, m->queues[i], plan, n);
            free(plan);
        }
        m->scratch = scratch_free(m->scratch);
        more = more && rest(m, MERGER_PAUSE_MS);
    }
    return NULL;
}

struct merger *merger_new(struct send_queue *const *queues, size_t n, struct err *err)
{
    struct merger *m = calloc(1, sizeof(*m));
    struct send_queue **copy = calloc(n + 1, sizeof(struct send_queue *));
    pthread_condattr_t attr;
    if (m == NULL || copy == NULL) {
        free(m);
        free(copy);
        err_memory(err);
        return NULL;
    }
    memcpy(copy, queues, n * sizeof(copy[0]));
    m->queues = copy;
    m->n_queues = n;
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&m->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (!thread_start(&m->thread, "merger", merger_run, m, err)) {
        pthread_cond_destroy(&m->wake);
        pthread_mutex_destroy(&m->lock);
        free(m->queues);
        free(m);
        return NULL;
    }
    return m;
}

struct merger *merger_free(struct merger *m)
{
    if (m == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    free(m->queues);
    free(m);
    return NULL;
}

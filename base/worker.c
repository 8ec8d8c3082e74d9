#include "base/worker.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "base/clock.h"
#include "base/thread.h"

/* The most workers of a pool. They share one queue and one lock, so more workers would gain
 * nothing. */
#define WORKERS_MAX 256

#define IDLE INT64_MIN

struct worker {
    struct worker_pool *pool;
    pthread_t thread;
    _Atomic int64_t since_ms; /* monotonic: when its item began, or IDLE */
};

struct worker_pool {
    /* Counts the items of the queue, and one more for each worker when the pool closes. In glibc,
     * pthread_cond_signal() may wait until a worker that was woken earlier has run; sem_post()
     * never waits, so a submitter is not held up when workers do not get a core. */
    sem_t items;
    pthread_mutex_t lock; /* guards the queue */
    struct work *first;
    struct work **end; /* where the next item is linked */
    bool is_low;       /* set before the first worker starts */

    unsigned n_workers;
    struct worker workers[];
};

static void worker_on_home(struct loop_task *task)
{
    struct work *w = (struct work *)(void *)((char *)task - offsetof(struct work, task));
    w->done(w);
}

/* Waits for the next item. Returns NULL if the pool closes and no item is left. */
static struct work *next_item(struct worker_pool *p)
{
    while (sem_wait(&p->items) != 0 && errno == EINTR) {
    }
    pthread_mutex_lock(&p->lock);
    struct work *w = p->first;
    if (w != NULL) {
        p->first = w->next;
        if (p->first == NULL) {
            p->end = &p->first;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return w;
}

static void *worker_main(void *arg)
{
    struct worker *self = arg;
    if (self->pool->is_low) {
        thread_lower();
    }
    for (struct work *w = next_item(self->pool); w != NULL; w = next_item(self->pool)) {
        atomic_store(&self->since_ms, clock_mono_ms());
        w->run(w);
        atomic_store(&self->since_ms, IDLE);
        loop_post(w->home, &w->task);
    }
    return NULL;
}

static struct worker_pool *pool_new(unsigned n, struct err *err)
{
    struct worker_pool *p = calloc(1, sizeof(*p) + n * sizeof(p->workers[0]));
    if (p == NULL) {
        err_set(err, ERR_MEMORY, "out of memory for %u workers", n);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    sem_init(&p->items, 0, 0);
    p->end = &p->first;
    return p;
}

static bool start_worker(struct worker_pool *p, const char *name, struct err *err)
{
    struct worker *w = &p->workers[p->n_workers];
    w->pool = p;
    atomic_init(&w->since_ms, IDLE);
    bool ok = thread_start(&w->thread, name, worker_main, w, err);
    p->n_workers += ok;
    return ok;
}

static struct worker_pool *new_with(unsigned n, bool is_low, struct err *err)
{
    if (n == 0) {
        n = (unsigned)get_nprocs();
    }
    if (n > WORKERS_MAX) {
        n = WORKERS_MAX;
    }
    struct worker_pool *p = pool_new(n, err);
    if (p != NULL) {
        p->is_low = is_low;
    }
    while (p != NULL && p->n_workers < n) {
        char name[THREAD_NAME_MAX + 1];
        (void)snprintf(name, sizeof(name), "worker-%u", p->n_workers);
        if (!start_worker(p, name, err)) {
            return worker_pool_free(p);
        }
    }
    return p;
}

struct worker_pool *worker_pool_new(unsigned n, struct err *err)
{
    return new_with(n, false, err);
}

struct worker_pool *worker_pool_new_low(unsigned n, struct err *err)
{
    return new_with(n, true, err);
}

struct worker_pool *worker_thread_new(const char *name, struct err *err)
{
    struct worker_pool *p = pool_new(1, err);
    return p == NULL || start_worker(p, name, err) ? p : worker_pool_free(p);
}

struct worker_pool *worker_pool_free(struct worker_pool *p)
{
    if (p == NULL) {
        return NULL;
    }
    for (unsigned i = 0; i < p->n_workers; i++) {
        sem_post(&p->items);
    }
    for (unsigned i = 0; i < p->n_workers; i++) {
        pthread_join(p->workers[i].thread, NULL);
    }
    sem_destroy(&p->items);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

int64_t worker_pool_busy_ms(const struct worker_pool *p, int64_t now_ms)
{
    int64_t longest = 0;
    for (unsigned i = 0; i < p->n_workers; i++) {
        int64_t since_ms = atomic_load(&p->workers[i].since_ms);
        if (since_ms != IDLE && now_ms - since_ms > longest) {
            longest = now_ms - since_ms;
        }
    }
    return longest;
}

void worker_submit(struct worker_pool *p, struct work *w)
{
    w->next = NULL;
    w->task.run = worker_on_home;
    pthread_mutex_lock(&p->lock);
    *p->end = w;
    p->end = &w->next;
    pthread_mutex_unlock(&p->lock);
    sem_post(&p->items);
}

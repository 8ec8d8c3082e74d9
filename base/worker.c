#include "base/worker.h"

#include <pthread.h>
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
    pthread_mutex_t lock; /* guards the queue and closing */
    pthread_cond_t more;
    struct work *first;
    struct work **end; /* where the next item is linked */
    bool closing;
    bool is_low; /* set before the first worker starts */

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
    pthread_mutex_lock(&p->lock);
    while (p->first == NULL && !p->closing) {
        pthread_cond_wait(&p->more, &p->lock);
    }
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
    pthread_cond_init(&p->more, NULL);
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
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_workers; i++) {
        pthread_join(p->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&p->more);
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
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
}

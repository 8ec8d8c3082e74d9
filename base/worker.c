#include "base/worker.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "base/thread.h"

/* The workers share one queue and one lock: more CPUs than this get no more workers. */
#define WORKERS_MAX 256

struct worker_pool {
    pthread_mutex_t lock; /* guards the queue and closing */
    pthread_cond_t more;
    struct work *first;
    struct work **end; /* where the next item is linked */
    bool closing;

    unsigned n_threads;
    pthread_t threads[];
};

static void worker_on_home(struct loop_task *task)
{
    struct work *w = (struct work *)(void *)((char *)task - offsetof(struct work, task));
    w->done(w);
}

/* Waits for the next item; NULL if the pool closes and none is left. */
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
    struct worker_pool *p = arg;
    for (struct work *w = next_item(p); w != NULL; w = next_item(p)) {
        w->run(w);
        loop_post(w->home, &w->task);
    }
    return NULL;
}

struct worker_pool *worker_pool_new(unsigned n, struct err *err)
{
    if (n == 0) {
        n = (unsigned)get_nprocs();
    }
    if (n > WORKERS_MAX) {
        n = WORKERS_MAX;
    }
    struct worker_pool *p = calloc(1, sizeof(*p) + n * sizeof(p->threads[0]));
    if (p == NULL) {
        err_set(err, ERR_MEMORY, "out of memory for %u workers", n);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    p->end = &p->first;
    for (; p->n_threads < n; p->n_threads++) {
        char name[THREAD_NAME_MAX + 1];
        (void)snprintf(name, sizeof(name), "worker-%u", p->n_threads);
        if (!thread_start(&p->threads[p->n_threads], name, worker_main, p, err)) {
            return worker_pool_free(p);
        }
    }
    return p;
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
    for (unsigned i = 0; i < p->n_threads; i++) {
        pthread_join(p->threads[i], NULL);
    }
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
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

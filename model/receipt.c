#include "model/receipt.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

struct receipt {
    pthread_mutex_t lock; /* guards the rest */
    unsigned refs;
    unsigned open; /* parts that have not ended */
    bool failed;
    /* loop of the waiter; NULL: nobody waits, or the task has been posted */
    struct loop *loop;
    struct loop_task *task;
};

struct receipt *receipt_new(void)
{
    struct receipt *r = calloc(1, sizeof(*r));
    if (r != NULL) {
        pthread_mutex_init(&r->lock, NULL);
        r->refs = 1;
    }
    return r;
}

struct receipt *receipt_ref(struct receipt *r)
{
    pthread_mutex_lock(&r->lock);
    r->refs++;
    pthread_mutex_unlock(&r->lock);
    return r;
}

/* Drops a reference under the lock, and ends the critical section. */
static void unref_locked(struct receipt *r)
{
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (last) {
        pthread_mutex_destroy(&r->lock);
        free(r);
    }
}

struct receipt *receipt_unref(struct receipt *r)
{
    if (r != NULL) {
        pthread_mutex_lock(&r->lock);
        unref_locked(r);
    }
    return NULL;
}

/* Posts the task of the waiter if the receipt is settled. The caller holds the lock, so that the
 * loop cannot be freed between a cancellation and the post. */
static void settle(struct receipt *r)
{
    if (r->loop != NULL && (r->open == 0 || r->failed)) {
        loop_post(r->loop, r->task);
        r->loop = NULL;
    }
}

void receipt_add(struct receipt *r)
{
    pthread_mutex_lock(&r->lock);
    r->refs++;
    r->open++;
    pthread_mutex_unlock(&r->lock);
}

void receipt_end(struct receipt *r, bool safe)
{
    pthread_mutex_lock(&r->lock);
    r->open--;
    r->failed = r->failed || !safe;
    settle(r);
    unref_locked(r);
}

void receipt_fail(struct receipt *r)
{
    pthread_mutex_lock(&r->lock);
    r->failed = true;
    settle(r);
    pthread_mutex_unlock(&r->lock);
}

void receipt_wait(struct receipt *r, struct loop *loop, struct loop_task *task)
{
    pthread_mutex_lock(&r->lock);
    r->loop = loop;
    r->task = task;
    settle(r);
    pthread_mutex_unlock(&r->lock);
}

bool receipt_cancel(struct receipt *r)
{
    pthread_mutex_lock(&r->lock);
    bool waits = r->loop != NULL;
    r->loop = NULL;
    pthread_mutex_unlock(&r->lock);
    return waits;
}

bool receipt_is_good(struct receipt *r)
{
    pthread_mutex_lock(&r->lock);
    bool good = !r->failed;
    pthread_mutex_unlock(&r->lock);
    return good;
}

/* The record thread: reads the profiles that match rules, in the order in which they passed. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "record/private.h"

/* Gauges without profiles are looked for this often while profiles pass. */
#define EXPIRE_PERIOD_MS 60000
#define LOG_PERIOD_MS 60000
#define LOG_BURST 5

/* ---- counting -------------------------------------------------------------------------------- */

static void count_result(struct record *r, enum record_result result)
{
    metric_inc(r->results[result]);
}

static void put_values(struct record *r, const struct record_item *i,
                       const struct counting_want *wants)
{
    static const enum record_result results[] = {
        [RULE_COUNTED] = RECORD_COUNTED,
        [RULE_NO_SERIES] = RECORD_NO_SERIES,
        [RULE_OLD] = RECORD_OLD,
        [RULE_NO_MEMORY] = RECORD_NO_MEMORY,
    };
    struct rule_value v = {
        .labels = i->profile->labels, .until_ns = i->profile->until_ns, .now_ms = clock_mono_ms()};
    pthread_mutex_lock(&r->lock);
    v.max_series = r->max_series;
    for (size_t k = 0; k < i->n; k++) {
        if (wants[k].found) {
            v.sum = wants[k].sum;
            count_result(r, results[rule_count(i->rules[k], &v)]);
        }
    }
    pthread_mutex_unlock(&r->lock);
}

static void fail(struct record *r, const struct record_item *i, const struct err *err)
{
    uint32_t suppressed = 0;
    record_count_all(r, i,
                     err->kind == ERR_LIMIT    ? RECORD_TOO_LARGE
                     : err->kind == ERR_MEMORY ? RECORD_NO_MEMORY
                                               : RECORD_DAMAGED);
    if (log_limit_allow(&r->limit, clock_mono_ms(), LOG_PERIOD_MS, LOG_BURST, &suppressed)) {
        log_warn(r->options.log, "a profile is not counted by recorded metrics",
                 LOG_SV("type", labels_get(i->profile->labels, SV(LABEL_NAME))),
                 LOG_SV("service", labels_get(i->profile->labels, SV(LABEL_SERVICE_NAME))),
                 LOG_ERR(err), LOG_INT("suppressed", suppressed));
    }
}

static void count_item(struct record *r, const struct record_item *i)
{
    struct err err = ERR_INIT;
    struct counting_want *wants = calloc(i->n, sizeof(*wants));
    if (wants == NULL) {
        record_count_all(r, i, RECORD_NO_MEMORY);
        return;
    }
    for (size_t k = 0; k < i->n; k++) {
        wants[k].type = i->rules[k]->type;
        wants[k].function = i->rules[k]->function;
    }
    struct sv body = {i->profile->data, i->profile->size};
    if (counting_run(r->scratch, body, wants, i->n, r->seed, &err)) {
        put_values(r, i, wants);
    } else {
        fail(r, i, &err);
    }
    free(wants);
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Waits for the next item; NULL if the thread has to stop and nothing waits. */
static struct record_item *next_item(struct record *r)
{
    pthread_mutex_lock(&r->queue_lock);
    while (STAILQ_EMPTY(&r->queue) && !r->stop) {
        pthread_cond_wait(&r->filled, &r->queue_lock);
    }
    struct record_item *i = STAILQ_FIRST(&r->queue);
    if (i != NULL) {
        STAILQ_REMOVE_HEAD(&r->queue, link);
    }
    pthread_mutex_unlock(&r->queue_lock);
    return i;
}

static void finish_item(struct record *r, struct record_item *i)
{
    pthread_mutex_lock(&r->queue_lock);
    r->pending_bytes -= i->bytes;
    metric_set(r->pending_cell, (int64_t)r->pending_bytes);
    r->n_done++;
    pthread_cond_broadcast(&r->emptied);
    pthread_mutex_unlock(&r->queue_lock);
    record_item_free(i);
}

static void *record_run_thread(void *arg)
{
    struct record *r = arg;
    struct record_item *i;
    int64_t expired_ms = clock_mono_ms();
    while ((i = next_item(r)) != NULL) {
        count_item(r, i);
        finish_item(r, i);
        int64_t now_ms = clock_mono_ms();
        if (now_ms - expired_ms >= EXPIRE_PERIOD_MS) {
            pthread_mutex_lock(&r->lock);
            record_expire(r, now_ms);
            pthread_mutex_unlock(&r->lock);
            expired_ms = now_ms;
        }
    }
    return NULL;
}

bool record_thread_start(struct record *r, struct err *err)
{
    if (!r->has_thread) {
        r->has_thread = thread_start(&r->thread, "record", record_run_thread, r, err);
    }
    return r->has_thread;
}

void record_thread_stop(struct record *r)
{
    if (!r->has_thread) {
        return;
    }
    pthread_mutex_lock(&r->queue_lock);
    r->stop = true;
    pthread_cond_signal(&r->filled);
    pthread_mutex_unlock(&r->queue_lock);
    pthread_join(r->thread, NULL);
    r->has_thread = false;
}

void record_thread_put(struct record *r, struct record_item *i)
{
    size_t max = r->options.pending_max;
    pthread_mutex_lock(&r->queue_lock);
    bool fits = i->bytes <= max && r->pending_bytes <= max - i->bytes;
    if (fits) {
        STAILQ_INSERT_TAIL(&r->queue, i, link);
        r->pending_bytes += i->bytes;
        metric_set(r->pending_cell, (int64_t)r->pending_bytes);
        r->n_begun++;
        pthread_cond_signal(&r->filled);
    }
    pthread_mutex_unlock(&r->queue_lock);
    if (!fits) {
        record_count_all(r, i, RECORD_PENDING);
        record_item_free(i);
    }
}

void record_thread_wait(struct record *r, int64_t timeout_ms)
{
    const struct timespec until = clock_timespec(clock_mono_ms() + timeout_ms);
    pthread_mutex_lock(&r->queue_lock);
    uint64_t want = r->n_begun;
    while (r->n_done < want && pthread_cond_timedwait(&r->emptied, &r->queue_lock, &until) == 0) {
    }
    pthread_mutex_unlock(&r->queue_lock);
}

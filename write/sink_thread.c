#include "write/sink_thread.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"

/* The time between two checks of the thread. */
#define CHECK_MS 1000

struct sink_thread {
    struct log *log;
    const char *endpoint;
    struct worker_pool *thread;
    struct loop_timer *check;
    bool watched;
    bool hung; /* the log says that the thread hangs */
    int64_t since_ms;
};

int64_t sink_thread_hung_ms(const struct sink_thread *t, int64_t now_ms)
{
    int64_t busy_ms = worker_pool_busy_ms(t->thread, now_ms);
    return busy_ms >= SINK_HANG_MS ? busy_ms : 0;
}

static void say_hangs(struct sink_thread *t, int64_t now_ms, int64_t hung_ms)
{
    t->hung = true;
    t->since_ms = now_ms - hung_ms;
    log_warn(t->log, "the disk of an endpoint hangs", LOG_STR("endpoint", t->endpoint),
             LOG_FLOAT("since_s", (double)hung_ms / (double)MS_PER_S));
}

static void say_answers(struct sink_thread *t, int64_t now_ms)
{
    t->hung = false;
    log_info(t->log, "the disk of an endpoint answers again", LOG_STR("endpoint", t->endpoint),
             LOG_FLOAT("after_s", (double)(now_ms - t->since_ms) / (double)MS_PER_S));
}

static void sink_thread_on_check(void *arg)
{
    struct sink_thread *t = arg;
    int64_t now_ms = clock_mono_ms();
    int64_t hung_ms = sink_thread_hung_ms(t, now_ms);
    if (hung_ms > 0 && !t->hung) {
        say_hangs(t, now_ms, hung_ms);
    } else if (hung_ms == 0 && t->hung) {
        say_answers(t, now_ms);
    }
    loop_timer_after(t->check, CHECK_MS);
}

void sink_thread_submit(struct sink_thread *t, struct work *w)
{
    if (!t->watched) {
        t->watched = true;
        loop_timer_after(t->check, CHECK_MS);
    }
    worker_submit(t->thread, w);
}

struct sink_thread *sink_thread_new(struct loop *loop, struct log *log, const char *endpoint,
                                    struct err *err)
{
    struct sink_thread *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        err_memory(err);
        return NULL;
    }
    t->log = log;
    t->endpoint = endpoint;
    t->check = loop_timer_new(loop, sink_thread_on_check, t);
    if (t->check == NULL) {
        err_memory(err);
        return sink_thread_free(t);
    }
    t->thread = worker_thread_new("file", err);
    return t->thread != NULL ? t : sink_thread_free(t);
}

void sink_thread_unwatch(struct sink_thread *t)
{
    if (t != NULL) {
        loop_timer_cancel(t->check);
    }
}

void sink_thread_stop(struct sink_thread *t)
{
    if (t != NULL) {
        t->thread = worker_pool_free(t->thread);
    }
}

struct sink_thread *sink_thread_free(struct sink_thread *t)
{
    if (t == NULL) {
        return NULL;
    }
    sink_thread_stop(t);
    loop_timer_free(t->check);
    free(t);
    return NULL;
}

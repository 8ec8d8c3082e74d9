#include "base/loop.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

/* The longest single wait of a timer, a day; a later instant takes several waits. This keeps the
 * arithmetic of libevent (seconds in a time_t, an int of milliseconds for epoll) far from its
 * limits. */
#define TIMER_STEP_MAX_MS (INT64_C(24) * 3600 * MS_PER_S)

/* A loop that handles more tasks and events in each millisecond makes no pauses. They would hardly
 * save a wake-up, and work that is handled in bursts reaches other threads in bursts. */
#define PAUSE_WORK_MAX 6

struct loop {
    struct event_base *base;
    int wake_fd; /* eventfd, readable once the loop is to wake up */
    struct event *wake_event;
    atomic_bool stop;

    /* Only on the loop's thread. */
    int64_t gap_ns;
    int hurry;        /* above 0: the loop makes no pauses */
    bool worked;      /* something was done since the last pause */
    int64_t period;   /* the last multiple of the gap in which the loop has worked */
    size_t work;      /* tasks and events of this period */
    size_t work_last; /* tasks and events of the period before */

    pthread_mutex_t lock; /* guards the rest */
    bool waits; /* the loop waits, or is about to: a thread that posts a task must wake it */
    struct loop_task *first;
    struct loop_task **end; /* where the next task is linked */
};

struct loop_timer {
    struct loop *loop;
    struct event *event;
    loop_timer_fn *fn;
    void *arg;
    int64_t at_ms;
};

struct loop_thread {
    struct loop *loop;
    pthread_t thread;
};

/* Runs the tasks that are queued now. Tasks posted by tasks wait for the next round, so that
 * sockets and timers are served in between. */
static size_t run_tasks(struct loop *l)
{
    size_t n = 0;
    pthread_mutex_lock(&l->lock);
    struct loop_task *task = l->first;
    l->first = NULL;
    l->end = &l->first;
    l->waits = false;
    pthread_mutex_unlock(&l->lock);
    while (task != NULL) {
        struct loop_task *next = task->next; /* run() may free the task */
        task->run(task);
        task = next;
        n++;
    }
    return n;
}

static void loop_on_wake(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    eventfd_t count;
    (void)eventfd_read(fd, &count);
    /* These tasks were posted before the events that are ready after this one. */
    run_tasks(arg);
}

static bool make_base(struct loop *l)
{
    struct event_config *config = event_config_new();
    if (config == NULL) {
        return false;
    }
    /* EVENT_* variables must have no influence, and timers must not count from a time that was
     * cached before a long callback. */
    event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
    event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME);
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    l->base = event_base_new_with_config(config);
    event_config_free(config);
    return l->base != NULL;
}

struct loop *loop_new(struct err *err)
{
    struct loop *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        err_set(err, ERR_MEMORY, "out of memory for an event loop");
        return NULL;
    }
    pthread_mutex_init(&l->lock, NULL);
    l->end = &l->first;
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake_fd < 0) {
        err_sys(err, "cannot make an eventfd");
        return loop_free(l);
    }
    if (make_base(l)) {
        l->wake_event = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, loop_on_wake, l);
    }
    if (l->wake_event == NULL || event_add(l->wake_event, NULL) != 0) {
        err_set(err, ERR_SYSTEM, "cannot set up an event loop (epoll, libevent)");
        return loop_free(l);
    }
    return l;
}

struct loop *loop_free(struct loop *l)
{
    if (l == NULL) {
        return NULL;
    }
    while (run_tasks(l) > 0) {
        ;
    }
    if (l->wake_event != NULL) {
        event_free(l->wake_event);
    }
    if (l->base != NULL) {
        event_base_free(l->base);
    }
    if (l->wake_fd >= 0) {
        close(l->wake_fd);
    }
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

/* Runs the callbacks of sockets and timers, and returns their number. */
static size_t run_events(struct loop *l, int flags)
{
    (void)event_base_get_max_events(l->base, EVENT_BASE_COUNT_ACTIVE, 1);
    event_base_loop(l->base, EVLOOP_ONCE | flags);
    return (size_t)event_base_get_max_events(l->base, EVENT_BASE_COUNT_ACTIVE, 1);
}

/* Handles what is ready now. */
static size_t pass(struct loop *l)
{
    size_t n = run_tasks(l);
    return n + run_events(l, EVLOOP_NONBLOCK);
}

/* Handles what is ready; if nothing is, waits for an event first. */
static size_t pass_or_wait(struct loop *l)
{
    size_t n = run_tasks(l);
    pthread_mutex_lock(&l->lock);
    bool ready = l->first != NULL; /* true if the tasks have posted further tasks */
    l->waits = !ready;
    pthread_mutex_unlock(&l->lock);
    return n + run_events(l, ready ? EVLOOP_NONBLOCK : EVLOOP_NO_EXIT_ON_EMPTY);
}

static void note_work(struct loop *l, int64_t now_ns, size_t n)
{
    int64_t period = now_ns / l->gap_ns;
    if (period != l->period) {
        l->work_last = period == l->period + 1 ? l->work : 0;
        l->work = 0;
        l->period = period;
    }
    l->work += n;
}

static bool is_busy(const struct loop *l)
{
    size_t work = l->work > l->work_last ? l->work : l->work_last;
    return work > (size_t)(l->gap_ns / NS_PER_MS) * PAUSE_WORK_MAX;
}

/* Makes one step of a loop with pauses. */
static void step_with_gap(struct loop *l)
{
    size_t n = is_busy(l) ? pass_or_wait(l) : pass(l);
    if (n == 0 && !l->worked) {
        n = pass_or_wait(l);
    }
    int64_t now_ns = clock_mono_ns();
    note_work(l, now_ns, n);
    l->worked = n > 0;
    if (n == 0) {
        clock_sleep_until_ns((now_ns / l->gap_ns + 1) * l->gap_ns);
    }
}

static void step(struct loop *l)
{
    if (l->gap_ns > 0 && l->hurry <= 0) {
        step_with_gap(l);
    } else {
        (void)pass_or_wait(l);
    }
}

void loop_run(struct loop *l)
{
    while (!atomic_load(&l->stop)) {
        step(l);
    }
    atomic_store(&l->stop, false);
}

void loop_stop(struct loop *l)
{
    atomic_store(&l->stop, true);
    (void)eventfd_write(l->wake_fd, 1);
}

void loop_run_once(struct loop *l)
{
    while (pass(l) > 0) {
        ;
    }
}

void loop_set_gap_ms(struct loop *l, int64_t ms)
{
    l->gap_ns = ms * NS_PER_MS;
}

void loop_hurry(struct loop *l, int by)
{
    l->hurry += by;
}

struct event_base *loop_event_base(struct loop *l)
{
    return l->base;
}

void loop_post(struct loop *l, struct loop_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&l->lock);
    bool wake = l->waits;
    l->waits = false;
    *l->end = task;
    l->end = &task->next;
    /* Write under the lock: as soon as the task can run, another thread may free the loop. The
     * write fails only if the counter is full, and then the loop wakes anyway. */
    if (wake) {
        (void)eventfd_write(l->wake_fd, 1);
    }
    pthread_mutex_unlock(&l->lock);
}

static void timer_arm(struct loop_timer *t, int64_t now_ms)
{
    int64_t left = t->at_ms > now_ms ? t->at_ms - now_ms : 0;
    if (left > TIMER_STEP_MAX_MS) {
        left = TIMER_STEP_MAX_MS;
    }
    struct timeval tv = {.tv_sec = (time_t)(left / MS_PER_S),
                         .tv_usec = (suseconds_t)(left % MS_PER_S * 1000)};
    event_add(t->event, &tv);
}

static void loop_on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct loop_timer *t = arg;
    int64_t now = clock_mono_ms();
    /* libevent uses the coarse clock, which lags by up to a tick, so the timer may fire too
     * early. */
    if (now < t->at_ms) {
        timer_arm(t, now);
    } else {
        t->fn(t->arg);
    }
}

struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *arg)
{
    struct loop_timer *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return NULL;
    }
    *t = (struct loop_timer){.loop = l, .fn = fn, .arg = arg};
    t->event = evtimer_new(l->base, loop_on_timer, t);
    return t->event != NULL ? t : loop_timer_free(t);
}

void loop_timer_at(struct loop_timer *t, int64_t mono_ms)
{
    t->at_ms = mono_ms;
    timer_arm(t, clock_mono_ms());
}

void loop_timer_after(struct loop_timer *t, int64_t ms)
{
    int64_t now = clock_mono_ms();
    if (ms < 0) {
        ms = 0;
    }
    /* "now" is rounded down to a millisecond. One millisecond is added, so that the timer is not
     * early. */
    t->at_ms = ms == 0 ? now : ms < INT64_MAX - now ? now + ms + 1 : INT64_MAX;
    timer_arm(t, now);
}

void loop_timer_cancel(struct loop_timer *t)
{
    event_del(t->event);
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
    if (t == NULL) {
        return NULL;
    }
    if (t->event != NULL) {
        event_free(t->event);
    }
    free(t);
    return NULL;
}

static void *thread_main(void *arg)
{
    struct loop_thread *t = arg;
    loop_run(t->loop);
    return NULL;
}

struct loop_thread *loop_thread_start(struct loop *l, const char *name, struct err *err)
{
    struct loop_thread *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        err_set(err, ERR_MEMORY, "out of memory for thread %s", name);
        return NULL;
    }
    t->loop = l;
    if (!thread_start(&t->thread, name, thread_main, t, err)) {
        free(t);
        return NULL;
    }
    return t;
}

struct loop_thread *loop_thread_join(struct loop_thread *t)
{
    if (t == NULL) {
        return NULL;
    }
    loop_stop(t->loop);
    pthread_join(t->thread, NULL);
    free(t);
    return NULL;
}

/* An event loop for one thread, over libevent.
 *
 * The thread that calls loop_run() owns the loop: its timers and HTTP clients are made, used and
 * freed on that thread, or before loop_run() is called, or after it has returned. Other threads may
 * call only loop_post() and loop_stop(), and make timers.
 *
 * Times are monotonic milliseconds (base/clock.h). Callbacks run on the loop's thread, never within
 * the call that armed them.
 */
#ifndef PROFPULL_BASE_LOOP_H
#define PROFPULL_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct event_base;
struct loop;

struct loop *loop_new(struct err *err);
/* Runs the tasks that are still queued, then frees the loop. Accepts NULL, returns NULL. */
struct loop *loop_free(struct loop *l);
/* Runs until loop_stop() is called; returns at once if it was called before. Afterwards the loop
 * may be run again. */
void loop_run(struct loop *l);
/* Ends loop_run(). Any thread may call it, more than once. */
void loop_stop(struct loop *l);
/* Runs the callbacks that are due, without waiting. For tests and shutdown. */
void loop_run_once(struct loop *l);
/* Makes the loop pause while it has work, to save wake-ups. When its callbacks have run and nothing
 * more is ready, the loop sleeps until the next multiple of `ms` on the monotonic clock, so that
 * the loops of a process wake up together, and then handles everything that has arrived. A loop
 * that had nothing to do for the length of a pause reacts at once. A loop that handles more than
 * six tasks and events in each millisecond makes no pauses, because they would save few wake-ups.
 * Timers, tasks, sockets and a stop are handled up to `ms` late, never early. 0, the default, means
 * no pauses. Call it before loop_run() or on the loop's thread. */
void loop_set_gap_ms(struct loop *l, int64_t ms);
/* Suspends the pauses as long as the sum of all `by` is above 0. It is meant for work with a limit
 * on how much of it runs at a time: a pause would delay the work that waits for its end. Call it on
 * the loop's thread, or while the loop does not run. */
void loop_hurry(struct loop *l, int by);
/* Returns libevent's base, for the HTTP client and the admin server. */
struct event_base *loop_event_base(struct loop *l);

/* A callback to run on the loop's thread. Embedded in an object of the caller, so that posting
 * cannot fail; run() gets the task back and owns the object from then on. */
struct loop_task {
    struct loop_task *next; /* private */
    void (*run)(struct loop_task *task);
};
/* Queues a task; tasks run first in, first out. Any thread may call it. A task must not be posted
 * again before it has run. */
void loop_post(struct loop *l, struct loop_task *task);

struct loop_timer;
typedef void loop_timer_fn(void *arg);
/* Makes a timer that is not armed. Returns NULL if out of memory. */
struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *arg);
/* Arm a timer to fire once: at a monotonic instant, or after a time. An instant that has passed
 * fires at once. Arming a timer again moves it. */
void loop_timer_at(struct loop_timer *t, int64_t mono_ms);
void loop_timer_after(struct loop_timer *t, int64_t ms);
void loop_timer_cancel(struct loop_timer *t);
struct loop_timer *loop_timer_free(struct loop_timer *t); /* accepts NULL, returns NULL */

/* A thread that runs a loop. Its name has at most 15 characters. */
struct loop_thread;
struct loop_thread *loop_thread_start(struct loop *l, const char *name, struct err *err);
/* Stops the loop and joins its thread. Accepts NULL, returns NULL. */
struct loop_thread *loop_thread_join(struct loop_thread *t);

#endif

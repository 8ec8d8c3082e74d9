/* One event loop for one thread, over libevent.
 *
 * The thread that calls loop_run() owns the loop: timers and the HTTP client of a loop are made,
 * used and freed on that thread, or before loop_run() starts and after it returned. Other threads
 * reach it with loop_post() and loop_stop() only.
 *
 * Time is monotonic milliseconds (base/clock.h). Callbacks run on the loop's thread, never inside
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
/* Runs posted tasks that are still queued, then frees. Accepts NULL, returns NULL. */
struct loop *loop_free(struct loop *l);
/* Runs until loop_stop(). A stop that came before makes it return at once. Returning uses the stop
 * up: the loop may be run again. */
void loop_run(struct loop *l);
/* Any thread, and idempotent. */
void loop_stop(struct loop *l);
/* Runs what is ready without waiting, for tests and shutdown. */
void loop_run_once(struct loop *l);
/* For the HTTP client and the admin server. */
struct event_base *loop_event_base(struct loop *l);

/* A piece of work for the loop's thread. Embedded in the poster's own object, so that posting
 * cannot fail; run() gets the object back and owns it from then on. */
struct loop_task {
    struct loop_task *next; /* private */
    void (*run)(struct loop_task *task);
};
/* Any thread. First in, first out. The task must not be posted again before it has run. */
void loop_post(struct loop *l, struct loop_task *task);

struct loop_timer;
typedef void loop_timer_fn(void *arg);
/* A timer that is not armed; NULL if out of memory. */
struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *arg);
/* Fires once at a monotonic instant (at once if it has passed). Arming again moves it. */
void loop_timer_at(struct loop_timer *t, int64_t mono_ms);
void loop_timer_after(struct loop_timer *t, int64_t ms);
void loop_timer_cancel(struct loop_timer *t);
struct loop_timer *loop_timer_free(struct loop_timer *t); /* accepts NULL, returns NULL */

/* A thread with a name (at most 15 characters) that runs the loop. */
struct loop_thread;
struct loop_thread *loop_thread_start(struct loop *l, const char *name, struct err *err);
/* loop_stop() and join. Accepts NULL, returns NULL. */
struct loop_thread *loop_thread_join(struct loop_thread *t);

#endif

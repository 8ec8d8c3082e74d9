/* A thread that runs a loop, with a heartbeat that /-/healthy checks. */
#ifndef PROFPULL_AGENT_THREAD_H
#define PROFPULL_AGENT_THREAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/worker.h"

struct agent_thread {
    const char *name;
    struct loop *loop;
    struct loop_thread *thread; /* NULL unless it runs */
    struct loop_timer *heartbeat;
    _Atomic int64_t beat_ms; /* monotonic: the last heartbeat */
};

/* Creates the loop and its heartbeat in a zeroed struct; the thread does not run yet. Stop and done
 * are safe even if this failed or was not called. */
bool agent_thread_init(struct agent_thread *t, const char *name, struct err *err);
bool agent_thread_start(struct agent_thread *t, struct err *err);
/* Stops the loop and joins the thread, if it runs. */
void agent_thread_stop(struct agent_thread *t);
/* Frees the loop; the thread must be stopped. */
void agent_thread_done(struct agent_thread *t);

/* Returns true if the loop has run recently; false with an error that names the thread if not. Any
 * thread. */
bool agent_thread_healthy(const struct agent_thread *t, struct err *err);

/* Returns true unless a worker has been running one job for too long; then false with an error.
 * Jobs of workers only compute, the largest for a second or two. Any thread. */
bool agent_workers_healthy(const struct worker_pool *workers, int64_t now_ms, struct err *err);

#endif

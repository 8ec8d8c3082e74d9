#include "agent/thread.h"

#include "base/clock.h"

#define HEARTBEAT_MS 1000
/* A loop that has not run for this long is considered stuck. */
#define HEARTBEAT_STUCK_MS 5000
/* A worker that has been at one job for this long is considered stuck. */
#define WORKER_STUCK_MS 60000

static void agent_thread_on_heartbeat(void *arg)
{
    struct agent_thread *t = arg;
    atomic_store(&t->beat_ms, clock_mono_ms());
    loop_timer_after(t->heartbeat, HEARTBEAT_MS);
}

bool agent_thread_init(struct agent_thread *t, const char *name, struct err *err)
{
    t->name = name;
    t->loop = loop_new(err);
    if (t->loop == NULL) {
        return false;
    }
    t->heartbeat = loop_timer_new(t->loop, agent_thread_on_heartbeat, t);
    if (t->heartbeat == NULL) {
        return err_memory(err);
    }
    atomic_store(&t->beat_ms, clock_mono_ms());
    loop_timer_after(t->heartbeat, 0);
    return true;
}

bool agent_thread_start(struct agent_thread *t, struct err *err)
{
    t->thread = loop_thread_start(t->loop, t->name, err);
    return t->thread != NULL;
}

void agent_thread_stop(struct agent_thread *t)
{
    t->thread = loop_thread_join(t->thread);
}

void agent_thread_done(struct agent_thread *t)
{
    loop_timer_free(t->heartbeat);
    loop_free(t->loop);
}

bool agent_thread_healthy(const struct agent_thread *t, struct err *err)
{
    int64_t age_ms = clock_mono_ms() - atomic_load(&t->beat_ms);
    if (age_ms > HEARTBEAT_STUCK_MS) {
        return err_set(err, ERR_SYSTEM, "the %s thread has not run its loop for %.1f s", t->name,
                       (double)age_ms / 1000.0);
    }
    return true;
}

bool agent_workers_healthy(const struct worker_pool *workers, int64_t now_ms, struct err *err)
{
    int64_t busy_ms = worker_pool_busy_ms(workers, now_ms);
    if (busy_ms > WORKER_STUCK_MS) {
        return err_set(err, ERR_SYSTEM, "a worker has been busy with one job for %.1f s",
                       (double)busy_ms / 1000.0);
    }
    return true;
}

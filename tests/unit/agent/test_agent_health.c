/* The workers as /-/healthy describes them. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/thread.h"
#include "base/clock.h"

struct job {
    struct work work; /* first */
    int started;      /* written to when it runs */
    int end;          /* read from until it may end */
    struct loop *loop;
};

static void run_until_told(struct work *w)
{
    const struct job *j = (const struct job *)w;
    char c = 'x';
    if (write(j->started, &c, 1) != 1 || read(j->end, &c, 1) != 1) {
        abort();
    }
}

static void stop_loop(struct work *w)
{
    loop_stop(((struct job *)w)->loop);
}

/* A worker that does not come back from a job is named, one that is idle or quick is not. */
TEST(a_worker_that_is_stuck)
{
    struct err err = ERR_INIT;
    int started[2];
    int end[2];
    char c = 'x';
    assert_int_equal(pipe(started), 0);
    assert_int_equal(pipe(end), 0);
    struct loop *loop = loop_new(&err);
    struct worker_pool *pool = worker_pool_new(2, &err);
    struct job j = {.work = {.home = loop, .run = run_until_told, .done = stop_loop},
                    .started = started[1],
                    .end = end[0],
                    .loop = loop};
    int64_t hour_ms = 3600 * MS_PER_S;
    assert_true(agent_workers_healthy(pool, clock_mono_ms() + hour_ms, &err));
    worker_submit(pool, &j.work);
    assert_int_equal(read(started[0], &c, 1), 1);
    assert_true(agent_workers_healthy(pool, clock_mono_ms(), &err));
    assert_false(agent_workers_healthy(pool, clock_mono_ms() + hour_ms, &err));
    CHECK_CONTAINS(err.msg, "a worker has been busy with one job for 3600", "");
    assert_int_equal(write(end[1], &c, 1), 1);
    loop_run(loop);
    err_clear(&err);
    assert_true(agent_workers_healthy(pool, clock_mono_ms() + hour_ms, &err));
    worker_pool_free(pool);
    loop_free(loop);
    for (size_t i = 0; i < 2; i++) {
        close(started[i]);
        close(end[i]);
    }
}

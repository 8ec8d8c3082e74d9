/* The worker pool: every item runs once on a worker and returns home once. */
#include "tests/unit/lib/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/thread.h"
#include "base/worker.h"

#define ITEMS 500

struct job {
    struct work work;
    struct batch *batch;
    unsigned number;
    unsigned runs; /* written by the worker, read at home: the post orders them */
    bool ran_at_home;
};

struct batch {
    struct loop *home;
    pthread_t home_thread;
    atomic_uint order; /* which item started as the n-th */
    atomic_uint out_of_order;
    unsigned done;
    unsigned want;
    bool wrong_thread;
    struct job jobs[ITEMS];
};

static struct job *job_of(struct work *w)
{
    return (struct job *)(void *)w; /* the first member */
}

static void run_job(struct work *w)
{
    struct job *job = job_of(w);
    job->runs++;
    job->ran_at_home = pthread_equal(pthread_self(), job->batch->home_thread);
    if (atomic_fetch_add(&job->batch->order, 1) != job->number) {
        atomic_fetch_add(&job->batch->out_of_order, 1);
    }
}

static void done_job(struct work *w)
{
    struct job *job = job_of(w);
    struct batch *batch = job->batch;
    if (!pthread_equal(pthread_self(), batch->home_thread)) {
        batch->wrong_thread = true;
    }
    if (++batch->done == batch->want) {
        loop_stop(batch->home);
    }
}

static struct batch *batch_new(void)
{
    struct err err = ERR_INIT;
    struct batch *b = testing_memory(sizeof(*b));
    b->home = loop_new(&err);
    assert_non_null(b->home);
    b->home_thread = pthread_self();
    b->want = ITEMS;
    for (unsigned i = 0; i < ITEMS; i++) {
        b->jobs[i].batch = b;
        b->jobs[i].number = i;
        b->jobs[i].work = (struct work){.home = b->home, .run = run_job, .done = done_job};
    }
    return b;
}

static void batch_free(struct batch *b)
{
    loop_free(b->home);
    free(b);
}
SCOPED_POINTER(batch, batch_free)

static struct worker_pool *new_pool(unsigned n)
{
    struct err err = ERR_INIT;
    struct worker_pool *p = worker_pool_new(n, &err);
    CHECK_STR(err.msg, "", "worker_pool_new");
    assert_non_null(p);
    return p;
}

static void check_batch(const struct batch *b, const char *row)
{
    CHECK_INT(b->done, ITEMS, row);
    CHECK_INT(b->wrong_thread, false, row);
    for (size_t i = 0; i < ITEMS; i++) {
        CHECK_INT(b->jobs[i].runs, 1, row);
        CHECK_INT(b->jobs[i].ran_at_home, false, row);
    }
}

TEST(test_items_come_home)
{
    static const struct {
        const char *name;
        unsigned threads;
    } rows[] = {{"one thread for each CPU", 0}, {"three threads", 3}};
    for (size_t i = 0; i < 2; i++) {
        SCOPED(batch) *b = batch_new();
        struct worker_pool *p = new_pool(rows[i].threads);
        for (size_t k = 0; k < ITEMS; k++) {
            worker_submit(p, &b->jobs[k].work);
        }
        loop_run(b->home);
        check_batch(b, rows[i].name);
        assert_null(worker_pool_free(p));
    }
}

/* An item that reads the priority of its thread. */
struct nice_job {
    struct work work;
    struct loop *home;
    int nice;
};

static void run_nice(struct work *w)
{
    struct nice_job *job = (struct nice_job *)(void *)w;
    job->nice = getpriority(PRIO_PROCESS, 0);
}

static void end_nice(struct work *w)
{
    loop_stop(((struct nice_job *)(void *)w)->home);
}

static int nice_in(struct worker_pool *p)
{
    struct err err = ERR_INIT;
    struct nice_job job = {.home = loop_new(&err)};
    assert_true(p != NULL && job.home != NULL);
    job.work = (struct work){.home = job.home, .run = run_nice, .done = end_nice};
    worker_submit(p, &job.work);
    loop_run(job.home);
    worker_pool_free(p);
    loop_free(job.home);
    return job.nice;
}

/* The whole test may run at a low priority already. */
TEST(test_threads_of_a_low_pool_give_way)
{
    struct err err = ERR_INIT;
    int own = getpriority(PRIO_PROCESS, 0);
    CHECK_INT(nice_in(worker_pool_new(1, &err)), own, "normal");
    CHECK_INT(nice_in(worker_pool_new_low(1, &err)), own < THREAD_LOW_NICE ? THREAD_LOW_NICE : own,
              "low");
    CHECK_INT(getpriority(PRIO_PROCESS, 0), own, "the thread that makes the pools");
}

TEST(test_one_worker_keeps_the_order)
{
    SCOPED(batch) *b = batch_new();
    struct worker_pool *p = new_pool(1);
    for (size_t k = 0; k < ITEMS; k++) {
        worker_submit(p, &b->jobs[k].work);
    }
    loop_run(b->home);
    check_batch(b, "one worker");
    CHECK_INT(b->out_of_order, 0, "order of submission");
    worker_pool_free(p);
}

TEST(test_free_finishes_what_was_submitted)
{
    struct batch *b = batch_new();
    struct worker_pool *p = new_pool(2);
    for (size_t k = 0; k < ITEMS; k++) {
        worker_submit(p, &b->jobs[k].work);
    }
    worker_pool_free(p);
    CHECK_INT(b->done, 0, "done() runs on the loop alone");
    loop_run_once(b->home);
    check_batch(b, "after worker_pool_free");
    batch_free(b);
    assert_null(worker_pool_free(NULL));
    worker_pool_free(new_pool(4)); /* never used */
}

/* An item may be submitted again by its done(), as in a chain of stages. */
struct chain {
    struct work work;
    struct worker_pool *pool;
    int left;
};

static void run_nothing(struct work *w)
{
    (void)w;
}

static void done_chain(struct work *w)
{
    struct chain *c = (struct chain *)(void *)w;
    if (--c->left > 0) {
        worker_submit(c->pool, w);
    } else {
        loop_stop(w->home);
    }
}

TEST(test_item_may_be_submitted_again)
{
    struct err err = ERR_INIT;
    SCOPED(loop) *l = loop_new(&err);
    assert_non_null(l);
    struct chain c = {.pool = new_pool(2), .left = 50};
    c.work = (struct work){.home = l, .run = run_nothing, .done = done_chain};
    worker_submit(c.pool, &c.work);
    loop_run(l);
    CHECK_INT(c.left, 0, "");
    worker_pool_free(c.pool);
}

/* An item that blocks is seen from outside, for as long as it does. */
struct gate {
    struct work work;
    pthread_barrier_t entered;
    pthread_barrier_t leave;
};

static void run_gate(struct work *w)
{
    struct gate *g = (struct gate *)(void *)w;
    pthread_barrier_wait(&g->entered);
    pthread_barrier_wait(&g->leave);
}

static void done_gate(struct work *w)
{
    loop_stop(w->home);
}

TEST(test_how_long_an_item_has_been_running)
{
    struct err err = ERR_INIT;
    SCOPED(loop) *l = loop_new(&err);
    struct gate g = {.work = {.home = l, .run = run_gate, .done = done_gate}};
    pthread_barrier_init(&g.entered, NULL, 2);
    pthread_barrier_init(&g.leave, NULL, 2);
    struct worker_pool *p = worker_thread_new("one", &err);
    assert_non_null(p);
    CHECK_INT(worker_pool_busy_ms(p, INT64_MAX), 0, "nothing was submitted");
    int64_t before_ms = clock_mono_ms();
    worker_submit(p, &g.work);
    pthread_barrier_wait(&g.entered);
    int64_t after_ms = clock_mono_ms();
    int64_t busy_ms = worker_pool_busy_ms(p, after_ms + 60000);
    CHECK_INT(busy_ms >= 60000 && busy_ms <= 60000 + after_ms - before_ms, true, "it hangs");
    CHECK_INT(worker_pool_busy_ms(p, before_ms), 0, "a time before it began");
    pthread_barrier_wait(&g.leave);
    loop_run(l);
    CHECK_INT(worker_pool_busy_ms(p, INT64_MAX), 0, "it is over");
    worker_pool_free(p);
    pthread_barrier_destroy(&g.entered);
    pthread_barrier_destroy(&g.leave);
}

/* The event loop: order of tasks, timers, stop, pauses, threads. No assertion is about how long
 * something took, only about order and about what may not happen early. */
#include "tests/unit/lib/testing.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"

/* ---- tasks ----------------------------------------------------------------------------------- */

struct trace {
    struct loop *loop;
    char text[64];
    size_t len;
};

static void note(struct trace *t, char c)
{
    assert_true(t->len < sizeof(t->text) - 1);
    t->text[t->len++] = c;
    t->text[t->len] = '\0';
}

struct letter {
    struct loop_task task; /* first: the task is the letter */
    struct trace *trace;
    char c;
    struct letter *then; /* posted when this one runs */
    bool stop;
};

static void run_letter(struct loop_task *task)
{
    struct letter *letter = (struct letter *)(void *)task;
    struct trace *trace = letter->trace;
    note(trace, letter->c);
    if (letter->then != NULL) {
        loop_post(trace->loop, &letter->then->task);
    }
    if (letter->stop) {
        loop_stop(trace->loop);
    }
    free(letter);
}

static struct letter *make_letter(struct trace *trace, char c)
{
    struct letter *letter = testing_memory(sizeof(*letter));
    letter->task.run = run_letter;
    letter->trace = trace;
    letter->c = c;
    return letter;
}

static struct loop *new_loop(void)
{
    struct err err = ERR_INIT;
    struct loop *l = loop_new(&err);
    CHECK_STR(err.msg, "", "loop_new");
    assert_non_null(l);
    return l;
}

TEST(test_tasks_run_in_order)
{
    struct trace trace = {.loop = new_loop()};
    for (const char *c = "abcde"; *c; c++) {
        loop_post(trace.loop, &make_letter(&trace, *c)->task);
    }
    CHECK_STR(trace.text, "", "nothing runs within loop_post");
    struct letter *last = make_letter(&trace, 'z');
    last->stop = true;
    loop_post(trace.loop, &last->task);
    loop_run(trace.loop);
    CHECK_STR(trace.text, "abcdez", "first in, first out");
    loop_free(trace.loop);
}

TEST(test_task_posted_by_task_runs_later)
{
    struct trace trace = {.loop = new_loop()};
    struct letter *a = make_letter(&trace, 'a');
    a->then = make_letter(&trace, 'c');
    a->then->stop = true;
    loop_post(trace.loop, &a->task);
    loop_post(trace.loop, &make_letter(&trace, 'b')->task);
    loop_run(trace.loop);
    CHECK_STR(trace.text, "abc", "");
    loop_free(trace.loop);
}

TEST(test_free_runs_queued_tasks)
{
    struct trace trace = {.loop = new_loop()};
    struct letter *a = make_letter(&trace, 'a');
    a->then = make_letter(&trace, 'b');
    loop_post(trace.loop, &a->task);
    assert_null(loop_free(trace.loop));
    CHECK_STR(trace.text, "ab", "also what a task posts while the loop goes");
    assert_null(loop_free(NULL));
}

TEST(test_run_once_does_not_wait)
{
    struct trace trace = {.loop = new_loop()};
    loop_run_once(trace.loop); /* nothing to do: returns */
    loop_post(trace.loop, &make_letter(&trace, 'a')->task);
    loop_run_once(trace.loop);
    CHECK_STR(trace.text, "a", "");
    loop_free(trace.loop);
}

TEST(test_stop_before_run)
{
    SCOPED(loop) *l = new_loop();
    loop_stop(l);
    loop_stop(l);
    loop_run(l); /* hangs if a stop was lost */
    /* The loop can be run again. */
    struct trace trace = {.loop = l};
    struct letter *a = make_letter(&trace, 'a');
    a->stop = true;
    loop_post(l, &a->task);
    loop_run(l);
    CHECK_STR(trace.text, "a", "");
    /* A stop does not affect loop_run_once(). */
    loop_stop(l);
    loop_post(l, &make_letter(&trace, 'b')->task);
    loop_run_once(l);
    CHECK_STR(trace.text, "ab", "");
    loop_run(l);
}

/* ---- tasks from many threads ----------------------------------------------------------------- */

#define POSTERS 4
#define POSTS 2000

struct numbered {
    struct loop_task task;
    struct poster *poster;
    unsigned number;
};

struct poster {
    struct crowd *crowd;
    unsigned next; /* the expected number; the loop's thread only */
    struct numbered items[POSTS];
};

struct crowd {
    struct loop *loop;
    unsigned seen;
    unsigned out_of_order;
    struct poster posters[POSTERS];
};

static void run_numbered(struct loop_task *task)
{
    struct numbered *n = (struct numbered *)(void *)task;
    struct poster *poster = n->poster;
    if (n->number != poster->next) {
        poster->crowd->out_of_order++;
    }
    poster->next = n->number + 1;
    if (++poster->crowd->seen == POSTERS * POSTS) {
        loop_stop(poster->crowd->loop);
    }
}

static void *poster_main(void *arg)
{
    struct poster *poster = arg;
    for (unsigned i = 0; i < POSTS; i++) {
        poster->items[i] =
            (struct numbered){.task.run = run_numbered, .poster = poster, .number = i};
        loop_post(poster->crowd->loop, &poster->items[i].task);
    }
    return NULL;
}

TEST(test_posts_from_many_threads)
{
    struct crowd *crowd = testing_memory(sizeof(*crowd));
    crowd->loop = new_loop();
    pthread_t threads[POSTERS];
    for (size_t i = 0; i < POSTERS; i++) {
        crowd->posters[i].crowd = crowd;
        assert_int_equal(pthread_create(&threads[i], NULL, poster_main, &crowd->posters[i]), 0);
    }
    loop_run(crowd->loop); /* hangs if a wake-up is lost */
    for (size_t i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_INT(crowd->seen, POSTERS * POSTS, "every task once");
    CHECK_INT(crowd->out_of_order, 0, "in the order of each thread");
    loop_free(crowd->loop);
    free(crowd);
}

/* ---- timers ---------------------------------------------------------------------------------- */

struct ring {
    struct trace *trace;
    struct loop_timer *timer;
    int64_t at_ms;
    int again; /* how often it still arms itself */
    char c;
    bool early;
    bool stop;
    bool free_self;
};

static void on_ring(void *arg)
{
    struct ring *r = arg;
    note(r->trace, r->c);
    if (clock_mono_ms() < r->at_ms) {
        r->early = true;
    }
    if (r->again-- > 0) {
        loop_timer_at(r->timer, 0);
    }
    if (r->stop) {
        loop_stop(r->trace->loop);
    }
    if (r->free_self) {
        r->timer = loop_timer_free(r->timer);
    }
}

static void ring_init(struct ring *r, struct trace *trace, char c)
{
    *r = (struct ring){.trace = trace, .c = c};
    r->timer = loop_timer_new(trace->loop, on_ring, r);
    assert_non_null(r->timer);
}

static void ring_at(struct ring *r, int64_t at_ms)
{
    r->at_ms = at_ms;
    loop_timer_at(r->timer, at_ms);
}

TEST(test_timers_fire_in_order_and_not_early)
{
    struct trace trace = {.loop = new_loop()};
    struct ring r[4];
    for (size_t i = 0; i < 4; i++) {
        ring_init(&r[i], &trace, (char)('a' + i));
    }
    int64_t now = clock_mono_ms();
    /* Further apart than a tick of the coarse clock. */
    ring_at(&r[2], now + 60);
    ring_at(&r[0], now - 1000);
    ring_at(&r[1], now + 30);
    ring_at(&r[3], now + 90);
    r[3].stop = true;
    CHECK_STR(trace.text, "", "never within the call that arms");
    loop_run(trace.loop);
    CHECK_STR(trace.text, "abcd", "");
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(r[i].early, false, "early");
        loop_timer_free(r[i].timer);
    }
    loop_free(trace.loop);
}

TEST(test_timers_never_early)
{
    struct trace trace = {.loop = new_loop()};
    for (int i = 0; i < 40; i++) {
        struct ring r;
        trace.len = 0;
        ring_init(&r, &trace, 'x');
        r.stop = true;
        if (i % 2) {
            ring_at(&r, clock_mono_ms() + i % 5);
        }
        int64_t before_ns = clock_mono_ns();
        if (i % 2 == 0) {
            loop_timer_after(r.timer, i % 5);
        }
        loop_run(trace.loop);
        CHECK_INT(r.early, false, "loop_timer_at");
        if (i % 2 == 0) {
            assert_true(clock_mono_ns() - before_ns >= i % 5 * NS_PER_MS);
        }
        loop_timer_free(r.timer);
    }
    loop_free(trace.loop);
}

TEST(test_timer_cancel_move_and_free)
{
    struct trace trace = {.loop = new_loop()};
    struct ring a, b, c, d, e;
    ring_init(&a, &trace, 'a');
    ring_init(&b, &trace, 'b');
    ring_init(&c, &trace, 'c');
    ring_init(&d, &trace, 'd');
    ring_init(&e, &trace, 'e');
    int64_t now = clock_mono_ms();
    ring_at(&a, now);
    loop_timer_cancel(a.timer);
    ring_at(&b, now + 3600 * MS_PER_S); /* moved to now */
    ring_at(&b, now);
    b.again = 2;
    ring_at(&c, now);
    c.free_self = true;
    loop_timer_at(e.timer, INT64_MAX); /* must neither fire nor overflow */
    loop_timer_after(e.timer, INT64_MAX);
    ring_at(&d, now + 20);
    d.stop = true;
    loop_run(trace.loop);
    CHECK_INT(trace.len, 5, trace.text);
    CHECK_STR(trace.text + 4, "d", "last");
    assert_null(strchr(trace.text, 'a'));
    assert_null(strchr(trace.text, 'e'));
    assert_non_null(strchr(trace.text, 'c'));
    assert_null(c.timer);
    loop_timer_free(a.timer);
    loop_timer_free(b.timer);
    loop_timer_free(d.timer);
    loop_timer_free(e.timer);
    assert_null(loop_timer_free(NULL));
    loop_free(trace.loop);
}

/* ---- pauses ---------------------------------------------------------------------------------- */

#define LONG_GAP_MS (3600 * MS_PER_S)

/* A loop with a gap records each pause as a dot in the trace instead of sleeping. */
struct pauses {
    struct trace *trace;
    int64_t gap_ms;
    int left;                  /* at the end of so many more, the loop is stopped */
    void (*within)(void *arg); /* what happens during each of the others; NULL: nothing */
    void *arg;
};

static struct pauses *pauses;

void __wrap_clock_sleep_until_ns(int64_t mono_ns);
void __wrap_clock_sleep_until_ns(int64_t mono_ns)
{
    assert_non_null(pauses);
    note(pauses->trace, '.');
    CHECK_INT(mono_ns % (pauses->gap_ms * NS_PER_MS), 0, "all loops wake up together");
    assert_true(mono_ns - clock_mono_ns() <= pauses->gap_ms * NS_PER_MS);
    if (--pauses->left == 0) {
        loop_stop(pauses->trace->loop);
    } else if (pauses->within != NULL) {
        pauses->within(pauses->arg);
    }
}

/* Runs the loop until the end of p->left pauses. */
static void run_pauses(struct pauses p)
{
    pauses = &p;
    loop_set_gap_ms(p.trace->loop, p.gap_ms);
    loop_run(p.trace->loop);
    pauses = NULL;
}

TEST(test_pause_comes_when_nothing_is_ready)
{
    struct trace trace = {.loop = new_loop()};
    struct letter *a = make_letter(&trace, 'a');
    struct ring r;
    a->then = make_letter(&trace, 'b');
    a->then->then = make_letter(&trace, 'c');
    loop_post(trace.loop, &a->task);
    run_pauses((struct pauses){.trace = &trace, .gap_ms = LONG_GAP_MS, .left = 1});
    CHECK_STR(trace.text, "abc.", "tasks; a stop within a pause ends the loop");
    trace.len = 0;
    ring_init(&r, &trace, 't');
    r.again = 3;
    ring_at(&r, clock_mono_ms() - 1000);
    run_pauses((struct pauses){.trace = &trace, .gap_ms = LONG_GAP_MS, .left = 1});
    CHECK_STR(trace.text, "tttt.", "timers");
    loop_timer_free(r.timer);
    loop_free(trace.loop);
}

static void post_two(void *arg)
{
    struct trace *trace = arg;
    loop_post(trace->loop, &make_letter(trace, 'b')->task);
    loop_post(trace->loop, &make_letter(trace, 'c')->task);
}

TEST(test_what_comes_in_a_pause_is_handled_together)
{
    struct trace trace = {.loop = new_loop()};
    loop_post(trace.loop, &make_letter(&trace, 'a')->task);
    run_pauses((struct pauses){
        .trace = &trace, .gap_ms = 7, .left = 3, .within = post_two, .arg = &trace});
    CHECK_STR(trace.text, "a.bc.bc.", "");
    loop_free(trace.loop);
}

struct late {
    struct trace *trace;
    pthread_t thread;
};

/* Gives the loop time to do what it must not do meanwhile. */
static void *late_main(void *arg)
{
    struct late *late = arg;
    usleep(20000);
    loop_post(late->trace->loop, &make_letter(late->trace, 'b')->task);
    return NULL;
}

static void post_late(void *arg)
{
    struct late *late = arg;
    assert_int_equal(pthread_create(&late->thread, NULL, late_main, late), 0);
}

TEST(test_idle_loop_waits_without_pauses)
{
    struct trace trace = {.loop = new_loop()};
    struct late late = {.trace = &trace};
    loop_post(trace.loop, &make_letter(&trace, 'a')->task);
    run_pauses((struct pauses){
        .trace = &trace, .gap_ms = LONG_GAP_MS, .left = 2, .within = post_late, .arg = &late});
    CHECK_STR(trace.text, "a.b.", "");
    pthread_join(late.thread, NULL);
    loop_free(trace.loop);
}

TEST(test_no_pauses_in_a_hurry)
{
    struct trace trace = {.loop = new_loop()};
    struct ring r;
    loop_set_gap_ms(trace.loop, LONG_GAP_MS);
    loop_hurry(trace.loop, 2);
    loop_hurry(trace.loop, -1);
    loop_post(trace.loop, &make_letter(&trace, 'a')->task);
    ring_init(&r, &trace, 'r');
    r.stop = true;
    ring_at(&r, clock_mono_ms() + 20); /* something is to come, so a loop with a gap would pause */
    loop_run(trace.loop);
    CHECK_STR(trace.text, "ar", "");
    loop_hurry(trace.loop, -1);
    loop_post(trace.loop, &make_letter(&trace, 'b')->task);
    run_pauses((struct pauses){.trace = &trace, .gap_ms = LONG_GAP_MS, .left = 1});
    CHECK_STR(trace.text, "arb.", "nobody is in a hurry any more");
    loop_set_gap_ms(trace.loop, 0);
    ring_at(&r, clock_mono_ms() + 20);
    loop_run(trace.loop);
    CHECK_STR(trace.text, "arb.r", "no gap any more");
    loop_timer_free(r.timer);
    loop_free(trace.loop);
}

/* More than the loop may handle in a gap and still pause. */
#define BUSY_GAP_MS 7
#define BUSY_TASKS (BUSY_GAP_MS * 6 + 1)

TEST(test_no_pauses_when_busy)
{
    struct trace trace = {.loop = new_loop()};
    struct ring r;
    for (size_t i = 0; i < BUSY_TASKS; i++) {
        loop_post(trace.loop, &make_letter(&trace, 'a')->task);
    }
    ring_init(&r, &trace, 'r');
    r.stop = true;
    ring_at(&r, clock_mono_ms() + 20); /* something is to come: it would pause otherwise */
    loop_set_gap_ms(trace.loop, BUSY_GAP_MS);
    loop_run(trace.loop);
    CHECK_INT(trace.len, BUSY_TASKS + 1, "");
    CHECK_INT(trace.text[BUSY_TASKS], 'r', "no pause before it");
    r.stop = false;
    usleep(2 * BUSY_GAP_MS * 1000);
    ring_at(&r, clock_mono_ms());
    run_pauses((struct pauses){.trace = &trace, .gap_ms = BUSY_GAP_MS, .left = 1});
    CHECK_INT(trace.text[trace.len - 1], '.', "it is not busy any more");
    loop_timer_free(r.timer);
    loop_free(trace.loop);
}

struct restless {
    struct loop_task task;
    struct loop *loop;
};

static void run_restless(struct loop_task *task)
{
    struct restless *r = (struct restless *)(void *)task;
    loop_post(r->loop, task);
}

static void free_restless(struct loop_task *task)
{
    free(task);
}

TEST(test_timers_are_served_between_tasks)
{
    static const int64_t gaps_ms[] = {0, LONG_GAP_MS};
    for (size_t i = 0; i < 2; i++) {
        struct trace trace = {.loop = new_loop()};
        struct restless *restless = calloc(1, sizeof(*restless));
        struct ring r;
        assert_non_null(restless);
        *restless = (struct restless){.task.run = run_restless, .loop = trace.loop};
        loop_post(trace.loop, &restless->task);
        ring_init(&r, &trace, 'r');
        r.stop = true;
        ring_at(&r, clock_mono_ms() + 20);
        loop_set_gap_ms(trace.loop, gaps_ms[i]);
        loop_run(trace.loop); /* hangs if the timer is never looked at */
        CHECK_STR(trace.text, "r", "");
        restless->task.run = free_restless;
        loop_timer_free(r.timer);
        loop_free(trace.loop);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

struct look {
    struct loop_task task;
    char name[16];
    sigset_t blocked;
    sem_t seen;
};

static void run_look(struct loop_task *task)
{
    struct look *look = (struct look *)(void *)task;
    pthread_sigmask(SIG_SETMASK, NULL, &look->blocked);
    pthread_getname_np(pthread_self(), look->name, sizeof(look->name));
    sem_post(&look->seen);
}

TEST(test_thread)
{
    static const struct text_case rows[] = {{"net", "net"},
                                            {"a-name-over-fifteen", "a-name-over-fif"}};
    for (size_t i = 0; i < 2; i++) {
        struct err err = ERR_INIT;
        struct loop *l = new_loop();
        struct look look = {.task.run = run_look};
        struct loop_thread *t = loop_thread_start(l, rows[i].text, &err);
        CHECK_STR(err.msg, "", rows[i].text);
        assert_non_null(t);
        /* The starter sets the name, so it is there before anything can be posted. */
        sem_init(&look.seen, 0, 0);
        loop_post(l, &look.task);
        sem_wait(&look.seen);
        assert_null(loop_thread_join(t));
        sem_destroy(&look.seen);
        loop_free(l);
        CHECK_STR(look.name, rows[i].want, "");
        CHECK_INT(sigismember(&look.blocked, SIGTERM), 1, "SIGTERM is not for this thread");
        CHECK_INT(sigismember(&look.blocked, SIGPIPE), 1, "SIGPIPE is not for this thread");
        CHECK_INT(sigismember(&look.blocked, SIGSEGV), 0, "faults are reported");
    }
    sigset_t own;
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    CHECK_INT(sigismember(&own, SIGTERM), 0, "the starter's mask is as it was");
    assert_null(loop_thread_join(NULL));
}

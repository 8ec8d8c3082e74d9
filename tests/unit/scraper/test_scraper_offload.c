/* Admission of work: what fits runs, what does not waits, what never fits is refused. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "scraper/engine.h"

#define MIB ((size_t)1024 * 1024)
#define WORKS_MAX 640

struct world {
    struct engine e; /* only its offloads and its way to workers */
    struct metrics *metrics;
    struct work *works[WORKS_MAX]; /* submitted, not run */
    size_t n_works;
    size_t n_done;
    size_t n_failed;
    size_t n_released;
    char order[WORKS_MAX + 1]; /* of those that are done */
    struct err err;            /* of the last that failed */
};

struct job {
    struct offload offload; /* first */
    struct world *world;
    size_t need; /* bytes to work in */
    char name;
    bool ok;
};

static void world_submit(void *arg, struct work *work)
{
    struct world *w = arg;
    assert_true(w->n_works < WORKS_MAX);
    w->works[w->n_works++] = work;
}

static void run(struct offload *o, struct scratch *scratch)
{
    struct job *j = (struct job *)o;
    j->ok = scratch_array(scratch, j->need, 1) != NULL;
    if (!j->ok) {
        err_memory(&o->err);
        scratch_explain(scratch, &o->err);
    }
}

static void released(struct offload *o)
{
    ((struct job *)o)->world->n_released++;
}

static const struct offload_kind kind = {sizeof(struct job), run, released};

static void world_done(void *arg, struct offload *o)
{
    struct world *w = arg;
    const struct job *j = (const struct job *)o;
    w->order[w->n_done++] = j->name;
    w->n_failed += !j->ok;
    if (!j->ok) {
        w->err = o->err;
    }
}

/* Runs one piece of work, as the workers and the loop would. */
static void work_one(struct world *w)
{
    assert_true(w->n_works > 0);
    struct work *first = w->works[0];
    memmove(w->works, w->works + 1, --w->n_works * sizeof(w->works[0]));
    first->run(first);
    first->done(first);
}

static void work_all(struct world *w)
{
    while (w->n_works > 0) {
        work_one(w);
    }
}

static struct job *start(struct world *w, char name, size_t size, size_t need)
{
    enum reason reason;
    struct err err = ERR_INIT;
    char *body = calloc(1, size);
    struct job *j = offload_new(&w->e, &kind, body, size, false, &reason, &err);
    if (j == NULL) {
        CHECK_STR(reason_name(reason), name == 'L' ? "too_large" : "busy", err.msg);
        free(body);
        return NULL;
    }
    j->world = w;
    j->name = name;
    j->need = need;
    offload_submit(&j->offload, world_done, w);
    return j;
}

static uint64_t metric(struct world *w, const char *name)
{
    return testing_metric(w->metrics, name);
}

static void open_world(struct world *w, size_t pending, size_t work, unsigned workers)
{
    *w = (struct world){.metrics = metrics_new()};
    w->e.io.submit = world_submit;
    w->e.io.arg = w;
    assert_true(
        offload_open(&w->e.offloads, &(struct offload_limits){pending, work, workers}, w->metrics));
}

static void close_world(struct world *w)
{
    offload_close(&w->e.offloads);
    work_all(w);
    metrics_free(w->metrics);
}

#define RESERVED "profpull_work_reserved_bytes"
#define WAITING "profpull_work_waiting"

/* Reserved memory never exceeds the share, and the order stays. */
TEST(what_does_not_fit_waits)
{
    struct world w;
    const size_t each = OFFLOAD_JOB_MIN + OFFLOAD_JOB_FACTOR * MIB / 4;
    open_world(&w, 64 * MIB, 5 * each, 1);
    for (char name = 'a'; name <= 'p'; name++) {
        start(&w, name, MIB / 4, 1000);
    }
    CHECK_INT(w.n_works, 5, "at a time");
    CHECK_INT(metric(&w, RESERVED), 5 * each, "");
    CHECK_INT(metric(&w, WAITING), 11, "");
    while (w.n_works > 0) {
        work_one(&w);
        assert_true(metric(&w, RESERVED) + scratch_pool_bytes(w.e.offloads.scratches) <= 5 * each);
    }
    CHECK_STR(w.order, "abcdefghijklmnop", "first come, first served");
    CHECK_INT(metric(&w, RESERVED), 0, "");
    CHECK_INT(metric(&w, WAITING), 0, "");
    CHECK_INT(w.n_released, 16, "");
    close_world(&w);
}

/* A guess that was too low is made good, alone; what needs still more fails and says so. */
TEST(more_than_was_guessed)
{
    struct world w;
    open_world(&w, 64 * MIB, 12 * MIB, 1);
    start(&w, 'a', 1000, 8 * MIB);
    start(&w, 'b', 1000, 100);
    start(&w, 'c', 1000, 40 * MIB);
    work_all(&w);
    CHECK_STR(w.order, "bac", "small first");
    CHECK_INT(w.n_failed, 1, "");
    CHECK_INT(w.err.kind, ERR_LIMIT, "");
    CHECK_CONTAINS(w.err.msg, "needs more than 12582912 bytes of working memory", "");
    CHECK_CONTAINS(w.err.msg, "global.memory_limit", "");
    CHECK_INT(metric(&w, "profpull_work_repeated_total"), 2, "");
    CHECK_INT(metric(&w, "profpull_work_refused_total{share=\"work\"}"), 1, "");
    CHECK_INT(metric(&w, RESERVED), 0, "");
    close_world(&w);
}

/* Small work goes first, but not for ever. */
TEST(large_work_gets_its_turn)
{
    struct world w;
    open_world(&w, 64 * MIB, 12 * MIB, 1);
    start(&w, 'a', 1000, 10);
    start(&w, 'B', 4 * MIB, 10); /* all that a job may have */
    start(&w, 'C', 4 * MIB, 10);
    start(&w, 'd', 1000, 10);
    CHECK_INT(w.n_works, 2, "B waits for memory, and does not hold up d");
    work_one(&w);
    work_one(&w);
    CHECK_INT(w.n_works, 1, "B, alone");
    start(&w, 'e', 1000, 10);
    CHECK_INT(w.n_works, 1, "no memory for it");
    work_one(&w);
    CHECK_INT(w.n_works, 1, "e before C");
    work_all(&w);
    CHECK_STR(w.order, "adBeC", "");
    close_world(&w);
}

TEST(patience_ends)
{
    struct world w;
    open_world(&w, 64 * MIB, 12 * MIB, 1);
    start(&w, 'a', 1000, 10);
    start(&w, 'B', 4 * MIB, 10);
    for (size_t i = 0; i < 2 * OFFLOAD_PATIENCE; i++) { /* there is always a small one */
        start(&w, 'c', 1000, 10);
        start(&w, 'c', 1000, 10);
        work_one(&w);
        if (strchr(w.order, 'B') != NULL) {
            break;
        }
    }
    const char *b = strchr(w.order, 'B');
    assert_non_null(b);
    assert_true(b - w.order <= OFFLOAD_PATIENCE + 1);
    close_world(&w);
}

/* With two workers, one is left for small work. */
TEST(large_work_leaves_a_worker)
{
    struct world w;
    for (unsigned workers = 1; workers <= 3; workers++) {
        open_world(&w, 64 * MIB, 200 * MIB, workers);
        for (char name = 'A'; name <= 'D'; name++) {
            start(&w, name, 4 * MIB, 10);
        }
        CHECK_INT(w.n_works, workers == 3 ? 2 : 1, "");
        start(&w, 'e', 1000, 10);
        CHECK_INT(w.n_works, workers == 3 ? 3 : 2, "");
        work_all(&w);
        CHECK_INT(w.n_done, 5, "");
        close_world(&w);
    }
}

/* Large bodies leave room for small ones, and what can never wait is refused for good. */
TEST(bodies_that_wait_are_bounded)
{
    struct world w;
    open_world(&w, 16 * MIB, 0, 1);
    assert_null(start(&w, 'L', 9 * MIB, 1));
    assert_non_null(start(&w, 'a', 7 * MIB, 1));
    assert_null(start(&w, 'x', 2 * MIB, 1));
    for (char name = 'b'; name < 'j'; name++) {
        assert_non_null(start(&w, name, MIB, 1));
    }
    assert_non_null(start(&w, 'j', MIB, 1));
    assert_null(start(&w, 'x', MIB, 1));
    CHECK_INT(metric(&w, "profpull_delta_pending_bytes"), 16 * MIB, "");
    CHECK_INT(metric(&w, "profpull_work_refused_total{share=\"body\"}"), 1, "");
    CHECK_INT(metric(&w, "profpull_work_refused_total{share=\"pending\"}"), 2, "");
    work_all(&w);
    CHECK_INT(w.n_done, 10, "");
    CHECK_INT(metric(&w, "profpull_delta_pending_bytes"), 0, "");
    close_world(&w);
}

/* Cancelled while it waits: it never runs. Closed: what waits is freed, what runs frees itself. */
TEST(cancelled_and_closed)
{
    struct world w;
    open_world(&w, 64 * MIB, 12 * MIB, 1);
    struct job *a = start(&w, 'a', MIB, 1);
    struct job *b = start(&w, 'b', MIB, 1);
    start(&w, 'c', MIB, 1);
    CHECK_INT(w.n_works, 1, "");
    offload_cancel(&a->offload);
    offload_cancel(&b->offload);
    work_one(&w);
    CHECK_INT(w.n_released, 2, "a has run for nobody, b has not run");
    CHECK_INT(w.n_works, 1, "");
    start(&w, 'd', MIB, 1);
    offload_close(&w.e.offloads);
    CHECK_INT(w.n_released, 3, "d waited");
    work_all(&w);
    CHECK_INT(w.n_released, 4, "c ran on");
    CHECK_INT(w.n_done, 0, "");
    CHECK_INT(metric(&w, WAITING), 0, "");
    metrics_free(w.metrics);
}

/* A gzip that lies about its size costs a second run, nothing else. */
TEST(sizes_that_lie)
{
    struct world w;
    open_world(&w, 64 * MIB, 64 * MIB, 1);
    static const unsigned char small[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0};
    static const unsigned char huge[] = {0x1f, 0x8b, 8, 0,    0,    0,    0,
                                         0,    0,    0, 0xff, 0xff, 0xff, 0xff};
    const unsigned char *const bodies[] = {small, huge};
    for (size_t i = 0; i < 2; i++) {
        enum reason reason;
        struct err err = ERR_INIT;
        char *body = testing_memory(sizeof(small));
        memcpy(body, bodies[i], sizeof(small));
        struct job *j = offload_new(&w.e, &kind, body, sizeof(small), false, &reason, &err);
        assert_non_null(j);
        j->world = &w;
        j->name = 'a';
        j->need = 20 * MIB;
        offload_submit(&j->offload, world_done, &w);
        work_all(&w);
    }
    CHECK_INT(metric(&w, "profpull_work_repeated_total"), 1, "");
    CHECK_INT(w.n_failed, 0, "");
    close_world(&w);
}

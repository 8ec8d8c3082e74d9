/* Deltas in a queue that runs full: nothing of their counters is lost. Other profiles: thinned out
 * evenly. The clock is ours, and the work of the merging thread is done by the test. */
#include "tests/unit/write/merge_rig.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "write/queue/merger.h"

SCOPED_POINTER(send_queue, send_queue_free)

#define TICK_MS INT64_C(15000)

static struct config_endpoint config;

static struct send_queue *new_queue(uint64_t max_bytes)
{
    config = (struct config_endpoint){.queue_max_bytes = max_bytes,
                                      .concurrency = 4,
                                      .min_backoff_ms = 500,
                                      .max_backoff_ms = 5000,
                                      .max_age_ms = MS_PER_HOUR};
    struct send_queue *q = send_queue_new(&config, 7);
    assert_non_null(q);
    return q;
}

/* ---- merging --------------------------------------------------------------------------------- */

#define SERIES 5

/* An outage of twenty rounds in a queue with room for about three. */
TEST_WITH(sums_are_exact, setup, teardown)
{
    SCOPED(send_queue) *q = new_queue((uint64_t)3 * SERIES * 1500);
    int64_t now = 0;
    size_t jobs = 0;
    for (int round = 1; round <= 20; round++) {
        now += TICK_MS;
        for (int i = 0; i < SERIES; i++) {
            struct profile *p = make_delta(i, round % 3, 10 * round + i, round, now);
            CHECK_INT(send_queue_put(q, p, now), SEND_TAKEN, "taken");
        }
        CHECK_INT(merging_is_due(q, now), balance(q).queued_bytes > 3 * SERIES * 1500 / 100 * 75,
                  "due");
        jobs += merge_round(q, now);
    }
    struct write_ledger l = balance(q);
    CHECK_INT(l.accepted, 20 * SERIES, "");
    CHECK_INT(dropped_sum(&l), 0, "nothing is dropped");
    assert_true(l.merged > 0 && l.queued <= 3 * SERIES);
    /* The merger waits until there are several profiles to merge. */
    assert_true(jobs < l.merged);
    int64_t sum[SERIES] = {0};
    int64_t from[SERIES] = {0};
    struct send_item *it;
    while ((it = send_queue_take(q, now)) != NULL) {
        const struct profile *p = send_item_profile(it);
        int i = series_of(it);
        struct sums s = sums_of(p);
        sum[i] += s.counter;
        CHECK_INT(s.gauge, p->until_ns / NS_PER_MS / TICK_MS, "the gauge is that of the last one");
        assert_true(p->is_delta);
        /* The windows of a series follow each other, whatever was merged. */
        assert_true(p->from_ns < p->until_ns && p->from_ns >= from[i]);
        from[i] = p->until_ns;
        CHECK_INT(p->scraped_ms, p->until_ns / NS_PER_MS, "as old as its last part");
        send_queue_done(q, it, &all_well, now);
        (void)balance(q);
    }
    for (int i = 0; i < SERIES; i++) {
        CHECK_INT(sum[i], 10 * 210 + 20 * i, "the sum of a series");
        CHECK_INT(from[i], 20 * TICK_MS * NS_PER_MS, "up to the last one");
    }
}

/* Without pressure, nothing is merged. */
TEST_WITH(calm, setup, teardown)
{
    SCOPED(send_queue) *q = new_queue(1 << 20);
    for (int i = 0; i < 10; i++) {
        send_queue_put(q, make_delta(1, 1, 1, 1, i), i);
    }
    CHECK_INT(merging_is_due(q, 10), false, "");
    CHECK_INT(merge_round(q, 10), 0, "");
    CHECK_INT(balance(q).queued, 10, "");
}

/* Old profiles become part of younger ones, and stay in the queue as long as those do. */
TEST_WITH(old_ones_are_merged, setup, teardown)
{
    SCOPED(send_queue) *q = new_queue(1 << 20);
    send_queue_put(q, make_delta(1, 1, 5, 1, 0), 0);
    send_queue_put(q, make_delta(2, 1, 7, 1, 0), 0);
    send_queue_put(q, make_delta(1, 1, 6, 2, MS_PER_HOUR / 2), MS_PER_HOUR / 2);
    int64_t now = MS_PER_HOUR / 100 * MERGE_AGE_PERCENT;
    CHECK_INT(merging_is_due(q, now - 1), false, "not yet");
    CHECK_INT(merge_round(q, now - 1), 0, "not yet");
    CHECK_INT(merging_is_due(q, now), true, "");
    CHECK_INT(merge_round(q, now), 1, "the one with a younger part");
    struct send_item *it = send_queue_take(q, MS_PER_HOUR + 1);
    CHECK_INT(series_of(it), 1, "");
    CHECK_INT(sums_of(send_item_profile(it)).counter, 11, "");
    CHECK_INT(balance(q).dropped[DROP_EXPIRED], 1, "nothing could be done for the other");
    send_queue_done(q, it, &all_well, now);
}

/* While a job is under way, its parts are neither sent nor lost, and the others are sent. */
TEST_WITH(under_way, setup, teardown)
{
    SCOPED(send_queue) *q = new_queue((uint64_t)6 * 1200);
    for (int i = 0; i < 5; i++) {
        send_queue_put(q, make_delta(i / 4, 0, 1, 1, i), i);
    }
    SCOPED_MEMORY struct merge_candidate *plan = NULL;
    CHECK_INT(merging_plan(q, 5, &plan), 1, "one group has several");
    struct merge_job *job = merging_take(q, &plan[0]);
    assert_non_null(job);
    assert_null(merging_take(q, &plan[0])); /* nothing is left of it */
    CHECK_INT(balance(q).queued, 5, "");
    struct send_item *it = send_queue_take(q, 5);
    CHECK_INT(series_of(it), 1, "");
    assert_null(send_queue_take(q, 5));
    merging_run(job, NULL, MERGE_BYTES_MAX);
    send_queue_done(q, it, &all_well, 5);
    merging_done(job, 5);
    CHECK_INT(balance(q).queued, 1, "");
    it = send_queue_take(q, 5);
    CHECK_INT(sums_of(send_item_profile(it)).counter, 4, "");
    send_queue_done(q, it, &all_well, 5);
    CHECK_INT(balance(q).queued_bytes, 0, "");
}

/* Puts series 1 with these bytes as its parts and merges until nothing more happens. */
static struct send_queue *merge_parts(struct profile **parts, size_t n)
{
    struct send_queue *q = new_queue(1 << 20);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(send_queue_put(q, parts[i], (int64_t)i), SEND_TAKEN, "");
    }
    config.max_age_ms = 110; /* all of them are near it */
    for (int i = 0; i < 5; i++) {
        (void)merge_round(q, 100);
    }
    return q;
}

static void spoil(struct profile *p)
{
    memset(p->data, 0xff, p->size);
}

static struct profile *of_other_types(int64_t counter, int64_t at_ms)
{
    const struct pprof_row row = {"leaf main", NULL, {counter}};
    const struct pprof_spec spec = {.types = "contentions/count"};
    struct profile *p = make_delta(1, 1, 1, 1, at_ms);
    struct buf body = pprof_make(&spec, &row, 1);
    free(p->data);
    p->data = buf_take(&body, &p->size);
    return p;
}

/* One that is damaged stays as it is; the others are merged without it. */
TEST_WITH(damaged_part, setup, teardown)
{
    struct profile *parts[6];
    for (int i = 0; i < 6; i++) {
        parts[i] = make_delta(1, i, 1 << i, i, i);
    }
    spoil(parts[0]);
    spoil(parts[3]);
    SCOPED(send_queue) *q = merge_parts(parts, 6);
    struct write_ledger l = balance(q);
    CHECK_INT(l.queued, 4, "0, 1 with 2, 3, 4 with 5");
    CHECK_INT(l.merged, 2, "");
    assert_true(l.merge_failures >= 2 && l.merge_failures <= 4);
    int64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        struct send_item *it = send_queue_take(q, 100);
        const struct profile *p = send_item_profile(it);
        sum += p->scraped_ms == 0 || p->scraped_ms == 3 ? 0 : sums_of(p).counter;
        send_queue_done(q, it, &all_well, 100);
    }
    CHECK_INT(sum, 2 + 4 + 16 + 32, "");
}

/* A program that was upgraded may count something else: each kind is merged for itself. */
TEST_WITH(other_types, setup, teardown)
{
    struct profile *parts[6];
    for (int i = 0; i < 6; i++) {
        parts[i] = i < 3 ? make_delta(1, 0, 1, 1, i) : of_other_types(10, i);
    }
    SCOPED(send_queue) *q = merge_parts(parts, 6);
    struct write_ledger l = balance(q);
    CHECK_INT(l.queued, 2, "");
    struct send_item *it = send_queue_take(q, 100);
    CHECK_INT(sums_of(send_item_profile(it)).counter, 3, "");
    send_queue_done(q, it, &all_well, 100);
    it = send_queue_take(q, 100);
    CHECK_INT(sums_of(send_item_profile(it)).counter, 30, "");
    send_queue_done(q, it, &all_well, 100);
}

/* A profile that a server has doubted may be the one that it fails on. */
TEST_WITH(doubted_part, setup, teardown)
{
    static const struct answer doubtful = {
        .class = ANSWER_RETRY_DOUBTFUL, .answered = true, .tries = 5};
    SCOPED(send_queue) *q = new_queue((uint64_t)4 * 1200);
    send_queue_put(q, make_delta(1, 1, 1, 1, 0), 0);
    send_queue_done(q, send_queue_take(q, 0), &doubtful, 0);
    for (int i = 1; i < 4; i++) {
        send_queue_put(q, make_delta(1, 1, 1, 1, i), i);
    }
    CHECK_INT(merge_round(q, 4), 1, "");
    CHECK_INT(balance(q).queued, 2, "it waits alone");
}

/* Values that cancel out leave nothing to send. */
TEST_WITH(nothing_left, setup, teardown)
{
    struct profile *parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = make_delta(1, i, 0, i < 3, i);
    }
    SCOPED(send_queue) *q = merge_parts(parts, 4);
    struct write_ledger l = balance(q);
    CHECK_INT(l.queued, 0, "");
    CHECK_INT(l.merged, 4, "");
    CHECK_INT(l.queued_bytes, 0, "");
}

/* At the end no job is begun. */
TEST_WITH(closed, setup, teardown)
{
    SCOPED(send_queue) *q = new_queue((uint64_t)4 * 1200);
    for (int i = 0; i < 4; i++) {
        send_queue_put(q, make_delta(1, 1, 1, 1, i), i);
    }
    CHECK_INT(merging_is_due(q, 4), true, "");
    send_queue_close(q);
    CHECK_INT(merging_is_due(q, 4), false, "");
    CHECK_INT(merge_round(q, 4), 0, "");
    CHECK_INT(send_queue_put(q, make_delta(1, 1, 1, 1, 5), 5), SEND_LOST, "");
    CHECK_INT(balance(q).dropped[DROP_SHUTDOWN], 1, "");
    send_queue_drop_unsafe(q, DROP_SHUTDOWN);
}

/* ---- thinning -------------------------------------------------------------------------------- */

/* The profiles that are left of a long outage, and their distances. */
TEST_WITH(thinned_evenly, setup, teardown)
{
    SCOPED(send_queue) *q = new_queue((uint64_t)20 * 2048);
    for (int i = 0; i < 200; i++) {
        int series = i % 2;
        CHECK_INT(send_queue_put(q, make_gauge(series, i, 1024), i) == SEND_REFUSED, false, "");
        (void)balance(q);
    }
    struct write_ledger l = balance(q);
    CHECK_INT(l.dropped[DROP_QUEUE_FULL], 0, "");
    CHECK_INT(l.dropped[DROP_THINNED] + l.queued, 200, "");
    assert_true(l.queued >= 6 && l.queued <= 20);
    int64_t first[2] = {0};
    int64_t last[2] = {-1, -1};
    int64_t step = 0;
    for (uint64_t n = l.queued; n > 0; n--) {
        struct send_item *it = send_queue_take(q, 200);
        int i = series_of(it);
        int64_t at = send_item_profile(it)->scraped_ms;
        if (last[i] >= 0) {
            step = step == 0 ? at - last[i] : step;
            CHECK_INT(at - last[i], step, "the same distance everywhere");
        }
        first[i] = last[i] < 0 ? at : first[i];
        last[i] = at;
        send_queue_done(q, it, &all_well, 200);
    }
    assert_true(first[0] < step && first[1] < step);
    assert_true(last[0] + step >= 200 && last[1] + step >= 200);
    /* The outage is over: all profiles are kept. */
    for (int i = 200; i < 210; i++) {
        CHECK_INT(send_queue_put(q, make_gauge(0, i, 1024), i), SEND_TAKEN, "");
    }
    CHECK_INT(balance(q).queued, 10, "");
}

/* Deltas push out the others, and never each other: what has no room is refused. */
TEST_WITH(deltas_come_first, setup, teardown)
{
    SCOPED(send_queue) *q = new_queue((uint64_t)8 * 2048);
    for (int i = 0; i < 8; i++) {
        CHECK_INT(send_queue_put(q, make_gauge(i, i, 1024), i), SEND_TAKEN, "");
    }
    int taken = 0;
    for (int i = 0; i < 30; i++) {
        struct profile *p = make_delta(i, 0, 1, 1, 100 + i);
        p->refusable = i % 2 == 0;
        enum send_put put = send_queue_put(q, p, 100 + i);
        taken += put == SEND_TAKEN;
        if (put != SEND_TAKEN) {
            CHECK_INT(put, i % 2 == 0 ? SEND_REFUSED : SEND_LOST, "");
        }
    }
    struct write_ledger l = balance(q);
    CHECK_INT(l.queued, taken, "deltas only");
    CHECK_INT(l.refused, 0, "the caller says what became of it");
    send_queue_refused(q, false);
    CHECK_INT(balance(q).refused, 1, "");
    send_queue_refused(q, true);
    CHECK_INT(balance(q).refused, 1, "");
    CHECK_INT(balance(q).accepted, l.accepted + 1, "");
    CHECK_INT(send_queue_put(q, make_gauge(1, 200, 4096), 200), SEND_LOST, "");
    CHECK_INT(balance(q).queued, taken, "none of them made way");
}

/* ---- everything at once ---------------------------------------------------------------------- */

struct model {
    int64_t grown[SERIES];   /* in all */
    int64_t waiting[SERIES]; /* of that, not handed on: the baseline is where it was */
    int64_t arrived[SERIES];
};

static void land(struct send_queue *q, struct model *m, struct send_item *it, bool ok, int64_t now)
{
    const struct profile *p = send_item_profile(it);
    if (ok && p->is_delta) {
        m->arrived[series_of(it)] += sums_of(p).counter;
    }
    send_queue_done(q, it, ok ? &all_well : &no_answer, now);
}

static void put_something(struct send_queue *q, struct model *m, struct rng *rng, int64_t now)
{
    int i = (int)rng_range(rng, 0, SERIES);
    if (rng_range(rng, 0, 3) == 0) {
        (void)send_queue_put(q, make_gauge(i, now, (size_t)rng_range(rng, 1, 3000)), now);
        return;
    }
    int64_t growth = rng_range(rng, 1, 1000);
    m->grown[i] += growth;
    m->waiting[i] += growth;
    struct profile *p = make_delta(i, (int)rng_range(rng, 0, 40), m->waiting[i], 1, now);
    p->refusable = true;
    if (send_queue_put(q, p, now) == SEND_TAKEN) {
        m->waiting[i] = 0;
    } else {
        send_queue_refused(q, false);
    }
}

static void walk(uint64_t seed)
{
    SCOPED(send_queue) *q = new_queue(20000);
    struct model m = {0};
    struct rng rng;
    struct merge_job *job = NULL;
    struct send_item *flying = NULL;
    int64_t now = 0;
    rng_seed(&rng, seed);
    config.max_age_ms = 0;
    for (int step = 0; step < 3000; step++) {
        now += rng_range(&rng, 0, 100);
        int64_t what = rng_range(&rng, 0, 10);
        if (what < 6) {
            put_something(q, &m, &rng, now);
        } else if (what < 8 && job == NULL) {
            struct merge_candidate *plan = NULL;
            job = merging_plan(q, now, &plan) > 0 ? merging_take(q, &plan[0]) : NULL;
            free(plan);
        } else if (what < 8) {
            merging_run(job, NULL, MERGE_BYTES_MAX);
            merging_done(job, now);
            job = NULL;
        } else if (flying == NULL) {
            flying = send_queue_take(q, now);
        } else {
            land(q, &m, flying, rng_range(&rng, 0, 3) == 0, now);
            flying = NULL;
        }
        struct write_ledger l = balance(q);
        assert_true(l.queued_bytes + send_queue_status(q).in_flight_bytes <= 20000);
    }
    if (job != NULL) {
        merging_run(job, NULL, MERGE_BYTES_MAX);
        merging_done(job, now);
    }
    if (flying != NULL) {
        land(q, &m, flying, true, now);
    }
    for (; balance(q).queued > 0; now += 1000) {
        flying = send_queue_take(q, now);
        if (flying != NULL) {
            land(q, &m, flying, true, now);
        }
    }
    for (int i = 0; i < SERIES; i++) {
        CHECK_INT(m.arrived[i] + m.waiting[i], m.grown[i], "the sum of a series");
    }
    assert_true(balance(q).merged > 0 && balance(q).refused > 0);
}

TEST_WITH(random_walk, setup, teardown)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        walk(seed);
    }
}

/* Takes the place of the C library's function, to count its calls. */
static atomic_uint trimmed;

int malloc_trim(size_t pad)
{
    atomic_fetch_add(&trimmed, pad == 0);
    return 0;
}

static void count_merged(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
}

/* The thread itself, beside one that puts and one that sends. */
static void *produce(void *arg)
{
    struct send_queue *q = arg;
    for (int i = 0; i < 2000; i++) {
        while (send_queue_put(q, make_delta(i % SERIES, i % 7, 1, 1, i), i) != SEND_TAKEN) {
            (void)usleep(1000);
        }
    }
    return NULL;
}

TEST_WITH(threads, setup, teardown)
{
    struct send_queue *q = new_queue(60000);
    SCOPED(send_queue) *other = new_queue(60000);
    struct err err = ERR_INIT;
    atomic_uint merged = 0;
    struct merger *m = merger_new(0, count_merged, &merged, &err);
    pthread_t thread;
    int64_t sum = 0;
    assert_non_null(m);
    assert_true(merger_add(m, other, &err));
    assert_true(merger_add(m, q, &err));
    config.max_age_ms = 0;
    assert_int_equal(pthread_create(&thread, NULL, produce, q), 0);
    while (sum < 2000) {
        if (merging_is_due(q, 0)) {
            merger_poke(m);
        }
        /* Nothing is sent before there was something to merge. */
        struct send_item *it = balance(q).merged > 0 ? send_queue_take(q, 0) : NULL;
        if (it == NULL) {
            (void)usleep(1000);
            continue;
        }
        sum += sums_of(send_item_profile(it)).counter;
        send_queue_done(q, it, &all_well, 0);
    }
    pthread_join(thread, NULL);
    merger_stop(m);
    merger_free(m);
    assert_true(atomic_load(&merged) > 0);
    assert_true(atomic_load(&trimmed) > 0); /* the memory of the parts was given back */
    CHECK_INT(sum, 2000, "");
    CHECK_INT(balance(q).queued, 0, "");
    send_queue_free(q);
}

/* A queue whose deltas are merged: profiles with one counter and one gauge that can be added up
 * again, and the series that they are of. For the tests of merging.
 */
#ifndef PROFPULL_TESTS_MERGE_RIG_H
#define PROFPULL_TESTS_MERGE_RIG_H

#include "tests/unit/lib/testing.h"

#include "base/clock.h"
#include "pprof/gzip.h"
#include "pprof/wire.h"
#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/write/requests.h"
#include "write/queue/merging.h"
#include "write/queue/send_queue.h"

__attribute__((unused)) static const struct answer all_well = {.class = ANSWER_SENT,
                                                               .answered = true};
__attribute__((unused)) static const struct answer no_answer = {.class = ANSWER_RETRY,
                                                                .answered = false};

/* The growth of a counter with a gauge beside it, in a stack of its own for each of `stack`. */
static inline struct profile *make_delta(int series, int stack, int64_t counter, int64_t gauge,
                                         int64_t at_ms)
{
    char id[24];
    char frames[32];
    (void)snprintf(id, sizeof(id), "%d", series);
    (void)snprintf(frames, sizeof(frames), "leaf%d main", stack);
    const struct pprof_row row = {frames, NULL, {counter, gauge}};
    const struct pprof_spec spec = {.types = "alloc_space/bytes inuse_space/bytes",
                                    .time_nanos = at_ms * NS_PER_MS,
                                    .duration_nanos = NS_PER_S};
    struct buf body = pprof_make(&spec, &row, 1);
    size_t size = 0;
    char *data = buf_take(&body, &size);
    struct labels *l = testing_labels(table, "__name__", "memory", "id", id, NULL);
    struct profile *p = profile_new(l, data, size);
    assert_non_null(p);
    p->scraped_ms = at_ms;
    p->from_ns = at_ms * NS_PER_MS - NS_PER_S;
    p->until_ns = at_ms * NS_PER_MS;
    p->is_delta = true;
    return p;
}

static inline struct profile *make_gauge(int series, int64_t at_ms, size_t size)
{
    char id[24];
    (void)snprintf(id, sizeof(id), "%d", series);
    char *data = testing_memory(size);
    struct labels *l = testing_labels(table, "__name__", "goroutine", "id", id, NULL);
    struct profile *p = profile_new(l, data, size);
    assert_non_null(p);
    p->scraped_ms = at_ms;
    return p;
}

struct sums {
    int64_t counter;
    int64_t gauge;
    int samples;
};

static inline void add_sample(struct sums *s, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    int64_t values[8] = {0};
    size_t n = 0;
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t v;
        while (f.number == SAMPLE_VALUE && wire_numbers_next(&numbers, &v)) {
            assert_true(n < 8);
            values[n++] = (int64_t)v;
        }
    }
    s->counter += values[0];
    s->gauge += values[1];
    s->samples++;
}

static inline struct sums sums_of(const struct profile *p)
{
    struct sums s = {0};
    struct sv plain = {p->data, p->size};
    struct wire_field f = {.number = 0};
    struct err err = ERR_INIT;
    struct scratch *scratch = scratch_new();
    if (p->size > 2 && memcmp(p->data, "\x1f\x8b", 2) == 0) {
        assert_true(gzip_inflate(scratch, plain, 10000000, 0, &plain, &err));
    }
    struct wire_reader r = wire_reader_of(plain);
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            add_sample(&s, f.bytes);
        }
    }
    scratch_free(scratch);
    return s;
}

static inline uint64_t dropped_sum(const struct write_ledger *l)
{
    uint64_t n = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        n += l->dropped[i];
    }
    return n;
}

static inline struct write_ledger balance(struct send_queue *q)
{
    struct write_ledger l = send_queue_status(q).ledger;
    CHECK_INT(l.accepted + l.replayed, l.sent + dropped_sum(&l) + l.merged + l.queued + l.in_flight,
              "balance");
    return l;
}

/* Lets the disk work; NULL: there is none. */
static void (*merge_rig_load)(void *arg);
static void *merge_rig_arg;

static inline struct merge_job *take_job(struct send_queue *q, const struct merge_candidate *c)
{
    struct merge_job *job = merging_is_needed(q, c) ? merging_take(q, c) : NULL;
    if (job == NULL && merging_is_loading(q)) {
        (void)balance(q);
        merge_rig_load(merge_rig_arg);
        job = merging_loaded(q);
        assert_non_null(job);
    }
    return job;
}

/* Does what the merging thread does in one round; returns how many jobs there were. */
static inline size_t merge_round(struct send_queue *q, int64_t now_ms)
{
    struct merge_candidate *plan = NULL;
    size_t n = merging_plan(q, now_ms, &plan);
    size_t jobs = 0;
    for (size_t i = 0; i < n; i++) {
        struct merge_job *job = take_job(q, &plan[i]);
        if (job != NULL) {
            (void)balance(q);
            merging_run(job, NULL, MERGE_BYTES_MAX);
            merging_done(job, now_ms);
            (void)balance(q);
            jobs++;
        }
    }
    free(plan);
    return jobs;
}

static inline int series_of(const struct send_item *it)
{
    uint64_t id = 0;
    assert_true(parse_u64(labels_get(send_item_profile(it)->labels, SV("id")), 100000, &id));
    return (int)id;
}

#endif

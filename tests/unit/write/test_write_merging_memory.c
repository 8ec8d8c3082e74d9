/* Memory runs out at each allocation while deltas are queued and merged: the sums stay exact. */
#include "tests/unit/write/merge_rig.h"

#include "tests/unit/lib/failing_malloc.h"

static struct config_endpoint config;

/* A profile that finds no memory in the queue counts as lost; one in the queue never does. */
static int64_t put_some(struct send_queue *q, int64_t first)
{
    int64_t sum = 0;
    for (int64_t i = first; i < first + 6; i++) {
        bool armed = failing_malloc_pause();
        struct profile *p = make_delta((int)i % 2, (int)i, 1 << i, i, i);
        failing_malloc_resume(armed);
        sum += send_queue_put(q, p, i) == SEND_TAKEN ? 1 << i : 0;
    }
    return sum;
}

static void scenario(bool *ret_complete)
{
    config = (struct config_endpoint){
        .queue_max_bytes = 14500, .concurrency = 4, .min_backoff_ms = 500, .max_backoff_ms = 5000};
    struct send_queue *q = send_queue_new(&config, 1);
    if (q == NULL) {
        return;
    }
    int64_t sum = put_some(q, 0) + put_some(q, 6);
    size_t jobs = merge_round(q, 20);
    *ret_complete = jobs == 2 && balance(q).merged == 10;
    bool armed = failing_malloc_pause();
    struct send_item *it;
    while ((it = send_queue_take(q, 20)) != NULL) {
        sum -= sums_of(send_item_profile(it)).counter;
        send_queue_done(q, it, &all_well, 20);
    }
    failing_malloc_resume(armed);
    CHECK_INT(sum, 0, "what was taken has arrived");
    CHECK_INT(balance(q).queued, 0, "");
    send_queue_free(q);
}

TEST_WITH(each_allocation_fails, setup, teardown)
{
    size_t n = failing_malloc_each(FAIL_OURS, scenario);
    print_message("%zu allocations\n", n);
    assert_true(n > 30);
}

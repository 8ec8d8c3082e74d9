/* Queue, backoff and ledger of one endpoint, with a clock of our own and nobody who sends. */
#include "tests/unit/lib/testing.h"

#include <pthread.h>

#include "tests/unit/write/send_queue_rig.h"

/* ---- order and bounds ------------------------------------------------------------------------ */

TEST_WITH(test_first_in_first_out, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 1 << 20);
    put(e, 1, 4, 0);
    struct send_item *one = take(e, 0, 1);
    struct send_item *two = take(e, 0, 2);
    assert_null(send_queue_take(e, 0)); /* concurrency */
    CHECK_INT(send_item_attempt(one), 1, "");
    CHECK_INT(done(e, two, &sent, 0).outcome, WRITE_SENT, "");
    struct send_item *three = take(e, 0, 3);
    done(e, one, &sent, 0);
    done(e, three, &sent, 0);
    done(e, take(e, 0, 4), &sent, 0);
    assert_null(send_queue_take(e, 0));
    struct write_ledger l = ledger(e);
    CHECK_INT(l.accepted, 4, "");
    CHECK_INT(l.sent, 4, "");
    CHECK_INT(l.queued_bytes, 0, "");
    CHECK_INT(send_queue_wake_ms(e), INT64_MAX, "nothing to wait for");
}

/* How many there are in all that were dropped for room. */
static uint64_t lost(const struct write_ledger *l)
{
    return l->dropped[DROP_QUEUE_FULL] + l->dropped[DROP_THINNED];
}

TEST_WITH(test_crowded_while_profiles_wait_for_a_slot, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 1 << 20);
    CHECK_INT(send_queue_is_crowded(e, 0), false, "empty");
    put(e, 1, 3, 0);
    CHECK_INT(send_queue_is_crowded(e, 0), false, "nothing has been taken yet");
    struct send_item *one = take(e, 0, 1);
    struct send_item *two = take(e, 0, 2);
    CHECK_INT(send_queue_is_crowded(e, 0), true, "the third waits for one of these");
    done(e, one, &sent, 0);
    CHECK_INT(send_queue_is_crowded(e, 0), false, "it may be taken");
    struct send_item *three = take(e, 0, 3);
    CHECK_INT(send_queue_is_crowded(e, 0), false, "all slots are taken, but nothing waits");
    done(e, two, &sent, 0);
    done(e, three, &sent, 0);
}

TEST_WITH(test_crowded_after_an_outage, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 1 << 20);
    put(e, 1, 3, 0);
    int64_t now = done(e, take(e, 0, 1), &unavailable, 0).wait_ms;
    CHECK_INT(send_queue_is_crowded(e, 0), false, "the endpoint rests");
    struct send_item *probe = send_queue_take(e, now);
    assert_non_null(probe);
    CHECK_INT(send_queue_is_crowded(e, now), false, "nobody knows that it works");
    done(e, probe, &sent, now);
    CHECK_INT(send_queue_is_crowded(e, now), false, "one may be taken");
    struct send_item *first = send_queue_take(e, now);
    assert_non_null(first);
    CHECK_INT(send_queue_is_crowded(e, now), true, "the other is not due before this one is done");
    CHECK_INT(send_queue_is_crowded(e, now + BACKOFF_PACE_MS), false, "or before the next step");
    done(e, first, &sent, now);
    done(e, send_queue_take(e, now), &sent, now);
}

TEST_WITH(test_full_queue_stays_full, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 3 * COST);
    put(e, 1, 50, 0);
    struct write_ledger l = ledger(e);
    assert_true(l.queued <= 3);
    CHECK_INT(lost(&l), 50 - l.queued, "");
    CHECK_INT(l.queued_bytes, l.queued * COST, "");
}

/* Age counts, not the place in the queue: a profile that waits for its second attempt is older. */
TEST_WITH(test_oldest_is_by_age, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 4 * COST);
    send_queue_put(e, make(1, 1), 1);
    send_queue_put(e, make(2, 2), 2);
    done(e, take(e, 2, 1), &unavailable, 2); /* 2, 1 */
    CHECK_INT(send_queue_status(e).oldest_ms, 1, "");
    send_queue_put(e, make(3, 3), 3);
    send_queue_put(e, make(4, MS_PER_HOUR + 1), MS_PER_HOUR + 1); /* 1 goes */
    CHECK_INT(ledger(e).dropped[DROP_EXPIRED], 1, "");
    CHECK_INT(send_queue_status(e).oldest_ms, 2, "");
    int64_t now = MS_PER_HOUR + 1;
    done(e, take(e, now, 2), &sent, now);
    done(e, take(e, now, 3), &sent, now);
    done(e, take(e, now, 4), &sent, now);
}

TEST_WITH(test_in_flight_counts, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 3 * COST);
    put(e, 1, 3, 0);
    struct send_item *one = take(e, 0, 1);
    struct send_item *two = take(e, 0, 2);
    put(e, 4, 4, 0); /* 3 or 4 goes */
    struct write_ledger l = ledger(e);
    CHECK_INT(lost(&l), 2 - l.queued, "");
    /* Nothing queued could make room for this one: it goes itself, the others stay. */
    send_queue_put(e, make_sized(5, 0, 2 * COST), 0);
    CHECK_INT(ledger(e).queued, l.queued, "");
    /* The profiles in flight come back: still within the bound. */
    done(e, one, &refused, 0);
    done(e, two, &refused, 0);
    CHECK_INT(ledger(e).queued_bytes, (2 + l.queued) * COST, "");
}

/* A note of the sender about a profile is there at its next attempt. */
TEST_WITH(test_note_stays, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 3 * COST);
    put(e, 1, 1, 0);
    struct send_item *it = take(e, 0, 1);
    CHECK_INT(send_item_note(it), 0, "");
    send_item_set_note(it, 7);
    done(e, it, &refused, 0);
    it = take(e, MS_PER_HOUR / 2, 1);
    CHECK_INT(send_item_attempt(it), 2, "");
    CHECK_INT(send_item_note(it), 7, "");
    done(e, it, &sent, MS_PER_HOUR / 2);
}

TEST_WITH(test_larger_than_the_queue, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 3 * COST);
    put(e, 1, 2, 0);
    send_queue_put(e, make_sized(3, 0, 3 * COST), 0);
    CHECK_INT(ledger(e).dropped[DROP_QUEUE_FULL], 1, "");
    CHECK_INT(ledger(e).queued, 2, "the others stay");
}

TEST_WITH(test_large_one_drops_several, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 4 * COST);
    put(e, 1, 4, 0);
    send_queue_put(e, make_sized(5, 0, 2 * COST), 0); /* costs a little over two of them */
    struct write_ledger l = ledger(e);
    assert_true(l.queued >= 1 && l.queued <= 2);
    CHECK_INT(lost(&l), 5 - l.queued, "");
}

/* ---- age ------------------------------------------------------------------------------------- */

TEST_WITH(test_expiry, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    send_queue_put(e, make(0, 50), 50);
    send_queue_put(e, make(1, 100), 100);
    send_queue_put(e, make(2, 200), 200);
    struct send_item *slow = take(e, 200, 0); /* the only slot */
    CHECK_INT(send_queue_wake_ms(e), 100 + MS_PER_HOUR, "");
    assert_null(send_queue_take(e, 99 + MS_PER_HOUR));
    CHECK_INT(ledger(e).queued, 2, "");
    assert_null(send_queue_take(e, 100 + MS_PER_HOUR));
    CHECK_INT(ledger(e).queued, 1, "");
    CHECK_INT(ledger(e).dropped[DROP_EXPIRED], 1, "");
    done(e, slow, &sent, 100 + MS_PER_HOUR);
    assert_null(send_queue_take(e, 200 + MS_PER_HOUR)); /* with a slot as well */
    CHECK_INT(ledger(e).dropped[DROP_EXPIRED], 2, "");
}

TEST_WITH(test_expiry_behind_the_head, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    send_queue_put(e, make(1, 100), 100);
    send_queue_put(e, make(2, 200), 200);
    done(e, take(e, 200, 1), &unavailable, 200); /* 2, 1 */
    struct send_item *it = take(e, 100 + MS_PER_HOUR, 2);
    CHECK_INT(ledger(e).dropped[DROP_EXPIRED], 1, "");
    done(e, it, &sent, 150 + MS_PER_HOUR);
}

TEST_WITH(test_expired_on_return, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    send_queue_put(e, make(1, 0), 0);
    struct send_item *it = take(e, MS_PER_HOUR - 1, 1);
    done(e, it, &refused, MS_PER_HOUR + 10);
    assert_true(send_queue_wake_ms(e) <= MS_PER_HOUR + 10);
    assert_null(send_queue_take(e, MS_PER_HOUR + 10));
    CHECK_INT(ledger(e).dropped[DROP_EXPIRED], 1, "");
}

/* ---- backoff --------------------------------------------------------------------------------- */

/* A server that is out of order is looked for often, one that asks for peace is left in peace. */
static void check_growth(const struct answer *a, int64_t cap)
{
    SCOPED(send_queue) *e = new_endpoint(16, 1 << 20);
    send_queue_put(e, make(1, 0), 0);
    int64_t now = 0;
    for (unsigned k = 1; k <= 15 && (a->tries == 0 || k < a->tries); k++) {
        char row[32];
        (void)snprintf(row, sizeof(row), "failure %u, cap %d", k, (int)cap);
        struct send_result r = done(e, take(e, now, 1), a, now);
        int64_t low = 500 * (INT64_C(1) << (k - 1));
        int64_t high = 2 * low;
        CHECK_INT(r.failures, k, row);
        CHECK_INT(r.wait_ms >= (low < cap / 2 ? low : cap / 2), true, row);
        CHECK_INT(r.wait_ms <= (high < cap ? high : cap), true, row);
        CHECK_INT(r.outcome, WRITE_RETRIED, row);
        assert_null(send_queue_take(e, now + r.wait_ms - 1));
        CHECK_INT(send_queue_wake_ms(e),
                  now + r.wait_ms < MS_PER_HOUR ? now + r.wait_ms : MS_PER_HOUR, row);
        now += r.wait_ms;
    }
}

TEST_WITH(test_backoff_grows_and_is_capped, setup, teardown)
{
    check_growth(&refused, SEND_QUEUE_PROBE_MS);
    check_growth(&unavailable, SEND_QUEUE_PROBE_MS);
    check_growth(&limited, 300000);
    struct answer late = {
        .class = ANSWER_RETRY, .scope = ANSWER_OF_PROFILE, .answered = true}; /* 408 */
    check_growth(&late, 300000);
}

TEST_WITH(test_jitter_depends_on_the_seed, setup, teardown)
{
    int64_t waits[8];
    size_t different = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct config_endpoint config = {.queue_max_bytes = 1 << 20,
                                         .concurrency = 1,
                                         .min_backoff_ms = 60000,
                                         .max_backoff_ms = 60000};
        SCOPED(send_queue) *e = send_queue_new(&config, seed);
        send_queue_put(e, make(1, 0), 0);
        waits[seed] = done(e, take(e, 0, 1), &refused, 0).wait_ms;
        assert_true(waits[seed] >= 30000 && waits[seed] <= 60000);
        different += seed > 0 && waits[seed] != waits[0];
    }
    assert_true(different > 0);
}

/* Where the next step would be just over the cap, half of the range is kept. */
TEST_WITH(test_jitter_at_the_cap, setup, teardown)
{
    size_t low = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct config_endpoint config = {.queue_max_bytes = 1 << 20,
                                         .concurrency = 1,
                                         .min_backoff_ms = 59999,
                                         .max_backoff_ms = 60000};
        SCOPED(send_queue) *e = send_queue_new(&config, seed);
        send_queue_put(e, make(1, 0), 0);
        int64_t wait = done(e, take(e, 0, 1), &refused, 0).wait_ms;
        assert_true(wait >= 30000 && wait <= 60000);
        low += wait < 59000;
    }
    assert_true(low > 0);
}

/* How many may be in flight at this time; they are dropped. */
static unsigned in_flight_at(struct send_queue *e, int64_t now)
{
    struct send_item *all[64];
    unsigned n = 0;
    while (n < 64 && (all[n] = send_queue_take(e, now)) != NULL) {
        n++;
    }
    for (unsigned i = 0; i < n; i++) {
        send_queue_drop(e, all[i], DROP_MEMORY);
    }
    return n;
}

/* The backlog of an outage must not overload the server at once. */
TEST_WITH(test_pace_behind_an_outage, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(16, 1 << 20);
    put(e, 1, 200, 0);
    CHECK_INT(in_flight_at(e, 0), 16, "no outage: all at once");
    done(e, send_queue_take(e, 0), &refused, 0);
    int64_t now = 5000;
    done(e, send_queue_take(e, now), &sent, now);
    static const unsigned want[] = {1, 2, 4, 8, 16, 16};
    for (size_t i = 0; i < 6; i++) {
        CHECK_INT(in_flight_at(e, now + (int64_t)i * BACKOFF_PACE_MS), want[i], "");
        CHECK_INT(in_flight_at(e, now + (int64_t)(i + 1) * BACKOFF_PACE_MS - 1), want[i], "");
    }
    done(e, send_queue_take(e, now), &refused, now);
    CHECK_INT(send_queue_status(e).probing, false, "open");
    struct send_item *probe = send_queue_take(e, now + 60000);
    CHECK_INT(send_queue_status(e).probing, true, "half open");
    done(e, probe, &sent, now + 60000);
    CHECK_INT(send_queue_status(e).probing, false, "closed");
    CHECK_INT(in_flight_at(e, now + 60000), 1, "after each outage");
    send_queue_drain(e, now + 60000);
    CHECK_INT(in_flight_at(e, now + 60000), 1, "at the end as well");
}

TEST_WITH(test_one_probe_then_all, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(4, 1 << 20);
    put(e, 1, 8, 0);
    done(e, take(e, 0, 1), &refused, 0);
    int64_t now = 5000;
    struct send_item *probe = take(e, now, 1);
    assert_null(send_queue_take(e, now));
    CHECK_INT(send_queue_wake_ms(e), MS_PER_HOUR, "the probe wakes us, not the time");
    struct send_result r = done(e, probe, &refused, now);
    CHECK_INT(r.failures, 2, "");
    CHECK_INT(r.recovered, false, "");
    now += r.wait_ms;
    r = done(e, take(e, now, 1), &sent, now);
    CHECK_INT(r.recovered, true, "");
    CHECK_INT(r.failures, 0, "");
    CHECK_INT(r.queued, 7, "");
    now += 2 * BACKOFF_PACE_MS;
    struct send_item *all[4];
    for (int i = 0; i < 4; i++) {
        all[i] = take(e, now, 2 + i);
    }
    for (int i = 0; i < 4; i++) {
        done(e, all[i], &sent, now);
    }
}

/* Sixteen that fail together are one failure of the endpoint. */
TEST_WITH(test_failures_together_count_once, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(4, 1 << 20);
    put(e, 1, 4, 0);
    struct send_item *all[4];
    for (int i = 0; i < 4; i++) {
        all[i] = take(e, 0, 1 + i);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_INT(done(e, all[i], &refused, i).failures, 1, "");
    }
    assert_true(send_queue_wake_ms(e) <= 1000);
}

TEST_WITH(test_late_success_does_not_end_the_rest, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 1 << 20);
    put(e, 1, 3, 0);
    struct send_item *one = take(e, 0, 1);
    struct send_item *two = take(e, 0, 2);
    struct answer asked = unavailable;
    asked.delay_ms = 30000;
    CHECK_INT(done(e, one, &asked, 0).wait_ms, 30000, "");
    struct send_result r = done(e, two, &sent, 10);
    CHECK_INT(r.recovered, false, "");
    CHECK_INT(r.failures, 1, "");
    assert_null(send_queue_take(e, 29999));
    done(e, take(e, 30000, 3), &sent, 30000);
}

TEST_WITH(test_late_failure_does_not_start_a_rest, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 1 << 20);
    put(e, 1, 3, 0);
    struct send_item *slow = take(e, 0, 1);
    struct send_item *two = take(e, 0, 2);
    done(e, two, &refused, 0);
    done(e, take(e, 2000, 2), &sent, 2000); /* recovered */
    struct answer asked = refused;
    asked.delay_ms = 30000;
    struct send_result r = done(e, slow, &asked, 10000);
    CHECK_INT(r.failures, 0, "");
    CHECK_INT(r.wait_ms, 0, "");
    /* Nor is its delay kept for later. */
    assert_true(done(e, take(e, 10000, 1), &refused, 10000).wait_ms <= 1000);
    done(e, take(e, 11000, 1), &sent, 11000);
}

/* A request that ends late does not make room for a second probe. */
TEST_WITH(test_late_one_beside_the_probe, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(3, 1 << 20);
    put(e, 1, 5, 0);
    struct send_item *late = take(e, 0, 1);
    done(e, take(e, 0, 2), &unavailable, 0);
    struct send_item *probe = take(e, 2000, 3);
    done(e, late, &sent, 2001);
    assert_null(send_queue_take(e, 2002));
    CHECK_INT(done(e, probe, &sent, 2003).recovered, true, "");
    done(e, take(e, 2003, 4), &sent, 2003);
}

TEST_WITH(test_server_delay, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 1, 0);
    struct answer asked = unavailable;
    asked.delay_ms = 120000;
    CHECK_INT(done(e, take(e, 0, 1), &asked, 0).wait_ms, 120000, "");
    /* Shorter than the backoff: the backoff counts. */
    asked.delay_ms = 1;
    assert_true(done(e, take(e, 120000, 1), &asked, 120000).wait_ms >= 1000);
}

TEST_WITH(test_rejection_shows_that_it_lives, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 1 << 20);
    put(e, 1, 3, 0);
    done(e, take(e, 0, 1), &refused, 0);
    struct send_result r = done(e, take(e, 5000, 1), &rejected, 5000);
    CHECK_INT(r.outcome, WRITE_DROPPED, "");
    CHECK_INT(r.reason, DROP_REJECTED, "");
    CHECK_INT(r.recovered, true, "");
    CHECK_INT(ledger(e).dropped[DROP_REJECTED], 1, "");
    done(e, take(e, 5000, 2), &sent, 5000);
}

/* ---- which profile is next ------------------------------------------------------------------- */

TEST_WITH(test_unanswered_keep_their_order, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(3, 1 << 20);
    put(e, 1, 5, 0);
    struct send_item *all[3];
    for (int i = 0; i < 3; i++) {
        all[i] = take(e, 0, 1 + i);
    }
    done(e, all[1], &refused, 0);
    done(e, all[2], &refused, 0);
    done(e, all[0], &refused, 0);
    int64_t now = 5000;
    for (int i = 1; i <= 5; i++) {
        done(e, take(e, now, i), &sent, now);
    }
}

TEST_WITH(test_answered_goes_to_the_end, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 3, 0);
    done(e, take(e, 0, 1), &unavailable, 0);
    int64_t now = 5000;
    done(e, take(e, now, 2), &sent, now);
    done(e, take(e, now, 3), &sent, now);
    done(e, take(e, now, 1), &sent, now);
}

/* A profile that only ever times out must not stop the others. */
TEST_WITH(test_unanswered_for_ever_goes_to_the_end, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 2, 0);
    int64_t now = 0;
    for (int i = 0; i < SEND_QUEUE_UNANSWERED_MAX; i++) {
        now += done(e, take(e, now, 1), &refused, now).wait_ms;
    }
    done(e, take(e, now, 2), &sent, now);
    done(e, take(e, now, 1), &sent, now);
}

/* Tried a bounded number of times, and then dropped and counted. */
TEST_WITH(test_doubtful_has_an_end, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 1, 0);
    int64_t now = 0;
    /* Attempts without an answer say nothing about the profile. */
    for (int i = 0; i < 6; i++) {
        now += done(e, take(e, now, 1), &refused, now).wait_ms;
    }
    struct send_result r = {0};
    for (int i = 1; i <= ANSWER_TRIES; i++) {
        r = done(e, take(e, now, 1), &doubtful, now);
        CHECK_INT(r.outcome, i < ANSWER_TRIES ? WRITE_RETRIED : WRITE_DROPPED, "");
        now += r.wait_ms;
    }
    CHECK_INT(r.reason, DROP_RETRIES, "");
    CHECK_INT(ledger(e).dropped[DROP_RETRIES], 1, "");
}

/* max_attempts ends any failure, also one that is the endpoint's. */
TEST_WITH(test_attempts_have_an_end, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint_with(1, 1 << 20, 3);
    put(e, 1, 1, 0);
    int64_t now = 0;
    struct send_result r = {0};
    for (int i = 1; i <= 3; i++) {
        r = done(e, take(e, now, 1), &unavailable, now);
        CHECK_INT(r.outcome, i < 3 ? WRITE_RETRIED : WRITE_DROPPED, "");
        now += r.wait_ms;
    }
    CHECK_INT(r.reason, DROP_RETRIES, "");
    CHECK_INT(ledger(e).dropped[DROP_RETRIES], 1, "");
}

/* One profile that the server stumbles over, among good ones: all others arrive. */
TEST_WITH(test_poison, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 1 << 20);
    put(e, 0, 50, 0);
    int64_t now = 0;
    for (int step = 0; step < 1000 && ledger(e).queued > 0; step++) {
        struct send_item *it = send_queue_take(e, now);
        if (it != NULL) {
            done(e, it, id_of(it) == 0 ? &doubtful : &sent, now);
        } else {
            now = send_queue_wake_ms(e);
        }
    }
    CHECK_INT(ledger(e).sent, 50, "");
    CHECK_INT(ledger(e).dropped[DROP_RETRIES], 1, "");
}

/* ---- given up, closed, drained --------------------------------------------------------------- */

TEST_WITH(test_drop_of_a_taken_one, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 2, 0);
    send_queue_drop(e, take(e, 0, 1), DROP_LABELS);
    CHECK_INT(ledger(e).dropped[DROP_LABELS], 1, "");
    done(e, take(e, 0, 2), &refused, 0);
    /* A probe that is given up makes room for another. */
    send_queue_drop(e, take(e, 5000, 2), DROP_MEMORY);
    put(e, 3, 3, 5000);
    done(e, take(e, 5000, 3), &sent, 5000);
}

TEST_WITH(test_close, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 1, 0);
    send_queue_close(e);
    put(e, 2, 2, 0);
    struct write_ledger l = ledger(e);
    CHECK_INT(l.accepted, 2, "");
    CHECK_INT(l.queued, 1, "");
    CHECK_INT(l.dropped[DROP_SHUTDOWN], 1, "");
}

TEST_WITH(test_drop_queued, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 5, 0);
    struct send_item *it = take(e, 0, 1);
    send_queue_drop_unsafe(e, DROP_SHUTDOWN);
    CHECK_INT(ledger(e).dropped[DROP_SHUTDOWN], 4, "");
    CHECK_INT(ledger(e).in_flight, 1, "");
    done(e, it, &sent, 0);
}

/* Random operations: the books balance after each, and no bound is ever passed. */
TEST_WITH(test_random_walk, setup, teardown)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        SCOPED(send_queue) *e = new_endpoint(4, 20 * COST);
        struct send_item *flying[4];
        size_t n_flying = 0;
        int64_t now = 0;
        const struct answer *answers[] = {&sent, &refused, &unavailable, &rejected, &doubtful};
        for (int step = 0; step < 2000; step++) {
            now += rng_range(&rng, 0, 2000);
            int64_t what = rng_range(&rng, 0, 10);
            if (what < 4) {
                size_t size = (size_t)rng_range(&rng, 1, (int64_t)(3 * COST));
                send_queue_put(e, make_sized(step, now, size), now);
            } else if (what < 7) {
                struct send_item *it = send_queue_take(e, now);
                if (it != NULL) {
                    flying[n_flying++] = it;
                }
            } else if (n_flying > 0) {
                size_t i = (size_t)rng_range(&rng, 0, (int64_t)n_flying);
                send_queue_done(e, flying[i], answers[rng_range(&rng, 0, 5)], now);
                flying[i] = flying[--n_flying];
            }
            struct write_ledger l = ledger(e);
            CHECK_INT(l.in_flight, n_flying, "");
            assert_true(l.queued_bytes + send_queue_status(e).in_flight_bytes <= 20 * COST);
        }
        while (n_flying > 0) {
            send_queue_drop(e, flying[--n_flying], DROP_SHUTDOWN);
        }
        send_queue_drop_unsafe(e, DROP_SHUTDOWN);
        struct write_ledger l = ledger(e);
        CHECK_INT(l.queued_bytes, 0, "");
        CHECK_INT(send_queue_status(e).in_flight_bytes, 0, "");
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

struct producer {
    struct send_queue *e;
    int first;
};

#define PER_THREAD 2000

static void *produce(void *arg)
{
    struct producer *p = arg;
    for (int i = 0; i < PER_THREAD; i++) {
        send_queue_put(p->e, make(p->first + i, i), i);
    }
    return NULL;
}

TEST_WITH(test_threads, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(8, 50 * COST);
    struct producer producers[2] = {{e, 0}, {e, PER_THREAD}};
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    for (int i = 0; i < 5000; i++) {
        struct send_item *it = send_queue_take(e, 0);
        if (it != NULL) {
            send_queue_done(e, it, i % 3 == 0 ? &rejected : &sent, 0);
        }
        ledger(e);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    send_queue_drop_unsafe(e, DROP_SHUTDOWN);
    struct write_ledger l = ledger(e);
    CHECK_INT(l.accepted, 2 * PER_THREAD, "");
    CHECK_INT(l.sent + dropped_sum(&l), 2 * PER_THREAD, "");
}

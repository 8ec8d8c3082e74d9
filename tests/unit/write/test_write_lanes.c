/* A failure stops the endpoint, one tenant of it, or one profile; and the end of the process deals
 * with each. */
#include "tests/unit/write/send_queue_rig.h"

/* One that answers by itself: 1 in flight at a time, until nothing is left or the time is over. */
static void run(struct send_queue *e, int64_t *now, int64_t until,
                const struct answer *(*answer)(const struct send_item *it))
{
    for (int step = 0; step < 100000 && *now < until; step++) {
        struct send_item *it = send_queue_take(e, *now);
        if (it != NULL) {
            done(e, it, answer(it), *now);
            *now += 1;
            continue;
        }
        int64_t wake = send_queue_wake_ms(e);
        if (wake == INT64_MAX) {
            return;
        }
        assert_true(wake > *now);
        *now = wake < until ? wake : until;
    }
}

static struct sv tenant_of(const struct send_item *it)
{
    return labels_get(send_item_profile(it)->labels, SV(LABEL_TENANT));
}

static void put_of(struct send_queue *e, const char *tenant, int first, int last, int64_t now)
{
    for (int i = first; i <= last; i++) {
        send_queue_put(e, make_of(i, tenant, now, 1024), now);
    }
    ledger(e);
}

/* ---- tenants --------------------------------------------------------------------------------- */

static const struct answer for_a_minute = {.class = ANSWER_RETRY_DOUBTFUL,
                                           .scope = ANSWER_OF_TENANT,
                                           .answered = true,
                                           .tries = ANSWER_RATE_TRIES,
                                           .delay_ms = 60000};

static const struct answer *refuse_bad_tenant(const struct send_item *it)
{
    return sv_eq_str(tenant_of(it), "t0") ? &for_a_minute : &sent;
}

TEST_WITH(test_a_limited_tenant_rests_alone, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(4, 1 << 24);
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 40; i++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "t%d", i);
            put_of(e, name, 100 * round + i, 100 * round + i, 0);
        }
    }
    int64_t now = 0;
    run(e, &now, 59000, refuse_bad_tenant);
    struct send_queue_status s = send_queue_status(e);
    CHECK_INT(s.ledger.sent, 39 * 8, "all of the others");
    CHECK_INT(s.ledger.queued, 8, "");
    CHECK_INT(s.failures, 0, "the endpoint works");
    CHECK_INT(s.lanes.tenants, 40, "");
    CHECK_INT(s.lanes.failing, 1, "");
    CHECK_INT(send_queue_wake_ms(e), 60000, "Retry-After of the first one");
}

/* In turns, whoever has how many; first in, first out for each. */
TEST_WITH(test_tenants_take_turns, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put_of(e, "a", 1, 4, 0);
    put_of(e, "b", 11, 12, 0);
    put_of(e, NULL, 21, 21, 0);
    static const int want[] = {1, 11, 21, 2, 12, 3, 4};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        done(e, take(e, 0, want[i]), &sent, 0);
    }
}

/* The tenant is what the request will say. */
TEST_WITH(test_tenant_of_the_request, setup, teardown)
{
    struct config_pair header = {.name = "x-scope-orgid", .value = "by-header"};
    struct config_pair label = {.name = LABEL_TENANT, .value = "by-label"};
    struct config_endpoint config = {.tenant_id = "", .headers = {.at = &header, .n = 1}};
    CHECK_INT(sv_eq_str(request_tenant(&config, SV("")), "by-header"), true, "");
    config.tenant_id = "by-key";
    CHECK_INT(sv_eq_str(request_tenant(&config, SV("")), "by-key"), true, "");
    CHECK_INT(sv_eq_str(request_tenant(&config, SV("x")), "x"), true, "");
    SCOPED(labels) *l = testing_labels(table, LABEL_TENANT, "own", NULL);
    struct config_pairs external = {.n = 0};
    CHECK_INT(sv_eq_str(series_tenant(l, &external), "own"), true, "");
    external = (struct config_pairs){.at = &label, .n = 1};
    CHECK_INT(sv_eq_str(series_tenant(l, &external), "by-label"), true, "");
    label.value = "no tenant";
    CHECK_INT(series_tenant(l, &external).n, 0, "not valid");
}

/* Beyond so many tenants at a time, further ones share a backoff, and say so. */
TEST_WITH(test_too_many_tenants, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 24);
    for (int i = 0; i < LANES_MAX + 10; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "t%d", i);
        put_of(e, name, i, i, 0);
    }
    CHECK_INT(send_queue_status(e).lanes.tenants, LANES_MAX, "");
    CHECK_INT(send_queue_status(e).shared, 10, "");
    struct send_item *it;
    while ((it = send_queue_take(e, 0)) != NULL) {
        done(e, it, &sent, 0);
    }
    CHECK_INT(ledger(e).sent, LANES_MAX + 10, "");
    /* A tenant without profiles makes room, and one that fails is the last to do so. */
    put_of(e, "t5", 1, 1, 0);
    done(e, take(e, 0, 1), &for_a_minute, 0);
    for (int i = 0; i < LANES_MAX - 1; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "new%d", i);
        put_of(e, name, i, i, 0);
        done(e, take(e, 0, i), &sent, 0);
    }
    CHECK_INT(send_queue_status(e).shared, 10, "no more");
    CHECK_INT(send_queue_status(e).lanes.tenants, LANES_MAX, "");
    CHECK_INT(send_queue_status(e).lanes.failing, 1, "");
}

/* A tenant whose part of the server is down stops the endpoint once, and then only itself. */
static const struct answer *fail_bad_tenant(const struct send_item *it)
{
    return sv_eq_str(tenant_of(it), "bad") ? &unavailable : &sent;
}

TEST_WITH(test_outage_of_one_tenant, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 24);
    int64_t now = 0;
    int64_t rested = 0;
    for (int round = 0; round < 100; round++) {
        put_of(e, "bad", 1000 + round, 1000 + round, now);
        put_of(e, "good", round, round, now);
        run(e, &now, now + 100, fail_bad_tenant);
        rested += send_queue_status(e).failures > 0;
    }
    CHECK_INT(ledger(e).sent, 100, "all of the others");
    assert_true(rested <= 10);
}

/* If all of them are down, that is the endpoint: one request every few seconds. */
static const struct answer *fail_all(const struct send_item *it)
{
    (void)it;
    return &unavailable;
}

TEST_WITH(test_outage_of_all_tenants, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 24);
    put_of(e, "a", 1, 50, 0);
    put_of(e, "b", 51, 100, 0);
    int64_t now = 0;
    run(e, &now, 60000, fail_all);
    uint64_t attempts = 0;
    CHECK_INT(send_queue_status(e).failures > 10, true, "");
    attempts = send_queue_status(e).failures;
    assert_true(attempts <= 30);
    put_of(e, "c", 101, 101, now);
    CHECK_INT(send_queue_wake_ms(e) - now <= SEND_QUEUE_PROBE_MS, true, "looked for soon");
}

/* ---- one profile ----------------------------------------------------------------------------- */

static const struct answer *refuse_fifth(const struct send_item *it)
{
    return id_of(it) % 5 == 0 ? &doubtful : &sent;
}

/* A fifth is refused with doubt: the others arrive at once, and these are given up in the end. */
TEST_WITH(test_a_fifth_is_doubtful, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(4, 1 << 24);
    int64_t now = 0;
    for (int round = 0; round < 20; round++) {
        put(e, 100 * round, 100 * round + 39, now);
        int64_t begin = now;
        run(e, &now, begin + 900, refuse_fifth);
        CHECK_INT(ledger(e).sent, 32 * (round + 1), "the good ones are not held up");
        now = begin + 15000;
    }
    run(e, &now, now + 60000, refuse_fifth);
    CHECK_INT(ledger(e).sent, 32 * 20, "");
    CHECK_INT(ledger(e).dropped[DROP_RETRIES], 8 * 20, "");
}

TEST_WITH(test_doubt_waits_alone, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 3, 0);
    struct answer asked = doubtful;
    asked.delay_ms = 20000;
    struct send_result r = done(e, take(e, 0, 1), &asked, 0);
    CHECK_INT(r.scope, ANSWER_OF_PROFILE, "");
    CHECK_INT(r.wait_ms, 20000, "Retry-After is its own");
    CHECK_INT(send_queue_status(e).waiting, 1, "");
    CHECK_INT(send_queue_status(e).failures, 0, "");
    done(e, take(e, 0, 2), &sent, 0);
    done(e, take(e, 0, 3), &sent, 0);
    CHECK_INT(send_queue_wake_ms(e), 20000, "");
    assert_null(send_queue_take(e, 19999));
    done(e, take(e, 20000, 1), &sent, 20000);
    CHECK_INT(send_queue_status(e).waiting, 0, "");
}

/* One that waits is dropped for age or room like all others. */
TEST_WITH(test_waiting_ones_are_queued, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 3 * COST);
    put(e, 1, 3, 0);
    done(e, take(e, 0, 1), &doubtful, 0);
    put(e, 4, 4, 10);
    struct write_ledger l = ledger(e);
    assert_true(l.queued >= 1 && l.queued <= 3);
    CHECK_INT(l.dropped[DROP_QUEUE_FULL] + l.dropped[DROP_THINNED], 4 - l.queued, "");
    assert_null(send_queue_take(e, MS_PER_HOUR + 10));
    CHECK_INT(ledger(e).dropped[DROP_EXPIRED], l.queued, "");
    CHECK_INT(send_queue_status(e).waiting, 0, "");
}

static const struct answer *refuse_all(const struct send_item *it)
{
    (void)it;
    return &doubtful;
}

/* A server that refuses one profile after the other is at fault itself: it is asked rarely, and
 * loses none of them but the first few. */
TEST_WITH(test_refuses_everything, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(4, 1 << 24);
    put(e, 1, 1000, 0);
    int64_t now = 0;
    run(e, &now, 30 * 60000, refuse_all);
    struct write_ledger l = ledger(e);
    assert_true(dropped_sum(&l) <= SEND_QUEUE_REFUSED_MAX);
    CHECK_INT(send_queue_status(e).lanes.failing, 1, "");
    assert_true(send_queue_wake_ms(e) - now <= SEND_QUEUE_PROBE_MS);
    /* The endpoint answers well again. */
    struct send_item *it = send_queue_take(e, now + SEND_QUEUE_PROBE_MS);
    assert_non_null(it);
    CHECK_INT(done(e, it, &sent, now + SEND_QUEUE_PROBE_MS).tenant_recovered, true, "");
}

static const struct answer *fail_first(const struct send_item *it)
{
    return id_of(it) == 0 ? &unavailable : &sent;
}

/* One that always makes the server look dead stops it once. */
TEST_WITH(test_poison_with_the_words_of_an_outage, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 24);
    int64_t now = 0;
    int64_t rested = 0;
    for (int i = 0; i < 200; i++) {
        put(e, i, i, now);
        run(e, &now, now + 1000, fail_first);
        rested += send_queue_status(e).failures > 0;
    }
    CHECK_INT(ledger(e).sent, 199, "");
    assert_true(rested <= 5); /* until another one has passed */
}

/* A refusal proves nothing about an endpoint that fails, for better or worse. */
TEST_WITH(test_doubt_as_the_answer_to_a_probe, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(2, 1 << 20);
    put(e, 1, 3, 0);
    done(e, take(e, 0, 1), &unavailable, 0);
    struct send_result r = done(e, take(e, 5000, 2), &doubtful, 5000);
    CHECK_INT(r.scope, ANSWER_OF_ENDPOINT, "");
    CHECK_INT(r.failures, 2, "");
    CHECK_INT(r.recovered, false, "");
    r = done(e, take(e, 11000, 3), &limited, 11000);
    CHECK_INT(r.recovered, true, "who limits is there");
    CHECK_INT(r.scope, ANSWER_OF_TENANT, "");
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Puts `each` profiles of every one of n resting tenants, and one of a tenant that works, which is
 * sent at once. */
static void rest_beside(int n, int each, bool deltas)
{
    SCOPED(send_queue) *e = new_endpoint(1, 100 * COST);
    char name[16];
    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "bad%d", i);
        put_of(e, name, i, i, 0);
        done(e, take(e, 0, i), &for_a_minute, 0);
    }
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < n * each; i++) {
            (void)snprintf(name, sizeof(name), "bad%d", i % n);
            struct profile *p = make_of(round, name, round, 1024);
            p->is_delta = deltas;
            send_queue_put(e, p, round);
        }
        struct profile *p = make_of(5000 + round, "good", round, 1024);
        p->is_delta = deltas;
        CHECK_INT(send_queue_put(e, p, round), SEND_TAKEN, "");
        done(e, take(e, round, 5000 + round), &sent, round);
    }
    CHECK_INT(ledger(e).sent, 300, "the good ones lose nothing");
    assert_true(ledger(e).queued_bytes >= 80 * COST); /* the others have what is left */
}

/* Profiles that a tenant cannot send take the room of nobody else. */
TEST_WITH(test_resting_tenants_leave_room, setup, teardown)
{
    rest_beside(1, 5, false);
    rest_beside(1, 5, true);
    rest_beside(3, 5, false);
    rest_beside(3, 5, true);
}

static const struct answer again = {
    .class = ANSWER_RETRY, .scope = ANSWER_OF_PROFILE, .answered = true};

static const struct answer *refuse_fifth_for_ever(const struct send_item *it)
{
    return id_of(it) % 5 == 0 ? &again : &sent;
}

/* Nor do profiles that are refused again and again. */
TEST_WITH(test_suspects_make_room_first, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(4, 100 * COST);
    int64_t now = 0;
    for (int round = 0; round < 200; round++) {
        put(e, 100 * round, 100 * round + 39, now);
        int64_t begin = now;
        run(e, &now, begin + 1000, refuse_fifth_for_ever);
        CHECK_INT(ledger(e).sent, 32 * (round + 1), "");
        now = begin + 15000;
    }
    struct write_ledger l = ledger(e);
    assert_true(l.dropped[DROP_QUEUE_FULL] > 0);
    CHECK_INT(l.dropped[DROP_QUEUE_FULL], dropped_sum(&l), "");
    CHECK_INT(l.dropped[DROP_QUEUE_FULL] + l.queued, 8 * 200, "");
}

/* They are sent when nothing else is there, and not by all at once. */
TEST_WITH(test_suspects_come_last, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(8, 1 << 20);
    put(e, 1, 7, 0);
    struct send_item *all[8];
    for (int i = 0; i < 7; i++) {
        all[i] = take(e, 0, i + 1);
    }
    for (int i = 0; i < 7; i++) {
        done(e, all[i], &again, 0);
    }
    put(e, 11, 12, 2000);
    all[0] = take(e, 2000, 11);
    all[1] = take(e, 2000, 12);
    all[2] = send_queue_take(e, 2000);
    all[3] = send_queue_take(e, 2000);
    assert_true(all[2] != NULL && all[3] != NULL);
    assert_null(send_queue_take(e, 2000)); /* a quarter of eight */
    for (int i = 0; i < 4; i++) {
        done(e, all[i], &sent, 2000);
    }
    assert_non_null(all[0] = send_queue_take(e, 2000));
    done(e, all[0], &sent, 2000);
}

/* ---- the end --------------------------------------------------------------------------------- */

TEST_WITH(test_drain_keeps_its_pauses, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(4, 1 << 20);
    put_of(e, "a", 1, 2, 0);
    put_of(e, "b", 11, 11, 0);
    done(e, take(e, 0, 1), &for_a_minute, 0);
    struct answer asked = doubtful;
    asked.delay_ms = 30000;
    done(e, take(e, 0, 11), &asked, 0);
    send_queue_drain(e, 1000);
    assert_null(send_queue_take(e, 29999));
    CHECK_INT(send_queue_wake_ms(e), 30000, "what the server asked for is kept");
    CHECK_INT(send_queue_rests_until(e, 30000), true, "nothing to be done before");
    CHECK_INT(send_queue_rests_until(e, 30001), false, "");
    done(e, take(e, 30000, 11), &sent, 30000);
    done(e, take(e, 60000, 2), &sent, 60000);
}

/* Rests of our own are short, but not shorter than between any two tries. */
TEST_WITH(test_drain_shortens_rests, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, 1 << 20);
    put(e, 1, 2, 0);
    int64_t now = 0;
    for (int k = 1; k <= 8; k++) {
        now += done(e, take(e, now, k % 2 == 1 ? 1 : 2), &limited, now).wait_ms;
    }
    now += 1;
    struct send_item *it = send_queue_take(e, now);
    assert_non_null(it);
    assert_true(done(e, it, &limited, now).wait_ms > SEND_QUEUE_DRAIN_REST_MS);
    send_queue_drain(e, now);
    CHECK_INT(send_queue_wake_ms(e), now + SEND_QUEUE_DRAIN_REST_MS, "");
    now += SEND_QUEUE_DRAIN_REST_MS;
    it = send_queue_take(e, now);
    assert_non_null(it);
    int64_t wait = done(e, it, &limited, now).wait_ms;
    assert_true(wait >= SEND_QUEUE_DRAIN_REST_MS / 2 && wait <= SEND_QUEUE_DRAIN_REST_MS);
}

/* Nothing is given up for a doubtful answer in the last seconds, and nobody is hammered. */
TEST_WITH(test_drain_counts_no_doubts, setup, teardown)
{
    static const struct answer few = {.class = ANSWER_RETRY_DOUBTFUL,
                                      .scope = ANSWER_OF_PROFILE,
                                      .answered = true,
                                      .tries = ANSWER_FEW_TRIES};
    const struct answer *const all[] = {&few, &doubtful, &limited};
    for (size_t i = 0; i < 3; i++) {
        SCOPED(send_queue) *e = new_endpoint(4, 1 << 20);
        put(e, 1, 50, 0);
        send_queue_drain(e, 0);
        int64_t now = 0;
        int attempts = 0;
        while (now < 20000) {
            struct send_item *it = send_queue_take(e, now);
            if (it != NULL) {
                done(e, it, all[i], now);
                attempts++;
            } else {
                now = send_queue_wake_ms(e);
            }
        }
        struct write_ledger l = ledger(e);
        CHECK_INT(dropped_sum(&l), 0, "");
        CHECK_INT(l.queued, 50, "");
        assert_true(attempts < 40);
    }
}

/* ---- many ------------------------------------------------------------------------------------ */

/* The next one is found without a walk over those that rest. */
TEST_WITH(test_long_queue_of_a_resting_tenant, setup, teardown)
{
    SCOPED(send_queue) *e = new_endpoint(1, UINT64_C(1) << 32);
    int n = 100000;
    put_of(e, "slow", 0, 0, 0);
    done(e, take(e, 0, 0), &for_a_minute, 0);
    for (int i = 1; i < n; i++) {
        send_queue_put(e, make_of(i, "slow", 0, 1), 0);
    }
    for (int i = 0; i < n; i++) {
        send_queue_put(e, make_of(i, "fast", 0, 1), 0);
        struct send_item *it = send_queue_take(e, 0);
        CHECK_INT(id_of(it), i, "");
        send_queue_done(e, it, &sent, 0);
    }
    CHECK_INT(ledger(e).sent, n, "");
}

/* ---- everything at once ---------------------------------------------------------------------- */

static struct answer any_answer(struct rng *rng)
{
    struct answer a = {.class = (enum answer_class)rng_range(rng, 0, 4),
                       .scope = (enum answer_scope)rng_range(rng, 0, 3),
                       .answered = rng_range(rng, 0, 3) > 0,
                       .tries = ANSWER_TRIES};
    if (rng_range(rng, 0, 5) == 0) {
        a.delay_ms = rng_range(rng, 1, 60000);
    }
    return a;
}

/* Any answer to any tenant in any order: the books balance, time alone brings it on, and what is
 * left in the end is sent when the server works. */
static void walk(uint64_t seed)
{
    struct rng rng;
    SCOPED(send_queue) *e = new_endpoint(4, 40 * COST);
    struct send_item *flying[4];
    size_t n = 0;
    int64_t now = 0;
    rng_seed(&rng, seed);
    for (int step = 0; step < 3000; step++) {
        int64_t what = rng_range(&rng, 0, 10);
        if (what < 4) {
            char name[16];
            (void)snprintf(name, sizeof(name), "t%d", (int)rng_range(&rng, 0, 5));
            (void)send_queue_put(e, make_of(step, name, now, (size_t)rng_range(&rng, 1, 4000)),
                                 now);
        } else if (what < 7) {
            while (n < 4 && (flying[n] = send_queue_take(e, now)) != NULL) {
                n++;
            }
            int64_t wake = send_queue_wake_ms(e);
            assert_true(wake > now);
            /* Something will happen: an answer, or the time. */
            assert_true(n > 0 || wake < INT64_MAX || ledger(e).queued == 0);
            if (n == 0 && wake < INT64_MAX) {
                now = wake;
            }
        } else if (n > 0) {
            size_t i = (size_t)rng_range(&rng, 0, (int64_t)n);
            struct answer a = any_answer(&rng);
            send_queue_done(e, flying[i], &a, now);
            flying[i] = flying[--n];
            now += rng_range(&rng, 0, 50);
        }
        struct write_ledger l = ledger(e);
        CHECK_INT(l.in_flight, n, "");
        assert_true(l.queued_bytes + send_queue_status(e).in_flight_bytes <= 40 * COST);
    }
    while (n > 0) {
        send_queue_done(e, flying[--n], &sent, now);
    }
    if (seed % 2 == 0) {
        send_queue_drain(e, now);
    }
    for (int i = 0; i < 1000 && ledger(e).queued > 0; i++) {
        struct send_item *it = send_queue_take(e, now);
        if (it != NULL) {
            send_queue_done(e, it, &sent, now);
        } else {
            now = send_queue_wake_ms(e);
        }
    }
    CHECK_INT(ledger(e).queued, 0, "");
    CHECK_INT(send_queue_status(e).waiting, 0, "");
    CHECK_INT(send_queue_status(e).failures, 0, "");
}

TEST_WITH(test_random_walk, setup, teardown)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        walk(seed);
    }
}

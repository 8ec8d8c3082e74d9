/* When the next scrape is due, and hints for scrapes that sample for too long. Pure logic. */
#include "tests/unit/lib/testing.h"

#include "scraper/next_scrape.h"
#include "scraper/timeout_hint.h"

#define NOW 1000000
#define INTERVAL 15000

static struct next_scrape_input input(enum reason_kind end, int64_t sampling_ms)
{
    return (struct next_scrape_input){
        .end = end,
        .now_ms = NOW,
        .start_ms = NOW - sampling_ms - 7,
        .tick_ms = NOW + INTERVAL - sampling_ms - 7,
        .phase_ms = NOW + 4321,
        .interval_ms = INTERVAL,
        .sampling_ms = sampling_ms,
    };
}

/* However it ended, an ordinary scrape follows its ticks. */
TEST(ordinary)
{
    struct rng rng;
    struct scrape_history c = {0};
    rng_seed(&rng, 1);
    for (int i = 0; i < 20; i++) {
        enum reason_kind end = i % 3 == 0 ? REASON_KIND_FAILURE : REASON_KIND_SUCCESS;
        struct next_scrape_input in = input(end, i % 2 * 14000);
        CHECK_INT(next_scrape_at(&c, &in, &rng), in.tick_ms, "tick");
    }
}

TEST(continuous)
{
    struct rng rng;
    struct scrape_history c = {0};
    rng_seed(&rng, 1);
    struct next_scrape_input in = input(REASON_KIND_SUCCESS, 15000);
    in.continuous = true;
    CHECK_INT(next_scrape_at(&c, &in, &rng), NOW, "at once");
    in.start_ms = NOW - 20; /* it did not sample at all */
    CHECK_INT(next_scrape_at(&c, &in, &rng), NOW - 20 + 15000, "as if it had sampled");
    in.end = REASON_KIND_FAILURE;
    CHECK_INT(next_scrape_at(&c, &in, &rng), in.phase_ms, "a failure waits for the phase");
    in.end = REASON_KIND_ABSENT;
    CHECK_INT(next_scrape_at(&c, &in, &rng), in.phase_ms, "so does this");
}

/* Another client profiles the process: one retry within the interval, if there is time. */
TEST(conflicts)
{
    struct rng rng;
    rng_seed(&rng, 7);
    int64_t lowest = INT64_MAX;
    int64_t highest = 0;
    for (int i = 0; i < 1000; i++) {
        struct scrape_history c = {0};
        struct next_scrape_input in = input(REASON_KIND_CONFLICT, 4000);
        in.tick_ms = NOW + INTERVAL - 10;
        int64_t due = next_scrape_at(&c, &in, &rng);
        assert_true(c.retried);
        lowest = due < lowest ? due : lowest;
        highest = due > highest ? due : highest;
        in.now_ms = due;
        int64_t next = next_scrape_at(&c, &in, &rng);
        assert_false(c.retried);
        assert_true(next >= in.tick_ms && next < in.tick_ms + INTERVAL);
        CHECK_INT(scrape_history_conflicts(&c), 2, "conflicts");
        CHECK_INT(c.attempts, 2, "attempts");
    }
    /* After the other profile has ended, and early enough for ours to end before the next tick. */
    assert_true(lowest >= NOW + 4000 && lowest < NOW + 4200);
    assert_true(highest <= NOW + INTERVAL - 10 - 4000 && highest > NOW + INTERVAL - 4200);
}

/* 14 of 15 seconds: a second attempt has a second to start in. */
TEST(conflicts_with_little_room)
{
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < 1000; i++) {
        struct scrape_history c = {0};
        struct next_scrape_input in = input(REASON_KIND_CONFLICT, 14000);
        in.tick_ms = NOW + INTERVAL - 10;
        int64_t due = next_scrape_at(&c, &in, &rng);
        assert_true(due > NOW + 400 && due <= NOW + 990);
        struct scrape_history full = {0};
        in.sampling_ms = 15000;
        due = next_scrape_at(&full, &in, &rng);
        assert_false(full.retried);
        assert_true(due >= in.tick_ms && due < in.tick_ms + INTERVAL);
    }
}

TEST(history)
{
    struct rng rng;
    struct scrape_history c = {0};
    rng_seed(&rng, 1);
    struct next_scrape_input in = input(REASON_KIND_CONFLICT, 14000);
    for (int i = 0; i < 40; i++) {
        next_scrape_at(&c, &in, &rng);
    }
    CHECK_INT(scrape_history_conflicts(&c), 16, "all of the last");
    CHECK_INT(c.attempts, 16, "attempts");
    in.end = REASON_KIND_SUCCESS;
    for (int i = 0; i < 5; i++) {
        next_scrape_at(&c, &in, &rng);
    }
    CHECK_INT(scrape_history_conflicts(&c), 11, "fewer");
}

TEST(absent)
{
    struct rng rng;
    struct scrape_history c = {0};
    rng_seed(&rng, 3);
    struct next_scrape_input in = input(REASON_KIND_ABSENT, 0);
    for (int i = 0; i < NEXT_SCRAPE_ABSENT_AFTER - 1; i++) {
        CHECK_INT(next_scrape_at(&c, &in, &rng), in.tick_ms, "not yet");
        assert_false(c.absent);
    }
    for (int i = 0; i < 300; i++) { /* more often than a byte can count */
        int64_t wait = next_scrape_at(&c, &in, &rng) - NOW;
        assert_true(c.absent);
        assert_true(wait >= 10 * INTERVAL && wait < 11 * INTERVAL);
    }
    in.end = REASON_KIND_SUCCESS;
    CHECK_INT(next_scrape_at(&c, &in, &rng), in.phase_ms, "there again, in its own phase");
    assert_false(c.absent);
    CHECK_INT(next_scrape_at(&c, &in, &rng), in.tick_ms, "and goes on");
}

/* Any other failure (a restart, for example) ends the absence. */
TEST(absent_ends_with_another_failure)
{
    static const enum reason_kind ends[] = {REASON_KIND_FAILURE, REASON_KIND_CONFLICT};
    for (size_t i = 0; i < 2; i++) {
        struct rng rng;
        struct scrape_history c = {0};
        rng_seed(&rng, 3);
        struct next_scrape_input in = input(REASON_KIND_ABSENT, 0);
        for (int k = 0; k < NEXT_SCRAPE_ABSENT_AFTER; k++) {
            next_scrape_at(&c, &in, &rng);
        }
        in.end = ends[i];
        next_scrape_at(&c, &in, &rng);
        assert_false(c.absent);
        in.end = REASON_KIND_ABSENT;
        next_scrape_at(&c, &in, &rng);
        assert_false(c.absent);
    }
}

/* ---- timeout hints --------------------------------------------------------------------------- */

TEST(timeout_hints)
{
    static const struct {
        const char *row;
        struct timeout_hint_input in;
        enum reason reason;
        const char *advice; /* in the sentence; NULL: the sentence is unchanged */
    } rows[] = {
        {"another type",
         {.reason = REASON_CUT, .type = "memory", .lasted_ms = 14010, .last_cut_ms = 14000},
         REASON_CUT,
         NULL},
        {"Go said so",
         {.reason = REASON_DURATION_TOO_LONG, .status = 400, .type = "fgprof", .seconds = 14},
         REASON_DURATION_TOO_LONG,
         "it failed: set seconds of the profile type fgprof (now 14s) below that WriteTimeout, or "
         "raise it over 14s"},
        {"cut when done",
         {.reason = REASON_CUT,
          .type = "process_cpu",
          .seconds = 14,
          .lasted_ms = 14010,
          .last_cut_ms = -1},
         REASON_DURATION_TOO_LONG,
         "the profile was done and the answer came too late: set seconds of the profile type "
         "process_cpu (now 14s) below the WriteTimeout of the target's server, or raise that over "
         "14s"},
        {"cut in between, once",
         {.reason = REASON_CUT,
          .type = "cpu",
          .seconds = 14,
          .lasted_ms = 10010,
          .last_cut_ms = -1},
         REASON_CUT,
         NULL},
        {"cut in between, at another time",
         {.reason = REASON_CUT,
          .type = "cpu",
          .seconds = 14,
          .lasted_ms = 10010,
          .last_cut_ms = 8000},
         REASON_CUT,
         NULL},
        {"cut in between, always then",
         {.reason = REASON_CUT,
          .type = "cpu",
          .seconds = 14,
          .lasted_ms = 10010,
          .last_cut_ms = 10001},
         REASON_DURATION_TOO_LONG,
         "limits answers to about 10.0 s: set seconds of the profile type cpu (now 14s) to at most "
         "9s, or raise the timeout of the server or proxy over 14s"},
        {"cut at once, always",
         {.reason = REASON_CUT, .type = "cpu", .seconds = 14, .lasted_ms = 3, .last_cut_ms = 2},
         REASON_CUT,
         NULL},
        {"cut within the answer",
         {.reason = REASON_CUT,
          .status = 200,
          .type = "cpu",
          .seconds = 14,
          .lasted_ms = 14010,
          .last_cut_ms = -1},
         REASON_CUT,
         NULL},
        {"a proxy",
         {.reason = REASON_HTTP_504,
          .status = 504,
          .type = "cpu",
          .seconds = 14,
          .lasted_ms = 1500},
         REASON_HTTP_504,
         "limits answers to about 1.5 s: set seconds of the profile type cpu (now 14s) to at most "
         "1s, or raise the timeout of the proxy over 14s"},
        {"a proxy without a backend",
         {.reason = REASON_HTTP_504, .status = 504, .type = "cpu", .seconds = 14, .lasted_ms = 15},
         REASON_HTTP_504,
         NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_NETWORK, "it failed");
        CHECK_STR(reason_name(timeout_hint_find(&rows[i].in, &err)), reason_name(rows[i].reason),
                  rows[i].row);
        CHECK_INT(err.kind, ERR_NETWORK, rows[i].row);
        if (rows[i].advice == NULL) {
            CHECK_STR(err.msg, "it failed", rows[i].row);
        } else {
            CHECK_CONTAINS(err.msg, rows[i].advice, rows[i].row);
        }
    }
}

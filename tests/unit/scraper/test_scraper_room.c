/* Which bodies are read when memory is short. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "scraper/offload.h"
#include "scraper/room.h"

#define MAX ((size_t)1600)
#define MOST ((size_t)1200)
#define JOBS 3
#define GUESTS 64

struct hall {
    struct room room;
    struct offload_queue pending;
    struct room_guest guests[GUESTS];
};

static void hall_begin(struct hall *h)
{
    h->pending.pending_max = 1000;
    assert_true(room_init(&h->room, MAX, &h->pending));
    assert_true(room_grow(&h->room, JOBS));
}

static void hall_end(struct hall *h)
{
    for (size_t i = 0; i < GUESTS; i++) {
        room_leave(&h->room, &h->guests[i]);
    }
    CHECK_INT(h->room.held[ROOM_SMALL] + h->room.held[ROOM_LARGE], 0, "all given back");
    CHECK_INT(h->room.held_slow + h->room.wanted[0] + h->room.wanted[1], 0, "none waits");
    CHECK_INT(h->room.coming[0] + h->room.coming[1], 0, "none is invited");
    CHECK_INT(h->room.reading[0] + h->room.reading[1], 0, "none reads");
    CHECK_INT(h->room.waiting[0] + h->room.waiting[1], 0, "none waits");
    CHECK_INT(h->pending.promised_bytes, 0, "no promise is left");
    room_done(&h->room);
}

FIXTURE(hall, hall_begin, hall_end)

static enum room_answer ask(struct hall *h, size_t i, size_t bytes)
{
    return room_ask(&h->room, &h->guests[i], bytes, 0);
}

/* The number of the next guest that is admitted; -1: none. */
static int next(struct hall *h)
{
    const struct room_guest *g = room_next(&h->room);
    return g == NULL ? -1 : (int)(g - h->guests);
}

static void leave(struct hall *h, size_t i)
{
    room_leave(&h->room, &h->guests[i]);
}

/* A body gets all that it needs or nothing; what was admitted gives its memory to the next. */
TEST_ON(struct hall *h, all_or_nothing)
{
    CHECK_INT(room_most(&h->room), MOST, "a quarter is for small ones");
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(ask(h, i, 500), i < 2 ? ROOM_GRANTED : ROOM_LATER, "two fit");
        CHECK_INT(h->guests[i].held, i < 2 ? 500 : 0, "all or nothing");
    }
    CHECK_INT(next(h), -1, "no room");
    CHECK_INT(ask(h, 3, 500), ROOM_LATER, "asking again changes nothing");
    leave(h, 0);
    CHECK_INT(next(h), 2, "the one that came first");
    CHECK_INT(next(h), -1, "full again");
    leave(h, 3);
    leave(h, 1);
    CHECK_INT(next(h), -1, "a guest that has left does not wait");
    CHECK_INT(ask(h, 9, MOST + 1), ROOM_NEVER, "larger than all together");
    CHECK_INT(ask(h, 9, MOST), ROOM_LATER, "as large as all together");
    leave(h, 2);
    CHECK_INT(next(h), 9, "it fits alone");
}

/* The scrape that was served longest ago comes first, whoever waited first. */
TEST_ON(struct hall *h, turns)
{
    static const uint32_t order[] = {7, 3, 9, 0, 5};
    static const int served[] = {4, 2, 5, 1, 3};
    CHECK_INT(ask(h, 0, MOST), ROOM_GRANTED, "");
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(room_ask(&h->room, &h->guests[i + 1], MOST, order[i]), ROOM_LATER, "");
    }
    leave(h, 0);
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(next(h), served[i], "by turn");
        leave(h, (size_t)served[i]);
    }
}

/* 63 bodies ask in the same order in each interval, and nine of them get memory before their
 * deadline. None is served again before all others were. */
TEST_ON(struct hall *h, nobody_starves)
{
    const size_t last = GUESTS - 1;
    uint32_t turn[GUESTS] = {0};
    unsigned served[GUESTS] = {0};
    uint32_t admissions = 0;
    for (int round = 0; round < 28; round++) {
        CHECK_INT(ask(h, last, MOST), ROOM_GRANTED, "what is still being read");
        for (size_t i = 0; i < last; i++) {
            CHECK_INT(room_ask(&h->room, &h->guests[i], MOST, turn[i]), ROOM_LATER, "");
        }
        int i = (int)last;
        for (int n = 0; n < 9; n++) {
            leave(h, (size_t)i);
            i = next(h);
            turn[i] = ++admissions;
            served[i]++;
        }
        for (size_t k = 0; k < GUESTS; k++) { /* the deadline of all */
            leave(h, k);
        }
    }
    for (size_t i = 0; i < last; i++) {
        CHECK_INT(served[i], 4, "28 rounds of nine are four turns of each");
    }
}

/* The job that holds the least comes first. */
TEST_ON(struct hall *h, jobs_take_turns)
{
    for (size_t i = 0; i < 6; i++) {
        h->guests[i].job = i == 5; /* five of one job, then one of another */
        (void)ask(h, i, 400);
    }
    leave(h, 0);
    CHECK_INT(next(h), 5, "the other job");
    leave(h, 1);
    CHECK_INT(next(h), 3, "the first one again");
}

/* Large bodies leave a quarter to small ones, and small ones do not keep a large one waiting. */
TEST_ON(struct hall *h, small_and_large)
{
    CHECK_INT(room_size_of(&h->room, 100), ROOM_SMALL, "a sixteenth");
    CHECK_INT(room_size_of(&h->room, 101), ROOM_LARGE, "more than that");
    CHECK_INT(ask(h, 0, 600), ROOM_GRANTED, "");
    CHECK_INT(ask(h, 1, 700), ROOM_LATER, "larger than what is left");
    for (size_t i = 2; i < 6; i++) {
        CHECK_INT(ask(h, i, 100), ROOM_GRANTED, "a quarter for small ones");
    }
    CHECK_INT(ask(h, 6, 100), ROOM_LATER, "the rest is for the large one that waits");
    CHECK_INT(ask(h, 7, 200), ROOM_LATER, "no other large one overtakes it");
    leave(h, 0);
    CHECK_INT(next(h), 1, "the large one");
    CHECK_INT(next(h), 7, "the next large one");
    CHECK_INT(next(h), 6, "then small ones may have what is left");
}

/* A body that is being read comes before all that have not begun. */
TEST_ON(struct hall *h, growth_comes_first)
{
    CHECK_INT(ask(h, 0, 500), ROOM_GRANTED, "");
    CHECK_INT(ask(h, 1, 600), ROOM_GRANTED, "");
    CHECK_INT(ask(h, 2, 150), ROOM_LATER, "");
    CHECK_INT(ask(h, 0, 650), ROOM_LATER, "it grows");
    CHECK_INT(h->guests[0].held, 500, "and keeps what it has");
    assert_null(room_victim(&h->room)); /* 1 will end */
    leave(h, 1);
    CHECK_INT(next(h), 0, "the one that grows");
    CHECK_INT(h->guests[0].held, 650, "");
    CHECK_INT(next(h), 2, "");
    CHECK_INT(ask(h, 0, 700), ROOM_GRANTED, "it grows at once if there is room");
}

/* If all of them turn out larger than expected, the last one gives way until one can end. */
TEST_ON(struct hall *h, all_grow)
{
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(ask(h, i, 300), ROOM_GRANTED, "");
    }
    CHECK_INT(ask(h, 4, 300), ROOM_LATER, "");
    for (size_t i = 0; i < 4; i++) {
        assert_null(room_victim(&h->room));
        CHECK_INT(ask(h, i, 600), ROOM_LATER, "");
    }
    CHECK_INT(next(h), -1, "");
    assert_ptr_equal(room_victim(&h->room), &h->guests[3]);
    leave(h, 3);
    CHECK_INT(next(h), 0, "the first one goes on");
    assert_null(room_victim(&h->room));
    leave(h, 0);
    CHECK_INT(next(h), 1, "and the others after it");
    CHECK_INT(next(h), 2, "");
    CHECK_INT(next(h), -1, "none that waits before them");
    leave(h, 1);
    CHECK_INT(next(h), 4, "");
}

/* Small ones that all grow do not lock each other up either. */
TEST_ON(struct hall *h, all_small_ones_grow)
{
    for (size_t i = 0; i < 16; i++) {
        CHECK_INT(ask(h, i, 100), ROOM_GRANTED, "");
    }
    for (size_t i = 0; i < 16; i++) {
        CHECK_INT(ask(h, i, 200), ROOM_LATER, "");
    }
    size_t ended = 0;
    for (size_t given_up = 0; ended + given_up < 16;) {
        int i = next(h);
        struct room_guest *victim = room_victim(&h->room);
        if (i >= 0) {
            leave(h, (size_t)i);
            ended++;
        } else {
            assert_non_null(victim);
            room_leave(&h->room, victim);
            given_up++;
        }
    }
    assert_true(ended >= 9);
}

/* Targets that stop in the middle hold half of the memory at most. */
TEST_ON(struct hall *h, slow_targets)
{
    for (size_t i = 0; i < 4; i++) {
        h->guests[i].slow = true;
        CHECK_INT(ask(h, i, 300), i < 2 ? ROOM_GRANTED : ROOM_LATER, "half of it");
    }
    CHECK_INT(ask(h, 4, 300), ROOM_GRANTED, "a quick one passes those that wait");
    h->guests[5].slow = true;
    leave(h, 0);
    leave(h, 1);
    CHECK_INT(next(h), 2, "");
    CHECK_INT(next(h), 3, "");
    leave(h, 2);
    leave(h, 3);
    leave(h, 4);
    CHECK_INT(ask(h, 5, 1000), ROOM_GRANTED, "one that is larger than half may be alone");
}

/* A body that becomes a delta is not read before there is room for it among those that wait for a
 * worker; others are. */
TEST_ON(struct hall *h, places_of_deltas)
{
    for (size_t i = 0; i < 3; i++) {
        h->guests[i].delta = true;
        CHECK_INT(ask(h, i, 250), i < 2 ? ROOM_GRANTED : ROOM_LATER, "500 of the large ones wait");
    }
    CHECK_INT(h->pending.promised_bytes, 500, "");
    CHECK_INT(ask(h, 3, 250), ROOM_GRANTED, "it is no delta");
    leave(h, 0);
    h->pending.pending_bytes = 250; /* it waits for a worker now */
    CHECK_INT(next(h), -1, "");
    h->pending.pending_bytes = 0;
    CHECK_INT(next(h), 2, "");
    leave(h, 1);
    leave(h, 2);
    h->guests[4].delta = true;
    CHECK_INT(ask(h, 4, 900), ROOM_GRANTED, "it can never wait for a worker, and fails there");
    CHECK_INT(h->guests[4].promised, 0, "");
}

/* Guests that are invited count like those that wait, but not for ever. */
TEST_ON(struct hall *h, invitations)
{
    CHECK_INT(ask(h, 0, MOST), ROOM_GRANTED, "");
    CHECK_INT(ask(h, 1, 600), ROOM_LATER, "");
    assert_false(room_is_crowded(&h->room, ROOM_LARGE));
    room_invite(&h->room, &h->guests[2], 600, 1000);
    assert_true(room_is_crowded(&h->room, ROOM_LARGE));
    assert_false(room_is_crowded(&h->room, ROOM_SMALL));
    room_forget_invited(&h->room, 1000 + ROOM_INVITED_MS - 1);
    assert_true(room_is_crowded(&h->room, ROOM_LARGE));
    room_forget_invited(&h->room, 1000 + ROOM_INVITED_MS);
    assert_false(room_is_crowded(&h->room, ROOM_LARGE));
    CHECK_INT(ask(h, 2, 600), ROOM_LATER, "late, but welcome");
    assert_true(room_is_crowded(&h->room, ROOM_LARGE));
    leave(h, 0);
    CHECK_INT(next(h), 1, "");
    CHECK_INT(next(h), 2, "");
    room_invite(&h->room, &h->guests[3], MOST, 1000);
    assert_false(room_is_crowded(&h->room, ROOM_LARGE)); /* nothing has to wait yet */
}

/* More jobs while guests wait. */
TEST_ON(struct hall *h, jobs_are_added)
{
    CHECK_INT(ask(h, 0, MOST), ROOM_GRANTED, "");
    for (size_t i = 1; i < 6; i++) {
        h->guests[i].job = (uint32_t)i % JOBS;
        CHECK_INT(ask(h, i, 200), ROOM_LATER, "");
    }
    assert_true(room_grow(&h->room, 2 * JOBS));
    h->guests[6].job = 2 * JOBS - 1;
    CHECK_INT(ask(h, 6, 200), ROOM_LATER, "");
    leave(h, 0);
    unsigned n = 0;
    while (next(h) >= 0) {
        n++;
    }
    CHECK_INT(n, 6, "all that waited");
}

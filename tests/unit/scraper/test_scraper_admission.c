/* Scrapes while memory for their bodies is short: who waits, who is held back, and what becomes of
 * them. */
#include "tests/unit/scraper/scraper_world.h"

#define KIB ((size_t)1024)
/* Bodies of 100 KiB are large; six of them fit. */
#define BODIES (800 * KIB)
#define BODY (100 * KIB)
#define STEP_MS 10

static char large_body[BODY];

/* A profile with one long string. */
static void make_body(void)
{
    size_t n = BODY - (sizeof(PROFILE) - 1) - 4;
    char *at = large_body;
    memset(large_body, 'x', BODY);
    memcpy(at, PROFILE, sizeof(PROFILE) - 1);
    at += sizeof(PROFILE) - 1;
    *at++ = 0x32;
    *at++ = (char)(0x80 | (n & 0x7f));
    *at++ = (char)(0x80 | (n >> 7 & 0x7f));
    *at = (char)(n >> 14);
}

static int small_world(void **state)
{
    int code = setup(state);
    struct world *w = *state;
    make_body();
    log_set(testing_log(w->log), LOG_ERROR, LOG_LOGFMT);
    engine_free(w->e);
    w->bodies_max_bytes = BODIES;
    make_engine(w, 0);
    return code;
}

/* The head of a response has come. True if its body may be read. */
static bool head(struct http_transfer *t, uint64_t announced)
{
    size_t need = announced == UINT64_MAX ? 1 : (size_t)announced;
    t->granted = t->on_room(t->arg, need, announced);
    return t->granted >= need;
}

static void succeed_large(struct world *w, struct http_transfer *t)
{
    answer(w, t, HTTP_DONE, 200, large_body, BODY);
}

/* Lets n targets have large profiles, known from a first round without shortage. */
static void add_targets(struct world *w, size_t job, int n)
{
    char at[32][48];
    const char *addresses[33] = {NULL};
    for (int i = 0; i < n; i++) {
        snprintf(at[i], sizeof(at[i]), "t%zu-%d:1", job, i);
        addresses[i] = at[i];
    }
    set(w, job, "s", "1", addresses);
    size_t before = w->n_transfers;
    while (w->n_transfers < before + (size_t)n) {
        succeed_large(w, next_start(w));
    }
    forget_profiles(w);
}

/* Waits until so many transfers are in flight and none has been answered. */
static void start_all(struct world *w, struct http_transfer **out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = next_start(w);
    }
}

/* Six bodies are read at a time; the others wait unread, and get their memory when one ends. */
TEST_WITH(bodies_wait, small_world, teardown)
{
    struct world *w = *state;
    struct http_transfer *t[8];
    add_targets(w, 0, 8);
    start_all(w, t, 8);
    for (size_t i = 0; i < 8; i++) {
        CHECK_INT(head(t[i], BODY), i < 6, "six fit");
    }
    turn(w, 1);
    CHECK_INT(metric(w, "profpull_scrapes_waiting_for_memory{state=\"unread\"}"), 2, "");
    CHECK_INT(engine_memory(w->e).shortage, SHORTAGE_NONE, "not for long yet");
    CHECK_INT(engine_memory(w->e).unread, 2, "");
    w->now_ns += 2 * NS_PER_S;
    CHECK_INT(t[7]->granted + t[6]->granted, 0, "unread");
    succeed_large(w, t[0]);
    CHECK_INT((t[6]->granted > 0) + (t[7]->granted > 0), 1, "one of them");
    CHECK_INT(engine_memory(w->e).shortage, SHORTAGE_MEMORY, "");
    for (size_t i = 1; i < 8; i++) {
        succeed_large(w, t[i]);
    }
    CHECK_INT(w->n_profiles, 8, "all of them");
    CHECK_INT(metric(w, "profpull_scrapes_waiting_for_memory{state=\"unread\"}"), 0, "");
    CHECK_INT(metric(w, "profpull_scrape_memory_wait_seconds_count"), 2, "");
    turn(w, 61 * MS_PER_S);
    CHECK_INT(engine_memory(w->e).shortage, SHORTAGE_NONE, "a minute later");
}

/* A body that waits beyond its deadline fails for lack of memory, not as a timeout of its target;
 * its target does not count as slow. */
TEST_WITH(deadline, small_world, teardown)
{
    struct world *w = *state;
    struct http_transfer *t[7];
    add_targets(w, 0, 7);
    start_all(w, t, 7);
    for (size_t i = 0; i < 7; i++) {
        (void)head(t[i], BODY);
    }
    w->now_ns += 10 * NS_PER_S;
    answer(w, t[6], HTTP_ERR_TIMEOUT, 200, "", 0);
    CHECK_INT(metric(w, "profpull_scrape_failures_total{job=\"one\",reason=\"no_room\"}"), 1, "");
    CHECK_INT(engine_memory(w->e).shortage, SHORTAGE_MEMORY, "");
    for (size_t i = 0; i < 6; i++) {
        succeed_large(w, t[i]);
    }
    next_start(w);
    size_t n = metric(w, "profpull_scrape_slots{class=\"slow\"}");
    while (w->n_transfers < 7 + 7 + 7) {
        next_start(w);
        n = metric(w, "profpull_scrape_slots{class=\"slow\"}");
    }
    CHECK_INT(n, 6, "those that were read for 10 s, and not the one that waited");
}

/* A body that is larger than expected gets more; if all are, the last one gives way. */
TEST_WITH(larger_than_expected, small_world, teardown)
{
    struct world *w = *state;
    struct http_transfer *t[5];
    add_targets(w, 0, 5);
    start_all(w, t, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_true(head(t[i], UINT64_MAX));
        CHECK_INT(t[i]->granted, BODY + BODY / 8 + 1, "as the last one");
    }
    for (size_t i = 0; i < 5; i++) {
        size_t granted = t[i]->on_room(t[i]->arg, t[i]->granted + 1, UINT64_MAX);
        CHECK_INT(granted, t[i]->granted, "it keeps what it has");
    }
    turn(w, 1);
    assert_true(t[4]->cancelled);
    CHECK_INT(t[0]->granted, 2 * (BODY + BODY / 8 + 1), "the first one goes on");
    for (size_t i = 0; i < 4; i++) {
        if (t[i]->live) {
            succeed_large(w, t[i]);
        }
    }
    CHECK_INT(w->n_profiles +
                  metric(w, "profpull_scrape_failures_total{job=\"one\",reason=\"no_room\"}"),
              5, "");
    assert_true(w->n_profiles >= 3);
}

/* A body that is larger than all bodies together may be is refused at its head. */
TEST_WITH(larger_than_all, small_world, teardown)
{
    struct world *w = *state;
    set(w, 0, "s", "1", AT("h:1"));
    struct http_transfer *t = next_start(w);
    CHECK_INT(t->on_room(t->arg, BODIES, BODIES), HTTP_ROOM_NEVER, "");
    answer(w, t, HTTP_ERR_NO_ROOM, 200, "", 0);
    struct scrape_status st = status(w);
    CHECK_STR(reason_name(st.reason), "no_room", "");
    CHECK_CONTAINS(st.last_error, "a body of more than 614400 bytes is never received", "");
    scrape_status_done(&st);
    t = next_start(w);
    CHECK_INT(t->on_room(t->arg, BODIES * 3 / 4, BODIES * 3 / 4), BODIES * 3 / 4, "this one is");
    succeed_large(w, t);
}

/* Bodies that wait go with their targets, and give their place to others. */
TEST_WITH(targets_are_removed, small_world, teardown)
{
    struct world *w = *state;
    struct http_transfer *t[8];
    add_targets(w, 0, 7);
    add_targets(w, 1, 1);
    start_all(w, t, 8);
    for (size_t i = 0; i < 8; i++) {
        (void)head(t[i], BODY);
    }
    size_t waiting = 0;
    for (size_t i = 0; i < 8; i++) {
        waiting += t[i]->granted == 0;
    }
    CHECK_INT(waiting, 2, "");
    set(w, 0, "s", "1", NOTHING);
    CHECK_INT(metric(w, "profpull_scrapes_waiting_for_memory{state=\"unread\"}"), 0, "");
    for (size_t i = 0; i < 8; i++) {
        assert_true(!t[i]->live || t[i]->granted > 0);
    }
}

static void on_drained(void *arg)
{
    *(bool *)arg = true;
}

/* A drain lets bodies that wait for memory end as well, while it has time. */
TEST_WITH(drain, small_world, teardown)
{
    struct world *w = *state;
    struct http_transfer *t[8];
    bool drained = false;
    add_targets(w, 0, 8);
    start_all(w, t, 8);
    for (size_t i = 0; i < 8; i++) {
        (void)head(t[i], BODY);
    }
    engine_drain(w->e, w->now_ns / NS_PER_MS + 9000, on_drained, &drained);
    for (size_t i = 0; i < 7; i++) {
        turn(w, 100);
        succeed_large(w, t[i]);
    }
    assert_true(t[7]->live && t[7]->granted > 0 && !drained);
    succeed_large(w, t[7]);
    assert_true(drained);
    CHECK_INT(w->n_profiles, 8, "");
}

/* A body that grows while the engine drains may give way, and does not end the drain. */
TEST_WITH(growth_in_a_drain, small_world, teardown)
{
    struct world *w = *state;
    struct http_transfer *t[6];
    bool drained = false;
    add_targets(w, 0, 6);
    start_all(w, t, 5);
    for (size_t i = 0; i < 5; i++) {
        (void)head(t[i], UINT64_MAX);
    }
    engine_drain(w->e, w->now_ns / NS_PER_MS + 9000, on_drained, &drained);
    for (size_t i = 0; i < 5; i++) {
        (void)t[i]->on_room(t[i]->arg, t[i]->granted + 1, UINT64_MAX);
    }
    turn(w, 10);
    assert_false(drained);
    assert_true(t[4]->cancelled && t[0]->live);
    turn(w, 9000);
    assert_true(drained);
    for (size_t i = 0; i < 5; i++) {
        assert_false(t[i]->live);
    }
}

/* One step of a world in which responses take 30 ms to come, and 100 ms to be read. */
static void step(struct world *w, int64_t *begun)
{
    turn(w, STEP_MS);
    for (size_t i = 0; i < w->n_transfers; i++) {
        struct http_transfer *t = &w->transfers[i];
        int64_t age_ms = (w->now_ns - t->start_ns) / NS_PER_MS;
        if (!t->live || age_ms < 30) {
            continue;
        }
        if (t->granted == 0 && begun[i] == 0) {
            begun[i] = -1;
            (void)head(t, UINT64_MAX);
        }
        if (t->granted > 0 && begun[i] <= 0) {
            begun[i] = w->now_ns;
        }
        if (begun[i] > 0 && w->now_ns - begun[i] >= 100 * NS_PER_MS) {
            succeed_large(w, t);
        } else if (age_ms >= t->timeout_ms) {
            answer(w, t, HTTP_ERR_TIMEOUT, 200, "", 0);
        }
    }
}

/* Twice as many large profiles as memory lets through: none fails, since further requests are not
 * sent meanwhile, and every target has its turn. */
TEST_WITH(overload, small_world, teardown)
{
    struct world *w = *state;
    static int64_t begun[TRANSFERS_MAX];
    static unsigned served[64];
    memset(begun, 0, sizeof(begun));
    memset(served, 0, sizeof(served));
    w->types[MEMORY].interval_ms = 500;
    for (size_t k = 0; k < 4; k++) {
        char at[16][48];
        const char *addresses[17] = {NULL};
        char source[32];
        snprintf(source, sizeof(source), "s%zu", k);
        for (size_t i = 0; i < 16; i++) {
            snprintf(at[i], sizeof(at[i]), "t%zu:1", k * 16 + i);
            addresses[i] = at[i];
        }
        set(w, 0, source, "1", addresses);
    }
    for (int64_t at = 0; at < 20 * MS_PER_S; at += STEP_MS) {
        step(w, begun);
        forget_profiles(w);
    }
    uint64_t failed =
        metric(w, "profpull_scrapes_total{job=\"one\",type=\"memory\",result=\"failed\"}");
    CHECK_INT(failed, 0, "none fails");
    assert_true(metric(w, "profpull_scrapes_waiting_for_memory{state=\"held_back\"}") > 30);
    CHECK_INT(engine_memory(w->e).shortage, SHORTAGE_MEMORY, "");
    uint64_t all = 0;
    for (size_t i = 0; i < w->n_transfers; i++) {
        unsigned long n = strtoul(w->transfers[i].url + strlen("http://t"), NULL, 10);
        served[n] += !w->transfers[i].live;
        all += !w->transfers[i].live;
    }
    /* Six at a time take 100 ms each, and the steps of the world cost some of that. */
    assert_true(all >= 20 * 40);
    for (size_t i = 0; i < 64; i++) {
        assert_true(served[i] + 1 >= all / 64 && served[i] <= all / 64 + 2);
    }
}

/* A scrape that samples starts on time, however many bodies wait. */
TEST_WITH(sampling_is_not_held_back, small_world, teardown)
{
    struct world *w = *state;
    struct http_transfer *t[14];
    add_targets(w, 0, 20);
    start_all(w, t, 14);
    for (size_t i = 0; i < 14; i++) {
        (void)head(t[i], BODY);
    }
    turn(w, 1);
    size_t before = w->n_transfers;
    w->types[CPU].enabled = true;
    w->types[MEMORY].enabled = false;
    set(w, 1, "cpu", "1", AT("c:1"));
    turn(w, 15000);
    CHECK_INT(w->n_transfers - before, 1, "the others are held back");
    CHECK_CONTAINS(w->transfers[before].url, "/cpu", "");
    assert_true(metric(w, "profpull_scrapes_waiting_for_memory{state=\"held_back\"}") > 0);
}

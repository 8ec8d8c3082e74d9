/* Lists that the server streams as the beginning of a watch. */
#include "tests/unit/discovery/watch_sim.h"

#define STREAM_QUERY                                                                               \
    "watch=1&allowWatchBookmarks=true&timeoutSeconds=T&sendInitialEvents=true"                     \
    "&resourceVersionMatch=NotOlderThan"
#define END(version)                                                                               \
    EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version                              \
                      "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")

static void begin_streaming(struct sim *s)
{
    setup_streaming(s, "", OBJECT_MAX);
}

/* Streams the pods a and b up to version 10. */
static void stream_two(struct sim *s)
{
    STEP(s, .status = 200, .lasted_ms = 300000,
         .body = EVENT("ADDED", POD("a", "7")) EVENT("ADDED", POD("b", "3")) END("10"));
    check_out(s, "begin L:a L:b bookmark end ", "a streamed list");
    CHECK_INT(s->result, WATCH_DONE, "");
}

/* The first list accepts any version, comes as events, and its request continues as the watch. */
TEST_SIM(begin_streaming, test_streamed)
{
    STEP(s, .status = 200, .lasted_ms = 300000,
         .body = EVENT("ADDED", POD("a", "7")) EVENT("BOOKMARK", POD("", "5"))
             EVENT("ADDED", POD("b", "3")) END("10") EVENT("MODIFIED", POD("a", "11"))
                 EVENT("DELETED", POD("b", "12")));
    CHECK_INT(s->is_watch, true, "");
    CHECK_STR(s->query.data, STREAM_QUERY "&resourceVersion=0", "");
    check_out(s, "begin L:a bookmark L:b bookmark end M:a D:b ",
              "another bookmark is not the end of the list");
    CHECK_INT(s->synced, true, "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("12"), "goes on as any watch");
    CHECK_INT(s->waited, 0, "");
}

/* Changes during the list are accepted as they come. */
TEST_SIM(begin_streaming, test_changes_within)
{
    STEP(s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("ADDED", POD("a", "7")) EVENT("ADDED", POD("b", "3"))
             EVENT("MODIFIED", POD("a", "9")) EVENT("DELETED", POD("b", "10")) END("10"));
    check_out(s, "begin L:a L:b L:a D:b bookmark end ", "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("10"), "");
}

/* A relist is streamed, too: no older than the last version, then the latest. */
TEST_SIM(begin_streaming, test_relist_is_streamed)
{
    stream_two(s);
    STEP(s, .status = 410);
    STEP(s, .status = 504, .body = TOO_LARGE);
    CHECK_STR(s->query.data, STREAM_QUERY "&resourceVersion=10", "no older");
    STEP(s, .status = 200, .lasted_ms = 5000, .body = EVENT("ADDED", POD("c", "20")) END("21"));
    CHECK_STR(s->query.data, STREAM_QUERY, "a consistent read");
    CHECK_INT(s->waited, 0, "");
    check_out(s, "relist:expired begin relist:too_large begin L:c bookmark end ", "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("21"), "");
}

/* 400, 403 and 422 to a streamed list lead to a list in pages at once, and from then on. */
TEST(test_refused)
{
    static const long statuses[] = {400, 403, 422};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        SCOPED(sim) s;
        begin_streaming(&s);
        STEP(&s, .status = statuses[i], .body = STATUS("422", "Invalid", "no sendInitialEvents"));
        CHECK_INT(s.result, WATCH_UNSUPPORTED, "");
        CHECK_CONTAINS(s.err.msg, "no sendInitialEvents", "");
        STEP(&s, .status = 200, .body = LIST("10", POD("a", "1")));
        CHECK_STR(s.query.data, "limit=500&resourceVersion=0", "");
        CHECK_INT(s.waited, 0, "at once");
        STEP(&s, .status = 410);
        begin(&s);
        CHECK_STR(s.query.data, RELIST_QUERY("10"), "remembered");
        check_out(&s, "begin begin L:a end relist:expired begin ", "");
    }
}

/* 403 to the stream and to the list is a missing permission, not a lack of streams. */
TEST_SIM(begin_streaming, test_forbidden)
{
    for (int i = 0; i < 3; i++) {
        STEP(s, .status = 403);
        CHECK_INT(s->result, WATCH_UNSUPPORTED, "");
        STEP(s, .status = 403, .body = STATUS("403", "Forbidden", "pods is forbidden"));
        CHECK_INT(s->result, WATCH_FORBIDDEN, "");
        CHECK_INT(s->waited, 0, "");
    }
    buf_clear(&s->out);
    stream_two(s);
    assert_in_range(s->waited, 4 * WATCH_BACKOFF_MIN_MS, 8 * WATCH_BACKOFF_MIN_MS);
}

/* Without the end of the list nothing is removed; after 10 s this is reported, and after 60 s the
 * list is read in pages, and from then on. */
TEST(test_stalled)
{
    static const struct {
        const char *name;
        long status;
        const char *body;
    } cases[] = {
        {"after some objects", 200, EVENT("ADDED", POD("a", "1"))},
        {"before the first", 200, NULL},
        {"no answer at all, as from a proxy that holds it back", 0, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(sim) s;
        begin_streaming(&s);
        stream_two(&s);
        STEP(&s, .status = 410);
        buf_clear(&s.out);
        begin(&s);
        CHECK_INT(watch_tick_at(s.w), s.now + 10000, "");
        CHECK_INT(watch_tick(s.w, s.now + 9999), true, "");
        check_out(&s, "begin ", cases[i].name);
        if (cases[i].status != 0) {
            watch_head(s.w, cases[i].status, "application/json");
        }
        if (cases[i].body != NULL) {
            assert_true(watch_data(s.w, s.now, cases[i].body, strlen(cases[i].body)));
            check_out(&s, "L:a ", cases[i].name);
        }
        CHECK_INT(watch_tick(s.w, s.now + 10000), true, "");
        check_out(&s, "slow ", cases[i].name);
        CHECK_INT(watch_tick_at(s.w), s.now + 60000, "");
        CHECK_INT(watch_tick(s.w, s.now + 59999), true, "");
        check_out(&s, "", "said once");
        CHECK_INT(watch_tick(s.w, s.now + 60000), false, "");
        answer(&s, (struct answer){
                       .status = cases[i].status, .lasted_ms = 60000, .result = HTTP_ERR_ABORTED});
        CHECK_INT(s.result, WATCH_UNSUPPORTED, cases[i].name);
        CHECK_STR(s.err.msg, "the streamed list has made no progress for 1m and is not complete",
                  "");
        STEP(&s, .status = 200, .body = LIST("30", POD("b", "1")));
        CHECK_STR(s.query.data, RELIST_QUERY("10"), cases[i].name);
        CHECK_INT(s.waited, 0, "");
        check_out(&s, "begin L:b end ", cases[i].name);
    }
}

/* A list may take long while its objects come. Other events do not count: a server that does not
 * know of streamed lists sends them for ever. */
TEST_SIM(begin_streaming, test_slow_list)
{
    begin(s);
    watch_head(s->w, 200, "application/json");
    int64_t from = s->now;
    static const char added[] = EVENT("ADDED", POD("a", "1"));
    static const char changed[] = EVENT("MODIFIED", POD("a", "2"));
    for (; s->now - from < 180000; s->now += 20000) {
        CHECK_INT(watch_tick(s->w, s->now), true, "");
        assert_true(watch_data(s->w, s->now, added, sizeof(added) - 1));
        CHECK_INT(watch_tick_at(s->w) > s->now, true, "");
    }
    /* Half an object is progress, too. */
    assert_true(watch_data(s->w, s->now, added, 20));
    int64_t last = s->now;
    assert_true(watch_data(s->w, s->now, added + 20, sizeof(added) - 1 - 20));
    for (; s->now - last < 60000; s->now += 20000) {
        CHECK_INT(watch_tick(s->w, s->now), true, "");
        assert_true(watch_data(s->w, s->now, changed, sizeof(changed) - 1));
    }
    CHECK_INT(watch_tick_at(s->w), last + 60000, "");
    CHECK_INT(watch_tick(s->w, s->now), false, "");
    answer(s, (struct answer){.status = 200, .result = HTTP_ERR_ABORTED});
    CHECK_INT(s->result, WATCH_UNSUPPORTED, "");
    buf_clear(&s->out);
    STEP(s, .status = 200, .body = LIST("30", POD("b", "1")));
    CHECK_STR(s->query.data, "limit=500&resourceVersion=0", "");
    check_out(s, "begin L:b end ", "");
}

/* Neither a complete list nor a list in pages is checked for a stall. */
TEST_SIM(begin_streaming, test_no_tick)
{
    begin(s);
    watch_head(s->w, 200, "application/json");
    static const char end[] = END("10");
    assert_true(watch_data(s->w, s->now, end, sizeof(end) - 1));
    CHECK_INT(watch_tick_at(s->w) == INT64_MAX, true, "");
    CHECK_INT(watch_tick(s->w, s->now + 600000), true, "");
    check_out(s, "begin bookmark end ", "");
    answer(s, (struct answer){.status = 200, .lasted_ms = 600000});
    begin(s);
    CHECK_INT(watch_tick_at(s->w) == INT64_MAX, true, "");
}

/* A stream that breaks off before the end of the list removes nothing, and that list, but not the
 * next one, is read in pages. */
TEST(test_broken_off)
{
    static const struct {
        const char *name;
        long status;
        const char *body;
        enum http_result result;
    } cases[] = {
        {"cut", 200, EVENT("ADDED", POD("a", "1")) "{\"type\"", HTTP_ERR_CUT},
        {"ended", 200, EVENT("ADDED", POD("a", "1")), HTTP_DONE},
        {"an end without a version", 200, EVENT("ADDED", POD("a", "1")) END(""), HTTP_DONE},
        {"an error", 200,
         EVENT("ADDED", POD("a", "1")) EVENT("ERROR", STATUS("500", "InternalError", "etcd")),
         HTTP_DONE},
        {"500", 500, "", HTTP_DONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(sim) s;
        begin_streaming(&s);
        stream_two(&s);
        STEP(&s, .status = 410);
        STEP(&s, .status = cases[i].status, .body = cases[i].body, .result = cases[i].result,
             .lasted_ms = 5000);
        CHECK_INT(s.result, WATCH_FAILED, cases[i].name);
        assert_null(strstr(s.out.data, "end "));
        buf_clear(&s.out);
        STEP(&s, .status = 200, .body = LIST("30", POD("b", "1")));
        CHECK_STR(s.query.data, RELIST_QUERY("10"), cases[i].name);
        assert_in_range(s.waited, WATCH_BACKOFF_MIN_MS, 4 * WATCH_BACKOFF_MIN_MS);
        check_out(&s, "begin L:b end ", cases[i].name);
        STEP(&s, .status = 410);
        begin(&s);
        CHECK_STR(s.query.data, STREAM_QUERY "&resourceVersion=30", "the next one is streamed");
    }
}

/* An unreachable or throttling server is asked for the stream again. */
TEST_SIM(begin_streaming, test_away)
{
    STEP(s, .result = HTTP_ERR_CONNECT);
    CHECK_INT(s->result, WATCH_UNREACHABLE, "");
    begin(s);
    CHECK_STR(s->query.data, STREAM_QUERY "&resourceVersion=0", "");
    assert_in_range(s->waited, WATCH_BACKOFF_MIN_MS, 2 * WATCH_BACKOFF_MIN_MS);
}

/* A server that cannot stream any version is asked for pages. */
TEST_SIM(begin_streaming, test_never_fresh)
{
    STEP(s, .status = 504, .body = TOO_LARGE);
    STEP(s, .status = 504, .body = TOO_LARGE);
    CHECK_STR(s->query.data, STREAM_QUERY, "the latest");
    begin(s);
    CHECK_STR(s->query.data, "limit=500", "in pages");
    assert_in_range(s->waited, WATCH_BACKOFF_MIN_MS, 2 * WATCH_BACKOFF_MIN_MS);
}

/* Nothing is lost when memory runs out within a streamed list: the list does not end. */
TEST_SIM(begin_streaming, test_no_memory)
{
    s->no_memory = true;
    STEP(s, .status = 200, .body = EVENT("ADDED", POD("heavy", "1")) END("10"));
    CHECK_INT(s->result, WATCH_FAILED, "");
    CHECK_STR(s->err.msg, "out of memory", "");
    check_out(s, "begin ", "");
    CHECK_INT(s->synced, false, "");
}

MAIN_IN_BOTH_ENCODINGS()

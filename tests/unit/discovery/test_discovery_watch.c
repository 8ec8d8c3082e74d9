/* The list-and-watch state machine against a scripted server: no socket, no clock. */
#include "tests/unit/discovery/watch_sim.h"

/* ---- normal operation ------------------------------------------------------------------------ */

TEST_SIM(paged, test_list_then_watch)
{
    CHECK_INT(s->synced, false, "");
    list_two(s);
    CHECK_STR(s->query.data, "limit=500&resourceVersion=0", "the first list takes any version");
    CHECK_INT(s->waited, 0, "");
    CHECK_INT(s->timeout_ms, 3600000, "a list may take long");
    CHECK_INT(s->progress_timeout_ms, 120000, "while it makes progress");
    CHECK_INT(s->synced, true, "");
    STEP(s, .status = 200, .lasted_ms = 300000,
         .body = EVENT("ADDED", POD("c", "11")) EVENT("MODIFIED", POD("a", "12"))
             EVENT("DELETED", POD("b", "13")));
    CHECK_INT(s->is_watch, true, "");
    CHECK_INT(s->progress_timeout_ms, 0, "a watch may be silent");
    CHECK_INT(s->waited, 0, "");
    CHECK_STR(s->query.data, WATCH_QUERY("10"), "");
    check_out(s, "A:c M:a D:b ", "");
    STEP(s, .status = 200, .lasted_ms = 300000);
    CHECK_INT(s->waited, 0, "a clean end is no failure");
    CHECK_STR(s->query.data, WATCH_QUERY("13"), "goes on from the last event");
    CHECK_INT(s->result, WATCH_DONE, "a quiet watch is one, too");
}

TEST(test_selectors)
{
    SCOPED(sim) s;
    setup(&s, "labelSelector=a%3Db");
    list_two(&s);
    CHECK_STR(s.query.data, "labelSelector=a%3Db&limit=500&resourceVersion=0", "");
    begin(&s);
    CHECK_STR(s.query.data, "labelSelector=a%3Db&" WATCH_QUERY("10"), "");
}

TEST_SIM(paged, test_versions_are_opaque)
{
    STEP(s, .status = 200, .body = LIST("zz/9&x=1", ""));
    STEP(s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("ADDED", POD("c", "B")) EVENT("ADDED", POD("d", "A")));
    CHECK_STR(s->query.data, WATCH_QUERY("zz%2F9%26x%3D1"), "encoded");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("A"), "the last, not the largest");
}

TEST_SIM(listed, test_versions_not_believed)
{
    STEP(s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("ADDED", "{\"metadata\":{\"name\":\"c\",\"resourceVersion\":77}}")
             EVENT("ADDED", "{\"metadata\":{\"name\":\"d\",\"resourceVersion\":\"\"}}")
                 EVENT("ADDED", "{\"metadata\":{\"name\":\"e\"}}") EVENT("ADDED", "{}"));
    check_out(s, "A:c A:d A:e A:? ", "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("10"), "");
}

TEST_SIM(paged, test_pages)
{
    STEP(s, .status = 200, .body = PAGE("10", "t=1", POD("a", "1")));
    check_out(s, "begin L:a ", "nothing is removed by a part");
    CHECK_INT(s->synced, false, "");
    STEP(s, .status = 200, .body = PAGE("10", "t=2", POD("b", "1")));
    CHECK_STR(s->query.data, "limit=500&continue=t%3D1", "no version with a continue token");
    STEP(s, .status = 200, .body = PAGE("12", "", POD("c", "1")));
    CHECK_STR(s->query.data, "limit=500&continue=t%3D2", "");
    check_out(s, "L:b L:c end ", "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("10"), "from the first page's version nothing is missed");
}

/* A watch that has only received bookmarks resumes from the last one and replays nothing. */
TEST_SIM(listed, test_bookmarks)
{
    STEP(s, .status = 200, .lasted_ms = 600000, .result = HTTP_ERR_CUT,
         .body = EVENT("BOOKMARK", POD("", "20")) EVENT("BOOKMARK", POD("", "30")));
    check_out(s, "bookmark bookmark ", "");
    CHECK_INT(s->result, WATCH_DONE, "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("30"), "resumes from the bookmark");
}

/* ---- the server is unreachable --------------------------------------------------------------- */

/* A server that refuses connections for 60 s gets at most 10 requests, and the watch then continues
 * from its version without a list. */
TEST_SIM(listed, test_refused_connections)
{
    int64_t from = s->now;
    int attempts = 0;
    int64_t base = WATCH_BACKOFF_MIN_MS;
    while (s->now - from < 60000) {
        STEP(s, .result = HTTP_ERR_CONNECT);
        CHECK_INT(s->result, WATCH_UNREACHABLE, "");
        CHECK_STR(s->err.msg, "no luck", "");
        CHECK_STR(s->query.data, WATCH_QUERY("10"), "no list");
        if (attempts > 0) {
            assert_in_range(s->waited, base, 2 * base - 1);
            base = 2 * base < WATCH_BACKOFF_MAX_MS ? 2 * base : WATCH_BACKOFF_MAX_MS;
        }
        attempts++;
    }
    assert_in_range(attempts, 4, 10);
    STEP(s, .status = 200, .lasted_ms = 5000, .body = EVENT("ADDED", POD("c", "11")));
    CHECK_STR(s->query.data, WATCH_QUERY("10"), "");
    check_out(s, "A:c ", "no list was made");
}

TEST_SIM(paged, test_backoff_grows_to_its_cap)
{
    for (int i = 0; i < 40; i++) {
        STEP(s, .result = HTTP_ERR_CONNECT);
    }
    assert_in_range(s->waited, WATCH_BACKOFF_MAX_MS, 2 * WATCH_BACKOFF_MAX_MS - 1);
    CHECK_STR(s->query.data, "limit=500&resourceVersion=0", "the first list is still to be made");
}

TEST_SIM(listed, test_backoff_is_forgotten)
{
    for (int i = 0; i < 6; i++) {
        STEP(s, .result = HTTP_ERR_CONNECT);
    }
    STEP(s, .status = 200, .lasted_ms = 3000);
    STEP(s, .result = HTTP_ERR_CONNECT);
    begin(s);
    assert_in_range(s->waited, WATCH_BACKOFF_MAX_MS - 5000, 2 * WATCH_BACKOFF_MAX_MS);
    answer(s, (struct answer){.status = 200, .lasted_ms = WATCH_BACKOFF_RESET_MS});
    STEP(s, .result = HTTP_ERR_CONNECT);
    begin(s);
    assert_in_range(s->waited, WATCH_BACKOFF_MIN_MS, 2 * WATCH_BACKOFF_MIN_MS - 1);
}

/* A watch that is cut within an object drops the half and continues from the last complete event,
 * without a list. */
TEST_SIM(listed, test_cut_in_an_object)
{
    STEP(s, .status = 200, .lasted_ms = 5000, .result = HTTP_ERR_CUT,
         .body = EVENT("ADDED", POD("c", "11")) "{\"type\":\"ADDED\",\"object\":{\"meta");
    CHECK_INT(s->result, WATCH_DONE, "");
    check_out(s, "A:c ", "the half object is not reported");
    STEP(s, .status = 200, .lasted_ms = 5000, .body = EVENT("ADDED", POD("d", "12")));
    CHECK_STR(s->query.data, WATCH_QUERY("11"), "no list");
    check_out(s, "A:d ", "");
}

/* Watches that end after 0.1 s count as errors, so that there is less than one request per second.
 */
TEST_SIM(listed, test_short_watches)
{
    int64_t from = s->now;
    int requests = 0;
    while (s->now - from < 120000) {
        begin(s);
        /* The list after several failures does not help either. */
        if (s->is_watch) {
            answer(s, (struct answer){.status = 200, .lasted_ms = 100});
            CHECK_INT(s->result, WATCH_FAILED, "");
            CHECK_STR(s->err.msg, "the watch ended after 100 ms without an event", "");
        } else {
            answer(s, (struct answer){.status = 200, .body = LIST("10", "")});
        }
        requests++;
    }
    assert_in_range(requests, 4, 20);
}

/* Short watches with events are fine, but at most one per second. */
TEST_SIM(listed, test_short_watches_with_events)
{
    for (int i = 0; i < 10; i++) {
        STEP(s, .status = 200, .lasted_ms = 1, .body = EVENT("BOOKMARK", POD("", "11")));
        CHECK_INT(s->result, WATCH_DONE, "");
        CHECK_INT(s->waited, i == 0 ? 0 : WATCH_SHORT_MS - 1, "");
    }
}

/* ---- the server refuses ---------------------------------------------------------------------- */

/* After 429 with Retry-After: 7 the watch continues from its version after at least 7 s, without a
 * list. */
TEST_SIM(listed, test_throttled)
{
    for (int i = 0; i < 12; i++) {
        STEP(s, .status = 429, .retry_after_ms = 7000,
             .body = STATUS("429", "TooManyRequests", "slow down"));
        CHECK_INT(s->result, WATCH_THROTTLED, "");
        CHECK_STR(s->err.msg, "the server answered 429: slow down", "");
        CHECK_STR(s->query.data, WATCH_QUERY("10"), "the version is kept");
        if (i > 0) {
            assert_in_range(s->waited, 7000, 2 * WATCH_BACKOFF_MAX_MS);
        }
    }
    check_out(s, "", "no list");
    STEP(s, .status = 429, .retry_after_ms = INT64_C(1000000000));
    begin(s);
    CHECK_INT(s->waited, WATCH_RETRY_AFTER_MAX_MS, "nonsense is capped");
}

TEST_SIM(paged, test_throttled_page)
{
    STEP(s, .status = 200, .body = PAGE("10", "t1", POD("a", "1")));
    STEP(s, .status = 429, .retry_after_ms = 7000);
    STEP(s, .result = HTTP_ERR_CUT, .status = 200, .body = "{\"items\":[" POD("b", "1"));
    CHECK_INT(s->result, WATCH_FAILED, "");
    CHECK_STR(s->err.msg, "the list broke off: no luck", "");
    STEP(s, .status = 503);
    STEP(s, .status = 200, .body = LIST("10", POD("b", "1")));
    CHECK_STR(s->query.data, "limit=500&continue=t1", "the page is asked for again");
    check_out(s, "begin L:a L:b L:b end ", "");
}

/* A page that the server will not send makes the list start over. */
TEST_SIM(paged, test_page_refused)
{
    STEP(s, .status = 200, .body = PAGE("10", "t1", POD("a", "1")));
    STEP(s, .status = 400, .body = STATUS("400", "BadRequest", "continue key is not valid"));
    STEP(s, .status = 200, .body = LIST("11", POD("b", "1")));
    CHECK_STR(s->query.data, "limit=500", "");
    assert_in_range(s->waited, WATCH_BACKOFF_MIN_MS, 2 * WATCH_BACKOFF_MIN_MS);
    check_out(s, "begin L:a relist:page_expired begin L:b end ", "");
}

/* 403 and 401 remove nothing, and are retried ever more slowly. */
TEST_SIM(listed, test_forbidden)
{
    STEP(s, .status = 403, .body = STATUS("403", "Forbidden", "pods is forbidden"));
    CHECK_INT(s->result, WATCH_FORBIDDEN, "");
    CHECK_STR(s->err.msg, "the server answered 403: pods is forbidden", "");
    STEP(s, .status = 401, .body = "Unauthorized\n");
    CHECK_INT(s->result, WATCH_UNAUTHORIZED, "");
    CHECK_STR(s->err.msg, "the server answered 401: Unauthorized", "text that is no Status");
    begin(s);
    assert_in_range(s->waited, 2 * WATCH_BACKOFF_MIN_MS, 4 * WATCH_BACKOFF_MIN_MS - 1);
    check_out(s, "", "nothing is removed");
}

/* Consecutive answers that are no watch lead to a new list: the version may be the reason. */
TEST_SIM(listed, test_watch_keeps_failing)
{
    for (int i = 0; i < WATCH_FAILURES_MAX; i++) {
        STEP(s, .status = 500, .body = STATUS("500", "InternalError", "x"));
        CHECK_STR(s->query.data, WATCH_QUERY("10"), "");
    }
    check_out(s, "relist:failures ", "");
    begin(s);
    CHECK_STR(s->query.data, RELIST_QUERY("10"), "no older than what was seen");
    assert_in_range(s->waited, 12800, 25600);
}

/* Failures that are not consecutive lead to no list. */
TEST_SIM(listed, test_watch_fails_now_and_then)
{
    for (int i = 0; i < 3 * WATCH_FAILURES_MAX; i++) {
        STEP(s, .status = 500);
        if (i % 3 == 0) {
            STEP(s, .status = 200, .lasted_ms = 5000);
        }
    }
    check_out(s, "", "");
}

/* ---- expired --------------------------------------------------------------------------------- */

/* 410, as a status or as an event, leads to one list no older than the last version. */
TEST(test_expired)
{
    static const struct {
        const char *name;
        long status;
        const char *body;
    } cases[] = {
        {"status 410", 410, STATUS("410", "Expired", "too old resource version")},
        {"status 410 without a text", 410, ""},
        {"an event", 200, EVENT("ERROR", STATUS("410", "Gone", "too old"))},
        {"an event without a code", 200, EVENT("ERROR", "{\"reason\":\"Expired\"}")},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(sim) s;
        setup(&s, "");
        list_two(&s);
        STEP(&s, .status = cases[i].status, .body = cases[i].body, .lasted_ms = 10);
        CHECK_INT(s.result, WATCH_EXPIRED, cases[i].name);
        buf_clear(&s.out);
        STEP(&s, .status = 200, .body = LIST("90", POD("b", "2") "," POD("c", "80")));
        CHECK_INT(s.waited, 0, cases[i].name);
        CHECK_STR(s.query.data, RELIST_QUERY("10"), cases[i].name);
        check_out(&s, "begin L:b L:c end ", cases[i].name);
        begin(&s);
        CHECK_STR(s.query.data, WATCH_QUERY("90"), cases[i].name);
        CHECK_INT(s.waited, 0, cases[i].name);
    }
}

/* A list that is refused with 410 as well is followed by one of the latest version, at once. */
TEST_SIM(listed, test_expired_twice)
{
    STEP(s, .status = 410);
    STEP(s, .status = 410);
    CHECK_STR(s->query.data, RELIST_QUERY("10"), "");
    STEP(s, .status = 410);
    CHECK_STR(s->query.data, "limit=500", "then the most recent version");
    CHECK_INT(s->waited, 0, "without a pause");
    check_out(s, "relist:expired begin relist:expired begin ", "");
    STEP(s, .status = 410);
    CHECK_STR(s->query.data, "limit=500", "");
    assert_in_range(s->waited, WATCH_BACKOFF_MIN_MS, 4 * WATCH_BACKOFF_MIN_MS);
}

/* Each list expires at once: the first relist is immediate, the next ones are not. */
TEST_SIM(listed, test_expired_loop)
{
    int64_t from = s->now;
    int lists = 0;
    while (s->now - from < 120000) {
        STEP(s, .status = 410);
        STEP(s, .status = 200, .body = LIST("10", ""));
        lists++;
    }
    assert_in_range(lists, 3, 12);
}

/* 410 on a later page leads to one list without pages; the pages read before remove nothing. */
TEST_SIM(paged, test_expired_page)
{
    STEP(s, .status = 200, .body = PAGE("10", "t1", POD("a", "1")));
    STEP(s, .status = 200, .body = PAGE("10", "t2", POD("b", "1")));
    STEP(s, .status = 410, .body = STATUS("410", "Expired", "x"));
    check_out(s, "begin L:a L:b relist:page_expired ", "");
    STEP(s, .status = 200, .body = LIST("20", POD("b", "1") "," POD("c", "15")));
    CHECK_STR(s->query.data, "", "all at once, as it is now");
    CHECK_INT(s->waited, 0, "");
    check_out(s, "begin L:b L:c end ", "a new list from its beginning");
    STEP(s, .status = 200, .lasted_ms = 5000);
    CHECK_STR(s->query.data, WATCH_QUERY("20"), "");
    STEP(s, .status = 410);
    STEP(s, .status = 410);
    begin(s);
    CHECK_STR(s->query.data, "limit=500", "the next list is in pages again");
}

/* A watch waits for a server that lags; a list that it refuses becomes a consistent read, so that
 * nothing older than the last version is ever listed. */
TEST_SIM(listed, test_too_large_version)
{
    STEP(s, .status = 504, .body = TOO_LARGE);
    check_out(s, "", "a watch waits for the server, it makes no list");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("10"), "");
    assert_in_range(s->waited, 1000, 2 * WATCH_BACKOFF_MIN_MS);
    answer(s, (struct answer){.status = 410});
    buf_clear(&s->out);
    STEP(s, .status = 504, .body = TOO_LARGE);
    CHECK_STR(s->query.data, RELIST_QUERY("10"), "");
    check_out(s, "begin relist:too_large ", "");
    STEP(s, .status = 200, .body = LIST("12", POD("a", "1")));
    CHECK_STR(s->query.data, "limit=500", "a quorum read, not whatever is there");
    CHECK_INT(s->waited, 0, "");
    STEP(s, .status = 504,
         .body = "{\"code\":504,\"message\":\"Too large resource version: 12, current: 9\"}");
    CHECK_STR(s->query.data, WATCH_QUERY("12"), "");
    check_out(s, "begin L:a end ", "the old servers' form is known, too");
}

TEST_SIM(listed, test_error_events)
{
    STEP(s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("ADDED", POD("c", "11"))
             EVENT("ERROR", STATUS("500", "InternalError", "etcd")) EVENT("ADDED", POD("d", "12")));
    check_out(s, "A:c error ", "what follows an error is not read");
    CHECK_INT(s->result, WATCH_FAILED, "");
    CHECK_STR(s->err.msg, "the watch ended with the error 500: etcd", "");
    STEP(s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("ERROR", "{\"code\":429,\"details\":{\"retryAfterSeconds\":9}}"));
    CHECK_STR(s->query.data, WATCH_QUERY("11"), "");
    CHECK_INT(s->result, WATCH_THROTTLED, "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("11"), "");
    assert_in_range(s->waited, 9000, 9000);
}

/* ---- malformed answers ----------------------------------------------------------------------- */

TEST_SIM(listed, test_bad_events)
{
    char filler[OBJECT_MAX + 1];
    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    char body[2 * OBJECT_MAX];
    snprintf(body, sizeof(body), EVENT("ADDED", "{\"metadata\":{\"uid\":\"%s\"}}") "%s", filler,
             EVENT("ADDED", POD("f", "16")));
    STEP(s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("SYNC", POD("x", "11")) EVENT("ADDED", "{\"metadata\":{\"name\":nil}}")
             EVENT("ADDED", "[1]") "{\"type\":7}\n{\"object\":{}}\n<html>\n{}\n" EVENT(
                 "ADDED", POD("e", "15")));
    check_out(s, "unknown:SYNC skip2 skip2 unknown: unknown: skip2 unknown: A:e ", "");
    CHECK_INT(s->result, WATCH_DONE, "");
    STEP(s, .status = 200, .lasted_ms = 5000, .body = body);
    CHECK_STR(s->query.data, WATCH_QUERY("15"), "");
    check_out(s, "skip0 A:f ", "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("16"), "");
}

/* Answers with status 200 that are no list remove nothing, and no watch follows. */
TEST(test_bad_lists)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "{\"items\":[]}",
        "{\"metadata\":{\"resourceVersion\":\"10\"}}",
        "{\"metadata\":{\"resourceVersion\":10},\"items\":[]}",
        "{\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}",
        "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[",
        "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}}",
        "[]",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        SCOPED(sim) s;
        setup(&s, "");
        STEP(&s, .status = 200, .body = bodies[i]);
        CHECK_INT(s.result, WATCH_FAILED, bodies[i]);
        check_out(&s, "begin ", bodies[i]);
        begin(&s);
        CHECK_INT(s.is_watch, false, bodies[i]);
        assert_in_range(s.waited, WATCH_BACKOFF_MIN_MS, 2 * WATCH_BACKOFF_MIN_MS);
    }
}

/* A list that fails because it is too much at once is asked for in pages, whatever its version;
 * other failures change nothing. */
TEST(test_list_in_pieces)
{
    static const struct {
        const char *name;
        struct answer answer;
        bool divided;
    } cases[] = {
        {"cut", {.status = 200, .body = "{\"items\":[", .result = HTTP_ERR_CUT}, true},
        {"too late", {.result = HTTP_ERR_TIMEOUT}, true},
        {"504", {.status = 504}, true},
        {"413", {.status = 413}, true},
        {"500", {.status = 500}, false},
        {"429", {.status = 429}, false},
        {"403", {.status = 403}, false},
        {"away", {.result = HTTP_ERR_CONNECT}, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool d = cases[i].divided;
        struct sim s;
        setup(&s, "");
        begin(&s);
        answer(&s, cases[i].answer);
        begin(&s);
        CHECK_STR(s.query.data,
                  d ? "limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan"
                    : "limit=500&resourceVersion=0",
                  cases[i].name);
        answer(&s, cases[i].answer);
        STEP(&s, .status = 200, .body = PAGE("10", "t", POD("a", "1")));
        CHECK_STR(s.query.data, d ? "limit=500" : "limit=500&resourceVersion=0", cases[i].name);
        STEP(&s, .status = 200, .body = LIST("10", POD("b", "1")));
        CHECK_STR(s.query.data, "limit=500&continue=t", cases[i].name);
        CHECK_INT(s.synced, true, cases[i].name);
        STEP(&s, .status = 410);
        begin(&s);
        CHECK_STR(s.query.data, RELIST_QUERY("10"), "the next list comes in one piece");
        answer(&s, cases[i].answer);
        begin(&s);
        CHECK_STR(s.query.data, d ? "limit=500&" RELIST_QUERY("10") : RELIST_QUERY("10"),
                  cases[i].name);
        teardown(&s);
    }
}

/* A server that does not understand a limit with a version is asked for the latest one. */
TEST_SIM(paged, test_pieces_not_understood)
{
    STEP(s, .status = 504);
    STEP(s, .status = 400);
    CHECK_STR(s->query.data, "limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan", "");
    begin(s);
    CHECK_STR(s->query.data, "limit=500", "");
}

/* An answer that never ends is given up; what inflates is counted as inflated (http/http.h). */
TEST(test_endless_list)
{
    SCOPED(sim) s;
    setup_limited(&s, "", OBJECT_MAX, 100);
    STEP(&s, .status = 422);
    STEP(&s, .status = 200,
         .body = LIST(
             "10", POD("a", "1") "," POD("b", "1") "," POD("c", "1") "," POD("d", "1") "," POD(
                       "e", "1") "," POD("f", "1") "," POD("g", "1") "," POD("a-long-name-of-a-pod",
                                                                             "1")));
    CHECK_INT(s.result, WATCH_FAILED, "");
    CHECK_STR(s.err.msg, "the list has no end after 100 bytes", "");
    CHECK_INT(s.synced, false, "");
    STEP(&s, .status = 200, .body = LIST("10", POD("a", "1")));
    CHECK_INT(s.synced, true, "a list of its own");
    STEP(&s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("ADDED", POD("d", "11")) EVENT("ADDED", POD("e", "12")));
    CHECK_INT(s.result, WATCH_DONE, "a watch may go on for ever");
}

TEST_SIM(paged, test_long_error_text)
{
    SCOPED_MEMORY char *text = testing_memory(100001);
    memset(text, 'e', 100000);
    STEP(s, .status = 500, .body = text);
    CHECK_INT(s->result, WATCH_FAILED, "");
    assert_in_range(strlen(s->err.msg), 100, ERR_MSG_MAX);
    STEP(s, .status = 200, .body = LIST("1", ""));
    CHECK_INT(s->result, WATCH_DONE, "");
}

/* A version or a continue token may be long, within limits. A page whose token is rejected does not
 * end the list. */
TEST(test_long_strings)
{
    static const struct {
        const char *member;
        size_t len;
        bool ok;
    } cases[] = {
        {"resourceVersion", WATCH_VERSION_MAX - 1, true},
        {"resourceVersion", WATCH_VERSION_MAX, false},
        {"continue", WATCH_CONTINUE_MAX - 1, true},
        {"continue", WATCH_CONTINUE_MAX, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(sim) s;
        setup_sized(&s, "", 2 * WATCH_CONTINUE_MAX);
        SCOPED(buf) body = testing_buf(1 << 20);
        buf_printf(&body, "{\"metadata\":{\"resourceVersion\":\"10\",\"%s\":\"", cases[i].member);
        for (size_t n = 0; n < cases[i].len; n++) {
            buf_putc(&body, '9');
        }
        buf_puts(&body, "\"},\"items\":[]}");
        STEP(&s, .status = 200, .body = body.data);
        CHECK_INT(s.result, cases[i].ok ? WATCH_DONE : WATCH_FAILED, cases[i].member);
        if (!cases[i].ok) {
            CHECK_CONTAINS(s.err.msg, "too long", cases[i].member);
            check_out(&s, "begin ", cases[i].member);
        }
    }
}

/* Nothing is lost when memory runs out for a while: the server sends the object again. */
TEST_SIM(paged, test_no_memory)
{
    s->no_memory = true;
    STEP(s, .status = 200, .body = LIST("10", POD("a", "1") "," POD("heavy", "1")));
    CHECK_INT(s->result, WATCH_FAILED, "");
    check_out(s, "begin L:a ", "a list that was not taken in whole removes nothing");
    s->no_memory = false;
    STEP(s, .status = 200, .body = LIST("10", POD("a", "1") "," POD("heavy", "1")));
    check_out(s, "begin L:a L:heavy end ", "");
    s->no_memory = true;
    STEP(s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("ADDED", POD("c", "11")) EVENT("MODIFIED", POD("heavy", "12"))
             EVENT("ADDED", POD("d", "13")));
    CHECK_INT(s->result, WATCH_FAILED, "");
    CHECK_STR(s->err.msg, "out of memory", "");
    check_out(s, "A:c ", "");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("11"), "from before the object that was not taken");
}

/* A requested relist: no older than the last version, and the watch continues from it. */
TEST_SIM(paged, test_requested_relist)
{
    CHECK_INT(watch_relist(s->w), false, "the first list comes anyway");
    list_two(s);
    begin(s);
    CHECK_INT(s->is_watch, true, "");
    watch_head(s->w, 200, "application/json");
    CHECK_INT(watch_data(s->w, s->now, EVENT("ADDED", POD("c", "11")),
                         strlen(EVENT("ADDED", POD("c", "11")))),
              true, "");
    CHECK_INT(watch_relist(s->w), true, "a watch runs");
    CHECK_INT(watch_relist(s->w), false, "a list comes already");
    begin(s);
    CHECK_INT(s->is_watch, false, "");
    CHECK_STR(s->query.data, "resourceVersion=11&resourceVersionMatch=NotOlderThan", "");
    CHECK_INT(watch_relist(s->w), false, "it is being read");
    answer(s, (struct answer){.status = 500});
    STEP(s, .status = 200, .body = LIST("20", POD("a", "1")));
    CHECK_STR(s->query.data, "resourceVersion=11&resourceVersionMatch=NotOlderThan", "tried again");
    begin(s);
    CHECK_STR(s->query.data, WATCH_QUERY("20"), "");
}

MAIN_IN_BOTH_ENCODINGS()

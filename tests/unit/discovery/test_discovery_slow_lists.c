/* Lists that take long, come in pieces, or are compressed. */
#include "tests/unit/discovery/discovery_world.h"

SCOPED_VALUE(world, teardown)

/* A list that takes three times as long as it may do without a byte is read at the first try. */
TEST(test_dripping_list)
{
    struct rule rules[] = {{.part = "limit",
                            .status = 200,
                            .drip_ms = 75,
                            .body = LIST("", POD("a", "10.0.0.1") "," POD("b", "10.0.0.2"))}};
    SCOPED(world) w;
    setup(&w, rules, 1);
    w.list_progress_ms = 1500; /* 60 parts at 75 ms are 4.5 s */
    run_pods(&w, "synced");
    CHECK_STR(w.groups.data,
              "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n"
              "0 pod/ns/b 10.0.0.2:6060 @10.0.0.2\n"
              "synced\n",
              "");
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"ok\"} 1\n", "");
}

/* One that comes to a halt is given up. What does not come in one piece is asked for in pages: of
 * the version from the cache, and if that does not help either, of the latest. The next list is
 * asked for in one piece again. */
TEST(test_list_in_pieces)
{
    struct rule rules[] = {
        {.part = "limit=500&resourceVersion=0",
         .status = 200,
         .stalls = true,
         .body = "{\"kind\":\"PodList\",\"items\":[" POD("a", "10.0.0.1") ","},
        {.part = "limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan",
         .status = 504,
         .body = "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\"}"},
        {.part = "limit=500", .status = 200, .body = LIST("t1", POD("a", "10.0.0.1"))},
        {.part = "limit=500&continue=t1", .status = 200, .body = LIST("", POD("b", "10.0.0.2"))},
        {.part = "watch=1", .status = 410, .body = "{\"kind\":\"Status\",\"code\":410}"},
        {.part = "resourceVersionMatch", .status = 200, .body = LIST("", POD("b", "10.0.0.2"))},
    };
    SCOPED(world) w;
    setup(&w, rules, sizeof(rules) / sizeof(rules[0]));
    testing_log_expect(w.log, "does not answer as it should");
    w.list_progress_ms = 1500;
    run_pods(&w, "pod/ns/a @-");
    CHECK_STR(w.requests.data,
              "/api/v1/pods?limit=500&resourceVersion=0\n"
              "/api/v1/pods?limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan\n"
              "/api/v1/pods?limit=500\n"
              "/api/v1/pods?limit=500&continue=t1\n"
              "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=T&resourceVersion=10\n"
              "/api/v1/pods?resourceVersion=10&resourceVersionMatch=NotOlderThan\n",
              "");
    CHECK_CONTAINS(testing_log_text(w.log), "the list broke off: ", "");
}

/* Lists are asked for as gzip, watches are not: a proxy might hold their events back. */
TEST(test_gzip)
{
    struct rule rules[] = {
        {.part = "limit", .status = 200, .gzip = true, .body = LIST("t1", POD("a", "10.0.0.1"))},
        {.part = "continue", .status = 200, .gzip = true, .body = LIST("", POD("b", "10.0.0.2"))},
        {.part = "watch=1",
         .status = 200,
         .gzip = true,
         .keep_open = true,
         .body = EVENT("DELETED", POD("a", "10.0.0.1"))},
    };
    SCOPED(world) w;
    setup(&w, rules, 3);
    run_pods(&w, "pod/ns/a @-");
    CHECK_STR(w.groups.data,
              "0 pod/ns/a 10.0.0.1:6060 @10.0.0.1\n"
              "0 pod/ns/b 10.0.0.2:6060 @10.0.0.2\n"
              "synced\n"
              "0 pod/ns/a @-\n",
              "");
    CHECK_INT(w.gzipped, 2, "the two pages");
}

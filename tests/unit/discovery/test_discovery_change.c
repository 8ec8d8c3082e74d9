/* Another configuration while discovery runs: what is read again, what is reported as gone. */
#include "tests/unit/discovery/discovery_world.h"

#include "base/clock.h"
#include "tests/unit/lib/valid_config.h"

SCOPED_VALUE(world, teardown)

/* Continues until the groups since then have the text. */
static void run_on(struct world *w, const char *until)
{
    w->until = until;
    bool in_time = strstr(w->groups.data, until) != NULL || patience_run(&w->patience, PATIENCE_MS);
    buf_puts(&w->groups, in_time ? "" : w->requests.data);
    CHECK_INT(in_time, true, w->groups.data);
}

/* Continues until a request whose URI has this part has come. */
static void run_until_asked(struct world *w, const char *part)
{
    w->until = NULL;
    int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
    while (w->requests.data == NULL || strstr(w->requests.data, part) == NULL) {
        assert_true(clock_mono_ms() < deadline_ms);
        loop_run_once(w->loop);
    }
}

/* Puts a configuration in force; the log of groups begins again. */
static void change(struct world *w, const struct config *values, const bool *kept)
{
    struct err err = ERR_INIT;
    SCOPED(config) *next = config_wrap(values);
    struct discovery_change *c = discovery_prepare(w->d, next, kept, &err);
    CHECK_STR(err.msg, "", "discovery_prepare");
    assert_non_null(c);
    w->groups.len = 0;
    w->groups.data[0] = '\0';
    discovery_retire(c);
    buf_puts(&w->groups, "--\n");
    discovery_commit(c);
}

#define STATIC(address)                                                                            \
    {                                                                                              \
        .kind = SOURCE_STATIC, .fixed = {.targets = {address, 1} }                                 \
    }

TEST(test_lists)
{
    SCOPED(world) w;
    setup(&w, NULL, 0);
    static const char *const one[] = {"127.0.0.1:1"};
    static const char *const two[] = {"127.0.0.1:2"};
    struct config_source sources[] = {STATIC(one), STATIC(two), STATIC(one)};
    struct config_job before[] = {
        {.name = "kept", .slot = 0, .sources = &sources[0], .n_sources = 1},
        {.name = "changes", .slot = 1, .sources = &sources[0], .n_sources = 2},
        {.name = "ends", .slot = 2, .sources = &sources[0], .n_sources = 1},
    };
    struct config_job after[] = {
        {.name = "new", .slot = 3, .sources = &sources[1], .n_sources = 1},
        {.name = "changes", .slot = 1, .sources = &sources[2], .n_sources = 1},
        {.name = "kept", .slot = 0, .sources = &sources[0], .n_sources = 1},
    };
    const bool kept[] = {true, false, false, false};
    run(&w, &(struct config){.jobs = before, .n_jobs = 3}, "synced");
    change(&w, &(struct config){.jobs = after, .n_jobs = 3}, kept);
    /* static/0 of the changed job is there before and after. */
    CHECK_STR(w.groups.data,
              "2 static/0 @-\n"
              "--\n"
              "3 static/0 127.0.0.1:2 @-\n"
              "1 static/0 127.0.0.1:1 @-\n"
              "1 static/1 @-\n",
              "");
    check_metric(&w, "profpull_discovery_groups{kind=\"static\"} 3\n", "");
    change(&w, &(struct config){.jobs = after, .n_jobs = 0}, NULL);
    CHECK_STR(w.groups.data, "0 static/0 @-\n3 static/0 @-\n1 static/0 @-\n--\n", "");
    check_metric(&w, "profpull_discovery_groups{kind=\"static\"} 0\n", "");
}

/* Two jobs share a watch. One gets other rules: the pods are listed again, for it only, and what
 * has gone since is reported when the list has been read. */
TEST(test_watches)
{
    struct rule rules[] = {
        {.part = "resourceVersion=0",
         .status = 200,
         .body = LIST("", POD("a", "10.0.0.1") "," POD("b", "10.0.0.2"))},
        {.part = "watch=1", .status = 200, .stalls = true, .body = ""},
        {.part = "/pods?", .status = 200, .body = LIST("", POD("b", "10.0.0.2"))},
        {.part = "watch=1",
         .status = 200,
         .keep_open = true,
         .body = EVENT("MODIFIED", POD("b", "10.0.0.3"))},
    };
    SCOPED(world) w;
    setup(&w, rules, 4);
    struct config_source source = {
        .kind = SOURCE_KUBERNETES,
        .kubernetes = {.role = ROLE_POD, .api_server = w.url},
    };
    struct config_job jobs[] = {
        {.name = "kept", .slot = 0, .sources = &source, .n_sources = 1},
        {.name = "changes", .slot = 1, .sources = &source, .n_sources = 1},
    };
    const struct config config = {.jobs = jobs, .n_jobs = 2};
    const bool kept[] = {true, false};
    run(&w, &config, "synced");
    CHECK_CONTAINS(w.groups.data, "1 pod/ns/a 10.0.0.1:6060", "");
    run_until_asked(&w, "watch=1");
    change(&w, &config, kept);
    CHECK_STR(w.groups.data, "--\n", "nothing ends before the list has been read");
    run_on(&w, "1 pod/ns/b 10.0.0.3:6060 @10.0.0.3\n");
    CHECK_CONTAINS(w.groups.data, "1 pod/ns/b 10.0.0.2:6060 @10.0.0.2\n", "");
    CHECK_CONTAINS(w.groups.data, "0 pod/ns/a @-\n", "gone for both");
    CHECK_CONTAINS(w.groups.data, "1 pod/ns/a @-\n", "gone for both");
    CHECK_CONTAINS(w.groups.data, "0 pod/ns/b 10.0.0.3:6060 @10.0.0.3\n", "");
    assert_null(strstr(w.groups.data, "0 pod/ns/b 10.0.0.2"));
    check_metric(&w, "profpull_discovery_requests_total{verb=\"list\",result=\"ok\"} 2\n", "");
    check_metric(&w, "profpull_discovery_groups{kind=\"kubernetes\"} 2\n", "");

    /* Without the job its pods end at once; the other one's watch goes on. */
    change(&w, &(struct config){.jobs = jobs, .n_jobs = 1}, kept);
    CHECK_STR(w.groups.data, "1 pod/ns/b @-\n--\n", "");
    check_metric(&w, "profpull_discovery_groups{kind=\"kubernetes\"} 1\n", "");
}

/* A change that cannot be made, or that is not wanted, leaves everything as it was. */
TEST(test_all_or_nothing)
{
    struct rule rules[] = {
        {.part = "resourceVersion=0", .status = 200, .body = LIST("", POD("a", "10.0.0.1"))},
        {.part = "watch=1", .status = 200, .keep_open = true, .body = ""},
    };
    SCOPED(world) w;
    setup(&w, rules, 2);
    struct err err = ERR_INIT;
    static const char *const one[] = {"127.0.0.1:1"};
    struct config_source good = {.kind = SOURCE_KUBERNETES,
                                 .kubernetes = {.role = ROLE_POD, .api_server = w.url}};
    struct config_source bad[] = {
        good,
        STATIC(one),
        {.pos = {.file = "f", .line = 3, .column = 5},
         .kind = SOURCE_KUBERNETES,
         .kubernetes = {.role = ROLE_POD, .kubeconfig_file = "/nonexistent/kubeconfig"}},
    };
    struct config_job job = {.name = "pods", .sources = &good, .n_sources = 1};
    struct config_job worse = {.name = "pods", .sources = bad, .n_sources = 3};
    run(&w, &(struct config){.jobs = &job, .n_jobs = 1}, "synced");
    run_until_asked(&w, "watch=1");
    size_t groups = w.groups.len;
    size_t requests = w.requests.len;
    struct config *next = config_wrap(&(struct config){.jobs = &worse, .n_jobs = 1});
    assert_null(discovery_prepare(w.d, next, NULL, &err));
    CHECK_CONTAINS(err.msg, "f:3:5: job \"pods\": kubeconfig /nonexistent/kubeconfig", "");
    err_clear(&err);
    worse.n_sources = 2;
    struct discovery_change *c = discovery_prepare(w.d, next, NULL, &err);
    assert_non_null(c);
    assert_null(discovery_discard(c));
    config_unref(next);
    loop_run_once(w.loop);
    assert_int_equal(w.groups.len, groups);
    assert_int_equal(w.requests.len, requests);
}

/* The targets of a URL stay until its new list has been read. */
TEST(test_url_that_fails)
{
    struct rule rules[] = {
        {.part = "/first", .status = 500, .body = ""},
    };
    SCOPED(world) w;
    setup(&w, rules, 1);
    testing_log_expect(w.log, "http_sd");
    static const char *const one[] = {"127.0.0.1:1"};
    char url[128];
    snprintf(url, sizeof(url), "%s/first", w.url);
    struct config_source source = STATIC(one);
    struct config_source later = {.kind = SOURCE_HTTP, .http = {.url = url, .refresh_ms = 60000}};
    struct config_job before = {.name = "j", .sources = &source, .n_sources = 1};
    struct config_job after = {.name = "j", .sources = &later, .n_sources = 1};
    run(&w, &(struct config){.jobs = &before, .n_jobs = 1}, "synced");
    change(&w, &(struct config){.jobs = &after, .n_jobs = 1}, NULL);
    run_until_asked(&w, "/first");
    CHECK_STR(w.groups.data, "--\n", "");
}

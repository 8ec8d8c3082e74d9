/* Which sources can be read, as readiness, metrics and the API show it. */
#include "discovery/sources.h"
#include "tests/unit/lib/failing_malloc.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(sources, sources_free)

static void check_text(struct sources *s, const char *want)
{
    SCOPED(buf) text = testing_buf(1 << 16);
    sources_missing(s, &text);
    CHECK_STR(text.data, want, "missing");
}

TEST(sources_that_cannot_be_read)
{
    SCOPED(metrics) *metrics = metrics_new();
    SCOPED(sources) *s = sources_new(metrics);
    check_text(s, "");
    sources_set(s, "pods", "kubernetes/0", SOURCE_WAITS, "pods not read yet");
    sources_set(s, "pods", "kubernetes/1", SOURCE_WAITS, "pods not read yet");
    sources_set(s, "web", "http/0", SOURCE_FAILS, "http://x: HTTP status 500");
    sources_set(s, "web", "static/1", SOURCE_WORKS, "");
    sources_set(s, "nodes", "kubernetes/0", SOURCE_WAITS, "pods not read yet");
    sources_set(s, "", "secrets", SOURCE_FAILS, "Secret n/s: not found");
    CHECK_INT(sources_count(s, SOURCE_WAITS), 3, "pending");
    CHECK_INT(sources_count(s, SOURCE_WORKS), 1, "up");
    CHECK_INT(sources_count(s, SOURCE_FAILS), 2, "down");
    check_text(s, "jobs \"pods\", \"nodes\": pods not read yet; job \"web\": http://x: HTTP status "
                  "500; Secret n/s: not found");
    CHECK_INT(testing_metric(metrics, "profpull_discovery_up{job=\"web\",source=\"http/0\"}"), 0,
              "down");
    CHECK_INT(testing_metric(metrics, "profpull_discovery_up{job=\"web\",source=\"static/1\"}"), 1,
              "up");
    sources_set(s, "pods", "kubernetes/0", SOURCE_WORKS, "");
    sources_set(s, "pods", "kubernetes/1", SOURCE_WORKS, "");
    sources_set(s, "web", "http/0", SOURCE_WORKS, "");
    sources_forget(s, "", "secrets");
    sources_forget(s, "nodes", "kubernetes/0");
    sources_forget(s, "nobody", "kubernetes/0");
    check_text(s, "");
    CHECK_INT(testing_metric(metrics, "profpull_discovery_up{job=\"web\",source=\"http/0\"}"), 1,
              "up again");
    CHECK_INT(testing_metric(metrics, "profpull_discovery_up{job=\"\",source=\"secrets\"}"),
              TESTING_NO_METRIC, "gone");
}

TEST(many_are_not_all_named)
{
    SCOPED(sources) *s = sources_new(NULL);
    for (int i = 0; i < SOURCES_SHOWN + 3; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file/%d", i);
        sources_set(s, "web", name, SOURCE_FAILS, name);
    }
    SCOPED(buf) text = testing_buf(1 << 16);
    sources_missing(s, &text);
    CHECK_CONTAINS(text.data, "job \"web\": file/15; and 3 more", "the first ones");
}

static void note(void *arg, const struct source_status *status)
{
    assert_true(status->since_ns > 0);
    buf_printf(arg, "%s %s %s %s\n", status->job, status->name, source_state_name(status->state),
               status->why);
}

/* Without memory for what has changed a source keeps what was known. */
static void scenario(bool *ret_complete)
{
    struct sources *s = sources_new(NULL);
    if (s == NULL) {
        assert_true(failing_malloc_failed());
        return;
    }
    sources_set(s, "web", "http/0", SOURCE_WAITS, "not read yet");
    sources_set(s, "web", "http/0", SOURCE_WORKS, "");
    bool armed = failing_malloc_pause();
    SCOPED(buf) text = testing_buf(1 << 16);
    sources_each(s, note, &text);
    bool known = strcmp(text.data, "web http/0 up \n") == 0;
    assert_true(known || failing_malloc_failed());
    assert_true(known || text.len == 0 ||
                strcmp(text.data, "web http/0 pending not read yet\n") == 0 ||
                strcmp(text.data, "web http/0 pending \n") == 0);
    failing_malloc_resume(armed);
    sources_free(s);
    *ret_complete = known;
}

TEST(without_memory)
{
    assert_true(failing_malloc_each(FAIL_OURS, scenario) >= 4);
}

/* The record of label sets that have not become targets, and the labels after each rule. */
#include "tests/unit/lib/testing.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/dropped.h"
#include "api/rule_trace.h"
#include "pages/html.h"
#include "tests/unit/lib/valid_config.h"

struct fixture {
    struct intern *intern;
    struct metrics *metrics;
    struct labels_builder *b;
    struct config *config;
    struct dropped *dropped;
};

static void fixture_begin(struct fixture *f)
{
    static const char yaml[] = "scrape_configs:\n- job_name: a\n  relabel_configs:\n"
                               "  - {source_labels: [x], target_label: y}\n"
                               "  - {action: labeldrop, regex: x}\n"
                               "  - {action: drop, source_labels: [y], regex: bad}\n"
                               "  - {target_label: never, replacement: seen}\n"
                               "- job_name: b\n";
    struct config_options options = {.write_url = "http://x:1"};
    f->config = valid_config("f", yaml, &options);
    f->intern = intern_new();
    f->metrics = metrics_new();
    f->b = labels_builder_new(f->intern);
    f->dropped = dropped_new(f->config->n_jobs, f->metrics);
    assert_non_null(f->dropped);
}

static void fixture_end(struct fixture *f)
{
    dropped_free(f->dropped);
    config_unref(f->config);
    labels_builder_free(f->b);
    metrics_free(f->metrics);
    intern_free(f->intern);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* A label set of `bytes` bytes or a little more, which rule 3 has dropped, or which failed. */
static void note(struct fixture *f, size_t job, const char *source, size_t bytes,
                 const struct err *err)
{
    const struct target_group group = {.job = job, .source = source};
    SCOPED_MEMORY char *value = testing_memory(bytes + 1);
    memset(value, 'v', bytes);
    labels_builder_reset(f->b, NULL);
    labels_builder_set_str(f->b, "x", value);
    SCOPED(labels) *labels = labels_builder_build(f->b);
    const struct pipeline_verdict verdict = {
        .group = &group,
        .job = &f->config->jobs[group.job],
        .discovered = labels,
        .outcome = err == NULL ? RELABEL_DROPPED : RELABEL_FAILED,
        .rule = err == NULL ? 3 : 0,
        .err = err,
    };
    dropped_note(f->dropped, &verdict);
}

static size_t count(struct fixture *f, size_t job, bool *ret_more)
{
    struct dropped_target *all = testing_memory(DROPPED_MAX * sizeof(*all));
    size_t n = dropped_list(f->dropped, job, all, DROPPED_MAX, ret_more);
    for (size_t i = 0; i < n; i++) {
        dropped_target_done(&all[i]);
    }
    free(all);
    return n;
}

TEST_ON(struct fixture *f, a_source_replaces_what_is_known_of_it)
{
    struct dropped_target t;
    struct err err = ERR_INIT;
    note(f, 0, "pod/a", 10, NULL);
    note(f, 0, "pod/b", 10, NULL);
    err_set(&err, ERR_REFUSED, "its node");
    note(f, 0, "pod/a", 10, &err);
    note(f, 1, "pod/a", 10, NULL);
    assert_int_equal(count(f, 0, NULL), 3);
    assert_true(dropped_find(f->dropped, 3, &t));
    assert_string_equal(t.source, "pod/a");
    assert_string_equal(t.why, "its node");
    assert_int_equal(t.rule, 0);
    dropped_target_done(&t);
    dropped_forget(f->dropped, 0, "pod/a");
    assert_int_equal(count(f, 0, NULL), 1);
    assert_int_equal(count(f, 1, NULL), 1);
    assert_false(dropped_find(f->dropped, 3, &t));
    assert_true(dropped_find(f->dropped, 2, &t));
    assert_string_equal(t.source, "pod/b");
    assert_null(t.why);
    assert_int_equal(t.rule, 3);
    dropped_target_done(&t);
}

TEST_ON(struct fixture *f, the_record_is_bounded)
{
    bool more = true;
    for (int i = 0; i < DROPPED_MAX; i++) {
        note(f, 0, i < 7 ? "pod/a" : "pod/b", 10, NULL);
    }
    assert_int_equal(count(f, 0, &more), DROPPED_MAX);
    assert_false(more);
    note(f, 0, "pod/c", 10, NULL);
    note(f, 0, "pod/c", 10, NULL);
    assert_int_equal(count(f, 0, &more), DROPPED_MAX);
    assert_true(more);
    dropped_forget(f->dropped, 0, "pod/a");
    note(f, 0, "pod/c", 10, NULL);
    assert_int_equal(count(f, 0, &more), DROPPED_MAX - 6);
    /* Two of nearly a MiB have a place, a third has none. */
    for (int i = 0; i < 3; i++) {
        note(f, 1, "pod/d", DROPPED_BYTES_MAX / 2 - 100, NULL);
    }
    assert_int_equal(count(f, 1, &more), 2);
    assert_true(more);
    dropped_forget(f->dropped, 1, "pod/d");
    note(f, 1, "pod/d", DROPPED_BYTES_MAX / 2 - 100, NULL);
    assert_int_equal(count(f, 1, &more), 1);
    SCOPED(buf) page = testing_buf((size_t)1 << 20);
    assert_true(metrics_render(f->metrics, &page));
    assert_non_null(strstr(page.data, "profpull_dropped_targets_unshown_total{job=\"a\"} 2\n"));
    assert_non_null(strstr(page.data, "profpull_dropped_targets_unshown_total{job=\"b\"} 1\n"));
}

static void note_target(struct fixture *f, const char *source, const char *address)
{
    const struct target_group group = {.source = source};
    struct err err = ERR_INIT;
    labels_builder_reset(f->b, NULL);
    labels_builder_set_str(f->b, LABEL_ADDRESS, address);
    SCOPED(labels) *labels = labels_builder_build(f->b);
    struct target *target = target_new(f->config, 0, f->b, NULL, &err);
    CHECK_STR(err.msg, "", "target");
    const struct pipeline_verdict verdict = {.group = &group,
                                             .job = &f->config->jobs[group.job],
                                             .discovered = labels,
                                             .target = target};
    dropped_note(f->dropped, &verdict);
    target_unref(target);
}

static bool knows(struct fixture *f, const char *job, const char *source, const char *address)
{
    struct dropped_target t = {.id = 0};
    size_t slot = 0;
    while (slot < f->config->n_jobs && strcmp(f->config->jobs[slot].name, job) != 0) {
        slot++;
    }
    bool found = dropped_find_target(f->dropped, slot, sv_from(source), sv_from(address), &t);
    if (found) {
        CHECK_STR(t.source, source, "");
        CHECK_STR(t.address, address, "");
        CHECK_STR(labels_get(t.labels, SV(LABEL_ADDRESS)).p, address, "");
    }
    dropped_target_done(&t);
    return found;
}

TEST_ON(struct fixture *f, targets_are_known_as_discovered)
{
    char address[32];
    note_target(f, "static/0", "10.0.0.1:80");
    note_target(f, "static/0", "10.0.0.2:80");
    note_target(f, "pod/a", "10.0.0.1:80");
    assert_true(knows(f, "a", "static/0", "10.0.0.2:80"));
    assert_true(knows(f, "a", "pod/a", "10.0.0.1:80"));
    assert_false(knows(f, "a", "pod/a", "10.0.0.2:80"));
    assert_false(knows(f, "b", "static/0", "10.0.0.2:80"));
    assert_false(knows(f, "c", "static/0", "10.0.0.2:80"));
    assert_int_equal(count(f, 0, NULL), 0);
    dropped_forget(f->dropped, 0, "static/0");
    assert_false(knows(f, "a", "static/0", "10.0.0.2:80"));
    assert_true(knows(f, "a", "pod/a", "10.0.0.1:80"));
    /* Targets count as dropped as long as the list of dropped ones has room for them; the others
     * are not. */
    for (int i = 0; i < DROPPED_MAX + 5; i++) {
        (void)snprintf(address, sizeof(address), "10.0.1.1:%d", i + 1);
        note_target(f, "pod/b", address);
    }
    (void)snprintf(address, sizeof(address), "10.0.1.1:%d", DROPPED_MAX - 1);
    assert_true(knows(f, "a", "pod/b", address));
    (void)snprintf(address, sizeof(address), "10.0.1.1:%d", DROPPED_MAX);
    assert_false(knows(f, "a", "pod/b", address));
    note(f, 0, "pod/c", 10, NULL);
    assert_int_equal(count(f, 0, NULL), 1);
    SCOPED(buf) page = testing_buf((size_t)1 << 20);
    assert_true(metrics_render(f->metrics, &page));
    assert_null(strstr(page.data, "profpull_dropped_targets_unshown_total{job=\"a\"}"));
}

TEST_ON(struct fixture *f, each_rule_is_traced)
{
    static const char *const after[] = {
        "{\"x\":\"bad\",\"y\":\"bad\"}",
        "{\"y\":\"bad\"}",
        "{\"y\":\"bad\"}",
    };
    struct rule_trace t;
    struct err err = ERR_INIT;
    labels_builder_reset(f->b, NULL);
    labels_builder_set_str(f->b, "x", "bad");
    SCOPED(labels) *labels = labels_builder_build(f->b);
    assert_true(rule_trace_run(&t, &f->config->jobs[0].relabel, labels, &err));
    assert_int_equal(t.verdict.outcome, RELABEL_DROPPED);
    assert_int_equal(t.n, 3);
    for (size_t i = 0; i < t.n; i++) {
        SCOPED(buf) text = testing_buf(1024);
        labels_format_json(t.steps[i].labels, &text);
        assert_string_equal(text.data, after[i]);
        assert_int_equal(t.steps[i].rule, i + 1);
        assert_int_equal(t.steps[i].outcome, i == 2 ? RELABEL_DROPPED : RELABEL_KEPT);
    }
    rule_trace_done(&t);
}

/* A page shows of a label what the JSON shows: no secret parameter, of the URL of a list either. */
TEST(test_secrets_of_labels)
{
    const struct label labels[] = {
        {SV("__param_token"), SV("s3cret")},
        {SV("__meta_url"), SV("http://x/list?token=s3cret&a=<b>")},
        {SV("pod"), SV("a")},
    };
    SCOPED(buf) out = testing_buf(4096);
    for (size_t i = 0; i < 3; i++) {
        html_label(&out, labels[i], false);
    }
    assert_string_equal(out.data, "<span>__param_token=&lt;secret&gt;</span>"
                                  "<span>__meta_url=http://x/list?token=&lt;secret&gt;&amp;a=&lt;"
                                  "b&gt;</span><span>pod=a</span>");
}

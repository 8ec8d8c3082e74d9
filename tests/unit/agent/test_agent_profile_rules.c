/* profile_relabel_configs: the resulting labels of profiles, and the counters. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "agent/profile_rules.h"
#include "relabel/relabel.h"
#include "tests/unit/lib/valid_config.h"

SCOPED_POINTER(profile, profile_unref)

struct fixture {
    struct testing_log *log;
    struct intern *intern;
    struct metrics *metrics;
    struct config *config;
    struct profile_rules *rules;
};

static bool check_rule(void *arg, const struct config_rule *rule, struct err *err)
{
    (void)arg;
    return relabel_check_rule(rule, err);
}

static void start(struct fixture *f, const char *rules)
{
    char text[2048];
    (void)snprintf(text, sizeof(text),
                   "write: [{url: \"http://x\"}]\n"
                   "scrape_configs:\n"
                   "- job_name: plain\n"
                   "- job_name: ruled\n"
                   "  profile_relabel_configs:\n%s",
                   rules);
    struct config_options o = {.check_rule = check_rule};
    f->config = valid_config("f", text, &o);
    struct err err = ERR_INIT;
    f->rules = profile_rules_new(f->config->jobs, f->config->n_jobs, f->intern, testing_log(f->log),
                                 f->metrics, &err);
    CHECK_STR(err.msg, "", text);
    assert_non_null(f->rules);
}

static void fixture_begin(struct fixture *f)
{
    f->log = testing_log_new();
    f->intern = intern_new();
    f->metrics = metrics_new();
}

static void fixture_end(struct fixture *f)
{
    profile_rules_free(f->rules);
    config_unref(f->config);
    metrics_free(f->metrics);
    size_t strings;
    size_t bytes;
    intern_stats(f->intern, &strings, &bytes);
    CHECK_INT(strings, 0, "no label set is left");
    intern_free(f->intern);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

static struct profile *make(struct fixture *f, uint32_t job, const char *pod)
{
    struct labels *l =
        testing_labels(f->intern, "__name__", "memory", "__delta__", "false", "__profile_path__",
                       "/p", "pod", pod, "service_name", "shop", NULL);
    struct profile *p = profile_new(l, strdup("x"), 1);
    assert_non_null(p);
    p->job = job;
    return p;
}

/* The resulting labels, or "dropped" or "failed". */
static void check(struct fixture *f, uint32_t job, const char *pod, const char *want)
{
    SCOPED(profile) *p = make(f, job, pod);
    SCOPED(buf) text = testing_buf(4096);
    enum profile_verdict verdict = profile_rules_apply(f->rules, p, 1000);
    if (verdict == PROFILE_KEPT) {
        testing_labels_format(p->labels, &text);
    } else {
        buf_puts(&text, verdict == PROFILE_DROPPED ? "dropped" : "failed");
    }
    CHECK_STR(text.data, want, pod);
}

static void check_count(struct fixture *f, const char *job, const char *outcome, uint64_t want)
{
    static const struct metric_desc desc = {.name = "profpull_profile_relabel_total",
                                            .type = METRIC_COUNTER,
                                            .labels = {"job", "outcome"}};
    const char *values[] = {job, outcome};
    CHECK_INT(metric_value(metric_cell(metrics_register(f->metrics, &desc), values)), want,
              outcome);
}

#define BEFORE(pod)                                                                                \
    "{__delta__=\"false\", __name__=\"memory\", __profile_path__=\"/p\", pod=\"" pod               \
    "\", service_name=\"shop\"}"

TEST_ON(struct fixture *f, without_rules)
{
    start(f, "  - {action: drop, source_labels: [pod], regex: a}\n");
    check(f, 0, "a", BEFORE("a"));
    check_count(f, "plain", "kept", 1);
    check_count(f, "ruled", "kept", 0);
}

TEST_ON(struct fixture *f, kept_and_dropped)
{
    start(f, "  - {action: drop, source_labels: [__name__, pod], regex: memory;b}\n"
             "  - {target_label: __tenant_id__, source_labels: [pod]}\n"
             "  - {action: labeldrop, regex: service_.*}\n");
    for (int i = 0; i < 3; i++) { /* the second time from the cache */
        check(f, 1, "b", "dropped");
        check(f, 1, "a",
              "{__delta__=\"false\", __name__=\"memory\", __profile_path__=\"/p\", "
              "__tenant_id__=\"a\", pod=\"a\"}");
    }
    check_count(f, "ruled", "kept", 3);
    check_count(f, "ruled", "dropped", 3);
}

/* The same labels in two jobs have separate results. */
TEST_ON(struct fixture *f, jobs_apart)
{
    start(f, "  - {action: drop, source_labels: [pod], regex: a}\n"
             "- job_name: third\n"
             "  profile_relabel_configs:\n"
             "  - {target_label: pod, replacement: c}\n");
    for (int i = 0; i < 2; i++) {
        check(f, 1, "a", "dropped");
        check(f, 2, "a", BEFORE("c"));
    }
}

TEST_ON(struct fixture *f, name_and_delta)
{
    testing_log_expect(f->log, "profile dropped after profile_relabel_configs");
    start(f,
          "  - {target_label: __name__, source_labels: [pod], regex: 'name_(.*)',\n"
          "     action: replace}\n"
          "  - {action: labelkeep, regex: 'pod|__name__'}\n"
          "  - {target_label: __delta__, replacement: 'true'}\n"
          "  - {action: drop, source_labels: [pod], regex: never}\n"
          "  - {target_label: __name__, source_labels: [pod], regex: nameless, replacement: ''}\n");
    check(f, 1, "a", "{__delta__=\"false\", __name__=\"memory\", pod=\"a\"}");
    check(f, 1, "name_heap", "{__delta__=\"false\", __name__=\"heap\", pod=\"name_heap\"}");
    check(f, 1, "nameless", "failed");
    check_count(f, "ruled", "no_name", 1);
    check_count(f, "ruled", "kept", 2);
}

/* `labelkeep` without `__name__`, a common mistake. */
TEST_ON(struct fixture *f, labelkeep)
{
    testing_log_expect(f->log, "profile dropped after profile_relabel_configs");
    start(f, "  - {action: labelkeep, regex: 'pod|service_name'}\n");
    check(f, 1, "a", "failed");
    check_count(f, "ruled", "no_name", 1);
}

/* Rules may mark a profile as a delta, if the target computes deltas. */
TEST_ON(struct fixture *f, delta_by_rule)
{
    start(f, "  - {target_label: __delta__, replacement: 'false'}\n");
    struct labels *l = testing_labels(f->intern, "__name__", "own", NULL);
    SCOPED(profile) *p = profile_new(l, strdup("x"), 1);
    p->job = 1;
    CHECK_INT(profile_rules_apply(f->rules, p, 0), PROFILE_KEPT, "");
    CHECK_STR(labels_get(p->labels, SV("__delta__")).p, "false", "delta");
}

/* A result that is not used any more is evicted within ten minutes, however few profiles arrive. */
TEST_ON(struct fixture *f, forgets)
{
    start(f, "  - {target_label: x, replacement: y}\n");
    check(f, 1, "gone",
          "{__delta__=\"false\", __name__=\"memory\", __profile_path__=\"/p\", "
          "pod=\"gone\", service_name=\"shop\", x=\"y\"}");
    struct profile *p = make(f, 1, "stays");
    struct labels *before = labels_ref(p->labels);
    size_t strings;
    size_t bytes;
    for (int64_t ms = 1000; ms <= (int64_t)11 * 60 * 1000; ms += 15000) {
        profile_set_labels(p, labels_ref(before));
        CHECK_INT(profile_rules_apply(f->rules, p, ms), PROFILE_KEPT, "");
        intern_stats(f->intern, &strings, &bytes);
        assert_true(ms > (int64_t)4 * 60 * 1000 || strings == 6 + 6 + 1); /* not yet */
    }
    profile_unref(p);
    labels_unref(before);
    intern_stats(f->intern, &strings, &bytes);
    /* The six names and the values in use: "gone" is gone. */
    CHECK_INT(strings, 6 + 6, "strings");
}

/* A rule that rewrites a long label each second must not fill the memory with label sets that are
 * remembered. */
TEST_ON(struct fixture *f, long_labels_are_not_all_remembered)
{
    static char pod[512 * 1024];
    size_t strings;
    size_t bytes;
    memset(pod, 'x', sizeof(pod) - 1);
    start(f, "  - {target_label: a, replacement: b}\n");
    for (unsigned i = 0; i < 100; i++) {
        snprintf(pod, 8, "%06u", i);
        pod[6] = 'x';
        SCOPED(profile) *p = make(f, 1, pod);
        CHECK_INT(profile_rules_apply(f->rules, p, 1000), PROFILE_KEPT, "");
        CHECK_STR(labels_get(p->labels, SV("a")).p, "b", "the rules run in any case");
    }
    intern_stats(f->intern, &strings, &bytes);
    assert_true(bytes > 1024 * 1024);
    assert_true(bytes < PROFILE_RULES_BYTES_MAX + 1024 * 1024);
}

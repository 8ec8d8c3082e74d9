/* Rules and series of recorded metrics: what is counted where, limits, reloads, the page. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "record/private.h"
#include "tests/unit/lib/pprof_writer.h"

#define ALLOC "{__profile_type__=\"memory:alloc_space:bytes::\"}"
#define INUSE "{__profile_type__=\"memory:inuse_space:bytes::\"}"
#define DELAY "{__profile_type__=\"mutex:delay:nanoseconds::\"}"
#define RULES_MAX 8

struct fixture {
    struct testing_log *log;
    struct intern *intern;
    struct metrics *metrics;
    struct record *record;
    struct config_record config;
    struct config_record_rule rules[RULES_MAX];
    int64_t time_ns; /* end of the next profile */
};

static void fixture_begin(struct fixture *f)
{
    f->log = testing_log_new();
    f->intern = intern_new();
    f->metrics = metrics_new();
    const struct record_options o = {
        .log = testing_log(f->log), .metrics = f->metrics, .pending_max = 100000};
    f->record = record_new(&o);
    assert_non_null(f->record);
    f->config = (struct config_record){.max_rules = 4, .max_series = 3, .stale_ms = 60000};
    f->config.rules = f->rules;
    f->time_ns = 1;
}

static void fixture_end(struct fixture *f)
{
    record_free(f->record);
    metrics_free(f->metrics);
    size_t strings;
    size_t bytes;
    intern_stats(f->intern, &strings, &bytes);
    CHECK_INT(strings, 0, "no label set is left");
    intern_free(f->intern);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* ---- rules ----------------------------------------------------------------------------------- */

static const char *const by_service[] = {"service_name"};
static const char *const by_pod[] = {"service_name", "pod"};

static struct record_rule rule_of(const char *name, const char *const *matcher,
                                  const char *const *group_by, size_t n)
{
    struct record_rule r = {.metric_name = name,
                            .matchers = matcher,
                            .n_matchers = 1,
                            .group_by = group_by,
                            .n_group_by = n};
    record_rule_name(&r);
    return r;
}

static void add(struct fixture *f, struct record_rule r)
{
    f->rules[f->config.n_rules++].rule = r;
}

static void reload(struct fixture *f)
{
    struct err err = ERR_INIT;
    struct record_change *c = record_prepare(f->record, &f->config, &err);
    CHECK_STR(err.msg, "", "reload");
    assert_non_null(c);
    record_commit(f->record, c);
}

static const char *const alloc[] = {ALLOC};
static const char *const inuse[] = {INUSE};
static const char *const delay[] = {DELAY};

/* ---- profiles -------------------------------------------------------------------------------- */

static struct profile *profile_of(struct fixture *f, const char *name, const char *types,
                                  const char *service, const char *pod, int64_t a, int64_t b)
{
    const struct pprof_row row = {"leaf main", "", {a, b}};
    struct buf body = pprof_make(&(struct pprof_spec){.types = types}, &row, 1);
    size_t n = body.len;
    char *data = buf_take(&body, NULL);
    struct labels *l = testing_labels(f->intern, "__name__", name, "__delta__", "false", "pod", pod,
                                      "service_name", service, NULL);
    struct profile *p = profile_new(l, data, n);
    assert_non_null(p);
    p->until_ns = f->time_ns++;
    return p;
}

static void pass(struct fixture *f, struct profile *p, bool taken)
{
    record_end(f->record, record_begin(f->record, p), taken);
    profile_unref(p);
}

#define HEAP "alloc_space/bytes inuse_space/bytes"

static void heap(struct fixture *f, const char *service, const char *pod, int64_t alloc_bytes,
                 int64_t inuse_bytes)
{
    pass(f, profile_of(f, "memory", HEAP, service, pod, alloc_bytes, inuse_bytes), true);
}

/* Expects lines on the page, or that they are not there. */
static void check_page(struct fixture *f, const char *part, bool there)
{
    SCOPED(buf) page = testing_buf(1 << 20);
    assert_true(record_render(f->record, false, &page));
    if ((strstr(page.data, part) != NULL) != there) {
        fail_msg("%s %s:\n%s", part, there ? "is not there" : "is there", page.data);
    }
}

static uint64_t result(struct fixture *f, const char *name)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "profpull_record_values_total{result=\"%s\"}", name);
    record_thread_wait(f->record, 10000);
    return testing_metric(f->metrics, text);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST_ON(struct fixture *f, counters_add_up_by_group)
{
    heap(f, "cart", "a", 1, 1); /* there is no rule yet */
    assert_false(f->record->has_thread);
    add(f, rule_of("profiles_recorded_alloc", alloc, by_service, 1));
    reload(f);
    heap(f, "cart", "a", 100, 1);
    heap(f, "cart", "b", 20, 1);
    heap(f, "shop", "c", 3, 1);
    check_page(f, "# TYPE profiles_recorded_alloc_bytes_total counter\n", true);
    check_page(f, "service_name=\"cart\"} 120\n", true);
    check_page(f, "service_name=\"shop\"} 3\n", true);
    CHECK_INT(result(f, "counted"), 3, "");
    /* Profiles of another type, and those that no destination has taken. */
    pass(f, profile_of(f, "mutex", "delay/nanoseconds", "cart", "a", 5, 0), true);
    pass(f, profile_of(f, "memory", HEAP, "cart", "a", 5, 0), false);
    check_page(f, "service_name=\"cart\"} 120\n", true);
    CHECK_INT(result(f, "counted"), 3, "");
}

TEST_ON(struct fixture *f, gauges_are_the_sum_of_the_latest_values)
{
    add(f, rule_of("profiles_recorded_heap", inuse, by_service, 1));
    reload(f);
    heap(f, "cart", "a", 0, 1000);
    heap(f, "cart", "b", 0, 200);
    check_page(f, "# TYPE profiles_recorded_heap_bytes gauge\n", true);
    check_page(f, "} 1200\n", true);
    heap(f, "cart", "a", 0, 30);
    check_page(f, "} 230\n", true);
    /* A profile that arrives late. */
    f->time_ns = 1;
    heap(f, "cart", "b", 0, 7);
    check_page(f, "} 230\n", true);
    CHECK_INT(result(f, "old"), 1, "");
}

TEST_ON(struct fixture *f, stale_gauges_go_away)
{
    struct rule *r = NULL;
    add(f, rule_of("profiles_recorded_heap", inuse, by_service, 1));
    add(f, rule_of("profiles_recorded_alloc", alloc, by_service, 1));
    reload(f);
    heap(f, "cart", "a", 5, 1000);
    record_thread_wait(f->record, 10000);
    r = f->record->set.at[0];
    int64_t now_ms = clock_mono_ms();
    rule_expire(r, now_ms + 59000, 60000);
    check_page(f, "heap_bytes{", true);
    rule_expire(r, now_ms + 61000, 60000);
    rule_expire(f->record->set.at[1], now_ms + 61000, 60000);
    check_page(f, "heap_bytes{", false);
    check_page(f, "alloc_bytes_total{", true);
    CHECK_INT(r->n_instances, 0, "");
}

TEST_ON(struct fixture *f, nanoseconds_become_seconds)
{
    add(f, rule_of("profiles_recorded_locks_seconds_total", delay, by_service, 1));
    reload(f);
    pass(f, profile_of(f, "mutex", "delay/nanoseconds", "cart", "a", 1500000000, 0), true);
    check_page(f, "profiles_recorded_locks_seconds_total{", true);
    check_page(f, "service_name=\"cart\"} 1.5\n", true);
    pass(f, profile_of(f, "mutex", "delay/nanoseconds", "cart", "a", 500000001, 0), true);
    check_page(f, "service_name=\"cart\"} 2.000000001\n", true);
}

TEST_ON(struct fixture *f, a_function_counts_its_stacks)
{
    struct record_rule r = rule_of("profiles_recorded_main", alloc, by_service, 1);
    r.function = "main";
    add(f, r);
    r.metric_name = "profiles_recorded_none";
    r.function = "mai";
    record_rule_name(&r);
    add(f, r);
    reload(f);
    heap(f, "cart", "a", 12, 0);
    check_page(f, "service_name=\"cart\"} 12\n", true);
    check_page(f, "service_name=\"cart\"} 0\n", true);
}

TEST_ON(struct fixture *f, series_are_limited)
{
    add(f, rule_of("profiles_recorded_alloc", alloc, by_pod, 2));
    reload(f);
    heap(f, "cart", "a", 1, 0);
    heap(f, "cart", "b", 2, 0);
    heap(f, "cart", "c", 3, 0);
    heap(f, "cart", "d", 4, 0);
    heap(f, "cart", "a", 10, 0);
    check_page(f, "pod=\"a\"} 11\n", true);
    check_page(f, "pod=\"d\"", false);
    CHECK_INT(result(f, "no_series"), 1, "");
    CHECK_INT(testing_metric(f->metrics, "profpull_record_series"), 3, "");
    /* A series that was idle for an hour makes room. */
    struct rule *rule = f->record->set.at[0];
    SCOPED(labels) *l = testing_labels(f->intern, "pod", "e", "service_name", "cart", NULL);
    const struct rule_value later = {
        .labels = l, .sum = 5, .now_ms = clock_mono_ms() + RECORD_IDLE_MS + 1000, .max_series = 3};
    CHECK_INT(rule_count(rule, &later), RULE_COUNTED, "");
    CHECK_INT(map_count(rule->series), 3, "");
    check_page(f, "pod=\"e\"} 5\n", true);
}

TEST_ON(struct fixture *f, reloads_keep_unchanged_rules)
{
    add(f, rule_of("profiles_recorded_a", alloc, by_service, 1));
    add(f, rule_of("profiles_recorded_b", alloc, by_service, 1));
    reload(f);
    heap(f, "cart", "a", 10, 0);
    /* The first one moves, the second one groups by another label. */
    f->rules[2].rule = f->rules[0].rule;
    f->rules[0].rule = rule_of("profiles_recorded_b", alloc, by_pod, 2);
    f->rules[1].rule = f->rules[2].rule;
    reload(f);
    check_page(f, "profiles_recorded_a_bytes_total{", true);
    check_page(f, "profiles_recorded_b_bytes_total{", false);
    heap(f, "cart", "a", 5, 0);
    check_page(f, "service_name=\"cart\"} 15\n", true);
    check_page(f, "pod=\"a\"} 5\n", true);
    f->config.n_rules = 0;
    reload(f);
    check_page(f, "profiles_recorded", false);
    heap(f, "cart", "a", 5, 0);
    CHECK_INT(result(f, "counted"), 4, "");
}

TEST_ON(struct fixture *f, rules_of_the_api_join_those_of_the_file)
{
    struct err err = ERR_INIT;
    struct record_rule api[4];
    add(f, rule_of("profiles_recorded_a", alloc, by_service, 1));
    reload(f);
    api[0] = rule_of("profiles_recorded_b", inuse, by_service, 1);
    assert_true(record_set_rules(f->record, api, 1, &err));
    heap(f, "cart", "a", 10, 20);
    reload(f);
    check_page(f, "service_name=\"cart\"} 10\n", true);
    check_page(f, "service_name=\"cart\"} 20\n", true);
    /* One name, two kinds. */
    api[1] = rule_of("profiles_recorded_b_bytes_total", alloc, by_pod, 2);
    assert_false(record_set_rules(f->record, api, 2, &err));
    CHECK_STR(err.msg,
              "metric_name: another rule makes profiles_recorded_b_bytes a metric of another kind: "
              "use another name",
              "");
    /* More than max_rules. */
    err_clear(&err);
    for (size_t i = 0; i < 4; i++) {
        static const char *const names[] = {"profiles_recorded_0", "profiles_recorded_1",
                                            "profiles_recorded_2", "profiles_recorded_3"};
        api[i] = rule_of(names[i], alloc, by_pod, 2);
    }
    assert_false(record_set_rules(f->record, api, 4, &err));
    CHECK_INT(err.kind, ERR_LIMIT, err.msg);
    check_page(f, "service_name=\"cart\"} 20\n", true);
    err_clear(&err);
    assert_true(record_set_rules(f->record, NULL, 0, &err));
    check_page(f, "profiles_recorded_b", false);
    check_page(f, "service_name=\"cart\"} 10\n", true);
}

TEST_ON(struct fixture *f, profiles_beyond_the_queue_are_not_counted)
{
    add(f, rule_of("profiles_recorded_a", alloc, by_service, 1));
    reload(f);
    struct profile *p = profile_of(f, "memory", HEAP, "cart", "a", 1, 1);
    f->record->options.pending_max = profile_cost(p) - 1;
    pass(f, p, true);
    CHECK_INT(result(f, "pending"), 1, "");
    CHECK_INT(result(f, "counted"), 0, "");
    CHECK_INT(testing_metric(f->metrics, "profpull_record_pending_bytes"), 0, "");
}

TEST_ON(struct fixture *f, cumulative_and_damaged_profiles_are_not_counted)
{
    add(f, rule_of("profiles_recorded_a", alloc, by_service, 1));
    add(f, rule_of("profiles_recorded_h", inuse, by_service, 1));
    reload(f);
    struct profile *p = profile_of(f, "memory", HEAP, "cart", "a", 1, 2);
    profile_set_labels(
        p, testing_labels(f->intern, "__name__", "memory", "service_name", "cart", NULL));
    pass(f, p, true);
    CHECK_INT(result(f, "cumulative"), 1, "");
    check_page(f, "profiles_recorded_h_bytes{", true);
    p = profile_of(f, "memory", HEAP, "cart", "a", 1, 2);
    p->size--;
    testing_log_expect(f->log, "a profile is not counted by recorded metrics");
    pass(f, p, true);
    CHECK_INT(result(f, "damaged"), 2, "");
    check_page(f, "profiles_recorded_a_bytes_total{", false);
}

TEST_ON(struct fixture *f, labels_are_escaped)
{
    struct record_rule r = rule_of("profiles_recorded_a", alloc, by_pod, 2);
    const struct label team = {SV("team"), SV("x")};
    r.external = &team;
    r.n_external = 1;
    add(f, r);
    reload(f);
    heap(f, "a\"b\\c\nd\xff", "", 1, 0);
    check_page(f, "team=\"x\",service_name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} 1\n", true);
}

TEST_ON(struct fixture *f, openmetrics_names_the_unit)
{
    add(f, rule_of("profiles_recorded_locks", delay, by_service, 1));
    reload(f);
    pass(f, profile_of(f, "mutex", "delay/nanoseconds", "cart", "a", 7, 0), true);
    SCOPED(buf) page = testing_buf(1 << 20);
    assert_true(record_render(f->record, true, &page));
    CHECK_CONTAINS(page.data,
                   "# TYPE profiles_recorded_locks_seconds counter\n"
                   "# UNIT profiles_recorded_locks_seconds seconds\n"
                   "profiles_recorded_locks_seconds_total{",
                   "");
    CHECK_CONTAINS(page.data, "service_name=\"cart\"} 0.000000007\n# EOF\n", "");
}

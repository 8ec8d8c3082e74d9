/* The metrics registry: exact text, the limit of cells, several threads. */
#include "tests/unit/lib/testing.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/metrics.h"

static void check_page(struct metrics *m, const char *want)
{
    SCOPED(buf) page = testing_buf(1000000);
    assert_true(metrics_render(m, &page));
    CHECK_STR(page.data, want, "");
}

static const struct metric_desc scrapes = {
    .name = "profpull_scrapes_total",
    .help = "Scrapes by job and result.",
    .type = METRIC_COUNTER,
    .labels = {"job", "result"},
};
static const struct metric_desc queue = {
    .name = "profpull_queue_bytes", .help = "Bytes in the queue.", .type = METRIC_GAUGE};
static const double bounds[] = {0.005, 0.1, 1, 2.5};
static const struct metric_desc duration = {
    .name = "profpull_scrape_duration_seconds",
    .help = "How long scrapes take.",
    .type = METRIC_HISTOGRAM,
    .labels = {"type"},
    .buckets = bounds,
    .n_buckets = 4,
};

TEST(renders)
{
    SCOPED(metrics) *m = metrics_new();
    check_page(m, "");
    struct metric *s = metrics_register(m, &scrapes);
    struct metric *q = metrics_register(m, &queue);
    struct metric *d = metrics_register(m, &duration);
    /* A family without labels appears from the start, one with labels with its first cell. */
    check_page(m, "# HELP profpull_queue_bytes Bytes in the queue.\n"
                  "# TYPE profpull_queue_bytes gauge\n"
                  "profpull_queue_bytes 0\n");
    metric_inc(metric_cell(s, (const char *const[]){"pods", "ok"}));
    metric_add(metric_cell(s, (const char *const[]){"pods", "ok"}), 41);
    metric_inc(metric_cell(s, (const char *const[]){"pods", "timeout"}));
    metric_set(metric_only(q), 10);
    metric_gauge_add(metric_only(q), -25);
    struct metric_cell *heap = metric_cell(d, (const char *const[]){"heap"});
    static const double values[] = {0, 0.005, 0.0051, 0.1, 1, 2.5, 2.6, 100};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        metric_observe(heap, values[i]);
    }
    metric_observe(heap, (double)NAN); /* not counted: it would spoil the sum forever */
    CHECK_INT(metric_value(metric_cell(s, (const char *const[]){"pods", "ok"})), 42, "");
    CHECK_INT((int64_t)metric_value(metric_only(q)), -15, "");
    check_page(m, "# HELP profpull_scrapes_total Scrapes by job and result.\n"
                  "# TYPE profpull_scrapes_total counter\n"
                  "profpull_scrapes_total{job=\"pods\",result=\"ok\"} 42\n"
                  "profpull_scrapes_total{job=\"pods\",result=\"timeout\"} 1\n"
                  "# HELP profpull_queue_bytes Bytes in the queue.\n"
                  "# TYPE profpull_queue_bytes gauge\n"
                  "profpull_queue_bytes -15\n"
                  "# HELP profpull_scrape_duration_seconds How long scrapes take.\n"
                  "# TYPE profpull_scrape_duration_seconds histogram\n"
                  "profpull_scrape_duration_seconds_bucket{type=\"heap\",le=\"0.005\"} 2\n"
                  "profpull_scrape_duration_seconds_bucket{type=\"heap\",le=\"0.1\"} 4\n"
                  "profpull_scrape_duration_seconds_bucket{type=\"heap\",le=\"1\"} 5\n"
                  "profpull_scrape_duration_seconds_bucket{type=\"heap\",le=\"2.5\"} 6\n"
                  "profpull_scrape_duration_seconds_bucket{type=\"heap\",le=\"+Inf\"} 8\n"
                  "profpull_scrape_duration_seconds_sum{type=\"heap\"} 106.2101\n"
                  "profpull_scrape_duration_seconds_count{type=\"heap\"} 8\n");
}

TEST(renders_a_bare_histogram)
{
    const struct metric_desc desc = {
        .name = "h", .help = "", .type = METRIC_HISTOGRAM, .buckets = bounds + 2, .n_buckets = 1};
    SCOPED(metrics) *m = metrics_new();
    metric_observe(metric_only(metrics_register(m, &desc)), 1e300);
    check_page(m, "# HELP h \n# TYPE h histogram\nh_bucket{le=\"1\"} 0\nh_bucket{le=\"+Inf\"} 1\n"
                  "h_sum 1e+300\nh_count 1\n");
}

TEST(escapes)
{
    const struct metric_desc desc = {.name = "x",
                                     .help = "back\\slash, \"quote\"\nline \xff",
                                     .type = METRIC_COUNTER,
                                     .labels = {"l"}};
    SCOPED(metrics) *m = metrics_new();
    struct metric *x = metrics_register(m, &desc);
    metric_inc(metric_cell(x, (const char *const[]){"a\\b\"c\nd\xc3\xa9\xff"}));
    metric_inc(metric_cell(x, (const char *const[]){""}));
    check_page(m, "# HELP x back\\\\slash, \"quote\"\\nline \xef\xbf\xbd\n"
                  "# TYPE x counter\n"
                  "x{l=\"a\\\\b\\\"c\\nd\xc3\xa9\xef\xbf\xbd\"} 1\n"
                  "x{l=\"\"} 1\n");
}

TEST(same_name_same_family)
{
    SCOPED(metrics) *m = metrics_new();
    struct metric *a = metrics_register(m, &scrapes);
    assert_ptr_equal(metrics_register(m, &scrapes), a);
    assert_true(metrics_register(m, &queue) != a);
    /* "ab","c" and "a","bc" are two cells; each is made once. */
    struct metric_cell *x = metric_cell(a, (const char *const[]){"ab", "c"});
    assert_true(metric_cell(a, (const char *const[]){"a", "bc"}) != x);
    char job[] = "ab";
    assert_ptr_equal(metric_cell(a, (const char *const[]){job, "c"}), x);
}

TEST(ignores_null)
{
    SCOPED(buf) page = testing_buf(100);
    assert_null(metrics_register(NULL, &queue));
    assert_null(metric_cell(NULL, NULL));
    assert_null(metric_only(NULL));
    metric_add(NULL, 1);
    metric_inc(NULL);
    metric_set(NULL, 1);
    metric_gauge_add(NULL, 1);
    metric_observe(NULL, 1);
    CHECK_INT(metric_value(NULL), 0, "");
    assert_false(metrics_collector(NULL, NULL, NULL));
    assert_true(metrics_render(NULL, &page));
    CHECK_STR(page.data, "", "");
    assert_null(metrics_free(NULL));
    SCOPED(metrics) *m = metrics_new();
    assert_null(metric_only(metrics_register(m, &scrapes)));     /* it has labels */
    metric_observe(metric_only(metrics_register(m, &queue)), 1); /* not a histogram */
    CHECK_INT(metric_value(metric_only(metrics_register(m, &queue))), 0, "");
}

static size_t count_lines(struct metrics *m)
{
    size_t lines = 0;
    SCOPED(buf) page = testing_buf(1000000);
    assert_true(metrics_render(m, &page));
    for (size_t i = 0; i < page.len; i++) {
        lines += page.data[i] == '\n';
    }
    return lines;
}

TEST(has_a_limit_of_cells)
{
    SCOPED(metrics) *m = metrics_new();
    struct metric *s = metrics_register(m, &scrapes);
    for (int i = 0; i < 3 * METRIC_CELLS_MAX; i++) {
        char job[16];
        (void)snprintf(job, sizeof(job), "job-%d", i);
        metric_inc(metric_cell(s, (const char *const[]){job, "ok"}));
    }
    CHECK_INT(count_lines(m), METRIC_CELLS_MAX + 2, "with HELP and TYPE");
    struct metric_cell *other = metric_cell(s, (const char *const[]){"job-9999", "ok"});
    assert_ptr_equal(metric_cell(s, (const char *const[]){"other", "other"}), other);
    CHECK_INT(metric_value(other), 3 * METRIC_CELLS_MAX - (METRIC_CELLS_MAX - 1), "");
    /* The old cells are still found. */
    CHECK_INT(metric_value(metric_cell(s, (const char *const[]){"job-0", "ok"})), 1, "");
    CHECK_INT(metric_value(metric_cell(s, (const char *const[]){"job-510", "ok"})), 1, "");
    assert_true(metric_cell(s, (const char *const[]){"job-510", "ok"}) != other);
    assert_ptr_equal(metric_cell(s, (const char *const[]){"job-511", "ok"}), other);
}

/* Names come and go with configurations. */
TEST(shows_what_exists)
{
    static const char head[] = "# HELP profpull_scrapes_total Scrapes by job and result.\n"
                               "# TYPE profpull_scrapes_total counter\n";
    SCOPED(metrics) *m = metrics_new();
    struct metric *s = metrics_register(m, &scrapes);
    struct metric_cell *kept = metric_cell(s, (const char *const[]){"kept", "ok"});
    struct metric_cell *gone = metric_cell(s, (const char *const[]){"a\"b", "ok"});
    char with_both[512];
    (void)snprintf(with_both, sizeof(with_both), "%s%s%s", head,
                   "profpull_scrapes_total{job=\"kept\",result=\"ok\"} 1\n",
                   "profpull_scrapes_total{job=\"a\\\"b\",result=\"ok\"} 1\n");
    char with_one[512];
    (void)snprintf(with_one, sizeof(with_one), "%s%s", head,
                   "profpull_scrapes_total{job=\"kept\",result=\"ok\"} 1\n");
    metric_inc(kept);
    metrics_use(m, "job", "a\"b");
    metrics_use(m, "job", "a\"b");
    metrics_release(m, "job", "a\"b");
    metrics_release(m, "result", "ok");
    metrics_release(m, "job", "kept");
    metric_inc(gone);
    check_page(m, with_both);

    metrics_release(m, "job", "a\"b");
    check_page(m, with_one);
    metric_inc(metric_cell(s, (const char *const[]){"a\"b", "late"}));
    check_page(m, with_one);
    metrics_release(m, "job", "a\"b");
    check_page(m, with_one);

    metrics_use(m, "job", "a\"b");
    metrics_use(m, "job", "kept");
    metrics_release(m, "job", "kept");
    metric_inc(gone);
    char only_gone[512];
    (void)snprintf(only_gone, sizeof(only_gone), "%s%s%s", head,
                   "profpull_scrapes_total{job=\"a\\\"b\",result=\"ok\"} 2\n",
                   "profpull_scrapes_total{job=\"a\\\"b\",result=\"late\"} 1\n");
    check_page(m, only_gone);
    metrics_release(m, "job", "a\"b");
    check_page(m, "");
}

/* Metrics that are hidden take nobody's place, as long as memory is not without bounds. */
TEST(names_that_change_do_not_fill_it)
{
    SCOPED(metrics) *m = metrics_new();
    struct metric *s = metrics_register(m, &scrapes);
    struct metric_cell *other = NULL;
    for (int i = 0; i < METRIC_CELLS_EVER_MAX + 2; i++) {
        char job[16];
        (void)snprintf(job, sizeof(job), "job-%d", i);
        metrics_use(m, "job", job);
        struct metric_cell *c = metric_cell(s, (const char *const[]){job, "ok"});
        other = c;
        metrics_release(m, "job", job);
    }
    metrics_use(m, "job", "job-1");
    metrics_use(m, "job", "job-4000");
    CHECK_INT(count_lines(m), 3 + 2, "two, other, HELP and TYPE");
    assert_ptr_equal(metric_cell(s, (const char *const[]){"other", "other"}), other);
}

TEST(endless_values_share_a_cell)
{
    SCOPED(metrics) *m = metrics_new();
    struct metric *s = metrics_register(m, &scrapes);
    SCOPED_MEMORY char *text = testing_memory(20001);
    memset(text, 'x', 20000);
    text[20000] = '\0';
    metric_inc(metric_cell(s, (const char *const[]){text, "ok"}));
    check_page(m, "# HELP profpull_scrapes_total Scrapes by job and result.\n"
                  "# TYPE profpull_scrapes_total counter\n"
                  "profpull_scrapes_total{job=\"other\",result=\"other\"} 1\n");
}

static void collect(struct metrics_out *o, void *arg)
{
    int *calls = arg;
    ++*calls;
    metrics_out_family(o, "ledger", "A \\ ledger.", METRIC_COUNTER);
    metrics_out_sample(o, NULL, 0, *calls);
    const char *const labels[][2] = {{"to", "a \"b\""}, {"reason", "x"}};
    metrics_out_sample(o, labels, 2, 0.5);
    metrics_out_family(o, "ledger_age", "Age.", METRIC_GAUGE);
    metrics_out_sample(o, labels, 1, (double)-INFINITY);
}

TEST(runs_collectors)
{
    int first = 0;
    int second = 10;
    SCOPED(metrics) *m = metrics_new();
    assert_true(metrics_collector(m, collect, &first));
    check_page(m, "# HELP ledger A \\\\ ledger.\n# TYPE ledger counter\nledger 1\n"
                  "ledger{to=\"a \\\"b\\\"\",reason=\"x\"} 0.5\n"
                  "# HELP ledger_age Age.\n# TYPE ledger_age gauge\n"
                  "ledger_age{to=\"a \\\"b\\\"\"} -Inf\n");
    assert_true(metrics_collector(m, collect, &second));
    CHECK_INT(count_lines(m), 14, "");
    CHECK_INT(first, 2, "");
    CHECK_INT(second, 11, "");
    struct buf small = testing_buf(10);
    assert_false(metrics_render(m, &small));
    assert_true(buf_too_big(&small));
}

TEST(prints_large_numbers)
{
    SCOPED(metrics) *m = metrics_new();
    metric_set(metric_only(metrics_register(m, &queue)), INT64_MIN);
    const struct metric_desc total = {.name = "t", .help = "T.", .type = METRIC_COUNTER};
    metric_add(metric_only(metrics_register(m, &total)), UINT64_MAX);
    check_page(m, "# HELP profpull_queue_bytes Bytes in the queue.\n"
                  "# TYPE profpull_queue_bytes gauge\n"
                  "profpull_queue_bytes -9223372036854775808\n"
                  "# HELP t T.\n# TYPE t counter\nt 18446744073709551615\n");
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 2000

static void *count(void *arg)
{
    struct metrics *m = arg;
    struct metric *s = metrics_register(m, &scrapes);
    struct metric *d = metrics_register(m, &duration);
    for (int i = 0; i < ROUNDS; i++) {
        char job[16];
        (void)snprintf(job, sizeof(job), "job-%d", i % 50);
        metric_inc(metric_cell(s, (const char *const[]){job, "ok"}));
        metric_observe(metric_cell(d, (const char *const[]){"heap"}), 0.5);
        if (i % 200 == 0) {
            SCOPED(buf) page = testing_buf(1000000);
            metrics_render(m, &page);
        }
    }
    return NULL;
}

TEST(threads_count_together)
{
    SCOPED(metrics) *m = metrics_new();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, count, m), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    struct metric *s = metrics_register(m, &scrapes);
    for (int i = 0; i < 50; i++) {
        char job[16];
        (void)snprintf(job, sizeof(job), "job-%d", i);
        CHECK_INT(metric_value(metric_cell(s, (const char *const[]){job, "ok"})),
                  THREADS * ROUNDS / 50, job);
    }
    SCOPED(buf) page = testing_buf(1000000);
    assert_true(metrics_render(m, &page));
    CHECK_CONTAINS(page.data, "_sum{type=\"heap\"} 4000\n", "");
    CHECK_CONTAINS(page.data, "_count{type=\"heap\"} 8000\n", "");
}
